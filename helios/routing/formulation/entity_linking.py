"""Which stored entities a question names: every run of words is looked up, and what came back is weighed again.

The lookup of a source decides what is found; this module decides what it is worth. A link is worth more the more of
the question's characters it explains and the closer its words are to the stored ones.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from helios.sources.base import Source, ValueHit

WORD = re.compile(r"[^\W_]+(?:[.'’\-][^\W_]+)*\.?|&")
POSSESSIVE = re.compile(r"['’]s$|['’]$")
QUALIFIER = re.compile(r"\s*\([^)]*\)\s*$|,.*$")
MAX_WORDS = 9
LEAST_SIMILARITY = 0.72
FUNCTION_WORDS = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "in",
        "on",
        "at",
        "by",
        "to",
        "for",
        "from",
        "with",
        "and",
        "or",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "do",
        "does",
        "did",
        "has",
        "have",
        "had",
        "s",
        "what",
        "which",
        "who",
        "whom",
        "whose",
        "where",
        "when",
        "why",
        "how",
        "name",
        "list",
        "give",
        "find",
        "show",
        "tell",
        "me",
        "i",
        "it",
        "its",
        "his",
        "her",
        "their",
        "this",
        "that",
        "these",
        "those",
        "as",
        "than",
        "into",
        "about",
        "any",
        "some",
        "all",
        "one",
        "can",
        "could",
        "would",
        "will",
        "there",
        "not",
        "no",
    ]
)


@dataclass(frozen=True, slots=True)
class EntityLink:
    """A run of the question's characters that names an entity."""

    entity: str
    label: str
    start: int
    end: int
    similarity: float
    """1.0 for the same words after normalisation."""
    weight: float
    """`similarity` times how much of the question's content the run holds."""


@dataclass(frozen=True, slots=True)
class Run:
    """Adjacent words of a question."""

    text: str
    start: int
    end: int
    words: int


def link_entities(question: str, source: Source, *, limit: int = 12, per_phrase: int = 12) -> tuple[EntityLink, ...]:
    """The entities that the question may name, best first; a run inside a better run of the same words is dropped."""
    runs = runs_of_words(question)
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.text, []).append(run)
    hits = source.find_values(tuple(found), limit=per_phrase) if found else ()
    content = max(1, sum(len(word) for word in folded(question).split() if word not in FUNCTION_WORDS))
    links: dict[str, EntityLink] = {}
    for hit in hits:
        for run in found.get(hit.phrase, ()):
            link = _link(hit, run, content)
            if link is not None and (hit.entity not in links or links[hit.entity].weight < link.weight):
                links[hit.entity] = link
    ordered = sorted(links.values(), key=lambda link: (-link.weight, link.entity))
    return tuple(link for link in ordered if not _inside_better(link, ordered))[:limit]


def runs_of_words(question: str, *, max_words: int = MAX_WORDS) -> tuple[Run, ...]:
    """Every run of up to `max_words` words that holds one that is not a function word, possessive endings cut."""
    words = list(WORD.finditer(question))
    runs = []
    for first in range(len(words)):
        for last in range(first, min(len(words), first + max_words)):
            run = _run(question, words[first : last + 1])
            if run is not None:
                runs.append(run)
    return tuple(runs)


def _run(question: str, words: Sequence[re.Match[str]]) -> Run | None:
    start, end = words[0].start(), words[-1].end()
    text = POSSESSIVE.sub("", question[start:end])
    if len(text) < 2 or all(folded(word[0]) in FUNCTION_WORDS for word in words):
        return None
    return Run(text, start, start + len(text), len(words))


def _link(hit: ValueHit, run: Run, content: int) -> EntityLink | None:
    likeness = similarity(hit.phrase, hit.value)
    if not hit.entity or likeness < LEAST_SIMILARITY:
        return None
    held = sum(len(word) for word in folded(run.text).split() if word not in FUNCTION_WORDS)
    share = min(1.0, held / content)
    weight = likeness**3 * share**0.5 * (1.0 if run.words > 1 else 0.85)
    return EntityLink(hit.entity, hit.value, run.start, run.end, likeness, weight)


def _inside_better(link: EntityLink, ordered: Sequence[EntityLink]) -> bool:
    return any(
        other.start <= link.start and link.end <= other.end and other.end - other.start > link.end - link.start
        and other.similarity >= max(0.95, link.similarity - 0.02)
        for other in ordered
    )  # fmt: skip


@lru_cache(16384)
def folded(text: str) -> str:
    """Lower case, without accents and punctuation, one space between words; apostrophes and dots join."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    plain = plain.replace("&", " and ").replace("ł", "l").replace("ø", "o").replace("đ", "d")
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"['’.]", "", plain)))


@lru_cache(16384)
def similarity(phrase: str, value: str) -> float:
    """How close two names are, 0 to 1: equal words, equal but for a qualifier, or the characters in common."""
    left, right = folded(phrase), folded(value)
    if left == right:
        return 1.0
    if not left or not right:
        return 0.0
    bare = folded(QUALIFIER.sub("", value))
    if left == bare or left == folded(QUALIFIER.sub("", phrase)) == right:
        return 0.97
    if _without_article(left) == _without_article(right) or left.replace(" ", "") == right.replace(" ", ""):
        return 0.98
    return max(_shared(left, right), 0.98 * _shared(left, bare) if bare else 0.0)


def _shared(left: str, right: str) -> float:
    if min(len(left), len(right)) < 0.5 * max(len(left), len(right)):
        return 0.0
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if matcher.quick_ratio() < LEAST_SIMILARITY:
        return 0.0
    return matcher.ratio() * 0.99


def _without_article(text: str) -> str:
    return text.removeprefix("the ").removeprefix("a ").removeprefix("an ")
