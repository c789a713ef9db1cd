"""Which passages have a word in their title, and how much of the title that word is.

A term's share of a title is its inverse document frequency over that of all the title's terms. Both directions are
kept: a passage's terms, `terms[starts[p] : starts[p + 1]]` with their `shares`, and a term's passages,
`holders[offsets[t] : offsets[t + 1]]` with their `holder_shares`.

Files beside the postings (V terms, P passages, T terms of all titles): `title-hashes` uint64 (V) sorted,
`title-numeric` bool (V), `title-starts` int64 (P + 1), `title-terms` int32 (T), `title-shares` float32 (T),
`title-offsets` int64 (V + 1), `title-holders` int32 (T), `title-holder-shares` float32 (T).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helios.errors import IndexFormatError
from helios.index.arrays import check_below, check_finite, check_offsets, map_array
from helios.index.languages import Analysis
from helios.index.lexical import ENGLISH, term_hash

KINDS = {
    "hashes": np.uint64, "numeric": np.bool_, "starts": np.int64, "terms": np.int32, "shares": np.float32,
    "offsets": np.int64, "holders": np.int32, "holder_shares": np.float32,
}  # fmt: skip
FloatArray = NDArray[np.float32]
TermArray = NDArray[np.int32]
Idf = Callable[[NDArray[np.uint64]], FloatArray]
"""How rare terms are, by their hashes: (V) to (V)."""


@dataclass(frozen=True, slots=True)
class TitleTerms:
    """The terms of all titles of a part, memory-mapped or in memory: 16 bytes a term of a title."""

    hashes: NDArray[np.uint64]
    numeric: NDArray[np.bool_]
    """Which terms have a digit."""
    starts: NDArray[np.int64]
    terms: TermArray
    shares: FloatArray
    offsets: NDArray[np.int64]
    holders: TermArray
    holder_shares: FloatArray

    def __repr__(self) -> str:
        return f"TitleTerms({len(self.starts) - 1} titles)"

    @classmethod
    def of(cls, titles: Iterable[str], idf: Idf, analysis: Analysis = ENGLISH) -> "TitleTerms":
        """Read titles, in the order of the passages; `idf` tells how rare terms are by their hashes."""
        hashes: list[int] = []
        counts: list[int] = []
        digits: dict[int, bool] = {}
        for title in titles:
            terms = dict.fromkeys(analysis.terms(title))
            own = list(map(term_hash, terms))
            hashes.extend(own)
            counts.append(len(own))
            digits.update(zip(own, (any(map(str.isdigit, term)) for term in terms), strict=True))
        known = np.fromiter(digits, np.uint64, len(digits))
        numeric = np.fromiter(digits.values(), bool, len(digits))
        return cls._of_hashes(np.array(hashes, np.uint64), np.array(counts, np.int64), (known, numeric), idf)

    @classmethod
    def joined(cls, parts: "Sequence[tuple[TitleTerms, NDArray[np.int64]]]", idf: Idf) -> "TitleTerms":
        """The terms of some passages of each part, in their order; `idf` tells how rare terms are by their hashes."""
        hashes, counts = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
        for titles, passages in parts:
            own = np.diff(titles.starts)[passages]
            begins = np.repeat(titles.starts[passages] - np.cumsum(own) + own, own)
            hashes.append(titles.hashes[titles.terms[begins + np.arange(own.sum())]])
            counts.append(own)
        known = np.concatenate([np.zeros(0, np.uint64), *(titles.hashes for titles, _ in parts)])
        numeric = np.concatenate([np.zeros(0, bool), *(titles.numeric for titles, _ in parts)])
        return cls._of_hashes(np.concatenate(hashes), np.concatenate(counts), (known, numeric), idf)

    @classmethod
    def _of_hashes(
        cls, hashes: NDArray[np.uint64], counts: NDArray[np.int64],
        numeric: tuple[NDArray[np.uint64], NDArray[np.bool_]], idf: Idf,
    ) -> "TitleTerms":  # fmt: skip
        """From the terms of all titles (T) and how many each title has (P); `numeric` marks hashes with a digit."""
        passages = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        distinct, numbers = np.unique(hashes, return_inverse=True)
        rarity = idf(distinct)[numbers]
        totals = np.bincount(passages, weights=rarity, minlength=len(counts))
        shares = (rarity / np.maximum(totals[passages], 1e-6)).astype(np.float32)
        order = np.argsort(numbers, kind="stable")
        known, first = np.unique(numeric[0], return_index=True)
        return cls(
            hashes=distinct,
            numeric=numeric[1][first[np.searchsorted(known, distinct)]] if len(distinct) else np.zeros(0, bool),
            starts=np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64),
            terms=numbers.astype(np.int32),
            shares=shares,
            offsets=np.searchsorted(numbers[order], np.arange(len(distinct) + 1)).astype(np.int64),
            holders=passages[order],
            holder_shares=shares[order],
        )

    @classmethod
    def open(cls, directory: Path) -> "TitleTerms | None":
        """Map the files in the folder of the postings; None where an older build wrote none."""
        if not _file(directory, "hashes").exists():
            return None
        found = cls(**{name: map_array(_file(directory, name), kind) for name, kind in KINDS.items()})
        check_offsets(_file(directory, "starts"), found.starts, len(found.terms))
        check_offsets(_file(directory, "offsets"), found.offsets, len(found.holders))
        check_below(_file(directory, "terms"), found.terms, found.term_count)
        check_below(_file(directory, "holders"), found.holders, found.passage_count)
        lengths = {"offsets": found.term_count + 1, "numeric": found.term_count, "shares": len(found.terms)}
        for name, count in (lengths | {"holder_shares": len(found.holders)}).items():
            if len(getattr(found, name)) != count:
                raise IndexFormatError(
                    f"{_file(directory, name)}: damaged: expected {count} values; build the index again"
                )
        for name in ("shares", "holder_shares"):
            check_finite(_file(directory, name), getattr(found, name))
        return found

    def write(self, directory: Path) -> None:
        """Write the files into the folder of the postings."""
        for field in fields(self):
            np.save(_file(directory, field.name), getattr(self, field.name))

    @property
    def passage_count(self) -> int:
        """Passages, those without a title too."""
        return len(self.starts) - 1

    @property
    def term_count(self) -> int:
        """Distinct terms of all titles."""
        return len(self.hashes)

    def numbers(self, terms: Iterable[str]) -> TermArray:
        """The numbers of terms, -1 for one that no title has."""
        return self.numbers_of(np.array([term_hash(term) for term in terms], np.uint64))

    def numbers_of(self, hashes: NDArray[np.uint64]) -> TermArray:
        """The numbers of terms by their hashes, -1 for one that no title has."""
        if not self.term_count:
            return np.full(len(hashes), -1, np.int32)
        places = np.minimum(np.searchsorted(self.hashes, hashes), self.term_count - 1)
        return np.where(self.hashes[places] == hashes, places, -1).astype(np.int32)

    def cover(self, numbers: TermArray) -> FloatArray:
        """The share of each title that distinct terms hold: (P), from 0 to 1."""
        shares = np.zeros(self.passage_count, np.float32)
        for number in numbers:
            span = slice(int(self.offsets[number]), int(self.offsets[number + 1]))
            shares[self.holders[span]] += self.holder_shares[span]
        return shares


def _file(directory: Path, name: str) -> Path:
    return directory / f"title-{name.replace('_', '-')}.npy"
