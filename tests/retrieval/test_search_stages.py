"""The stages that the settings ask for, with the packaged models and those that are missing."""

from pathlib import Path

import numpy as np
import pytest

from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.errors import ConfigError, ModelError
from helios.evaluation.questions import read_questions
from helios.retrieval.expansion.seeds import BestEdges
from helios.retrieval.expansion.stage import READ
from helios.retrieval.reranking.late import LateReranking
from helios.retrieval.state import run_stages
from helios.types import Origin

QUESTION = "Which is the longest river that flows into the Black Sea?"


def test_small_models_alone_are_asked_by_default(engine: Engine, stages) -> None:
    assert list(stages) == ["retrieve", "rank", "rerank", "documents", "expand", "refine", "spread"]
    assert isinstance(stages["rerank"], LateReranking)
    assert engine.pipeline.depth == READ
    assert engine.search("Where does the river end ?", k=10).notes == ()


def test_without_the_later_stages_a_search_is_retrieval(engine: Engine, reopen) -> None:
    off = ["expansion.enabled=false", "refinement.mode=off", "advanced.search.spread=0", "rerank.backend=none"]
    plain = reopen(*off, "search.ranker=none", "advanced.search.documents=0")
    (retrieval,) = plain.pipeline.stages
    found = retrieval.run(plain.begin(QUESTION, k=10))
    evidence = plain.search(QUESTION, k=10)
    assert [edge.score for edge in evidence.edges] == [scored.score for scored in found.subgraph.edges]
    assert (evidence.notes, evidence.computed, plain.pipeline.depth) == ((), None, 0)


def test_pipelines_of_other_settings_share_what_is_the_same(engine: Engine, reopen) -> None:
    """Each model is loaded once, whatever variants of a pipeline use it."""
    other = reopen("advanced.search.spread=0", "advanced.expansion.beam=3")
    first, second = ({stage.name: stage for stage in one.pipeline.stages} for one in (engine, other))
    assert second["rank"] is first["rank"]
    assert second["rerank"] is first["rerank"]
    assert second["refine"] is first["refine"]
    assert second["expand"] is not first["expand"]
    assert second["expand"].model is first["expand"].model
    assert other.encoder is engine.encoder


def test_the_packaged_pair_rerankers_read_edges_and_nodes(reopen) -> None:
    """g_e moves the edges that it reads, g_n the nodes; gains add up to nothing."""
    other = reopen(
        "rerank.backend=embedded", "rerank.edges=8", "advanced.rerank.nodes=6", "advanced.rerank.deadline_ms=600000"
    )
    by_name = {stage.name: stage for stage in other.pipeline.stages}
    before = run_stages(other.begin(QUESTION, k=20), [by_name["retrieve"], by_name["rank"]])
    after = by_name["rerank"].run(before)
    scores = {scored.edge: scored.score for scored in after.subgraph.edges}
    gains = [scores[scored.edge] - scored.score for scored in before.subgraph.edges]
    assert np.ptp(gains[:8]) > 0.1
    assert sum(gains[:8]) == pytest.approx(0.0, abs=1e-3)
    assert gains[8:] == [0.0] * (len(gains) - 8)
    segments = [scored.edge.segment for scored in after.subgraph.edges if scored.edge.segment is not None]
    nodes = np.unique(np.array(segments, np.int64))
    read = by_name["expand"].nodes.score(after, nodes, after.subgraph)
    plain = BestEdges().score(after, nodes, after.subgraph)
    assert 0 < (read != plain).sum() <= 6
    evidence = other.search(QUESTION, k=30)
    assert len(evidence.edges) == 30
    assert evidence.notes[0] == "refined: local"


@pytest.mark.parametrize("ranker", ["search.ranker=none", "search.k=50"])
def test_expansion_adds_edges_on_the_scale_of_the_others(reopen, ranker: str) -> None:
    expanding = reopen("advanced.expansion.beam=5", "advanced.search.spread=0", ranker)
    new = []
    for question in read_questions(sample_path() / "questions.jsonl")[:6]:
        edges = expanding.search(question.text, k=400).edges
        added = [edge for edge in edges if edge.origin is Origin.EXPANDED]
        new += added
        scores = [edge.score for edge in edges]
        assert scores == sorted(scores, reverse=True)
        assert len(added) <= 5
        assert all(scores[-1] - 5 <= edge.score <= scores[0] + 5 for edge in added)
        assert not any(edge.links for edge in added)
    assert new


def test_local_refinement_keeps_every_edge_and_says_that_it_ran(engine: Engine, stages, state_after) -> None:
    before = state_after(QUESTION, "retrieve", "rank")
    refined = stages["refine"].run(before)
    assert {scored.edge for scored in before.subgraph.edges} <= {scored.edge for scored in refined.subgraph.edges}
    assert engine.search(QUESTION, k=300).notes[0] == "refined: local"


def test_a_language_model_has_to_be_configured(reopen) -> None:
    with pytest.raises(ConfigError, match=r"llm\.base_url"):
        reopen("refinement.mode=llm").search(QUESTION, k=3)


def test_a_reranker_that_is_not_there_is_named(reopen, tmp_path: Path) -> None:
    missing = tmp_path / "none.safetensors"
    with pytest.raises(ModelError, match=r"none\.safetensors"):
        reopen("rerank.backend=embedded", f"rerank.model={missing}").search(QUESTION, k=3)


def test_a_pair_model_that_is_not_there_is_named(reopen, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=f"{tmp_path}: no model that `helios train` wrote"):
        reopen(f"advanced.expansion.model={tmp_path}").search(QUESTION, k=3)
