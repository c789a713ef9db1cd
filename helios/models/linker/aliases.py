"""What training hyperlinks teach: mention → titles with counts, link rate per header, type per header.

Everything is kept as text (mention, title, header, type), so the table serves any corpus whose titles agree;
`bind` turns it into arrays over one corpus's passage index.
"""

from collections.abc import ItemsView, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from helios.errors import ModelError
from helios.models.linker.passages import FULL, PassageIndex, hash_all
from helios.once import once

Array = npt.NDArray[Any]
LAST_WORD = 1 << 40
"""Added to a token number where a type is the last word of a title; its name is `~word`."""
NIL = ""
"""The 'title' of a mention that was seen without a link."""


@dataclass(frozen=True)
class AliasTable:
    """Counts over training tables (a table counts once per entry)."""

    aliases: Mapping[tuple[str, str], int]
    """(mention, title) → tables; title '' counts tables where the mention had no link."""
    headers: Mapping[str, tuple[int, int]]
    """header → (cells, linked cells), each table's share capped so that long tables do not dominate."""
    header_types: Mapping[tuple[str, str], int]
    """(header, type of the linked passage) → tables."""

    def save(self, folder: Path) -> None:
        """Write `aliases.parquet`, `headers.parquet` and `header_types.parquet`."""
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "aliases.parquet", ("mention", "title"), self.aliases)
        _write(folder / "header_types.parquet", ("header", "type"), self.header_types)
        headers = {(name, str(cells)): linked for name, (cells, linked) in self.headers.items()}
        _write(folder / "headers.parquet", ("header", "cells"), headers)

    @classmethod
    def load(cls, folder: Path) -> "AliasTable":
        """Read what `save` wrote."""
        headers = _read(folder / "headers.parquet")
        return cls(
            _read(folder / "aliases.parquet"),
            {name: (int(cells), linked) for (name, cells), linked in headers.items()},
            _read(folder / "header_types.parquet"),
        )

    @once
    def numbered(self) -> "NumberedAliases":
        """The aliases in numbers, which are the same for every corpus."""
        return NumberedAliases.of(self.aliases)

    @once
    def digest(self) -> str:
        """The SHA-256 of the aliases, whose order matters."""
        return self.numbered.digest()


class Counts(Mapping[tuple[str, str], int]):
    """Counts of pairs of texts, in columns as a file has them; the dict is made when one is asked for."""

    def __init__(self, columns: pa.Table) -> None:
        """Columns of two texts and a count."""
        self.columns = columns

    @once
    def _dict(self) -> dict[tuple[str, str], int]:
        first, second, counts = (column.to_pylist() for column in self.columns.columns)
        return dict(zip(zip(first, second, strict=True), counts, strict=True))

    def __getitem__(self, pair: tuple[str, str]) -> int:
        return self._dict[pair]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def items(self) -> ItemsView[tuple[str, str], int]:
        return self._dict.items()


class NumberedNames(NamedTuple):
    """Names as the numbers of their words: those of name i are words[offsets[i]:offsets[i + 1]], one at least."""

    words: Array
    offsets: Array

    def keep(self, mask: Array) -> "NumberedNames":
        """The names where `mask` is true."""
        lengths = np.diff(self.offsets)
        offsets = np.zeros(int(mask.sum()) + 1, dtype=np.int64)
        np.cumsum(lengths[mask], out=offsets[1:])
        return NumberedNames(self.words[np.repeat(mask, lengths)], offsets)

    def all_true(self, words: Array) -> Array:
        """bool per name: whether `words`, bool per number, is true of all of its words."""
        return np.logical_and.reduceat(words[self.words], self.offsets[:-1])

    def hashes(self, words: Array) -> Array:
        """uint64 per name, of the numbers that a corpus has for its words."""
        return hash_all(words[self.words].astype(np.int32), self.offsets)


