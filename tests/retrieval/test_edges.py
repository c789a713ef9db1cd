"""Edge retrieval: factored MaxSim plus BM25, best first, the same every time."""

import numpy as np
import pytest

from helios.config import SearchSettings
from helios.engine import Engine
from helios.index.search import Query
from helios.retrieval.edges import FactoredEdges
from helios.types import Origin

QUESTION = "In what year was the element discovered that melts in a warm hand?"


def retriever(engine: Engine, **settings) -> FactoredEdges:
    return FactoredEdges(engine.parts, engine.encoder, SearchSettings(**settings))


def test_scores_are_maxsim_plus_weighted_bm25(engine: Engine):
    (edges,) = retriever(engine, lexical_weight=0.2).retrieve(QUESTION, k=1000)
    part = engine.part
    query = Query.of(QUESTION, engine.encoder.encode_question(QUESTION), part.tokens)
    everything = np.arange(len(part.search.units))
    scores = part.search.exact(query, everything) + np.float32(0.2) * part.search.lexical_scores(QUESTION)
    expected = {part.edge(int(unit)): float(scores[unit]) for unit in everything}
    assert len(edges) == len(expected)
    for scored in edges:
        assert scored.score == pytest.approx(expected[scored.edge], abs=1e-5)
        assert scored.origin is Origin.LINKED
    assert [scored.score for scored in edges] == sorted(expected.values(), reverse=True)


def test_fewer_edges_are_the_first_of_more(engine: Engine):
    (few,), (many,) = (retriever(engine).retrieve(QUESTION, k=k) for k in (5, 40))
    assert few == many[:5]


def test_k_beyond_the_candidates_is_met(engine: Engine):
    (edges,) = retriever(engine, candidates=3).retrieve(QUESTION, k=20)
    assert len(edges) == 20


def test_without_bm25(engine: Engine):
    (edges,) = retriever(engine, lexical_weight=0.0).retrieve(QUESTION, k=5)
    part = engine.part
    query = Query.of(QUESTION, engine.encoder.encode_question(QUESTION), part.tokens)
    assert edges[0].score == pytest.approx(part.search.exact(query, np.arange(len(part.search.units))).max(), abs=1e-5)
