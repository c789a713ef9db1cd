"""The ranking's recipe on the sample corpus: grades come from gold and answers, and the engine can use the result."""

from pathlib import Path

import pytest

from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.evaluation.questions import read_questions
from helios.retrieval.features import FEATURES
from training.crossfit import CrossFitted, table_fold
from training.errors import TrainingError
from training.ranker import ANSWER, GOLD, ROLE, Group, RankerSettings, fit, mine_groups
from training.recipes import DataSettings

SMALL = RankerSettings(trees=15, least_examples=5, folds=2)


@pytest.fixture(scope="module")
def groups(engine: Engine) -> list[Group]:
    return list(mine_groups(engine, read_questions(sample_path() / "questions.jsonl")))


def test_grades_follow_gold_edges_and_answers(engine: Engine, groups: list[Group]):
    assert sum((group.grades == GOLD).any() for group in groups) >= 0.8 * len(groups)
    for group in groups:
        assert group.features.shape == (len(group.grades), len(FEATURES))
        assert (group.answers[group.grades == ANSWER]).all()
        assert not group.answers[group.grades == 0].any()


def test_training_puts_gold_first_and_the_engine_reads_it(groups: list[Group], sample_index: Path, tmp_path: Path):
    data = DataSettings(index=sample_index, questions=(sample_path() / "questions.jsonl",))
    rows = []
    measures = ROLE.train(SMALL.model_copy(update={"data": data}), tmp_path / "ranker", device=None, on_log=rows.append)
    assert rows[-1].step == len(groups)
    assert set(measures) == {f"{name} AR@{k}" for name in ("fused", "learned") for k in (2, 5, 10, 50)}
    question = "In what year was the element discovered that melts in a warm hand?"
    with Engine.open(sample_index, overrides=[f"search.ranker={tmp_path / 'ranker'}"], threads=1) as ranked:
        edges = ranked.retrieve_edges(question, k=30).edges
    with Engine.open(sample_index, overrides=["search.ranker=none"], threads=1) as plain:
        fused = plain.retrieve_edges(question, k=30).edges
    assert {scored.edge for scored in edges[:5]} & {scored.edge for scored in fused[:10]}
    assert [scored.edge for scored in edges] != [scored.edge for scored in fused]


def test_the_same_examples_give_the_same_trees(groups: list[Group]):
    assert fit(groups, SMALL).model_to_string() == fit(groups, SMALL).model_to_string()


def test_data_is_asked_for(tmp_path: Path):
    with pytest.raises(TrainingError, match=r"data\.index"):
        ROLE.train(SMALL, tmp_path, device=None, on_log=lambda row: None)


def test_later_recipes_search_with_trees_that_never_saw_the_table(sample_index: Path, tmp_path: Path):
    questions = read_questions(sample_path() / "questions.jsonl")
    data = DataSettings(index=sample_index, questions=(sample_path() / "questions.jsonl",))
    ROLE.train(SMALL.model_copy(update={"data": data}), tmp_path, device=None, on_log=lambda row: None)
    with CrossFitted(sample_index, tmp_path) as searched:
        engines = {question.table_id: searched.engine(question) for question in questions}
        assert len(set(map(id, engines.values()))) == SMALL.folds
        for question in questions[:4]:
            fold = table_fold(question.table_id or "", seed=SMALL.seed, folds=SMALL.folds)
            assert str(searched.engine(question).config.search.ranker) == str(tmp_path / "folds" / str(fold))
        assert searched.search(questions[0], k=3).edges
    with pytest.raises(TrainingError, match="not a folder"):
        CrossFitted(sample_index, tmp_path / "nothing")
