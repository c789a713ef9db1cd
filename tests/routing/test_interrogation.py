"""One source asked one question: formulation by a scripted model, repair, generators, keyword evidence."""

from datetime import date

import pytest

from helios.config import AdvancedRoutingSettings
from helios.executors.base import Language, NativeQuery
from helios.routing.consolidation import results_of
from helios.routing.evidence import MadeBy
from helios.routing.formulation.base import Candidate
from helios.routing.formulation.llm import LlmFormulator, normalised
from helios.routing.interrogation import Interrogator
from helios.routing.keyword import keyword_evidence, named_values
from helios.routing.selection import Selection
from helios.routing.stored import compared
from helios.sources.base import ValueHit
from helios.sources.descriptor import GraphSchema

QUESTION = "What is the total amount of purchases of Ole Group?"
GOOD = "SELECT SUM(amount) AS total FROM purchase JOIN customer ON customer.id = customer_id WHERE name = 'Ole Group'"


def written(llm, *queries):
    llm.say(*(llm.as_json({"explanation": "total amount", "query": query}) for query in queries))


@pytest.fixture
def asker(model, llm_settings, likeness):
    return Interrogator(AdvancedRoutingSettings(repairs=2), writer=LlmFormulator(model, llm_settings, likeness))


class Generator:
    """Queries with the confidences that a test wants."""

    def __init__(self, *candidates: tuple[str, float]) -> None:
        self.candidates = candidates

    def formulate(self, question, source):
        return [Candidate(NativeQuery(Language.SQL, text), sure, "as read") for text, sure in self.candidates]


class Faulty:
    """A formulator with a fault of its own."""

    def formulate(self, question, source):
        raise IndexError("list index out of range")


def test_a_fault_of_the_rules_costs_the_query_alone(shop, caplog):
    reply = Interrogator(AdvancedRoutingSettings(), {Language.SQL: Faulty()}).ask("Who is Ole Group?", shop)
    assert reply.degraded and [execution.made_by for execution in reply.executions] == [MadeBy.KEYWORD]
    assert reply.notes[0] == "formulation failed (IndexError); please report it with the question"
    assert "list index out of range" in caplog.text and "Ole" not in caplog.messages[0]


def test_a_query_of_the_model_is_run(scripted_llm, asker, shop):
    written(scripted_llm, GOOD)
    reply = asker.ask(QUESTION, shop)
    (execution,) = reply.executions
    assert execution.result.rows == ((50.0,),) and execution.made_by is MadeBy.MODEL
    prompt = scripted_llm.requests[0]["messages"]
    assert "SQL" in prompt[0]["content"] and "CREATE TABLE purchase" in prompt[1]["content"]
    assert "'Ole Group' of the question is stored as 'Ole Group' in customer.name" in prompt[1]["content"]
    assert "dialect is sqlite" in prompt[0]["content"] and "strftime" in prompt[0]["content"]
    assert "date_trunc" not in prompt[0]["content"]  # the guard of SQLite does not know it
    assert f"Today is {date.today().isoformat()}" in prompt[1]["content"]


def test_a_failure_is_shown_and_repaired(scripted_llm, asker, shop):
    written(scripted_llm, "SELECT total FROM purchase", GOOD)
    reply = asker.ask(QUESTION, shop)
    assert reply.answered and [bool(attempt.outcome) for attempt in reply.attempts] == [True, False]
    second = scripted_llm.requests[1]["messages"][-1]["content"]
    assert "no such column: total" in second and "SELECT total FROM purchase" in second


def test_an_empty_result_and_a_refused_query_are_repaired(scripted_llm, asker, shop):
    written(scripted_llm, "SELECT name FROM customer WHERE name = 'ole'", "DROP TABLE customer", GOOD)
    reply = asker.ask(QUESTION, shop)
    assert reply.answered
    assert [attempt.outcome for attempt in reply.attempts][:2] == [
        "no rows",
        "refused by the guard: only SELECT is allowed: DROP",
    ]
    assert "refused by the guard" in scripted_llm.requests[2]["messages"][-1]["content"]


def test_an_empty_result_is_an_answer_if_the_model_stands_by_it(scripted_llm, asker, shop):
    none = "SELECT name FROM customer WHERE country = 'Spain'"
    written(scripted_llm, none, none)
    reply = asker.ask("Which customers are from Spain?", shop)
    (execution,) = [each for each in reply.executions if each.made_by is MadeBy.MODEL]
    assert execution.result.rows == () and len(scripted_llm.requests) == 2 and not reply.degraded
    (result,) = results_of(Selection((), "test"), [reply])
    assert result.answer().text == "none: no row matches" and result.answer().rows == ()


def test_an_empty_result_of_a_taught_query_is_the_answer(scripted_llm, asker, shop):
    shop.examples = lambda question: ()
    shop.recall = lambda question: NativeQuery(Language.SQL, "SELECT name FROM customer WHERE country = 'Spain'")
    (execution,) = asker.ask("Which customers are from Spain?", shop).executions
    assert execution.made_by is MadeBy.TAUGHT and execution.result.rows == () and not scripted_llm.requests


