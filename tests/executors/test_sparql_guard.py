"""The SPARQL guard against the real engines: what is hostile never gets through, what is benign always does."""

import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from pyoxigraph import Store
from rdflib.plugins.sparql.parser import parseQuery

from helios.errors import QueryFailed, QueryRejected
from helios.executors.base import Language, NativeQuery
from helios.executors.rdf import RdfExecutor
from helios.executors.sparql.grammar import parse
from helios.executors.sparql.guard import MAX_TOKENS, SparqlGuard
from helios.executors.sparql.session import RdfSession
from helios.executors.sparql_endpoint import SparqlEndpointExecutor
from helios.executors.values import Iri, Literal, dumps, loads

EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIXES = {"ex": EX, "xsd": XSD}
TURTLE = f"""
@prefix ex: <{EX}> . @prefix xsd: <{XSD}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:ann a ex:Person ; rdfs:label "Ann"@en ; ex:age 31 ; ex:knows ex:bob ; ex:born "1990-02-03"^^xsd:date .
ex:bob a ex:Person ; rdfs:label "Bob" ; ex:age 45 ; ex:knows ex:cid ; ex:height 1.81 .
ex:cid a ex:Person ; ex:age 45 ; ex:note "SERVICE <http://x/> # not a comment" ; ex:weight 8.0e1 .
"""

DIFFERENT_EACH_TIME = ("NOW()", "UUID()", "RAND()", "BNODE()", "SAMPLE")
CHARACTERS = {r"\r": "\r", r"\x0b": "\x0b", r"\xa0": "\xa0", r"\u200b": "\u200b", r"\"\"\"": '"""'}

