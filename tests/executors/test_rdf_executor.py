"""RDF in a worker process: values, caps, deadlines and files, on the real engine."""

import gzip
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pytest

from helios.errors import QueryFailed, QueryTimeout, SourceUnavailable
from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.rdf import RdfExecutor
from helios.executors.sparql.terms import literal_value
from helios.executors.values import Iri, Literal

XSD = "http://www.w3.org/2001/XMLSchema#"


def sparql(text: str) -> NativeQuery:
    return NativeQuery(Language.SPARQL, text)


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 nodes in a ring, each with chords: small to load, endless for a careless query."""
    path = tmp_path_factory.mktemp("ring") / "ring.nt.gz"
    with gzip.open(path, "wt") as file:
        for i in range(2000):
            file.writelines(f"<n:{i}> <p:to> <n:{(i + step) % 2000}> .\n" for step in (1, 7, 31))
            file.write(f'<n:{i}> <p:name> "{"a" * 40}{i}" .\n')
    return path


@pytest.fixture(scope="module")
def executor(ring: Path) -> Iterator[RdfExecutor]:
    executor = RdfExecutor([ring], workers=2)
    executor.warm_up()
    yield executor
    executor.close()


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (("7", XSD + "integer"), 7),
        (("-7", XSD + "long"), -7),
        (("1.50", XSD + "decimal"), Decimal("1.50")),
        (("1e3", XSD + "double"), 1000.0),
        (("INF", XSD + "float"), float("inf")),
        (("true", XSD + "boolean"), True),
        (("0", XSD + "boolean"), False),
        (("2020-02-29", XSD + "date"), date(2020, 2, 29)),
        (("2020-02-29T01:02:03Z", XSD + "dateTime"), datetime(2020, 2, 29, 1, 2, 3, tzinfo=UTC)),
        (("x",), "x"),
        (("x", XSD + "string"), "x"),
        (("x", "", "en"), Literal("x", "", "en")),
        (("x", XSD + "integer"), Literal("x", XSD + "integer")),
        (("-0044-03-15", XSD + "date"), Literal("-0044-03-15", XSD + "date")),
        (("2021-02-29", XSD + "date"), Literal("2021-02-29", XSD + "date")),
        (("9" * 5000, XSD + "integer"), Literal("9" * 5000, XSD + "integer")),
        (("Point(1 2)", "http://www.opengis.net/ont/geosparql#wktLiteral"),
         Literal("Point(1 2)", "http://www.opengis.net/ont/geosparql#wktLiteral")),
    ],
)  # fmt: skip
def test_literals_become_values(literal: tuple[str, ...], value: object):
    found = literal_value(*literal)
    assert found == value
    assert type(found) is type(value)


def test_rows_of_terms(executor: RdfExecutor):
    text = "SELECT ?a ?b ?c ?none { VALUES (?a ?b ?c) { (<n:1> 1.5 'x'@en) } OPTIONAL { ?a <p:absent> ?none } }"
    result = executor.execute(sparql(text))
    assert result.columns == ("a", "b", "c", "none")
    assert result.rows == ((Iri("n:1"), Decimal("1.5"), Literal("x", "", "en"), None),)
    assert result.truncated is None
    assert result.milliseconds > 0


def test_ask_is_one_row(executor: RdfExecutor):
    result = executor.execute(sparql("ASK { <n:1> <p:to> <n:2> }"))
    assert (result.columns, result.rows) == (("answer",), ((True,),))


def test_caps_are_said(executor: RdfExecutor):
    rows = executor.execute(sparql("SELECT * { ?s ?p ?o }"), Limits(max_rows=10))
    assert (len(rows), rows.truncated) == (10, "rows")
    size = executor.execute(sparql("SELECT * { ?s ?p ?o }"), Limits(max_bytes=1024))
    assert 0 < len(size) < 1024
    assert size.truncated == "bytes"


def test_the_engine_says_what_is_wrong(executor: RdfExecutor):
    with pytest.raises(QueryFailed, match="unbound"):
        executor.execute(sparql("SELECT ?s ?p { ?s ?p ?o } GROUP BY ?s"))


DOUBLED = " ".join(f"BIND(CONCAT(?x{i}, ?x{i}) AS ?x{i + 1})" for i in range(40))
RUNAWAYS = {
    "cross product": "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }",
    "sorted cross product": "SELECT * { ?a ?b ?c . ?d ?e ?f } ORDER BY ?f ?a",
    "unbounded path": "SELECT (COUNT(*) AS ?n) { ?a <p:to>* ?b . ?b <p:to>* ?c . ?c (<p:to>|^<p:to>)+ ?d }",
    "nested path": "SELECT * { ?a ((<p:to>*)*/(<p:to>+))* ?b FILTER(?a = ?b && ?a != ?a) }",
    "values product": "SELECT (COUNT(*) AS ?n) { " + " ".join(
        f"VALUES ?v{i} {{ {' '.join(map(str, range(60)))} }}" for i in range(10)
    ) + " }",
    "doubled string": f"SELECT (STRLEN(?x40) AS ?n) {{ BIND('abcdefgh' AS ?x0) {DOUBLED} }}",
    "regex": "SELECT * { ?a <p:name> ?x . ?b <p:name> ?y . ?c <p:name> ?z "
             "FILTER(REGEX(CONCAT(?x, ?y, ?z), '(a{1,50}){1,50}(a|aa)+b$')) }",
    "distinct product": "SELECT DISTINCT ?a ?d ?g { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } OFFSET 2000000000",
}  # fmt: skip


def watch_memory() -> Callable[[], int]:
    """Looks at this process's workers every 10 ms until the given function is called, which tells the largest.

    A child that has not yet become a worker shares this process's memory, all of which would be counted as its own.
    """
    largest, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            for child in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    if "helios.executors.worker" in child.cmdline():
                        largest[0] = max(largest[0], child.memory_info().rss)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()

    def end() -> int:
        ended.set()
        thread.join()
        return largest[0]

    return end


@pytest.mark.parametrize("name", RUNAWAYS)
def test_a_runaway_query_is_stopped(name: str, executor: RdfExecutor, within: Any):
    limits = Limits(timeout=1.5, max_memory=2**29)
    executor.check(sparql(RUNAWAYS[name]))
    peak = watch_memory()
    with within(limits.timeout + 1.0), pytest.raises((QueryTimeout, QueryFailed)) as raised:
        executor.execute(sparql(RUNAWAYS[name]), limits)
    if raised.type is QueryFailed:
        assert "memory" in str(raised.value) or "process ended" in str(raised.value)
    assert peak() < limits.max_memory + 2**28, "a worker held much more than its cap"
    assert executor.execute(sparql("ASK { <n:1> <p:to> <n:2> }")).rows == ((True,),)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to its memory")
def test_a_runaway_query_is_held_while_nobody_looks(executor: RdfExecutor, monkeypatch: pytest.MonkeyPatch):
    """On a busy machine two looks at a worker's memory may lie seconds apart."""
    monkeypatch.setattr("helios.executors.pool.TICK", 60.0)
    peak = watch_memory()
    with pytest.raises(QueryFailed, match="for want of memory"):
        executor.execute(sparql(RUNAWAYS["doubled string"]), Limits(timeout=30.0, max_memory=2**29))
    assert peak() < 2**29 + 2**28, "a worker held much more than its cap"


