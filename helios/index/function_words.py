"""Words that say nothing about what is asked, in the languages of `helios.index.languages`.

In a corpus of text they are frequent, and weigh little for that. Tables hardly have any: there "do", "we" or "get"
would be as telling as a name, and find initials.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

from helios.index.languages import COMMON, UNSPACED, UNSPACED_COMMON, Analysis, recognise
from helios.index.lexical import ENGLISH

LIGHT = 0.25
"""Most that a token of such a word weighs, where the mean of a question's tokens is 1."""
_UNSPACED_COMMON = re.compile("|".join(UNSPACED_COMMON))
_PAIR = re.compile(f"[{UNSPACED}]")
_WORD = re.compile(rf"{_UNSPACED_COMMON.pattern}|[{UNSPACED}]|[^\W{UNSPACED}]+")


def function_spans(text: str) -> list[tuple[int, int]]:
    """Characters of the words that say nothing; none where no other word is left."""
    words = [(match.start(), match.end(), match.group().lower()) for match in _WORD.finditer(text)]
    light = _function_words([word for _, _, word in words], ENGLISH).union(UNSPACED_COMMON)
    found = [(start, end) for start, end, word in words if word in light]
    return found if len(found) < len(words) else []


def telling_terms(text: str, analysis: Analysis = ENGLISH) -> list[str]:
    """The terms of a text without function words, each once; all terms where nothing else is left."""
    terms = list(dict.fromkeys(analysis.terms(_UNSPACED_COMMON.sub(" ", text) if analysis.bigrams else text)))
    light = _function_words(terms, analysis)
    return [term for term in terms if term not in light] or terms or list(dict.fromkeys(analysis.terms(text)))


def count_missing(question: str, known: Collection[str], analysis: Analysis) -> int:
    """How many terms of a question no text of an index has, though its texts would, did they speak of them.

    Of a question in a language that no text is in these are those with a digit: its words say nothing about what is
    there. Two characters may belong to two words: they are missing where both are in no pair that is known.
    """
    unknown = [term for term in dict.fromkeys(analysis.terms(question)) if term not in known]
    language = recognise(question) if analysis.languages else ""
    if language and language not in analysis.languages:
        return sum(any(map(str.isdigit, term)) for term in unknown)
    if not analysis.bigrams or question.isascii():
        return len(unknown)
    telling = set(telling_terms(question, analysis))
    held = {character for term in known for character in term}
    pairs = [term for term in unknown if _PAIR.match(term)]
    return len(unknown) - sum(term not in telling or not held.isdisjoint(term) for term in pairs)


def _function_words(words: Sequence[str], analysis: Analysis) -> frozenset[str]:
    """Those of the language that most of the words are of: "war" says nothing in German alone."""
    return max(_known(analysis), key=lambda known: sum(word in known for word in words))


@lru_cache(maxsize=64)
def _known(analysis: Analysis) -> tuple[frozenset[str], ...]:
    """The words of each language, as they are written and as terms."""
    return tuple(
        frozenset(term for word in words for term in (word, *analysis.terms(word))) for words in COMMON.values()
    )
