"""Late-interaction reranking: what it computes of an edge, which edges it reads and moves, and where it stays away."""

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.errors import ModelError
from helios.evaluation.questions import read_questions
from helios.graph import Subgraph
from helios.models.base import FILES, find_base_model
from helios.models.card import read_card, write_card
from helios.models.encoder import TokenEncoder, TokenVectors
from helios.models.text import passage_text, segment_text
from helios.retrieval.ranking.features import FEATURES
from helios.retrieval.reranking.late import (
    ENCODER,
    LATE_FEATURES,
    LEAST,
    ROLE,
    SHIPPED,
    LateReranking,
    NodeReading,
    late_encoder,
    late_features,
    load_late_reranking,
)
from helios.retrieval.state import SearchState, run_stages
from helios.types import Edge, ScoredEdge

QUESTION = "Which is the longest river that flows into the Black Sea?"
QUESTIONS = read_questions(sample_path() / "questions.jsonl")
MOST = 10**9


class Counted:
    """An encoder that keeps what it was given to read."""

    def __init__(self, encoder: TokenEncoder) -> None:
        self.encoder = encoder
        self.read: list[str] = []

    def encode_documents(self, texts: Sequence[str]) -> Iterator[TokenVectors]:
        self.read += texts
        return self.encoder.encode_documents(texts)


@pytest.fixture
def reranking(stages) -> LateReranking:
    """The usual one, without its limits but for the number of edges."""
    assert isinstance(stages["rerank"], LateReranking)
    return replace(stages["rerank"], within=float(MOST), tokens=MOST)


def texts_of(engine: Engine, edge: Edge) -> list[str]:
    texts = [] if edge.segment is None else [segment_text(engine.corpus.segment(edge.segment)).text]
    return texts + ([] if edge.passage is None else [passage_text(engine.corpus.passages[edge.passage]).text])


def test_an_edge_is_scored_by_the_definition_of_factored_maxsim(engine, reranking, state_after):
    state = state_after(QUESTION, "retrieve", "rank")
    head = state.subgraph.edges[:8]
    columns = late_features(state, reranking.reading, head)
    assert columns.shape == (8, len(LATE_FEATURES))
    encoder = reranking.reading.encoder
    (asked,) = encoder.encode_documents([QUESTION])
    weights = engine.index.tokens.token_weights(asked.ids)
    expected = []
    for scored in head:
        nodes = [next(iter(encoder.encode_documents([text]))) for text in texts_of(engine, scored.edge)]
        tokens = np.concatenate([node.vectors for node in nodes])
        expected.append(sum(w * max(float(v @ t) for t in tokens) for w, v in zip(weights, asked.vectors, strict=True)))
    named = dict(zip(LATE_FEATURES, columns.T, strict=True))
    np.testing.assert_allclose(named["late_maxsim"], np.array(expected) - max(expected), atol=0.01)  # half precision
    known = state.ranked.features_of([scored.edge for scored in head])
    np.testing.assert_array_equal(columns[:, : len(FEATURES)], known)
    assert named["ranked"].tolist() == pytest.approx([s.score - head[0].score for s in head], abs=1e-5)
    assert named["place"].tolist() == list(range(8))


def test_every_node_is_read_once_and_the_question_too(engine, reranking, state_after):
    state = state_after(QUESTION, "retrieve", "rank")
    counted = Counted(reranking.reading.encoder)
    stage = replace(reranking, reading=NodeReading(counted, megabytes=0), first=12)
    stage.run(state)
    head = state.subgraph.edges[:12]
    texts = {text for scored in head for text in texts_of(engine, scored.edge)}
    assert sorted(counted.read) == sorted({QUESTION, *texts})


def test_nodes_that_were_read_before_are_not_read_again_and_give_the_same_bits(reranking, state_after):
    state = state_after(QUESTION, "retrieve", "rank")
    counted = Counted(reranking.reading.encoder)
    keeping = replace(reranking, reading=NodeReading(counted, megabytes=8))
    first = keeping.run(state)
    read = len(counted.read)
    again = keeping.run(state)
    assert len(counted.read) - read == 1 < read  # the question
    forgetting = replace(reranking, reading=NodeReading(counted, megabytes=0)).run(state)
    assert len(counted.read) - read - 1 == read
    assert first.subgraph == again.subgraph == forgetting.subgraph


@pytest.mark.parametrize("runtime", ["openvino", "torch"])
def test_a_node_reads_the_same_to_the_last_bit_whatever_is_read_beside_it(engine, runtime: str):
    encoder = late_encoder(SHIPPED / ENCODER, runtime=runtime, threads=2)
    nodes = range(0, engine.index.node_count, 3)
    asked, together = NodeReading(encoder).read(engine.index, QUESTION, nodes)
    for node, vectors in zip(nodes, together, strict=True):
        again, (alone,) = NodeReading(encoder).read(engine.index, QUESTION, [node])
        assert np.array_equal(alone, vectors) and np.array_equal(again.vectors, asked.vectors)


@pytest.mark.parametrize("first", [1, 5, 12])
def test_the_edges_that_are_read_get_new_scores_and_the_others_keep_theirs(reranking, state_after, first: int):
    """On one scale: what is read may fall behind what is not."""
    moved = 0
    for question in QUESTIONS[:3]:
        before = state_after(question.text, "retrieve", "rank")
        after = replace(reranking, first=first).run(before)
        old, new = ({one.edge: one.score for one in state.subgraph.edges} for state in (before, after))
        read = [scored.edge for scored in before.subgraph.edges[:first]]
        assert new.keys() == old.keys()
        assert all(new[edge] == old[edge] for edge in old if edge not in read)
        moved += sum(new[edge] != old[edge] for edge in read)
        scores = [scored.score for scored in after.subgraph.edges]
        assert scores == sorted(scores, reverse=True)
    assert moved >= 2 * first


