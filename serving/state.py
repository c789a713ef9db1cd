"""What one server holds while it runs."""

from dataclasses import dataclass, field
from typing import Any

from serving.admission import Admission
from serving.aliases import Aliases
from serving.indexes import ServedIndexes
from serving.keys import KeyFile, Rates
from serving.metrics import Metrics
from serving.pages.sessions import Sessions
from serving.questions import Questions
from serving.settings import ServerSettings
from serving.sources import ServedSources
from serving.tasks import Tasks
from serving.tracing import Tracing
from serving.writer import Writer


@dataclass(slots=True, eq=False)
class Serving:
    """The parts of a server; `draining` from the moment that it is told to leave."""

    settings: ServerSettings
    indexes: ServedIndexes
    admission: Admission
    metrics: Metrics
    questions: Questions
    tasks: Tasks
    keys: KeyFile | None
    sources: ServedSources | None = None
    tracing: Tracing = field(default_factory=Tracing)
    rates: Rates = field(default_factory=Rates)
    sessions: Sessions = field(default_factory=Sessions)
    batches: int = 0
    """Batches under way."""
    draining: bool = False

    @classmethod
    def of(cls, settings: ServerSettings) -> "Serving":
        """The parts as the settings ask for them; nothing is opened yet."""
        limits, metrics = settings.limits, Metrics()
        own: Any = {"config": settings.config, "overrides": settings.overrides}
        indexes = ServedIndexes(settings.indexes, aliases=Aliases(settings.aliases), **own)
        admission = Admission(permits=limits.permits, queue=limits.queue)
        tracing = Tracing.open() if settings.traces else Tracing()
        questions = Questions(indexes, admission, metrics, limits, tracing)
        keys = None if settings.keys is None else KeyFile(settings.keys)
        sources = None
        if settings.sources is not None:
            sources = ServedSources(settings.sources, limits=limits, **own)
        tasks = Tasks(indexes, Writer(**own), metrics, limits)
        return cls(settings, indexes, admission, metrics, questions, tasks, keys, sources, tracing)

    def open(self) -> None:
        """Open and warm all that is served; ConfigError, and the errors of `Engine.open`."""
        if self.keys is not None:
            self.keys.listed()
        if self.sources is not None:
            self.sources.open()
        self.indexes.open()

    @property
    def ready(self) -> bool:
        """Whether it takes questions: all indexes are open and warm, and it is not leaving."""
        return self.indexes.ready and not self.draining

    def close(self) -> None:
        """Close all that was opened."""
        self.admission.close()
        self.tracing.close()
        if self.sources is not None:
            self.sources.close()
        self.indexes.close()
