"""Which answer is given, and how sure it is.

A span, a program over a table, words of a passage and a query are found by readers whose confidence was fitted to
questions of their own kind. Their best answers are laid side by side, equal ones as one. A small model reads the
likeliest beside the question, and trees that learned from questions about people's folders say how likely each is
right.

Shape legend: A answers, F features.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.index.languages import recognise
from helios.index.lexical import terms_of
from helios.models.base import find_base_model
from helios.models.card import read_card
from helios.models.routes import Runtime
from helios.models.trees import Trees
from helios.reading.base import Answer, Citation
from helios.reading.features import span_key
from helios.reading.passages import log_odds
from helios.reading.question import Kind, ask_in_any_language
from helios.reading.rivals import FILE as RIVALS_FILE
from helios.reading.rivals import RIVALS, Rival, RivalReader
from helios.reading.tables.wording import wording_of
from helios.types import Evidence

FloatArray = NDArray[np.float32]
ROLE = "answer-choice"
WEIGHTS = Path(__file__).parent / "weights" / "choice"
TREES = "trees.txt"
SILENT = -7.0
"""Log-odds of an answer that a reader does not give."""
LAST = 9.0
"""And its place."""
STEP = 0.8
"""Log-odds that a place behind the first costs where the answers are chosen that are read."""
CUES = ("count", "sum", "average", "much", "difference", "whether", "most", "least", "negated")
KINDS = tuple(Kind)
_CODE = re.compile(
    r"\b(?:codes?|numbers?|no\.|ids?|initials|refs?|references?|sku|nr|kürzel|kennung|código|número|numéro|clave)\b|"
    r"nummer\b|代码|代号|编号|号码",
    re.IGNORECASE,
)
"""Words that ask for a code and not for what it stands for."""


_HOW_MANY = re.compile(r"\bnumbers? of\b", re.IGNORECASE)
_NO_NAME = re.compile(
    r"\b(?:abbreviations?|barcodes?|postcodes?|sigles?|siglas?|abkürzung(?:en)?|no\.)(?!\w)|简称", re.IGNORECASE
)


def asks_for_a_code(question: str) -> bool:
    """Whether a code is asked for and not what it stands for; "the highest number of orders" asks for none."""
    return _NO_NAME.search(question) is not None or _CODE.search(_HOW_MANY.sub(" ", question)) is not None


class Reading(StrEnum):
    """Who found an answer."""

    SPAN = "spans"
    TABLE = "tables"
    PASSAGE = "passages"
    QUERY = "queries"
    WHETHER = "whether"


FEATURES = (
    # of each reader: log-odds of this answer, its place, how far it is behind the reader's best, and the best one's
    *(f"{one}_{name}" for one in Reading for name in ("odds", "place", "behind", "best")),
    # the answer among the others
    "readers", "first_of", "odds", "ahead",
    # what the reader of rivals says: its log-odds, the logarithm of the chance, how far ahead of all others
    "rival_odds", "rival_chance", "rival_ahead",
    # what it looks like
    "words", "characters", "digits", "number_first", "in_question", "capital", "computed", "unread", "reference",
    # the evidence
    "rank", "cited", "link", "best", "present", "paired", "foreign",
    # the question
    "kind", *(f"cue_{name}" for name in CUES), "orders", "comparisons", "question_words", "code",
)  # fmt: skip


READ = ("rival_odds", "rival_chance", "rival_ahead")


@dataclass(frozen=True, slots=True)
class Said:
    """An answer of a reader, and how it is read beside those of others."""

    answer: Answer
    rival: Rival
    computed: bool = False
    """Whether it stands in no cell and no text."""
    unread: int = 0
    """Words of the question that the reader could not read, where it says so."""
    reference: int = 0
    """-1 for a code that stands for something in another table, 1 for what was looked up there."""
    named: Answer | None = None
    """The answer with what its codes stand for there; None where there is nothing to add."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer by whoever gives it: the place among the reader's answers, from 0, and what it says."""

    by: Mapping[Reading, tuple[int, Said]]

    @property
    def surest(self) -> Said:
        """What the reader says that is surest of it."""
        return max((said for _, said in self.by.values()), key=lambda said: said.answer.confidence)

    @property
    def text(self) -> str:
        """The answer."""
        return self.surest.answer.text

    @property
    def odds(self) -> float:
        """The highest log-odds that a reader gives it."""
        return log_odds(self.surest.answer.confidence)

    def said(self, question: str) -> Answer:
        """The answer as it is given: codes with what they stand for, unless the question asks for a code, or the surest
        reader found it elsewhere."""
        best, cited = self.surest.answer, {one.segment_id for one in self.surest.answer.citations}
        if any(said.computed for _, said in self.by.values()) or asks_for_a_code(question):
            return best
        named = (said.named for _, said in self.by.values() if said.named is not None)
        return next((one for one in named if not cited.isdisjoint(at.segment_id for at in one.citations)), best)

    def odds_of(self, reading: Reading) -> float:
        """A reader's log-odds."""
        return log_odds(self.by[reading][1].answer.confidence) if reading in self.by else SILENT

    def place_of(self, reading: Reading) -> float:
        """Its place among a reader's answers."""
        return float(self.by[reading][0]) if reading in self.by else LAST

    @property
    def rival(self) -> Rival:
        """How it is read: as the reader that tells most of it says it."""
        order = (Reading.WHETHER, Reading.TABLE, Reading.PASSAGE, Reading.SPAN, Reading.QUERY)
        return next(self.by[one][1].rival for one in order if one in self.by)


