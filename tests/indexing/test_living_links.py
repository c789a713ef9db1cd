"""Links of what comes later: rows that are there already are linked to new passages, cell by cell."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from helios.corpus import CorpusStore
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot
from helios.types import Passage
from indexing.living import Index
from indexing.living.comparing import links_of
from indexing.living.links import SMALL
from indexing.living.mentions import Key, keys_of, named_cells


@pytest.fixture
def index(sample_index: Path, tmp_path: Path) -> Index:
    return Index.open(shutil.copytree(sample_index, tmp_path / "index"), overrides=["encoder.runtime=torch"])


def most_linked(index: Index, count: int) -> list[Passage]:
    """The passages that most rows name."""
    with Snapshot.open(index.directory) as snapshot:
        reader = IndexReader.of(snapshot)
        rows = np.diff(reader.graph.passage_offsets)
        return [reader.corpus.passages[number] for number in np.argsort(-rows, kind="stable")[:count].tolist()]


@pytest.mark.slow
def test_passages_that_come_back_are_linked_as_a_build_links_them(index: Index):
    built = links_of(index.directory)
    gone = most_linked(index, 8)
    names = [passage.passage_id for passage in gone]
    index.delete(names)
    assert not {name for _, name, _ in links_of(index.directory)} & set(names)
    index.add(passages=gone)
    found = links_of(index.directory)
    assert len(built & found) >= 0.95 * len(built | found)
    keys = {passage.passage_id: keys_of([passage.title], {}) for passage in gone}
    with Snapshot.open(index.directory) as snapshot:
        corpus = IndexReader.of(snapshot).corpus
        cells = {
            (str(corpus.segment_id(number)), column): cell
            for number in range(corpus.segment_count)
            for column, cell in enumerate(corpus.segment(number).cells)
        }
    spelled = {
        (row, name, column)
        for row, name, column in built
        if name in keys and any(key.is_in(cells[row, column]) for key in keys[name])
    }
    assert len(spelled) > 4
    assert spelled <= found


@pytest.mark.slow
def test_only_rows_with_a_cell_that_names_a_new_passage_are_decided(index: Index):
    with Snapshot.open(index.directory) as snapshot:
        corpus = IndexReader.of(snapshot).corpus
        table = next(iter(corpus.tables))
        cells = {cell for own in corpus.tables for row in own.rows for cell in row}
    name = "Qwrtzl Harbour"
    assert name not in cells
    before = links_of(index.directory)
    rows = [[name, table.title], *([f"Nobody {number}", "nothing"] for number in range(SMALL // 2))]
    index.add([{"id": "harbours", "title": "Harbours", "header": ["Name", "Remark"], "rows": rows}])
    middle = links_of(index.directory)
    assert before <= middle
    index.add(passages=[{"id": "qwrtzl", "title": name, "text": f"{name} is a harbour."}])
    with Snapshot.open(index.directory) as snapshot:
        decided = IndexReader.of(snapshot).link_layers[-1].decided
        corpus = IndexReader.of(snapshot).corpus
        assert [str(corpus.segment_id(number)) for number in decided.tolist()] == ["harbours#0"]
    assert links_of(index.directory) - middle == {("harbours#0", "qwrtzl", 0)}
    assert middle <= links_of(index.directory)


def test_cells_that_have_a_key_are_found(index: Index):
    with Snapshot.open(index.directory) as snapshot:
        store = IndexReader.of(snapshot).parts[0].corpus
        assert isinstance(store, CorpusStore)
        row, column, cell = next(
            (number, column, cell)
            for number, segment in enumerate(store.segments())
            for column, cell in enumerate(segment.cells)
            if cell.istitle() and cell.isalpha()
        )
        keys = [*keys_of([cell], {}), Key("no cell has this")]
        (named,) = named_cells(store, {row: keys})
        first = int(store.segment_offsets[named.block[0]]) + named.block[1]
        places = {(first + own, at) for own, at in zip(named.rows.tolist(), named.columns.tolist(), strict=True)}
        assert (row, column) in places
        assert {own for own, _ in places} == {row}
        assert list(named_cells(store, {row: keys[1:]})) == []
