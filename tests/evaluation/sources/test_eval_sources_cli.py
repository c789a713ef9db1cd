"""`helios eval sources`, and the registry of the public data, from the command line."""

import gzip
import json
import sqlite3
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from helios.cli import build_app
from helios.errors import EvaluationError
from helios.evaluation.sources.loaders import Layout, load_questions
from helios.evaluation.sources.shared import write_registry

SHARED = Path(__file__).parents[3].parent / "shared" / "data"


def run_eval(*arguments):
    return CliRunner().invoke(build_app(), ["eval", "sources", *map(str, arguments)])


@pytest.fixture
def town(tmp_path) -> Path:
    """A folder in Spider's layout, its database, and a file of sources."""
    folder = tmp_path / "database" / "town"
    folder.mkdir(parents=True)
    connection = sqlite3.connect(folder / "town.sqlite")
    connection.executescript(
        "CREATE TABLE person (name TEXT, age INTEGER); INSERT INTO person VALUES ('Ada', 36), ('Bo', 9)"
    )
    connection.close()
    asked = {"db_id": "town", "question": "How many people are there?", "query": "SELECT count(*) FROM person"}
    (tmp_path / "dev.json").write_text(json.dumps([asked]))
    sources = {"sources": {"town": {"kind": "sqlite", "path": "database/town/town.sqlite"}}}
    (tmp_path / "sources.yaml").write_text(yaml.safe_dump(sources))
    return tmp_path


@pytest.mark.parametrize(
    "wrong",
    [
        ["--questions", "q"],
        ["--sources", "s"],
        ["--questions", "q", "--sources", "s", "--index", "i"],
        ["--questions", "q", "--sources", "s", "--baseline", "bm25-edge"],
        ["--questions", "q", "--sources", "s", "--method", "guess"],
        ["--questions", "q", "--sources", "s", "--layout", "nonsense"],
        ["--questions", "q", "--sources", "s", "--model", "m"],
        ["--questions", "q", "--sources", "s", "--per-question"],
        ["--questions", "q", "--sources", "s", "--baselines-only"],
        ["--questions", "q", "--sources", "s", "--gold", "--judge"],
        ["--questions", "q", "--sources", "s", "--gold", "--method", "sql"],
        ["--questions", "q", "--sources", "s", "--candidates", "0"],
    ],
)
def test_wrong_usage(wrong):
    result = run_eval(*wrong)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_gold_queries_of_an_official_layout(town):
    pytest.importorskip("helios.executors.sqlite", reason="needs the SQLite executor")
    arguments = ("--sources", town / "sources.yaml", "--questions", town, "--layout", "spider", "--gold")
    result = run_eval(*arguments, "--json", "--out", town / "out")
    assert result.exit_code == 0, result.output
    (report,) = json.loads(result.output)["gold"]
    assert (report["queries"], report["executed"], report["without_answers"], report["exceptions"]) == (1, 1, 1, [])
    assert json.loads((town / "out" / "gold.json").read_text())["layout"] == "spider"
    asked = json.loads((town / "dev.json").read_text())
    (town / "dev.json").write_text(json.dumps([*asked, asked[0] | {"query": "DELETE FROM person"}]))
    refused = run_eval(*arguments)
    assert refused.exit_code == 1
    assert "rejected" in refused.output


def test_sources_that_are_not_registered_are_named(town):
    pytest.importorskip("helios.sources.registry", reason="needs the registry")
    arguments = ("--sources", town / "sources.yaml", "--questions", town, "--layout", "spider", "--gold")
    result = run_eval(*arguments, "--source", "village")
    assert result.exit_code == 1
    assert "village" in result.output and "Traceback" not in result.output


def test_records_that_cannot_be_used_end_it_or_are_told(town):
    pytest.importorskip("helios.executors.sqlite", reason="needs the SQLite executor")
    asked = json.loads((town / "dev.json").read_text())
    (town / "dev.json").write_text(json.dumps([*asked, {"db_id": "town"}], indent=1))
    arguments = ("--sources", town / "sources.yaml", "--questions", town, "--layout", "spider", "--gold")
    assert "dev.json:7" in run_eval(*arguments).output.replace("\n", "")
    told = run_eval(*arguments, "--skip-bad")
    assert told.exit_code == 0 and "1 records left out" in told.output


