"""The learned ranking's folder: what was trained is what is read, and nothing else is; which index it fits."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import lightgbm
import numpy as np
import pytest

from helios.engine import Engine
from helios.errors import ModelError
from helios.models.card import ModelCard, read_card, write_card
from helios.models.trees import Trees
from helios.retrieval.ranking import fused, stage
from helios.retrieval.ranking.features import FEATURES
from helios.retrieval.ranking.fused import FusedModel
from helios.retrieval.ranking.model import SHIPPED, Calibration, EdgeRanker
from helios.retrieval.ranking.stage import load_ranking
from helios.retrieval.spreading import Prices

NAMES = ("good", "noise")
CARD = ModelCard(
    name="r", role="ranker", summary="", base="none", data=(), settings={}, scores={}, needs={"features": NAMES},
    values={"calibration": {"slope": 0.5, "intercept": -1.0}},
)  # fmt: skip


@pytest.fixture
def trees() -> Trees:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(400, 2)).astype(np.float32)
    data = lightgbm.Dataset(features, (features[:, 0] > 0).astype(int), group=[20] * 20, feature_name=list(NAMES))
    settings = {"objective": "lambdarank", "verbose": -1, "num_threads": 1}
    return Trees.of(lightgbm.train(settings, data, 10))


@pytest.fixture
def folder(trees: Trees, tmp_path: Path) -> Path:
    trees.save(tmp_path / "trees.txt")
    write_card(tmp_path, CARD, weights=["trees.txt"])
    return tmp_path


def loaded(folder: Path, features: tuple[str, ...] = NAMES) -> EdgeRanker:
    return EdgeRanker.load(folder, role="ranker", features=features)[0]


def test_a_saved_ranking_gives_calibrated_sums(trees: Trees, folder: Path):
    features = np.array([[2.0, 0.0], [-2.0, 0.0], [0.1, 5.0]], np.float32)
    scores = loaded(folder).score(features)
    assert np.array_equal(scores, EdgeRanker(trees, Calibration(0.5, -1.0)).score(features))
    np.testing.assert_allclose(scores, 0.5 * trees.sums(features) - 1.0, rtol=1e-6)
    assert scores.dtype == np.float32
    assert scores[0] > scores[1]
    assert len(loaded(folder).score(np.zeros((0, 2), np.float32))) == 0


def test_other_features_are_refused(folder: Path):
    with pytest.raises(ModelError, match="were trained with another features"):
        loaded(folder, ("good", "bad"))


def test_trees_that_are_not_of_the_cards_features_are_refused(trees: Trees, folder: Path):
    replace(trees, text=trees.text.replace("noise", "other")).save(folder / "trees.txt")
    write_card(folder, CARD, weights=["trees.txt"])
    with pytest.raises(ModelError, match=r"trees\.txt: these trees were grown on other features than their card names"):
        loaded(folder)


def test_a_card_without_a_calibration_is_refused(folder: Path):
    for values in ({}, {"calibration": {"warp": 9}}, {"calibration": None}):
        write_card(folder, replace(CARD, values=values), weights=["trees.txt"])
        with pytest.raises(ModelError, match=f"{folder}: its card does not hold the calibration of a ranker"):
            loaded(folder)


def test_a_missing_folder_is_named(tmp_path: Path):
    with pytest.raises(ModelError, match="nothing-here"):
        loaded(tmp_path / "nothing-here")


@pytest.fixture
def needs() -> dict[str, object]:
    """What the packaged ranking needs."""
    return {name: value for name, value in read_card(SHIPPED, "ranker").needs.items() if name != "features"}


def ranking(configured: str | None, needs: dict[str, object]) -> stage.Ranking | None:
    return load_ranking(configured, first=100, scale=FusedModel.load().scale, needs=needs)


def test_the_packaged_ranking_fits_the_packaged_fused_score(needs):
    assert needs["fused"] == FusedModel.load().name
    assert ranking(None, needs) is not None
    assert ranking("none", needs) is None


@pytest.mark.parametrize(("name", "value"), [("encoder", "another"), ("bits", 2), ("fused", {"star": 0.1})])
def test_the_packaged_ranking_is_left_out_where_it_does_not_fit_and_a_named_one_is_an_error(
    needs, name, value, caplog
):  # fmt: skip
    others = needs | {name: value}
    assert ranking(None, others) is None
    assert f"the packaged ranking was trained with another {name}: no learned ranking" in caplog.text
    with pytest.raises(ModelError, match=f"{SHIPPED}: these weights .ranker. were trained with another {name}"):
        ranking(str(SHIPPED), others)


def test_a_reranker_is_no_ranking(needs):
    late = SHIPPED.parent.parent / "reranking" / "weights" / "late"
    with pytest.raises(ModelError, match="holds a late-reranker, expected a ranker"):
        ranking(str(late), needs)


def test_a_ranking_whose_file_changed_is_refused(needs, tmp_path: Path):
    shutil.copytree(SHIPPED, tmp_path / "ranking")
    with (tmp_path / "ranking" / "trees.txt").open("a") as file:
        file.write("\n")
    with pytest.raises(ModelError, match=r"trees\.txt: damaged, or not the file of its card"):
        ranking(str(tmp_path / "ranking"), needs)


def test_another_fused_score_goes_without_the_packaged_ranking(sample_index: Path, tmp_path: Path, caplog):
    """Settings that the ranking was not trained with cannot spoil it in silence."""
    card = read_card(fused.SHIPPED, fused.ROLE)
    weights = {**card.values["fusion"], "lexical": 0.0}
    write_card(tmp_path, replace(card, values={**card.values, "fusion": weights}))
    other = [f"advanced.search.fused={tmp_path}", "rerank.backend=none"]
    with Engine.open(sample_index, overrides=other, threads=1) as engine:
        names = [stage.name for stage in engine.pipeline.stages]
        assert engine.search("river", k=3).edges
    assert names == ["retrieve", "documents", "expand", "refine", "spread"]
    assert "another fused: no learned ranking" in caplog.text
    named = Engine.open(sample_index, overrides=[*other, f"search.ranker={SHIPPED}"], threads=1)
    with named, pytest.raises(ModelError, match="were trained with another fused"):
        named.search("river", k=3)


@pytest.mark.parametrize(
    ("load", "shipped", "role"),
    [(FusedModel.load, fused.SHIPPED, fused.ROLE), (Prices.load, None, "spreading")],
)  # fmt: skip
def test_small_models_without_their_numbers_are_refused(load, shipped, role, tmp_path: Path):
    assert load()
    write_card(tmp_path, replace(CARD, role=role, values={"warp": 9}, needs={}))
    with pytest.raises(ModelError, match=f"{tmp_path}: its card does not hold the"):
        load(tmp_path)
    record = json.loads((tmp_path / "card.json").read_text())
    (tmp_path / "card.json").write_text(json.dumps(record | {"role": "other"}))
    with pytest.raises(ModelError, match=f"holds a other, expected a {role}"):
        load(tmp_path)


def test_the_packaged_features_are_those_of_this_version():
    assert EdgeRanker.load(SHIPPED, role="ranker", features=FEATURES)[0].trees.features == FEATURES
