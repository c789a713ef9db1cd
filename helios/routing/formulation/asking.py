"""Whether there is anything to formulate: claims and topics have no query for an answer."""

from helios.routing.phrases import WORD, is_statement

ASKING = frozenset((
    "what", "what's", "whats", "who", "who's", "whos", "whom", "whose", "which", "where", "where's", "when", "why",
    "how", "name", "list", "this",
))  # fmt: skip
"""Words that ask wherever they stand: "clements is what nationality", "guitar is played by this artist"."""


def asks_nothing(question: str) -> bool:
    """Whether the words are a claim or a topic, without a mark or a word that asks."""
    return is_statement(question) and not any(word.lower() in ASKING for word in WORD.findall(question))