def test_a_judge_without_a_model_is_told_before_anything_is_asked(town):
    arguments = ("--sources", town / "sources.yaml", "--questions", town, "--layout", "spider", "--method", "sql")
    result = run_eval(*arguments, "--judge", "--out", town / "out")
    assert result.exit_code == 1 and "no language model is configured" in result.output
    assert not (town / "out").exists()


def test_a_question_in_another_language_than_its_source_is_told(town):
    asked = {"id": "1", "question": "?", "paradigm": "cypher", "source": "town", "query": "RETURN 1"}
    (town / "own.jsonl").write_text(json.dumps(asked) + "\n")
    result = run_eval("--sources", town / "sources.yaml", "--questions", town / "own.jsonl", "--gold")
    assert result.exit_code == 1 and "is asked in sql" in result.output.replace("\n", " ")


def test_an_output_folder_that_is_a_file_is_told(town):
    arguments = ("--sources", town / "sources.yaml", "--questions", town, "--layout", "spider", "--gold")
    result = run_eval(*arguments, "--out", town / "dev.json")
    assert result.exit_code == 1 and "give another --out folder" in result.output.replace("\n", " ")


def packed(path: Path, *records) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(record) + "\n" for record in records).encode()))


@pytest.fixture
def public(tmp_path) -> Path:
    """The folder of public data, in small."""
    data = tmp_path / "data"
    (data / "spider/database/town").mkdir(parents=True)
    (data / "spider/database/town/town.sqlite").write_bytes(b"")
    (data / "spider4sparql/kg").mkdir(parents=True)
    (data / "spider4sparql/kg/town.nt.gz").write_bytes(gzip.compress(b""))
    (data / "wikidata_sq").mkdir()
    (data / "wikidata_sq/kg.nt.gz").write_bytes(gzip.compress(b""))
    packed(data / "graphs/films/nodes.jsonl.gz", {"id": "a", "labels": ["Film"], "properties": {}})
    packed(data / "ir/scifact/corpus.jsonl.gz", {"_id": "1", "title": "", "text": "x"})
    packed(data / "sportreason/corpus.jsonl.gz", {"id": "u", "title": "", "content": "x"})
    table = {
        "id": "T_0",
        "title": "Rivers",
        "section_title": "Swiss",
        "header": ["River", "km"],
        "rows": [["Aare", "288"]],
    }
    packed(data / "ottqa9k/tables.jsonl.gz", table)
    return data


def test_the_registry_of_the_public_data(public, tmp_path):
    imported = []

    def import_graph(nodes: Path, edges: Path, path: Path) -> None:
        imported.append(nodes.parent.name)
        path.write_bytes(b"graph")

    out = tmp_path / "out"
    path = write_registry(public, out, import_graph=import_graph)
    sources = yaml.safe_load(path.read_text())["sources"]
    assert {name: spec["kind"] for name, spec in sources.items()} == {
        "town": "sqlite", "town_rdf": "rdf", "wikidata": "rdf", "films": "property_graph",
        "scifact": "corpus", "sportreason": "corpus", "ottqa": "corpus",
    }  # fmt: skip
    assert sources["films"]["path"] == "graphs/films.lbug" and imported == ["films"]
    assert sources["town_rdf"]["prefixes"] == {"": "http://valuenet/ontop/"}
    (document,) = gzip.decompress((out / sources["ottqa"]["path"]).read_bytes()).decode().splitlines()
    assert json.loads(document) == {"_id": "T_0", "title": "Rivers", "text": "Swiss\nRiver ; km\nAare ; 288"}
    assert write_registry(public, out, import_graph=import_graph) == path and imported == ["films"]
    with pytest.raises(EvaluationError, match="none of spider"):
        write_registry(tmp_path / "empty", out)


@pytest.mark.skipif(not SHARED.exists(), reason="../shared/data is not here")
def test_every_question_of_the_public_data_has_its_source(tmp_path):
    path = write_registry(SHARED, tmp_path / "out", import_graph=lambda nodes, edges, path: path.write_bytes(b""))
    names = set(yaml.safe_load(path.read_text())["sources"])
    assert len(names) == 14 + 15 + 3 + 3
    assert {question.source for question in load_questions(SHARED, Layout.SHARED)} == names
