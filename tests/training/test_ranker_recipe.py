"""The ranking's recipe on the sample corpus: grades come from gold and answers, and the engine can use the result."""

from pathlib import Path

import numpy as np
import pytest

from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.errors import ModelError
from helios.evaluation.questions import read_questions
from helios.models.card import read_card
from helios.retrieval.ranking.features import FEATURES
from training.crossfit import CrossFitted, rank_edges, table_fold
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


def test_groups_hold_what_search_ranks_by(engine: Engine, groups: list[Group]):
    for question, group in zip(read_questions(sample_path() / "questions.jsonl")[:3], groups, strict=False):
        ranked = rank_edges(engine, question.text, k=5).ranked
        assert ranked is not None
        np.testing.assert_array_equal(group.features, ranked.features)


@pytest.fixture(scope="module")
def trained(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float], int]:
    """The folder of a ranking that the recipe wrote, its measures, and the last step that it told of."""
    folder = tmp_path_factory.mktemp("ranker")
    data = DataSettings(index=sample_index, questions=(sample_path() / "questions.jsonl",))
    rows = []
    measures = ROLE.train(SMALL.model_copy(update={"data": data}), folder, device=None, on_log=rows.append)
    return folder, dict(measures), rows[-1].step


def test_training_puts_gold_first_and_the_engine_reads_it(groups: list[Group], trained, sample_index: Path):
    folder, measures, step = trained
    assert step == len(groups)
    assert set(measures) == {f"{name} AR@{k}" for name in ("fused", "learned") for k in (2, 5, 10, 50)}
    question = "In what year was the element discovered that melts in a warm hand?"
    with Engine.open(sample_index, overrides=[f"search.ranker={folder}"], threads=1) as ranked:
        edges = rank_edges(ranked, question, k=30).subgraph.edges
    with Engine.open(sample_index, overrides=["search.ranker=none"], threads=1) as plain:
        fused = rank_edges(plain, question, k=30).subgraph.edges
    assert {scored.edge for scored in edges[:5]} & {scored.edge for scored in fused[:10]}
    assert [scored.edge for scored in edges] != [scored.edge for scored in fused]


def test_the_card_says_what_the_trees_need(engine: Engine, trained):
    folder, measures, _ = trained
    card = read_card(folder, "ranker")
    assert card.scores == measures
    assert card.needs == {
        "features": list(FEATURES), "encoder": engine.encoder.fingerprint, "fused": engine.pipeline.fused.name,
        "bits": engine.index.bits,
    }  # fmt: skip
    assert set(card.values["calibration"]) == {"slope", "intercept"}
    for fold in range(SMALL.folds):
        apart = read_card(folder / "folds" / str(fold), "ranker")
        assert (apart.settings["without_fold"], apart.needs, apart.values) == (fold, card.needs, card.values)
        assert apart.files != card.files
    with pytest.raises(ModelError, match="another fused"):
        card.check(folder, fused=engine.pipeline.fused.name | {"star": 9.0})


def test_the_same_examples_give_the_same_trees(groups: list[Group]):
    assert fit(groups, SMALL).model_to_string() == fit(groups, SMALL).model_to_string()


def test_data_is_asked_for(tmp_path: Path):
    with pytest.raises(TrainingError, match=r"data\.index"):
        ROLE.train(SMALL, tmp_path, device=None, on_log=lambda row: None)


def test_later_recipes_search_with_trees_that_never_saw_the_table(trained, sample_index: Path, tmp_path: Path):
    folder, questions = trained[0], read_questions(sample_path() / "questions.jsonl")
    with CrossFitted(sample_index, folder) as searched:
        engines = {question.table_id: searched.engine(question) for question in questions}
        assert len(set(map(id, engines.values()))) == SMALL.folds
        for question in questions[:4]:
            fold = table_fold(question.table_id or "", seed=SMALL.seed, folds=SMALL.folds)
            assert str(searched.engine(question).config.search.ranker) == str(folder / "folds" / str(fold))
        assert len({id(engine.encoder) for engine in engines.values()}) == 1
        assert searched.search(questions[0], k=3).edges
    with pytest.raises(TrainingError, match="not a folder that `helios train ranker` wrote"):
        CrossFitted(sample_index, tmp_path / "nothing")
