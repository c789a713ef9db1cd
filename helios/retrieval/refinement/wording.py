"""What a question's wording asks to be compared: its superlatives and ordinals.

    cues = read_cues("Who is the second oldest player of the 1994 team?")
    cues[0].sense, cues[0].larger, cues[0].place        Sense.AGE, False, 2

Words only: nothing here knows a table. `columns.py` has the typed columns that a cue may fit.
"""

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from helios.index.languages import recognise

_WORD = re.compile(r"\d[\d,.]*\d(?!\w)|\w+")


class Sense(StrEnum):
    """What kind of comparison a cue word makes."""

    AGE = "age"
    """oldest, youngest: of people by birth, of things by founding."""
    TIME = "time"
    """earliest, latest, most recent, first, last: by date or by place in the list."""
    SIZE = "size"
    """largest, tallest, longest: by a magnitude that the word or what follows it names."""
    AMOUNT = "amount"
    """most, fewest, highest, lowest: by what follows the word."""
    QUALITY = "quality"
    """best, worst, fastest: a small rank or time, or a large score."""
    PLACE = "place"
    """third place, ranked 13th, 5th round: a row by its number."""


@dataclass(frozen=True, slots=True)
class Cue:
    """One superlative or ordinal of a question."""

    word: str
    sense: Sense
    larger: bool
    """Whether large values are wanted, of an amount or of a date; for AGE of the date of birth."""
    place: int
    """1 for the extreme itself, 2 for the one after it."""
    start: int
    """Number of the cue's first word in the question."""
    after: tuple[str, ...]
    """Up to six words that follow, which may name the column."""
    hints: frozenset[str]
    """Words that headers of such columns hold."""


_TIME_HINTS = "date year season time established founded opened built completed released aired debut period years"
_SIZES = {
    "largest": "area size population capacity seats length members number total", "biggest": "", "greatest": "",
    "tallest": "height", "longest": "length distance time duration years span term", "deepest": "depth",
    "heaviest": "weight mass", "widest": "width", "richest": "net worth wealth value revenue", "thickest": "thickness",
    "wealthiest": "net worth wealth value revenue", "busiest": "passengers traffic movements", "farthest": "distance",
    "furthest": "distance", "strongest": "magnitude strength", "deadliest": "deaths fatalities dead killed",
    "costliest": "cost damage price",
}  # fmt: skip
_SMALL_SIZES = {
    "smallest": _SIZES["largest"], "shortest": "height length distance time duration years span term",
    "lightest": "weight mass", "shallowest": "depth", "narrowest": "width margin", "closest": "distance margin",
    "nearest": "distance", "poorest": "income wealth", "cheapest": "price cost", "youngest-aged": "age",
}  # fmt: skip
_ATTRIBUTES = {
    "populous": "population", "populated": "population", "expensive": "price cost fee value", "valuable": "value price",
    "successful": "titles wins total championships", "capped": "caps appearances", "decorated": "medals total",
    "recent": _TIME_HINTS, "recently": _TIME_HINTS,
}  # fmt: skip
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)
_NUMBERS = {word: number for number, word in enumerate(_ORDINALS.split(), start=1)}
_PLACE_HINTS = "rank place pos position finish no number pick standing result round season edition episode"
_FIGURE = re.compile(r"^(\d{1,3})(?:st|nd|rd|th)$")
NO_SUPERLATIVES = {
    "west", "east", "midwest", "northwest", "southwest", "northeast", "southeast", "rest", "guest", "test", "contest",
    "forest", "rainforest", "interest", "request", "quest", "conquest", "inquest", "bequest", "priest", "arrest",
    "unrest", "protest", "harvest", "invest", "suggest", "chest", "breast", "nest", "vest", "crest", "pest", "zest",
    "jest", "behest", "digest", "ingest", "manifest", "infest", "attest", "detest", "honest", "earnest", "modest",
    "tempest", "everest", "forrest", "ernest", "bucharest", "budapest", "brest",
}  # fmt: skip
"""Words that end like superlatives and are none."""
_NO_CUES = re.compile(
    r"\b(?:first|last|middle) names?\b|\b(?:at|of) (?:least|most)\b|\b(?:first|second) world war\b"
    r"|\bbest[- ](?:known|selling)\b|\bwest coast\b|\b\w+(?:th|st|nd|rd)[ -]centur(?:y|ies)\b"
)
FOLLOWING = 6
_STATED_WORDS = 4
"""Words of a question, from a cue on, that a text has to repeat before it counts as saying the same."""


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in lower case, thousands separators gone: "Goals scored 1,204" → goals scored 1204."""
    plain = (text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold()
    return tuple(word.replace(",", "") for word in _WORD.findall(plain))


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A word without its plural ending."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def stems(text: str) -> tuple[str, ...]:
    """The stems of a text's words."""
    return tuple(stem(word) for word in words_of(text))


def read_cues(question: str) -> tuple[Cue, ...]:
    """Superlatives and ordinals in the order of the question; an ordinal before a superlative is its place.

    They are English: a question in another language has none, also where one of its words looks like one (das Fest).
    """
    if recognise(question) not in ("en", ""):
        return ()
    blanked = _NO_CUES.sub(lambda match: " ".join("_" for _ in match[0].split()), question.casefold())
    words = words_of(blanked)
    cues: list[Cue] = []
    position = 0
    while position < len(words):
        cue = _cue_at(words, position)
        if cue is None:
            position += 1
            continue
        cues.append(cue)
        position += _length(words, position)
    return tuple(cues)


