"""The late-interaction reranker's recipe on the sample corpus: who reads what, and that search reads the result."""

from pathlib import Path

import numpy as np
import pytest

from helios.config import RerankSettings
from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.evaluation.questions import read_questions
from helios.models.encoder import TokenEncoder
from helios.models.ranker import EdgeRanker
from helios.retrieval.late_reranker import ENCODER, LATE_FEATURES, SHIPPED, LateReranker, late_encoder
from training.crossfit import CrossFitted, table_fold
from training.errors import TrainingError
from training.holdout import is_held_out, share_of
from training.late_reranker import ROLE, LateRerankerSettings, mine_group
from training.ranker import GOLD
from training.recipes import DataSettings

QUESTIONS = sample_path() / "questions.jsonl"


@pytest.fixture
def settings(sample_index: Path) -> LateRerankerSettings:
    data = DataSettings(index=sample_index, questions=(QUESTIONS,))
    return LateRerankerSettings(data=data, encoder=SHIPPED / ENCODER, trees=15, least_examples=5, folds=2, k1=12)


def test_training_writes_what_search_reads(settings: LateRerankerSettings, sample_index: Path, tmp_path: Path):
    rows = []
    measures = ROLE.train(settings, tmp_path, device=None, on_log=rows.append)
    assert rows[-1].step == len(read_questions(QUESTIONS))
    assert set(measures) == {f"{name} AR@{k}" for name in ("ranked", "learned") for k in (2, 5, 10)}
    assert (tmp_path / ENCODER).read_bytes() == (SHIPPED / ENCODER).read_bytes()
    question = "In what year was the element discovered that melts in a warm hand?"
    with Engine.open(sample_index, overrides=[f"rerank.edge_model={tmp_path}", "rerank.k1=12"], threads=1) as trained:
        before = trained.retrieve_edges(question, k=30)
        after = trained.stages.rerank(question, before)
    assert {scored.edge for scored in after.edges[:12]} == {scored.edge for scored in before.edges[:12]}
    assert [scored.edge for scored in after.edges] != [scored.edge for scored in before.edges]


def test_a_question_is_read_by_the_encoder_that_held_its_table_out(engine: Engine, settings: LateRerankerSettings):
    encoders: list[TokenEncoder] = [
        late_encoder(SHIPPED / ENCODER, RerankSettings()),
        engine.encoder,
    ]
    place = LATE_FEATURES.index("late_tokens_in_edge")
    shares = set()
    for question in read_questions(QUESTIONS):
        share = share_of(question.table_id or "", 2)
        assert is_held_out(question.table_id or "", share=0.5, start=0.5 * share)
        shares.add(share)
        group = mine_group(engine, question, encoders, depth=8)
        alone = mine_group(engine, question, [encoders[share]], depth=8)
        other = mine_group(engine, question, [encoders[1 - share]], depth=8)
        np.testing.assert_array_equal(group.features, alone.features)
        assert (group.features[:, place - 5 :] != other.features[:, place - 5 :]).any()
    assert shares == {0, 1}


def test_later_recipes_rerank_with_what_never_saw_the_table(
    settings: LateRerankerSettings, sample_index: Path, tmp_path: Path
):
    halves = settings.model_copy(update={"shares": (SHIPPED / ENCODER, SHIPPED / ENCODER)})
    ROLE.train(halves, tmp_path, device=None, on_log=lambda row: None)
    encoder, asked = late_encoder(SHIPPED / ENCODER, RerankSettings()), read_questions(QUESTIONS)[:6]
    with CrossFitted(sample_index, None, tmp_path) as fitted, CrossFitted(sample_index, None) as plain:
        for question in asked:
            engine, before = plain.engine(question), plain.ranked(question, k=30)
            fold = table_fold(question.table_id or "", seed=settings.seed, folds=settings.folds)
            trees = EdgeRanker.load(tmp_path / "folds" / str(fold), features=LATE_FEATURES)
            reranker = LateReranker(encoder, trees)
            after = reranker.rerank(engine.part, engine.edge_index, question.text, before, k1=settings.k1)
            assert fitted.ranked(question, k=30) == after
            assert before.edges == engine.retrieve_edges(question.text, k=30).edges
    ROLE.train(settings, tmp_path / "whole", device=None, on_log=lambda row: None)
    with pytest.raises(TrainingError, match="shares is missing: train the reranker with encoders that held"):
        CrossFitted(sample_index, None, tmp_path / "whole")
    with pytest.raises(TrainingError, match="not a folder that `helios train late-reranker` wrote"):
        CrossFitted(sample_index, None, tmp_path / "nowhere")


def test_grades_follow_the_gold_edges(engine: Engine):
    encoders = [late_encoder(SHIPPED / ENCODER, RerankSettings())]
    groups = [mine_group(engine, question, encoders, depth=20) for question in read_questions(QUESTIONS)[:8]]
    assert sum((group.grades == GOLD).any() for group in groups) >= 6
    assert all(group.features.shape == (len(group.grades), len(LATE_FEATURES)) for group in groups)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": DataSettings()}, r"set data\.index and data\.questions"),
        ({"encoder": None}, "set encoder"),
        ({"encoder": Path("nowhere.safetensors")}, r"nowhere\.safetensors: no such file"),
        ({"shares": (SHIPPED / ENCODER, Path("nowhere.safetensors"))}, r"nowhere\.safetensors: no such file"),
    ],
)
def test_what_is_missing_is_asked_for(settings: LateRerankerSettings, tmp_path: Path, changes, message: str):
    with pytest.raises(TrainingError, match=message):
        ROLE.train(settings.model_copy(update=changes), tmp_path, device=None, on_log=lambda row: None)


def test_without_a_learned_ranking_there_is_nothing_to_learn(settings: LateRerankerSettings, sample_index: Path):
    question = read_questions(QUESTIONS)[0]
    with (
        Engine.open(sample_index, overrides=["search.ranker=none"], threads=1) as plain,
        pytest.raises(TrainingError, match=r"leave search\.ranker alone"),
    ):
        mine_group(plain, question, [plain.encoder], depth=5)
