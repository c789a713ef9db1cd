"""The whole layer over small sources: select, formulate, execute, repair, consolidate."""

import json

import pytest
import typer
from rich.console import Console

from helios.config import load_config
from helios.executors.base import Language, NativeQuery, ResultSet
from helios.executors.values import GraphNode, GraphRelationship
from helios.routing.answering import same_answer
from helios.routing.cli import omni_json, print_answer
from helios.routing.consolidation import Consolidator, items_of
from helios.routing.evidence import Execution, MadeBy
from helios.routing.formulation.base import Candidate
from helios.routing.formulation.generator import SqlGenerator
from helios.routing.formulation.llm import LlmFormulator
from helios.routing.interrogation import Interrogator
from helios.routing.lexical_selection import LexicalDenseSelector
from helios.routing.llm_selection import LlmSelector
from helios.routing.omni import OmniEngine
from helios.routing.selection import OracleSelector
from helios.sources.registry import Registry

QUESTION = "In which country is Ole Group?"


class CountryOf:
    """Reads every question as one for a country."""

    def formulate(self, question, source):
        table = source.descriptor().schema.tables[0].name
        text = f"SELECT country FROM {table} WHERE name = 'Ole Group'"
        return [Candidate(NativeQuery(Language.SQL, text), 0.9, "country of Ole Group")]


def omni(sources, likeness, config=None, *, selector=None, formulators=None, model=None):
    config = config or load_config(overrides=["advanced.routing.source_seconds=5"])
    writer = LlmFormulator(model, config.language_model, likeness) if model else None
    return OmniEngine(
        lambda: sources,
        selector or LexicalDenseSelector(likeness),
        Interrogator(config.advanced.routing, formulators or {}, writer),
        Consolidator(likeness),
        config,
        model=model,
    )


def test_a_generated_answer_cites_rows_and_query(likeness, shop, films, papers):
    answer = omni([shop, films, papers], likeness, formulators={Language.SQL: CountryOf()}).ask(QUESTION)
    assert answer.answer is not None and answer.answer.text == "Norway" and answer.answer.rows == (0,)
    assert answer.answer.query.text.startswith("SELECT country FROM customer") and answer.answer.source == "shop"
    best = answer.evidence[0]
    assert best.source == "shop" and best.made_by is MadeBy.GENERATOR and best.rows == (("Norway",),)
    assert sum(best.parts.values()) == pytest.approx(best.score)
    assert set(answer.timings_ms) == {"select", "formulate and execute", "consolidate", "total"}


def test_a_percentage_is_said_as_one(likeness, shop, films):
    question = "What percentage of customers are in Norway?"
    answer = omni([shop, films], likeness, formulators={Language.SQL: SqlGenerator()}).ask(question)
    assert answer.answer is not None and answer.answer.text == "50 %"


def test_conflicts_are_shown(likeness, shop, branch):
    engine = omni([shop, branch], likeness, formulators={Language.SQL: CountryOf()})
    answer = engine.ask(QUESTION)
    (conflict,) = answer.conflicts
    assert {one.text for one in conflict.answers} == {"Norway", "Denmark"}
    assert "the sources differ" in str(conflict)


def test_one_dead_source_degrades_the_answer_alone(likeness, shop, films):
    gold = OracleSelector({QUESTION: ["films", "shop"]})
    films.dead = True
    answer = omni([shop, films], likeness, selector=gold, formulators={Language.SQL: CountryOf()}).ask(QUESTION)
    assert answer.answer is not None and answer.answer.text == "Norway" and answer.degraded
    assert any(note.startswith("films:") and "does not answer" in note for note in answer.notes)