def test_a_trivial_query_costs_little(executor: RdfExecutor, quick: Any):
    quick(0.015, lambda: executor.execute(sparql("ASK { <n:1> <p:to> <n:2> }")))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.ttl", "@prefix e: <http://e/> . e:s e:p 1 ."),
        ("a.nt", "<http://e/s> <http://e/p> <http://e/o> ."),
        ("a.nq", "<http://e/s> <http://e/p> <http://e/o> <http://e/g> ."),
        ("a.trig", "<http://e/g> { <http://e/s> <http://e/p> 1 }"),
        ("a.rdf", '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
                  '<rdf:Description rdf:about="http://e/s"><e:p>1</e:p></rdf:Description></rdf:RDF>'),
        ("a.jsonld", '{"@id": "http://e/s", "http://e/p": 1}'),
        ("a.ttl.gz", "<http://e/s> <http://e/p> 1 ."),
    ],
)  # fmt: skip
def test_formats(name: str, text: str, tmp_path: Path):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    executor = RdfExecutor([path], workers=1)
    assert executor.execute(sparql("SELECT ?s { ?s <http://e/p> ?o }")).rows == ((Iri("http://e/s"),),)
    executor.close()


def test_files_are_read_together(tmp_path: Path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.nt").write_text(f"<http://e/{name}> <http://e/p> <http://e/o> .")
    executor = RdfExecutor([tmp_path / "a.nt", tmp_path / "b.nt"], workers=1)
    assert len(executor.execute(sparql("SELECT ?s { ?s ?p ?o }"))) == 2
    executor.close()


def test_a_store_is_opened_without_writing(tmp_path: Path):
    (tmp_path / "a.nq").write_text("<http://e/s> <http://e/p> <http://e/o> <http://e/g> .")
    making = "import sys; from pyoxigraph import Store; Store(sys.argv[1]).load(path=sys.argv[2])"
    subprocess.run([sys.executable, "-c", making, str(tmp_path / "store"), str(tmp_path / "a.nq")], check=True)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*")}
    executor = RdfExecutor([tmp_path / "store"], workers=2)
    assert len(executor.execute(sparql("SELECT ?s { ?s ?p ?o }"))) == 1
    assert len(executor.execute(sparql("SELECT ?g { GRAPH ?g { ?s ?p ?o } }"))) == 1
    executor.close()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*")} == before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.ttl", b"<http://e/s> <http://e/p>", "cannot be read as RDF"),
        ("a.ttl.gz", b"no gzip", "cannot be read as RDF"),
        ("a.txt", b"", "expected a file that ends in"),
        ("absent.nt", None, "no such file"),
        ("folder", None, "pyoxigraph store"),
    ],
)
def test_what_cannot_be_opened(name: str, content: bytes | None, message: str, tmp_path: Path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    if name == "folder":
        (tmp_path / name).mkdir()
    executor = RdfExecutor([tmp_path / name], workers=1)
    with pytest.raises(SourceUnavailable, match=message):
        executor.execute(sparql("ASK {}"))
    executor.close()