def candidates_of(found: Mapping[Reading, Sequence[Said]]) -> list[Candidate]:
    """Each answer once, those first that will be read: the first ones of the readers, then others, the surest first."""
    by: dict[str, dict[Reading, tuple[int, Said]]] = {}
    for reading, answers in found.items():
        for place, said in enumerate(answers):
            if key := span_key(said.answer.text):
                by.setdefault(key, {}).setdefault(reading, (place, said))

    def order(one: Candidate) -> tuple[bool, float]:
        places = [(place, log_odds(said.answer.confidence)) for place, said in one.by.values()]
        return all(place for place, _ in places), -max(odds - STEP * place for place, odds in places)

    return sorted(map(Candidate, by.values()), key=order)


class Choice:
    """Weighs the answers of all readers; holds no state of a question, so threads may share it."""

    def __init__(self, trees: Trees, rivals: RivalReader) -> None:
        self.trees, self.rivals = trees, rivals
        self._used = [FEATURES.index(name) for name in trees.features]

    @classmethod
    def load(cls, folder: Path | None = None, *, runtime: Runtime = "auto", threads: int = 1) -> "Choice":
        """The packaged weights, or those of a folder; ModelError for damaged or foreign files."""
        folder = folder or WEIGHTS
        read_card(folder, ROLE).check(folder)
        trees = Trees.read(folder / TREES)
        unknown = [name for name in trees.features if name not in FEATURES]
        if unknown:
            raise ModelError(f"{folder}: was trained on {unknown[0]!r}, which this version lacks; train it again")
        return cls(trees, RivalReader(find_base_model(), folder / RIVALS_FILE, runtime=runtime, threads=threads))

    def chances(self, question: str, evidence: Evidence, candidates: Sequence[Candidate]) -> list[float]:
        """How likely each answer is right (A)."""
        if not candidates:
            return []
        odds = self.rivals.read(question, [one.rival for one in candidates[:RIVALS]])
        features = choice_features(question, evidence, candidates)
        add_read(features, odds)
        return [float(chance) for chance in self.trees.probabilities(features[:, self._used])]


def choice_features(question: str, evidence: Evidence, candidates: Sequence[Candidate]) -> FloatArray:
    """What is known of each answer but for `READ`: float32 (A, len(FEATURES)); there is evidence."""
    common = [*_of_evidence(question, evidence), *_of_question(question)]
    asked, ranks = set(terms_of(question)), _ranks(evidence)
    firsts = {
        reading: max((one.odds_of(reading) for one in candidates if reading in one.by), default=SILENT)
        for reading in Reading
    }
    own = np.array([one.odds for one in candidates])
    rows = []
    for at, candidate in enumerate(candidates):
        of_readers: list[float] = []
        for reading in Reading:
            place, odds = candidate.place_of(reading), candidate.odds_of(reading)
            of_readers += [odds, place, odds - firsts[reading], firsts[reading]]
        text, cited = candidate.text, candidate.surest.answer.citations
        terms = terms_of(text)
        rows.append([
            *of_readers, len(candidate.by), sum(place == 0 for place, _ in candidate.by.values()), own[at],
            own[at] - max(np.delete(own, at), default=SILENT), *(0.0 for _ in READ),
            len(terms), len(text), any(map(str.isdigit, text)), text.lstrip("$€£¥ ")[:1].isdigit(),
            sum(term in asked for term in terms) / max(1, len(terms)), text[:1].isupper(),
            any(said.computed for _, said in candidate.by.values()),
            max(said.unread for _, said in candidate.by.values()),
            sum(said.reference for _, said in candidate.by.values()),
            min((ranks.get(_place(one), LAST_RANK) for one in cited), default=LAST_RANK), len(cited), *common,
        ])  # fmt: skip
    return np.array(rows, np.float32).reshape(len(candidates), len(FEATURES))


def add_read(features: FloatArray, odds: FloatArray) -> None:
    """Put in what the reader of rivals says (`READ`): log-odds of the first answers; the others get the least."""
    read = np.append(odds, np.full(len(features) - len(odds), odds.min() if len(odds) else 0.0))
    first = FEATURES.index(READ[0])
    features[:, first] = read
    features[:, first + 1] = read - np.logaddexp.reduce(np.append(odds, 0.0))
    features[:, first + 2] = [own - max(np.delete(read, at), default=SILENT) for at, own in enumerate(read)]


def _of_evidence(question: str, evidence: Evidence) -> list[float]:
    best = evidence.edges[0]
    return [
        max((link.score for link in best.links), default=0.0), log_odds(best.probability), log_odds(evidence.present),
        float(best.segment is not None and best.passage is not None), float(recognise(question) not in ("en", "")),
    ]  # fmt: skip


def _of_question(question: str) -> list[float]:
    asked, wording = ask_in_any_language(question), wording_of(question)
    cues = (float(wording.has(cue)) for cue in CUES)
    words, code = len(question.split()), float(_CODE.search(question) is not None)
    return [KINDS.index(asked.kind), *cues, float(wording.orders), len(wording.comparisons), words, code]


LAST_RANK = 60
"""Rank of what no edge holds."""


def _ranks(evidence: Evidence) -> dict[object, int]:
    """The best rank of each node."""
    found: dict[object, int] = {}
    for edge in evidence.edges:
        if edge.segment is not None:
            found.setdefault(edge.segment.segment_id, edge.rank)
        if edge.passage is not None:
            found.setdefault(edge.passage.passage_id, edge.rank)
    return found


def _place(citation: Citation) -> object:
    return citation.segment_id or citation.passage_id
