"""Which passages have a word in their title, and how much of the title that word is."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from helios.index.lexical import Postings, term_hash, terms_of

FloatArray = NDArray[np.float32]


class TitleTerms:
    """The terms of all titles of a part, in memory: 20 bytes a term of a title.

    A term's share of a title is its inverse document frequency over that of all the title's terms.
    """

    def __init__(self, titles: Iterable[str], postings: Postings) -> None:
        hashes: list[int] = []
        counts: list[int] = []
        for title in titles:
            terms = dict.fromkeys(terms_of(title))
            hashes.extend(map(term_hash, terms))
            counts.append(len(terms))
        self.passage_count = len(counts)
        passages = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        self._hashes, numbers = np.unique(np.array(hashes, np.uint64), return_inverse=True)
        rarity = postings.idf(self._hashes)[numbers]
        totals = np.bincount(passages, weights=rarity, minlength=len(counts))
        order = np.argsort(numbers, kind="stable")
        self._offsets = np.searchsorted(numbers[order], np.arange(len(self._hashes) + 1))
        self._passages = passages[order]
        self._shares = (rarity / np.maximum(totals[passages], 1e-6)).astype(np.float32)[order]

    def cover(self, terms: Iterable[str]) -> FloatArray:
        """The share of each title that the terms hold: (P), from 0 to 1."""
        shares = np.zeros(self.passage_count, np.float32)
        for term in set(terms):
            hashed = np.uint64(term_hash(term))
            number = int(np.searchsorted(self._hashes, hashed))
            if number < len(self._hashes) and self._hashes[number] == hashed:
                span = slice(int(self._offsets[number]), int(self._offsets[number + 1]))
                shares[self._passages[span]] += self._shares[span]
        return shares
