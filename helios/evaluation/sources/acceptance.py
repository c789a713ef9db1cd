"""What a person would accept beside the strict match: the same answer under another convention of writing it.

Three conventions differ between questions of one meaning, and nothing else is forgiven:

- a node stands for its key, and the key for its node: a title in place of the film, in whichever side has it, or the
  title and the number of the same film in place of one of them. A key is a property whose values tell (nearly) all
  nodes of the label apart. A whole node also stands for several of its properties, and these for it where a key is
  among them: films in place of their titles and years;
- the measure that rows are ordered by may be shown or not, in the answer and in the gold: "the five largest lakes"
  with or without their sizes;
- rows that are equal count once, unless the question counts ("how many", "number of"): DISTINCT or not.

Rows in another order are accepted as the strict match accepts them: where they are not ordered, or tie.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations, islice, permutations, product

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from helios.errors import SourceError
from helios.evaluation.sources.agreement import comparable_row
from helios.evaluation.sources.cypher_order import cypher_order
from helios.evaluation.sources.match import rows_match, value_key
from helios.evaluation.sources.questions import TIES, Row, SourceQuestion
from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.values import GraphNode, Value
from helios.sources.base import Source
from helios.sources.descriptor import GraphSchema

COUNTS = re.compile(r"\bhow (many|often)\b|\bnumbers? of\b|\bcounts?\b|\btimes\b", re.IGNORECASE)
"""Questions in which a row more is another answer."""
DISTINCT_SHARE = 0.95
"""The share of a label's nodes that a key tells apart."""
LIMITS = Limits(timeout=60.0, max_rows=100_000, max_bytes=2**28)
MOST_WAYS = 200
"""Ways to write the rows of a side that are compared; beyond that the rows are not accepted."""
SELECTED = re.compile(r"\bselect\b(?:\s+distinct)?(.*?)\bwhere\b|\bselect\b(?:\s+distinct)?(.*?)\{", re.I | re.S)
VARIABLE = re.compile(r"\(\s*(.*?)\s+as\s+\?(\w+)\s*\)|\?(\w+)", re.I | re.S)
ORDERED = re.compile(r"\border\s+by\b(.*?)(?:\blimit\b|\boffset\b|$)", re.I | re.S)


class NodeKeys:
    """The keys of the nodes of one graph, read when first asked for."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._labels: dict[str, tuple[str, ...]] = {}
        self._nodes: dict[str, dict[str, Mapping[str, Value]]] = {}
        self._paired: dict[str, set[tuple[Hashable, Hashable]]] = {}

    def properties(self, label: str) -> tuple[str, ...]:
        """The properties that tell the nodes of a label apart."""
        if label not in self._labels:
            nodes = self._all(label).values()
            names = dict.fromkeys(name for properties in nodes for name in properties)
            self._labels[label] = tuple(name for name in names if self._is_key(label, name))
        return self._labels[label]

    def value(self, node: GraphNode, name: str) -> Value:
        """A node's value of a property; what a stored answer leaves out is looked up."""
        if name in node.properties:
            return node.properties[name]
        return next((found.get(name) for label in node.labels if (found := self._all(label).get(node.node_id))), None)

    def stored(self, node: GraphNode) -> Mapping[str, Value]:
        """All properties of a node."""
        return next((self._all(label)[node.node_id] for label in node.labels if node.node_id in self._all(label)),
                    node.properties)  # fmt: skip

    def same_nodes(self, one: Sequence[Value], other: Sequence[Value]) -> bool:
        """Whether two columns are two keys of the same nodes, row by row."""
        schema = self.source.descriptor().schema
        if not isinstance(schema, GraphSchema):
            return False
        pairs = {(value_key(a), value_key(b)) for a, b in zip(one, other, strict=True)}
        return any(pairs <= self._pairs(label.name) for label in schema.labels)

    def _pairs(self, label: str) -> set[tuple[Hashable, Hashable]]:
        """The values of every two keys of a label's nodes."""
        if label not in self._paired:
            names = self.properties(label)
            self._paired[label] = {
                (value_key(node.get(one)), value_key(node.get(other)))
                for node in self._all(label).values() for one in names for other in names if one != other
            }  # fmt: skip
        return self._paired[label]

    def _is_key(self, label: str, name: str) -> bool:
        nodes = self._all(label).values()
        values = [value_key(found[name]) for found in nodes if found.get(name) is not None]
        return len(values) == len(nodes) and len(set(values)) >= DISTINCT_SHARE * len(values)

    def _all(self, label: str) -> dict[str, Mapping[str, Value]]:
        if label not in self._nodes:
            schema = self.source.descriptor().schema
            known = isinstance(schema, GraphSchema) and any(label == one.name for one in schema.labels)
            rows: Sequence[Row] = ()
            if known:
                query = NativeQuery(Language.CYPHER, f"MATCH (n:`{label}`) RETURN n")
                try:
                    rows = self.source.execute(query, LIMITS).rows
                except SourceError:
                    rows = ()
            nodes = [row[0] for row in rows]
            self._nodes[label] = {n.node_id: n.properties for n in nodes if isinstance(n, GraphNode)}
        return self._nodes[label]