HOSTILE = r"""
SELECT * WHERE { SERVICE <http://127.0.0.1:PORT/> { ?s ?p ?o } }
SELECT * WHERE { SERVICE SILENT <http://127.0.0.1:PORT/> { ?s ?p ?o } }
select * where { service <http://127.0.0.1:PORT/> { ?s ?p ?o } }
SELECT * WHERE { sErViCe sIlEnT <http://127.0.0.1:PORT/> { ?s ?p ?o } }
SELECT * WHERE { BIND(<http://127.0.0.1:PORT/> AS ?e) SERVICE ?e { ?s ?p ?o } }
PREFIX e: <http://127.0.0.1:PORT/> SELECT * WHERE { SERVICE e:sparql { ?s ?p ?o } }
SELECT * WHERE { OPTIONAL { SERVICE <http://127.0.0.1:PORT/> { ?s ?p ?o } } }
SELECT * WHERE { ?s ?p ?o FILTER EXISTS { SERVICE <http://127.0.0.1:PORT/> { ?s ?p ?o } } }
SELECT * WHERE { { SELECT * WHERE { SERVICE <http://127.0.0.1:PORT/> { ?s ?p ?o } } } }
SELECT * WHERE { ?s ?p ?o } # comment\rSERVICE <http://127.0.0.1:PORT/> { ?s ?p ?o }
SELECT * WHERE { ?s ?p ?o #\r SERVICE <http://127.0.0.1:PORT/> { ?a ?b ?c }\n}
SELECT * WHERE { SERVICE# comment\n<http://127.0.0.1:PORT/> { ?s ?p ?o } }
SELECT * WHERE{SERVICE<http://127.0.0.1:PORT/>{?s ?p ?o}}
SELECT * WHERE { \u0053ERVICE <http://127.0.0.1:PORT/> { ?s ?p ?o } }
SELECT * WHERE { \U00000053ERVICE <http://127.0.0.1:PORT/> { ?s ?p ?o } }
SELECT * WHERE { S\u0045RVIC\u0045 <http://127.0.0.1:PORT/> { ?s ?p ?o } }
\u0053ELECT * WHERE { SERVICE <http://127.0.0.1:PORT/> { ?s ?p ?o } }
SELECT * WHERE { ?s ?p "\u0022 . SERVICE <http://127.0.0.1:PORT/> { ?a ?b ?c } #" }
SELECT * WHERE { ?s ?p '\u0027 . SERVICE <http://127.0.0.1:PORT/> { ?a ?b ?c } #' }
SELECT * WHERE { ?s ?p "x\u000A" . SERVICE <http://127.0.0.1:PORT/> { ?a ?b ?c } }
SELECT * WHERE { ?s <http://e/\u003E\u0020?o> "x\\u0022" }
SELECT * WHERE { ?s ?p "\\u0022 } SERVICE" }
SELECT * WHERE { ?s ?p '''a' . SERVICE <http://127.0.0.1:PORT/> { ?a ?b ?c } '''' }
SELECT * WHERE { ?s ?p ?o FILTER(?o <5) SERVICE <http://127.0.0.1:PORT/> { ?a ?b ?c } }
SELECT * WHERE { ?s ?p ?o FILTER(?o<5&&service>3) }
SELECT * WHERE { ſERVICE <http://127.0.0.1:PORT/> { ?s ?p ?o } }
SELECT * WHERE { ＳＥＲＶＩＣＥ <http://127.0.0.1:PORT/> { ?s ?p ?o } }
SELECT * WHERE { SER\u200bVICE <http://127.0.0.1:PORT/> { ?s ?p ?o } }
SELECT * FROM <http://127.0.0.1:PORT/data.ttl> WHERE { ?s ?p ?o }
SELECT * FROM NAMED <http://127.0.0.1:PORT/data.ttl> WHERE { GRAPH ?g { ?s ?p ?o } }
SELECT * FROM <file:FILE> WHERE { ?s ?p ?o }
select * from <file:FILE> where { ?s ?p ?o }
SELECT *#x\nFROM <file:FILE> { ?s ?p ?o }
SELECT * FROM NAMED <file:FILE> WHERE { GRAPH <file:FILE> { ?s ?p ?o } }
ASK FROM <file:FILE> { ?s ?p ?o }
LOAD <http://127.0.0.1:PORT/data.ttl>
LOAD SILENT <file:FILE> INTO GRAPH <http://example.org/g>
INSERT DATA { <http://e/s> <http://e/p> <http://e/o> }
PREFIX e: <http://e/> INSERT DATA { e:s e:p e:o }
INSERT { ?s <http://e/p> 1 } WHERE { ?s ?p ?o }
DELETE WHERE { ?s ?p ?o }
DELETE DATA { <http://example.org/ann> <http://example.org/age> 31 }
DELETE { ?s ?p ?o } INSERT { ?o ?p ?s } WHERE { ?s ?p ?o }
WITH <http://e/g> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }
CLEAR ALL
CLEAR SILENT DEFAULT
DROP ALL
CREATE GRAPH <http://e/g>
COPY DEFAULT TO <http://e/g>
MOVE DEFAULT TO <http://e/g>
ADD DEFAULT TO <http://e/g>
SELECT * WHERE { ?s ?p ?o } ; DROP ALL
SELECT * WHERE { ?s ?p ?o } ; INSERT DATA { <http://e/s> <http://e/p> 1 }
SELECT * WHERE { ?s ?p ?o } SELECT * WHERE { ?s ?p ?o }
ASK {} ASK {}
CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }
CONSTRUCT WHERE { ?s ?p ?o }
DESCRIBE <http://example.org/ann>
DESCRIBE ?s WHERE { ?s ?p ?o }
SELECT * WHERE { ?s ?p ?o LATERAL { SERVICE <http://127.0.0.1:PORT/> { ?s ?p ?o } } }
SELECT * WHERE { ?s ?p ?o LATERAL { ?o ?q ?r } }
SELECT (<http://e/run>(?o) AS ?x) WHERE { ?s ?p ?o }
SELECT * WHERE { ?s ?p ?o FILTER(<java:java.lang.Runtime.exec>(?o)) }
PREFIX f: <java:com.example.> SELECT (f:run(?o) AS ?x) WHERE { ?s ?p ?o }
SELECT (ex:run(?o) AS ?x) WHERE { ?s ?p ?o }
SELECT (<http://www.opengis.net/def/function/geosparql/distance>(?o, ?o) AS ?x) WHERE { ?s ?p ?o }
SELECT ?s WHERE { ?s ?p ?o } GROUP BY (<http://e/run>(?s))
SELECT ?s WHERE { ?s ?p ?o } ORDER BY <http://e/run>(?s)
SELECT ?s WHERE { ?s ?p ?o } GROUP BY ?s HAVING (<http://e/run>(COUNT(?o)) > 1)
SELECT * WHERE { ?s ?p ?o BIND(IF(true, COALESCE(<http://e/run>(?o)), 1) AS ?x) }
SELECT * WHERE { ?s ?p ?o FILTER NOT EXISTS { ?s ?p ?x FILTER(!<http://e/run>(?x)) } }
SELECT (<http://e/aggregate>(DISTINCT ?o) AS ?x) WHERE { ?s ?p ?o }
SELECT * WHERE { ?s bif:contains "x" }
PREFIX bif: <http://e/> SELECT * WHERE { ?s bif:contains "x" }
SELECT (sql:rnd(1) AS ?x) WHERE {}
SELECT * WHERE { ?s <java:com.example.Property> ?o }
DEFINE get:soft "replace" SELECT * WHERE { ?s ?p ?o }
PRAGMA x SELECT * WHERE { ?s ?p ?o }
SELECT (LOAD_FILE("FILE") AS ?x) WHERE {}
SELECT (SLEEP(10) AS ?x) WHERE {}
SELECT * WHERE { ?s unknown:p ?o }
PREFIX xsd: <http://e/> SELECT (xsd:integer(?o) AS ?x) WHERE { ?s ?p ?o }
PREFIX e: <http://e/> PREFIX e: <http://f/> SELECT * WHERE { ?s e:p ?o }
BASE <file:FILE> SELECT * FROM <x> WHERE { ?s ?p ?o }
SELECT * WHERE { <<ex:ann ex:age 31>> ?p ?o }
SELECT * WHERE { ?s ?p ?o } VERSION "1.2"
SELECT *\x0b{ ?s ?p ?o }
SELECT *\xa0{ ?s ?p ?o }
SELECT * WHERE { ?s ?p "open }
SELECT * WHERE { ?s ?p ?o
"""

