"""The store: round trips, lookup, numbering, determinism, atomicity, and what it refuses."""

import gc
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helios.corpus import CorpusStore, CorpusWriter, layout
from helios.errors import CorpusError, IndexFormatError
from helios.types import Hyperlink, Passage, Segment, SegmentId, Table, TableKind

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = TEXT | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
METADATA = st.dictionaries(TEXT, VALUES, max_size=3).map(lambda fields: tuple(sorted(fields.items())))


@st.composite
def tables(draw, table_id):
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.tuples(*[TEXT] * width), max_size=4))
    cells = st.tuples(st.integers(0, max(0, len(rows) - 1)), st.integers(0, width - 1), TEXT)
    links = draw(st.lists(cells.map(lambda cell: Hyperlink(*cell)), max_size=3)) if rows else []
    return Table(
        table_id,
        draw(TEXT),
        draw(st.tuples(*[TEXT] * width)),
        tuple(rows),
        draw(TEXT),
        draw(TEXT),
        draw(TEXT),
        draw(st.sampled_from(TableKind)),
        tuple(links),
        draw(TEXT),
        draw(METADATA),
    )


@st.composite
def corpora(draw):
    ids = st.lists(TEXT, unique=True, max_size=6)
    texts = st.tuples(TEXT, TEXT, TEXT, TEXT, METADATA)
    passages = [Passage(passage_id, *draw(texts)) for passage_id in draw(ids)]
    return draw(st.permutations([draw(tables(table_id)) for table_id in draw(ids)] + passages))


def write(directory, records, **options):
    with CorpusWriter(directory, **options) as writer:
        for record in records:
            writer.add(record)
    return CorpusStore.open(directory)


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(records=corpora(), batch=st.integers(1, 4))
def test_what_was_added_comes_back(records, batch, tmp_path_factory):
    directory = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BATCH_RECORDS", batch)
        store = write(directory, records)
    expected_tables = [record for record in records if isinstance(record, Table)]
    expected_passages = [record for record in records if isinstance(record, Passage)]
    assert list(store.tables) == expected_tables
    assert list(store.passages) == expected_passages
    assert [store.tables[number] for number in range(len(store.tables))] == expected_tables
    assert store.passages[:] == expected_passages
    assert list(store.passages.titles()) == [passage.title for passage in expected_passages]
    for number, passage in enumerate(expected_passages):
        assert store.passages.number(passage.passage_id) == number
        assert store.passages.get(passage.passage_id) == passage
    assert_segments(store, expected_tables)
    shutil.rmtree(directory)


def assert_segments(store, expected_tables):
    expected = [
        Segment(SegmentId(table.table_id, row), table.title, table.section, table.header, cells, table.kind)
        for table in expected_tables
        for row, cells in enumerate(table.rows)
    ]
    assert store.segment_count == len(expected)
    assert list(store.segments()) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("helios.corpus.store.BLOCK_ROWS", 2)
        for start in range(len(expected) + 1):
            assert list(store.segments(start, start + 3)) == expected[start : start + 3]
    assert [store.segment(number) for number in range(len(expected))] == expected
    for number, segment in enumerate(expected):
        assert store.segment_id(number) == segment.segment_id
        assert store.segment_number(segment.segment_id) == number


def passages(count):
    return [Passage(f"p{number}", f"Title {number}", "text " * (number % 7)) for number in range(count)]


def test_same_input_same_bytes(tmp_path):
    records = [*passages(50), Table("t", "T", ("a", "b"), (("1", "2"),), hyperlinks=(Hyperlink(0, 1, "p3"),))]
    write(tmp_path / "one", records)
    write(tmp_path / "two", records)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_batches_close_by_size_too(tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "BATCH_BYTES", 1000)
    records = [Passage(f"p{number}", "", "x" * 700) for number in range(20)]
    store = write(tmp_path, records)
    assert len(np.load(tmp_path / "passages.batches.npy")) == 21
    assert [store.passages.get(f"p{number}") for number in reversed(range(20))] == records[::-1]


def test_equal_hashes_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "id_hash", lambda record_id: len(record_id))
    records = passages(30)
    store = write(tmp_path, records)
    assert [store.passages.number(passage.passage_id) for passage in records] == list(range(30))
    assert store.passages.find("q1") is None
    with pytest.raises(CorpusError, match="duplicate id 'p7'"):
        write(tmp_path / "other", [*records, Passage("p7", "", "")])


def test_unknown_ids_and_numbers(tmp_path):
    store = write(tmp_path, [*passages(3), Table("t", "T", ("a",), (("1",), ("2",)))])
    assert store.tables.find("none") is None
    with pytest.raises(KeyError, match="no table with id 'none'"):
        store.tables.number("none")
    with pytest.raises(KeyError, match="has 2 rows, no row 2"):
        store.segment_number(SegmentId("t", 2))
    with pytest.raises(IndexError, match="passages number 3 of 3"):
        store.passages[3]
    with pytest.raises(IndexError, match="segment number 2 of 2"):
        store.segment(2)
    assert store.passages[-1].passage_id == "p2"
    assert store.table_of(1) == 0


def test_empty_corpus(tmp_path):
    store = write(tmp_path, [])
    assert (len(store.tables), len(store.passages), store.segment_count) == (0, 0, 0)
    assert store.passages.find("p") is None
    assert store.segment_offsets.tolist() == [0]


def test_tables_without_rows_hold_their_number(tmp_path):
    empty, full = Table("e", "E", ("a",), ()), Table("f", "F", ("a",), (("1",),))
    store = write(tmp_path, [empty, full, Table("g", "G", ("a",), ())])
    assert store.segment_offsets.tolist() == [0, 0, 1, 1]
    assert store.segment_id(0) == SegmentId("f", 0)
    assert list(store.tables)[0] == empty