def accepted(
    question: SourceQuestion, query: NativeQuery, rows: Sequence[Row], gold: Sequence[Row], keys: NodeKeys | None = None
) -> bool:
    """Whether a person would take the rows of a query for the gold rows; what matches strictly is accepted, too."""
    if not rows or not gold or question.gold_count is not None:
        return False
    order = ordered_columns(NativeQuery(question.paradigm, question.gold_query or ""))
    if keys is not None and len(rows) == len(gold):
        rows, gold = _unfolded(rows, gold, keys), _unfolded(gold, rows, keys, named=True)
    found = list(islice(_written(rows, ordered_columns(query), question, keys), MOST_WAYS))
    wanted = list(islice(_written(gold, order, question, keys), MOST_WAYS))
    sort_keys = [tuple(value_key(value) for value in (row[i] for i in order)) for row in _plain(gold, question)]
    return any(
        len(one[0]) == len(other[0]) and _same(question, one, other, sort_keys) for one, other in product(found, wanted)
    )


def _unfolded(rows: Sequence[Row], others: Sequence[Row], keys: NodeKeys, *, named: bool = False) -> Sequence[Row]:
    """Rows of whole nodes as the properties that the other side returns of them; as they are where it returns others.

    With `named` only where a key of the node is among these: an attribute alone does not say which node it is.
    """
    nodes = [row[0] for row in rows if len(row) == 1 and isinstance(row[0], GraphNode)]
    if len(nodes) < len(rows) or any(isinstance(value, GraphNode) for row in others for value in row):
        return rows
    found = [keys.stored(node) for node in nodes]
    names = dict.fromkeys(name for properties in found for name in properties)
    values = {name: Counter(value_key(properties.get(name)) for properties in found) for name in names}
    chosen: list[str] = []
    for place in range(len(others[0])):
        wanted = Counter(value_key(row[place]) for row in others)
        chosen += [name for name in names if name not in chosen and values[name] == wanted][:1]
    kept = {name for label in nodes[0].labels for name in keys.properties(label)}
    if len(chosen) < len(others[0]) or (named and not kept & set(chosen)):
        return rows
    return [tuple(properties.get(name) for name in chosen) for properties in found]


def ordered_columns(query: NativeQuery) -> tuple[int, ...]:
    """The returned columns that a query's rows are ordered by; none where it cannot be read."""
    match query.language:
        case Language.CYPHER:
            order = cypher_order(query.text)
            return order.columns if order is not None else ()
        case Language.SQL:
            return _sql_order(query.text)
        case Language.SPARQL:
            return _sparql_order(query.text)
    return ()


