"""The words and phrases of a question: what selection, lookup and keyword evidence look for in a source."""

import re
from dataclasses import dataclass
from functools import lru_cache

from helios.index.lexical import terms_of

WORD = re.compile(r"[^\W_]+(?:[.\-'’][^\W_]+)*")
NUMBER = re.compile(r"\d[\d.,]*(?:s|st|nd|rd|th)?")
QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|(?<!\w)'([^']+(?:'\w[^']*)?)'(?!\w)|‘([^’]+)’")
LONGEST = 5
"""Words of an unquoted phrase."""
MOST_PHRASES = 40
FUNCTION_WORDS = frozenset(
    """
    a an the of in on at by for from to with without and or not no nor but as is are was were be been being am
    do does did done has have had having that which who whom whose what where when how why there this these
    those it its they them their he she his her him i me my we us our you your all any some each every both
    either than then so such if into onto over under about between during per via please can could would will
    shall may might must also only list show find give return tell display get select identify retrieve
    provide count many much most least more less other another same different distinct s t one ones first last
    top
    """.split()  # noqa: SIM905 (a list would take a line for every word)
)
QUESTION_STARTS = frozenset(
    """
    who whom whose what which where when why how is are was were do does did can could will would has have had
    in on at of for from to by with during under name list show find give return tell display get select
    identify retrieve provide count sort compute calculate determine describe please if among out after before
    """.split()  # noqa: SIM905 (a list would take a line for every word)
)


@dataclass(frozen=True, slots=True)
class Term:
    """A content word of a question."""

    text: str
    stem: str
    start: int
    end: int
    """Characters [start, end) of the question."""
    name: bool
    """Written as a name is: capitalised inside the sentence, or quoted."""
    number: bool = False
    """A number or a decade: a condition on values more often than a value."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A run of words that may stand in a source as they are."""

    text: str
    start: int
    end: int
    quoted: bool = False


@lru_cache(256)
def terms(question: str) -> tuple[Term, ...]:
    """The content words in order; all words where there is none."""
    spans = quotations(question)
    found, everything = [], []
    for place, word in enumerate(WORD.finditer(question)):
        inside = any(start <= word.start() < end for start, end in spans)
        written = word[0].removesuffix("'s").removesuffix("’s")
        stems = terms_of(written)
        if not stems:
            continue
        capital = written[0].isupper() and place > 0
        number = bool(NUMBER.fullmatch(written))
        name = (inside or capital) and not number
        term = Term(written, stems[0], word.start(), word.start() + len(written), name, number)
        everything.append(term)
        if inside or capital or written.lower() not in FUNCTION_WORDS:
            found.append(term)
    return tuple(found or everything)


@lru_cache(256)
def phrases(question: str, *, most: int = MOST_PHRASES) -> tuple[Phrase, ...]:
    """Quotations, and runs of words that begin and end with a word that says something; telling ones first."""
    found = [Phrase(question[start:end].strip(), start, end, quoted=True) for start, end in quotations(question)]
    words = list(WORD.finditer(question))
    quoted = quotations(question)
    runs = []
    for first in range(len(words)):
        for last in range(first, min(len(words), first + LONGEST)):
            run = _run(question, words[first : last + 1], quoted, opens=first == 0)
            if run is not None:
                runs.append(run)
    runs.sort(key=lambda run: (-_capitals(run.text), -len(run.text)))
    distinct = {phrase.text.casefold(): phrase for phrase in reversed(found + runs)}
    return tuple(sorted(distinct.values(), key=lambda p: (not p.quoted, -_capitals(p.text), -len(p.text))))[:most]


def quotations(question: str) -> tuple[tuple[int, int], ...]:
    """Where quoted text stands, without the marks."""
    spans = []
    for match in QUOTED.finditer(question):
        group = match.lastindex
        if group is not None and match[group].strip():
            spans.append(match.span(group))
    return tuple(spans)


def is_statement(question: str) -> bool:
    """Whether the words are a claim or a topic, not a question and not a request."""
    words = WORD.findall(question)
    return "?" not in question and bool(words) and words[0].lower() not in QUESTION_STARTS


def _run(
    question: str, words: list[re.Match[str]], quoted: tuple[tuple[int, int], ...], *, opens: bool
) -> Phrase | None:
    start, end = words[0].start(), words[-1].end()
    if any(start < other_end and other_start < end for other_start, other_end in quoted):
        return None
    if re.search(r"[?;!()]", question[start:end]):
        return None
    first, last = words[0][0], words[-1][0]
    if not all(_says_something(word, opens=opens and word is first) for word in (first, last)):
        return None
    text = re.sub(r"['’]s$", "", question[start:end])
    return Phrase(text, start, start + len(text)) if len(text) > 1 else None


def _says_something(word: str, *, opens: bool) -> bool:
    return word.lower() not in FUNCTION_WORDS or (word[0].isupper() and not opens)


def _capitals(text: str) -> float:
    words: list[str] = WORD.findall(text)
    capitals = sum(1 for word in words if word[0].isupper() or word[0].isdigit())
    return capitals * min(len(words), 3) / max(1, len(words))
