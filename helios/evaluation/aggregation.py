"""Which questions count as aggregation questions: a fixed rule on their words, for breaking figures down.

The rule looks at the question alone, knows no table, and is not used by any model or stage.
"""

import re
from collections.abc import Sequence
from enum import StrEnum

from helios.evaluation.questions import Question

_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)
_NO_SUPERLATIVES = (
    "west east midwest northwest southwest northeast southeast rest guest test contest forest rainforest interest "
    "request quest conquest inquest priest arrest protest harvest invest suggest chest breast nest vest crest guest "
    "pest jest digest ingest manifest honest modest attest detest infest forrest everest bucharest budapest brest "
    "trest tempest everquest est"
)
_SUPERLATIVES = frozenset(("most", "least", "last", "best", "worst", "fewest"))
_EXCLUDED = frozenset(_NO_SUPERLATIVES.split())
_ORDINAL_WORDS = frozenset(_ORDINALS.split())
_NOT_MEANT = re.compile(
    r"\b(?:first|last|middle) names?\b|\b(?:at|of) (?:least|most)\b|\b(?:first|second) world war\b"
    r"|\bfirst lady\b"
    r"|\b(?:\w+th|\w+st|\w+nd|\w+rd|" + "|".join(_ORDINALS.split()) + r")[ -]centur(?:y|ies)\b"
)
_WORD = re.compile(r"[a-z]+|\d+(?:st|nd|rd|th)\b")


class Kind(StrEnum):
    """The two sides of the rule."""

    AGGREGATION = "aggregation"
    OTHER = "other"


def of_kind(questions: Sequence[Question], kind: Kind | None) -> tuple[Question, ...]:
    """The questions of one kind in their order, all of them for None."""
    wanted = kind is Kind.AGGREGATION
    return tuple(one for one in questions if kind is None or is_aggregation_question(one.text) is wanted)


def is_aggregation_question(text: str) -> bool:
    """Whether a question holds a superlative or an ordinal.

    Superlatives are most, least, fewest, best, worst, last and words of four letters or more that end in "est",
    without those that are none ("west", "guest"). Ordinals are first to twentieth and figures (3rd). "First name",
    "at least", "of most", the world wars and centuries do not count.
    """
    words = _WORD.findall(_NOT_MEANT.sub(" ", text.lower()))
    return any(
        word in _SUPERLATIVES
        or word in _ORDINAL_WORDS
        or word[0].isdigit()
        or (len(word) > 3 and word.endswith("est") and word not in _EXCLUDED)
        for word in words
    )
