"""Which passages have a word in their title, and how much of the title that word is.

A term's share of a title is its inverse document frequency over that of all the title's terms. Both directions are
kept: a passage's terms, `terms[starts[p] : starts[p + 1]]` with their `shares`, and a term's passages,
`holders[offsets[t] : offsets[t + 1]]` with their `holder_shares`.

Files beside the postings (V terms, P passages, T terms of all titles): `title-hashes` uint64 (V) sorted,
`title-numeric` bool (V), `title-starts` int64 (P + 1), `title-terms` int32 (T), `title-shares` float32 (T),
`title-offsets` int64 (V + 1), `title-holders` int32 (T), `title-holder-shares` float32 (T).
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helios.errors import IndexFormatError
from helios.index.arrays import map_array
from helios.index.lexical import Postings, term_hash, terms_of

FloatArray = NDArray[np.float32]
TermArray = NDArray[np.int32]


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

    @classmethod
    def of(cls, titles: Iterable[str], postings: Postings) -> "TitleTerms":
        """Read titles, in the order of the passages; the postings tell how rare a term is."""
        hashes: list[int] = []
        counts: list[int] = []
        digits: dict[int, bool] = {}
        for title in titles:
            terms = dict.fromkeys(terms_of(title))
            own = list(map(term_hash, terms))
            hashes.extend(own)
            counts.append(len(own))
            digits.update(zip(own, (any(map(str.isdigit, term)) for term in terms), strict=True))
        passages = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        distinct, numbers = np.unique(np.array(hashes, np.uint64), return_inverse=True)
        rarity = postings.idf(distinct)[numbers]
        totals = np.bincount(passages, weights=rarity, minlength=len(counts))
        shares = (rarity / np.maximum(totals[passages], 1e-6)).astype(np.float32)
        order = np.argsort(numbers, kind="stable")
        return cls(
            hashes=distinct,
            numeric=np.array([digits[int(hashed)] for hashed in distinct], bool),
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
        try:
            return cls(**{field.name: map_array(_file(directory, field.name)) for field in fields(cls)})
        except (OSError, ValueError) as error:
            raise IndexFormatError(f"{directory}: no readable titles ({error}); rebuild it") from error

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
        hashes = np.array([term_hash(term) for term in terms], np.uint64)
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
