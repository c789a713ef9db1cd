"""The registry: YAML round trips, refusals that name the key, comments, changes while it is open."""

import json
import os
import sqlite3
import string
import threading
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helios.errors import ConfigError, SourceUnavailable
from helios.executors.base import Limits
from helios.sources.registry import Registry
from helios.sources.registry_file import read_sources, write_source
from helios.sources.spec import (
    NAME,
    BoltSpec,
    DuckDbSpec,
    PostgresqlSpec,
    RdfSpec,
    SqliteSpec,
    plain_spec,
    read_spec,
    secret,
)

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
PATHS = WORDS.filter(lambda path: path.strip())
NAMES = st.from_regex(NAME, fullmatch=True)
LIMITS = st.builds(Limits, timeout=st.floats(0.1, 100), max_rows=st.integers(1, 10**6))
VARIABLES = st.text(string.ascii_uppercase, min_size=1, max_size=10)
SPEC = st.one_of(
    st.builds(SqliteSpec, kind=st.just("sqlite"), path=PATHS, description=WORDS, limits=LIMITS),
    st.builds(
        PostgresqlSpec, kind=st.just("postgresql"), url=st.just("postgresql://me@host:5433/base"),
        password_env=st.none() | VARIABLES, namespace=PATHS,
    ),
    st.builds(BoltSpec, kind=st.just("bolt"), url=st.just("bolt://host:7687"), database=st.none() | PATHS),
    st.builds(DuckDbSpec, kind=st.just("duckdb"), files=st.dictionaries(PATHS, PATHS, min_size=1, max_size=3)),
    st.builds(
        RdfSpec, kind=st.just("rdf"), files=st.lists(PATHS, min_size=1, max_size=3).map(tuple),
        prefixes=st.dictionaries(PATHS, PATHS, max_size=2),
    ),
)  # fmt: skip


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "singers.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            "CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO singer VALUES (1, 'Ole Group')"
        )
    connection.close()
    return path


@given(sources=st.dictionaries(NAMES, SPEC, max_size=5), drop=st.integers(0, 4))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read(tmp_path: Path, sources, drop: int):
    path = tmp_path / "sources.yaml"
    path.unlink(missing_ok=True)
    for name, spec in sources.items():
        write_source(path, name, spec)
        assert read_spec(name, plain_spec(spec), where="test") == spec
    assert (read_sources(path) if sources else {}) == sources
    for name in list(sources)[:drop]:
        write_source(path, name, None)
        del sources[name]
    if path.exists():
        assert read_sources(path) == sources
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert (document["sources"] or {}) == {name: plain_spec(spec) for name, spec in sources.items()}


COMMENTED = """# ours
sources:
  # the first one
  a:
    kind: sqlite   # a file
    path: a.sqlite

  # the second one
  b: {kind: sqlite, path: b.sqlite}
# the end
"""


def test_comments_of_other_sources_stay(tmp_path: Path):
    path = tmp_path / "sources.yaml"
    path.write_text(COMMENTED)
    c = read_spec("c", {"kind": "sqlite", "path": "c.sqlite"}, where="test")
    assert write_source(path, "c", c)
    text = path.read_text()
    assert all(
        comment in text for comment in ("# ours", "# the first one", "# a file", "# the second one", "# the end")
    )
    assert list(read_sources(path)) == ["a", "b", "c"]
    assert write_source(path, "b", c)
    assert "# a file" in path.read_text()
    assert write_source(path, "a", None)
    assert "# a file" not in path.read_text() and "# ours" in path.read_text()
    assert list(read_sources(path)) == ["b", "c"]