def test_sources_that_cannot_be_opened_are_notes(scripted_llm, model, config, likeness, shop, tmp_path, monkeypatch):
    """A real registry: one secret is not set, one file is gone, one is no database; the fourth source answers."""
    monkeypatch.delenv("HELIOS_NEVER_SET", raising=False)
    (tmp_path / "text.sqlite").write_text("no database " * 100)
    file = tmp_path / "sources.yaml"
    file.write_text(f"""
sources:
  shop: {{kind: sqlite, path: {shop.path}}}
  locked: {{kind: postgresql, url: "postgresql://reader@127.0.0.1:1/x", password_env: HELIOS_NEVER_SET}}
  gone: {{kind: sqlite, path: gone.sqlite}}
  text: {{kind: sqlite, path: text.sqlite}}
""")

    def script(body):
        schema = json.dumps(body["response_format"])
        if "ChosenSources" in schema:
            return scripted_llm.as_json({"sources": ["shop"]})
        if "ChosenEvidence" in schema:
            return scripted_llm.as_json({"numbers": [1], "sentence": ""})
        query = "SELECT country FROM customer WHERE name = 'Ole Group'"
        return scripted_llm.as_json({"explanation": "its country", "query": query})

    scripted_llm.script = script
    with Registry.open(file) as registry:
        sources = registry.sources()
        selector = LlmSelector(model, config.language_model, LexicalDenseSelector(likeness))
        answer = omni(sources, likeness, config, selector=selector, model=model).ask(QUESTION)
        assert answer.answer.text == "Norway" and answer.degraded
        for name, said in (("locked", "HELIOS_NEVER_SET"), ("gone", "no such file"), ("text", "cannot be read")):
            assert any(note.startswith(f"{name}: not considered") and said in note for note in answer.notes)
        asked = OracleSelector({QUESTION: [source.name for source in sources]})
        engine = omni(sources, likeness, config, selector=asked, formulators={Language.SQL: CountryOf()})
        answer = engine.ask(QUESTION)
        assert answer.answer.text == "Norway" and answer.degraded
        assert any(note.startswith("locked: ") and "HELIOS_NEVER_SET" in note for note in answer.notes)


def test_a_late_source_is_given_up(likeness, shop, papers):
    papers.pause = 20.0
    config = load_config(overrides=["advanced.routing.source_seconds=0.3"])
    gold = OracleSelector({QUESTION: ["papers", "shop"]})
    engine = omni([shop, papers], likeness, config, selector=gold, formulators={Language.SQL: CountryOf()})
    answer = engine.ask(QUESTION)
    assert answer.timings_ms["total"] < 10_000 and answer.answer is not None
    assert "papers: no reply before the deadline" in answer.notes
    papers.pause = 0.0


def test_a_callers_deadline_ends_the_waiting(likeness, shop, papers):
    papers.pause = 20.0
    config = load_config(overrides=["advanced.routing.source_seconds=30"])
    gold = OracleSelector({QUESTION: ["papers", "shop"]})
    engine = omni([shop, papers], likeness, config, selector=gold, formulators={Language.SQL: CountryOf()})
    answer = engine.ask(QUESTION, seconds=1.0)
    assert answer.timings_ms["total"] < 10_000
    assert "papers: no reply before the deadline" in answer.notes
    assert answer.degraded
    papers.pause = 0.0


def test_without_a_query_the_evidence_is_said_to_be_keyword(likeness, shop):
    answer = omni([shop], likeness).ask(QUESTION)
    assert answer.answer is None and answer.evidence[0].made_by is MadeBy.KEYWORD
    assert any("keyword evidence" in note for note in answer.notes)
    assert any("found instead" in note for note in answer.notes)


def test_nothing_is_asked_where_no_source_fits(likeness, shop):
    answer = omni([shop], likeness).ask("Quel temps fera-t-il demain ?")
    assert answer.selection.abstained and not answer.evidence and not shop.queries


