"""Gradient-boosted trees for inference: read from LightGBM's text format, summed by a compiled kernel.

LightGBM grows the trees (`training`). Queries only sum them, so this module needs neither that library nor its
state: a `Trees` value is frozen arrays, threads share it, and the first few trees can be asked alone. Sums are those
of LightGBM to the last bit: doubles, added in the order of the trees.

Shape legend: C rows, F features, T trees, N inner nodes of all trees, L leaves of all trees.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from helios.errors import ModelError

FloatArray = NDArray[np.float64]
CATEGORICAL, DEFAULT_LEFT = 1, 2
"""Bits of a node's `decision_type`; the two bits above them say what counts as missing."""
ZERO_IS_MISSING, NAN_IS_MISSING = 1, 2
NEVER = 1e300


class Booster(Protocol):
    """What is needed of a trained `lightgbm.Booster`."""

    def model_to_string(self) -> str: ...


class Nodes(NamedTuple):
    """Inner nodes (N) and leaves (L) of all trees; a child below 0 is the leaf with the number -1 - child."""

    roots_T: NDArray[np.int64]
    """The first inner node of each tree, or -1 - leaf for a tree of one leaf."""
    features_N: NDArray[np.int32]
    thresholds_N: FloatArray
    left_N: NDArray[np.int64]
    right_N: NDArray[np.int64]
    decisions_N: NDArray[np.uint8]
    leaves_L: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Trees, the names of the features that they read, and the text that they came from."""

    features: tuple[str, ...]
    objective: str
    """`lambdarank`, `binary sigmoid:1`, `cross_entropy`, ...: what the sums mean."""
    nodes: Nodes = field(repr=False)
    text: str = field(repr=False)

    def __repr__(self) -> str:
        return f"Trees({len(self)} of {self.objective!r} over {len(self.features)} features)"

    @classmethod
    def of(cls, booster: Booster) -> "Trees":
        """The trees that LightGBM has grown."""
        return cls.parse(booster.model_to_string(), "a trained model")

    @classmethod
    def read(cls, path: Path) -> "Trees":
        """Read a file in LightGBM's text format; ModelError names the file and what is wrong."""
        try:
            return cls.parse(path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"{path}: no readable trees ({error})") from error

    @classmethod
    def parse(cls, text: str, source: str) -> "Trees":
        """Trees from LightGBM's text format; ModelError for anything that a sum could not be read from safely."""
        header, *blocks = text.split("\nTree=")
        try:
            head = _fields(header)
            if head.get("num_tree_per_iteration", "1") != "1" or "average_output" in header.splitlines():
                raise ValueError("sums of several classes and averages of trees are not read here")
            trees = [_fields(block) for block in blocks]
            promised = len(head["tree_sizes"].split()) if head.get("tree_sizes") else len(trees)
            if not trees or promised != len(trees) or "end of trees" not in text:
                raise ValueError(f"{promised} trees promised, {len(trees)} found, or the end is missing")
            names = tuple(head["feature_names"].split())
            nodes = _joined([_tree(fields) for fields in trees])
            _check(nodes, len(names))
        except (KeyError, ValueError, IndexError, OverflowError) as error:
            raise ModelError(f"{source}: not LightGBM's text format, or damaged ({error})") from error
        return cls(names, head.get("objective", ""), nodes, text)

    def save(self, path: Path) -> None:
        """Write the text that `read` reads."""
        path.write_text(self.text, encoding="utf-8")

    def __len__(self) -> int:
        return len(self.nodes.roots_T)

    def sums(self, rows: NDArray[Any], *, trees: int | None = None, stop_beyond: float = NEVER) -> FloatArray:
        """The sum of the first `trees` trees, all by default, for each row of (C, F): float64 (C).

        After every tenth tree a row is done whose sum lies further than `stop_beyond` from 0: it will not come back.
        Raises ValueError for rows of another width than the trees were grown on.
        """
        if rows.ndim != 2 or rows.shape[1] != len(self.features):
            raise ValueError(f"expected rows of {len(self.features)} features, got an array {rows.shape}")
        count = len(self) if trees is None else min(trees, len(self))
        sums = np.zeros(len(rows))
        _add_trees(np.ascontiguousarray(rows), self.nodes, count, stop_beyond, sums)
        return sums

    def probabilities(self, rows: NDArray[Any], *, stop_beyond: float = NEVER) -> FloatArray:
        """The logistic function of the sums: float64 (C); for the objectives `binary` and `cross_entropy`."""
        return np.asarray(1.0 / (1.0 + np.exp(-self.sums(rows, stop_beyond=stop_beyond))), np.float64)


def _fields(block: str) -> dict[str, str]:
    """The lines `name=value` of the header or of one tree."""
    return dict(line.split("=", 1) for line in block.splitlines() if "=" in line)


