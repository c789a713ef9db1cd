"""The words of passages as the linker reads them, passage by passage: what its index of a corpus is made from.

Parts of a corpus are read one by one; `joined` makes one numbering of the passages of several, without those that are
not to be seen. P passages, T tokens of titles, W distinct tokens of texts, K keys of titles.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class PassageWords:
    """Tokens are numbers in `vocabulary`, kinds of things numbers in `type_names`, whose first is "no kind"."""

    vocabulary: tuple[str, ...]
    type_names: tuple[str, ...]
    title_offsets: Array
    """int64[P + 1] into `title_tokens` int32[T]."""
    title_tokens: Array
    text_offsets: Array
    """int64[P + 1] into `text_tokens` int32[W] and `text_counts` uint8[W]."""
    text_tokens: Array
    text_counts: Array
    text_lengths: Array
    base_length: Array
    """int16[P]: tokens of the title before its disambiguator."""
    types: Array
    disambiguators: Array
    key_offsets: Array
    """int64[K + 1] into `key_tokens`."""
    key_tokens: Array
    key_passages: Array
    """int32[K], ascending."""
    key_kinds: Array

    def __repr__(self) -> str:
        return f"PassageWords({self.passage_count} passages, {len(self.vocabulary)} words)"

    @property
    def passage_count(self) -> int:
        """Number of passages."""
        return len(self.title_offsets) - 1

    def save(self, path: Path) -> None:
        """Write one file."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _NAMES}
        names = {name: np.frombuffer("\n".join(getattr(self, name)).encode(), np.uint8) for name in _NAMES}
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays, **names)

    @classmethod
    def load(cls, path: Path) -> "PassageWords | None":
        """What `save` wrote; None for a file that is not there or cannot be read."""
        try:
            with np.load(path, allow_pickle=False) as found:
                vocabulary, type_names = (tuple(found[name].tobytes().decode().split("\n")) for name in _NAMES)
                if not found["vocabulary"].size:
                    vocabulary = ()
                arrays = {field.name: found[field.name] for field in fields(cls) if field.name not in _NAMES}
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return None
        return cls(vocabulary, type_names, **arrays)


_NAMES = ("vocabulary", "type_names")


def joined(parts: Sequence[tuple[PassageWords, Array]]) -> PassageWords:
    """Some passages of each part, by their numbers, under one numbering in this order.

    Where all passages are taken it is what reading all of them at once gives.
    """
    vocabulary: dict[str, int] = {}
    type_names: dict[str, int] = {"": 0}
    columns: dict[str, list[Array]] = {field.name: [] for field in fields(PassageWords) if field.name not in _NAMES}
    before = 0
    for words, kept in parts:
        for name, values in _picked(words, kept, vocabulary, type_names).items():
            columns[name].append(values + before if name == "key_passages" else values)
        before += len(kept)
    found = {
        name: np.concatenate([np.zeros(0, _KINDS[name]), *own]).astype(_KINDS[name]) for name, own in columns.items()
    }
    for name in ("title_offsets", "text_offsets", "key_offsets"):  # counts until here
        found[name] = np.append(0, np.cumsum(found[name])).astype(np.int64)
    return PassageWords(tuple(vocabulary), tuple(type_names), **found)


_KINDS = {
    "title_offsets": np.int64, "title_tokens": np.int32, "text_offsets": np.int64, "text_tokens": np.int32,
    "text_counts": np.uint8, "text_lengths": np.int32, "base_length": np.int16, "types": np.int32,
    "disambiguators": np.int32, "key_offsets": np.int64, "key_tokens": np.int32, "key_passages": np.int32,
    "key_kinds": np.uint8,
}  # fmt: skip


def _picked(
    words: PassageWords, kept: Array, vocabulary: dict[str, int], type_names: dict[str, int]
) -> dict[str, Array]:
    """The columns of some passages of a part, numbers being those of the given vocabularies, which grow."""
    number = np.full(words.passage_count, -1, np.int64)
    number[kept] = np.arange(len(kept))
    keys = np.flatnonzero(number[words.key_passages] >= 0)
    titles, title_counts = _ragged(words.title_offsets, kept)
    texts, text_counts = _ragged(words.text_offsets, kept)
    key_places, key_counts = _ragged(words.key_offsets, keys)
    tokens = {
        "title_tokens": words.title_tokens[titles], "text_tokens": words.text_tokens[texts],
        "key_tokens": words.key_tokens[key_places],
    }  # fmt: skip
    kinds = {"types": words.types[kept], "disambiguators": words.disambiguators[kept]}
    return {
        **_renumbered(tokens, words.vocabulary, vocabulary),
        **_renumbered(kinds, words.type_names, type_names),
        "title_offsets": title_counts, "text_offsets": text_counts, "key_offsets": key_counts,
        "text_counts": words.text_counts[texts], "text_lengths": words.text_lengths[kept],
        "base_length": words.base_length[kept], "key_passages": number[words.key_passages[keys]],
        "key_kinds": words.key_kinds[keys],
    }  # fmt: skip


def _ragged(offsets: Array, kept: Array) -> tuple[Array, Array]:
    """Places of the members of some lists, one list after the other, and how many each has."""
    counts = np.diff(offsets)[kept]
    starts = offsets[kept] - np.append(0, np.cumsum(counts))[:-1]
    return np.repeat(starts, counts) + np.arange(counts.sum()), counts


def _renumbered(columns: dict[str, Array], names: Sequence[str], numbers: dict[str, int]) -> dict[str, Array]:
    """Numbers of `names` as those of a dictionary, to which the names that are used are added in their order."""
    used = np.zeros(len(names), bool)
    for column in columns.values():
        used[column] = True
    to = np.zeros(len(names), np.int32)
    for own in np.flatnonzero(used).tolist():
        to[own] = numbers.setdefault(names[own], len(numbers))
    return {name: to[column] for name, column in columns.items()}
