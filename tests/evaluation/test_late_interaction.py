"""Retrieval units by late interaction alone, from the vectors of a real index."""

import numpy as np
import pytest

from helios.engine import Engine
from helios.evaluation.late_interaction import LateInteraction
from helios.evaluation.units import RetrievalUnit

QUESTION = "Into which sea does the river flow that passes Kraków and Warsaw?"


def retriever(engine: Engine, unit: RetrievalUnit) -> LateInteraction:
    return LateInteraction(engine, unit=unit)


def maxsim(engine: Engine, nodes: list[int]) -> float:
    """Weighted MaxSim over the concatenated stored vectors of nodes; kernels take residuals as whole numbers."""
    query = engine.query(QUESTION)
    vectors = np.concatenate([engine.index.tokens.vectors(node) for node in nodes])
    weights = query.weights_Q[: len(query.tokens.ids)]
    return float(weights @ (query.tokens.vectors @ vectors.T).max(axis=1))


@pytest.mark.parametrize("unit", list(RetrievalUnit))
def test_the_scores_are_those_of_the_unit(engine: Engine, unit):
    graph, corpus = engine.graph, engine.corpus
    ranked = retriever(engine, unit).search(QUESTION, k=12)
    assert len(ranked) == 12
    assert [edge.score for edge in ranked] == sorted((edge.score for edge in ranked), reverse=True)
    for edge in ranked:
        nodes = [] if edge.segment is None else [corpus.segment_number(edge.segment.segment_id)]
        if nodes and unit is RetrievalUnit.STAR:
            nodes += [int(passage) + graph.segment_count for passage in graph.passages_of(nodes[0])]
        elif edge.passage is not None and (unit is RetrievalUnit.EDGE or not nodes):
            nodes.append(graph.segment_count + corpus.passages.number(edge.passage.passage_id))
        assert edge.score == pytest.approx(maxsim(engine, nodes), abs=0.01)


@pytest.mark.parametrize("unit", list(RetrievalUnit))
@pytest.mark.parametrize("question", ["", "xyzzy", "river " * 70])
def test_odd_questions(engine: Engine, unit, question):
    assert len(retriever(engine, unit).search(question, k=5)) == 5
