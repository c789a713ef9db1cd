"""Whether there is anything to formulate: claims and topics have no query for an answer."""

import re

from helios.routing.phrases import WORD, is_statement

ASKING = frozenset((
    "what", "what's", "whats", "who", "who's", "whos", "whom", "whose", "which", "where", "where's", "when", "why",
    "how", "name", "list", "this",
))  # fmt: skip
"""Words that ask wherever they stand: "clements is what nationality", "guitar is played by this artist"."""
LISTING = re.compile(
    r"(the )?(first and last |full |last )?"
    r"(names?|titles?|ids?|tags|numbers?|codes|total|average|mean|sum|count|top \d+|how)\b"
    r"(?=.*\b(of|for|per|by|in|that|who|with)\b)",
    re.IGNORECASE,
)
"""Words that ask for something where no verb does: "names of the orchards above 600 metres"."""


def asks_nothing(question: str) -> bool:
    """Whether the words are a claim or a topic, without a mark or a word that asks."""
    if LISTING.match(question):
        return False
    return is_statement(question) and not any(word.lower() in ASKING for word in WORD.findall(question))
