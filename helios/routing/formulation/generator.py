"""Questions to SQL without a language model, for the simple shapes; it answers only where it is sure enough.

tokens → links to tables, columns and values → pieces → a draft → columns settled in several ways → plans → SQL,
each executed, the best kept. Knows nothing of any domain: words of operators come from English, all others from the
schema and the data.
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

from helios.errors import SourceError
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.routing.formulation.asking import asks_nothing
from helios.routing.formulation.base import Candidate
from helios.routing.formulation.cues import Cue
from helios.routing.formulation.doubt import far_values, unmet_cues, unplaced
from helios.routing.formulation.linking import distribute, link_schema, link_values
from helios.routing.formulation.pieces import Piece, cut
from helios.routing.formulation.plan import Plan
from helios.routing.formulation.planning import make_plan
from helios.routing.formulation.reading import read
from helios.routing.formulation.schema import SchemaView
from helios.routing.formulation.settling import Settled, settle
from helios.routing.formulation.sql import render
from helios.routing.formulation.words import FUNCTION_WORDS, tokenise
from helios.sources.base import Source, ValueHit
from helios.sources.descriptor import RelationalSchema

log = logging.getLogger(__name__)

THRESHOLD = 0.65
"""Confidence from which a query is worth an answer: one content word that names nothing is already too much."""
BEYOND = (
    "percentage", "percent", "proportion", "ratio", "difference", "median", "instead", "respectively", "twice", "half",
    "rank", "growth", "per", "same",
)  # fmt: skip
"""Operations that plans cannot express."""
LIGHT_VERBS = (
    "use", "own", "work", "get", "got", "play", "belong", "correspond", "live", "make", "come", "go", "take", "hold",
    "run", "exist", "appear", "contain", "cause", "lead", "buy", "place", "want", "know", "visit", "manage", "teach",
    "write", "lose", "win", "say", "see", "put", "let", "keep", "old", "ever", "just", "total", "number", "time",
)  # fmt: skip
"""Words that often stand between names and say little of their own."""
TRIED = 3
"""Plans that are executed."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A plan with what speaks against it."""

    plan: Plan
    settled: Settled
    loose: tuple[Piece, ...]
    """Values, numbers and columns that the plan leaves out."""
    unread: tuple[str, ...]
    """Content words that name nothing."""
    unmet: tuple[str, ...] = ()
    """Operations that the question says and the plan lacks."""
    far: int = 0
    """Ordinary words that were taken for values of tables that the question does not name."""


class SqlGenerator:
    """Schema-linked SQL for simple questions; threads may share it."""

    def __init__(self, *, threshold: float = THRESHOLD, limits: Limits | None = None) -> None:
        self.threshold = threshold
        self.limits = limits
        self._schemas: dict[str, tuple[RelationalSchema, SchemaView]] = {}
        self._lock = Lock()

    def formulate(self, question: str, source: Source) -> list[Candidate]:
        """Queries best first; those under `threshold` are guesses that a caller should not answer from."""
        schema = source.descriptor().schema
        if not isinstance(schema, RelationalSchema) or asks_nothing(question):
            return []
        readings = read_question(question, self._view(source, schema), source.find_values)
        return tried(
            readings,
            lambda plan: NativeQuery(Language.SQL, render(plan, schema.dialect)),
            lambda query: source.execute(query, self.limits),
        )

    def _view(self, source: Source, schema: RelationalSchema) -> SchemaView:
        with self._lock:
            known = self._schemas.get(source.name)
            if known is None or (known[0] is not schema and known[0] != schema):
                known = (schema, SchemaView.of(schema))
                self._schemas[source.name] = known
            return known[1]


def tried(
    readings: Sequence[Reading], write: Callable[[Plan], NativeQuery], execute: Callable[[NativeQuery], ResultSet]
) -> list[Candidate]:
    """The best readings as queries that run, with the confidence that the reading and the rows give."""
    candidates: dict[str, Candidate] = {}
    least = 1.0
    for reading in readings[:TRIED]:
        query = write(reading.plan)
        try:
            result = execute(query)
        except SourceError as error:
            log.debug("the plan %s does not run: %s", reading.plan, error)
            continue
        rival = readings[1].settled.score if len(readings) > 1 and reading is readings[0] else None
        least = min(_confidence(reading, result, rival), least)
        if query.text not in candidates:
            candidates[query.text] = Candidate(query, least, _explain(reading))
    return list(candidates.values())


def read_question(
    question: str, schema: SchemaView, find: Callable[[Sequence[str]], Sequence[ValueHit]]
) -> list[Reading]:
    """Plans that a question may mean, best first."""
    tokens = distribute(tokenise(question), schema)
    links = [*link_schema(tokens, schema), *link_values(tokens, find)]
    draft = read(cut(tokens, links))
    unread = tuple(p.text for p in draft.pieces if p.cue == Cue.WORD and p.text not in FUNCTION_WORDS)
    readings: dict[str, Reading] = {}
    for settled in settle(draft, schema):
        plan = make_plan(draft, settled, schema)
        if plan is not None and str(plan) not in readings:
            readings[str(plan)] = Reading(
                plan, settled, tuple(unplaced(draft, settled)), unread, tuple(unmet_cues(draft, plan)),
                far_values(draft, settled),
            )  # fmt: skip
    return list(readings.values())


def _confidence(reading: Reading, result: ResultSet, rival: float | None) -> float:
    """From what was left out, how weak the links are, how close the next reading is, and what came back."""
    plan = reading.plan
    score = 2.2
    score -= 1.6 * len(reading.loose)
    for word in reading.unread:
        score -= 3.0 if word in BEYOND else 0.3 if word in LIGHT_VERBS or word.endswith(("ed", "ing", "en")) else 1.8
    score -= 1.0 * reading.far + 1.5 * len(reading.unmet)
    score -= 2.5 * max(0.0, 0.9 - reading.settled.weakest)
    if rival is not None:
        score -= max(0.0, 0.8 - 4.0 * (reading.settled.score - rival))
    score -= 0.4 * max(0, len(plan.tables) - 2)
    if not result.rows:
        score -= 1.0
    return 1.0 / (1.0 + math.exp(-score))


def _explain(reading: Reading) -> str:
    left = ", ".join([*(p.text for p in reading.loose), *reading.unread, *reading.unmet])
    return f"{reading.plan}" + (f"; not read: {left}" if left else "")
