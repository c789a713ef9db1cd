"""The linker's index of a corpus's passages: vocabulary, title and text postings, forward lists, title keys.

Built once per corpus into a folder of .npy files and opened as memory maps by every worker.
Does not know about tables, aliases or scores.
"""

import json
import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from helios.errors import IndexFormatError
from helios.models.linker.arrays import IndexArrays
from helios.models.linker.forward import PassageWords
from helios.models.linker.text import split_disambiguator, tokens, type_noun

FORMAT = 2
WORDS = "words.npz"
"""The words of the passages as they were read, beside the index of them."""
MAX_TEXT_TOKENS = 160
REFERENCE_PASSAGES = 178_775
FULL, BASE, HEAD, ACRONYM = 1, 2, 4, 8
"""How a key comes from a title: whole; without its disambiguator; before its first comma; its initials."""

Array = npt.NDArray[Any]


@njit(cache=True)
def ngram_hash(ids: Array, first: int, last: int) -> int:
    """A 64-bit FNV-style hash of token ids [first, last)."""
    value = np.uint64(1469598103934665603)
    for position in range(first, last):
        value = (value ^ np.uint64(ids[position] + 1)) * np.uint64(1099511628211)
        value ^= value >> np.uint64(29)
    return value  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class PassageIndex:
    """A built index: its vocabulary, its kinds of things, its arrays."""

    vocabulary: dict[str, int]
    words: tuple[str, ...]
    """The vocabulary in token order."""
    type_names: tuple[str, ...]
    arrays: IndexArrays

    @property
    def passage_count(self) -> int:
        """Number of passages."""
        return len(self.arrays.title_offsets) - 1

    def type_names_of(self, passage: int) -> tuple[str, ...]:
        """Type noun, `(disambiguator)` and `~last word` of a passage, those that it has."""
        arrays = self.arrays
        last = int(arrays.title_offsets[passage]) + int(arrays.base_length[passage]) - 1
        names = [self.type_names[arrays.types[passage]], self.type_names[arrays.disambiguators[passage]]]
        if last >= arrays.title_offsets[passage]:
            names.append(f"~{self.words[arrays.title_tokens[last]]}")
        return tuple(name for name in names if name)

    @classmethod
    def build(cls, passages: Iterable[tuple[str, str]], folder: Path) -> "PassageIndex":
        """Index (title, text) pairs in passage-number order into `folder` and open it."""
        folder.mkdir(parents=True, exist_ok=True)
        words = words_of(passages)
        words.save(folder / WORDS)
        for name, values in inverted(words)._asdict().items():
            np.save(folder / f"{name}.npy", values)
        meta = {"format": FORMAT, "vocabulary": list(words.vocabulary), "type_names": list(words.type_names)}
        (folder / "meta.json").write_text(json.dumps(meta, ensure_ascii=False), encoding="utf-8")
        return cls.open(folder)

    @classmethod
    def of(cls, words: PassageWords) -> "PassageIndex":
        """The index of passages whose words were read already, in memory."""
        vocabulary = {word: number for number, word in enumerate(words.vocabulary)}
        return cls(vocabulary, words.vocabulary, words.type_names, inverted(words))

    @classmethod
    def open(cls, folder: Path) -> "PassageIndex":
        """Memory-map a built index; the vocabulary is read into memory."""
        try:
            meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            files = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in IndexArrays._fields)
            arrays = IndexArrays(*map(np.asarray, files))
        except (OSError, ValueError) as error:
            raise IndexFormatError(f"{folder}: not a linker passage index ({error}); prepare it again") from error
        if meta.get("format") != FORMAT:
            raise IndexFormatError(f"{folder}: linker passage index format {meta.get('format')}, expected {FORMAT}")
        vocabulary = {word: number for number, word in enumerate(meta["vocabulary"])}
        return cls(vocabulary, tuple(vocabulary), tuple(meta["type_names"]), arrays)


def title_keys(title: str) -> Iterator[tuple[int, str]]:
    """How each key comes from a title (a sum of FULL, BASE, HEAD and ACRONYM), and its folded words."""
    base, disambiguator = split_disambiguator(title)
    return ((kind, " ".join(words)) for kind, words in _keys(base, tokens(base), tokens(disambiguator)))


def _keys(base: str, base_words: list[str], extra_words: list[str]) -> Iterator[tuple[int, list[str]]]:
    if base_words:
        yield (BASE if extra_words else FULL | BASE), base_words
    if extra_words:
        yield FULL, base_words + extra_words
    head, comma, _ = base.partition(", ")
    if comma and (head_words := tokens(head)):
        yield HEAD, head_words
    if len(base_words) > 1 and base.lower().startswith("the "):
        yield HEAD, base_words[1:]
    initials = "".join(word[0] for word in base.replace("-", " ").split() if word[0].isupper())
    if 2 <= len(initials) <= 6:
        yield ACRONYM, [initials.lower()]


def words_of(passages: Iterable[tuple[str, str]]) -> PassageWords:
    """Read the words of (title, text) pairs."""
    builder = _Builder()
    for title, text in passages:
        builder.add(title, text)
    return builder.words()


