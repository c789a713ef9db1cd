"""What can be seen of a query that was written without a language model: what of the question it used, what else the
question may mean, how its words met the names of the source, the shape of the plan, and what came back.

Features are plain numbers by name. `helios.routing.formulation.confidence` turns them into a chance; the names never
change their meaning without another model.
"""

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from helios.executors.base import ResultSet
from helios.routing.formulation.cues import Cue
from helios.routing.formulation.plan import Aggregate, Operator, Plan
from helios.routing.formulation.words import FUNCTION_WORDS

if TYPE_CHECKING:
    from helios.routing.formulation.generator import Reading
    from helios.routing.formulation.graph_plan import GraphPlan
    from helios.routing.formulation.graph_reading import GraphReading
    from helios.routing.formulation.pieces import Piece

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
PRESENT = (
    "recorded", "registered", "listed", "stored", "saved", "kept", "entered", "held", "included", "contained", "found",
    "shown", "known", "mentioned", "documented", "tracked", "logged", "filed", "existing", "available", "altogether",
    "overall", "whole", "current", "currently",
)  # fmt: skip
"""Words that say of rows only that they are there."""
GENERAL = ("value", "information", "detail", "kind", "type", "record", "entry", "result", "thing", "data", "item")
"""What is asked for by these is said by the words after them."""
ONE = re.compile(
    r"^(how (many|much)\b|count\b|(what|which) (is|was) (the )?(total|average|number|maximum|minimum))", re.I
)
"""Questions for one number, unless it is one for each of something."""
WHEN = re.compile(r"when\b|(on |in |at )?(what|which) (dates?|days?|years?|months?|times?)\b", re.I)
TIMES = re.compile(
    r"\b(1[5-9]|20|21)\d\d|\d[:h.]\d\d|\d[./-]\d+[./-]\d|\b(mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", re.I,
)  # fmt: skip
"""What a question of a time is answered by."""
EACH = re.compile(r"\b(each|every|per|for all|by)\b", re.I)
COUNTING = re.compile(r"\bhow many\b|\bnumbers? of\b|\bcounts?\b", re.I)

OPERATIONS = (
    Cue.COUNT, Cue.AGGREGATE, Cue.SUPERLATIVE, Cue.COMMON, Cue.COMPARE, Cue.NOT, Cue.EACH, Cue.ORDER, Cue.OR, Cue.BOTH,
    Cue.LIKE,
)  # fmt: skip
"""Cues that a plan must act on."""

TABLE_FEATURES = (
    "unread", "unread light", "beyond", "share read", "loose", "unmet", "far",
    "weakest", "mean link", "partial links", "values in part", "ambiguous values",
    "rank", "rivals close", "gap", "readings",
    "tables", "unnamed tables", "conditions", "or", "group", "having", "order", "limit", "set", "distinct",
    "inner", "columns", "guessed columns", "mentions unused", "words", "unselected",
    "no rows", "one row", "rows", "nulls", "repeated", "tie", "number wanted", "list for one", "cut",
    "each without group", "sparql", "other joins", "operations", "clauses", "names unread",
)  # fmt: skip
ASKED_FEATURES = ("asked unread", "echo", "no date", "all counted")
"""Features of plans over tables that no one meant: nothing was made of what is asked for, the answer says again what
the question says, a time is asked for and none is given, or all rows are counted though a word says which. Too rare to
be learned: see `confidence.LACKING`."""
GRAPH_FEATURES = (
    "unread", "share read", "guesses", "dropped", "hops", "conditions", "absent", "limit without order", "tie",
    "group", "aggregate", "list", "list whole", "list same", "order", "several hops", "several conditions", "having",
    "words", "values", "columns", "no rows", "one row", "rows", "nulls", "repeated", "each without group",
    "number wanted", "distinct said", "beyond", "cut",
)  # fmt: skip


