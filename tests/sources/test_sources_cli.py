"""`helios sources` through the real entry point: output, JSON, exit codes, no tracebacks."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.cli import build_app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a small database."""
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.execute("CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT)")
    connection.execute("INSERT INTO customer VALUES (1, 'Ole [bold]Group')")
    connection.commit()
    connection.close()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "1", "title": "Bread", "text": "Flour and water."}\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sources(*arguments: str):
    return CliRunner().invoke(build_app(), ["sources", *arguments])


def test_a_source_from_registration_to_removal(folder: Path):
    added = sources("add", "shop", "--path", "shop.db", "--description", "Who buys [what]", "--set", "limits.timeout=3")
    assert added.exit_code == 0, added.output
    assert (folder / "helios-sources.yaml").read_text().count("shop.db") == 1
    assert json.loads(sources("list", "--json").stdout) == [
        {
            "name": "shop", "kind": "sqlite", "path": "shop.db", "description": "Who buys [what]",
            "limits": {"timeout": 3.0},
        }
    ]  # fmt: skip
    assert "Who buys [what]" in sources("list").stdout
    shown = sources("show", "shop")
    assert "CREATE TABLE customer ( -- 1 rows" in shown.stdout and "Ole [bold]Group" in shown.stdout
    document = json.loads(sources("show", "shop", "--json", "--question", "Who?").stdout)
    assert document["schema"]["tables"][0]["row_count"] == 1
    (checked,) = json.loads(sources("check", "--json").stdout)
    assert checked["ok"] and checked["refuses_writes"] and checked["guards"]
    assert "a write was refused" in sources("check", "shop").stdout
    assert json.loads(sources("refresh", "--json").stdout) == [
        {"name": "shop", "ok": True, "holds": "1 tables, 1 rows"}
    ]
    assert sources("remove", "shop").exit_code == 0
    assert json.loads(sources("list", "--json").stdout) == []
    assert (folder / "shop.db").exists()


def test_kinds_are_guessed_where_that_is_clear(folder: Path):
    (folder / "a.csv").write_text("x\n1\n")
    for name, arguments, kind in (
        ("a", ("--path", "shop.db"), "sqlite"), ("b", ("--path", "corpus.jsonl"), "corpus"),
        ("c", ("--path", "."), "corpus"), ("d", ("--file", "t=a.csv"), "duckdb"),
        ("e", ("--url", "postgresql://me@h/d"), "postgresql"), ("f", ("--url", "neo4j+s://h"), "bolt"),
        ("g", ("--path", "g.nt.gz"), "rdf"),
    ):  # fmt: skip
        added = sources("add", name, *arguments, "--json")
        assert added.exit_code == 0, added.output
        assert json.loads(added.stdout)["kind"] == kind


def test_a_path_that_is_not_there_yet_is_said(folder: Path):
    added = sources("add", "later", "--path", "later.sqlite")
    assert added.exit_code == 0 and "warning: later.sqlite: no such file or folder yet" in added.output
    assert "warning" not in sources("add", "shop", "--path", "shop.db").output


def test_a_file_of_rows_by_its_path_is_a_table(folder: Path):
    (folder / "a.CSV").write_text("name,year\nAda,1815\n")
    assert sources("add", "rows", "--path", "a.CSV").exit_code == 0
    checked = sources("check", "rows")
    assert checked.exit_code == 0, checked.output


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["add", "x"], 2, "name the kind with --kind"),
        (["add", "x", "--url", "https://h/q"], 2, "name the kind with --kind"),
        (["add", "x", "--path", "shop.db", "--set", "nonsense"], 2, "expected KEY=VALUE"),
        (["add", "x", "--kind", "oracle"], 2, "--kind"),
        (["add", "x", "--path", "shop.db", "--set", "colour=red"], 1, "unknown key 'colour'"),
        (["add", "x", "--url", "postgresql://a:b@h/d"], 1, "has a password in it"),
        (["add", "x", "--url", "bolt://h", "--set", "password=b"], 1, "password_env"),
        (["add", "bad name", "--path", "shop.db"], 1, "expected a name"),
        (["list"], 1, "no file of sources"),
        (["show", "x", "--sources", "empty.yaml"], 1, "no source 'x'"),
        (["refresh", "x", "--sources", "empty.yaml"], 1, "no source 'x'"),
        (["remove", "x", "--sources", "empty.yaml"], 1, "no source 'x'"),
    ],
)
def test_what_cannot_be_done_is_said(folder: Path, arguments: list[str], code: int, said: str):
    (folder / "empty.yaml").write_text("sources: {}\n")
    result = sources(*arguments)
    assert result.exit_code == code
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_source_that_fails_its_check(folder: Path):
    sources("add", "gone", "--kind", "sqlite", "--path", "gone.db")
    result = sources("check")
    assert result.exit_code == 1 and "no such file or folder" in result.output
    assert sources("refresh").exit_code == 1


def test_the_entry_point(folder: Path):
    command = [sys.executable, "-m", "helios.cli", "sources"]
    run = subprocess.run([*command, "list"], capture_output=True, text=True, timeout=120)
    assert (run.returncode, "Traceback" in run.stderr) == (1, False)
    assert "helios sources add" in run.stderr
    assert subprocess.run([*command, "nonsense"], capture_output=True, timeout=120).returncode == 2


def test_a_graph_from_files(folder: Path):
    pytest.importorskip("ladybug")
    people = [{"id": name, "labels": ["Person"], "properties": {"name": name}} for name in ("Ann", "Bo")]
    (folder / "nodes.jsonl").write_text("\n".join(map(json.dumps, people)))
    (folder / "edges.jsonl").write_text(json.dumps({"src": "Ann", "dst": "Bo", "type": "KNOWS", "properties": {}}))
    made = sources("import-graph", "nodes.jsonl", "edges.jsonl", "people.lbug")
    assert made.stdout == "people.lbug: 2 nodes, 1 relationships in 2 tables\n", made.output
    assert sources("import-graph", "nodes.jsonl", "edges.jsonl", "people.lbug").exit_code == 1
    assert sources("add", "people", "--path", "people.lbug", "--kind", "property_graph").exit_code == 0
    assert json.loads(sources("check", "people", "--json").stdout)[0]["ok"] is True
