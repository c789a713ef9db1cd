"""Link a stored corpus: tables in chunks → arrays of links with their provenance.

The result of a table depends on nothing but the table, the passages and the weights, so it is the same
for any chunk size and number of workers. Of a large table some thousand rows are linked at a time, as a table of
their own, so that memory does not grow with it.
"""

import multiprocessing
from collections import Counter
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
from helios.types import Passage, Table
from indexing.workers import kill_processes

Array = npt.NDArray[Any]
FAINT, LIKELY, SHORT, FEW = 0.2, 0.6, 3, 5
"""A link is faint below FAINT, and with fewer letters than SHORT below LIKELY; FEW rows may have the same one."""


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
    store: CorpusStore, *, linker: TableLinker, blocks: range, threshold: float | None = None
) -> LinkArrays:
    """Links of a chunk of the store's blocks (a range of their numbers). None is the weights' own threshold."""
    chosen = store.blocks()[blocks.start : blocks.stop].tolist()
    found = [link_block(store, linker, block, threshold=threshold, passages=store.passages) for block in chosen]
    return LinkArrays.concatenate(found)


def link_block(
    store: CorpusStore, linker: TableLinker, block: Sequence[int], *, threshold: float | None,
    passages: Sequence[Passage],
) -> LinkArrays:  # fmt: skip
    """Links of one block of a store's tables to passages by their numbers in the linker's index, `passages`."""
    number, start, stop = block
    table = store.tables.block(number, start, stop)
    links = linker.link(table, threshold=threshold)
    kept = likely_links(table, links, passages)
    segments = links.rows.astype(np.int64) + int(store.segment_offsets[number]) + start
    numbers = (segments, links.passages, links.columns, links.starts, links.ends)
    return LinkArrays(*(column.astype(np.int64)[kept] for column in numbers), links.scores[kept])


def likely_links(table: Table, links: TableLinks, passages: Sequence[Passage]) -> Array:
    """bool (L): all links but the faint ones that many rows have to a passage which its title does not name.

    The linker knows pages about one thing each. A folder's documents are about many, and a code or a word that fills a
    column would link all of its rows to one of them.
    """
    mentions = [
        table.rows[row][column][start:end].casefold()
        for row, column, start, end in zip(links.rows, links.columns, links.starts, links.ends, strict=True)
    ]
    counts = Counter(zip(mentions, links.passages.tolist(), strict=True))
    kept = np.ones(len(links), bool)
    for place, (mention, passage) in enumerate(zip(mentions, links.passages.tolist(), strict=True)):
        letters = sum(map(str.isalpha, mention))
        faint = links.scores[place] < (FAINT if letters >= SHORT else LIKELY)
        if faint and counts[mention, passage] > FEW:
            kept[place] = not set(terms_of(mention)).isdisjoint(terms_of(passages[passage].title))
    return kept


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

    def prepare(self) -> Linker:
        """Build the candidate index of the passages; call once, before workers start.

        Whoever holds the weights, which are returned, has `open` in this process find them.
        """
        linker = Linker.load(self.weights, spacy_model=self.spacy_model)
        linker.prepare(CorpusStore.open(self.store), self.workdir, routes=self.routes)
        return linker

    def open(self) -> tuple[CorpusStore, TableLinker]:
        """The store and the linker over the prepared folder."""
        linker = Linker.load(self.weights, spacy_model=self.spacy_model)
        return CorpusStore.open(self.store), linker.open(self.workdir)


def link_chunks(job: LinkingJob, chunks: Sequence[range], *, workers: int = 1) -> Iterator[LinkArrays]:
    """Links of every chunk, a range of the store's blocks, in order, with `workers` processes (1: in this process).

    HeliosError if a worker process is killed, as a system does that runs out of memory.
    """
    if workers <= 1 or len(chunks) <= 1:
        store, linker = job.open()
        for blocks in chunks:
            yield link_corpus(store, linker=linker, blocks=blocks, threshold=job.threshold)
        return
    with _pool(job, min(workers, len(chunks))) as pool:
        try:
            yield from pool.map(_link_chunk, chunks)
        except BrokenProcessPool:
            kill_processes(pool)
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


def _link_chunk(blocks: range) -> LinkArrays:
    store, linker, threshold = _opened["job"]
    return link_corpus(store, linker=linker, blocks=blocks, threshold=threshold)
