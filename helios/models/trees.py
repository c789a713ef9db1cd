"""Gradient-boosted trees for inference: read from LightGBM's text format, summed by a compiled kernel.

LightGBM grows the trees (`training`). Queries only sum them, so this module needs neither that library nor its
state: a `Trees` value is frozen arrays, threads share it, and the first few trees can be asked alone. Sums are those
of LightGBM to the last bit: doubles, added in the order of the trees.

Shape legend: C rows, F features, T trees, N inner nodes of all trees, L leaves of all trees.
"""

from collections.abc import Callable, Mapping, Sequence
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
            nodes = _nodes(trees)
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


def _nodes(trees: Sequence[Mapping[str, str]]) -> Nodes:
    """All trees in one numbering of nodes and of leaves; ValueError for arrays that contradict each other.

    The numbers of all trees are read at once: a model has some ten thousand, and every cold search waits for four.
    """
    if any(int(fields["num_cat"]) or int(fields.get("is_linear", "0")) for fields in trees):
        raise ValueError("categories and linear leaves are not read here")
    leaves, leaf_counts_T = _column(trees, "leaf_value", float)
    if np.any(leaf_counts_T == 0) or any(
        int(fields["num_leaves"]) != count for fields, count in zip(trees, leaf_counts_T, strict=True)
    ):
        raise ValueError("leaf_value and num_leaves differ")
    inner = [fields if count > 1 else _LEAF for fields, count in zip(trees, leaf_counts_T.tolist(), strict=True)]
    columns = {name: _column(inner, name, kind) for name, kind in _INNER.items()}
    counts_T = leaf_counts_T - 1
    if any(np.any(counts != counts_T) for _, counts in columns.values()):
        raise ValueError("arrays of one tree differ in length")
    nodes_before_T, leaves_before_T = np.cumsum(counts_T) - counts_T, np.cumsum(leaf_counts_T) - leaf_counts_T
    tree_N = np.repeat(np.arange(len(trees)), counts_T)
    place_N = np.arange(len(tree_N)) - nodes_before_T[tree_N]

    def moved(name: str) -> NDArray[np.int64]:
        children_N = np.array(columns[name][0], np.int64)
        if np.any((children_N >= 0) & (children_N <= place_N)) or np.any(children_N >= counts_T[tree_N]):
            raise ValueError("a node whose child does not come after it")
        if np.any(-1 - children_N >= leaf_counts_T[tree_N]):
            raise ValueError("a leaf that is not there")
        before_N = np.where(children_N >= 0, nodes_before_T[tree_N], -leaves_before_T[tree_N])
        return np.asarray(children_N + before_N, np.int64)

    return Nodes(
        np.where(counts_T > 0, nodes_before_T, -1 - leaves_before_T),
        np.array(columns["split_feature"][0], np.int32),
        np.array(columns["threshold"][0], np.float64),
        moved("left_child"),
        moved("right_child"),
        np.array(columns["decision_type"][0], np.uint8),
        np.array(leaves, np.float64),
    )


_INNER = {"split_feature": int, "threshold": float, "left_child": int, "right_child": int, "decision_type": int}
_LEAF = dict.fromkeys(_INNER, "")


def _column(
    trees: Sequence[Mapping[str, str]], name: str, kind: Callable[[str], float]
) -> tuple[list[float], NDArray[np.int64]]:
    """The numbers that all trees have under a name, one tree after the other, and how many each has."""
    values: list[float] = []
    counts = []
    for fields in trees:
        before = len(values)
        values.extend(map(kind, fields[name].split()))
        counts.append(len(values) - before)
    return values, np.array(counts, np.int64)


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
