"""Late-interaction reranking: what it computes of an edge, which edges it moves, and where it stays away."""

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from helios.config import RerankSettings
from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.errors import ModelError
from helios.evaluation.questions import read_questions
from helios.graph import Subgraph
from helios.models.base import FILES, find_base_model
from helios.models.encoder import TokenEncoder, TokenVectors
from helios.models.text import passage_text, segment_text
from helios.retrieval.edges import FactoredEdges
from helios.retrieval.features import FEATURES
from helios.retrieval.late_reranker import ENCODER, LATE_FEATURES, SHIPPED, LateReranker, late_features
from helios.types import Edge, ScoredEdge

QUESTION = "Which is the longest river that flows into the Black Sea?"
QUESTIONS = read_questions(sample_path() / "questions.jsonl")


class Counted:
    """An encoder that keeps what it was given to read."""

    def __init__(self, encoder: TokenEncoder) -> None:
        self.encoder = encoder
        self.read: list[str] = []

    def encode_question(self, question: str) -> TokenVectors:
        return self.encoder.encode_question(question)

    def encode_documents(self, texts: Sequence[str]) -> Iterator[TokenVectors]:
        self.read += texts
        return self.encoder.encode_documents(texts)


@pytest.fixture(scope="module")
def reranker(engine: Engine) -> LateReranker:
    assert engine.stages.late_reranker is not None
    return engine.stages.late_reranker


@pytest.fixture(scope="module")
def edges(engine: Engine) -> FactoredEdges:
    assert isinstance(engine.edge_index, FactoredEdges)
    return engine.edge_index


def texts_of(engine: Engine, edge: Edge) -> list[str]:
    texts = [] if edge.segment is None else [segment_text(engine.corpus.segment(edge.segment)).text]
    return texts + ([] if edge.passage is None else [passage_text(engine.corpus.passages[edge.passage]).text])


def test_an_edge_is_scored_by_the_definition_of_factored_maxsim(engine, reranker, edges):
    found = engine.retrieve_edges(QUESTION, k=12)
    columns = late_features(engine.part, edges, reranker.encoder, QUESTION, found)
    assert columns.shape == (12, len(LATE_FEATURES))
    asked = reranker.encoder.encode_question(QUESTION)
    weights = engine.part.tokens.token_weights(asked.ids)
    expected = []
    for scored in found.edges:
        nodes = [next(iter(reranker.encoder.encode_documents([text]))) for text in texts_of(engine, scored.edge)]
        tokens = np.concatenate([node.vectors for node in nodes])
        expected.append(sum(w * max(float(v @ t) for t in tokens) for w, v in zip(weights, asked.vectors, strict=True)))
    named = dict(zip(LATE_FEATURES, columns.T, strict=True))
    np.testing.assert_allclose(named["late_maxsim"], np.array(expected) - max(expected), atol=0.05)  # bf16 batches
    np.testing.assert_array_equal(columns[:, : len(FEATURES)], edges.features(engine.part, QUESTION, [
        scored.edge for scored in found.edges
    ]))  # fmt: skip
    assert named["ranked"].tolist() == pytest.approx([s.score - found.edges[0].score for s in found.edges], abs=1e-5)
    assert named["place"].tolist() == list(range(12))


def test_every_node_is_read_once(engine, reranker, edges):
    counted = Counted(reranker.encoder)
    found = engine.retrieve_edges(QUESTION, k=20)
    late_features(engine.part, edges, counted, QUESTION, found)
    assert sorted(counted.read) == sorted({text for scored in found.edges for text in texts_of(engine, scored.edge)})


@pytest.mark.parametrize("k1", [1, 5, 20])
def test_the_edges_that_are_read_change_places_among_themselves(engine, reranker, edges, k1: int):
    moved = 0
    for question in QUESTIONS[:6]:
        before = engine.retrieve_edges(question.text, k=40)
        after = reranker.rerank(engine.part, edges, question.text, before, k1=k1)
        old, new = ([scored.edge for scored in one.edges] for one in (before, after))
        assert set(new[:k1]) == set(old[:k1])
        assert new[k1:] == old[k1:]
        scores = [scored.score for scored in after.edges]
        assert scores == sorted(scores, reverse=True)
        moved += new != old
    assert (moved > 0) is (k1 > 1)


def test_nothing_to_read_is_nothing(engine, reranker, edges):
    assert len(reranker.rerank(engine.part, edges, QUESTION, Subgraph(()), k1=5)) == 0


def test_threads_get_what_one_gets(engine, reranker, edges):
    texts = [question.text for question in QUESTIONS[:8]]

    def reranked(text: str) -> list[ScoredEdge]:
        return list(reranker.rerank(engine.part, edges, text, engine.retrieve_edges(text, k=20), k1=10).edges)

    alone = [reranked(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(reranked, texts)) == alone


def test_search_reranks_by_default_and_not_where_it_is_off(engine, sample_index: Path):
    assert engine.stages.late_reranker is not None
    with Engine.open(sample_index, overrides=["rerank.backend=none"], threads=1) as plain:
        assert plain.stages.late_reranker is None
        orders = [[edge.score for edge in one.search(QUESTION, k=10).edges] for one in (engine, plain)]
    assert orders[0] != orders[1]


@pytest.mark.parametrize("setting", ["search.ranker=none", "search.edges=joint"])
def test_without_a_learned_ranking_there_is_nothing_to_reorder(sample_index: Path, setting: str):
    with Engine.open(sample_index, overrides=[setting, "refinement.mode=off"], threads=1) as engine:
        found = engine.retrieve_edges(QUESTION, k=20)
        assert engine.stages.late_reranker is None
        assert engine.stages.rerank(QUESTION, found) == found


def test_edges_that_the_ranking_did_not_see_have_no_features(engine, edges):
    with pytest.raises(KeyError):
        edges.features(engine.part, QUESTION, [Edge(0, 10**6)])


def test_a_folder_that_lacks_a_file_says_so(tmp_path: Path):
    shutil.copytree(SHIPPED, tmp_path / "model")
    settings = RerankSettings(edge_model=str(tmp_path / "model"))
    assert LateReranker.load(settings) is not None
    (tmp_path / "model" / "trees.txt").write_text("no trees")
    with pytest.raises(ModelError, match="no ranking that `helios train` wrote"):
        LateReranker.load(settings)
    (tmp_path / "model" / ENCODER).unlink()
    with pytest.raises(ModelError, match=r"token-encoder\.safetensors: missing; expected a folder"):
        LateReranker.load(settings)


def test_another_base_has_no_packaged_reranker(tmp_path: Path, caplog):
    base = find_base_model(None).folder
    for name in FILES:
        shutil.copyfile(base / name, tmp_path / name)
    weights = tmp_path / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(raw)
    assert LateReranker.load(RerankSettings(), base=str(tmp_path)) is None
    assert "no reranking" in caplog.text
    with pytest.raises(ModelError, match="was trained on a base with SHA-256 53aa51172d14"):
        LateReranker.load(RerankSettings(edge_model=str(SHIPPED)), base=str(tmp_path))
