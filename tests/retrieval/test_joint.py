"""Jointly encoded edges: their MaxSim by hand, the same candidates, and how many vectors an index would hold."""

from dataclasses import replace

import numpy as np
import pytest

from helios.engine import Engine
from helios.models.text import passage_text, segment_text
from helios.retrieval.joint import JointEdges, JointRetrieval, apart_maxsim, node_texts, token_counts
from helios.retrieval.state import edges_of
from helios.types import Edge, Origin

QUESTION = "Which is the longest river that flows into the Black Sea?"


@pytest.fixture(scope="module")
def linked(engine: Engine) -> list[Edge]:
    """Some edges of the graph."""
    graph = engine.graph
    return [Edge(int(graph.edge_segments[n]), int(graph.edge_passages[n])) for n in range(0, graph.edge_count, 9)]


@pytest.fixture(scope="module")
def joint(reopen) -> Engine:
    """Twelve edges are read as one text."""
    return reopen("advanced.search.edges=joint", "advanced.search.joint_depth=12", "advanced.expansion.beam=3")


@pytest.fixture
def retrieval(joint: Engine) -> JointRetrieval:
    stage = joint.pipeline.stages[0]
    assert isinstance(stage, JointRetrieval)
    return stage


def test_maxsim_is_that_of_the_joint_text(engine: Engine, linked):
    index, tokens = engine.index, engine.encoder.encode_question(QUESTION)
    pairs = engine.encoder.for_pairs()
    scores = JointEdges(pairs).maxsim(index, tokens, linked)
    weights = index.tokens.token_weights(tokens.ids)
    for edge, score in zip(linked, scores, strict=True):
        row, passage = index.corpus.segment(edge.segment), index.corpus.passages[edge.passage]
        text = f"{segment_text(row).text} {passage_text(passage).text}"
        (joint,) = pairs.encode_documents([text])
        expected = sum(
            weight * max(vector @ token for token in joint.vectors)
            for weight, vector in zip(weights, tokens.vectors, strict=True)
        )
        # bf16 has 8 bits: 0.25 % apart when measured with OpenVINO
        assert score == pytest.approx(expected, rel=5e-3)


def test_apart_is_the_better_of_both_nodes(engine: Engine, linked):
    index, tokens = engine.index, engine.encoder.encode_question(QUESTION)
    both = apart_maxsim(engine.encoder, index, tokens, linked)
    rows = apart_maxsim(engine.encoder, index, tokens, [Edge(edge.segment, None) for edge in linked])
    passages = apart_maxsim(engine.encoder, index, tokens, [Edge(None, edge.passage) for edge in linked])
    assert np.all(both >= np.maximum(rows, passages) - 0.05)
    assert np.all(both <= rows + passages)
    assert apart_maxsim(engine.encoder, index, tokens, []).shape == (0,)


def test_a_lone_node_is_one_text(engine: Engine):
    (text,) = node_texts(engine.index, Edge(0, None))
    assert text == segment_text(engine.corpus.segment(0)).text
    assert len(node_texts(engine.index, Edge(0, 0))) == 2


def test_a_pair_may_be_twice_as_long_as_a_node(engine: Engine):
    pairs = engine.encoder.for_pairs()
    assert (pairs.max_tokens, engine.encoder.max_tokens) == (512, 256)
    long = "river " * 9000
    assert len(engine.encoder.token_spans(long)) < len(pairs.token_spans(long))
    assert pairs.fingerprint != engine.encoder.fingerprint


def test_the_edges_that_are_read_are_ranked_by_joint_scores(joint: Engine, retrieval: JointRetrieval):
    assert [stage.name for stage in joint.pipeline.stages] == ["retrieve", "documents", "expand", "refine", "spread"]
    state = retrieval.run(joint.begin(QUESTION, k=30))
    factored = state.found.scores
    candidates = edges_of(joint.index, state.found.pairs)
    alone = retrieval.joint.maxsim(joint.index, state.query.tokens, candidates[:12])
    fused = factored.fused.copy()
    fused[:12] += alone - factored.maxsim[:12]
    expected = [candidates[place] for place in np.lexsort((state.found.units, -fused))]
    found = [scored.edge for scored in state.subgraph.edges]
    assert found == expected[: len(found)]
    assert [edge for edge in found if edge not in candidates[:12]] == list(candidates[12:])
    assert [scored.score for scored in state.subgraph.edges] == sorted(
        (scored.score for scored in state.subgraph.edges), reverse=True
    )


def test_an_edge_scored_as_new_is_worth_what_retrieval_gave(joint: Engine, retrieval: JointRetrieval):
    state = retrieval.run(joint.begin(QUESTION, k=30))
    best = state.subgraph.edges[0]
    _, again = retrieval.joint.scorer(joint.pipeline.fused).score(state, [best.edge])
    assert again[0] == pytest.approx(best.score, abs=1e-3)


def test_later_stages_work_on_joint_scores(joint: Engine):
    edges = joint.search(QUESTION, k=300).edges
    assert any(edge.origin is Origin.EXPANDED for edge in edges)
    assert len({(edge.segment, edge.passage) for edge in edges}) == len(edges)


def test_no_edges_to_read(retrieval: JointRetrieval, joint: Engine):
    state = replace(retrieval, read=0).run(joint.begin(QUESTION, k=5))
    found = [scored.edge for scored in state.subgraph.edges]
    assert found == list(edges_of(joint.index, state.found.pairs))[: len(found)]


def test_vectors_of_an_index_of_edges(engine: Engine):
    index = engine.index
    counts = token_counts(index)
    lengths = np.array([len(index.tokens.vectors(node)) for node in range(index.node_count)])
    expected = 0
    for left, right in zip(index.units.left.tolist(), index.units.right.tolist(), strict=True):
        expected += sum(int(lengths[side]) for side in (left, right) if side < index.node_count)
    assert counts.joint == expected
    assert counts.factored == lengths.sum()
    assert counts.units == len(index.units)
    assert counts.ratio == expected / lengths.sum()
