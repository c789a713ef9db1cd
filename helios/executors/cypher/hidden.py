"""What may be seen of a graph behind a server: conditions on every path of a query, and no way to a hidden property.

A graph on this machine is copied without what may not be seen; a server is asked only for the rest. Names are patterns
as in `helios.executors.cypher.seen`. Of a path all nodes and relationships must be such as may be seen, so a hidden one
neither matches nor is counted. A property that is hidden on some labels only is null there. What a query could turn a
whole node into (a map, a text) is refused; nodes that a result holds lose their hidden properties in the worker.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from helios.errors import QueryRejected, SourceUnavailable
from helios.executors.cypher import syntax as s
from helios.executors.cypher.seen import ANY, fits
from helios.executors.cypher.tokens import name as quoted

OWN = "helios_"
"""How the names begin that are added to a query."""
LABEL, PART = s.Variable(f"{OWN}label"), s.Variable(f"{OWN}part")
PASSING = frozenset(
    ("coalesce", "collect", "endnode", "head", "last", "max", "min", "nodes", "nullif", "relationships", "reverse",
     "startnode", "tail")
)  # fmt: skip
"""Functions that may give back a node that they are given."""
TELLING = frozenset(("count", "elementid", "exists", "id", "isempty", "labels", "length", "size", "type"))
"""Functions that tell something else of a node than its properties."""
COMPARING = frozenset(("=", "<>", "IN", "AND", "OR", "XOR"))


@dataclass(frozen=True, slots=True)
class HiddenGraph:
    """Patterns of what is hidden, and of the labels and types that alone are seen (none: all)."""

    exclude: tuple[str, ...]
    labels: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

    def restricted(self, query: s.Query) -> s.Query:
        """The query over what may be seen; QueryRejected for what could reach the rest."""
        parts = list(s.walk(query))
        for part in parts:
            self._check(part)
        if self._properties:
            names = _Names.of(parts)
            for part in parts:
                self._check_property(part, names)
            query = _rebuilt(query, lambda part: self._guarded(part, names) if isinstance(part, s.Property) else part)
        restricted: s.Query = _rebuilt(query, _Paths(self).told)
        return restricted

    def node(self, node: s.Expression) -> list[s.Expression]:
        """The conditions under which a node may be seen."""
        labels = s.Call("labels", (node,))
        conditions: list[s.Expression] = []
        if self._owners:
            conditions.append(s.Quantifier("none", LABEL.name, labels, _matches(LABEL, self._owners)))
        if self.labels:
            conditions.append(s.Quantifier("any", LABEL.name, labels, _matches(LABEL, self.labels)))
        return conditions

    def relationship(self, relationship: s.Expression) -> list[s.Expression]:
        """The conditions under which a relationship between such nodes may be seen."""
        type_ = s.Call("type", (relationship,))
        conditions: list[s.Expression] = []
        if self._owners:
            conditions.append(s.Unary("NOT", _matches(type_, self._owners)))
        if self.types:
            conditions.append(_matches(type_, self.types))
        return conditions

    @property
    def _owners(self) -> tuple[str, ...]:
        return tuple(pattern for pattern in self.exclude if "." not in pattern)

    @property
    def _properties(self) -> tuple[tuple[str, str], ...]:
        """Patterns of a label or type, and of a property."""
        parted = (pattern.partition(".") for pattern in self.exclude if "." in pattern)
        return tuple((owner, name) for owner, _, name in parted)

    def _hidden_on(self, name: str) -> tuple[str, ...]:
        """The patterns of labels and types on which a property is hidden."""
        return tuple(owner for owner, own in self._properties if fnmatchcase(name.casefold(), own.casefold()))

    def _check(self, part: object) -> None:
        match part:
            case s.CallProcedure():
                raise QueryRejected("where `access` is set, a query may call no procedure", PROCEDURE)
            case s.Path(search=str(search)):
                raise QueryRejected("where `access` is set, write shortestPath((a)-[*]-(b))", search)
            case s.Projection(star=True):
                raise QueryRejected("where `access` is set, a query names what it returns", "*")
            case s.Variable(name=name) | s.Node(variable=name) if name is not None and name.startswith(OWN):
                raise QueryRejected(f"names that begin with {OWN} are kept", name)

    def _check_property(self, part: object, names: "_Names") -> None:
        """QueryRejected for what could give a whole node away, or compares a hidden property in a pattern."""
        match part:
            case s.Node(properties=s.Parameter()) | s.Relationship(properties=s.Parameter()):
                raise QueryRejected(f"{SOME_HIDDEN}, so a pattern names each property", "$")
            case s.Node(properties=s.MapOf(items=items)) | s.Relationship(properties=s.MapOf(items=items)):
                for name, _ in items:
                    if self._hidden_on(name):
                        raise QueryRejected(f"{SOME_HIDDEN}: write it as a condition in WHERE", name)
            case s.MapProjection(all=True):
                raise QueryRejected(f"{SOME_HIDDEN}: name each", ".*")
            case s.Index(at=s.Constant(value=int())) | s.Index(at=s.Unary(operand=s.Constant(value=int()))):
                pass
            case s.Index(at=s.Constant(value=str(name))) if not self._hidden_on(name):
                pass
            case s.Index():
                raise QueryRejected(f"{SOME_HIDDEN}, so what stands in brackets is a plain number or name", "[…]")
            case s.Call(name="keys" | "properties"):
                raise QueryRejected(f"{SOME_HIDDEN}: name each", part.name)
            case s.Call() if part.name not in PASSING | TELLING and any(map(names.carries, part.arguments)):
                raise QueryRejected(f"{SOME_HIDDEN}, so this function takes no whole node", part.name)
            case s.Binary() if part.operator not in COMPARING and (
                names.carries(part.left) or names.carries(part.right)
            ):
                raise QueryRejected(f"{SOME_HIDDEN}, so this operator takes no whole node", part.operator)

    def _guarded(self, part: s.Property, names: "_Names") -> s.Expression:
        """A property that is null where it is hidden."""
        owners = self._hidden_on(part.name)
        if not owners:
            return part
        variable = part.of.name if isinstance(part.of, s.Variable) else ""
        own = names.nodes.get(variable) if variable not in names.others else None
        if own is not None and not any(fits(label, owners) for label in own) and "*" not in owners:
            test: s.Expression = s.Quantifier("any", LABEL.name, s.Call("labels", (part.of,)), _matches(LABEL, owners))
            return s.Case(None, ((test, s.Constant(None)),), part)
        types = names.relationships.get(variable) if variable not in names.others else None
        if types is not None and not any(fits(type_, owners) for type_ in types) and "*" not in owners:
            return s.Case(None, ((_matches(s.Call("type", (part.of,)), owners), s.Constant(None)),), part)
        raise QueryRejected("this property may not be seen here", part.name)


def hidden_graph(seen: Mapping[str, Sequence[str]], labels: Sequence[str], types: Sequence[str]) -> HiddenGraph:
    """From the patterns of a registration and the names of a graph; SourceUnavailable for one that fits nothing."""
    include, exclude = tuple(seen.get("include", ())), tuple(seen.get("exclude", ()))
    for pattern in (*include, *exclude):
        owner = pattern.partition(".")[0]
        free = pattern in exclude and any(sign in owner for sign in ANY)
        if not free and not any(fits(name, (owner,)) for name in (*labels, *types)):
            raise SourceUnavailable(f"access: there is no label or relationship type {owner!r} in the graph")
    shown_labels, shown_types = (
        tuple(pattern for pattern in include if any(fits(name, (pattern,)) for name in names))
        for names in (labels, types)
    )
    return HiddenGraph(exclude, shown_labels, shown_types)


def occurrences(pattern: str, labels: Sequence[str], types: Sequence[str]) -> list[str]:
    """Queries, one of which gives a row where the graph has the property `$name`, told by a pattern of access.

    None for a pattern of labels and types, or one with `*` or `?`.
    """
    owner, _, name = pattern.partition(".")
    if not name or any(sign in pattern for sign in ANY):
        return []
    nodes, relationships = ([quoted(one) for one in names if fits(one, (owner,))] for names in (labels, types))
    matches = [f"MATCH (n:{label})" for label in nodes] + [f"MATCH ()-[n:{type_}]->()" for type_ in relationships]
    return [
        f"{match} WHERE any(key IN keys(n) WHERE toLower(key) = $name) RETURN 1 AS one LIMIT 1" for match in matches
    ]


PROCEDURE = "CALL"
MAPPED = "{}"
"""Stands among the names that carry nodes where a map of the query holds one."""
SOME_HIDDEN = "some properties may not be seen"


@dataclass(frozen=True, slots=True)
class _Names:
    """What the variables of a query stand for, told by their names alone, wherever they are bound."""

    nodes: dict[str, set[str]]
    """Labels that a pattern gives a node."""
    relationships: dict[str, set[str]]
    others: set[str]
    """Names that are bound in another way too."""
    carrying: set[str]
    """Names that may hold a whole node or relationship, or a list or path of such."""

    @classmethod
    def of(cls, parts: Iterable[object]) -> "_Names":
        """From the parts of a query."""
        parts = list(parts)
        names = cls({}, {}, set(), set())
        for part in parts:
            names._bind(part)
        names.carrying.update(names.nodes, names.relationships)
        while True:
            before = len(names.carrying)
            for part in parts:
                names._pass_on(part)
            if len(names.carrying) == before:
                return names

    def carries(self, value: s.Expression | None) -> bool:
        """Whether a value may hold a whole node; a text or number that is made of one does not get so far."""
        match value:
            case s.Variable():
                return value.name in self.carrying
            case s.Property():  # what a node has is plain; what a map has may be a node
                return MAPPED in self.carrying and self.carries(value.of)
            case s.Index() | s.Slice():
                return self.carries(value.of)
            case s.ListOf():
                return any(map(self.carries, value.items))
            case s.MapOf() | s.MapProjection():
                return any(self.carries(item) for _, item in value.items)
            case s.Call():
                return value.name in PASSING and any(map(self.carries, value.arguments))
            case s.Case():
                results = [result for _, result in value.branches]
                return any(map(self.carries, [*results, value.otherwise]))
            case s.ListComprehension():
                return self.carries(value.items if value.result is None else value.result)
            case s.PatternComprehension():
                return self.carries(value.result)
            case s.Reduce():
                return self.carries(value.start) or self.carries(value.step)
            case s.Subquery():
                return value.kind == "COLLECT"
            case s.Binary():
                return self.carries(value.left) or self.carries(value.right)
        return False

    def _bind(self, part: object) -> None:
        match part:
            case s.Node(variable=str(name)):
                self.nodes.setdefault(name, set()).update(_plain(part.labels))
            case s.Relationship(variable=str(name), hops=None):
                self.relationships.setdefault(name, set()).update(_plain(part.types))
            case s.Relationship(variable=str(name)) | s.Path(variable=str(name)):
                self.others.add(name)
                self.carrying.add(name)
            case s.Group():
                inner: list[s.Node | s.Relationship] = [*part.path.nodes, *part.path.plain]
                self.others.update(one.variable for one in inner if one.variable is not None)
            case s.Item(alias=str(name)) if part.expression != s.Variable(name):
                self.others.add(name)
            case s.Unwind(variable=name) | s.ListComprehension(variable=name) | s.Quantifier(variable=name):
                self.others.add(name)
            case s.Reduce():
                self.others.update((part.variable, part.accumulator))

    def _pass_on(self, part: object) -> None:
        match part:
            case s.MapOf() | s.MapProjection() if self.carries(part):
                self.carrying.add(MAPPED)
            case s.Item(alias=str(name)) if self.carries(part.expression):
                self.carrying.add(name)
            case s.Unwind(variable=name) | s.ListComprehension(variable=name) | s.Quantifier(variable=name):
                self.carrying.update([name] if self.carries(part.items) else [])
            case s.Reduce():
                self.carrying.update([part.variable] if self.carries(part.items) else [])
                self.carrying.update([part.accumulator] if self.carries(part) else [])


class _Paths:
    """Says of each path of a query what its nodes and relationships must be, by names that it gives them."""

    def __init__(self, hidden: HiddenGraph) -> None:
        self._hidden = hidden
        self._count = 0

    def told(self, part: Any) -> Any:
        """A MATCH or a comprehension of a pattern with these conditions, anything else as it is."""
        match part:
            case s.Match():
                paths = tuple(map(self._named, part.paths))
                return replace(part, paths=paths, where=_all([part.where, *map(self._condition, paths)]))
            case s.PatternComprehension():
                path = self._named(part.path)
                return replace(part, path=path, where=_all([part.where, self._condition(path)]))
        return part

    def _named(self, path: s.Path) -> s.Path:
        """A path with a name for each part of it; for itself where parts of it are repeated."""
        if _is_chain(path):
            nodes, steps = (tuple(map(self._called, parts)) for parts in (path.nodes, path.relationships))
            return replace(path, nodes=nodes, relationships=steps)
        whole: s.Path = self._called(path)
        return whole

    def _called(self, part: Any) -> Any:
        if part.variable is not None:
            return part
        self._count += 1
        return replace(part, variable=f"{OWN}{self._count}")

    def _condition(self, path: s.Path) -> s.Expression | None:
        nodes, relationships = _parts_of(path)
        found = [_each(nodes, self._hidden.node(PART))]
        if path.relationships:
            found.append(_each(relationships, self._hidden.relationship(PART)))
        return _all(found)


def _is_chain(path: s.Path) -> bool:
    return all(isinstance(step, s.Relationship) and step.hops is None for step in path.relationships)


def _parts_of(path: s.Path) -> tuple[s.Expression, s.Expression]:
    """Lists of the nodes and of the relationships of a path that has been named."""
    if not _is_chain(path):
        whole = s.Variable(str(path.variable))
        return s.Call("nodes", (whole,)), s.Call("relationships", (whole,))
    nodes = s.ListOf(tuple(s.Variable(str(node.variable)) for node in path.nodes))
    return nodes, s.ListOf(tuple(s.Variable(str(step.variable)) for step in path.plain))


def _each(parts: s.Expression, conditions: Iterable[s.Expression]) -> s.Expression | None:
    """That all parts fulfil the conditions, if there are any."""
    condition = _all(conditions)
    return None if condition is None else s.Quantifier("all", PART.name, parts, condition)


def _matches(text: s.Expression, patterns: Iterable[str]) -> s.Expression:
    """Whether a text fits a pattern, without capitals told apart, in the regular expressions of the server (Java's)."""
    signs = {"*": ".*", "?": "."}
    written = "|".join("".join(signs.get(sign, re.escape(sign)) for sign in pattern) for pattern in patterns)
    return s.Binary("=~", text, s.Constant(f"(?ius)({written})"))


def _all(conditions: Iterable[s.Expression | None]) -> s.Expression | None:
    joined: s.Expression | None = None
    for condition in conditions:
        if condition is not None:
            joined = condition if joined is None else s.Binary("AND", joined, condition)
    return joined


def _plain(labels: s.Labels | None) -> set[str]:
    """The names in an expression of labels, those that it excludes too."""
    return {part.name for part in s.walk(labels) if isinstance(part, s.LabelName)}


def _rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    """A part of the syntax whose parts are changed, the innermost first, and which is changed itself."""
    if isinstance(value, tuple):
        return tuple(_rebuilt(part, change) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        return change(replace(value, **{one.name: _rebuilt(getattr(value, one.name), change) for one in fields(value)}))
    return value
