"""The indexes that a server serves: opened, warm, and followed when a new snapshot is swapped in.

A question borrows an open index and gives it back; one that was replaced is closed when the last question on it ends.
All share one set of models, which are loaded once.
"""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from helios.engine import Engine
from helios.errors import HeliosError
from helios.reading.asking import answer_question
from helios.reading.base import Reader
from helios.retrieval.pipeline import Models
from serving.watch import watched

log = logging.getLogger(__name__)
WARMING = "Which is the largest of them, and when was it opened?"


@dataclass(slots=True, eq=False)
class OpenIndex:
    """A snapshot that questions are asked of; `users` of them at this moment."""

    name: str
    engine: Engine
    reader: Reader
    users: int = 0
    retired: bool = False

    @property
    def generation(self) -> int:
        """The snapshot's number."""
        return self.engine.snapshot.manifest.generation

    def describe(self) -> dict[str, Any]:
        """What the index holds, as plain JSON data; nothing about where it lies."""
        manifest, index = self.engine.snapshot.manifest, self.engine.index
        return {
            "name": self.name,
            "generation": self.generation,
            "created": manifest.created,
            "tables": len(self.engine.corpus.tables),
            "rows": index.segment_count,
            "passages": index.passage_count,
            "edges": self.engine.graph.edge_count,
            "deleted": manifest.counts.deleted,
            "models": {role: model.name for role, model in sorted(manifest.models.items())},
        }


class ServedIndexes:
    """Open indexes by name; threads may share it."""

    def __init__(self, folders: Mapping[str, Path], *, config: Path | None, overrides: Sequence[str]) -> None:
        self.folders = dict(folders)
        self.models = Models(threads=os.cpu_count() or 1)
        self._config = config
        self._overrides = tuple(overrides)
        self._open: dict[str, OpenIndex] = {}
        self._lock = Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all, in the order in which they were given."""
        return tuple(self.folders)

    @property
    def ready(self) -> bool:
        """Whether all are open and warm."""
        return len(self._open) == len(self.folders)

    def open(self) -> None:
        """Open and warm all of them; the errors of `Engine.open`."""
        for name in self.folders:
            self._swap(name, self._opened(name))

    @contextmanager
    def lent(self, name: str) -> Iterator[OpenIndex]:
        """The index as it is now; it stays open for the block."""
        with self._lock:
            index = self._open[name]
            index.users += 1
        try:
            yield index
        finally:
            with self._lock:
                index.users -= 1
                last = index.retired and not index.users
            if last:
                index.engine.close()

    def follow(self) -> list[str]:
        """Swap in every index that has a new snapshot, warm; the names of those. One that cannot be used is logged."""
        swapped = []
        for name, index in list(self._open.items()):
            try:
                if index.engine.snapshot.is_current():
                    continue
                self._swap(name, self._opened(name))
            except HeliosError as error:
                log.warning("index %s stays at snapshot %d: %s", name, index.generation, error)
                continue
            swapped.append(name)
        return swapped

    def close(self) -> None:
        """Close all; questions that run end first."""
        with self._lock:
            closing, self._open = list(self._open.values()), {}
        for index in closing:
            index.engine.close()
        self.models.close()

    def _opened(self, name: str) -> OpenIndex:
        engine = Engine.open(
            self.folders[name], config=self._config, overrides=self._overrides, stages=watched, models=self.models
        )
        try:
            if engine.config.refinement.mode != "llm":
                answer_question(engine, engine.reader, WARMING, k=10)
            return OpenIndex(name, engine, engine.reader)
        except HeliosError:
            engine.close()
            raise

    def _swap(self, name: str, new: OpenIndex) -> None:
        with self._lock:
            old = self._open.get(name)
            self._open[name] = new
            if old is not None:
                old.retired = True
            unused = old is not None and not old.users
        if old is not None and unused:
            old.engine.close()