def test_every_stage_with_a_model(scripted_llm, model, config, likeness, shop, papers):
    def script(body):
        schema = json.dumps(body["response_format"])
        if "ChosenSources" in schema:
            return scripted_llm.as_json({"sources": ["shop", "papers"]})
        if "WrittenPassage" in schema:
            return scripted_llm.as_json({"passage": "Ole Group is a Norwegian company."})
        if "ChosenEvidence" in schema:
            return scripted_llm.as_json({"numbers": [1], "sentence": "Ole Group is in Norway."})
        tried = "no such column" in body["messages"][-1]["content"]
        query = "SELECT country FROM customer WHERE name = 'Ole Group'" if tried else "SELECT land FROM customer"
        return scripted_llm.as_json({"explanation": "its country", "query": query})

    scripted_llm.script = script
    selector = LlmSelector(model, config.language_model, LexicalDenseSelector(likeness))
    answer = omni([shop, papers], likeness, config, selector=selector, model=model).ask(QUESTION)
    assert answer.answer is not None and answer.answer.text == "Norway" and not answer.degraded
    assert answer.selection.made_by == "language model"
    assert answer.sentence == "Ole Group is in Norway." and len(answer.evidence) == 1 and answer.left_out
    assert "choice" in answer.evidence[0].parts and "choice" not in answer.left_out[0].parts
    assert answer.replies[0].attempts[0].outcome.startswith("failed: no such column")


def test_a_model_that_is_down_degrades_every_stage(scripted_llm, model, config, likeness, shop, papers):
    scripted_llm.say(scripted_llm.Response(status=500))
    selector = LlmSelector(model, config.language_model, LexicalDenseSelector(likeness))
    engine = omni(
        [shop, papers], likeness, config, selector=selector, formulators={Language.SQL: CountryOf()}, model=model
    )
    answer = engine.ask(QUESTION)
    assert answer.degraded and answer.answer is not None and answer.answer.made_by is MadeBy.GENERATOR
    assert any("chose no sources" in note for note in answer.notes)
    assert any("wrote no query" in note for note in answer.notes)


def test_paths_are_said_in_their_direction():
    actor = GraphNode("1", ("Person",), {"name": "Mira Lund"})
    film = GraphNode("2", ("Movie",), {"title": "The Harbour"})
    row = (film, GraphRelationship("ACTED_IN", "1", "2"), actor)
    result = ResultSet(("n", "r", "m"), (row,))
    query = NativeQuery(Language.CYPHER, "MATCH ...")
    (item,) = items_of(Execution("g", query, MadeBy.KEYWORD, result, 0.2), Language.CYPHER, {})
    assert item.text.startswith("Person Mira Lund acted in Movie The Harbour")


def test_answers_are_the_same_by_value():
    assert same_answer([2, "A"], ["a", 2.0]) and same_answer(["2"], [2]) and not same_answer([1], [True])
    assert not same_answer([1], [1, 1])


def test_the_answer_as_json_and_for_people(likeness, shop, branch):
    answer = omni([shop, branch], likeness, formulators={Language.SQL: CountryOf()}).ask(QUESTION)
    document = json.loads(json.dumps(omni_json(answer)))
    assert document["answer"]["text"] in ("Norway", "Denmark") and document["answer"]["rows"] == [0]
    assert document["evidence"][0]["query"].startswith("SELECT country") and document["conflicts"]
    assert document["sources"][0]["attempts"][0]["outcome"] == "rows"
    console = Console(record=True, width=200)
    print_answer(answer, console)
    shown = console.export_text()
    assert "the sources differ" in shown and "row 0 of the query by the generator" in shown


def test_ask_needs_an_index_or_sources(tmp_path):
    from helios.reading.cli import ask_command

    with pytest.raises(typer.BadParameter, match="give one of"):
        ask_command(["Who?"], index=None, sources=None, k=None, llm=None, model=None)
    with pytest.raises(typer.BadParameter, match="give one of"):
        ask_command(["Who?"], index=tmp_path, sources=tmp_path, k=None, llm=None, model=None)
    with pytest.raises(typer.BadParameter, match="give one of"):
        ask_command([str(tmp_path), "Who?"], index=tmp_path, sources=None, k=None, llm=None, model=None)