def states_rank(text: str, question: str) -> bool:
    """Whether a text says of something, in the question's words, the rank that the question names.

    "fourth-oldest university in" answers to "the 4th oldest university in Ohio": four words from the cue on.
    """
    told = f" {' '.join(map(_ranked, words_of(text)))} "
    for cue in read_cues(question):
        phrase = [_ranked(word) for word in (*words_of(cue.word), *cue.after)][:_STATED_WORDS]
        if len(phrase) == _STATED_WORDS and f" {' '.join(phrase)} " in told:
            return True
    return False


def _ranked(word: str) -> str:
    """The stem of a word; an ordinal in figures: fourth and 4th are the same."""
    place = _ordinal(word)
    return stem(word) if place is None else f"{place}th"


def _length(words: tuple[str, ...], position: int) -> int:
    """How many words a cue takes: its ordinal, the superlative, and the adjective after "most"."""
    place = _ordinal(words[position])
    taken = 1
    if place is not None and position + 1 < len(words) and _superlative(words, position + 1):
        taken, position = 2, position + 1
    follows = words[position + 1] if position + 1 < len(words) else ""
    return taken + (words[position] in ("most", "least") and follows in _ATTRIBUTES)


def _cue_at(words: tuple[str, ...], position: int) -> Cue | None:
    place = _ordinal(words[position])
    if words[position] == "runner":
        is_second = position + 1 < len(words) and words[position + 1] in ("up", "ups")
        return _cue(words, position, Sense.PLACE, False, _PLACE_HINTS, place=2) if is_second else None
    if place is not None and position + 1 < len(words):
        superlative = _superlative(words, position + 1)
        if superlative is not None:
            return _cue(words, position, *superlative, place=place)
    if place is not None:
        sense = Sense.TIME if words[position] == "first" else Sense.PLACE
        hints = _TIME_HINTS if sense is Sense.TIME else _PLACE_HINTS
        return _cue(words, position, sense, False, hints, place=place)
    superlative = _superlative(words, position)
    return None if superlative is None else _cue(words, position, *superlative, place=1)


def _cue(words: tuple[str, ...], position: int, sense: Sense, larger: bool, hints: str, *, place: int) -> Cue:
    taken = _length(words, position)
    after = words[position + taken : position + taken + FOLLOWING]
    word = " ".join(words[position : position + taken])
    return Cue(word, sense, larger, place, position, after, frozenset(hints.split()))


def _ordinal(word: str) -> int | None:
    figure = _FIGURE.match(word)
    return int(figure[1]) if figure else _NUMBERS.get(word)


def _superlative(words: tuple[str, ...], position: int) -> tuple[Sense, bool, str] | None:
    """(sense, whether large is wanted, header hints) of the word, None if it is no superlative."""
    word = words[position]
    follows = words[position + 1] if position + 1 < len(words) else ""
    if word in ("most", "least") and follows in _ATTRIBUTES:
        is_time = follows.startswith("recent")
        return Sense.TIME if is_time else Sense.AMOUNT, word == "most", _ATTRIBUTES[follows]
    if word == "final" and _is_match(words, position):
        return None
    if word in _FIXED:
        return _FIXED[word]
    if word in _SIZES:
        return Sense.SIZE, True, _SIZES[word] or _SIZES["largest"]
    if word in _SMALL_SIZES:
        return Sense.SIZE, False, _SMALL_SIZES[word]
    if len(word) > 4 and word.endswith("est") and word not in NO_SUPERLATIVES:
        return Sense.SIZE, True, ""
    return None


def _is_match(words: tuple[str, ...], position: int) -> bool:
    """Whether "final" is the match: the cup final, a final of 2010, losing in the final."""
    follows = words[position + 1] if position + 1 < len(words) else ""
    before = words[position - 1] if position else ""
    return not follows or follows in _AFTER_NOUN or before in _KINDS_OF_FINAL or before.isdigit()


_AFTER_FINAL = (
    "of in at to between against on for from by with and or who that which where when as is was were are has had did "
    "do does held played match appearance appearances _"
)
_AFTER_NOUN = frozenset(_AFTER_FINAL.split())
_KINDS_OF_FINAL = frozenset(
    ("semi", "quarter", "grand", "cup", "league", "conference", "championship", "singles", "doubles", "playoff")
)
_FIXED: dict[str, tuple[Sense, bool, str]] = {
    "oldest": (Sense.AGE, False, "age birth born " + _TIME_HINTS),
    "eldest": (Sense.AGE, False, "age birth born"),
    "youngest": (Sense.AGE, True, "age birth born " + _TIME_HINTS),
    "newest": (Sense.AGE, True, _TIME_HINTS),
    "earliest": (Sense.TIME, False, _TIME_HINTS),
    "latest": (Sense.TIME, True, _TIME_HINTS),
    "last": (Sense.TIME, True, _TIME_HINTS),
    "final": (Sense.TIME, True, _TIME_HINTS),
    "most": (Sense.AMOUNT, True, "total number"),
    "least": (Sense.AMOUNT, False, "total number"),
    "fewest": (Sense.AMOUNT, False, "total number"),
    "highest": (Sense.AMOUNT, True, "total score points height elevation"),
    "lowest": (Sense.AMOUNT, False, "total score points height elevation"),
    "maximum": (Sense.AMOUNT, True, ""),
    "minimum": (Sense.AMOUNT, False, ""),
    "best": (Sense.QUALITY, True, "rank pos position place score points time result"),
    "worst": (Sense.QUALITY, False, "rank pos position place score points time result"),
    "fastest": (Sense.QUALITY, True, "time speed lap mark result"),
    "slowest": (Sense.QUALITY, False, "time speed lap mark result"),
}
