"""Trees for inference: their sums are LightGBM's to the last bit, from any thread, and damaged text is refused."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.errors import ModelError
from helios.models.trees import Trees
from helios.retrieval.expansion.model import SHIPPED, TREES

GROW = {"verbose": -1, "num_threads": 1, "deterministic": True, "min_data_in_leaf": 5, "num_leaves": 15}
KINDS: dict[str, dict[str, Any]] = {
    "binary": {"objective": "binary"},
    "lambdarank": {"objective": "lambdarank"},
    "regression": {"objective": "regression"},
    "cross_entropy": {"objective": "cross_entropy"},
    "zero is missing": {"objective": "binary", "zero_as_missing": True},
    "nothing is missing": {"objective": "binary", "use_missing": False},
    "dart": {"objective": "binary", "boosting": "dart", "drop_rate": 0.5},
    "bagging and shrinkage": {"objective": "binary", "bagging_fraction": 0.5, "bagging_freq": 1, "learning_rate": 0.03},
    "stumps": {"objective": "binary", "num_leaves": 2},
}


def rows_of(count: int, *, seed: int, missing: float = 0.1) -> np.ndarray:
    """Rows (count, 6) of all sorts: smooth, rounded, few values, zeros and missing ones."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, 6))
    rows[:, 1] = np.round(rows[:, 1])
    rows[:, 2] = rng.integers(0, 3, count)
    rows[:, 3] *= rng.random(count) < 0.5
    rows[:, 4] *= 1e6
    rows[rng.random(rows.shape) < missing] = np.nan
    rows[rng.random(rows.shape) < 0.02] = 1e-36
    return rows


def grown(rows: np.ndarray, *, trees: int = 30, seed: int = 0, **kind: Any) -> lightgbm.Booster:
    """A booster of these rows whose target has to do with them."""
    rng = np.random.default_rng(seed)
    known = np.nan_to_num(rows)
    target = known[:, 0] + 0.5 * known[:, 2] - known[:, 3] * (known[:, 1] > 0) + rng.normal(size=len(rows)) > 0
    groups = {"group": [20] * (len(rows) // 20)} if kind["objective"] == "lambdarank" else {}
    data = lightgbm.Dataset(rows, target.astype(float), **groups)
    return lightgbm.train({**GROW, **kind, "seed": seed}, data, trees)


@pytest.fixture(scope="module")
def booster() -> lightgbm.Booster:
    return grown(rows_of(400, seed=7), objective="binary")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_lightgbms_to_the_last_bit(kind: str, dtype: type) -> None:
    booster = grown(rows_of(400, seed=1).astype(dtype), seed=2, **KINDS[kind])
    trees = Trees.of(booster)
    rows = np.concatenate([rows_of(300, seed=3, missing=0.3), np.zeros((1, 6)), np.full((1, 6), np.nan)]).astype(dtype)
    assert len(trees) == booster.num_trees() == 30
    assert trees.features == tuple(booster.feature_name())
    np.testing.assert_array_equal(trees.sums(rows), booster.predict(rows, raw_score=True))
    for count in (0, 1, 7, 30, 99):
        expected = booster.predict(rows, raw_score=True, num_iteration=min(count, 30)) if count else np.zeros(len(rows))
        np.testing.assert_array_equal(trees.sums(rows, trees=count), expected)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6), trees=st.integers(1, 25), leaves=st.integers(2, 40), missing=st.sampled_from([0, 0.4]),
    kind=st.sampled_from(sorted(KINDS)),
)  # fmt: skip
def test_sums_of_any_booster(seed: int, trees: int, leaves: int, missing: float, kind: str) -> None:
    rows = rows_of(200, seed=seed, missing=missing)
    booster = grown(rows, trees=trees, seed=seed, **(KINDS[kind] | {"num_leaves": leaves, "min_data_in_leaf": 2}))
    asked = rows_of(100, seed=seed + 1, missing=missing)
    np.testing.assert_array_equal(Trees.of(booster).sums(asked), booster.predict(asked, raw_score=True))


def test_probabilities_are_the_logistic_of_the_sums(booster: lightgbm.Booster) -> None:
    rows = rows_of(100, seed=4)
    np.testing.assert_allclose(Trees.of(booster).probabilities(rows), booster.predict(rows), rtol=1e-12)


def test_a_trained_constant_is_read(tmp_path: Path) -> None:
    """A booster that found nothing to split has trees of one leaf."""
    rows = np.zeros((100, 2))
    booster = lightgbm.train(
        {**GROW, "objective": "binary", "min_data_in_leaf": 200}, lightgbm.Dataset(rows, np.arange(100) % 3 == 0), 3
    )
    trees = Trees.of(booster)
    np.testing.assert_array_equal(trees.sums(rows), booster.predict(rows, raw_score=True))


def test_what_is_saved_is_read(booster: lightgbm.Booster, tmp_path: Path) -> None:
    rows = rows_of(50, seed=5)
    Trees.of(booster).save(tmp_path / "trees.txt")
    again = Trees.read(tmp_path / "trees.txt")
    np.testing.assert_array_equal(again.sums(rows), booster.predict(rows, raw_score=True))
    assert again.objective == "binary sigmoid:1"


def test_eight_threads_at_once_get_what_one_gets() -> None:
    """All trees and the first few are asked for at the same moment: a LightGBM Booster would mix them up."""
    trees = Trees.read(SHIPPED / TREES)
    rng = np.random.default_rng(0)
    asked = [rng.normal(size=(int(count), len(trees.features))) * 5 for count in rng.integers(1, 200, 200)]
    counts = [None, 20, 1, None] * 50
    alone = [trees.sums(rows, trees=count) for rows, count in zip(asked, counts, strict=True)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda one: trees.sums(one[0], trees=one[1]), zip(asked, counts, strict=True)))
    assert all(np.array_equal(one, other) for one, other in zip(alone, together, strict=True))


