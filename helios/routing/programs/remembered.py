"""A source for the length of one question: what several readers ask of it is run once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from helios.errors import SourceError
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.sources.base import Source, ValueHit
from helios.sources.descriptor import Descriptor


@dataclass(frozen=True)
class Remembered:
    """A source whose results, refusals and failures are kept; for one thread, and no longer than one question."""

    source: Source
    _ran: dict[str, ResultSet | SourceError] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Source) -> "Remembered":
        """The source itself where it remembers already."""
        return source if isinstance(source, cls) else cls(source)

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def kind(self) -> str:
        return self.source.kind

    @property
    def language(self) -> Language:
        return self.source.language

    def descriptor(self) -> Descriptor:
        return self.source.descriptor()

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        return self.source.find_values(phrases, limit=limit)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Run a query, or say again what it gave; with limits of its own it is always run."""
        if limits is not None:
            return self.source.execute(query, limits)
        key = repr(query)
        if key not in self._ran:
            try:
                self._ran[key] = self.source.execute(query)
            except SourceError as error:
                self._ran[key] = error
        found = self._ran[key]
        if isinstance(found, SourceError):
            raise found
        return found

    def refresh(self) -> None:
        self._ran.clear()
        self.source.refresh()

    def check(self) -> None:
        self.source.check()

    def close(self) -> None:
        self.source.close()
