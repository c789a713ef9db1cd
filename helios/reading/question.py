"""What a question asks for: the kind of answer, and the words that name it.

ask("What date did the station open ?")        kind DATE, focus (date)
ask("Which gulf is north of the city ?")       kind THING, focus (gulf)
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from helios.index.languages import recognise
from helios.index.lexical import terms_of

WORD = re.compile(r"\w+(?:[.,:'’–-]\w+)*")


def words(text: str) -> frozenset[str]:
    """A set of the words of a text, split at blanks."""
    return frozenset(text.split())


STOP = words(
    "a an the of in on at to for from by with and or as is are was were be been being do does did has have "
    "had it its this that these those which who whom whose what when where why how their his her he she "
    "they them there than then into about after before during between also not no s 's ' one ones"
)
"""Words that say nothing about the answer."""
ASKING = ("what", "which", "who", "whom", "whose", "when", "where", "how", "why")
AUXILIARIES = words("is are was were be did do does has have had can could will would the a an 's in")


class Kind(StrEnum):
    """What kind of thing would answer."""

    PERSON = "person"
    DATE = "date"
    YEAR = "year"
    COUNT = "count"
    MEASURE = "measure"
    PLACE = "place"
    THING = "thing"
    UNKNOWN = "unknown"


KIND_WORDS: dict[Kind, frozenset[str]] = {
    Kind.YEAR: frozenset({"year", "season", "decade"}),
    Kind.DATE: frozenset({"date", "day", "month", "birthday", "birthdate", "time"}),
    Kind.COUNT: frozenset({"number", "population", "attendance", "capacity", "total", "amount", "count"}),
    Kind.MEASURE: words(
        "area length height distance size score percentage percent weight age elevation speed duration depth "
        "width cost price revenue salary budget"
    ),
    Kind.PLACE: words(
        "city country town village state county province place location region district birthplace continent "
        "island nation hometown municipality neighborhood"
    ),
    Kind.PERSON: words(
        "person actor actress player director author writer singer coach manager driver winner founder "
        "president politician musician artist athlete composer producer leader king queen brother sister "
        "father mother wife husband son daughter"
    ),
}


ASKING_ELSEWHERE: dict[str, dict[Kind, str]] = {
    "de": {
        Kind.PERSON: r"\b(?:wer|wen|wem|wessen)\b", Kind.DATE: r"\bwann\b", Kind.PLACE: r"\b(?:wo|wohin|woher)\b",
        Kind.COUNT: r"\bwie ?viele\b",
    },
    "fr": {
        Kind.PERSON: r"^\W*(?:à |de |avec |pour |par )?qui\b", Kind.DATE: r"\bquand\b", Kind.PLACE: r"\boù\b",
        Kind.COUNT: r"\bcombien d",
    },
    "es": {
        Kind.PERSON: r"\bqui[eé]n(?:es)?\b", Kind.DATE: r"\bcu[aá]ndo\b", Kind.PLACE: r"\bd[oó]nde\b",
        Kind.COUNT: r"\bcu[aá]nt[oa]s\b",
    },
    "zh": {
        Kind.PERSON: "[谁誰]", Kind.DATE: "什么时候|什麼時候|何时|何時|哪一?[天年月]", Kind.PLACE: "哪[里裡儿兒]|何处",
        Kind.COUNT: "多少|[几幾]个?",
    },
}  # fmt: skip
"""What asking words of other languages ask for, by ISO 639-1 code."""
_SAME_AS = {Kind.PERSON: "who", Kind.DATE: "when", Kind.PLACE: "where", Kind.COUNT: "how"}


SAID = {"de": ("ja", "nein"), "fr": ("oui", "non"), "es": ("sí", "no"), "zh": ("是", "否")}
"""Yes and no by ISO 639-1 code; they are English in all other languages."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question taken apart."""

    text: str
    word: str
    """The asking word: what, which, who ..., also for what another language has; empty if there is none."""
    kind: Kind
    focus: tuple[str, ...]
    """Terms that name what is asked for, head last; empty for who, when, where."""
    focus_span: tuple[int, int]
    """Characters of the question from the asking word to the end of the focus."""
    terms: tuple[str, ...]
    """Terms of the question without stop words, in order."""


