"""Whether the rows of an answer agree with a question's gold rows: execution match, and what a data set leaves open.

The rules of `helios.evaluation.sources.match` hold, on values made comparable:

- a node of a property graph is its id, a relationship its type with the ids of its ends, a resource its IRI;
- where the stored answers are text (`UNTYPED`), text that reads as a number is that number, on both sides;
- a list that was collected in no particular order (`UNORDERED_LISTS`) is compared as a multiset;
- where rows may tie (`TIES`), rows in another order still match if the columns that a Cypher query orders by are the
  same at every position: only rows with the same sort key have changed places. Where none of these is returned, one
  column that holds more than one value has to be;
- where only the first rows of a long answer are stored (`gold_count`), an answer has all of them, and as many rows.
"""

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from enum import StrEnum

from helios.evaluation.sources.cypher_order import cypher_order
from helios.evaluation.sources.match import rows_match, value_key
from helios.evaluation.sources.questions import TIES, UNORDERED_LISTS, UNTYPED, Row, SourceQuestion
from helios.executors.base import Language
from helios.executors.values import GraphNode, GraphPath, GraphRelationship, Iri, Literal, Value

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


class Agreement(StrEnum):
    """How rows compare with the gold rows."""

    MATCH = "match"
    TIES = "ties"
    """Not a match, but the rows differ only where the gold query leaves open which of several rows it gives."""
    MISMATCH = "mismatch"


def agreement(question: SourceQuestion, rows: Sequence[Row], gold: Sequence[Row]) -> Agreement:
    """Compare the rows of an answer with the gold rows of a question."""
    flags = frozenset(question.flags)
    found, expected = ([comparable_row(row, flags) for row in side] for side in (rows, gold))
    if question.gold_count is not None:
        whole = len(found) == question.gold_count and _holds(found, expected)
        return Agreement.MATCH if whole else Agreement.MISMATCH
    if rows_match(found, expected, ordered=question.ordered):
        return Agreement.MATCH
    if TIES not in flags:
        return Agreement.MISMATCH
    return _tied(question, found, expected)


def comparable_row(row: Row, flags: frozenset[str]) -> Row:
    """A row whose values `match` compares by what they stand for."""
    return tuple(_comparable(value, flags) for value in row)


def _comparable(value: Value, flags: frozenset[str]) -> Value:
    match value:
        case Iri():
            return value.value
        case Literal():
            return _comparable(value.value, flags)
        case str():
            return _number(value) if UNTYPED in flags and NUMBER.fullmatch(value) else value
        case GraphNode():
            return f"({value.node_id})"
        case GraphRelationship():
            return f"({value.start})-[{value.type}]->({value.end})"
        case GraphPath():
            nodes = [f"({node.node_id})" for node in value.nodes]
            return nodes + [relationship.type for relationship in value.relationships]
        case Mapping():
            return [_comparable(part, flags) for item in sorted(value.items()) for part in item]
        case list() | tuple():
            items = [_comparable(item, flags) for item in value]
            return sorted(items, key=lambda item: repr(value_key(item))) if UNORDERED_LISTS in flags else items
    return value


def _number(text: str) -> Value:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _holds(found: Sequence[Row], part: Sequence[Row]) -> bool:
    """Whether the rows hold all of some stored ones, column by column."""
    rest = Counter(tuple(map(value_key, row)) for row in part) - Counter(tuple(map(value_key, row)) for row in found)
    return not rest


def _tied(question: SourceQuestion, found: Sequence[Row], expected: Sequence[Row]) -> Agreement:
    """Rows that are not the gold rows in their order: the same but for ties, or cut elsewhere among them."""
    if len(found) != len(expected) or not found or len(found[0]) != len(expected[0]):
        return Agreement.MISMATCH
    same = rows_match(found, expected, ordered=False)
    columns, wanted = _columns(found), _columns(expected)
    order = cypher_order(question.gold_query or "") if question.paradigm is Language.CYPHER else None
    if order is not None and order.columns:
        in_order = all(wanted[place] in columns for place in order.columns)
        agrees = in_order and (same or order.limited)
    else:
        kept = [column for column in wanted if column in columns]
        in_order = any(len(set(column)) > 1 for column in kept)
        agrees = same or (order.limited if order is not None else bool(kept))
    if same and in_order:
        return Agreement.MATCH
    return Agreement.TIES if agrees else Agreement.MISMATCH


def _columns(rows: Sequence[Row]) -> list[list[Hashable]]:
    return [[value_key(value) for value in column] for column in zip(*rows, strict=True)]
