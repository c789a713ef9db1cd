"""The stages after retrieval through the engine: each one where the settings say so."""

from pathlib import Path

import numpy as np
import pytest

from helios.config import RerankSettings
from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.errors import ConfigError, ModelError
from helios.evaluation.questions import read_questions
from helios.index.search import Query
from helios.models.base import FILES, find_base_model
from helios.models.reranking.embedded import packaged
from helios.retrieval.expansion import BestEdges
from helios.retrieval.rerank import load_reranker
from helios.retrieval.stages import READ
from helios.types import Edge, Origin

QUESTION = "Which is the longest river that flows into the Black Sea?"


def opened(index: Path, *settings: str) -> Engine:
    return Engine.open(index, overrides=settings, threads=1)


def test_small_models_alone_are_asked_by_default(engine: Engine, sample_index: Path):
    assert engine.stages.depth == READ
    assert engine.stages.late_reranker is not None
    assert (engine.stages.edge_reranker, engine.stages.node_reranker, engine.stages.llm_refiner) == (None, None, None)
    assert engine.search("Where does the river end ?", k=10).notes == ()
    off = ["expansion.enabled=false", "refinement.mode=off", "spread.depth=0", "rerank.backend=none"]
    with opened(sample_index, *off) as plain:
        found = plain.retrieve_edges(QUESTION, k=10)
        evidence = plain.search(QUESTION, k=10)
        assert [edge.score for edge in evidence.edges] == [scored.score for scored in found.edges]
        assert (evidence.notes, evidence.computed, plain.stages.depth) == ((), None, 0)


def test_the_packaged_edge_reranker_reads_the_best_edges(sample_index: Path):
    with opened(sample_index, "refinement.mode=off", "rerank.backend=embedded", "rerank.k1=8") as engine:
        found = engine.retrieve_edges(QUESTION, k=20)
        scores = {scored.edge: scored.score for scored in engine.stages.rerank(QUESTION, found).edges}
    gains = [scores[scored.edge] - scored.score for scored in found.edges]
    assert np.ptp(gains[:8]) > 0.1
    assert sum(gains[:8]) == pytest.approx(0.0, abs=1e-3)
    assert gains[8:] == pytest.approx([0.0] * 12, abs=1e-6)


def test_the_packaged_node_reranker_chooses_seeds(sample_index: Path):
    with opened(sample_index, "expansion.enabled=true", "rerank.backend=embedded", "rerank.nodes=6") as engine:
        expander, found = engine.stages.expander, engine.retrieve_edges(QUESTION, k=30)
        query = expander.query(QUESTION)
        plain, read = BestEdges(engine.part), expander.node_scorer
        nodes = np.array([scored.edge.segment for scored in found.edges if scored.edge.segment is not None], np.int64)
        moved = read.score(query, nodes, found) != plain.score(query, nodes, found)
    assert 0 < moved.sum() <= 6


@pytest.mark.parametrize("ranker", ["search.ranker=none", "search.k=50"])
def test_expansion_adds_edges_on_the_scale_of_the_others(sample_index: Path, ranker: str):
    with opened(sample_index, "expansion.enabled=true", "expansion.beam=5", ranker) as engine:
        origins = []
        for question in read_questions(sample_path() / "questions.jsonl")[:6]:
            edges = engine.search(question.text, k=400).edges
            new = [edge for edge in edges if edge.origin is Origin.EXPANDED]
            origins += new
            scores = [edge.score for edge in edges]
            assert scores == sorted(scores, reverse=True)
            assert all(scores[-1] - 5 <= edge.score <= scores[0] + 5 for edge in new)
            assert not any(edge.links for edge in new)
    assert origins


def test_a_linked_edge_scored_as_new_gets_what_retrieval_gave(engine: Engine, sample_index: Path):
    with opened(sample_index, "search.ranker=none") as plain:
        query = Query.of(QUESTION, plain.encoder.encode_question(QUESTION), plain.part.tokens)
        known = [s for s in plain.retrieve_edges(QUESTION, k=5).edges if None not in (s.edge.segment, s.edge.passage)]
        again = plain.edge_index.new_edges(plain.part).score(query, [scored.edge for scored in known])
    assert np.allclose(again, [scored.score for scored in known], atol=0.15)  # the star's bound is in 256 steps
    pairs = [Edge(0, 0), Edge(1, 5), Edge(0, None), Edge(None, 3)]
    scores = engine.edge_index.new_edges(engine.part).score(query, pairs)
    assert scores.shape == (4,)
    assert np.isfinite(scores).all()


def test_local_refinement_keeps_every_edge_and_says_that_it_ran(engine: Engine, sample_index: Path):
    before = {scored.edge for scored in engine.retrieve_edges(QUESTION, k=200).edges}
    with opened(sample_index, "refinement.mode=local") as refining:
        evidence = refining.search(QUESTION, k=300)
        refined = refining.stages.refine(QUESTION, refining.retrieve_edges(QUESTION, k=200))
    assert evidence.notes[0] == "refined: local"
    assert before <= {scored.edge for scored in refined.subgraph.edges}


def test_a_language_model_has_to_be_configured(sample_index: Path):
    with opened(sample_index, "refinement.mode=llm") as engine, pytest.raises(ConfigError, match=r"llm\.base_url"):
        engine.search(QUESTION, k=3)


def test_a_reranker_that_is_not_there_is_named(sample_index: Path, tmp_path: Path):
    missing = tmp_path / "none.safetensors"
    with (
        opened(sample_index, "rerank.backend=embedded", f"rerank.edge_model={missing}") as engine,
        pytest.raises(ModelError, match=r"none\.safetensors"),
    ):
        engine.search(QUESTION, k=3)


def test_the_packaged_reranker_is_for_its_own_base(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    base = find_base_model()
    for name in FILES:
        (tmp_path / name).symlink_to(base.folder / name)
    assert load_reranker("edge", RerankSettings(backend="embedded"), base=str(tmp_path)) is not None
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors").write_bytes((base.folder / "model.safetensors").read_bytes() + b"\0")
    assert load_reranker("edge", RerankSettings(backend="embedded"), base=str(tmp_path)) is None
    assert "no reranking" in caplog.text
    asked = RerankSettings(backend="embedded", edge_model=str(packaged("edge")))
    reranker = load_reranker("edge", asked, base=str(tmp_path))
    assert reranker is not None
    with pytest.raises(ModelError, match="was trained on a base with SHA-256 53aa51172d14"):
        reranker.score(QUESTION, ["a text"])
