"""Kinds of sources: a package that is installed beside HELIOS brings one, and it is asked like those of HELIOS."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helios.sources.builtin import BUILT_IN
from helios.sources.kinds import all_kinds, kind_named, kind_names

LEDGER = """
import sqlite3
from pathlib import Path

from pydantic import Field

from helios.executors.base import Language
from helios.executors.pool import Engine
from helios.executors.sql.embedded import EmbeddedSqlExecutor
from helios.sources.kinds import Kind
from helios.sources.reading import SqliteReading
from helios.sources.relational import RelationalSource, WorkerReader
from helios.sources.spec import SourceSpec, resolve
from helios.sources.sqlite import CATALOGUE


class LedgerSpec(SourceSpec):
    book: str = Field(min_length=1)

    def paths(self, folder):
        return (resolve(self.book, folder),)


def open_source(name, spec, folder, cache):
    options = {"path": str(spec.paths(folder)[0])}
    return RelationalSource(
        name, spec, catalogue=CATALOGUE, cache=cache,
        reader=lambda: WorkerReader(Engine("ledger:open_session", options)),
        executor=lambda: EmbeddedSqlExecutor("sqlite", Engine("ledger:open_session", options), limits=spec.limits),
    )


def open_session(options):
    return SqliteReading(_loaded(options["path"]))


def _loaded(path):
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE entry (customer TEXT, amount INTEGER)")
    rows = [line.split(";") for line in Path(path).read_text().splitlines()]
    connection.executemany("INSERT INTO entry VALUES (?, ?)", rows)
    return connection


KIND = Kind(
    "ledger", LedgerSpec, Language.SQL, "ledger:open_source", guards=("parser: one SELECT",), endings=(".ledger",),
    schemes=("ledger",), modules=("no_such_module",) if Path("unfinished").exists() else (),
    install="pip install ledger-engine",
)
"""
OTHERS = {
    "sqlite": "ledger:KIND",  # taken
    "broken": "no_such_package:KIND",
    "wrong": "ledger:LEDGER",
    "mistaken": "ledger:LedgerSpec",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working directory, with a package in `site` whose metadata names its kinds."""
    site = tmp_path / "site"
    metadata = site / "ledger_engine-1.0.dist-info"
    metadata.mkdir(parents=True)
    (site / "ledger.py").write_text(LEDGER)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ledger-engine\nVersion: 1.0\n")
    points = "\n".join(f"{name} = {value}" for name, value in {"ledger": "ledger:KIND", **OTHERS}.items())
    (metadata / "entry_points.txt").write_text(f"[helios.sources]\n{points}\n")
    (tmp_path / "may.ledger").write_text("Ole Group;70\nNora Group;30\nOle Group;5\n")
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    path = os.pathsep.join([str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "helios", *arguments], cwd=folder, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.slow
def test_a_kind_of_another_package_is_asked(folder: Path):
    added = run(folder, "sources", "add", "may", "--set", "book=may.ledger", "--kind", "ledger")
    assert added.returncode == 0, added.stderr
    (checked,) = json.loads(run(folder, "sources", "check", "--json").stdout)
    assert (checked["ok"], checked["refuses_writes"], checked["language"]) == (True, True, "sql")
    assert checked["guards"] == ["parser: one SELECT"]
    assert "CREATE TABLE entry" in run(folder, "sources", "show", "may").stdout
    question = "How many entries have the customer Ole Group?"
    asked = run(folder, "ask", question, "--sources", "helios-sources.yaml", "--json")
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)["answer"]["text"] == "2"


def test_its_keys_and_modules_are_its_own(folder: Path):
    refused = run(folder, "sources", "add", "may", "--set", "path=may.ledger", "--kind", "ledger")
    assert refused.returncode == 1 and "unknown key 'path'; did you mean" not in refused.stderr
    assert "unknown key 'path'; expected one of kind, description, limits, book" in refused.stderr
    assert run(folder, "sources", "add", "may", "--set", "book=may.ledger", "--kind", "ledger").returncode == 0
    (folder / "unfinished").touch()
    (checked,) = json.loads(run(folder, "sources", "check", "--json").stdout)
    assert checked["error"].endswith("needs no_such_module, which is not installed: pip install ledger-engine")


def test_it_is_guessed_from_an_address(folder: Path):
    guessed = run(folder, "sources", "add", "may", "--url", "ledger://host")
    assert guessed.returncode == 1 and "source 'may': unknown key 'url'" in guessed.stderr


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("broken", "the package ledger-engine: its kind of source 'broken' cannot be loaded from no_such_package:KIND"),
        ("wrong", "cannot be loaded from ledger:LEDGER"),
        ("mistaken", "ledger:LedgerSpec is not the kind of source 'mistaken'"),
    ],
)
def test_a_kind_that_cannot_be_loaded_says_whose_it_is(folder: Path, kind: str, said: str):
    refused = run(folder, "sources", "add", "x", "--kind", kind)
    assert refused.returncode == 1 and said in " ".join(refused.stderr.split())


def test_no_package_replaces_a_kind_of_helios(folder: Path):
    """And one that is broken leaves the others as they are."""
    (folder / "shop.sqlite").write_bytes(b"SQLite format 3\0")
    added = run(folder, "sources", "add", "shop", "--path", "shop.sqlite", "--json")
    assert json.loads(added.stdout)["kind"] == "sqlite"
    assert "the kind of source 'sqlite' is taken" in added.stderr


def test_the_records_fit_their_kinds():
    assert kind_names()[: len(BUILT_IN)] == tuple(BUILT_IN)
    for kind in BUILT_IN.values():
        assert kind is kind_named(kind.name) and callable(kind.open()) and kind.guards
    endings = [ending for kind in all_kinds() for ending in kind.endings]
    schemes = [scheme for kind in all_kinds() for scheme in kind.schemes]
    assert len(set(endings)) == len(endings) and len(set(schemes)) == len(schemes)