def _sql_order(text: str) -> tuple[int, ...]:
    try:
        tree = sqlglot.parse_one(text, read="sqlite")
    except SqlglotError:
        return ()
    order = tree.args.get("order")
    if not isinstance(tree, exp.Select) or order is None:
        return ()
    selected = [(item.unalias().sql().lower(), item.alias_or_name.lower()) for item in tree.selects]
    terms = [term.this.sql().lower() for term in order.expressions]
    return tuple(i for i, names in enumerate(selected) if any(term in names for term in terms))


def _sparql_order(text: str) -> tuple[int, ...]:
    selected, ordered = SELECTED.search(text), ORDERED.search(text)
    if selected is None or ordered is None:
        return ()
    terms = "".join(ordered[1].split()).lower()
    places = []
    for place, (expression, alias, name) in enumerate(VARIABLE.findall(selected[1] or selected[2])):
        said = re.search(rf"\?{re.escape(alias or name)}\b", ordered[1], re.IGNORECASE) is not None
        if said or (expression and "".join(expression.split()).lower() in terms):
            places.append(place)
    return tuple(places)


def _written(
    rows: Sequence[Row], order: Sequence[int], question: SourceQuestion, keys: NodeKeys | None
) -> Iterator[list[Row]]:
    """The rows with and without each measure, with nodes as they are and as their keys, with all keys and one fewer."""
    width = len(rows[0])
    for left_out in range(min(len(order), width - 1) + 1):
        for gone in combinations(order, left_out):
            kept = [i for i in range(width) if i not in gone]
            ways = [_columns([row[i] for row in rows], keys) for i in kept]
            for columns in product(*ways):
                yield _plain(list(zip(*columns, strict=True)), question)
                for one, other in permutations(range(len(columns)), 2) if keys is not None else ():
                    if keys is not None and keys.same_nodes(columns[one], columns[other]):
                        rest = [column for i, column in enumerate(columns) if i != other]
                        yield _plain(list(zip(*rest, strict=True)), question)


def _columns(column: Sequence[Value], keys: NodeKeys | None) -> list[Sequence[Value]]:
    """A column as it is, and, where it holds nodes of one label, as each of their keys."""
    nodes = [value for value in column if isinstance(value, GraphNode)]
    if keys is None or len(nodes) < len(column) or not nodes:
        return [column]
    labels = [label for label in nodes[0].labels if all(label in node.labels for node in nodes)]
    names = dict.fromkeys(name for label in labels for name in keys.properties(label))
    return [column, *([keys.value(node, name) for node in nodes] for name in names)]


def _plain(rows: Sequence[Row], question: SourceQuestion) -> list[Row]:
    return [comparable_row(row, frozenset(question.flags)) for row in rows]


def _same(
    question: SourceQuestion, found: Sequence[Row], gold: Sequence[Row], sort_keys: Sequence[tuple[Hashable, ...]]
) -> bool:
    """Whether rows are equal, each once where nothing is counted, in the gold's order but for ties."""
    once = COUNTS.search(question.text) is None
    one, other = (_once(found), _once(gold)) if once else (list(found), list(gold))
    if rows_match(one, other, ordered=question.ordered):
        return True
    if TIES not in question.flags or not any(sort_keys):
        return False
    if not rows_match(one, other, ordered=False):
        return False
    sorted_as: dict[tuple[Hashable, ...], Counter[tuple[Hashable, ...]]] = {}
    for row, key in zip(gold, sort_keys, strict=True):
        sorted_as.setdefault(tuple(map(value_key, row)), Counter())[key] += 1
    if len(found) != len(gold):
        return False
    return all(
        sorted_as.get(tuple(map(value_key, row)), Counter())[key] for row, key in zip(found, sort_keys, strict=True)
    )


def _once(rows: Sequence[Row]) -> list[Row]:
    return list({tuple(map(value_key, row)): row for row in reversed(rows)}.values())[::-1]