def test_lost_comments_are_said(tmp_path: Path):
    path = tmp_path / "sources.yaml"
    path.write_text("# kept?\nsources: {a: {kind: sqlite, path: a.sqlite}}\n")
    spec = read_spec("b", {"kind": "sqlite", "path": "b.sqlite"}, where="test")
    assert not write_source(path, "b", spec)
    assert list(read_sources(path)) == ["a", "b"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "no kind"),
        ({"kind": "sqlit", "path": "x"}, "unknown kind 'sqlit'; did you mean sqlite"),
        ({"kind": "oracle"}, "unknown kind 'oracle'; expected one of corpus"),
        ({"kind": "sqlite"}, "path: Field required"),
        ({"kind": "sqlite", "paht": "x"}, "unknown key 'paht'; did you mean path"),
        ({"kind": "sqlite", "path": "x", "limits": {"tiemout": 1}}, "unknown key 'limits.tiemout'"),
        ({"kind": "sqlite", "path": "x", "limits": {"timeout": -1}}, "limits.timeout"),
        ({"kind": "postgresql", "url": "postgresql://a:secret@h/d"}, "url: has a password"),
        ({"kind": "sparql", "url": "https://h/q?api_key=secret"}, "url: has a secret in its parameter 'api_key'"),
        ({"kind": "bolt", "url": "bolt://h", "password": "secret"}, "write `password_env: NAME_OF_THE_VARIABLE`"),
        ({"kind": "bolt", "url": "bolt://h", "password_env": "p@ss secret"}, "NAME of an environment variable"),
        ({"kind": "sparql", "url": "not a url"}, "expected a URL"),
        ({"kind": "duckdb"}, "give either path"),
        ({"kind": "duckdb", "path": "x", "files": ["y.csv"]}, "give either path"),
        ([1], "expected its settings, got list"),
    ],
)  # fmt: skip
def test_wrong_registrations_are_refused(values, said: str):
    with pytest.raises(ConfigError) as error:
        read_spec("shop", values, where="sources.yaml")
    assert said in str(error.value)
    assert str(error.value).startswith("sources.yaml: source 'shop'")
    assert "secret@" not in str(error.value) and "p@ss" not in str(error.value)


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "x" * 65, 7, True])
def test_wrong_names_are_refused(name):
    with pytest.raises(ConfigError, match="expected a name"):
        read_spec(name, {"kind": "sqlite", "path": "x"}, where="sources.yaml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "not valid YAML"),
        ("- 1", "expected a mapping"),
        ("source: {}", "unknown key 'source'"),
        ("sources: [1]", "expected names with settings"),
        ("sources:\n  a: {kind: sqlite, path: x}\n  a: {kind: sqlite, path: y}", "'a' twice"),
        ("sources: {1: {kind: sqlite, path: x}}", "put it into quotes"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, text: str, said: str):
    path = tmp_path / "sources.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        Registry.open(path)


def test_an_absent_file_says_what_to_do(tmp_path: Path):
    with pytest.raises(ConfigError, match="helios sources add"):
        Registry.open(tmp_path / "none.yaml")


def test_secrets_come_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SHOP_PASSWORD", "x")
    assert secret("SHOP_PASSWORD", source="shop") == "x"
    assert secret(None, source="shop") is None
    monkeypatch.delenv("SHOP_PASSWORD")
    with pytest.raises(SourceUnavailable, match="SHOP_PASSWORD is not set"):
        secret("SHOP_PASSWORD", source="shop")


@pytest.mark.parametrize("registered", [
    {"kind": "postgresql", "url": "postgresql://reader@127.0.0.1:1/x"}, {"kind": "bolt", "url": "bolt://127.0.0.1:1"},
    {"kind": "sparql", "url": "http://127.0.0.1:1/sparql"},
])  # fmt: skip
def test_a_secret_that_is_not_set_makes_its_source_unavailable(tmp_path: Path, registered):
    with Registry.open(tmp_path / "sources.yaml", create=True) as registry:
        registry.add("locked", registered | {"password_env": "HELIOS_NEVER_SET", "user": "u"})
        source = registry.source("locked")
        for what in (source.descriptor, source.check, lambda: source.find_values(["a"])):
            with pytest.raises(SourceUnavailable, match="HELIOS_NEVER_SET"):
                what()


def test_a_registry_follows_its_file(tmp_path: Path, database: Path, caplog: pytest.LogCaptureFixture):
    path = tmp_path / "sources.yaml"
    with Registry.open(path, create=True) as registry:
        registry.add("singers", {"kind": "sqlite", "path": database.name})
        singers = registry.source("singers")
        assert singers.descriptor().schema.tables[0].row_count == 1
        with Registry.open(path) as other:
            other.add("more", {"kind": "sqlite", "path": database.name})
        assert registry.names() == ("singers", "more")
        assert registry.source("singers") is singers
        good = path.read_text()
        path.write_text("sources: [")
        assert registry.names() == ("singers", "more")
        assert "the sources stay as they were" in caplog.text
        path.write_text(good)
        with Registry.open(path) as other:
            other.remove("singers")
        assert registry.names() == ("more",)
        with pytest.raises(SourceUnavailable, match="was closed"):
            singers.check()
        with pytest.raises(ConfigError, match="no source 'singers'; registered: more"):
            registry.source("singers")


def test_a_name_is_taken_once(tmp_path: Path, database: Path):
    with Registry.open(tmp_path / "sources.yaml", create=True) as registry:
        registry.add("a", {"kind": "sqlite", "path": database.name})
        with pytest.raises(ConfigError, match="exists"):
            registry.add("a", {"kind": "sqlite", "path": "other.sqlite"})
        first = registry.source("a")
        registry.add("a", {"kind": "sqlite", "path": database.name, "description": "new"}, replace=True)
        assert registry.source("a") is not first
        assert registry.source("a").descriptor().description == "new"


def test_threads_get_one_source(tmp_path: Path, database: Path):
    with Registry.open(tmp_path / "sources.yaml", create=True) as registry:
        registry.add("a", {"kind": "sqlite", "path": database.name})
        found = []
        threads = [threading.Thread(target=lambda: found.append(registry.source("a").opened)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({id(source) for source in found}) == 1


def test_descriptors_are_kept_until_the_data_changes(tmp_path: Path, database: Path):
    path = tmp_path / "sources.yaml"
    with Registry.open(path, create=True) as registry:
        registry.add("a", {"kind": "sqlite", "path": database.name})
        descriptor = registry.source("a").descriptor()
    kept = tmp_path / "sources.cache" / "a.descriptor.json"
    assert json.loads(kept.read_text())["descriptor"]["source"] == "a"
    with Registry.open(path) as registry:
        source = registry.source("a")
        assert source.descriptor() == descriptor
        assert source._opened is None  # it came from disk
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("INSERT INTO singer VALUES (2, 'Nora Group')")
    connection.close()
    with Registry.open(path) as registry:
        source = registry.source("a")
        assert source.descriptor().schema.tables[0].row_count == 2
        kept.write_text("{damaged")
    with Registry.open(path) as registry:
        assert registry.source("a").descriptor().schema.tables[0].row_count == 2


def test_a_refresh_elsewhere_is_seen(tmp_path: Path, database: Path):
    path = tmp_path / "sources.yaml"
    with Registry.open(path, create=True) as registry, Registry.open(path, create=True) as other:
        registry.add("a", {"kind": "sqlite", "path": database.name})
        source = registry.source("a")
        assert source.descriptor().schema.tables[0].row_count == 1
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("INSERT INTO singer VALUES (2, 'Nora Group')")
        connection.close()
        assert source.descriptor().schema.tables[0].row_count == 1
        other.refresh("a")
        assert source.descriptor().schema.tables[0].row_count == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, database: Path):
    path = tmp_path / "sources.yaml"
    with Registry.open(path, create=True) as registry:
        registry.add("a", {"kind": "sqlite", "path": database.name})
    tmp_path.chmod(0o500)
    try:
        with Registry.open(path) as registry:
            assert registry.source("a").descriptor().schema.tables
    finally:
        tmp_path.chmod(0o700)


def test_what_is_missing_is_unavailable(tmp_path: Path):
    with Registry.open(tmp_path / "sources.yaml", create=True) as registry:
        registry.add("gone", {"kind": "sqlite", "path": "gone.sqlite"})
        with pytest.raises(SourceUnavailable, match="no such file or folder"):
            registry.source("gone").descriptor()
        (tmp_path / "text.sqlite").write_text("this is not a database at all, only a text")
        registry.add("text", {"kind": "sqlite", "path": "text.sqlite"})
        with pytest.raises(SourceUnavailable, match="cannot be read as SQLite"):
            registry.source("text").descriptor()