BENIGN = r"""
SELECT * WHERE { ?s ?p ?o }
SELECT ?s WHERE { ?s a ex:Person }
select distinct ?s where { ?s a ex:Person } order by ?s limit 2 offset 1
SELECT REDUCED ?s { ?s ex:age ?a . FILTER(?a > 40) }
SELECT ?s { ?s ex:age ?a FILTER(?a>=31&&?a<=45) }
SELECT ?s { ?s ex:age ?a FILTER(?a<32||?a>44) }
SELECT ?s { ?s ex:age ?a . ?t ex:age ?b FILTER(?a<?b&&?b>40) }
SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }
SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s ?p ?o }
SELECT (count( *) as ?n) where { ?s a ex:Person . }
SELECT ?p (COUNT(?o) AS ?n) { ?s ?p ?o } GROUP BY ?p HAVING (COUNT(?o) > 1) ORDER BY DESC(?n) ?p
SELECT (AVG(?a) AS ?m) (SUM(?a) AS ?t) (MIN(?a) AS ?l) (MAX(?a) AS ?h) (SAMPLE(?a) AS ?x) { ?s ex:age ?a }
SELECT (GROUP_CONCAT(DISTINCT STR(?a); SEPARATOR=", ") AS ?all) { ?s ex:age ?a }
SELECT (GROUP_CONCAT(?a) AS ?all) { ?s ex:note ?a }
SELECT ?d (SUM(?a) / COUNT(?a) AS ?m) { ?s ex:age ?a BIND(?a - 30 AS ?d) } GROUP BY ?d
SELECT ?x (COUNT(*) AS ?n) { ?s ex:age ?a } GROUP BY (?a + 1 AS ?x)
SELECT ?s ?h { ?s a ex:Person OPTIONAL { ?s ex:height ?h } }
SELECT ?s { { ?s ex:age 31 } UNION { ?s ex:age 45 } }
SELECT ?s { ?s a ex:Person MINUS { ?s ex:height ?h } }
SELECT ?s { ?s a ex:Person FILTER NOT EXISTS { ?s ex:height ?h } }
SELECT ?s { ?s a ex:Person FILTER EXISTS { ?s ex:height ?h } }
SELECT ?s { ?s a ex:Person . filter not exists {{ select ?x { ?x ex:height ?h } } filter(?s in (?x)) } }
SELECT distinct?s?p { ?s ?p ?o }
SELECT ?s { ?s ex:knows/ex:knows ?t }
SELECT ?s { ?s ex:knows+ ex:cid }
SELECT ?s { ?s ex:knows* ex:cid }
SELECT ?s { ?s ex:knows? ex:bob }
SELECT ?s { ex:cid ^ex:knows ?s }
SELECT ?s { ?s (ex:knows|^ex:knows)+ ex:ann }
SELECT ?s { ?s !(ex:knows|^ex:age|a) ?o }
SELECT ?s { ?s !ex:knows ?o }
SELECT ?s ?o { ?s (ex:knows/ex:knows*)|ex:height ?o }
SELECT ?s { VALUES ?s { ex:ann ex:bob } ?s a ex:Person }
SELECT * { VALUES (?s ?a) { (ex:ann 31) (ex:bob UNDEF) } ?s ex:age ?a }
SELECT ?s { ?s a ex:Person } VALUES ?s { ex:ann }
SELECT ?g ?s { GRAPH ?g { ?s ?p ?o } }
SELECT ?s { { SELECT ?s (MAX(?a) AS ?m) { ?s ex:age ?a } GROUP BY ?s } FILTER(?m = 45) }
ASK { ex:ann ex:knows ex:bob }
ask{}
ASK WHERE { ?s ex:age ?a FILTER(?a = 31) }
SELECT ?y { ?s ex:born ?b BIND(YEAR(?b) AS ?y) FILTER(MONTH(?b) = 2 && DAY(?b) = 3) }
SELECT (HOURS(NOW()) AS ?h) (MINUTES(NOW()) AS ?m) (SECONDS(NOW()) AS ?s) (TZ(NOW()) AS ?z) {}
SELECT (TIMEZONE(NOW()) AS ?t) {}
SELECT (xsd:integer("7") AS ?i) (xsd:decimal("7.5") AS ?d) (xsd:string(7) AS ?s) (xsd:boolean("true") AS ?b) {}
SELECT (xsd:double("1e3") AS ?d) (xsd:float("2") AS ?f) {}
SELECT (xsd:dateTime("2020-01-02T03:04:05Z") AS ?t) (xsd:date("2020-01-02") AS ?x) {}
SELECT (<http://www.w3.org/2001/XMLSchema#integer>("7") AS ?i) {}
SELECT (STRLEN(?l) AS ?n) (UCASE(?l) AS ?u) (LCASE(?l) AS ?w) { ?s <http://www.w3.org/2000/01/rdf-schema#label> ?l }
SELECT ?s { ?s ?p ?l FILTER(LANG(?l) = "en") }
SELECT ?s { ?s ?p ?l FILTER(LANGMATCHES(LANG(?l), "*")) }
SELECT ?s { ?s ?p ?l FILTER(REGEX(STR(?l), "^a", "i")) }
SELECT ?s { ?s ?p ?l FILTER(CONTAINS(LCASE(STR(?l)), "nn") && STRSTARTS(STR(?l), "A") && STRENDS(STR(?l), "n")) }
SELECT (SUBSTR("abc", 2) AS ?a) (REPLACE("abc", "b", "x") AS ?b) {}
SELECT (STRBEFORE("a-b", "-") AS ?c) (STRAFTER("a-b", "-") AS ?d) {}
SELECT (CONCAT("a", "b") AS ?a) (ENCODE_FOR_URI("a b") AS ?b) {}
SELECT (STRLANG("a", "en") AS ?c) (STRDT("1", xsd:integer) AS ?d) {}
SELECT (ABS(-1) AS ?a) (CEIL(1.2) AS ?b) (FLOOR(1.8) AS ?c) (ROUND(1.5) AS ?d) (RAND() AS ?e) {}
SELECT (MD5("a") AS ?a) (SHA1("a") AS ?b) (SHA256("a") AS ?c) (SHA384("a") AS ?d) (SHA512("a") AS ?e) {}
SELECT (IF(1 < 2, "y", "n") AS ?a) (COALESCE(?x, "none") AS ?b) (BOUND(?x) AS ?c) (sameTerm(1, 1) AS ?d) {}
SELECT (IRI("http://e/x") AS ?a) (URI("http://e/y") AS ?b) (BNODE() AS ?c) (UUID() AS ?d) (STRUUID() AS ?e) {}
SELECT ?o { ?s ?p ?o FILTER(isIRI(?o) || isURI(?o) || isBLANK(?o) || isLITERAL(?o) || isNUMERIC(?o)) }
SELECT ?o { ?s ?p ?o FILTER(DATATYPE(?o) = xsd:integer) }
SELECT ?s { ?s ex:age ?a FILTER(?a IN (31, 32)) FILTER(?a NOT IN (45)) }
SELECT ?s { ?s ex:age ?a FILTER(!(?a = 31) && -?a < +0) }
SELECT (?a * 2 + 1 - ?a / 2 AS ?x) { ?s ex:age ?a }
SELECT ?s { ?s ex:note "SERVICE <http://x/> # not a comment" }
SELECT ?s { ?s ex:note ?n FILTER(CONTAINS(?n, "INSERT") || CONTAINS(?n, 'FROM <file:/etc/passwd>') || true) }
SELECT ?s # SERVICE <http://x/> FROM <y>\nWHERE { ?s a ex:Person } # DROP ALL
PREFIX service: <http://example.org/> SELECT ?load { ?load service:age ?insert }
PREFIX : <http://example.org/> SELECT ?s { ?s :age ?from ; :knows ?o , ?o . ?s a :Person }
BASE <http://example.org/> SELECT ?s { ?s <age> 31 }
SELECT ?s { ?s <http://example.org/age> "31"^^<http://www.w3.org/2001/XMLSchema#integer> }
SELECT ?s { ?s ?p "A\u006Fnn", '''long " ' text''' , \"\"\"another ' " one\"\"\" }
SELECT ?s { ?s ?p "tab\t quote\" backslash\\ newline\n" }
SELECT ?s { ?s ?p "Zoë 東京 😀"@en-GB }
SELECT ?s { ?s ex:has\#hash\/slash ?o ; ex:per%20cent ?x }
SELECT ?s { ?s ex:knows [ ex:age 45 ] }
SELECT ?s { [] ex:knows ?s . _:b ex:knows ?s }
SELECT ?s { ?s ex:list (1 2 ?x) }
SELECT $s { $s ex:age 31.0 . FILTER(.5 < 1e3 && 1.5E-3 > 0) }
SELECT ?s { ?s ex:age ?a } ORDER BY ASC(?a) DESC(?s) (?a + 1)
SELECT ?größe { ?größe ex:height ?h }
"""


