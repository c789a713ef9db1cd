"""An installation without the extra `sources`: what is missing is named, the other sources answer."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

EXTRA = ("rdflib", "pyoxigraph", "ladybug", "neo4j", "psycopg")
HIDDEN = "import sys\nsys.modules.update(dict.fromkeys({hidden!r}))\n"
"""None in sys.modules is a module that cannot be imported."""
IMPORT_ALL = """
import pkgutil, importlib, helios.sources, helios.routing, helios.executors
for package in (helios.sources, helios.routing, helios.executors):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A database, and graphs whose engines will be hidden."""
    connection = sqlite3.connect(tmp_path / "shop.sqlite")
    connection.execute("CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, country TEXT)")
    connection.execute("INSERT INTO customer VALUES (1, 'Ole Group', 'Norway')")
    connection.commit()
    connection.close()
    (tmp_path / "films.nt").write_text("<http://e.org/1> <http://e.org/2> <http://e.org/3> .\n")
    (tmp_path / "graph.lbug").write_bytes(b"")
    (tmp_path / "nodes.jsonl").write_text('{"id": "1", "labels": ["Person"]}\n')
    (tmp_path / "edges.jsonl").write_text("")
    (tmp_path / "helios-sources.yaml").write_text(
        "sources:\n"
        "  shop: {kind: sqlite, path: shop.sqlite}\n"
        "  films: {kind: rdf, files: [films.nt]}\n"
        "  endpoint: {kind: sparql, url: 'http://127.0.0.1:9/sparql'}\n"
        "  graph: {kind: property_graph, path: graph.lbug}\n"
        "  server: {kind: bolt, url: 'bolt://127.0.0.1:9'}\n"
        "  crm: {kind: postgresql, url: 'postgresql://me@127.0.0.1:9/crm'}\n"
    )
    return tmp_path


def run(folder: Path, *arguments: str, hidden: tuple[str, ...] = EXTRA, code: str = "") -> subprocess.CompletedProcess:
    code = HIDDEN.format(hidden=hidden) + (code or f"from helios.cli import build_app\nbuild_app()({arguments!r})")
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_a_check_names_what_is_missing_for_each_kind(folder: Path):
    done = run(folder, "sources", "check", "--json", hidden=(*EXTRA, "sqlglot"))
    assert done.returncode == 1
    errors = {checked["name"]: checked["error"] for checked in json.loads(done.stdout)}
    install = 'not installed: pip install "helios-retrieval[sources]"'
    assert errors == {
        "shop": "source 'shop' needs sqlglot, which is not installed: pip install helios-retrieval",
        "films": f"source 'films' needs rdflib and pyoxigraph, which are {install}",
        "endpoint": f"source 'endpoint' needs rdflib, which is {install}",
        "graph": f"source 'graph' needs ladybug, which is {install}",
        "server": f"source 'server' needs neo4j, which is {install}",
        "crm": f"source 'crm' needs sqlglot and psycopg, which are {install}",
    }


def test_an_import_of_a_graph_names_what_is_missing(folder: Path):
    done = run(folder, "sources", "import-graph", "nodes.jsonl", "edges.jsonl", "out.lbug")
    assert done.returncode == 1 and not (folder / "out.lbug").exists()
    assert "import-graph needs ladybug, which is not installed" in done.stderr


def test_the_other_sources_answer(folder: Path):
    done = run(folder, "ask", "In which country is Ole Group?", "--sources", "helios-sources.yaml", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert any("Norway" in item["text"] for item in answer["evidence"]) and answer["degraded"]
    for name in ("films", "endpoint", "graph", "server", "crm"):
        assert any(note.startswith(f"{name}: ") and "not installed" in note for note in answer["notes"]), name


def test_no_module_needs_the_extra_when_it_is_imported(folder: Path):
    assert run(folder, hidden=(*EXTRA, "sqlglot"), code=IMPORT_ALL).returncode == 0
