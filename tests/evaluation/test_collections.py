"""Collections of documents: public data as BEIR folders, and the measure beside BM25."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.errors import EvaluationError
from helios.evaluation.collections import write_collections
from helios.evaluation.documents import read_collection


def run_documents(*arguments: str | Path):
    return CliRunner().invoke(build_app(), ["eval", "documents", *map(str, arguments)], env={"COLUMNS": "200"})


@pytest.fixture
def collection(tmp_path: Path, sample_index: Path, engine) -> Path:
    """Questions about the sample's own passages; the index stands beside it by its name."""
    folder = tmp_path / "collections" / sample_index.name
    (folder / "qrels").mkdir(parents=True)
    passage = engine.corpus.passages[0]
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": f"{passage.title}: {passage.text[:80]}"}))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\nq\t{passage.passage_id}\t1\n")
    return folder


def test_both_systems_are_measured(collection: Path, sample_index: Path):
    found = run_documents(collection.parent, "--indexes", sample_index.parent, "--json")
    assert found.exit_code == 0, found.output
    (report,) = json.loads(found.stdout)
    assert report["name"] == collection.name
    assert 0 < report["helios"]["mean"] <= 1
    assert report["bm25"]["mean"] > 0
    assert report["ratio"] == pytest.approx(report["helios"]["mean"] / report["bm25"]["mean"])
    table = run_documents(collection.parent, "--indexes", sample_index.parent)
    assert "times BM25" in table.stdout


def test_judgements_of_another_corpus_are_an_error(collection: Path, sample_index: Path):
    (collection / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tnowhere\t1\n")
    found = run_documents(collection.parent, "--indexes", sample_index.parent)
    assert found.exit_code == 1
    assert "none of the judged documents" in found.output


def test_answers_are_documents_without_the_titles_of_their_questions(tmp_path: Path):
    site = tmp_path / "data" / "stackexchange"
    site.mkdir(parents=True)
    database = tmp_path / "site.sqlite"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE posts (id, post_type_id, title, body)")
        rows = [(1, 1, "Why?", "Tell me"), (2, 2, None, "Because"), (3, 2, None, "No idea")]
        connection.executemany("INSERT INTO posts VALUES (?, ?, ?, ?)", rows)
    (site / "tea.sqlite.gz").write_bytes(gzip.compress(database.read_bytes()))
    queries = [
        {"question_id": 1, "title": "Why?", "body": "Tell me", "qrels_answers": {"2": 2}},
        {"question_id": 4, "title": "Lost?", "body": "", "qrels_answers": {"99": 1}},
    ]
    (site / "tea.queries.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(q) + "\n" for q in queries).encode()))
    (folder,) = write_collections(tmp_path / "data", tmp_path / "out")
    documents = [json.loads(line) for line in (folder / "corpus" / "corpus.jsonl").read_text().splitlines()]
    assert documents == [
        {"_id": "2", "title": "", "text": "Because"},
        {"_id": "3", "title": "", "text": "No idea"},
    ]
    splits = [folder / "qrels" / f"{split}.tsv" for split in ("dev", "test")]
    split = next(path.stem for path in splits if len(path.read_text().splitlines()) == 2)
    (query,) = read_collection(folder, split=split)
    assert (query.text, dict(query.qrels)) == ("Why?\nTell me", {"2": 2})


def test_a_folder_without_any_collection_is_an_error(tmp_path: Path):
    with pytest.raises(EvaluationError, match="none of"):
        write_collections(tmp_path, tmp_path / "out")