def lines(text: str) -> list[str]:
    """Queries one a line; control characters are written as escapes, \\u and \\t stay as the query has them."""
    for escape, character in CHARACTERS.items():
        text = text.replace(escape, character)
    return [re.sub(r"\\n(?=FROM|<|}|W)", "\n", line) for line in text.strip("\n").split("\n")]


class Canary:
    """A port that counts who connects, and a file whose name a query could use."""

    def __init__(self, folder: Path) -> None:
        self.connections = 0
        self.file = folder / "secret.ttl"
        self.file.write_text("<http://e/secret> <http://e/p> <http://e/o> .")
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sparql")


@pytest.fixture(scope="module")
def store(folder: Path) -> Path:
    """A store on disk, as another process would have made it."""
    (folder / "people.ttl").write_text(TURTLE, encoding="utf-8")
    making = (
        f"import pyoxigraph as o; s = o.Store({str(folder / 'store')!r}); s.load(path={str(folder / 'people.ttl')!r})"
    )
    subprocess.run([sys.executable, "-c", making], check=True)
    return folder / "store"


@pytest.fixture(scope="module")
def executor(store: Path) -> Iterator[RdfExecutor]:
    executor = RdfExecutor([store], prefixes=PREFIXES, workers=1)
    yield executor
    executor.close()