def test_a_row_that_is_sure_stops_early_and_the_others_go_on(booster: lightgbm.Booster) -> None:
    trees, rows = Trees.of(booster), rows_of(200, seed=6)
    whole, tenth = trees.sums(rows), trees.sums(rows, trees=10)
    stopped = trees.sums(rows, stop_beyond=1.0)
    sure = np.abs(tenth) > 1.0
    assert 0 < sure.sum() < len(rows)
    np.testing.assert_array_equal(stopped[sure], tenth[sure])
    open_still = np.abs(trees.sums(rows, trees=20)) <= 1.0
    np.testing.assert_array_equal(stopped[open_still & ~sure], whole[open_still & ~sure])


def test_no_rows_are_no_sums_and_other_rows_are_refused(booster: lightgbm.Booster) -> None:
    trees = Trees.of(booster)
    assert trees.sums(np.zeros((0, 6))).shape == (0,)
    for rows in (np.zeros((3, 5)), np.zeros(6), np.zeros((3, 7))):
        with pytest.raises(ValueError, match="expected rows of 6 features"):
            trees.sums(rows)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "multiclass", "num_class": 3}, "several classes"),
        ({"objective": "binary", "boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1}, "averages of trees"),
        ({"objective": "regression", "linear_tree": True}, "linear leaves"),
        ({"objective": "binary", "min_data_per_group": 5}, "categories"),
    ],
)
def test_boosters_of_other_kinds_are_refused(settings: dict[str, Any], message: str) -> None:
    rows = rows_of(300, seed=8, missing=0)
    target = rows[:, 2] if "num_class" in settings else (rows[:, 2] == 1).astype(float)
    categories = [2] if message == "categories" else []
    booster = lightgbm.train({**GROW, **settings}, lightgbm.Dataset(rows, target, categorical_feature=categories), 3)
    with pytest.raises(ModelError, match=message):
        Trees.of(booster)


@pytest.mark.parametrize("text", ["", "tree", "no trees at all\n", "\x00\x01", "tree\nversion=v4\nfeature_names=a b\n"])
def test_foreign_text_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "trees.txt").write_text(text)
    with pytest.raises(ModelError, match=r"trees\.txt: not LightGBM's text format"):
        Trees.read(tmp_path / "trees.txt")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"absent\.txt: no readable trees"):
        Trees.read(tmp_path / "absent.txt")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match=r"bytes\.txt: no readable trees"):
        Trees.read(tmp_path / "bytes.txt")


DAMAGE = {
    "a tree is missing": lambda text: re.sub(r"\nTree=3\n.*?(?=\nTree=4\n)", "", text, flags=re.S),
    "the end is missing": lambda text: text[: len(text) // 2],
    "a leaf that is not there": lambda text: re.sub(r"(left_child=)\S+", r"\g<1>-999", text, count=1),
    "a child that is not there": lambda text: re.sub(r"(right_child=)\S+", r"\g<1>999", text, count=1),
    "a circle": lambda text: re.sub(r"(left_child=)\S+", r"\g<1>0", text, count=1),
    "a feature that is not there": lambda text: re.sub(r"(split_feature=)\S+", r"\g<1>99", text, count=1),
    "a negative feature": lambda text: re.sub(r"(split_feature=)\S+", r"\g<1>-1", text, count=1),
    "arrays of other lengths": lambda text: re.sub(r"(threshold=)\S+ ", r"\1", text, count=1),
    "no inner nodes": lambda text: re.sub(
        r"((?:split_feature|threshold|decision_type|left_child|right_child)=).*", r"\1", text
    ),
    "a leaf too few": lambda text: re.sub(r"(leaf_value=)\S+ ", r"\1", text, count=1),
    "a leaf that is no number": lambda text: re.sub(r"(leaf_value=)\S+", r"\1nan", text, count=1),
    "a threshold that is no number": lambda text: re.sub(r"(threshold=)\S+", r"\1nan", text, count=1),
    "a kind of split that is not known": lambda text: re.sub(r"(decision_type=)\S+", r"\g<1>14", text, count=1),
    "no names of features": lambda text: text.replace("feature_names=", "names="),
    "no leaves": lambda text: re.sub(r"num_leaves=\d+", "num_leaves=0", re.sub(r"leaf_value=.*", "leaf_value=", text)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_text_is_refused(booster: lightgbm.Booster, damage: str) -> None:
    text = booster.model_to_string()
    damaged = DAMAGE[damage](text)
    assert damaged != text
    with pytest.raises(ModelError, match="not LightGBM's text format, or damaged"):
        Trees.parse(damaged, "trees.txt")


@settings(max_examples=60)
@given(data=st.data())
def test_any_other_text_is_refused_or_summed(booster: lightgbm.Booster, data: st.DataObject) -> None:
    """Whatever bytes change, reading ends in trees that the kernel can walk or in a ModelError."""
    text = booster.model_to_string(num_iteration=3)
    place = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 40))
    other = data.draw(st.one_of(st.text("0123456789-. =\n", max_size=8), st.text(max_size=4)))
    try:
        trees = Trees.parse(text[:place] + other + text[place + length :], "trees.txt")
    except ModelError:
        return
    assert trees.sums(np.zeros((2, len(trees.features)))).shape == (2,)
