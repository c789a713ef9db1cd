"""What training hyperlinks teach: mention → titles with counts, link rate per header, type per header.

Everything is kept as text (mention, title, header, type), so the table serves any corpus whose titles agree;
`bind` turns it into arrays over one corpus's passage index.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from helios.errors import ModelError
from helios.models.linker.passages import FULL, PassageIndex, hash_all

Array = npt.NDArray[Any]
LAST_WORD = 1 << 40
"""Added to a token number where a type is the last word of a title; its name is `~word`."""
NIL = ""
"""The 'title' of a mention that was seen without a link."""


@dataclass(frozen=True, slots=True)
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
    titles = sorted({title for _, title in table.aliases if title != NIL})
    found = _resolve_titles(titles, index)
    mentions: dict[str, int] = {}
    rows: list[tuple[int, str, int]] = []
    targets = {mention for mention, title in table.aliases if title in found}
    for (mention, title), count in table.aliases.items():
        if mention in targets or all(word in index.vocabulary for word in mention.split(" ")):
            rows.append((mentions.setdefault(mention, len(mentions)), title, count))
    extra: dict[str, int] = {}
    hashes = _hashes(mentions, index, extra)
    numbers = np.argsort(hashes, kind="stable")
    rank = np.empty(len(numbers), dtype=np.int64)
    rank[numbers] = np.arange(len(numbers))
    totals = np.zeros(len(hashes), dtype=np.int32)
    nils = np.zeros(len(hashes), dtype=np.int32)
    entries: list[tuple[int, int, int]] = []
    for mention_number, title, count in rows:
        place = int(rank[mention_number])
        (nils if title == NIL else totals)[place] += count
        entries.extend((place, passage, count) for passage in found.get(title, ()))
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


def _hashes(names: Iterable[str], index: PassageIndex, extra: dict[str, int]) -> Array:
    ids: list[int] = []
    offsets = [0]
    for name in names:
        for word in name.split(" "):
            number = index.vocabulary.get(word)
            ids.append(extra.setdefault(word, -2 - len(extra)) if number is None else number)
        offsets.append(len(ids))
    return hash_all(np.array(ids, dtype=np.int32), np.array(offsets, dtype=np.int64))


def _resolve_titles(titles: Iterable[str], index: PassageIndex) -> dict[str, list[int]]:
    known = [title for title in titles if all(word in index.vocabulary for word in title.split(" "))]
    hashes = _hashes(known, index, {})
    arrays = index.arrays
    places = np.searchsorted(arrays.key_hashes, hashes)
    resolved: dict[str, list[int]] = {}
    for title, value, place in zip(known, hashes, places, strict=True):
        if place < len(arrays.key_hashes) and arrays.key_hashes[place] == value:
            span = slice(int(arrays.key_offsets[place]), int(arrays.key_offsets[place + 1]))
            kinds = arrays.key_kinds[span]
            resolved[title] = [int(p) for p in arrays.key_passages[span][(kinds & FULL) > 0]]
    return resolved


def _write(path: Path, names: tuple[str, str], counts: Mapping[tuple[str, str], int]) -> None:
    items = sorted(counts.items())
    columns = {
        names[0]: pa.array([key[0] for key, _ in items], pa.string()),
        names[1]: pa.array([key[1] for key, _ in items], pa.string()),
        "count": pa.array([count for _, count in items], pa.int32()),
    }
    pq.write_table(pa.table(columns), path, compression="zstd", compression_level=19)


def _read(path: Path) -> dict[tuple[str, str], int]:
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise ModelError(f"{path}: linker weights cannot be read ({error})") from error
    first, second, counts = (column.to_pylist() for column in table.columns)
    return dict(zip(zip(first, second, strict=True), counts, strict=True))