@pytest.fixture(scope="module")
def endpoint(store: Path, oxigraph_server) -> Iterator[SparqlEndpointExecutor]:
    executor = SparqlEndpointExecutor(oxigraph_server(store), prefixes=PREFIXES)
    yield executor
    executor.close()


@pytest.fixture(scope="module")
def canary(folder: Path) -> Iterator[Canary]:
    canary = Canary(folder)
    yield canary
    time.sleep(0.2)
    assert canary.connections == 0
    canary.close()


def sparql(text: str, **parameters) -> NativeQuery:
    return NativeQuery(Language.SPARQL, text, parameters)


def test_the_corpora_are_large_enough():
    assert len(set(lines(HOSTILE))) >= 60
    assert len(set(lines(BENIGN))) >= 60


@pytest.mark.parametrize("text", lines(HOSTILE))
def test_hostile_queries_are_refused(text: str, executor: RdfExecutor, canary: Canary):
    text = text.replace("PORT", str(canary.port)).replace("FILE", str(canary.file))
    with pytest.raises(QueryRejected):
        executor.execute(sparql(text))


def test_hostile_queries_do_not_reach_an_endpoint(endpoint: SparqlEndpointExecutor, canary: Canary):
    for text in lines(HOSTILE):
        with pytest.raises(QueryRejected):
            endpoint.execute(sparql(text.replace("PORT", str(canary.port)).replace("FILE", str(canary.file))))