def test_duplicate_ids_are_refused_and_nothing_appears(tmp_path):
    with pytest.raises(CorpusError, match="duplicate id 'p1' in passages: records 1 and 3"):
        write(tmp_path, [*passages(3), Passage("p1", "again", "")])
    with pytest.raises(IndexFormatError, match=r"corpus\.json: not found"):
        CorpusStore.open(tmp_path)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (Table("t", "", (), ()), "no columns"),
        (Table("t", "", ("a", "b"), (("1",),)), "row 0: 1 cells, expected 2"),
        (Table("t", "", ("a",), (("1",),), hyperlinks=(Hyperlink(1, 0, "p"),)), r"missing cell \(1, 0\)"),
        (Passage("p", "\ud800", ""), "not Unicode"),
        (Passage("\ud800", "", ""), "not Unicode"),
    ],
)
def test_values_that_cannot_be_stored(tmp_path, record, reason):
    with pytest.raises(CorpusError, match=reason), CorpusWriter(tmp_path) as writer:
        writer.add(record)
    assert list(tmp_path.iterdir()) == []


def test_an_exception_leaves_the_complete_store(tmp_path):
    write(tmp_path, passages(3))
    before = content(tmp_path)
    with pytest.raises(ZeroDivisionError), CorpusWriter(tmp_path, replace=True) as writer:
        writer.add(Passage("new", "", ""))
        raise ZeroDivisionError
    assert content(tmp_path) == before
    with pytest.raises(CorpusError, match="already holds a corpus"):
        CorpusWriter(tmp_path)
    assert len(write(tmp_path, passages(4), replace=True).passages) == 4


def test_remains_of_a_killed_writer_do_no_harm(tmp_path):
    writer = CorpusWriter(tmp_path)
    writer.add(Passage("p", "", ""))
    del writer
    gc.collect()
    with pytest.raises(IndexFormatError, match="no complete corpus"):
        CorpusStore.open(tmp_path)
    assert len(write(tmp_path, passages(2)).passages) == 2
    assert not list(tmp_path.glob("*.partial"))


def test_damaged_stores_are_refused(tmp_path):
    for name in [*layout.record_files("tables"), *layout.record_files("passages"), layout.SEGMENTS]:
        directory = tmp_path / name
        write(directory, passages(5))
        data = (directory / name).read_bytes()
        (directory / name).write_bytes(data[:-1])
        with pytest.raises(IndexFormatError, match=f"{name}: damaged"):
            CorpusStore.open(directory)
        (directory / name).write_bytes(bytes(len(data)))
        with pytest.raises(IndexFormatError, match=f"{name}: (not a readable|damaged: not a readable)"):
            CorpusStore.open(directory)
        (directory / name).unlink()
        with pytest.raises(IndexFormatError, match=f"{name}: missing"):
            CorpusStore.open(directory)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": "other"}, "not a HELIOS corpus"),
        ({"version": 99}, "version 99, this code reads up to 2: upgrade"),
        ({"passages": 6}, "disagree"),
        ({"segments": 6}, "disagrees"),
        ({"tables": "many"}, "counts are not numbers"),
        ({"files": None}, "damaged, lacks"),
    ],
)
def test_foreign_or_newer_manifests_are_refused(tmp_path, change, reason):
    write(tmp_path, passages(5))
    manifest = json.loads((tmp_path / layout.MANIFEST).read_text())
    (tmp_path / layout.MANIFEST).write_text(json.dumps(manifest | change))
    with pytest.raises(IndexFormatError, match=reason):
        CorpusStore.open(tmp_path)
    (tmp_path / layout.MANIFEST).write_text("{")
    with pytest.raises(IndexFormatError, match="not JSON"):
        CorpusStore.open(tmp_path)


def damage_passages(directory: Path, column: str, buffer: int, at: int, damage: bytes) -> None:
    """Write bytes over a buffer of a column of the first batch: 1 holds the offsets, 2 the text."""
    store = CorpusStore.open(directory)
    names = store.passages._reader.schema.names
    held = store.passages._reader.get_batch(0).column(names.index(column)).buffers()[buffer]
    path = directory / layout.record_files("passages")[0]
    stored = bytearray(path.read_bytes())
    start = stored.index(bytes(held)) + at
    stored[start : start + len(damage)] = damage
    path.write_bytes(stored)


@pytest.mark.parametrize("column", ["id", "text"])
@pytest.mark.parametrize("offset", [-5, 2**31 - 1])
def test_text_is_not_read_outside_of_its_file(tmp_path, column, offset):
    write(tmp_path, passages(5))
    damage_passages(tmp_path, column, 1, 8, offset.to_bytes(4, "little", signed=True))
    with pytest.raises(IndexFormatError, match=r"passages\.arrow: damaged"):
        _ = CorpusStore.open(tmp_path).passages[2]


def test_text_that_is_no_text_is_refused(tmp_path):
    write(tmp_path, passages(5))
    damage_passages(tmp_path, "id", 2, 0, b"\xff")
    with pytest.raises(IndexFormatError, match=r"passages\.arrow: damaged: .utf-8. codec"):
        _ = CorpusStore.open(tmp_path).passages[0]


def test_rows_that_are_missing_are_noticed(tmp_path):
    """The offsets say that the first table has more rows than it holds."""
    tables = [Table(name, name, ("a",), tuple((str(row),) for row in range(3))) for name in ("x", "y")]
    store = write(tmp_path / "store", tables)
    offsets = np.load(store.directory / layout.SEGMENTS)
    np.save(store.directory / layout.SEGMENTS, np.array([0, 5, 6], offsets.dtype))
    with pytest.raises(IndexFormatError, match="damaged"):
        list(CorpusStore.open(store.directory).segments())
