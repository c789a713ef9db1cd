"""The fuzzy route: titles spelled almost like a mention. Shared character trigrams first, then edit distance.

Knows titles only. P passages; a title counts without its disambiguator, folded, between two blanks.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from helios.errors import IndexFormatError
from helios.models.linker.text import normalise, split_disambiguator

Array = npt.NDArray[Any]
TOP = 8
"""Passages found for one mention."""
BLOCK = 64
"""Titles with the most similar trigrams, of which the edit distance is taken."""
LEAST_DICE = 0.35
LEAST_SIMILARITY = 0.7
"""1 − edits / length of the longer text."""
MIN_CHARACTERS = 5
"""Shorter mentions are near too many titles."""
_BUCKETS = np.uint64(1 << 18)


class TitleArrays(NamedTuple):
    """Titles as code points, and postings from a trigram's bucket to the titles that have it."""

    character_offsets: Array
    characters: Array
    posting_offsets: Array
    postings: Array
    sizes: Array
    """int32[P]: distinct buckets of a title."""


class FuzzyTitles:
    """Finds titles by spelling; not thread-safe (5 bytes of scratch space per passage)."""

    def __init__(self, arrays: TitleArrays) -> None:
        self._arrays = arrays
        self._shared = np.zeros(len(arrays.sizes), dtype=np.uint8)
        self._touched = np.empty(len(arrays.sizes), dtype=np.int32)

    @classmethod
    def build(cls, titles: Iterable[str], folder: Path) -> "FuzzyTitles":
        """Index titles in passage-number order into `folder` and open it."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, values in _title_arrays(titles)._asdict().items():
            np.save(folder / f"{name}.npy", values)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> "FuzzyTitles":
        """Memory-map a built index; IndexFormatError if a file is missing."""
        try:
            files = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in TitleArrays._fields]
        except (OSError, ValueError) as error:
            raise IndexFormatError(f"{folder}: not an index of titles ({error}); prepare it again") from error
        return cls(TitleArrays(*map(np.asarray, files)))

    def find(self, mention: str) -> Array:
        """int32[≤ TOP]: passages whose titles are spelled almost like the mention, the nearest first."""
        text = normalise(mention)
        if len(text) < MIN_CHARACTERS or not any(map(str.isalpha, text)):
            return np.zeros(0, dtype=np.int32)
        characters = _code_points(f" {text} ")
        return _nearest(self._arrays, self._shared, self._touched, characters, _buckets(characters))


def _title_arrays(titles: Iterable[str]) -> TitleArrays:
    texts = [f" {normalise(split_disambiguator(title)[0])} " for title in titles]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    offsets = np.append(0, np.cumsum(lengths))
    characters = _code_points("".join(texts))
    counts = np.maximum(lengths - 2, 0)
    owners = np.repeat(np.arange(len(texts), dtype=np.int64), counts)
    starts = np.repeat(offsets[:-1] - np.append(0, np.cumsum(counts))[:-1], counts) + np.arange(len(owners))
    found = _hash(characters, starts).astype(np.int64)
    pairs = np.unique(found * max(len(texts), 1) + owners)
    postings = (pairs % max(len(texts), 1)).astype(np.int32)
    posting_offsets = np.zeros(int(_BUCKETS) + 1, dtype=np.int64)
    np.cumsum(np.bincount(pairs // max(len(texts), 1), minlength=int(_BUCKETS)), out=posting_offsets[1:])
    sizes = np.bincount(postings, minlength=len(texts)).astype(np.int32)
    return TitleArrays(offsets, characters, posting_offsets, postings, sizes)


def _code_points(text: str) -> Array:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _buckets(characters: Array) -> Array:
    return np.unique(_hash(characters, np.arange(max(len(characters) - 2, 0)))).astype(np.int64)


def _hash(characters: Array, starts: Array) -> Array:
    """uint64 bucket of the trigram at every start."""
    value = np.zeros(len(starts), dtype=np.uint64)
    for step in range(3):
        value = (value ^ characters[starts + step]) * np.uint64(1099511628211)
        value ^= value >> np.uint64(29)
    return value % _BUCKETS


@njit(cache=True, nogil=True)
def _nearest(ix: TitleArrays, shared: Array, touched: Array, characters: Array, buckets: Array) -> Array:
    block = np.empty(BLOCK, dtype=np.int32)
    size = _block(ix, shared, touched, buckets, block)
    best = np.empty(TOP, dtype=np.int32)
    scores = np.empty(TOP, dtype=np.float32)
    count = 0
    for passage in block[:size]:
        title = ix.characters[ix.character_offsets[passage] : ix.character_offsets[passage + 1]]
        longer = max(len(title), len(characters)) - 2
        similarity = 1.0 - _edits(characters, title) / longer
        if similarity >= LEAST_SIMILARITY:
            count = _insert(best, scores, count, passage, similarity)
    return best[:count].copy()


@njit(cache=True)
def _block(ix: TitleArrays, shared: Array, touched: Array, buckets: Array, block: Array) -> int:
    """Fill `block` with the titles that share most trigrams (Dice), the best first; `shared` is zero again after."""
    seen = 0
    for bucket in buckets[:255]:
        for passage in ix.postings[ix.posting_offsets[bucket] : ix.posting_offsets[bucket + 1]]:
            if shared[passage] == 0:
                touched[seen] = passage
                seen += 1
            shared[passage] += 1
    scores = np.empty(BLOCK, dtype=np.float32)
    size = 0
    for passage in touched[:seen]:
        dice = 2.0 * shared[passage] / (ix.sizes[passage] + len(buckets))
        shared[passage] = 0
        if dice >= LEAST_DICE:
            size = _insert(block, scores, size, passage, dice)
    return size


@njit(cache=True)
def _insert(best: Array, scores: Array, size: int, passage: int, score: float) -> int:
    """Keep the highest scores, ties by passage number; the new size."""
    if size == len(best) and not _before(score, passage, scores[size - 1], best[size - 1]):
        return size
    at = min(size, len(best) - 1)
    while at > 0 and _before(score, passage, scores[at - 1], best[at - 1]):
        scores[at], best[at] = scores[at - 1], best[at - 1]
        at -= 1
    scores[at], best[at] = score, passage
    return min(size + 1, len(best))


@njit(cache=True)
def _before(score: float, passage: int, other_score: float, other: int) -> bool:
    value = np.float32(score)
    return bool(value > other_score or (value == other_score and passage < other))


@njit(cache=True)
def _edits(one: Array, other: Array) -> int:
    """Levenshtein distance."""
    row = np.arange(len(other) + 1)
    for i in range(len(one)):
        diagonal = row[0]
        row[0] = i + 1
        for j in range(len(other)):
            change = diagonal + (one[i] != other[j])
            diagonal = row[j + 1]
            row[j + 1] = min(change, diagonal + 1, row[j] + 1)
    return int(row[len(other)])