def test_nothing_was_written(store: Path, executor: RdfExecutor):
    (row,) = executor.execute(sparql("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")).rows
    assert row == (TURTLE.count(" ;") + TURTLE.count(" .\n") - 1,)


@pytest.mark.parametrize("text", lines(BENIGN))
def test_benign_queries_give_what_the_engine_gives(text: str, executor: RdfExecutor, store: Path):
    """The same rows as the text that came in, with the source's prefixes, executed by pyoxigraph without a guard."""
    result = executor.execute(sparql(text))
    if any(word in text for word in DIFFERENT_EACH_TIME):
        return
    declared = "".join(f"PREFIX {name}: <{iri}> " for name, iri in PREFIXES.items() if f"PREFIX {name}:" not in text)
    columns, rows = RdfSession(Store.read_only(str(store)), union=True).run(declared + text, {})
    assert result.columns == tuple(columns)
    assert sorted(map(repr, result.rows)) == sorted(repr(loads(dumps(list(row)))) for row in rows)


def test_benign_queries_run_at_an_endpoint_with_the_same_rows(executor: RdfExecutor, endpoint: SparqlEndpointExecutor):
    for text in lines(BENIGN):
        if any(word in text for word in DIFFERENT_EACH_TIME):
            endpoint.execute(sparql(text))
            continue
        here, there = executor.execute(sparql(text)), endpoint.execute(sparql(text))
        assert there.columns == here.columns
        assert sorted(map(repr, there.rows)) == sorted(map(repr, here.rows)), text


