"""What a corpus is about: the words that it uses more than English does, and the form of its documents.

How common a word is in English comes from its place in the encoder's vocabulary, which is sorted by frequency: by
Zipf's law word number r takes about 1 / (r ln V) of a text. Words that the vocabulary lacks are rarer than all of it.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from helios.sources.documents import Document
from helios.sources.relevance import STOP_WORDS

WORD = re.compile(r"[^\W\d_]{3,}")
FIRST_WORD = 1996
"""Number of the vocabulary's first word; before it stand special tokens and single characters."""
TOPICS = 40
LEAST_DOCUMENTS = 3
PAIR_RARITY = 0.02
"""How often English joins two words, against the rarer of them."""


def topics(documents: Sequence[Document], vocabulary: Sequence[str], *, count: int = TOPICS) -> tuple[str, ...]:
    """The words and pairs of words that tell these documents from English text, the telling ones first.

    A term counts by what it adds to the divergence of the two: p(corpus) · log(p(corpus) / p(English)), over the
    documents that have it, so that one long document decides nothing. A word that stands in a chosen pair is left out.
    """
    rank = {word: place for place, word in enumerate(vocabulary[FIRST_WORD:], start=1) if not word.startswith("##")}
    norm = math.log(max(2, len(vocabulary)))
    rarest = len(vocabulary) * 2
    singles: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for document in documents:
        words = [word.lower() for word in WORD.findall(f"{document.title} {document.text}")]
        singles.update(set(words))
        pairs.update({pair for pair in pairwise(words) if not STOP_WORDS.intersection(pair)})
    total = max(1, sum(singles.values()))
    least = min(LEAST_DOCUMENTS, max(1, len(documents) // 2))

    def english(word: str) -> float:
        return 1 / (rank.get(word, rarest) * norm)

    scores: dict[str, float] = {}
    for word, documents_with in singles.items():
        if documents_with >= least and word not in STOP_WORDS and rank.get(word, rarest) > 100:
            share = documents_with / total
            scores[word] = share * math.log(share / english(word))
    for (first, second), documents_with in pairs.items():
        share = documents_with / total
        alone = min(singles[first], singles[second])
        if documents_with >= least and documents_with >= 0.3 * alone and first in scores and second in scores:
            expected = min(english(first), english(second)) * PAIR_RARITY
            scores[f"{first} {second}"] = share * math.log(share / expected)
    return _without_parts(sorted(scores, key=lambda term: (-scores[term], term)), count)


def _without_parts(ranked: Sequence[str], count: int) -> tuple[str, ...]:
    """The first terms, none a plural or a part of one before it."""
    chosen: list[str] = []
    used: set[str] = set()
    for term in ranked:
        words = {word.removesuffix("s") for word in term.split()}
        if words <= used:
            continue
        chosen.append(term)
        used |= words
        if len(chosen) == count:
            break
    return tuple(chosen)


def style(documents: Sequence[Document]) -> str:
    """The form of the documents, told from a sample: `titled texts of about 210 words`."""
    if not documents:
        return "no documents"
    lengths = sorted(len(document.text.split()) for document in documents)
    middle = lengths[len(lengths) // 2]
    titled = sum(bool(document.title) for document in documents) > len(documents) / 2
    rounded = round(middle, -1) if middle >= 20 else middle
    return f"{'titled ' if titled else ''}texts of about {rounded} words"
