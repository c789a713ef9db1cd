"""What people know of a source: taught by command, shown in descriptors and prompts, recalled."""

import json
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.config import load_config
from helios.errors import ConfigError
from helios.executors.base import Language
from helios.routing.omni import OmniEngine
from helios.sources.descriptor_text import text as shown
from helios.sources.knowledge import Example, Knowledge, read_knowledge, recalled
from helios.sources.linking import linked
from helios.sources.registry import Registry

SCHEMA = """
CREATE TABLE cust (id INTEGER PRIMARY KEY, nm TEXT, city TEXT, phone TEXT);
CREATE TABLE ord (id INTEGER PRIMARY KEY, cid INTEGER, amt INTEGER);
INSERT INTO cust VALUES (1, 'Ole Group', 'Oslo', 'tel-1'), (2, 'Nora Group', 'Oslo', 'tel-2'),
    (3, 'Per Berg', 'Bergen', 'tel-3'), (4, 'Ida O''Dal', 'New York', 'tel-4');
INSERT INTO ord VALUES (1, 1, 70), (2, 1, 80), (3, 2, 5), (4, 3, 200);
"""
SPENDERS = "Which big spenders live in Oslo?"
SPENDERS_QUERY = (
    "SELECT nm FROM cust WHERE city = 'Oslo' AND (SELECT sum(amt) FROM ord WHERE cid = cust.id) > 100 ORDER BY nm"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as connection, connection:
        connection.executescript(SCHEMA)
    connection.close()
    (tmp_path / "helios-sources.yaml").write_text("sources:\n  shop: {kind: sqlite, path: shop.sqlite}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def helios(*arguments: str):
    return CliRunner().invoke(build_app(), list(arguments))


def asked(question: str) -> dict:
    result = helios("ask", question, "--sources", "helios-sources.yaml", "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_question_is_taught_recalled_and_forgotten(folder: Path):
    before = asked(SPENDERS)
    assert before["answer"] is None or before["answer"]["text"] != "Ole Group"
    taught = helios("sources", "teach", "shop", SPENDERS, SPENDERS_QUERY, "--json")
    assert taught.exit_code == 0, taught.output
    assert json.loads(taught.stdout) == {"taught": SPENDERS, "rows": 1, "examples": 1}
    answer = asked("which big spenders live in  Oslo")["answer"]
    assert (answer["text"], answer["made_by"]) == ("Ole Group", "taught")
    assert asked("Which big spenders live in bergen?")["answer"]["text"] == "Per Berg"
    assert SPENDERS_QUERY in helios("sources", "taught", "shop").stdout
    assert helios("sources", "forget", "shop", "which big spenders live in oslo").exit_code == 0
    assert helios("sources", "forget", "shop", SPENDERS).exit_code == 1
    assert "nothing was taught" in helios("sources", "taught", "shop").stdout


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("DELETE FROM cust", "nothing was taught, since the query does not run"),
        ("SELECT nme FROM cust", "no such column: nme"),
    ],
)
def test_a_query_that_does_not_run_is_not_taught(folder: Path, query: str, said: str):
    refused = helios("sources", "teach", "shop", "Who?", query)
    assert refused.exit_code == 1 and said in str(refused.exception or refused.output) + refused.output
    assert not (folder / "helios-sources.knowledge").exists()


def test_what_is_known_stands_in_the_descriptor(folder: Path):
    for arguments in (
        ("cust", "people who buy"), ("cust.nm", "family name last"), ("--word", "regular", "who bought twice"),
        ("--metric", "revenue", "SUM(ord.amt)"), ("--join", "ord.cid = cust.id"),
    ):  # fmt: skip
        noted = helios("sources", "describe", "shop", *arguments)
        assert noted.exit_code == 0, noted.output
    for arguments in (("nowhere.x", "not there"), ("--join", "ord.cid = nowhere.id"), ("cust.nam", "a slip")):
        refused = helios("sources", "describe", "shop", *arguments)
        assert refused.exit_code == 1
        assert "has no table or column" in refused.output
    assert "did you mean cust.nm" in refused.output
    assert "nothing changed" in helios("sources", "describe", "shop", "cust", "people who buy").output
    assert "nothing was taken out" in helios("sources", "describe", "shop", "ord", "--remove").output
    with Registry.open("helios-sources.yaml") as registry:
        descriptor = registry.source("shop").descriptor()
        told = shown(descriptor)
        for line in ("people who buy", "family name last", "regular: who bought twice", "revenue: SUM(ord.amt)"):
            assert line in told
        assert "FOREIGN KEY (cid) REFERENCES cust (id)" in told and "nowhere" not in told
        both = linked(descriptor, "regular people", limit=2)
        assert {key.table for table in both.schema.tables for key in table.foreign_keys} == {"cust"}
    assert asked("How many orders has Ole Group?")["selection"]["sources"][0]["name"] == "shop"
    assert helios("sources", "describe", "shop", "ord.cid = cust.id", "--join", "--remove").exit_code == 0
    with Registry.open("helios-sources.yaml") as registry:
        assert "FOREIGN KEY" not in shown(registry.source("shop").descriptor())


def test_words_of_people_choose_the_source(folder: Path):
    """The question has no word of the schema; what was taught has."""
    question = "What is the turnover of the regulars?"
    assert not asked(question)["selection"]["sources"]
    helios("sources", "describe", "shop", "--metric", "turnover", "SUM(ord.amt)")
    helios("sources", "describe", "shop", "--word", "regulars", "customers with two orders")
    assert [source["name"] for source in asked(question)["selection"]["sources"]] == ["shop"]


def test_similar_examples_are_shown_to_a_model(folder: Path, scripted_llm):
    for number in range(6):
        helios("sources", "teach", "shop", f"How many things of sort {number}?", f"SELECT {number} FROM ord LIMIT 1")
    helios("sources", "teach", "shop", SPENDERS, SPENDERS_QUERY)
    scripted_llm.say(scripted_llm.as_json({"explanation": "x", "query": "SELECT 1"}))
    config = load_config(overrides=[f"llm.base_url={scripted_llm.url}", "llm.model=scripted"])
    with OmniEngine.open("helios-sources.yaml", config=config) as engine:
        engine.ask("Which spenders are big in Bergen, and who are they?")
    prompts = json.dumps([request for request in scripted_llm.requests])
    assert "queries that people have checked" in prompts and "sum(amt)" in prompts
    assert prompts.count("things of sort") <= 3 * len(scripted_llm.requests)


EXAMPLE = Example(question=SPENDERS, query=SPENDERS_QUERY)
PRICED = Example(question="Which orders are over 100?", query="SELECT id FROM ord WHERE amt > 100")
BOTH = Example(question="Which orders of 4 pieces cost over 0?", query="SELECT id FROM ord WHERE n = 4 AND amt > 0")
LIKE = Example(question='Who is called "Ole"?', query="SELECT nm FROM cust WHERE nm LIKE '%Ole%'")
TWICE = Example(question="Is Oslo like Oslo?", query="SELECT 'Oslo'")
CYPHER = Example(question="Who lives in Oslo?", query="MATCH (p:Person {city: 'Oslo'}) RETURN p.name")
SPARQL = Example(question="Who lives in Oslo?", query='SELECT ?s { ?s <http://e.org/city> "Oslo" }')
STORED = {"new york": "New York", "ida o'dal": "Ida O'Dal", "per": "Per", 'a "b"': 'A "B"'}


@pytest.mark.parametrize(
    ("example", "language", "question", "query"),
    [
        (EXAMPLE, Language.SQL, "Which big spenders live in New York?", SPENDERS_QUERY.replace("Oslo", "New York")),
        (EXAMPLE, Language.SQL, "Which big spenders live in ida o'dal", SPENDERS_QUERY.replace("Oslo", "Ida O''Dal")),
        (EXAMPLE, Language.SQL, "Which big spenders live in Nowhere?", None),
        (EXAMPLE, Language.SQL, "Which big spenders live in Oslo and have a dog?", None),
        (EXAMPLE, Language.SQL, "Which big spenders do not live in Oslo?", None),
        (PRICED, Language.SQL, "Which orders are over 20.5?", "SELECT id FROM ord WHERE amt > 20.5"),
        (PRICED, Language.SQL, "Which orders are over many?", None),
        (PRICED, Language.SQL, "Which orders are over 1; DROP TABLE ord?", None),
        (BOTH, Language.SQL, "Which orders of 7 pieces cost over 9?", "SELECT id FROM ord WHERE n = 7 AND amt > 9"),
        (LIKE, Language.SQL, 'Who is called "Per"?', "SELECT nm FROM cust WHERE nm LIKE '%Per%'"),
        (TWICE, Language.SQL, "Is Oslo like New York?", None),
        (CYPHER, Language.CYPHER, "Who lives in ida o'dal?", "MATCH (p:Person {city: 'Ida O\\'Dal'}) RETURN p.name"),
        (SPARQL, Language.SPARQL, 'Who lives in a "b"?', 'SELECT ?s { ?s <http://e.org/city> "A \\"B\\"" }'),
    ],
)
def test_a_taught_question_with_other_literals(example, language, question, query):
    found = recalled(question, Knowledge(examples=(example,)), language, STORED.get)
    assert (found.query if found else None) == query


def test_a_file_by_hand_is_read_and_slips_are_named(folder: Path, caplog: pytest.LogCaptureFixture):
    path = folder / "helios-sources.knowledge" / "shop.yaml"
    helios("sources", "teach", "shop", SPENDERS, SPENDERS_QUERY)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with Registry.open("helios-sources.yaml") as registry:
        shop = registry.source("shop")
        assert shop.descriptor().glossary == ()
        path.write_text("glossary: {regular: who bought twice}\n")
        assert shop.descriptor().glossary == (("regular", "who bought twice"),)
        path.write_text("glosary: {}\n")
        assert shop.descriptor().glossary == () and "glosary" in caplog.text
    for text, said in (
        ("joins: [a = b]", "joins: expected `table.column"),
        ("examples: [{question: x}]", "examples.0.query"),
    ):
        path.write_text(text)
        with pytest.raises(ConfigError, match=said):
            read_knowledge(path)
    assert helios("sources", "taught", "shop").exit_code == 1


def test_what_may_not_be_seen_is_not_shown_by_examples(folder: Path):
    helios("sources", "teach", "shop", "Which phone has Ole Group?", "SELECT phone FROM cust WHERE nm = 'Ole Group'")
    helios("sources", "describe", "shop", "cust.phone", "private")
    assert asked("Which phone has Ole Group?")["answer"]["text"] == "tel-1"
    (folder / "helios-sources.yaml").write_text(
        "sources:\n  shop: {kind: sqlite, path: shop.sqlite, access: {exclude: [cust.phone]}}\n"
    )
    with Registry.open("helios-sources.yaml") as registry:
        shop = registry.source("shop")
        assert shop.examples("Which phone has Ole Group?") == () and "private" not in shown(shop.descriptor())
    answer = asked("Which phone has Ole Group?")
    assert "tel-1" not in json.dumps(answer)