def table_features(
    question: str, reading: "Reading", result: ResultSet, *, rank: int, scores: Sequence[float], tie: bool, sparql: bool
) -> dict[str, float]:
    """Of one reading over tables; `scores` are those of all readings, best first."""
    plan, pieces = reading.plan, reading.pieces
    content = [p for p in pieces if p.cue not in (Cue.COMMA, Cue.END) and p.text.lower() not in FUNCTION_WORDS]
    unread = [word for word in reading.unread if word not in BEYOND]
    light = [word for word in unread if word in LIGHT_VERBS or word.endswith(("ed", "ing", "en"))]
    links = [max(p.links, key=lambda link: link.score) for p in pieces if p.links]
    named = {table for p in pieces for table in p.tables} | {k.table for p in pieces for k in p.values}
    columns = {link.table for p in pieces for link in p.columns[:1]}
    own = scores[rank]
    others = [score for i, score in enumerate(scores) if i != rank]
    gap = own - max(others) if others else 1.0
    conditions = [condition for some in plan.where for condition in some]
    values = [p for p in pieces if p.cue == Cue.VALUE]
    asked = [p for p in pieces if p.cue == Cue.COLUMN]
    return {
        "unread": _few(len(unread) - len(light)), "unread light": _few(len(light)),
        "beyond": float(any(word in BEYOND for word in reading.unread)),
        "share read": 1.0 - len(reading.unread) / max(1, len(content)),
        "loose": _few(len(reading.loose)), "unmet": _few(len(reading.unmet)), "far": float(min(2, reading.far)),
        "weakest": reading.settled.weakest,
        "mean link": sum(link.score for link in links) / len(links) if links else 0.0,
        "partial links": _few(sum(not link.whole for link in links)),
        "values in part": float(any(not p.values for p in values)),
        "ambiguous values": float(any(len({k.column for k in p.values}) > 1 for p in values)),
        "rank": float(rank), "rivals close": _few(sum(score > own - 0.1 for score in others)),
        "gap": max(-0.5, min(0.5, gap)), "readings": math.log1p(len(scores)),
        "tables": _few(len(plan.tables) - 1), "unnamed tables": _few(len(set(plan.tables) - named - columns)),
        "conditions": _few(len(conditions)), "or": float(any(len(some) > 1 for some in plan.where)),
        "group": float(bool(plan.group or plan.each)), "having": float(bool(plan.having)),
        "order": float(bool(plan.order)),
        "limit": float(plan.limit is not None), "set": float(plan.combined is not None),
        "distinct": float(plan.distinct), "inner": float(any(condition.query for condition in conditions)),
        "columns": _few(len(plan.select)),
        "guessed columns": _few(max(0, len(plan.select) - len(asked) - any(t.aggregate for t in plan.select))),
        "mentions unused": _few(len({t for p in pieces for t in p.tables[:1]} - set(_tables(plan)))),
        "words": min(25, len(content)) / 10, "unselected": _few(max(0, len(asked) - _columns_used(plan))),
        "operations": _few(sum(p.cue in OPERATIONS for p in pieces)),
        "clauses": _few(sum(p.cue in (Cue.AND, Cue.COMMA, Cue.RELATIVE) for p in pieces)),
        "names unread": float(any(re.search(rf"(?<!^)\b{re.escape(w.title())}\b", question) for w in reading.unread)),
        "asked unread": float(_asks_for_unread(pieces)), "echo": float(_echoes(plan)),
        "all counted": float(_counts_all(plan) and any(word not in (*LIGHT_VERBS, *PRESENT) for word in unread)),
        "no date": float(WHEN.match(question.strip()) is not None and not _has_dates(result)),
        "tie": float(tie), "sparql": float(sparql), "other joins": _few(reading.other_joins),
        "each without group": float(any(p.cue == Cue.EACH for p in pieces) and not (plan.group or plan.each)),
        **_outcome(question, result, counts=any(t.aggregate == Aggregate.COUNT for t in plan.select)),
        "list for one": float(plan.limit is None and len(result) > 1 and _singular(pieces)),
    }  # fmt: skip


def _asks_for_unread(pieces: Sequence["Piece"]) -> bool:
    """Whether what a question asks for first is named by words that nothing was made of: "how many dogs", where no name
    of the source and no value has to do with dogs. Words before a name that was read only say more of it."""
    begun = False
    for piece in pieces:
        said = piece.text.lower() not in FUNCTION_WORDS
        if piece.cue == Cue.WORD and said:
            if not begun and piece.text.lower().removesuffix("s") in (*LIGHT_VERBS, *GENERAL):
                return False
            begun = True
        elif begun:
            return not piece.links
        elif piece.links or piece.cue in (Cue.VALUE, Cue.NUMBER):
            return False
    return begun


def _echoes(plan: Plan) -> bool:
    """Whether a plan gives nothing but what its conditions say: the name of the member called Ann."""
    said = {
        some[0].term.column for some in plan.where
        if len(some) == 1 and some[0].operator is Operator.EQ and some[0].query is None
    }  # fmt: skip
    return bool(plan.select) and all(term.aggregate is None and term.column in said for term in plan.select)


