"""Jointly encoded edges: their MaxSim by hand, the same candidates, and how many vectors an index would hold."""

from pathlib import Path

import numpy as np
import pytest

from helios.engine import Engine
from helios.models.text import passage_text, segment_text
from helios.retrieval.edges import FactoredEdges
from helios.retrieval.joint import JointEdges, JointTexts, apart_maxsim, node_texts, token_counts
from helios.types import Edge, Origin

QUESTION = "Which is the longest river that flows into the Black Sea?"


@pytest.fixture(scope="module")
def linked(engine: Engine) -> list[Edge]:
    """Some edges of the graph."""
    graph = engine.graph
    return [Edge(int(graph.edge_segments[n]), int(graph.edge_passages[n])) for n in range(0, graph.edge_count, 9)]


def test_maxsim_is_that_of_the_joint_text(engine: Engine, linked):
    part, tokens = engine.part, engine.encoder.encode_question(QUESTION)
    scores = JointTexts(engine.encoder.for_pairs()).maxsim(part, tokens, linked)
    weights = part.tokens.token_weights(tokens.ids)
    for edge, score in zip(linked, scores, strict=True):
        row, passage = part.corpus.segment(edge.segment), part.corpus.passages[edge.passage]
        text = f"{segment_text(row).text} {passage_text(passage).text}"
        (joint,) = engine.encoder.for_pairs().encode_documents([text])
        expected = sum(
            weight * max(vector @ token for token in joint.vectors)
            for weight, vector in zip(weights, tokens.vectors, strict=True)
        )
        # bf16 has 8 bits, and batches have other shapes: 0.25 % apart when measured with OpenVINO
        assert score == pytest.approx(expected, rel=5e-3)


def test_apart_is_the_better_of_both_nodes(engine: Engine, linked):
    part, tokens = engine.part, engine.encoder.encode_question(QUESTION)
    both = apart_maxsim(engine.encoder, part, tokens, linked)
    rows = apart_maxsim(engine.encoder, part, tokens, [Edge(edge.segment, None) for edge in linked])
    passages = apart_maxsim(engine.encoder, part, tokens, [Edge(None, edge.passage) for edge in linked])
    assert np.all(both >= np.maximum(rows, passages) - 0.05)
    assert np.all(both <= rows + passages)
    assert apart_maxsim(engine.encoder, part, tokens, []).shape == (0,)


def test_a_lone_node_is_one_text(engine: Engine):
    (text,) = node_texts(engine.part, Edge(0, None))
    assert text == segment_text(engine.corpus.segment(0)).text
    assert len(node_texts(engine.part, Edge(0, 0))) == 2


def test_a_pair_may_be_twice_as_long_as_a_node(engine: Engine):
    pairs = engine.encoder.for_pairs()
    long = "river " * 400
    assert len(engine.encoder.token_spans(long)) < len(pairs.token_spans(long)) <= 400
    assert pairs.fingerprint != engine.encoder.fingerprint


def test_the_engine_ranks_by_joint_scores(sample_index: Path, engine: Engine):
    overrides = ["search.edges=joint", "search.joint_depth=12", "search.segment_weight=0", "search.star_weight=0",
                 "search.lexical_weight=0"]  # fmt: skip
    with Engine.open(sample_index, overrides=overrides, threads=1) as joint:
        assert isinstance(joint.edge_index, JointEdges)
        assert joint.edge_index.ranker is None
        found = joint.retrieve_edges(QUESTION, k=30).edges
        (factored,) = FactoredEdges([joint.part], joint.encoder, joint.config.search).retrieve(QUESTION, k=30)
        tokens = joint.encoder.encode_question(QUESTION)
        alone = joint.edge_index.texts.maxsim(joint.part, tokens, [scored.edge for scored in found[:12]])
        assert {scored.edge for scored in found[:12]} == {scored.edge for scored in factored[:12]}
        assert [scored.edge for scored in found[12:]] == [scored.edge for scored in factored[12:]]
        assert np.allclose([scored.score for scored in found[:12]], alone, rtol=2e-3)
        assert [scored.score for scored in found] == sorted((scored.score for scored in found), reverse=True)
        again = joint.edge_index.new_edges(joint.part).score(joint.stages.expander.query(QUESTION), [found[0].edge])
        assert again[0] == pytest.approx(found[0].score, rel=2e-3)


def test_later_stages_work_on_joint_scores(sample_index: Path):
    overrides = ["search.edges=joint", "search.joint_depth=10", "expansion.enabled=true", "expansion.beam=3"]
    with Engine.open(sample_index, overrides=overrides, threads=1) as engine:
        edges = engine.search(QUESTION, k=300).edges
    assert any(edge.origin is Origin.EXPANDED for edge in edges)


def test_vectors_of_an_index_of_edges(engine: Engine):
    part = engine.part
    counts = token_counts(part)
    lengths = np.diff(part.tokens.offsets)
    expected = 0
    for unit in range(len(part.search.units)):
        edge = part.edge(unit)
        expected += 0 if edge.segment is None else lengths[edge.segment]
        expected += 0 if edge.passage is None else lengths[part.graph.segment_count + edge.passage]
    assert counts.joint == expected
    assert counts.factored == lengths.sum()
    assert counts.units == len(part.search.units)
    assert counts.ratio == expected / lengths.sum()
