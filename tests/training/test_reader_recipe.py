"""The reader's recipe on the sample index: mining resumes, fitting beats chance, the span model learns."""

from pathlib import Path

import numpy as np
import pytest
import torch

from helios.corpus.sample import sample_path
from helios.evaluation.questions import read_questions
from helios.reading.extractive import ExtractiveReader, candidates_of
from helios.reading.features import FEATURES, SPAN_FEATURES
from helios.reading.ranker import AnswerRanker
from helios.reading.spanmodel import SpanReader
from helios.reading.vectors import StoredVectors
from training.errors import TrainingError
from training.reader import ReaderSettings, fit_reader, train_reader
from training.reader_examples import Example, mine_examples
from training.reader_spans import SpanRecipe, answer_spans, mine_span_lessons, token_pairs
from training.settings import TrainSettings


@pytest.fixture(scope="module")
def questions():
    return read_questions(sample_path() / "questions.jsonl")


@pytest.fixture(scope="module")
def examples(engine, questions, tmp_path_factory):
    return mine_examples(engine, questions, tmp_path_factory.mktemp("examples"), edges=5, k=20, seed=13)


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def settings(**changes) -> ReaderSettings:
    return ReaderSettings(**{"trees": 50, "least_examples": 5, "data": {"held_out": 0.3}} | changes)


def synthetic(count: int = 60) -> list[Example]:
    """Questions whose right candidate is the one with the largest first feature."""
    chance = np.random.default_rng(5)
    made = []
    for number in range(count):
        features = chance.random((30, len(FEATURES))).astype(np.float16)
        exact = features[:, 0] == features[:, 0].max()
        made.append(
            Example(
                str(number), number / count, features, exact.astype(np.float32), exact, np.arange(30, dtype=np.int32)
            )
        )
    return made


def test_mining_reads_what_it_has(engine, questions, tmp_path):
    first = mine_examples(engine, questions[:2], tmp_path, edges=2, k=5, seed=1)
    done = []
    again = mine_examples(engine, questions[:2], tmp_path, edges=2, k=5, seed=1, advance=done.append)
    assert not done
    assert all(np.array_equal(a.f1, b.f1) and a.fold == b.fold for a, b in zip(first, again, strict=True))


def test_answers_of_the_sample_are_among_the_candidates(examples):
    assert np.mean([example.exact.any() for example in examples]) > 0.5


def test_fitting_finds_the_rule_and_is_the_same_again():
    ranker, scores = fit_reader(synthetic(200), settings())
    assert scores["held-out EM"] > 0.5  # one candidate in thirty is right
    again, same = fit_reader(synthetic(200), settings())
    assert scores == same
    assert ranker.trees.text == again.trees.text
    assert 0 < ranker.confidence(0.5) < 1


def test_too_little_to_learn_from():
    with pytest.raises(TrainingError, match="too few"):
        fit_reader(synthetic(3)[2:], settings())


def test_a_recipe_needs_an_index_and_questions(tmp_path):
    with pytest.raises(TrainingError, match=r"data\.questions"):
        train_reader(ReaderSettings(), tmp_path)


def test_occurrences_are_whole_words():
    text = "Bern and Bernina, in BERN"
    assert [text[slice(*span)] for span in answer_spans(text, ["Bern"])] == ["Bern", "BERN"]
    assert not answer_spans(text, ["", "erni"])


def test_twenty_steps_of_the_span_model(engine, questions, reader_folder, tmp_path):
    lessons = mine_span_lessons(engine, questions[:8], tmp_path, edges=4, seed=13)
    assert lessons
    assert lessons == mine_span_lessons(engine, questions[:8], tmp_path, edges=4, seed=13)
    recipe = SpanRecipe(lessons, lessons[:2], TrainSettings(), rank=4, negatives=1, questions=2)
    (group,) = recipe.parameter_groups()
    optimizer = torch.optim.AdamW(group.parameters, lr=2e-3)
    batch = recipe.batches(0, seed=1)[0]
    losses = []
    for _ in range(20):
        loss = recipe.step(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.6 * losses[0]
    assert set(recipe.evaluate()) == {"held-out span F1", "held-out span EM"}
    recipe.save(tmp_path / "spans.safetensors")
    spans = SpanReader.load(tmp_path / "spans.safetensors")
    _check_loaded(recipe, spans, lessons[0])
    _check_features(engine, questions[0], spans, reader_folder)


def _check_loaded(recipe: SpanRecipe, spans: SpanReader, lesson) -> None:
    """What was saved reads as what was trained, but for the file's bf16."""
    recipe.model.eval()
    (window,) = recipe.reader.read(lesson.question, lesson.right[:1])
    trained = SpanReader(recipe.model, recipe.reader).logits(lesson.question, lesson.right[:1])[0]
    loaded = spans.logits(lesson.question, lesson.right[:1])[0]
    assert np.abs(trained.start - loaded.start).max() < 0.5
    pairs = list(token_pairs(window, answer_spans(lesson.right[0], lesson.answers)))
    assert pairs
    assert all(window.first <= first <= last for first, last in pairs)


def _check_features(engine, question, spans: SpanReader, folder: Path) -> None:
    vectors = StoredVectors(engine.index, engine.encoder)
    evidence = engine.search(question.text, k=5)
    found = candidates_of(question.text, evidence, vectors, edges=5, spans=spans)
    columns = found.features[:, -len(SPAN_FEATURES) :]
    assert np.nanmax(columns[:, 0]) == 0.0
    assert not np.isnan(columns).all()
    assert ExtractiveReader(AnswerRanker.load(folder), vectors, spans=spans).read(question.text, evidence).text
