"""What an engine has open of one snapshot. All that numbers nodes is here, and goes when the snapshot does.

Node numbers mean something in one snapshot only, so nothing that is kept by a number may outlive it: the reader of the
index with its words of rows and passages, what filters leave, prepared tables. What is kept by a text or a setting
(models, vectors of the reranker) belongs to `Models` and serves every snapshot.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from helios.bounded import Bounded
from helios.config import Config
from helios.corpus.where import Where
from helios.errors import IndexFormatError
from helios.index.products import load_kernels
from helios.index.reader import Corpus, IndexReader
from helios.index.snapshot import Snapshot
from helios.once import once
from helios.retrieval.pipeline import Models, Pipeline
from helios.retrieval.probability import EvidenceModel
from helios.retrieval.state import Stage

if TYPE_CHECKING:
    from helios.models.encoder import TokenEncoder
    from helios.reading.base import Reader

Stages = Callable[[Sequence[Stage]], Iterable[Stage]]


class OpenSnapshot:
    """A snapshot with its reader, stages and views; it closes when nobody uses it any more, threads may share it."""

    def __init__(
        self, snapshot: Snapshot, config: Config, models: Models, arrange: Stages, *, index: IndexReader | None = None
    ) -> None:
        """`index` reads this snapshot already."""
        self.snapshot = snapshot
        self.config = config
        self.models = models
        self.index = IndexReader.of(snapshot) if index is None else index
        self._arrange = arrange
        self._views: Bounded[str, IndexReader] = Bounded(config.advanced.search.filters)
        self._users = 1
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"OpenSnapshot(generation={self.snapshot.manifest.generation}, {self.index!r})"

    def hold(self) -> None:
        """One user more, until `release`; RuntimeError where the last one has let go."""
        with self._lock:
            if not self._users:
                raise RuntimeError("the engine is closed")
            self._users += 1

    def release(self) -> None:
        """One user less; the last one closes the snapshot."""
        with self._lock:
            self._users = max(0, self._users - 1)
            last = not self._users
        if last:
            self.snapshot.close()

    def successor(self, snapshot: Snapshot, config: Config) -> "OpenSnapshot":
        """The same over another snapshot; parts and models that did not change are not read again."""
        index = IndexReader.of(snapshot, after=self.index)
        return OpenSnapshot(snapshot, config, self.models, self._arrange, index=index)

    def take_reader(self, before: "OpenSnapshot") -> None:
        """Have the models of another snapshot's reader of answers, if it has one, over what is open of this one."""
        from helios.reading.asking import reader_over

        reader = before.__dict__.get("reader")
        if reader is not None and before.config == self.config and before.encoder is self.encoder:
            self.__dict__.setdefault("reader", reader_over(reader, self))

    def view(self, where: str | Where | None) -> IndexReader:
        """What a filter leaves of the index; views of the last filters are kept."""
        if where is None:
            return self.index
        condition = Where.parse(where) if isinstance(where, str) else where
        return self._views.of(str(condition), lambda: self.index.narrowed(condition.nodes(self.index.corpus)))

    @once
    def pipeline(self) -> Pipeline:
        """The stages of a search; IndexFormatError where the configured encoder is not that of the index."""
        built = self.index.encoder
        encoder = self.models.encoder(self.config, self.index)
        for part in self.index.parts:
            if part.tokens.encoder["fingerprint"] != encoder.fingerprint:
                raise IndexFormatError(
                    f"{part.view.directory}: its vectors come from {built['name']} ({built['fingerprint'][:12]}), the "
                    f"configured encoder is another ({encoder.fingerprint[:12]}): set encoder.model and "
                    "encoder.adapter to those that it was built with, or rebuild"
                )
        usual = self.models.pipeline(self.config, self.index)
        load_kernels()
        return replace(usual, stages=tuple(self._arrange(usual.stages)))

    @once
    def reader(self) -> "Reader":
        """What answers from evidence: `reading.reader`."""
        from helios.reading.asking import load_reader

        return load_reader(self)

    @once
    def judge(self) -> EvidenceModel:
        """What a score means."""
        folder = self.config.advanced.search.probability
        return EvidenceModel.load(None if folder is None else Path(folder).expanduser())

    @property
    def encoder(self) -> "TokenEncoder":
        """The token encoder that the index was built with."""
        return self.pipeline.encoder

    @property
    def corpus(self) -> Corpus:
        """Tables and passages, by number and by id."""
        return self.index.corpus

    @property
    def is_used(self) -> bool:
        """Whether some question was asked of it, so that its models are loaded."""
        return "pipeline" in self.__dict__