def test_the_engine_behind_the_guard_is_read_only(executor: RdfExecutor):
    for text in ("INSERT DATA { <http://e/s> <http://e/p> 1 }", "CLEAR ALL", "CONSTRUCT WHERE { ?s ?p ?o }"):
        with pytest.raises(QueryFailed):
            executor.read(text, executor.limits)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT * { SERVICE <http://x/> {} }", "other servers"),
        ("SELECT * FROM <http://x/> {}", "its own data set"),
        ("DROP ALL", "write or load"),
        ("CONSTRUCT WHERE {}", "only SELECT and ASK"),
        ("SELECT * { ?s nope:p ?o }", "prefix that neither"),
        ("SELECT (<http://e/f>(1) AS ?x) {}", "not SPARQL's own: http://e/f"),
        ("", "neither SELECT nor ASK"),
        ("SELECT ?s WHERE ?s }", "no SPARQL 1.1 query"),
        ("SELECT * { ?s ?p ?o FILTER(" + "(" * 200 + "1" + ")" * 200 + ") }", "nested too deeply"),
        ("SELECT * { VALUES ?x { " + "1 " * MAX_TOKENS + "} }", "longer than"),
        ("SELECT * { ?s ?p '" + "x" * 60_000 + "' }", "longer than"),
        ("SELECT * { ?s ?p '\ud800' }", "no Unicode"),
    ],
)
def test_a_refusal_says_why(text: str, reason: str):
    with pytest.raises(QueryRejected, match=reason):
        SparqlGuard().checked(sparql(text))


def test_guarding_a_long_query_takes_bounded_time(within):
    text = "SELECT * { ?s ?p ?x FILTER(" + " || ".join(["?x = 1"] * (MAX_TOKENS // 4 - 5)) + ") }"
    with within(20):
        SparqlGuard().checked(sparql(text))


def test_the_copy_of_the_grammar_reads_what_the_grammar_reads():
    for text in lines(BENIGN):
        passed = SparqlGuard(PREFIXES).checked(sparql(text))
        ours, theirs = (re.sub(r"BNode\(.\w+.\)", "BNode", repr(read(passed))) for read in (parse, parseQuery))
        assert ours == theirs


def test_the_engine_gets_the_query_without_comments_and_escapes():
    guard = SparqlGuard({"ex": EX})
    passed = guard.checked(sparql("SELECT ?s # all of them\r\n{ ?s ex:name 'J\\u00FCrgen' }"))
    assert passed == f"PREFIX ex: <{EX}> SELECT ?s {{ ?s ex:name 'Jürgen' }}"


def test_declared_prefixes_win_over_those_of_the_source():
    guard = SparqlGuard({"ex": EX})
    text = "PREFIX ex: <http://other/> SELECT ?s { ?s ex:p 1 }"
    assert guard.checked(sparql(text)) == text


@pytest.mark.parametrize("prefixes", [{"a b": EX}, {"ex": "no iri"}, {"ex": "http://x/> SERVICE <y"}, {"bif": EX}])
def test_prefixes_of_a_source_are_checked(prefixes: dict[str, str]):
    with pytest.raises(QueryRejected):
        SparqlGuard(prefixes)


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        (31, 1), (Decimal(31), 0), ("x", 0), (Iri(EX + "bob"), 1), (date(1990, 2, 3), 1), (Literal("Ann", "", "en"), 1),
        ('" } SERVICE <http://x/> { ?a ?b ?c } #', 0), ("line\nbreak \\ '''", 0), (True, 0), (1.5, 0),
    ],
)  # fmt: skip
def test_parameters_are_bound_as_terms(value, rows: int, executor: RdfExecutor):
    assert len(executor.execute(sparql("SELECT ?p { ex:ann ?p ?value }", value=value))) == rows


