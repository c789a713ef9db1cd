"""An index from Python values: the same records, the same search, and builds that go on."""

import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest

from helios.config import Config, load_config
from helios.corpus import CorpusStore, read_corpus
from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.errors import CorpusError, IndexFormatError
from helios.index.fsck import check_index
from helios.index.manifest import read_manifest
from helios.index.snapshot import Snapshot
from helios.types import Passage, Table
from indexing.values import build_from

TABLE = {
    "id": "rivers", "title": "Rivers", "header": ["River", "Length", "Measured"],
    "rows": [["Aare", 288, datetime.date(2020, 1, 2)], ["Inn", 518.5, None]], "links": [[0, 0, "aare"]],
    "metadata": {"year": 2020},
}  # fmt: skip
PASSAGES = [
    Passage("aare", "Aare", "The Aare flows through Bern.", source="notes.md", metadata=(("draft", False),)),
    Passage("moon", "Moon", "A satellite that no table mentions."),
]


@pytest.fixture(scope="module")
def config() -> Config:
    return load_config(overrides=["encoder.runtime=torch", "linking.source=hyperlinks"])


@pytest.fixture(scope="module")
def index(config: Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = tmp_path_factory.mktemp("values") / "new" / "index"
    build_from([TABLE], iter(PASSAGES), index, config=config)
    return index


def test_records_are_stored_as_they_are(index: Path):
    with Snapshot.open(index) as snapshot:
        store = CorpusStore.open(snapshot.parts[0].path("corpus"))
        assert list(store.passages) == PASSAGES
        (table,) = store.tables
        assert table.rows == (("Aare", "288", "2020-01-02"), ("Inn", "518.5", ""))
        assert (table.metadata, table.source) == ((("year", 2020),), "")
        assert snapshot.manifest.counts.edges == 1
    assert check_index(index) == []
    assert [path.name for path in index.parent.iterdir()] == ["index"]


def test_it_is_searched_like_any_other(index: Path):
    with Engine.open(index, overrides=["expansion.enabled=false"]) as engine:
        evidence = engine.search("Which river flows through Bern?", k=3)
        best = evidence.edges[0]
        assert (str(best.segment.segment_id), best.passage) == ("rivers#0", PASSAGES[0])
        (found,) = engine.search("Which satellite?", where="draft exists or source = 'none'").edges
        assert (found.segment, found.passage) == (None, PASSAGES[0])


def test_the_same_values_are_not_built_again(index: Path, config: Config):
    assert build_from([TABLE], PASSAGES, str(index), config=config).ran == ()
    before = read_manifest(index)
    report = build_from([TABLE], PASSAGES[:1], index, config=config)
    assert report.ran[0] == "ingest"
    assert (report.manifest.counts.passages, report.manifest.generation) == (1, before.generation + 1)
    assert build_from([TABLE], PASSAGES, index, config=config).manifest.counts == before.counts


@pytest.mark.slow
def test_a_corpus_and_its_records_give_the_same_parts(sample_index: Path, tmp_path: Path):
    """The sample's records as values: the same texts, vectors, links and postings as from its files."""
    records = list(read_corpus(sample_path()))
    tables = [record for record in records if isinstance(record, Table)]
    passages = (record for record in records if isinstance(record, Passage))
    report = build_from(tables, passages, tmp_path / "index", config=load_config(overrides=["encoder.runtime=torch"]))
    expected = read_manifest(sample_index)
    assert {entry.path: entry.sha256 for entry in report.manifest.parts[0].files} == {
        entry.path: entry.sha256 for entry in expected.parts[0].files
    }
    assert [piece.files for piece in report.manifest.links] == [piece.files for piece in expected.links]


@pytest.mark.parametrize(
    ("tables", "passages", "message"),
    [
        ([TABLE, {"id": "t"}], [], r"tables\[1\]: neither a table"),
        ([PASSAGES[0]], [], r"tables\[0\]: is a Passage, expected a Table"),
        ([], [*PASSAGES, TABLE], r"passages\[2\]: is a Table, expected a Passage"),
        ([], [{"text": "a"}], r"passages\[0\]: no id"),
        ([], ["text"], r"passages\[0\]: expected a JSON object, found str"),
        ([], [*PASSAGES, PASSAGES[1]], "duplicate id 'moon'"),
        ([Table("t", "", ("a",), (("1", "2"),))], [], "row 0: 2 cells, expected 1"),
        ([], [Passage("p", "\ud800", "")], "not Unicode"),
        ([], [], "there is no table and no passage to index"),
    ],
)
def test_values_that_cannot_be_indexed(tmp_path: Path, tables, passages, message: str):
    with pytest.raises(CorpusError, match=message):
        build_from(tables, passages, tmp_path / "index")
    assert not (tmp_path / "index" / "manifest.json").exists()
    assert not list(tmp_path.glob(".index-values-*"))


def test_an_iterator_that_fails_leaves_nothing(tmp_path: Path):
    def passages() -> Iterator[Passage]:
        yield PASSAGES[0]
        raise ConnectionError("the database is gone")

    with pytest.raises(ConnectionError, match="the database is gone"):
        build_from([TABLE], passages(), tmp_path / "index")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_index_is_refused(tmp_path: Path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(IndexFormatError, match=r"cat\.jpg.*not a HELIOS index"):
        build_from([TABLE], PASSAGES, tmp_path / "photos")
    assert [path.name for path in tmp_path.rglob("*.jpg")] == ["cat.jpg"]
