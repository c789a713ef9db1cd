"""Folders of people's files, with questions in their words: is the answer right, and is it said how sure it is?

    FOLDERS/shop/files/...            what a person would point HELIOS at
    FOLDERS/shop/questions.jsonl      {id, question, kind, language, answer, evidence}, see benchmarks/folders/README.md
    INDEXES/shop                      the index of FOLDERS/shop/files

An answer is right as a person would say it: any accepted form, other words for yes and no, a number with or without
its unit, all items of a list and no others.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from helios.errors import EvaluationError
from helios.reading.citations import parts_of
from helios.reading.tables.dates import MONTH

if TYPE_CHECKING:
    from helios.engine import Engine
    from helios.reading.base import Answer
    from helios.types import Evidence, EvidenceEdge

FIRST = 3
"""Ranks among which evidence should be."""
SPARE_WORDS = 4
"""Words that an answer may have beside an accepted form of two words or more."""
_WORD = re.compile(r"[぀-ヿ㐀-鿿가-힯]|[^\W_぀-ヿ㐀-鿿가-힯]+|%")
_AMOUNT = re.compile(
    r"(?:[^\d\-−]{0,3}[^\d\-−A-Za-zÀ-ɏ]|CHF|EUR|USD|GBP|[Kk]r|Rs|Fr|)([-−]?\d+(?:[.,]\d+)?)\s*\D{0,14}"
)
"""A number with its unit before it or behind it; other letters that touch its digits from the left make it a code."""
_OF_A_MONTH = re.compile(rf"(?<![^\W\d_])(?:{MONTH})(?![^\W\d_])", re.IGNORECASE)
_ARTICLES = frozenset(
    [
        "a",
        "an",
        "the",
        "der",
        "die",
        "das",
        "ein",
        "eine",
        "le",
        "la",
        "les",
        "l",
        "un",
        "une",
        "el",
        "los",
        "las",
        "una",
    ]
)


@dataclass(frozen=True, slots=True)
class FolderQuestion:
    """A question about a folder; no items for one that the folder does not answer."""

    id: str
    question: str
    kind: str
    language: str
    items: tuple[tuple[str, ...], ...]
    """What must be named, each in its accepted forms."""
    evidence: tuple[tuple[str, tuple[str, ...]], ...]
    """(file, texts that stand there together); one of them is enough."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question."""

    world: str
    question: FolderQuestion
    answer: str
    confidence: float
    right: bool
    """The right answer; for a question without one, none was given."""
    rank: int | None
    """Of the first edge that is evidence; None where it is not among those looked at."""
    reader: str = ""

    @property
    def answerable(self) -> bool:
        return bool(self.question.items)

    @property
    def answered(self) -> bool:
        return bool(self.answer)


def read_folder_questions(path: Path) -> list[FolderQuestion]:
    """The questions of a folder; EvaluationError names the line that is none."""
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            items = tuple(tuple(str(form) for form in item) for item in record["answer"])
            evidence = tuple((one["file"], tuple(map(str, one["contains"]))) for one in record["evidence"])
            found.append(
                FolderQuestion(
                    record["id"], record["question"], record["kind"], record.get("language", "en"), items, evidence
                )
            )
        except (KeyError, TypeError, ValueError) as error:
            raise EvaluationError(f"{path}:{number}: no question about a folder ({error})") from error
    return found


def measure_folder(
    engine: "Engine",
    world: str,
    questions: Sequence[FolderQuestion],
    *,
    k: int = 50,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Outcome]:
    """Ask an index of the folder all of its questions."""
    from helios.reading.asking import answer_question

    @cache
    def source_of(table_id: str) -> str:
        return engine.corpus.tables.get(table_id).source

    found = []
    for number, question in enumerate(questions, start=1):
        answer, evidence = answer_question(engine, engine.reader, question.question, k=k)
        found.append(outcome(world, question, answer, evidence, source_of))
        progress(number)
    return found


def outcome(
    world: str, question: FolderQuestion, answer: "Answer", evidence: "Evidence", source_of: Callable[[str], str]
) -> Outcome:
    """Compare an answer and its evidence with the gold; `source_of` gives the file of a table by its id."""
    right = is_right(answer.text, question.items) if question.items else answer.abstained
    rank = next((edge.rank for edge in evidence.edges if _is_evidence(edge, question, source_of)), None)
    return Outcome(world, question, answer.text, answer.confidence, right, rank, answer.reader)


def is_right(answer: str, items: Sequence[Sequence[str]]) -> bool:
    """Whether an answer names every item, in one of its forms, and nothing else."""
    if not answer:
        return False
    if len(items) == 1:
        said = [answer, *parts_of(answer)[:2]]  # "Kasia Venn (KV)" is either
        return any(_same(one, form) for one in said for form in items[0])
    given = [part for part in re.split(r"\s*[,;、，]\s*|\s+(?:and|und|et|y)\s+", answer) if part.strip()]
    words = _words(answer)
    named = all(any(_holds(words, _words(form)) for form in item) for item in items)
    most = max(len(items), sum(1 + max(form.count(",") for form in item) for item in items))
    return named and len(given) <= most


