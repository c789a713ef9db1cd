"""The learned ranking's file: what was trained is what is read, and nothing else is."""

import json
from pathlib import Path

import lightgbm
import numpy as np
import pytest

from helios.errors import ModelError
from helios.models.ranker import EdgeRanker, find_ranker

NAMES = ("good", "noise")


@pytest.fixture
def ranker() -> EdgeRanker:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(400, 2)).astype(np.float32)
    data = lightgbm.Dataset(features, (features[:, 0] > 0).astype(int), group=[20] * 20, feature_name=list(NAMES))
    settings = {"objective": "lambdarank", "verbose": -1, "num_threads": 1}
    return EdgeRanker(lightgbm.train(settings, data, 10), NAMES)


def test_a_saved_ranking_scores_alike(ranker: EdgeRanker, tmp_path: Path):
    ranker.save(tmp_path, card={"data": "random"})
    features = np.array([[2.0, 0.0], [-2.0, 0.0], [0.1, 5.0]], np.float32)
    read = find_ranker(str(tmp_path), features=NAMES)
    assert read is not None
    assert np.array_equal(read.score(features), ranker.score(features))
    assert read.score(features)[0] > read.score(features)[1]
    assert json.loads((tmp_path / "card.json").read_text())["data"] == "random"
    assert len(read.score(np.zeros((0, 2), np.float32))) == 0


def test_other_features_are_refused(ranker: EdgeRanker, tmp_path: Path):
    ranker.save(tmp_path, card={})
    with pytest.raises(ModelError, match="other features"):
        EdgeRanker.load(tmp_path, features=("good", "bad"))


def test_a_missing_folder_is_named(tmp_path: Path):
    with pytest.raises(ModelError, match="nothing-here"):
        find_ranker(str(tmp_path / "nothing-here"), features=NAMES)


def test_none_switches_the_ranking_off():
    assert find_ranker("none", features=NAMES) is None