def ask(question: str) -> Asked:
    """Find the asking word, the focus and the kind of answer."""
    words = [(match.group().lower(), match.start(), match.end()) for match in WORD.finditer(question)]
    terms = tuple(term for term in terms_of(question) if term not in STOP)
    at = _asking_position([word for word, _, _ in words])
    if at is None:
        return Asked(question, "", Kind.UNKNOWN, (), (0, 0), terms)
    word = words[at][0]
    first, last = _focus(question, words, at)
    focus = tuple(term for text, _, _ in words[first:last] for term in terms_of(text) if term not in STOP)
    span = (words[at][1], words[last - 1][2] if last > first else words[at][2])
    return Asked(question, word, _kind(word, [text for text, _, _ in words[at + 1 :]], focus), focus, span, terms)


def ask_in_any_language(question: str) -> Asked:
    """The same of a question in any language of ASKING_ELSEWHERE, whose focus nothing here finds."""
    asked = ask(question)
    if asked.word:
        return asked
    asking = ASKING_ELSEWHERE.get(recognise(question), {})
    matches = [(match, kind) for kind, words in asking.items() if (match := re.search(words, question, re.IGNORECASE))]
    if not matches:
        return asked
    match, kind = min(matches, key=lambda one: one[0].start())
    return replace(asked, word=_SAME_AS[kind], kind=kind, focus_span=match.span())


_VERBS = (
    ("es", r"¿|^\W*(?:se |puedo|puede|podemos|tenemos|tienen?|hay|está|están|hace falta)\b"),
    ("fr", r"-t-(?:il|elle|on)\b|^\W*(?:est-ce|peut-on|peut|faut-il|on peut|y a)\b"),
    ("de", r"^\W*(?:darf|dürfen|kann|können|muss|müssen|gibt|hat|haben|ist|sind|wird|werden)\b"),
)
"""What a short question tells its language by."""


def yes_or_no(question: str, *, yes: bool) -> str:
    """The word in the language of the question."""
    told = (language for language, verb in _VERBS if re.search(verb, question, re.IGNORECASE))
    affirmed, denied = SAID.get(recognise(question) or next(told, ""), ("yes", "no"))
    return affirmed if yes else denied


def _asking_position(words: list[str]) -> int | None:
    """`what` and `how` wherever they stand; other words can be relative pronouns, so the first of them."""
    found = [at for at, word in enumerate(words) if word in ASKING]
    strong = [at for at in found if words[at] in ("what", "how")]
    if found and found[0] <= 1:
        return found[0]
    return next(iter(strong or found), None)


def _focus(question: str, words: list[tuple[str, int, int]], at: int) -> tuple[int, int]:
    """Numbers [first, last) of the words of the noun phrase after the asking word."""
    word = words[at][0]
    if word in ("who", "whom", "when", "where", "why"):
        return at, at
    first = at + 1
    if first < len(words) and not question[words[at][2] : words[first][1]].isspace():
        return first, first
    while first < len(words) and words[first][0] in AUXILIARIES:
        first += 1
    if first + 2 < len(words) and words[first][0] in ("name", "names") and words[first + 1][0] == "of":
        first += 2
        while first < len(words) and words[first][0] in AUXILIARIES:
            first += 1
    last = first
    while last < len(words) and last < first + 4 and words[last][0] not in STOP:
        if last > first and not question[words[last - 1][2] : words[last][1]].isspace():
            break
        last += 1
    return first, last


def _kind(word: str, rest: list[str], focus: tuple[str, ...]) -> Kind:
    if word in ("who", "whom", "whose"):
        return Kind.PERSON
    if word == "when":
        return Kind.DATE
    if word == "where":
        return Kind.PLACE
    if word == "how":
        return Kind.COUNT if rest[:1] == ["many"] else Kind.MEASURE
    for kind, names in KIND_WORDS.items():
        if names.intersection(focus):
            return kind
    return Kind.THING if focus else Kind.UNKNOWN
