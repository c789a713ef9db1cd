"""The indexes that a server serves: open, warm, and following the snapshots that are swapped in.

A question borrows an index at the snapshot that it has then, and keeps that to its end. All share one set of models,
which are loaded once.
"""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helios.engine import Engine
from helios.errors import HeliosError
from helios.reading.asking import answer_question
from helios.reading.base import Reader
from helios.retrieval.pipeline import Models
from serving.aliases import Aliases
from serving.watch import watched

log = logging.getLogger(__name__)
WARMING = "Which is the largest of them, and when was it opened?"


@dataclass(frozen=True, slots=True, eq=False)
class OpenIndex:
    """An index at one snapshot, by the name that it was asked for: its own, or an alias."""

    name: str
    engine: Engine
    served: str = ""
    """The index's own name."""

    @property
    def reader(self) -> Reader:
        """What answers from its evidence."""
        return self.engine.reader

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

    def __init__(
        self, folders: Mapping[str, Path], *, config: Path | None, overrides: Sequence[str],
        aliases: Aliases | None = None,
    ) -> None:  # fmt: skip
        self.folders = dict(folders)
        self.aliases = aliases or Aliases(None)
        self.models = Models(threads=os.cpu_count() or 1)
        self._config = config
        self._overrides = tuple(overrides)
        self._engines: dict[str, Engine] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all, in the order in which they were given."""
        return tuple(self.folders)

    def served(self, name: str) -> str:
        """The index that a name stands for now; KeyError for none."""
        return name if name in self.folders else self.aliases.named[name]

    def known(self, name: str) -> bool:
        """Whether a name is that of an index, or an alias."""
        return name in self.folders or name in self.aliases.named

    @property
    def ready(self) -> bool:
        """Whether all are open and warm."""
        return len(self._engines) == len(self.folders)

    def open(self) -> None:
        """Open and warm all of them; the errors of `Engine.open`, ConfigError for an alias of no index."""
        self.aliases.open(self.folders)
        for name, folder in self.folders.items():
            engine = Engine.open(
                folder, config=self._config, overrides=self._overrides, stages=watched, models=self.models
            )
            try:
                if engine.config.refinement.mode != "llm":
                    answer_question(engine, engine.reader, WARMING, k=10)
            except HeliosError:
                engine.close()
                raise
            self._engines[name] = engine

    @contextmanager
    def lent(self, name: str) -> Iterator[OpenIndex]:
        """The index as it is now, for the block."""
        served = self.served(name)
        with self._engines[served].pinned() as engine:
            yield OpenIndex(name, engine, served)

    def refreshed(self, name: str) -> int:
        """The number of an index's newest snapshot, which is served from now on; the errors of `Engine.refresh`."""
        engine = self._engines[name]
        engine.refresh()
        return engine.snapshot.manifest.generation

    def follow(self) -> list[str]:
        """Take every new snapshot, warm; the names of those indexes. One that cannot be used is logged."""
        swapped = []
        for name, engine in self._engines.items():
            try:
                if engine.refresh():
                    swapped.append(name)
            except (HeliosError, OSError) as error:
                log.warning("index %s stays at its snapshot: %s", name, error)
        return swapped

    def close(self) -> None:
        """Close all; questions that run end first."""
        for engine in self._engines.values():
            engine.close()
        self.models.close()
