import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from helios.corpus import CorpusStore, CorpusWriter, read_corpus
from helios.corpus.sample import sample_path
from helios.errors import HeliosError
from helios.models.linker.linker import TableLinks
from helios.types import Passage, Table
from indexing.linking import LinkArrays, LinkingJob, likely_links, link_chunks, link_corpus


def stored(folder: Path, *records: Table | Passage) -> CorpusStore:
    with CorpusWriter(folder) as writer:
        for record in records:
            writer.add(record)
    return CorpusStore.open(folder)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> LinkingJob:
    folder = tmp_path_factory.mktemp("sample")
    stored(folder / "store", *read_corpus(sample_path()))
    job = LinkingJob(folder / "store", folder / "work")
    job.prepare()
    return job


def same(left: LinkArrays, right: LinkArrays) -> bool:
    return all(np.array_equal(getattr(left, name), getattr(right, name)) for name in LinkArrays.__slots__)


def test_links_of_the_sample_are_mostly_found(job: LinkingJob) -> None:
    store, linker = job.open()
    links = link_corpus(store, linker=linker, blocks=range(len(store.tables)))
    gold = {
        (int(store.segment_offsets[number]) + link.row, store.passages.number(link.passage_id))
        for number, table in enumerate(store.tables)
        for link in table.hyperlinks
    }
    found = set(zip(links.segments.tolist(), links.passages.tolist(), strict=True))
    assert len(gold & found) / len(gold) > 0.8
    assert len(found) / len(gold) < 3


def test_every_link_says_where_it_is_from(job: LinkingJob) -> None:
    store, linker = job.open()
    links = link_corpus(store, linker=linker, blocks=range(len(store.tables)))
    assert links.scores.dtype == np.float32
    assert links.segments.dtype == links.starts.dtype == np.int64
    for number in range(len(links)):
        cell = store.segment(int(links.segments[number])).cells[int(links.columns[number])]
        assert 0 <= links.starts[number] < links.ends[number] <= len(cell)
    assert np.all(links.scores >= linker.linker.settings.threshold)
    assert np.all(np.diff(links.segments) >= 0)


@pytest.mark.slow
def test_chunks_and_workers_do_not_change_the_result(job: LinkingJob) -> None:
    store, linker = job.open()
    count = len(store.tables)
    whole = link_corpus(store, linker=linker, blocks=range(count))
    chunks = [range(start, min(start + 3, count)) for start in range(0, count, 3)]
    for workers in (1, 2):
        assert same(LinkArrays.concatenate(list(link_chunks(job, chunks, workers=workers))), whole)


def test_a_worker_that_is_killed_is_told(job: LinkingJob) -> None:
    """As by a system that runs out of memory: the error says what to do, and no process is left behind."""
    this, killed = psutil.Process(), threading.Event()

    def workers() -> list[psutil.Process]:
        found = []
        for child in this.children():
            with suppress(psutil.NoSuchProcess):  # it ended since, or nobody has waited for it yet
                if "spawn_main" in " ".join(child.cmdline()):
                    found.append(child)
        return found

    def kill() -> None:
        while not killed.is_set():
            if len(found := workers()) == 2:  # Python's own thread trips over one that is killed while another starts
                found[0].kill()
                killed.set()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(HeliosError, match=r"one of 2 worker processes was killed .* memory .*\(--workers 1\)"):
            list(link_chunks(job, [range(4), range(4, 8), range(8, 12)], workers=2))
    finally:
        killed.set()
        killer.join()
    assert workers() == []


def test_threshold_is_a_setting(job: LinkingJob) -> None:
    store, linker = job.open()
    strict = link_corpus(store, linker=linker, blocks=range(len(store.tables)), threshold=0.9)
    chunks = list(link_chunks(replace(job, threshold=0.9), [range(len(store.tables))]))
    assert same(strict, chunks[0])
    assert len(strict) < len(link_corpus(store, linker=linker, blocks=range(len(store.tables))))


def test_tables_without_passages_and_passages_without_tables(tmp_path: Path) -> None:
    table = Table("t", "Squad", ("Player",), (("Ada Almqvist",), ("",)))
    passage = Passage("p", "Ada Almqvist", "Ada Almqvist is a footballer .")
    for name, record in (("tables", table), ("passages", passage)):
        store = stored(tmp_path / name, record)
        job = LinkingJob(tmp_path / name, tmp_path / f"{name}-work")
        job.prepare()
        _, linker = job.open()
        assert len(link_corpus(store, linker=linker, blocks=range(len(store.tables)))) == 0


def test_no_chunks_no_links() -> None:
    assert len(LinkArrays.concatenate([])) == 0


def test_a_faint_link_that_fills_a_column_names_the_passage(tmp_path: Path) -> None:
    """A folder's codes would all get a link to some document otherwise."""
    sizes = Table("jobs", "Jobs", ("Size", "Shop"), (("S", "Marl Hill"),) * 8)
    store = stored(tmp_path, sizes, Passage("hire", "Conditions of hire", "A bike is hired by the day."))
    hill = stored(tmp_path / "hill", sizes, Passage("hill", "Marl Hill", "Marl Hill is a shop."))

    def kept(store: CorpusStore, column: int, score: float, rows: int = 8) -> bool:
        zeros = np.zeros(rows, np.int64)
        ends = zeros + len(sizes.rows[0][column])
        links = TableLinks(np.arange(rows), zeros + column, zeros, zeros, ends, np.full(rows, score, np.float32))
        return bool(likely_links(sizes, links, store.passages).all())

    assert not kept(store, 0, 0.3)  # one letter
    assert not kept(store, 1, 0.05)
    assert kept(store, 1, 0.3)  # not faint, and of some letters
    assert kept(store, 0, 0.7)
    assert kept(store, 0, 0.3, rows=3)
    assert kept(hill, 1, 0.05)  # a word of the title


def test_a_large_table_is_linked_in_blocks(job: LinkingJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The links of a large table are those of its blocks as tables of their own, at the table's own rows."""
    store, linker = job.open()
    rows = [row for table in store.tables for row in table.rows if len(row) == 3][:12]
    with CorpusWriter(tmp_path / "large") as writer:
        writer.add(Table("small", "Rivers of Europe", ("a", "b", "c"), tuple(rows[:2])))
        writer.add(Table("large", "Rivers of Europe", ("a", "b", "c"), tuple(rows)))
        for passage in store.passages:
            writer.add(passage)
    monkeypatch.setattr("helios.corpus.store.BLOCK_ROWS", 5)
    large = CorpusStore.open(tmp_path / "large")
    assert large.blocks().tolist() == [[0, 0, 2], [1, 0, 5], [1, 5, 10], [1, 10, 12]]
    links = link_corpus(large, linker=linker, blocks=range(4))
    own = linker.link(large.tables.block(1, 5, 10))
    within = (links.segments >= 2 + 5) & (links.segments < 2 + 10)
    assert (links.segments[within] - 7).tolist() == own.rows.tolist()
    assert len(own)
    assert large.tables.block(1, 10, 15).rows == tuple(rows[10:])
