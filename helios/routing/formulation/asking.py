"""Whether there is anything to formulate: claims and topics have no query for an answer."""

import re
from collections.abc import Set
from itertools import takewhile

from helios.routing.formulation.words import FUNCTION_WORDS, IRREGULAR, lemma
from helios.routing.phrases import WORD, is_statement

ASKING = frozenset((
    "what", "what's", "whats", "who", "who's", "whos", "whom", "whose", "which", "where", "where's", "when", "why",
    "how", "name", "list", "this",
))  # fmt: skip
"""Words that ask wherever they stand: "clements is what nationality", "guitar is played by this artist"."""
LISTING = re.compile(
    r"(the )?(first and last |full |last )?"
    r"(names?|titles?|ids?|tags|numbers?|codes|total|average|mean|sum|count|top \d+|how)\b"
    r"(?=.*\b(of|for|per|by|in|that|who|with)\b)"
    r"|(the )?(\w+ ){1,3}(for each|for every|in each|per) \w+",
    re.IGNORECASE,
)
"""Words that ask for something where no verb does: "names of the orchards above 600 metres"."""

OPENING = 3
"""Words that stand before a noun at the start, with the noun."""
FINITE = frozenset((
    "is", "are", "was", "were", "be", "been", "has", "have", "had", "do", "does", "did", "can", "could", "will",
    "would", "should", "may", "might", "must",
))  # fmt: skip
"""Verbs that make a claim of a noun."""
RELATIVES = ("that", "who", "which", "whose", "they", "it", "have", "has", "had", "we", "been", "not", "be", "to")
"""Words before a verb that says more of a noun instead."""


def asks_nothing(question: str) -> bool:
    """Whether the words are a claim or a topic, without a mark or a word that asks."""
    if LISTING.match(question):
        return False
    return is_statement(question) and not any(word.lower() in ASKING for word in WORD.findall(question))


def requested(question: str, called: Set[str]) -> str | None:
    """A question, or what only names rows as a request for them; None for words that ask nothing."""
    if not asks_nothing(question):
        return question
    if not names_rows(question, called):
        return None
    first = question.split(maxsplit=1)[0]
    return f"List {question[0].lower() if lemma(first) in called else question[0]}{question[1:]}"


def names_rows(question: str, called: Set[str]) -> bool:
    """Whether words only name rows of a source: "Customers in Coldmere, in alphabetical order".

    `called` are the lemmas that rows are called by. A claim has a verb of its own.
    """
    words = [word.lower() for word in WORD.findall(question)]
    start = list(takewhile(lambda word: word not in FUNCTION_WORDS, words))
    nouns = [at for at, word in enumerate(start[:OPENING]) if lemma(word) != word and lemma(word) in called]
    if not nouns or not _goes_on(words[nouns[0] + 1 :][:1]):
        return False
    verbs = (place for place, word in enumerate(words) if word in FINITE)
    return all(words[place - 1] in RELATIVES or "whose" in words[:place] for place in verbs)


def _goes_on(following: list[str]) -> bool:
    """Whether what stands behind a noun says more of it and is no verb of a claim."""
    return all(word in FUNCTION_WORDS or word.endswith(("ed", "ing")) or word in IRREGULAR for word in following)