def _same(answer: str, form: str) -> bool:
    ours, theirs = _words(answer), _words(form)
    if ours == theirs:
        return True
    one, other = _number(answer), _number(form)
    if one is not None and other is not None:
        return abs(one - other) <= 1e-6 * max(1.0, abs(other))
    content = sum(len(word) for word in theirs)
    return content >= 4 and other is None and _holds(ours, theirs) and len(ours) <= len(theirs) + SPARE_WORDS


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKD", text.casefold())
    folded = "".join(c for c in folded if not unicodedata.combining(c))
    return [
        word for word in _WORD.findall(re.sub(r"(?<=\d)[,\u202f\u00a0](?=\d{3})", "", folded)) if word not in _ARTICLES
    ]


def _number(text: str) -> float | None:
    """The number that a text is, with or without a unit; None for codes ("P03") and days of a month ("3 May")."""
    plain = re.sub(r"(?<=\d)[,\u202f\u00a0 ](?=\d{3}(?!\d))", "", text.strip())
    found = _AMOUNT.fullmatch(plain)
    if found is None or _OF_A_MONTH.search(plain):
        return None
    return float(found[1].replace("−", "-").replace(",", "."))


def _holds(words: Sequence[str], form: Sequence[str]) -> bool:
    size = len(form)
    return size > 0 and any(list(words[at : at + size]) == list(form) for at in range(len(words) - size + 1))


def _is_evidence(edge: "EvidenceEdge", question: FolderQuestion, source_of: Callable[[str], str]) -> bool:
    nodes: list[tuple[str, list[str]]] = []
    if edge.segment is not None:
        said = [edge.segment.title, edge.segment.section, *edge.segment.header, *edge.segment.cells]
        nodes.append((source_of(edge.segment.segment_id.table_id), said))
    if edge.passage is not None:
        nodes.append((edge.passage.source, [edge.passage.title, edge.passage.text]))
    for file, texts in question.evidence:
        for source, said in nodes:
            if source == file or source.startswith(f"{file}/"):
                words = _words(" \n ".join(said))
                if all(_holds(words, _words(text)) for text in texts):
                    return True
    return False


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Shares over questions: right, wrong and abstained of the answerable, refused of the others; and the confidence.

    `auc` is the chance that a right answer is said with more confidence than a wrong one, over all answers given.
    """
    can = [one for one in outcomes if one.answerable]
    cannot = [one for one in outcomes if not one.answerable]
    told = [one for one in can if one.question.evidence]
    given = [one for one in outcomes if one.answered]
    right = np.array([one.confidence for one in given if one.answerable and one.right])
    wrong = np.array([one.confidence for one in given if not (one.answerable and one.right)])
    auc = None
    if len(right) and len(wrong):
        gaps = right[:, None] - wrong[None]
        auc = round(float((gaps > 0).mean() + 0.5 * (gaps == 0).mean()), 3)
    return {
        "questions": len(outcomes),
        "answerable": len(can),
        "right": _share(one.right for one in can),
        "wrong": _share(one.answered and not one.right for one in can),
        "abstained": _share(not one.answered for one in can),
        "refused": _share(one.right for one in cannot),
        "right of answered": _share(one.answerable and one.right for one in given),
        "said": round(float(np.mean([one.confidence for one in given])), 3) if given else None,
        "auc": auc,
        f"evidence@{FIRST}": _share(one.rank is not None and one.rank <= FIRST for one in told),
        "evidence@1": _share(one.rank == 1 for one in told),
    }


def report(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The summary of all questions, of each world and of each kind of question."""
    worlds = dict.fromkeys(one.world for one in outcomes)
    kinds = dict.fromkeys(one.question.kind for one in outcomes)
    return {
        "all": summary(outcomes),
        "worlds": {world: summary([one for one in outcomes if one.world == world]) for world in worlds},
        "kinds": {kind: summary([one for one in outcomes if one.question.kind == kind]) for kind in sorted(kinds)},
    }


def outcome_record(one: Outcome) -> dict[str, Any]:
    """As JSON, for a look at what failed."""
    return {
        "world": one.world,
        "id": one.question.id,
        "question": one.question.question,
        "kind": one.question.kind,
        "gold": [list(item) for item in one.question.items],
        "answer": one.answer,
        "confidence": round(one.confidence, 3),
        "right": one.right,
        "rank": one.rank,
        "reader": one.reader,
    }


def _share(flags: Iterable[bool]) -> float | None:
    values = list(flags)
    return round(float(np.mean(values)), 3) if values else None