class NumberedAliases(NamedTuple):
    """The entries of an alias table, R in number, with mentions, titles and words by number."""

    words: tuple[str, ...]
    mentions: NumberedNames
    """In the order in which they come first."""
    titles: NumberedNames
    """In the order of the alphabet."""
    entry_mentions: Array
    """int64[R]"""
    entry_titles: Array
    """int64[R]; -1 where the mention had no link."""
    counts: Array
    """int64[R]"""

    @classmethod
    def of(cls, aliases: Mapping[tuple[str, str], int]) -> "NumberedAliases":
        """From (mention, title) → tables."""
        table = aliases.columns if isinstance(aliases, Counts) else _table(("mention", "title"), aliases.items())
        texts, titles, counts = (column.combine_chunks() for column in table.columns)
        mentions = texts.dictionary_encode()
        linked = pc.if_else(pc.equal(titles, NIL), None, titles).dictionary_encode()
        order = pc.sort_indices(linked.dictionary)
        ranks = np.empty(len(order) + 1, dtype=np.int64)
        ranks[order], ranks[-1] = np.arange(len(order)), -1
        names = pa.concat_arrays([mentions.dictionary, linked.dictionary.take(order)])
        split = pc.split_pattern(names, " ")
        words, offsets, first = split.flatten().dictionary_encode(), split.offsets.to_numpy(), len(mentions.dictionary)
        numbers = words.indices.to_numpy().astype(np.int64)
        return cls(
            tuple(words.dictionary.to_pylist()),
            NumberedNames(numbers[: offsets[first]], offsets[: first + 1].astype(np.int64)),
            NumberedNames(numbers[offsets[first] :], offsets[first:].astype(np.int64) - offsets[first]),
            mentions.indices.to_numpy().astype(np.int64),
            ranks[linked.indices.fill_null(-1).to_numpy()],
            counts.to_numpy().astype(np.int64),
        )

    def digest(self) -> str:
        """The SHA-256 of all of it."""
        found = sha256("\0".join(self.words).encode())
        for array in (*self.mentions, *self.titles, self.entry_mentions, self.entry_titles, self.counts):
            found.update(array.tobytes())
        return found.hexdigest()


class BoundAliases(NamedTuple):
    """An alias table over one corpus. A distinct mentions that occur in its vocabulary."""

    hashes: Array
    """uint64[A], ascending."""
    offsets: Array
    passages: Array
    counts: Array
    """int32 tables per (mention, passage)."""
    totals: Array
    """int32[A]: tables that linked the mention, to anything, even outside this corpus."""
    nils: Array
    """int32[A]: tables where the mention had no link."""
    popularity: Array
    """float32[P]: tables that linked the passage, by any mention."""
    pair_hashes: Array
    """uint64[...], ascending: header and type."""
    pair_shares: Array
    """float32[...]: share of the header's links that go to the type."""


def bind(table: AliasTable, index: PassageIndex) -> tuple[BoundAliases, dict[str, int]]:
    """Resolve mentions and titles of an alias table against a passage index.

    Mentions may have words that no passage has; the second value numbers those, from -2 downwards.
    """
    numbered = table.numbered
    words = np.fromiter((index.vocabulary.get(word, -1) for word in numbered.words), np.int64, len(numbered.words))
    found = _passages_of_titles(numbered.titles, words, index)
    is_found = np.zeros(len(numbered.titles.offsets), dtype=bool)  # the last one, which no title is, stands for NIL
    is_found[list(found)] = True
    kept = numbered.mentions.all_true(words >= 0)
    kept[numbered.entry_mentions[is_found[numbered.entry_titles]]] = True
    mentions = numbered.mentions.keep(kept)
    extra = _number_extra_words(mentions.words, words, numbered.words)
    hashes = mentions.hashes(words)
    numbers = np.argsort(hashes, kind="stable")
    rank = np.full(len(kept), -1, dtype=np.int64)
    rank[np.flatnonzero(kept)[numbers]] = np.arange(len(numbers))
    places, is_nil = rank[numbered.entry_mentions], numbered.entry_titles < 0
    totals = _sums(places, numbered.counts, (places >= 0) & ~is_nil, len(hashes))
    nils = _sums(places, numbered.counts, (places >= 0) & is_nil, len(hashes))
    entries: list[tuple[int, int, int]] = []
    for entry in np.flatnonzero(is_found[numbered.entry_titles]):
        place, count = int(places[entry]), int(numbered.counts[entry])
        entries.extend((place, passage, count) for passage in found[int(numbered.entry_titles[entry])])
    entries.sort()
    columns = np.array(entries, dtype=np.int64).reshape(-1, 3)
    offsets = np.zeros(len(hashes) + 1, dtype=np.int64)
    np.cumsum(np.bincount(columns[:, 0], minlength=len(hashes)), out=offsets[1:])
    popularity = np.bincount(columns[:, 1], weights=columns[:, 2], minlength=index.passage_count)
    bound = BoundAliases(
        hashes[numbers], offsets, columns[:, 1].astype(np.int32), columns[:, 2].astype(np.int32),
        totals, nils, popularity.astype(np.float32), *_bind_types(table.header_types, index),
    )  # fmt: skip
    return bound, extra