def test_edges_far_below_the_best_one_are_not_read(reranking, state_after):
    state = state_after(QUESTION, "retrieve", "rank")
    scores = [scored.score for scored in state.subgraph.edges]
    within = scores[0] - scores[4]
    after = replace(reranking, within=within).run(state)
    assert read_by(state, after) == {s.edge for s in state.subgraph.edges[:10] if s.score >= scores[0] - within}


@pytest.mark.parametrize("tokens", [0, 200, MOST])
def test_no_more_tokens_are_read_than_allowed_but_the_best_edges(engine, reranking, state_after, tokens: int):
    state = state_after(QUESTION, "retrieve", "rank")
    after = replace(reranking, tokens=tokens).run(state)
    read = [scored.edge for scored in state.subgraph.edges[:10] if scored.edge in read_by(state, after)]
    assert read == [scored.edge for scored in state.subgraph.edges[: len(read)]]
    counts = [sum(map(spans_of(engine), texts_of(engine, scored.edge))) for scored in state.subgraph.edges[:10]]
    if tokens == MOST:
        assert len(read) == 10
    else:
        assert LEAST <= len(read) < 10
        assert len(read) == LEAST or sum(counts[: len(read)]) <= tokens + sum(counts[:LEAST])


def spans_of(engine: Engine):
    return lambda text: len(engine.encoder.token_spans(text))


def read_by(before: SearchState, after: SearchState) -> set[Edge]:
    """The edges whose scores changed."""
    new = {scored.edge: scored.score for scored in after.subgraph.edges}
    return {scored.edge for scored in before.subgraph.edges if new[scored.edge] != scored.score}


def test_nothing_to_read_is_nothing(reranking, state_after):
    state = state_after(QUESTION, "retrieve", "rank")
    empty = replace(state, subgraph=Subgraph())
    assert reranking.run(empty) is empty
    unranked = state_after(QUESTION, "retrieve")
    assert reranking.run(unranked) is unranked


def test_edges_that_the_ranking_did_not_see_are_left_alone(reranking, state_after):
    state = state_after(QUESTION, "retrieve", "rank")
    stranger = ScoredEdge(Edge(0, 66), state.subgraph.edges[0].score + 1)
    assert stranger.edge not in set(state.ranked.edges)
    after = reranking.run(state.with_edges([stranger, *state.subgraph.edges]))
    assert stranger in after.subgraph.edges
    assert len(after.subgraph) == len(state.subgraph) + 1


def test_threads_get_what_one_gets(reranking, state_after):
    states = [state_after(question.text, "retrieve", "rank") for question in QUESTIONS[:4]]
    few = replace(reranking, first=5)
    alone = [replace(few, reading=NodeReading(few.reading.encoder)).run(state) for state in states]
    shared = replace(few, reading=NodeReading(few.reading.encoder, megabytes=1))
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(shared.run, states * 2))
    assert [state.subgraph for state in together] == [state.subgraph for state in alone] * 2


@pytest.mark.parametrize("setting", ["search.ranker=none", "advanced.search.edges=joint", "rerank.backend=none"])
def test_without_a_learned_ranking_there_is_nothing_to_reorder(reopen, setting: str, stages):
    assert "rerank" not in [stage.name for stage in reopen(setting).pipeline.stages]
    assert "rerank" in stages


def loaded(folder: Path | None, *, base: str | None = None) -> LateReranking | None:
    return load_late_reranking(
        None if folder is None else str(folder), base=base, first=10, max_tokens=256, runtime="auto", threads=1,
        megabytes=1, within=1.0, tokens=100,
    )  # fmt: skip


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED, tmp_path / "model"))


def test_a_folder_that_lacks_a_file_or_changed_says_so(model: Path):
    assert loaded(model) is not None
    (model / "trees.txt").write_text("no trees")
    with pytest.raises(ModelError, match=r"trees\.txt: damaged, or not the file of its card"):
        loaded(model)
    (model / ENCODER).unlink()
    with pytest.raises(ModelError, match=r"token-encoder\.safetensors: missing; expected a folder"):
        loaded(model)


def test_trees_that_are_none_are_refused_with_their_card(model: Path):
    (model / "trees.txt").write_text("no trees")
    write_card(model, read_card(SHIPPED, ROLE), weights=["trees.txt", ENCODER])
    with pytest.raises(ModelError, match=r"trees\.txt: not LightGBM's text format"):
        loaded(model)


def test_another_base_has_no_packaged_reranker(tmp_path: Path, caplog, engine: Engine):
    base = find_base_model(None).folder
    for name in FILES:
        shutil.copyfile(base / name, tmp_path / name)
    weights = tmp_path / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(raw)
    assert loaded(None, base=str(tmp_path)) is None
    assert "no reranking" in caplog.text
    with pytest.raises(ModelError, match=r"late-reranker. were trained with another base \(53aa51172d14"):
        loaded(SHIPPED, base=str(tmp_path))


def test_where_no_time_is_left_nothing_is_read_and_a_note_says_so(engine: Engine, stages, reranking):
    late = run_stages(engine.begin(QUESTION, k=10, seconds=0), [stages["retrieve"], stages["rank"]])
    after = reranking.run(late)
    assert after.subgraph == late.subgraph
    assert after.left_out == ("no time left to read the best edges again",)
