"""How much an element of a schema (a table, a column, a predicate, a label) resembles a question, by its words.

scores = relevance("How many singers are from France?", [("singer", "Name Country"), ("song", "Title Sales")])
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

from helios.sources.lookup import words_of

CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])")
WEAK = 0.4
"""What a word counts that stands in an element's text but not in its name."""
PREFIX = 0.6
"""What a word counts that only begins like the question's (`founded`, `founder`)."""
STOPS = """
a an and are as at be been by did do does each every for from give had has have how i in is it its list many me much
name of on or please show tell than that the their there these they this those to was were what when where which who
whom whose why will with you all any find number id
"""
STOP_WORDS = frozenset(STOPS.split())
"""Words that questions are made of, and those that most schemas have."""


def name_words(name: str) -> list[str]:
    """Words of an identifier or a label: `personBirthDate`, `person_birth_date` → person, birth, date."""
    return [_singular(word) for word in words_of(CAMEL.sub(" ", name).replace("_", " "))]


def question_words(question: str) -> list[str]:
    """The distinct words of a question that can tell one element from another; all words where none can."""
    words = list(dict.fromkeys(name_words(question)))
    return [word for word in words if word not in STOP_WORDS] or words


def relevance(question: str, elements: Sequence[tuple[str, str]]) -> list[float]:
    """A score for each element, given as its name and the rest of its text; 0 where no word matches.

    A word counts by its rarity among the elements, so that words that all of them have decide nothing.
    """
    asked = question_words(question)
    names = [set(name_words(name)) for name, _ in elements]
    texts = [set(name_words(text)) for _, text in elements]
    frequency = Counter(word for name, text in zip(names, texts, strict=True) for word in name | text)
    rarity = {word: math.log1p(len(elements) / (1 + frequency[word])) for word in frequency}
    scores = []
    for name, text in zip(names, texts, strict=True):
        score = 0.0
        for word in asked:
            found = _best(word, name, 1.0) or _best(word, text, WEAK)
            if found is not None:
                score += found[1] * rarity[found[0]]
        scores.append(score)
    return scores


def _best(word: str, words: set[str], weight: float) -> tuple[str, float] | None:
    if word in words:
        return word, weight
    shared = max(4, math.ceil(0.7 * len(word)))
    if len(word) >= shared:
        alike = sorted(other for other in words if other[:shared] == word[:shared] and len(other) <= len(word) + 4)
        if alike:
            return alike[0], weight * PREFIX
    return None


def _singular(word: str) -> str:
    """The mildest stemming of English plurals."""
    if len(word) < 4 or word[-1] != "s" or word[-2] in "us":
        return word
    return f"{word[:-3]}y" if word.endswith("ies") else word[:-1]