def test_a_repair_knows_what_is_stored(scripted_llm, asker, shop):
    written(scripted_llm, "SELECT country FROM customer WHERE name = 'Ole Grupp'", GOOD)
    shop.find_values = lambda phrases, *, limit=5: (ValueHit(phrases[0], "Ole Group", ("customer", "name"), 0.8),)
    assert asker.ask("Where is Ole Grupp?", shop).answered
    prompt = scripted_llm.requests[1]["messages"][-1]["content"]
    assert "no rows; customer.name holds no 'Ole Grupp'; the nearest there: 'Ole Group'" in prompt
    assert "'Ole Grupp' of the question is stored as" not in prompt  # no whole value


def test_repairs_stop_where_another_source_has_the_name(scripted_llm, asker, shop, films):
    written(scripted_llm, "SELECT id FROM customer WHERE name = 'Mira Lund'", GOOD)
    reply = asker.ask("What did Mira Lund buy?", shop, others=[films])
    assert len(scripted_llm.requests) == 1 and not reply.executions and not reply.degraded
    assert reply.notes == ("the source does not hold 'Mira Lund', which films holds",)
    written(scripted_llm, "SELECT id FROM customer WHERE name = 'Mira Lund'", GOOD)
    assert asker.ask("What did Mira Lund buy?", shop).answered  # nobody has the name: the repair goes on


def test_not_in_this_source_is_honoured(scripted_llm, asker, shop):
    scripted_llm.say(scripted_llm.as_json({"explanation": "no films here", "query": ""}))
    reply = asker.ask("Which films did Ole Group produce?", shop)
    assert not reply.executions and not reply.attempts and len(scripted_llm.requests) == 1
    assert reply.notes == ("the language model holds that the source cannot answer: no films here",)


def test_texts_that_a_query_compares_with(shop):
    def of(text, language=Language.SQL, schema=shop.schema):
        return [(each.text, each.table, each.column) for each in compared(NativeQuery(language, text), schema)]

    assert of("SELECT 1 FROM customer AS c WHERE c.name = 'Ole' AND c.id = '7'") == [("Ole", "customer", "name")]
    assert of("SELECT 1 FROM customer, purchase WHERE country LIKE '%way'") == [("way", "customer", "country")]
    assert of("SELECT 'x' AS label FROM customer") == [] and of("SELECT FROM WHERE") == []
    graph = GraphSchema((), ())
    assert of("MATCH (n:A {name: 'It\\'s'}) WHERE n.b = \"xy\" RETURN n", Language.CYPHER, graph) == [
        ("It's", "", "name"), ("xy", "", "b"),
    ]  # fmt: skip


def test_a_generators_empty_result_is_kept_beside_keyword_evidence(shop):
    none = ("SELECT name FROM customer WHERE country = 'Spain'", 0.9)
    reply = Interrogator(AdvancedRoutingSettings(), {Language.SQL: Generator(none)}).ask("Ole Group in Spain", shop)
    assert [each.made_by for each in reply.executions] == [MadeBy.GENERATOR, MadeBy.KEYWORD]
    assert reply.executions[0].result.rows == ()


@pytest.mark.parametrize(("second", "rows"), [(0.1, ()), (0.5, (("Ole Group",),))])
def test_a_far_less_likely_query_takes_no_empty_results_place(shop, second, rows):
    """That nothing matches is an answer too; only a query that is about as likely is tried after it."""
    none, some = (
        "SELECT name FROM customer WHERE country = 'Spain'",
        "SELECT name FROM customer WHERE country = 'Norway'",
    )
    generator = Generator((none, 0.7), (some, second))
    reply = Interrogator(AdvancedRoutingSettings(sql_confidence=0.0), {Language.SQL: generator}).ask("In Spain?", shop)
    assert reply.executions[0].made_by is MadeBy.GENERATOR and reply.executions[0].result.rows == rows


def test_the_same_query_is_never_run_twice(scripted_llm, asker, shop):
    written(scripted_llm, "SELECT nothing FROM customer", "select  Nothing\nfrom CUSTOMER ;")
    reply = asker.ask(QUESTION, shop)
    assert [query for query in shop.queries if "nothing" in query.lower()] == ["SELECT nothing FROM customer"]
    assert not reply.answered and reply.degraded
    assert any("query again" in note for note in reply.notes)


def test_repairs_end_after_n(scripted_llm, asker, shop):
    written(scripted_llm, "SELECT a FROM customer", "SELECT b FROM customer", "SELECT c FROM customer", GOOD)
    reply = asker.ask(QUESTION, shop)
    assert len(scripted_llm.requests) == 3 and not reply.answered
    assert reply.executions and all(e.made_by is MadeBy.KEYWORD for e in reply.executions)


