"""Training a reranker on the sample corpus: lessons, loss, measures, and the file that search reads."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from helios.engine import Engine
from helios.errors import EvaluationError
from helios.evaluation.edges import EdgeId
from helios.evaluation.questions import Question
from helios.index.durable import sha256_file
from helios.models.bert import load_bert
from helios.models.card import read_card
from helios.retrieval.reranking.embedded import EmbeddedReranker
from helios.retrieval.reranking.pair_scorer import load_pair_scorer
from training.errors import TrainingError
from training.holdout import is_held_out
from training.reranker import RerankerRecipe, RerankerSettings, train_reranker
from training.reranker_evaluation import list_accuracy, measure_orders
from training.reranker_lessons import Candidate, Lesson, load_lessons, mine, save_lessons
from training.settings import TrainSettings
from training.updates import begin_from

SETTINGS = RerankerSettings(
    rank=4, max_tokens=96, depth=30, negatives=3, measured=4, k1=12, residual=False, late_scale=20.0,
    train=TrainSettings(epochs=1, learning_rate=2e-3, accumulate=1, bf16="off", log_steps=1, evaluate_first=False),
)  # fmt: skip


@pytest.fixture(scope="module")
def questions(engine: Engine) -> list[Question]:
    """A question for every edge of the sample: words of its passage, its row as gold."""
    graph, corpus = engine.graph, engine.corpus
    made = []
    for edge in range(0, graph.edge_count, max(1, graph.edge_count // 24)):
        segment = corpus.segment(int(graph.edge_segments[edge]))
        passage = corpus.passages[int(graph.edge_passages[edge])]
        gold = EdgeId(segment.segment_id, passage.passage_id)
        text = f"Which {segment.header[0]} goes with {' '.join(passage.text.split()[5:14])}?"
        made.append(Question(f"q{edge}", text, (segment.cells[0],), segment.segment_id.table_id, (gold,)))
    return made


@pytest.fixture(scope="module")
def lessons(engine: Engine, questions: list[Question]) -> list[Lesson]:
    return list(mine(lambda _: engine, questions, "edge", depth=30))


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_lessons_hold_gold_and_wrong_edges(engine, questions, lessons):
    assert len(lessons) > 10
    by_text = {question.text: question for question in questions}
    for lesson in lessons:
        (gold,) = by_text[lesson.question].gold_edges
        (right,) = set(lesson.positives)
        assert engine.corpus.segment_id(right[0]) == gold.segment_id
        assert engine.corpus.passages[right[1]].passage_id == gold.passage_id
        assert right not in lesson.negatives
        scores = [candidate.score for candidate in lesson.candidates]
        assert scores == sorted(scores, reverse=True)


def test_gold_that_was_not_found_is_still_right(engine, questions):
    elsewhere = Question("z", questions[0].text, ("no such answer",), None, questions[-1].gold_edges)
    (lesson,) = mine(lambda _: engine, [elsewhere], "edge", depth=1)
    (right,) = lesson.missed
    assert engine.corpus.segment_id(right[0]) == questions[-1].gold_edges[0].segment_id
    assert lesson.positives == lesson.missed
    assert len(lesson.negatives) == 1
    strange = Question("x", "Which?", ("y",), None, (EdgeId(None, "nowhere"),))
    assert list(mine(lambda _: engine, [strange], "edge", depth=5)) == []


def test_node_lessons_hold_single_nodes(engine, questions, lessons):
    nodes = list(mine(lambda _: engine, questions[:3], "node", depth=30))
    for lesson, edges in zip(nodes, lessons, strict=False):
        assert all((segment < 0) != (passage < 0) for segment, passage in (*lesson.positives, *lesson.negatives))
        segment, passage = edges.positives[0]
        assert set(lesson.positives) == {(segment, -1), (-1, passage)}
        assert lesson.gold_count == 2


def test_lessons_are_kept(lessons, tmp_path):
    save_lessons(lessons, tmp_path / "lessons.parquet")
    assert load_lessons(tmp_path / "lessons.parquet") == lessons
    (tmp_path / "other.parquet").write_bytes(b"x")
    with pytest.raises(EvaluationError, match="other.parquet: no lessons"):
        load_lessons(tmp_path / "other.parquet")


@pytest.mark.slow
def test_a_few_steps_lower_the_loss(engine, lessons):
    settings = SETTINGS.model_copy(update={"data": SETTINGS.data.model_copy(update={"held_out": 0.0})})
    recipe = RerankerRecipe(engine.corpus, lessons, settings)
    assert recipe.held_out == []
    batches = recipe.batches(0, seed=1)
    assert batches == recipe.batches(0, seed=1)
    assert batches != recipe.batches(1, seed=1)
    assert sorted(entry.lesson for batch in batches for entry in batch) == list(range(len(lessons)))
    groups = [{"params": list(g.parameters), "lr": 1e-3 * g.scale} for g in recipe.parameter_groups()]
    optimizer = torch.optim.AdamW(groups)
    losses = []
    for _ in range(6):
        loss = recipe.step(batches[0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]


@pytest.mark.slow
def test_training_writes_what_search_reads(engine, lessons, sample_index, tmp_path):
    save_lessons(lessons, tmp_path / "lessons.parquet")
    data = SETTINGS.data.model_copy(update={"index": sample_index, "held_out": 0.4})
    train = SETTINGS.train.model_copy(update={"max_steps": 2})
    settings = SETTINGS.model_copy(
        update={"data": data, "train": train, "lessons": tmp_path / "lessons.parquet", "pooling": "mean"}
    )
    scores = train_reranker(settings, tmp_path / "run")
    path = tmp_path / "run" / "edge-reranker.safetensors"
    card = read_card(tmp_path / "run", "edge reranker")
    assert card.scores == pytest.approx(scores)
    held_out = sum(is_held_out(lesson.table, share=settings.data.held_out) for lesson in lessons)
    assert card.settings["questions held out"] == held_out > 0
    assert card.files == {path.name: sha256_file(path)}
    with safe_open(path, framework="pt") as file:
        assert float(file.metadata()["weight"]) == scores["weight"]
    recipe = RerankerRecipe(engine.corpus, lessons, settings.model_copy(update={"start": path}))
    lesson = recipe.held_out[0]
    from safetensors.torch import load_file

    with torch.no_grad():
        recipe.scorer.head.weight.copy_(load_file(path)["head.weight"].float())
        recipe.scorer.head.bias.copy_(load_file(path)["head.bias"].float())
    reranker = EmbeddedReranker.load("edge", str(path), runtime="torch", lanes=1, max_tokens=96)
    evidence = [
        (engine.corpus.segment(s) if s >= 0 else None, engine.corpus.passages[p] if p >= 0 else None)
        for s, p in (candidate.pair for candidate in lesson.candidates[:12])
    ]
    from helios.retrieval.reranking.evidence_text import evidence_texts

    texts = evidence_texts(lesson.question, evidence, max_tokens=96, count_tokens=reranker.count_tokens)
    np.testing.assert_allclose(reranker.score(lesson.question, texts).values, recipe.values(lesson), atol=0.05)


def test_residual_lists_hold_what_retrieval_found_with_its_logits(engine, lessons):
    settings = SETTINGS.model_copy(update={"residual": True, "late_scale": 0.0})
    recipe = RerankerRecipe(engine.corpus, lessons, settings)
    entries = [entry for batch in recipe.batches(0, seed=1) for entry in batch]
    assert entries
    for entry in entries:
        lesson = recipe.lessons[entry.lesson]
        scores = {candidate.pair: candidate for candidate in lesson.candidates}
        assert all(scores[pair].gold >= 0 for pair in entry.pairs[: entry.right])
        assert all(scores[pair] in lesson.wrong for pair in entry.pairs[entry.right :])
        assert entry.priors == tuple(scores[pair].score for pair in entry.pairs)
    priors = np.array(entries[0].priors)
    wanted = np.log(np.exp(priors - priors.max()).sum()) - np.log(
        np.exp(priors[: entries[0].right] - priors.max()).sum()
    )
    with torch.no_grad():
        assert recipe.step((entries[0],)).item() == pytest.approx(wanted, abs=1e-3)


def test_a_lesson_whose_gold_was_not_found_is_left_out_of_residual_lists(engine, lessons):
    unfound = [
        replace(
            lesson,
            candidates=tuple(c for c in lesson.candidates if c.gold < 0),
            missed=tuple(c.pair for c in lesson.candidates if c.gold >= 0),
        )
        for lesson in lessons
    ]
    for residual, expected in ((True, 0), (False, len(unfound))):
        data = SETTINGS.data.model_copy(update={"held_out": 0.0})
        settings = SETTINGS.model_copy(update={"residual": residual, "data": data})
        recipe = RerankerRecipe(engine.corpus, unfound, settings)
        assert sum(len(batch) for batch in recipe.batches(0, seed=1)) == expected


def test_all_weights_can_be_trained(engine, lessons, tmp_path):
    """A full run is written as a change of low rank; search reads it as it reads any other."""
    recipe = RerankerRecipe(engine.corpus, lessons, SETTINGS.model_copy(update={"update": "full", "rank": 64}))
    groups = [parameter for group in recipe.parameter_groups() for parameter in group.parameters]
    assert sum(p.numel() for p in groups) > sum(p.numel() for p in recipe.scorer.bert.parameters())
    recipe.step(recipe.batches(0, seed=1)[0]).backward()
    with torch.no_grad():
        for parameter in recipe.adapted:
            if parameter.grad is not None and bool(parameter.grad.any()):
                parameter -= 0.02 * parameter.norm() / parameter.grad.norm() * parameter.grad
    exported = recipe.export()
    assert exported.errors["layers"] < 0.3
    assert not any("word_embeddings" in name for name in exported.tensors)
    recipe.save(tmp_path / "edge-reranker.safetensors", exported)
    read = load_pair_scorer(load_bert(recipe.base.folder), tmp_path / "edge-reranker.safetensors")
    before = load_bert(recipe.base.folder)
    name = "layers.3.up.weight"
    trained, written = recipe.scorer.bert.get_parameter(name), read.bert.get_parameter(name)
    change = float((trained - before.get_parameter(name)).detach().norm())
    assert float((trained - written).detach().norm()) < 0.5 * change > 0.0
    recipe.load_written(tmp_path / "edge-reranker.safetensors")
    assert torch.equal(recipe.scorer.bert.get_parameter(name), written)


def test_an_adapter_of_another_rank_is_refused(engine, lessons, tmp_path):
    recipe = RerankerRecipe(engine.corpus, lessons, SETTINGS)
    recipe.save(tmp_path / "a.safetensors", recipe.export())
    begin_from(recipe.scorer.bert, tmp_path / "a.safetensors", scale=1.0)
    with pytest.raises(TrainingError, match="set rank to its"):
        RerankerRecipe(
            engine.corpus,
            lessons,
            SETTINGS.model_copy(update={"rank": 8, "start": tmp_path / "a.safetensors"}),
        )
    with pytest.raises(TrainingError, match="no readable adapter"):
        begin_from(recipe.scorer.bert, Path("absent"), scale=1.0)


def test_a_run_without_an_index_is_refused(tmp_path):
    with pytest.raises(TrainingError, match="set data.index"):
        train_reranker(SETTINGS, tmp_path)


def candidate(number: int, score: float, gold: int = -1, *, answer: bool = False) -> Candidate:
    return Candidate((number, number), score, gold, answer)


def test_measures_by_hand():
    lesson = Lesson(
        "q", "t", 2,
        (candidate(0, 9.0), candidate(1, 8.9), candidate(2, 8.8, 0, answer=True), candidate(3, 8.7, 1)),
        (),
    )  # fmt: skip
    values = [np.array([0.0, 0.0, 6.0, 0.0], np.float32)]
    scores = measure_orders([lesson], values, "edge")
    assert scores["retrieval AR@2"] == 0.0
    assert scores["AR@2"] == 1.0
    assert scores["weight"] == 0.125
    ideal = 1 + 1 / np.log2(3)
    assert scores["retrieval nDCG@50"] == pytest.approx((1 / np.log2(4) + 1 / np.log2(5)) / ideal)
    assert scores["alone nDCG@50"] == pytest.approx((1 + 1 / np.log2(5)) / ideal)
    assert scores["gold R@10"] == 1.0
    assert list_accuracy([lesson], values) == 1.0
    assert list_accuracy([lesson], [np.array([0.0, 7.0, 6.0, 0.0], np.float32)]) == 0.0