def _tree(fields: dict[str, str]) -> Nodes:
    """One tree, numbered from 0."""
    if int(fields["num_cat"]) or int(fields.get("is_linear", "0")):
        raise ValueError("categories and linear leaves are not read here")
    leaves = np.array(fields["leaf_value"].split(), np.float64)
    if not len(leaves) or len(leaves) != int(fields["num_leaves"]):
        raise ValueError("leaf_value and num_leaves differ")
    if len(leaves) == 1:
        none = np.zeros(0, np.int64)
        return Nodes(np.array([-1]), none.astype(np.int32), np.zeros(0), none, none, none.astype(np.uint8), leaves)
    return Nodes(
        np.array([0]),
        np.array(fields["split_feature"].split(), np.int32),
        np.array(fields["threshold"].split(), np.float64),
        np.array(fields["left_child"].split(), np.int64),
        np.array(fields["right_child"].split(), np.int64),
        np.array(fields["decision_type"].split(), np.uint8),
        leaves,
    )


def _joined(trees: list[Nodes]) -> Nodes:
    """All trees in one numbering of nodes and of leaves."""
    inner = np.cumsum([0, *(len(tree.features_N) for tree in trees)])
    leaves = np.cumsum([0, *(len(tree.leaves_L) for tree in trees)])

    def moved(numbers: NDArray[np.int64], at: int) -> NDArray[np.int64]:
        return np.asarray(np.where(numbers >= 0, numbers + inner[at], numbers - leaves[at]), np.int64)

    roots = [moved(tree.roots_T, at) for at, tree in enumerate(trees)]
    for tree in trees:
        count = len(tree.features_N)
        children = np.concatenate([tree.left_N, tree.right_N])
        if count != len(tree.leaves_L) - 1 or any(len(array) != count for array in tree[2:6]):
            raise ValueError("arrays of one tree differ in length")
        parents = np.tile(np.arange(count), 2)
        if np.any((children >= 0) & (children <= parents)) or np.any(children >= count):
            raise ValueError("a node whose child does not come after it")
        if np.any(-1 - children >= len(tree.leaves_L)):
            raise ValueError("a leaf that is not there")
    return Nodes(
        np.concatenate(roots),
        np.concatenate([tree.features_N for tree in trees]),
        np.concatenate([tree.thresholds_N for tree in trees]),
        np.concatenate([moved(tree.left_N, at) for at, tree in enumerate(trees)]),
        np.concatenate([moved(tree.right_N, at) for at, tree in enumerate(trees)]),
        np.concatenate([tree.decisions_N for tree in trees]),
        np.concatenate([tree.leaves_L for tree in trees]),
    )


def _check(nodes: Nodes, features: int) -> None:
    """The kernel follows these numbers without looking."""
    if len(nodes.features_N) and not 0 <= nodes.features_N.min() <= nodes.features_N.max() < features:
        raise ValueError("a feature that is not there")
    if np.any(nodes.decisions_N & CATEGORICAL) or np.any(nodes.decisions_N >> 2 > NAN_IS_MISSING):
        raise ValueError("a split by category, or of a kind that is not known")
    if not (np.isfinite(nodes.leaves_L).all() and not np.isnan(nodes.thresholds_N).any()):
        raise ValueError("a value that is not a number")


@njit(nogil=True, cache=True, boundscheck=False)
def _add_trees(rows: np.ndarray, nodes: Nodes, count: int, stop_beyond: float, sums: np.ndarray) -> None:
    """sums[c] += the leaves that row c reaches in the first `count` trees; a block of rows takes a tree together."""
    block = 64
    for first in range(0, rows.shape[0], block):
        last = min(first + block, rows.shape[0])
        open_rows = np.ones(last - first, np.bool_)
        for t in range(count):
            for c in range(first, last):
                if not open_rows[c - first]:
                    continue
                node = nodes.roots_T[t]
                while node >= 0:
                    value = np.float64(rows[c, nodes.features_N[node]])
                    decision = nodes.decisions_N[node]
                    missing = (decision >> 2) & 3
                    if value != value and missing != NAN_IS_MISSING:
                        value = np.float64(0.0)
                    if (missing == ZERO_IS_MISSING and abs(value) <= 1e-35) or (
                        missing == NAN_IS_MISSING and value != value
                    ):
                        left = (decision & DEFAULT_LEFT) != 0
                    else:
                        left = value <= nodes.thresholds_N[node]
                    node = nodes.left_N[node] if left else nodes.right_N[node]
                sums[c] += nodes.leaves_L[-1 - node]
                if stop_beyond < NEVER and (t + 1) % 10 == 0 and abs(sums[c]) > stop_beyond:
                    open_rows[c - first] = False
