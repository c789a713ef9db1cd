"""The late-interaction reranker's recipe on the sample corpus: who reads what, and that search reads the result."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from helios.config import AdvancedRerankSettings
from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.evaluation.questions import read_questions
from helios.models.base import WEIGHTS_SHA256
from helios.models.card import read_card
from helios.models.encoder import MiniLMEncoder
from helios.retrieval.ranking.model import EdgeRanker
from helios.retrieval.reranking.late import (
    ENCODER,
    LATE_FEATURES,
    SHIPPED,
    LateReranking,
    NodeReading,
    late_encoder,
)
from helios.retrieval.state import SearchState, run_stages
from helios.types import ScoredEdge
from training.crossfit import RANKING_ALONE, CrossFitted, rank_edges, table_fold
from training.errors import TrainingError
from training.holdout import is_held_out, share_of
from training.late_reranker import ROLE, LateRerankerSettings, mine_group
from training.ranker import GOLD
from training.recipes import DataSettings

QUESTIONS = sample_path() / "questions.jsonl"


@pytest.fixture(scope="module")
def reading() -> NodeReading:
    """The packaged encoder, which keeps what it reads for the next test."""
    return NodeReading(late_encoder(SHIPPED / ENCODER), megabytes=64)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some of the sample's questions, about tables of both halves."""
    path = tmp_path_factory.mktemp("questions") / "few.jsonl"
    path.write_text("".join(QUESTIONS.read_text("utf-8").splitlines(keepends=True)[3::6]), "utf-8")
    return path


@pytest.fixture(scope="module")
def settings(sample_index: Path, few: Path) -> LateRerankerSettings:
    data = DataSettings(index=sample_index, questions=(few,))
    return LateRerankerSettings(data=data, encoder=SHIPPED / ENCODER, trees=15, least_examples=3, folds=2, k1=12)


@pytest.fixture(scope="module")
def trained(settings: LateRerankerSettings, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str], int]:
    """The folder of a reranker with an encoder a half, the names of its measures, and the last step that it told of."""
    folder, rows = tmp_path_factory.mktemp("late-reranker"), []
    halves = settings.model_copy(update={"shares": (SHIPPED / ENCODER, SHIPPED / ENCODER)})
    measures = ROLE.train(halves, folder, device=None, on_log=rows.append)
    return folder, set(measures), rows[-1].step


def with_rows(state: SearchState) -> set[ScoredEdge]:
    """Edges that a row is in; a passage alone may give way to another one later."""
    return {one for one in state.subgraph.edges if one.edge.segment is not None}


def test_training_writes_what_search_reads(trained, few: Path, sample_index: Path):
    folder, measures, step = trained
    assert step == len(read_questions(few)) == 4
    assert measures == {f"{name} AR@{k}" for name in ("ranked", "learned") for k in (2, 5, 10)}
    assert (folder / ENCODER).read_bytes() == (SHIPPED / ENCODER).read_bytes()
    card = read_card(folder, "late-reranker")
    assert card.needs == {"features": list(LATE_FEATURES), "base": WEIGHTS_SHA256}
    assert set(card.files) == {"trees.txt", ENCODER}
    question = "In what year was the element discovered that melts in a warm hand?"
    everything = ["advanced.rerank.within=100", "advanced.rerank.tokens=100000"]
    own = [f"rerank.model={folder}", "rerank.edges=12", *everything, *RANKING_ALONE]
    with Engine.open(sample_index, overrides=own, threads=1) as engine:
        before = rank_edges(engine, question, k=30)
        (rerank,) = (stage for stage in engine.pipeline.stages if stage.name == "rerank")
        after = rerank.run(before)
        whole = run_stages(engine.begin(question, k=30), engine.pipeline.stages)
    assert with_rows(after) <= with_rows(whole)
    read = {scored.edge for scored in before.subgraph.edges[:12]}
    scores = {scored.edge: scored.score for scored in before.subgraph.edges}
    assert {one.edge for one in after.subgraph.edges if one.score != scores[one.edge]} == read


def test_a_question_is_read_by_the_encoder_that_held_its_table_out(engine: Engine, reading: NodeReading, few: Path):
    readings = [reading, NodeReading(MiniLMEncoder.load(adapter="none"), megabytes=64)]
    place = LATE_FEATURES.index("late_tokens_in_edge")
    shares = set()
    for question in read_questions(few):
        share = share_of(question.table_id or "", 2)
        assert is_held_out(question.table_id or "", share=0.5, start=0.5 * share)
        shares.add(share)
        group = mine_group(engine, question, readings, depth=4)
        alone = mine_group(engine, question, [readings[share]], depth=4)
        other = mine_group(engine, question, [readings[1 - share]], depth=4)
        np.testing.assert_array_equal(group.features, alone.features)
        assert (group.features[:, place - 5 :] != other.features[:, place - 5 :]).any()
    assert shares == {0, 1}


def test_later_recipes_rerank_with_what_never_saw_the_table(
    trained, settings: LateRerankerSettings, sample_index: Path, reading: NodeReading, few: Path
):
    folder, usual = trained[0], AdvancedRerankSettings()
    with (
        CrossFitted(sample_index, None, folder, overrides=RANKING_ALONE) as fitted,
        CrossFitted(sample_index, None, overrides=RANKING_ALONE) as plain,
    ):
        for question in read_questions(few)[:2]:
            before = plain.ranked(question, k=30)
            fold = table_fold(question.table_id or "", seed=settings.seed, folds=settings.folds)
            trees, _ = EdgeRanker.load(folder / "folds" / str(fold), role="late-reranker", features=LATE_FEATURES)
            stage = LateReranking(reading, trees, settings.k1, within=usual.within, tokens=usual.tokens)
            after = stage.run(before)
            assert fitted.ranked(question, k=30).subgraph == after.subgraph
            assert [stage.name for stage in plain.stages(question)] == ["retrieve", "rank", "documents"]
            assert [stage.name for stage in fitted.stages(question)] == ["retrieve", "rank", "rerank", "documents"]
            whole = run_stages(fitted.engine(question).begin(question.text, k=30), fitted.stages(question))
            assert with_rows(after) <= with_rows(whole)


def test_a_folder_without_what_crossfitting_needs_is_refused(trained, sample_index: Path, tmp_path: Path):
    shutil.copytree(trained[0], tmp_path / "whole", ignore=shutil.ignore_patterns("shares"))
    with pytest.raises(TrainingError, match="shares is missing: train the reranker with encoders that held"):
        CrossFitted(sample_index, None, tmp_path / "whole")
    shutil.rmtree(tmp_path / "whole" / "folds" / "1")
    with pytest.raises(TrainingError, match="1 is missing: train the ranking again"):
        CrossFitted(sample_index, None, tmp_path / "whole")
    with pytest.raises(TrainingError, match="not a folder that `helios train late-reranker` wrote"):
        CrossFitted(sample_index, None, tmp_path / "nowhere")


def test_grades_follow_the_gold_edges(engine: Engine, reading: NodeReading, few: Path):
    groups = [mine_group(engine, question, [reading], depth=12) for question in read_questions(few)]
    assert sum((group.grades == GOLD).any() for group in groups) >= 3
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
        mine_group(plain, question, [NodeReading(plain.encoder)], depth=5)
