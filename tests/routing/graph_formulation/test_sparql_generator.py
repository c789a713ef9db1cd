"""One-hop questions over a small RDF graph, with the real encoder."""

import pytest

from helios.models.encoder import MiniLMEncoder
from helios.routing.formulation.entity_linking import folded, link_entities, runs_of_words, similarity
from helios.routing.formulation.properties import facts_about, is_iri
from helios.routing.formulation.sparql_generator import SparqlGenerator

BASE = "http://example.org/"


@pytest.fixture(scope="module")
def generator():
    return SparqlGenerator.of_encoder(MiniLMEncoder.load(threads=1))


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("Where was Anna Orr born?", {"mull"}),
        ("where did ana orr die", {"skarn"}),
        ("Who was the architect of the Kerrow Head Light?", {"orr"}),
        ("who directed the film kerrow head", {"vale"}),
        ("Who was born in Mullport?", {"orr", "vale"}),
        ("what did Sten Vale direct", {"kerrow_film"}),
    ],
)
def test_answers(generator, register, question, answers) -> None:
    best = generator.formulate(question, register)[0]
    rows = register.execute(best.query).rows
    assert {str(row[0]).removeprefix(BASE) for row in rows} == answers
    assert best.confidence > 0.7


def test_other_questions_are_not_trusted(generator, register) -> None:
    for question in ("How many orders were shipped late?", "What is the average price of a ticket?"):
        assert all(candidate.confidence < 0.5 for candidate in generator.formulate(question, register))


def test_candidates_are_ordered_and_explained(generator, register) -> None:
    candidates = generator.formulate("Where was Anna Orr born?", register)
    assert [c.confidence for c in candidates] == sorted((c.confidence for c in candidates), reverse=True)
    assert "place of birth" in candidates[0].explanation
    assert generator.formulate("", register) == []


def test_links_prefer_the_longer_name(register) -> None:
    links = link_entities("which country is Kerrow Head Light in", register)
    assert links[0].entity == BASE + "kerrow"


def test_facts_in_both_directions(register) -> None:
    facts = {(fact.predicate.removeprefix(BASE), fact.inverse) for fact in facts_about(register, [BASE + "orr"])}
    assert facts == {("birthplace", False), ("deathplace", False), ("architect", True)}


def test_names_that_would_break_a_query_are_left_out(register) -> None:
    assert not is_iri("http://example.org/a> ?p ?o")
    assert not is_iri("_:b1")
    assert facts_about(register, ["http://example.org/x> . ?s"]) == ()


def test_similarity() -> None:
    assert similarity("the kerrow head", "Kerrow Head") == pytest.approx(0.98)
    assert similarity("Møller's", "mollers") == 1.0
    assert similarity("Port Arthur", "Port Arthur, Texas") == pytest.approx(0.97)
    assert similarity("salt", "architecture") == 0.0
    assert folded("D'Atra  Hicks") == "datra hicks"


def test_runs_hold_a_telling_word() -> None:
    assert {run.text for run in runs_of_words("who is Orr's")} >= {"Orr"}
    assert all(run.text not in ("who is", "is") for run in runs_of_words("who is Orr's"))