def header_hash(header: str) -> int:
    """A stable 64-bit hash of a normalised header."""
    value = 1469598103934665603
    for byte in header.encode():
        value = ((value ^ byte) * 1099511628211) & 0xFFFFFFFFFFFFFFFF
    return value


def pair_hash(header: int, type_number: int) -> int:
    """The key of (header hash, type number) in `BoundAliases.pair_hashes`."""
    return (header ^ ((type_number + 1) * 0x9E3779B97F4A7C15)) & 0xFFFFFFFFFFFFFFFF


def _bind_types(header_types: Mapping[tuple[str, str], int], index: PassageIndex) -> tuple[Array, Array]:
    numbers = {name: number for number, name in enumerate(index.type_names)}
    numbers |= {f"~{word}": number + LAST_WORD for word, number in index.vocabulary.items()}
    totals: dict[str, int] = {}
    for (header, _), count in header_types.items():
        totals[header] = totals.get(header, 0) + count
    shares: dict[int, float] = {}
    for (header, name), count in header_types.items():
        if name in numbers:
            shares[pair_hash(header_hash(header), numbers[name])] = count / (totals[header] + 2.0)
    keys = np.array(sorted(shares), dtype=np.uint64)
    return keys, np.array([shares[int(key)] for key in keys], dtype=np.float32)


def _number_extra_words(used: Array, words: Array, names: tuple[str, ...]) -> dict[str, int]:
    """Numbers, from -2 downwards, of the words that a corpus has not, written into `words` too; in order of `used`."""
    lacking = used[words[used] < 0]
    _, firsts = np.unique(lacking, return_index=True)
    ordered = lacking[np.sort(firsts)]
    words[ordered] = -2 - np.arange(len(ordered))
    return {names[word]: -2 - number for number, word in enumerate(ordered.tolist())}


def _passages_of_titles(titles: NumberedNames, words: Array, index: PassageIndex) -> dict[int, list[int]]:
    """The passages that have some of the titles, by the number of the title."""
    known = titles.all_true(words >= 0)
    hashes = titles.keep(known).hashes(words)
    arrays = index.arrays
    places = np.searchsorted(arrays.key_hashes, hashes)
    resolved: dict[int, list[int]] = {}
    for title, value, place in zip(np.flatnonzero(known).tolist(), hashes, places, strict=True):
        if place < len(arrays.key_hashes) and arrays.key_hashes[place] == value:
            span = slice(int(arrays.key_offsets[place]), int(arrays.key_offsets[place + 1]))
            kinds = arrays.key_kinds[span]
            resolved[title] = [int(p) for p in arrays.key_passages[span][(kinds & FULL) > 0]]
    return resolved


def _sums(places: Array, counts: Array, mask: Array, size: int) -> Array:
    """int32[size]: the counts of every place, where `mask` is true."""
    return np.bincount(places[mask], weights=counts[mask], minlength=size).astype(np.int32)


def _write(path: Path, names: tuple[str, str], counts: Mapping[tuple[str, str], int]) -> None:
    pq.write_table(_table(names, sorted(counts.items())), path, compression="zstd", compression_level=19)


def _table(names: tuple[str, str], counts: Iterable[tuple[tuple[str, str], int]]) -> pa.Table:
    items = list(counts)
    columns = {
        names[0]: pa.array([key[0] for key, _ in items], pa.string()),
        names[1]: pa.array([key[1] for key, _ in items], pa.string()),
        "count": pa.array([count for _, count in items], pa.int32()),
    }
    return pa.table(columns)


def _read(path: Path) -> Counts:
    try:
        return Counts(pq.read_table(path))
    except (OSError, pa.ArrowInvalid) as error:
        raise ModelError(f"{path}: linker weights cannot be read ({error})") from error
