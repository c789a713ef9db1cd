"""Link a stored corpus: tables in chunks → arrays of links with their provenance.

The result of a table depends on nothing but the table, the passages and the weights, so it is the same
for any chunk size and number of workers.
"""

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from helios.corpus import CorpusStore
from helios.errors import HeliosError
from helios.index.lexical import terms_of
from helios.models.linker import Linker, TableLinker
from helios.models.linker.linker import TableLinks
from helios.models.linker.routes import Routes
from helios.types import Table

Array = npt.NDArray[Any]
FAINT, LIKELY, SHORT = 0.1, 0.6, 3
"""Scores below which a link needs a word in common with the passage's title: of any words, and of fewer letters."""


@dataclass(frozen=True, slots=True)
class LinkArrays:
    """Links as aligned arrays: int64 but for float32 scores; tables in order, then row, column and span."""

    segments: Array
    passages: Array
    columns: Array
    starts: Array
    ends: Array
    scores: Array

    def __len__(self) -> int:
        return len(self.segments)

    @classmethod
    def concatenate(cls, parts: Sequence["LinkArrays"]) -> "LinkArrays":
        """One after the other."""
        return cls(
            *(
                np.concatenate([np.zeros(0, kind), *(getattr(part, name) for part in parts)])
                for name, kind in _COLUMNS.items()
            )
        )


_COLUMNS: dict[str, np.dtype[Any]] = {
    "segments": np.dtype(np.int64),
    "passages": np.dtype(np.int64),
    "columns": np.dtype(np.int64),
    "starts": np.dtype(np.int64),
    "ends": np.dtype(np.int64),
    "scores": np.dtype(np.float32),
}


def link_corpus(
    store: CorpusStore, *, linker: TableLinker, tables: range, threshold: float | None = None
) -> LinkArrays:
    """Links of a chunk of tables (a range of table numbers). None is the weights' own threshold."""
    return LinkArrays.concatenate([_link_table(store, linker, number, threshold) for number in tables])


def _link_table(store: CorpusStore, linker: TableLinker, number: int, threshold: float | None) -> LinkArrays:
    table = store.tables[number]
    links = linker.link(table, threshold=threshold)
    kept = np.array([_is_name(table, links, place, store) for place in range(len(links))], bool)
    segments = links.rows.astype(np.int64) + int(store.segment_offsets[number])
    numbers = (segments, links.passages, links.columns, links.starts, links.ends)
    return LinkArrays(*(column.astype(np.int64)[kept] for column in numbers), links.scores[kept])


def _is_name(table: Table, links: TableLinks, place: int, store: CorpusStore) -> bool:
    """Whether a link is likely enough, or its words are in the passage's title.

    The linker knows pages about one thing each. A folder's documents are about many, and each of a column's codes would
    get a faint link to one of them.
    """
    score = float(links.scores[place])
    if score >= LIKELY:
        return True
    cell = table.rows[links.rows[place]][links.columns[place]]
    mention = cell[links.starts[place] : links.ends[place]]
    if score >= FAINT and sum(map(str.isalpha, mention)) >= SHORT:
        return True
    title = store.passages[int(links.passages[place])].title
    return not set(terms_of(mention)).isdisjoint(terms_of(title))


@dataclass(frozen=True, slots=True)
class LinkingJob:
    """What a worker process needs to open a prepared linker by itself."""

    store: Path
    workdir: Path
    weights: Path | None = None
    spacy_model: str | None = None
    threshold: float | None = None
    routes: Routes | None = None
    """Further candidate routes; None keeps those of a folder that is prepared already."""

    def prepare(self) -> None:
        """Build the candidate index of the passages; call once, before workers start."""
        linker = Linker.load(self.weights, spacy_model=self.spacy_model)
        linker.prepare(CorpusStore.open(self.store), self.workdir, routes=self.routes)

    def open(self) -> tuple[CorpusStore, TableLinker]:
        """The store and the linker over the prepared folder."""
        linker = Linker.load(self.weights, spacy_model=self.spacy_model)
        return CorpusStore.open(self.store), linker.open(self.workdir)


def link_chunks(job: LinkingJob, chunks: Sequence[range], *, workers: int = 1) -> Iterator[LinkArrays]:
    """Links of every chunk, in the order of `chunks`, with `workers` processes (1: in this process).

    HeliosError if a worker process is killed, as a system does that runs out of memory.
    """
    if workers <= 1 or len(chunks) <= 1:
        store, linker = job.open()
        for tables in chunks:
            yield link_corpus(store, linker=linker, tables=tables, threshold=job.threshold)
        return
    with _pool(job, min(workers, len(chunks))) as pool:
        try:
            yield from pool.map(_link_chunk, chunks)
        except BrokenProcessPool:
            raise HeliosError(
                f"one of {workers} worker processes was killed while tables were linked; if memory ran out, run the "
                f"same command with fewer (--workers {max(1, workers // 2)}): finished work is kept"
            ) from None


@contextmanager
def _pool(job: LinkingJob, workers: int) -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_open_job, initargs=(job,))
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_opened: dict[str, tuple[CorpusStore, TableLinker, float | None]] = {}
"""The job of this worker process, opened once by the pool's initializer."""


def _open_job(job: LinkingJob) -> None:
    store, linker = job.open()
    _opened["job"] = (store, linker, job.threshold)


def _link_chunk(tables: range) -> LinkArrays:
    store, linker, threshold = _opened["job"]
    return link_corpus(store, linker=linker, tables=tables, threshold=threshold)
