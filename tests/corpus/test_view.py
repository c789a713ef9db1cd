"""Some records of several stores under one numbering: as if they were all that one store holds."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.corpus import CorpusStore, CorpusWriter
from helios.corpus.view import CorpusView, Shown, corpus_of
from helios.types import Hyperlink, Passage, SegmentId, Table


@st.composite
def parts_of_a_corpus(draw):
    """Parts as ([(table, visible rows)], [(passage, visible)]); ids are unique over all of them."""
    parts, tables, passages = [], 0, 0
    for _ in range(draw(st.integers(1, 3))):
        part = [], []
        for _ in range(draw(st.integers(0, 3))):
            rows = tuple((f"cell {tables} {row}",) for row in range(draw(st.integers(0, 3))))
            links = tuple(Hyperlink(row, 0, f"p{row}") for row in range(len(rows)))
            table = Table(f"t{tables}", f"T{tables}", ("a",), rows, hyperlinks=links)
            shown = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
            part[0].append((table, [row for row, visible in enumerate(shown) if visible]))
            tables += 1
        for _ in range(draw(st.integers(0, 3))):
            part[1].append(
                (Passage(f"p{passages}", f"P{passages}", "text", source=f"{passages}.md"), draw(st.booleans()))
            )
            passages += 1
        parts.append(part)
    return parts


def store_of(folder: Path, records) -> CorpusStore:
    with CorpusWriter(folder) as writer:
        for record in records:
            writer.add(record)
    return CorpusStore.open(folder)


def view_of(folder: Path, parts) -> CorpusView:
    shown = []
    for number, (tables, passages) in enumerate(parts):
        store = store_of(folder / f"{number}", [record for record, _ in (*tables, *passages)])
        first = store.segment_offsets.tolist()
        segments = [first[place] + row for place, (_, rows) in enumerate(tables) for row in rows]
        numbers = [place for place, (_, visible) in enumerate(passages) if visible]
        shown.append(Shown(store, np.array(segments, np.int64), np.array(numbers, np.int64)))
    return CorpusView(shown)


def expected_tables(parts) -> list[Table]:
    """Tables with their visible rows; one of which no row is visible is not there, unless it never had any."""
    found = []
    for table, rows in (one for tables, _ in parts for one in tables):
        if rows or not table.rows:
            links = tuple(
                Hyperlink(rows.index(link.row), 0, link.passage_id) for link in table.hyperlinks if link.row in rows
            )
            kept = tuple(table.rows[row] for row in rows)
            found.append(Table(table.table_id, table.title, table.header, kept, hyperlinks=links))
    return found


@given(parts=parts_of_a_corpus())
@settings(max_examples=40, deadline=None)
def test_a_view_reads_as_a_store_of_what_is_visible(tmp_path_factory, parts):
    folder = tmp_path_factory.mktemp("view")
    view = view_of(folder / "parts", parts)
    tables = expected_tables(parts)
    passages = [passage for _, own in parts for passage, visible in own if visible]
    same = store_of(folder / "same", [*tables, *passages])
    assert list(view.tables) == tables == view.tables[:]
    assert list(view.passages) == passages
    assert view.segment_offsets.tolist() == same.segment_offsets.tolist()
    assert view.segment_count == same.segment_count
    for name in ("id", "title", "source", "kind"):
        assert view.tables.column(name) == same.tables.column(name)
        assert name == "kind" or view.passages.column(name) == same.passages.column(name)
    for records, others in ((view.tables, same.tables), (view.passages, same.passages)):
        assert (len(records), list(records.ids()), list(records.titles())) == (
            len(others), list(others.ids()), list(others.titles()),
        )  # fmt: skip
        for number in range(len(others)):
            assert records[number] == others[number]
            assert records.number(others.id(number)) == number
            assert records.get(others.id(number)) == others[number]
    rows = [(table, row) for own, _ in parts for table, rows in own for row in rows]
    for number, (table, row) in enumerate(rows):
        segment = view.segment(number)
        assert (segment.segment_id, segment.cells) == (SegmentId(table.table_id, row), table.rows[row])
        assert view.segment_id(number) == segment.segment_id
        assert view.segment_number(segment.segment_id) == number
        assert view.table_of(number) == same.table_of(number)
    assert list(view.segments()) == [view.segment(number) for number in range(len(rows))]


@given(parts=parts_of_a_corpus())
@settings(max_examples=30, deadline=None)
def test_what_is_hidden_cannot_be_asked_for(tmp_path_factory, parts):
    view = view_of(tmp_path_factory.mktemp("view"), parts)
    for passage, visible in (one for _, own in parts for one in own):
        assert (view.passages.find(passage.passage_id) is not None) == visible
    for table, rows in (one for own, _ in parts for one in own):
        assert (view.tables.find(table.table_id) is not None) == bool(rows or not table.rows)
        for row in range(len(table.rows)):
            if row not in rows:
                with pytest.raises(KeyError):
                    view.segment_number(SegmentId(table.table_id, row))


def test_numbers_out_of_range(tmp_path):
    view = view_of(tmp_path, [([(Table("t", "", ("a",), (("x",),)), [0])], [(Passage("p", "", ""), True)])])
    for number in (1, -1):
        with pytest.raises(IndexError, match=f"segment number {number} of 1"):
            view.segment(number)
    with pytest.raises(IndexError, match="record number 1 of 1"):
        view.passages[1]
    assert view.passages[-1].passage_id == "p"
    with pytest.raises(KeyError, match="no record with id 'q'"):
        view.passages.number("q")


def test_a_store_that_is_whole_is_itself(tmp_path):
    store = store_of(tmp_path, [Passage("p", "", ""), Passage("q", "", "")])
    every, none = np.arange(2), np.zeros(0, np.int64)
    assert corpus_of([Shown(store, none, every)]) is store
    assert isinstance(corpus_of([Shown(store, none, every[:1])]), CorpusView)


def test_of_records_with_the_same_id_the_newest_is_found(tmp_path):
    """A changed record is added in a later part, and the old one deleted; until then the new one counts."""
    one, other = Passage("p", "old", ""), Passage("p", "new", "")
    both = view_of(tmp_path / "both", [([], [(one, True)]), ([], [(other, True)])])
    assert both.passages.get("p").title == "new"
    deleted = view_of(tmp_path / "deleted", [([], [(one, True)]), ([], [(other, False)])])
    assert deleted.passages.get("p").title == "old"
