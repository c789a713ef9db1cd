"""Edge retrieval: factored MaxSim plus BM25, best first, the same every time."""

import numpy as np
import pytest

from helios.config import SearchSettings
from helios.engine import Engine
from helios.index.search import Fusion, Query
from helios.retrieval.edges import FactoredEdges
from helios.types import Origin

QUESTION = "In what year was the element discovered that melts in a warm hand?"


def retriever(engine: Engine, **settings) -> FactoredEdges:
    return FactoredEdges(engine.parts, engine.encoder, SearchSettings(**settings))


def test_scores_fuse_edge_segment_star_and_bm25(engine: Engine):
    settings = {"segment_weight": 0.5, "star_weight": 0.25, "lexical_weight": 0.2}
    (edges,) = retriever(engine, **settings).retrieve(QUESTION, k=1000)
    part = engine.part
    query = Query.of(QUESTION, engine.encoder.encode_question(QUESTION), part.tokens)
    everything = np.arange(len(part.search.units))
    maxsim, segment = part.search.exact(query, part.search.units.left, part.search.units.right)
    found = part.search.candidates(query, count=len(everything), fusion=Fusion(star=1.0))
    star = dict(zip(found.units.tolist(), found.star.tolist(), strict=True))
    lexical = part.search.lexical_scores(QUESTION)
    scores = [maxsim[u] + 0.5 * segment[u] + 0.25 * star[u] + 0.2 * lexical[u] for u in everything.tolist()]
    expected = {part.edge(unit): float(scores[unit]) for unit in everything.tolist()}
    assert len(edges) == len(expected)
    for scored in edges:
        assert scored.score == pytest.approx(expected[scored.edge], abs=1e-4)
        assert scored.origin is Origin.LINKED
    ranked = [scored.score for scored in edges]
    assert ranked == sorted(ranked, reverse=True)


def test_fewer_edges_are_the_first_of_more(engine: Engine):
    (few,), (many,) = (retriever(engine).retrieve(QUESTION, k=k) for k in (5, 40))
    assert few == many[:5]


def test_k_beyond_the_candidates_is_met(engine: Engine):
    (edges,) = retriever(engine, candidates=3).retrieve(QUESTION, k=20)
    assert len(edges) == 20


def test_the_edge_alone(engine: Engine):
    alone = {"segment_weight": 0.0, "star_weight": 0.0, "lexical_weight": 0.0}
    (edges,) = retriever(engine, **alone).retrieve(QUESTION, k=5)
    part = engine.part
    query = Query.of(QUESTION, engine.encoder.encode_question(QUESTION), part.tokens)
    maxsim, _ = part.search.exact(query, part.search.units.left, part.search.units.right)
    assert edges[0].score == pytest.approx(maxsim.max(), abs=1e-5)