def inverted(words: PassageWords) -> IndexArrays:
    """The arrays of an index of these passages."""
    vocabulary, passages = len(words.vocabulary), words.passage_count
    title_po, title_pp, _ = _invert(words.title_offsets, words.title_tokens, None, vocabulary)
    text_po, text_pp, text_pc = _invert(words.text_offsets, words.text_tokens, words.text_counts, vocabulary)
    hashes = hash_all(words.key_tokens, words.key_offsets)
    order = np.argsort(hashes, kind="stable")
    distinct, first = np.unique(hashes[order], return_index=True)
    return IndexArrays(
        title_offsets=words.title_offsets, title_tokens=words.title_tokens,
        title_posting_offsets=title_po, title_postings=title_pp,
        text_offsets=words.text_offsets, text_tokens=words.text_tokens,
        text_posting_offsets=text_po, text_postings=text_pp, text_counts=text_pc,
        title_idf=_idf(title_po, passages), text_idf=_idf(text_po, passages),
        title_norm=_norm(np.diff(words.title_offsets).astype(np.float32), 0.5),
        text_norm=_norm(words.text_lengths, 0.6),
        base_length=words.base_length,
        key_hashes=distinct, key_offsets=np.append(first, len(hashes)).astype(np.int64),
        key_passages=words.key_passages[order], key_kinds=words.key_kinds[order],
        types=words.types, disambiguators=words.disambiguators,
    )  # fmt: skip


class _Builder:
    """Collects passages; holds 4 bytes per distinct token of every passage."""

    def __init__(self) -> None:
        self.vocabulary: dict[str, int] = {}
        self.type_ids: dict[str, int] = {"": 0}
        self.title_offsets, self.title_tokens = array("q", [0]), array("i")
        self.text_offsets, self.text_tokens, self.text_counts = array("q", [0]), array("i"), array("B")
        self.base_length, self.types, self.disambiguators = array("h"), array("i"), array("i")
        self.text_lengths = array("i")
        self.key_tokens, self.key_token_offsets = array("i"), array("q", [0])
        self.key_passages, self.key_kinds = array("i"), array("B")

    def add(self, title: str, text: str) -> None:
        passage = len(self.title_offsets) - 1
        base, disambiguator = split_disambiguator(title)
        base_words, extra_words = tokens(base), tokens(disambiguator)
        base_ids, extra_ids = self._ids(base_words), self._ids(extra_words)
        self.title_tokens.extend(base_ids + extra_ids)
        self.title_offsets.append(len(self.title_tokens))
        self.base_length.append(min(len(base_ids), 32_000))
        for kind, words in _keys(base, base_words, extra_words):
            self.key_tokens.extend(self._ids(words))
            self.key_token_offsets.append(len(self.key_tokens))
            self.key_passages.append(passage)
            self.key_kinds.append(kind)
        text_ids = self._ids(tokens(text)[:MAX_TEXT_TOKENS])
        counts: dict[int, int] = {}
        for word in text_ids:
            counts[word] = counts.get(word, 0) + 1
        self.text_tokens.extend(counts)
        self.text_counts.extend(min(count, 255) for count in counts.values())
        self.text_offsets.append(len(self.text_tokens))
        self.text_lengths.append(len(text_ids))
        self.types.append(self.type_ids.setdefault(type_noun(text), len(self.type_ids)))
        shape = f"({' '.join(tokens(disambiguator))})" if disambiguator else ""
        self.disambiguators.append(self.type_ids.setdefault(shape, len(self.type_ids)))

    def _ids(self, words: Iterable[str]) -> list[int]:
        vocabulary = self.vocabulary
        return [vocabulary.setdefault(word, len(vocabulary)) for word in words]

    def words(self) -> PassageWords:
        """What was collected."""
        return PassageWords(
            vocabulary=tuple(self.vocabulary), type_names=tuple(self.type_ids),
            title_offsets=_view(self.title_offsets), title_tokens=_view(self.title_tokens),
            text_offsets=_view(self.text_offsets), text_tokens=_view(self.text_tokens),
            text_counts=_view(self.text_counts), text_lengths=_view(self.text_lengths),
            base_length=_view(self.base_length), types=_view(self.types), disambiguators=_view(self.disambiguators),
            key_offsets=_view(self.key_token_offsets), key_tokens=_view(self.key_tokens),
            key_passages=_view(self.key_passages), key_kinds=_view(self.key_kinds),
        )  # fmt: skip


@njit(cache=True)
def hash_all(ids: Array, offsets: Array) -> Array:
    """The n-gram hash of every slice ids[offsets[i]:offsets[i + 1]]; uint64[len(offsets) - 1]."""
    hashes = np.empty(len(offsets) - 1, dtype=np.uint64)
    for number in range(len(offsets) - 1):
        hashes[number] = ngram_hash(ids, offsets[number], offsets[number + 1])
    return hashes


def _view(values: "array[int]") -> Array:
    return np.array(values, dtype=np.dtype(values.typecode))


def _invert(offsets: Array, ids: Array, counts: Array | None, vocabulary_size: int) -> tuple[Array, Array, Array]:
    """Forward lists → posting lists (offsets per token, passages, counts), passages ascending."""
    passages = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
    order = np.argsort(ids, kind="stable")
    posting_offsets = np.zeros(vocabulary_size + 1, dtype=np.int64)
    np.cumsum(np.bincount(ids, minlength=vocabulary_size), out=posting_offsets[1:])
    posting_counts = np.empty(0, dtype=np.uint8) if counts is None else counts[order]
    return posting_offsets, passages[order], posting_counts


def _idf(posting_offsets: Array, passages: int) -> Array:
    """idf on the scale of the corpus that the weights were trained on, so that they suit any corpus size."""
    frequency = np.diff(posting_offsets).astype(np.float64)
    scale = math.log(REFERENCE_PASSAGES + 1) / math.log(max(passages, 1) + 1)
    return (scale * np.log1p((passages - frequency + 0.5).clip(0.5) / (frequency + 0.5))).astype(np.float32)


def _norm(lengths: Array, b: float) -> Array:
    mean = float(lengths.mean()) if len(lengths) else 1.0
    return (1.2 * (1.0 - b + b * lengths / max(mean, 1.0))).astype(np.float32)
