"""Corpora: documents in BEIR layout and a HELIOS index, searched in plain text."""

import gzip
import json
from pathlib import Path
from threading import Event
from time import monotonic

import pytest

from helios.errors import QueryRejected, QueryTimeout, SourceUnavailable
from helios.executors.base import Language, Limits, NativeQuery
from helios.sources.cache import SourceCache
from helios.sources.corpus import DocumentCorpus, IndexCorpus, open_source
from helios.sources.descriptor import CorpusSchema
from helios.sources.documents import Fields, in_words, read_documents
from helios.sources.spec import read_spec

DOCUMENTS = [
    {"_id": "7", "title": "Myelin sheaths", "text": "Myelin sheaths speed up action potentials along axons."},
    {"_id": "8", "title": "Axons in the cortex", "text": "Axons of cortical neurons form synapses."},
    {"_id": "9", "title": "Cortical neurons", "text": "Cortical neurons fire action potentials."},
    {"_id": "10", "title": "Bread", "text": "Sourdough bread needs flour, water and salt, and a long rest."},
]


def write(path: Path, records: list[dict]) -> None:
    path.write_bytes(gzip.compress("".join(f"{json.dumps(record)}\n" for record in records).encode()))


def open_corpus(folder: Path, path: str, *, kept: bool = True, **values):
    spec = read_spec("papers", {"kind": "corpus", "path": path, **values}, where="test")
    return open_source("papers", spec, folder, SourceCache(folder / "cache" if kept else None, "papers", "now"))


def asked(text: str, **parameters) -> NativeQuery:
    return NativeQuery(Language.TEXT, text, parameters)


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    (tmp_path / "beir").mkdir()
    write(tmp_path / "beir" / "corpus.jsonl.gz", DOCUMENTS)
    return tmp_path


def test_documents_are_found(beir: Path):
    corpus = open_corpus(beir, "beir")
    assert isinstance(corpus, DocumentCorpus)
    result = corpus.execute(asked("what makes action potentials fast?", k=2))
    assert result.columns == ("document_id", "title", "text", "score")
    assert len(result) == 2 and {row[0] for row in result.rows} == {"7", "9"}
    assert result.rows[0][3] >= result.rows[1][3]
    assert not corpus.execute(asked("zebra")).rows
    assert corpus.find_values(["bread"])[0].place == ("title",)
    assert (beir / "cache").is_dir()
    corpus.close()


def test_stored_vectors_rank_like_those_made_on_the_spot(beir: Path):
    corpus = open_corpus(beir, "beir")
    question = asked("how do neurons fire action potentials?")
    before = [row[0] for row in corpus.execute(question).rows]
    assert corpus.store_vectors() > 20
    again = open_corpus(beir, "beir")
    assert again.index.has_vectors
    assert [row[0] for row in again.execute(question).rows] == before


def test_bm25_alone_needs_no_model(beir: Path):
    corpus = open_corpus(beir, "beir", rerank=0, kept=False)
    assert [row[0] for row in corpus.execute(asked("sourdough")).rows] == ["10"]
    corpus.close()


def test_the_descriptor_tells_what_it_is_about(beir: Path):
    schema = open_corpus(beir, "beir").descriptor().schema
    assert isinstance(schema, CorpusSchema)
    assert schema.document_count == 4
    assert "titled texts of about" in schema.style
    assert "Bread" in schema.titles
    topics = " ".join(schema.topics)
    assert "axons" in topics or "cortical" in topics


def test_the_guard_of_text(beir: Path):
    corpus = open_corpus(beir, "beir", rerank=0)
    for query in (
        asked(""), asked("  "), asked("x" * 20_001), asked("a", k=0), asked("a", k="3"), asked("a", n=3),
        NativeQuery(Language.SQL, "SELECT 1"),
    ):  # fmt: skip
        with pytest.raises(QueryRejected):
            corpus.execute(query)


def test_caps_are_said(beir: Path):
    corpus = open_corpus(beir, "beir", rerank=0)
    result = corpus.execute(asked("axons neurons", k=10), Limits(max_rows=1))
    assert (len(result), result.truncated) == (1, "rows")
    assert corpus.execute(asked("axons neurons", k=1)).truncated is None


def test_without_time_bm25_decides(beir: Path, caplog: pytest.LogCaptureFixture):
    result = open_corpus(beir, "beir").execute(asked("sourdough bread"), Limits(timeout=1e-6))
    assert [row[0] for row in result.rows] == ["10"]
    assert "store their vectors" in caplog.text


def test_fields_and_nested_texts(tmp_path: Path):
    table = {"columns": ["Team", "City"], "rows": [["Brann", "Bergen"], ["Viking", ""]]}
    write(tmp_path / "pool.jsonl.gz", [{"key": 1, "head": "Teams", "content": table}])
    (document,) = read_documents(tmp_path / "pool.jsonl.gz", Fields("key", "head"))
    assert document.text == "Team: Brann ; City: Bergen\nTeam: Viking"
    assert in_words({"a": 1, "b": ["x", None]}) == "a: 1\nb: x"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("{", r"jsonl:1: not JSON"),
        ("[1]", "expected an object"),
        ('{"id": 1, "body": "a"}\n{"id": 1, "body": "b"}', r"jsonl:2: the id '1' stands a second time"),
        ('{"id": 1, "words": "a"}', "name the right one of id, words with text_field"),
        ('{"id": 1, "text": "a"}\n{"text": "b"}', "jsonl:2: no field 'id'"),
    ],
)
def test_documents_that_cannot_be_read(tmp_path: Path, lines: str, said: str):
    (tmp_path / "a.jsonl").write_text(lines)
    with pytest.raises(SourceUnavailable, match=said):
        list(read_documents(tmp_path / "a.jsonl", Fields()))


def test_a_folder_without_documents(tmp_path: Path):
    with pytest.raises(SourceUnavailable, match="expected an index folder, or documents"):
        open_corpus(tmp_path, ".")


def test_a_helios_index(sample_index: Path, tmp_path: Path):
    corpus = open_corpus(tmp_path, str(sample_index))
    assert isinstance(corpus, IndexCorpus)
    try:
        schema = corpus.descriptor().schema
        assert isinstance(schema, CorpusSchema) and "tables and" in schema.style and schema.topics
        title = schema.titles[0]
        result = corpus.execute(asked(f"What is {title}?", k=3))
        assert result.columns[:3] == ("table_id", "row", "passage_id") and len(result) == 3
        assert corpus.find_values([title])[0].score == 1.0
        corpus.check()
    finally:
        corpus.close()


def test_a_search_of_an_index_that_is_late_is_given_up(
    sample_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    corpus = open_corpus(tmp_path, str(sample_index))
    corpus.execute(asked("Which river flows through Vienna?", k=1), Limits(timeout=300))
    done = Event()
    monkeypatch.setattr(corpus.engine, "search", lambda *_, **__: done.wait(60))
    began = monotonic()
    with pytest.raises(QueryTimeout, match=r"after 0\.2 s"):
        corpus.execute(asked("Which river flows through Vienna?"), Limits(timeout=0.2))
    corpus.close()  # waits for no search
    assert monotonic() - began < 20
    done.set()
    corpus.engine.close()