@pytest.mark.parametrize("response", ["malformed", "late", "down"])
def test_a_model_that_fails_leaves_keyword_evidence(scripted_llm, asker, shop, response):
    say = {
        "malformed": scripted_llm.completion("SELECT 1"),
        "late": scripted_llm.as_json({"explanation": "", "query": GOOD}, pause=5.0),
        "down": scripted_llm.Response(status=500),
    }
    scripted_llm.say(say[response])
    reply = asker.ask(QUESTION, shop)
    assert reply.degraded and any("wrote no query" in note for note in reply.notes)
    assert any("keyword evidence" in note for note in reply.notes)
    assert reply.executions[0].made_by is MadeBy.KEYWORD


def test_a_dead_source_is_a_reply_that_says_so(asker, shop):
    shop.dead = True
    reply = asker.ask(QUESTION, shop)
    assert reply.degraded and not reply.executions and "does not answer" in reply.notes[0]


def test_generators_answer_above_their_confidence(shop):
    sure = Interrogator(AdvancedRoutingSettings(), {Language.SQL: Generator(("SELECT x", 0.9), (GOOD, 0.8))})
    reply = sure.ask(QUESTION, shop)
    assert reply.executions[0].made_by is MadeBy.GENERATOR and reply.executions[0].confidence == 0.8
    unsure = Interrogator(AdvancedRoutingSettings(), {Language.SQL: Generator((GOOD, 0.4))})
    reply = unsure.ask(QUESTION, shop)
    assert {execution.made_by for execution in reply.executions} == {MadeBy.KEYWORD}
    assert GOOD not in shop.queries[2:]


def test_keyword_evidence_of_rows(shop):
    found = keyword_evidence("where is Ole Group", shop)
    assert found.executions[0].result.rows == ((1, "Ole Group", "Norway"),)
    assert shop.queries == ['SELECT * FROM "customer" WHERE "name" = \'Ole Group\' LIMIT 25']


def test_a_value_cannot_leave_its_literal(tmp_path, shop):
    nasty = "O'Neill\"; DROP TABLE customer --"
    sources = __import__("sys").modules["routing_sources"]
    source = sources.SmallDatabase("n", tmp_path / "n.sqlite", {"t": (["a b"[:1]], [(nasty,)])})
    found = keyword_evidence(f"who is “{nasty}”?", source)
    assert found.executions[0].result.rows == ((nasty,),)


def test_keyword_evidence_of_triples(films):
    found = keyword_evidence("who directed The Harbour", films)
    (execution,) = found.executions
    labels = {(row[1], row[4]) for row in execution.result.rows}
    assert ("The Harbour", "Mira Lund") in labels


def test_long_phrases_come_before_their_parts(shop):
    shop.values = [(("t", "a"), "Ole", ""), (("t", "b"), "Ole Group", "")]
    assert [hit.value for hit in named_values("orders of Ole Group", shop)] == ["Ole Group"]


def test_rdf_prompts_have_entities_and_their_predicates(scripted_llm, asker, films):
    query = "SELECT ?a WHERE { <http://example.org/q1> <http://example.org/p1> ?a }"
    written(scripted_llm, query)
    reply = asker.ask("who is the director of The Harbour", films)
    prompt = scripted_llm.requests[0]["messages"][-1]["content"]
    assert "the entity <http://example.org/q1>" in prompt and "predicate <http://example.org/p1> 'director'" in prompt
    assert "predicate <http://example.org/p2>" not in prompt  # the entity has no such triple
    assert reply.executions[0].labels == {"http://example.org/q2": "Mira Lund"}


def test_a_corpus_is_searched_with_a_written_passage(scripted_llm, asker, papers):
    scripted_llm.say(scripted_llm.as_json({"passage": "Lozenges of zinc shorten colds."}))
    reply = asker.ask("Does zinc help?", papers)
    assert papers.queries == ["Does zinc help? Lozenges of zinc shorten colds."]
    assert reply.executions[0].made_by is MadeBy.SEARCH
    scripted_llm.say(scripted_llm.Response(status=500))
    assert asker.ask("Does myelin help?", papers).executions and papers.queries[-1] == "Does myelin help?"


def test_normalised_queries():
    def plain(text, language=Language.SQL):
        return normalised(NativeQuery(language, text))

    assert plain("SELECT  a\nFROM t ;") == plain("select a from T")
    assert plain("SELECT 'A'") != plain("SELECT 'a'") and plain('SELECT "A"') != plain('SELECT "a"')
    assert plain("{ <http://x/A> ?p ?o }") != plain("{ <http://x/a> ?p ?o }")
    for text in ("MATCH (n:Person) RETURN n.name", "SELECT ?s { ?s a :Person }"):
        language = Language.CYPHER if "MATCH" in text else Language.SPARQL
        assert plain(text, language) == plain(text.replace(" ", "\n"), language)
        assert plain(text, language) != plain(text.replace(":Person", ":person"), language)
