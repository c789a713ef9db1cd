"""Presence: weights behind the data are found, deleted nodes are not, and what is written is read as settings."""

import numpy as np
import pytest

from helios.config import PresenceSettings, load_config
from helios.corpus.sample import QUESTIONS, sample_path
from helios.engine import Engine
from helios.evaluation.questions import read_questions
from helios.reading.presence import CEILING, FLOOR, chance_of_presence, presence_features
from helios.types import Evidence
from training.cards import read_card
from training.errors import TrainingError
from training.presence import (
    PresenceLesson,
    PresenceRecipe,
    fit_presence,
    gold_nodes,
    search_without,
    train_presence,
)

TRUE = PresenceSettings(coverage=8.0, score=1.5, intercept=-4.0, least=0.0)


@pytest.fixture(scope="module")
def questions():
    return [question for question in read_questions(sample_path() / QUESTIONS) if question.gold_edges]


def _lessons(count: int) -> list[PresenceLesson]:
    random = np.random.default_rng(2)
    rows = np.column_stack([random.uniform(0, 1, count), random.normal(size=count)])
    present = random.uniform(size=count) < [chance_of_presence(TRUE, row) for row in rows]
    return [PresenceLesson(row, bool(present[n]), held_out=n % 2 == 0) for n, row in enumerate(rows)]


def test_the_weights_behind_the_data_are_found():
    fitted, scores = fit_presence(_lessons(6000), PresenceRecipe(lost=0.05))
    found = np.array([fitted.coverage, fitted.score, fitted.intercept])
    np.testing.assert_allclose(found, [TRUE.coverage, TRUE.score, TRUE.intercept], rtol=0.1)
    assert 0.03 < scores["held-out share refused, answer there"] <= 0.05
    assert scores["held-out share refused, answer deleted"] > 0.5
    both = scores["held-out AUC"]
    assert both > scores["held-out AUC of coverage"] > 0.5
    assert both > scores["held-out AUC of the best edge"] > 0.5


def test_one_kind_alone_teaches_nothing():
    there = [lesson for lesson in _lessons(50) if lesson.present]
    with pytest.raises(TrainingError, match="two tables or more"):
        fit_presence(there, PresenceRecipe())


def test_only_log_odds_between_the_bounds_count(engine):
    evidence = engine.search("Which river is the longest ?", k=3)
    assert presence_features(0.4, evidence).tolist() == [0.4, pytest.approx(evidence.edges[0].score)]
    assert presence_features(0.0, Evidence("nothing", ())).tolist() == [0.0, FLOOR]
    with Engine.open(engine.snapshot.directory, overrides=["search.ranker=none", "refinement.mode=off"]) as fused:
        assert presence_features(0.4, fused.search("Which river is the longest ?", k=3))[1] == CEILING


def test_deleted_nodes_are_not_found_and_the_engine_stays_as_it_was(engine, questions):
    question = questions[0]
    before = engine.search(question.text, k=50)
    nodes = gold_nodes(engine, question)
    found = search_without(engine, question.text, nodes)
    segments = {str(edge.segment.segment_id) for edge in found.edges if edge.segment}
    passages = {edge.passage.passage_id for edge in found.edges if edge.passage}
    for gold in question.gold_edges:
        assert gold.segment_id is None or str(gold.segment_id) not in segments
        assert gold.passage_id not in passages
    assert len(found.edges) > 0
    assert engine.search(question.text, k=50).edges == before.edges


def test_training_writes_settings_that_are_read(sample_index, tmp_path):
    data = {"index": sample_index, "questions": (sample_path() / QUESTIONS,), "held_out": 0.5}
    scores = train_presence(PresenceRecipe(data=data, every=1, lost=0.1), tmp_path)
    written = load_config(tmp_path / "presence.yaml").reading.presence
    assert (written.coverage, written.score) == (scores["coverage"], scores["score"])
    assert written.coverage > 0
    assert scores["held-out AUC"] > 0.6
    assert read_card(tmp_path).role == "presence"
    with pytest.raises(TrainingError, match="set data.index"):
        train_presence(PresenceRecipe(), tmp_path)
