"""Which passages have a word in their title, and how much of the title that word is."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from helios.index.lexical import Postings, term_hash, terms_of

FloatArray = NDArray[np.float32]
TermArray = NDArray[np.int32]


class TitleTerms:
    """The terms of all titles of a part, in memory: 24 bytes a term of a title.

    A term's share of a title is its inverse document frequency over that of all the title's terms. Both directions
    are kept: `terms[starts[p] : starts[p + 1]]` of a passage with their `shares`, and `holders[offsets[t] :
    offsets[t + 1]]` of a term with `holder_shares`.
    """

    def __init__(self, titles: Iterable[str], postings: Postings) -> None:
        hashes: list[int] = []
        counts: list[int] = []
        numeric: dict[int, bool] = {}
        for title in titles:
            terms = dict.fromkeys(terms_of(title))
            own = list(map(term_hash, terms))
            hashes.extend(own)
            counts.append(len(own))
            numeric.update(zip(own, (any(map(str.isdigit, term)) for term in terms), strict=True))
        self.passage_count = len(counts)
        passages = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        self._hashes, numbers = np.unique(np.array(hashes, np.uint64), return_inverse=True)
        rarity = postings.idf(self._hashes)[numbers]
        totals = np.bincount(passages, weights=rarity, minlength=len(counts))
        self.starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
        self.terms = numbers.astype(np.int32)
        self.shares = (rarity / np.maximum(totals[passages], 1e-6)).astype(np.float32)
        order = np.argsort(numbers, kind="stable")
        self.offsets = np.searchsorted(numbers[order], np.arange(len(self._hashes) + 1)).astype(np.int64)
        self.holders = passages[order]
        self.holder_shares = self.shares[order]
        self.numeric = np.array([numeric[int(hashed)] for hashed in self._hashes], bool)
        """Which terms have a digit."""

    @property
    def term_count(self) -> int:
        """Distinct terms of all titles."""
        return len(self._hashes)

    def numbers(self, terms: Iterable[str]) -> TermArray:
        """The numbers of terms, -1 for one that no title has."""
        hashes = np.array([term_hash(term) for term in terms], np.uint64)
        if not self.term_count:
            return np.full(len(hashes), -1, np.int32)
        places = np.minimum(np.searchsorted(self._hashes, hashes), self.term_count - 1)
        return np.where(self._hashes[places] == hashes, places, -1).astype(np.int32)

    def cover(self, numbers: TermArray) -> FloatArray:
        """The share of each title that distinct terms hold: (P), from 0 to 1."""
        shares = np.zeros(self.passage_count, np.float32)
        for number in numbers:
            span = slice(int(self.offsets[number]), int(self.offsets[number + 1]))
            shares[self.holders[span]] += self.holder_shares[span]
        return shares
