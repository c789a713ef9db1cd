"""Explanations name words that are really in the text, at the place that they say."""

import re

import pytest

from helios.engine import Engine
from helios.index.search import Query
from helios.models.text import passage_text
from helios.retrieval.edges import edge_sides
from helios.types import EvidenceEdge, TokenMatch

QUESTION = "In which town did the chemist who discovered the element with atomic number 32 teach?"


def text_at(edge: EvidenceEdge, match: TokenMatch) -> list[str]:
    """The texts that `where` may mean: a segment's and a passage's title have the same name."""
    kind, _, number = match.where.partition(":")
    if kind == "sentence":
        assert edge.passage is not None
        node = passage_text(edge.passage)
        piece = next(piece for piece in node.pieces if piece.where == match.where)
        return [node.text[piece.start : piece.end]]
    if kind == "title":
        return [node.title for node in (edge.segment, edge.passage) if node is not None]
    assert edge.segment is not None
    if kind == "section":
        return [edge.segment.section]
    return [{"header": edge.segment.header, "cell": edge.segment.cells}[kind][int(number)]]


@pytest.mark.parametrize("question", [QUESTION, "Wer entdeckte Germanium — und wann?", "Kraków " * 40])
def test_every_match_is_where_it_says(engine: Engine, question):
    evidence = engine.search(question, k=20, explain=True)
    tokens = engine.encoder.encode_question(question)
    for edge in evidence.edges:
        assert len(edge.matches) == len(tokens.ids)
        for match, (start, end) in zip(edge.matches, tokens.spans, strict=True):
            assert match.query_token == question[start:end]
            assert match.word
            assert any(match.word in re.split(r"[\W_]+", text) for text in text_at(edge, match)), match
            assert -1.01 <= match.similarity <= 1.01


def test_words_of_the_question_match_themselves(engine: Engine):
    best = engine.search(QUESTION, k=1, explain=True).edges[0]
    matches = {match.query_token: match for match in best.matches}
    assert matches["chemist"].word == "chemist"
    assert matches["atomic"].word.lower() == "atomic"
    assert (matches["32"].word, matches["32"].where) == ("32", "cell:1")


def test_matches_add_up_to_the_edges_maxsim(engine: Engine):
    """Weighted by their tokens' rarity, similarities are the exact MaxSim of the edge."""
    evidence = engine.search(QUESTION, k=5, explain=True)
    tokens = engine.encoder.encode_question(QUESTION)
    search = engine.part.search
    query = Query.of(QUESTION, tokens, engine.part.tokens)
    weights = engine.part.tokens.token_weights(tokens.ids)
    reranked = engine.stages.rerank(QUESTION, engine.retrieve_edges(QUESTION, k=engine.stages.depth))
    found = engine.stages.refine(QUESTION, engine.stages.expand(QUESTION, reranked))
    for scored, edge in zip(engine.stages.spread(found).top(5).edges, evidence.edges, strict=True):
        maxsim, _ = search.exact(query, *edge_sides(engine.part, [scored.edge]))
        matched = sum(float(w) * m.similarity for w, m in zip(weights, edge.matches, strict=True))
        assert float(maxsim[0]) == pytest.approx(matched, abs=1e-3)


def test_unasked_nothing_is_explained(engine: Engine):
    assert engine.search(QUESTION, k=1).edges[0].matches == ()


@pytest.mark.parametrize("question", ["", "?!"])
def test_a_question_without_words_has_nothing_to_explain(engine: Engine, question):
    evidence = engine.search(question, k=3, explain=True)
    assert [edge.matches for edge in evidence.edges] == [(), (), ()]