@pytest.mark.parametrize("value", [Iri("x> SERVICE <y"), Literal("a", "", "en SERVICE"), None, b"x", ["a"]])
def test_parameters_that_are_no_terms_are_refused(value):
    with pytest.raises(QueryRejected):
        SparqlGuard().checked(sparql("SELECT ?s { ?s ?p ?value }", value=value))


def test_a_parameter_that_the_query_does_not_have_is_refused():
    with pytest.raises(QueryRejected, match="no variable of the query"):
        SparqlGuard().checked(sparql("SELECT ?s { ?s ?p ?o }", value=1))


LABELS = "SERVICE wikibase:label { bd:serviceParam wikibase:language 'en' }"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT ?s ?sLabel {{ ?s ?p ?o . {LABELS} }}",
        f"PREFIX wikibase: <http://wikiba.se/ontology#> SELECT ?s {{ ?s ?p ?o . {LABELS} }}",
        "PREFIX w: <http://wikiba.se/ontology#> SELECT ?s { ?s ?p ?o . SERVICE w:label { ?s ?p 1 } }",
        "SELECT ?s { SERVICE <http://wikiba.se/ontology#label> { ?s ?p ?o } }",
        "SELECT ?s { { SELECT ?s { service <http://e.org/sparql> { ?s ?p ?o } } } }",
    ],
)
def test_services_that_a_source_allows(text: str):
    guard = SparqlGuard({}, services=("wikibase:label", "http://e.org/sparql"))
    assert guard.checked(sparql(text))
    with pytest.raises(QueryRejected):
        SparqlGuard({"bd": "http://www.bigdata.com/rdf#", "wikibase": "http://wikiba.se/ontology#"}).checked(
            sparql(text)
        )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?s { SERVICE <http://127.0.0.1/> { ?s ?p ?o } }",
        "SELECT ?s { SERVICE SILENT wikibase:label { ?s ?p ?o } }",
        "SELECT ?s { BIND(wikibase:label AS ?e) SERVICE ?e { ?s ?p ?o } }",
        "PREFIX wikibase: <http://127.0.0.1/> SELECT ?s { SERVICE wikibase:label { ?s ?p ?o } }",
        "BASE <http://wikiba.se/> SELECT ?s { SERVICE <ontology#label> { ?s ?p ?o } }",
        "SELECT ?s { SERVICE wikibase:labels { ?s ?p ?o } }",
        "SELECT ?s { SERVICE wikibase:label { SERVICE <http://127.0.0.1/> { ?s ?p ?o } } }",
        "SELECT ?s { SERVICE wikibase:label { ?s ?p ?o } } VALUES ?s { <x:y> } SERVICE",
        "SELECT ?s { SERVICE 'http://wikiba.se/ontology#label' { ?s ?p ?o } }",
    ],
)
def test_services_that_it_does_not_allow(text: str):
    with pytest.raises(QueryRejected):
        SparqlGuard({}, services=("wikibase:label",)).checked(sparql(text))


def test_a_service_that_is_none():
    for service in ("label", "java:x", "nope:label"):
        with pytest.raises(QueryRejected, match="not an IRI that SERVICE may call"):
            SparqlGuard({}, services=(service,))


def test_an_endpoint_gets_the_service(serve):
    from helios.executors.sparql_endpoint import SparqlEndpointExecutor

    seen = []

    def answer(handler) -> None:
        seen.append(handler.form["query"][0])
        body = b'{"head": {"vars": ["s"]}, "results": {"bindings": []}}'
        handler.send_response(200)
        handler.send_header("Content-Type", "application/sparql-results+json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    executor = SparqlEndpointExecutor(serve(answer), services=("wikibase:label",))
    try:
        executor.execute(sparql(f"SELECT ?s {{ ?s ?p ?o . {LABELS} }}"))
    finally:
        executor.close()
    assert LABELS in seen[0] and "PREFIX wikibase: <http://wikiba.se/ontology#>" in seen[0]