def _counts_all(plan: Plan) -> bool:
    """Whether a plan counts every row of its tables."""
    counted = all(term.aggregate is Aggregate.COUNT and term.column is None for term in plan.select)
    return counted and bool(plan.select) and not (plan.where or plan.group or plan.having or plan.combined or plan.each)


def _has_dates(result: ResultSet) -> bool:
    """Whether the first rows hold a date, a year or a time."""
    return any(TIMES.search(str(value)) is not None for row in result.rows[:5] for value in row)


def graph_features(
    question: str, reading: "GraphReading", plan: "GraphPlan", result: ResultSet | None, *, tie: bool
) -> dict[str, float]:
    """Of one reading over a property graph; `result` is None where the query does not run."""
    kind = reading.shape.split()[0]
    unread = reading.unread()
    counts = any(item.aggregate == "count" for item in plan.select)
    words = [mention.word for mention in reading.row]
    outcome = _outcome(question, result or ResultSet((), ()), counts=counts)
    return {
        "unread": _few(len(unread)), "share read": 1.0 - len(unread) / max(1, len(reading.row)),
        "guesses": _few(reading.builder.guesses), "dropped": _few(reading.dropped), "hops": _few(len(plan.hops)),
        "conditions": _few(len(plan.conditions)), "absent": float(bool(plan.absent)),
        "limit without order": float(plan.limit is not None and plan.order is None), "tie": float(tie),
        "group": float(kind == "group"), "aggregate": float(kind == "aggregate"),
        "list": float(reading.shape == "list"), "list whole": float(reading.shape == "list whole"),
        "list same": float(reading.shape == "list same"), "order": float(kind == "order"),
        "several hops": float(len(plan.hops) > 1), "several conditions": float(len(plan.conditions) > 1),
        "having": float(bool(plan.having)), "words": min(25, len(reading.row)) / 10,
        "values": _few(sum(mention.kind == "value" for mention in reading.row)), "columns": _few(len(plan.select)),
        "distinct said": float(any(word in ("distinct", "unique", "different") for word in words)),
        "beyond": float(any(word in BEYOND for word in words)),
        "each without group": float(any(word in ("each", "per", "every") for word in words) and kind != "group"),
        **outcome,
    }  # fmt: skip


def _outcome(question: str, result: ResultSet, *, counts: bool) -> dict[str, float]:
    """What came back, against what was asked for."""
    cells = [value for row in result.rows[:200] for value in row]
    keys = [repr(row) for row in result.rows[:200]]
    one = ONE.search(question.strip()) is not None and EACH.search(question) is None
    return {
        "no rows": float(not result.rows), "one row": float(len(result) == 1),
        "rows": math.log10(1 + len(result)), "cut": float(result.truncated is not None),
        "nulls": sum(value is None or value == "" for value in cells) / max(1, len(cells)),
        "repeated": 1.0 - len(set(keys)) / len(keys) if keys else 0.0,
        "number wanted": float((one and len(result) != 1) or (COUNTING.search(question) is not None and not counts)),
    }  # fmt: skip


def _few(count: int) -> float:
    """A count whose first steps say the most."""
    return math.log2(1 + max(0, count))


def _tables(plan: Plan) -> list[str]:
    """The tables of a plan and of the plans inside it."""
    inner = [c.query for some in plan.where for c in some if c.query is not None]
    inner += [plan.combined[1]] if plan.combined is not None else []
    return [*plan.tables, *(table for query in inner for table in _tables(query))]


def _columns_used(plan: Plan) -> int:
    """How many distinct columns a plan names."""
    terms = [*plan.select, *(order.term for order in plan.order), *(condition.term for condition in plan.having)]
    used = {term.column for term in terms if term.column is not None} | set(plan.group)
    for some in plan.where:
        for condition in some:
            used |= {condition.term.column} if condition.term.column is not None else set()
            if condition.operator in (Operator.IN, Operator.NOT_IN) and condition.query is not None:
                used |= {term.column for term in condition.query.select if term.column is not None}
    return len(used)


def _singular(pieces: Sequence[object]) -> bool:
    """Whether the first name of a table or a column is in the singular, as where one thing is asked for."""
    from helios.routing.formulation.pieces import Piece
    from helios.routing.formulation.words import lemma

    for piece in pieces:
        if isinstance(piece, Piece) and piece.cue in (Cue.TABLE, Cue.COLUMN):
            last = piece.text.split()[-1]
            return lemma(last) == last.lower()
    return False
