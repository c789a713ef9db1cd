"""Questions to SQL without a language model, for the simple shapes; it answers only where it is sure enough.

tokens → links to tables, columns and values → pieces → a draft → columns settled in several ways → plans → SQL,
each executed, the best kept. Knows nothing of any domain: words of operators come from English, all others from the
schema and the data.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from threading import Lock

from helios.errors import SourceError
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.routing.formulation.abbreviations import spelt_out
from helios.routing.formulation.arithmetic import computed
from helios.routing.formulation.asking import requested
from helios.routing.formulation.base import Candidate
from helios.routing.formulation.confidence import shipped
from helios.routing.formulation.cues import Cue
from helios.routing.formulation.dates import with_dates
from helios.routing.formulation.differences import Said, asks_for_two, halves, set_apart
from helios.routing.formulation.doubt import far_values, undated, unmet_cues, unplaced, unsaid
from helios.routing.formulation.draft import Draft
from helios.routing.formulation.features import table_features
from helios.routing.formulation.linking import (
    Link,
    distribute,
    link_codes,
    link_flags,
    link_schema,
    link_sexes,
    link_undone,
    link_values,
    without_roles,
)
from helios.routing.formulation.measures import measured
from helios.routing.formulation.periods import with_periods
from helios.routing.formulation.pieces import Piece, cut
from helios.routing.formulation.plan import NULL_TESTS, Computed, Condition, Operator, Plan, PlanError, Term
from helios.routing.formulation.planning import make_plan
from helios.routing.formulation.rates import with_rates
from helios.routing.formulation.reading import read
from helios.routing.formulation.rephrasing import rephrased
from helios.routing.formulation.schema import SchemaView
from helios.routing.formulation.settling import Settled, settle
from helios.routing.formulation.shares import with_shares
from helios.routing.formulation.sql import LIKE, render
from helios.routing.formulation.states import with_states
from helios.routing.formulation.words import FUNCTION_WORDS, Token, tokenise
from helios.routing.phrases import is_statement
from helios.sources.base import Source, ValueHit
from helios.sources.descriptor import RelationalSchema

log = logging.getLogger(__name__)

THRESHOLD = 0.65
"""Confidence from which a query is worth an answer: one content word that names nothing is already too much."""
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
    pieces: tuple[Piece, ...] = ()
    """The question as it was cut."""
    other_joins: int = 0
    """Joins in whose place the same two tables have others: from which harbour, or to which."""


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
        if not isinstance(schema, RelationalSchema):
            return []
        readings = read_question(question, self._view(source, schema), source.find_values)
        return tried(
            question,
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
    question: str,
    readings: Sequence[Reading],
    write: Callable[[Plan], NativeQuery],
    execute: Callable[[NativeQuery], ResultSet],
    *,
    sparql: bool = False,
) -> list[Candidate]:
    """The best readings as queries that run, the surest first."""
    candidates: dict[str, Candidate] = {}
    scores = [reading.settled.score for reading in readings]
    for rank, reading in enumerate(readings[:TRIED]):
        try:
            query = write(reading.plan)
            result = execute(query)
            if (filled := _without_empty(reading.plan, result)) is not None:
                reading = replace(reading, plan=filled)
                query = write(filled)
                result = execute(query)
            tie = _cuts_a_tie(reading.plan, result, write, execute)
        except (SourceError, PlanError) as error:
            log.debug("the plan %s does not run: %s", reading.plan, error)
            continue
        if query.text in candidates:
            continue
        seen = table_features(question, reading, result, rank=rank, scores=scores, tie=tie, sparql=sparql)
        candidates[query.text] = Candidate(query, shipped().tables.of(seen), _explain(reading), seen)
    return sorted(candidates.values(), key=lambda candidate: -candidate.confidence)


def _without_empty(plan: Plan, result: ResultSet) -> Plan | None:
    """A plan of groups or of different values without those that have none; None where all have."""
    listed = (plan.group or (plan.distinct and len(plan.select) == 1)) and not any(term.share for term in plan.select)
    if not listed or plan.combined is not None or plan.each or len(result.columns) != len(plan.select):
        return None
    empty = [
        term.column for at, term in enumerate(plan.select)
        if term.column is not None and term.aggregate is None and any(row[at] is None for row in result.rows)
        and (not plan.group or term.column in plan.group)
    ]  # fmt: skip
    told = {one.term for some in plan.where for one in some if one.operator in NULL_TESTS}
    conditions = [(Condition(Term(column), Operator.NOT_NULL),) for column in empty if Term(column) not in told]
    return plan.with_(where=(*plan.where, *conditions)) if conditions else None


def _cuts_a_tie(
    plan: Plan, result: ResultSet, write: Callable[[Plan], NativeQuery], execute: Callable[[NativeQuery], ResultSet]
) -> bool:
    """Whether the limit leaves out a row that sorts like the last one: then the question has more than one answer."""
    if plan.limit is None or not plan.order or plan.combined is not None or len(result) < plan.limit:
        return False
    keys = tuple(order.term for order in plan.order)
    probe = plan.with_(select=(*plan.select, *keys), limit=plan.limit + 1)
    rows = execute(write(probe)).rows
    return len(rows) > plan.limit and rows[plan.limit - 1][-len(keys) :] == rows[plan.limit][-len(keys) :]


def read_question(
    question: str, schema: SchemaView, find: Callable[[Sequence[str]], Sequence[ValueHit]]
) -> list[Reading]:
    """Plans that a question may mean, best first; none for words that ask nothing."""
    if not asks_for_two(question):
        return _readings(question, schema, find)
    doubted = (replace(one, unmet=(*one.unmet, "difference")) for one in _readings(question, schema, find))
    return _differences(question, schema, find) or list(doubted)


def _differences(
    question: str, schema: SchemaView, find: Callable[[Sequence[str]], Sequence[ValueHit]]
) -> list[Reading]:  # fmt: skip
    """Readings of a question for the difference of two numbers; none where it cannot be divided into two questions."""
    two = halves(question, lambda words: _said(words, schema, find))
    if two is None:
        return []
    operation, *asked = two
    first, second = (_readings(half, schema, find) for half in asked)
    return [
        replace(
            one, plan=plan, loose=(*one.loose, *other.loose), unmet=(*one.unmet, *other.unmet),
            unread=tuple(dict.fromkeys((*one.unread, *other.unread))),
        )
        for one in first[:TRIED] for other in second
        if (plan := set_apart(operation, one.plan, other.plan, schema)) is not None
    ]  # fmt: skip


def _said(words: str, schema: SchemaView, find: Callable[[Sequence[str]], Sequence[ValueHit]]) -> Said:
    schema = spelt_out(schema, tokenise(words))
    tokens = with_dates(tokenise(words), whole=schema.dated)
    return Said(words, tuple((tokens[p.start].start, tokens[p.end - 1].end, p) for p in _pieces(tokens, schema, find)))


def _pieces(
    tokens: Sequence[Token], schema: SchemaView, find: Callable[[Sequence[str]], Sequence[ValueHit]]
) -> list[Piece]:  # fmt: skip
    links = [*link_schema(tokens, schema), *link_values(tokens, find)]
    links += [*link_sexes(tokens, schema, links), *link_codes(tokens, schema, links), *link_undone(tokens, schema)]
    return pieces_of(tokens, without_roles(tokens, schema, link_flags(tokens, schema, links)), schema)


def _readings(
    question: str, schema: SchemaView, find: Callable[[Sequence[str]], Sequence[ValueHit]]
) -> list[Reading]:  # fmt: skip
    schema, fragment = spelt_out(schema, tokenise(question)), is_statement(question)
    request = requested(question, schema.called)
    if request is None:
        return []
    question = request
    money = any(isinstance(one.ref, Computed) for table in schema.tables.values() for one in table.computed)
    tokens = tokenise(rephrased(question, money=money))
    schema = with_periods(schema, question, tokens)
    tokens = distribute(with_dates(tokens, whole=schema.dated), schema)
    draft = read(_pieces(tokens, schema, find))
    unread = tuple(p.text for p in draft.pieces if p.cue == Cue.WORD and p.text not in FUNCTION_WORDS)
    unread = (*unread, *unsaid(draft))
    readings: dict[str, Reading] = {}
    for settled in settle(draft, schema):
        plan = make_plan(draft, settled, schema)
        if plan is not None and fragment and not _orders_or_groups(plan, draft):
            continue
        if plan is not None and str(plan) not in readings and not undated(draft, plan):
            readings[str(plan)] = Reading(
                plan, settled, tuple(unplaced(draft, settled)), unread, tuple(unmet_cues(draft, plan)),
                far_values(draft, settled), tuple(draft.pieces), _other_joins(plan, schema),
            )  # fmt: skip
    return list(readings.values())


def _orders_or_groups(plan: Plan, draft: Draft) -> bool:
    """Whether a plan does what "by", "per" and "with a" say in words without a verb: "orders by status"; and selects
    anything but what its conditions leave one value of."""
    said = [piece.text for piece in draft.pieces]
    met = {one.term.column for some in plan.where for one in some if one.operator not in LIKE}
    if all(term.aggregate is None and term.column in met for term in plan.select):
        return False  # "vehicles bought in 2021" asks for vehicles
    divided = any(text in ("by", "per", "for each", "in each") for text in said)
    meant = bool(plan.group or plan.order) or not divided
    return meant and (bool(plan.where) or not any(a == "with" and b in ("a", "an") for a, b in pairwise(said)))


def pieces_of(tokens: Sequence[Token], links: Sequence[Link], schema: SchemaView) -> list[Piece]:
    """A question cut into pieces, with what no column is named for: rates, sums, percentages, measures and states."""
    pieces = computed(with_shares(with_rates(cut(tokens, links), schema)), schema)
    return with_states(measured(pieces, schema), schema)


def _other_joins(plan: Plan, schema: SchemaView) -> int:
    """How many joins of a plan are one of several between their tables."""
    return sum(
        len({join for join in schema.joins.get(used.left.table, ()) if join.right.table == used.right.table}) > 1
        for used in plan.joins
    )


def _explain(reading: Reading) -> str:
    left = ", ".join([*(p.text for p in reading.loose), *reading.unread, *reading.unmet])
    return f"{reading.plan}" + (f"; not read: {left}" if left else "")
