"""A checked query as text again: openCypher as Neo4j has it; other dialects override what they write differently."""

from collections.abc import Sequence

from helios.errors import QueryRejected
from helios.executors.cypher import syntax as s
from helios.executors.cypher.functions import FUNCTIONS, PROCEDURES
from helios.executors.cypher.tokens import PLAIN_NAME, name, quoted

RESERVED = frozenset(
    (
        "ADD", "ALL", "ALTER", "AND", "ANY", "AS", "ASC", "ASCENDING", "BY", "CALL", "CASE", "COLLECT", "CONSTRAINT",
        "CONTAINS", "COPY", "COUNT", "CREATE", "CSV", "DELETE", "DESC", "DESCENDING", "DETACH", "DISTINCT", "DO",
        "DROP", "ELSE", "END", "ENDS", "EXISTS", "EXPLAIN", "EXPORT", "EXTRACT", "FALSE", "FILTER", "FINISH", "FOR",
        "FOREACH", "FROM", "IMPORT", "IN", "INDEX", "INSERT", "IS", "LET", "LIMIT", "LOAD", "MANDATORY", "MATCH",
        "MERGE", "NODETACH", "NONE", "NOT", "NULL", "OF", "OFFSET", "ON", "OPTIONAL", "OR", "ORDER", "PROFILE",
        "REDUCE", "REMOVE", "REQUIRE", "RETURN", "SCALAR", "SET", "SHORTESTPATH", "ALLSHORTESTPATHS", "SHOW",
        "SINGLE", "SKIP", "STARTS", "TERMINATE", "THEN", "TRANSACTIONS", "TRUE", "UNION", "UNIQUE", "UNWIND", "USE",
        "USING", "WHEN", "WHERE", "WITH", "XOR", "YIELD",
    )
)  # fmt: skip
"""Words that stay in backticks as names."""
ARROWS = {"->": ("-", "->"), "<-": ("<-", "-"), "--": ("-", "-")}


class Renderer:
    """Writes a query for a Neo4j-compatible engine; every function must be on the allow-list."""

    functions = FUNCTIONS

    def name(self, value: str) -> str:
        """A name: plain where it may be, since not every server takes backticks everywhere."""
        plain = PLAIN_NAME.fullmatch(value) and value.upper() not in RESERVED
        return value if plain else name(value)

    def query(self, query: s.Query) -> str:
        """Single queries and what joins them."""
        parts = (" ".join(self.clause(clause) for clause in part) for part in query.parts)
        return (" UNION ALL " if query.all else " UNION ").join(parts)

    def clause(self, clause: s.Clause) -> str:
        """One clause."""
        match clause:
            case s.Match():
                return self.match(clause)
            case s.Unwind():
                return f"UNWIND {self.write(clause.items)} AS {self.variable(clause.variable)}"
            case s.CallSubquery():
                return self.call_subquery(clause)
            case s.CallProcedure():
                return self.call_procedure(clause)
            case s.Projection():
                return self.projection(clause)

    def match(self, match: s.Match) -> str:
        """MATCH with the conditions of its patterns in its WHERE."""
        paths = ", ".join(self.path(path) for path in match.paths)
        conditions = [self.write(where) for where in conditions_of(match.paths, match.where)]
        return ("OPTIONAL " if match.optional else "") + f"MATCH {paths}{self._where(conditions)}"

    def call_subquery(self, call: s.CallSubquery) -> str:
        """CALL { … } of reading clauses."""
        end = call.query.parts[0][-1]
        if not (isinstance(end, s.Projection) and end.last):
            raise QueryRejected("a subquery must return something", "CALL { … }")
        imports = ""
        if call.imports is not None:
            imports = "(" + ", ".join(v if v == "*" else self.variable(v) for v in call.imports) + ") "
        return f"CALL {imports}{{ {self.query(call.query)} }}"

    def call_procedure(self, call: s.CallProcedure) -> str:
        """CALL of a procedure of the allow-list, and what is taken of its rows."""
        arguments = ", ".join(self.write(argument) for argument in call.arguments)
        yields = ", ".join(
            self.name(column) + ("" if variable is None else f" AS {self.variable(variable)}")
            for column, variable in call.yields
        )
        where = [] if call.where is None else [self.write(call.where)]
        return f"CALL {PROCEDURES[call.name]}({arguments}) YIELD {yields}{self._where(where)}"

    def projection(self, projection: s.Projection) -> str:
        """WITH or RETURN and what follows it."""
        items = ["*"] if projection.star else []
        items += [self.item(item, last=projection.last) for item in projection.items]
        text = ("RETURN " if projection.last else "WITH ") + ("DISTINCT " if projection.distinct else "")
        return text + ", ".join(items) + self.projected(projection)

    def projected(self, projection: s.Projection) -> str:
        """What follows the columns: order, limits, and the condition of WITH."""
        text = ""
        if projection.order:
            keys = (self.write(key) + (" DESC" if descends else "") for key, descends in projection.order)
            text += " ORDER BY " + ", ".join(keys)
        text += f" SKIP {self.write(projection.skip)}" if projection.skip is not None else ""
        text += f" LIMIT {self.write(projection.limit)}" if projection.limit is not None else ""
        return text + (f" WHERE {self.write(projection.where)}" if projection.where is not None else "")

    def item(self, item: s.Item, *, last: bool) -> str:
        """One column; WITH needs a name for anything but a variable."""
        text = self.write(item.expression)
        if item.alias is None and not last and not isinstance(item.expression, s.Variable):
            raise QueryRejected("an expression in WITH needs a name (AS …)", item.column)
        return text if item.alias is None else f"{text} AS {self.variable(item.alias)}"

    def path(self, path: s.Path) -> str:
        """A path pattern."""
        text = self.node(path.nodes[0])
        for step, node in zip(path.relationships, path.nodes[1:], strict=True):
            text += (self.group(step) if isinstance(step, s.Group) else self.relationship(step)) + self.node(node)
        text = f"{path.shortest}({text})" if path.shortest else text
        named = "" if path.variable is None else f"{self.variable(path.variable)} = "
        if path.search is None:
            return named + text
        conditions = [self.write(where) for where in conditions_in(path)]
        if not conditions:
            return f"{named}{path.search} {text}"
        inside = path.within is not None and s.Variable(str(path.variable)) in s.walk(path.within)
        text = f"{path.search} ({named if inside else ''}{text}{self._where(conditions)})"
        return text if inside else named + text

    def group(self, group: s.Group) -> str:
        """A piece of a path that is repeated, with its own conditions."""
        conditions = [self.write(where) for where in conditions_of((group.path,), group.where)]
        return f"({self.path(group.path)}{self._where(conditions)}){self.repetition(group.hops)}"

    def node(self, node: s.Node) -> str:
        """A node pattern; its condition is written by `match`."""
        text = "" if node.variable is None else self.variable(node.variable)
        text += "" if node.labels is None else ":" + self.labels(node.labels)
        return f"({text}{self._properties(node.properties)})"

    def relationship(self, relationship: s.Relationship) -> str:
        """A relationship pattern; its condition is written by `match`."""
        inside = "" if relationship.variable is None else self.variable(relationship.variable)
        inside += "" if relationship.types is None else ":" + self.labels(relationship.types)
        hops, repeated = relationship.hops, ""
        if hops is not None and hops.quantified:
            repeated = self.repetition(hops)
        elif hops is not None:
            inside += self.hops(hops)
        inside += self._properties(relationship.properties)
        left, right = ARROWS[relationship.direction]
        return (f"{left}[{inside}]{right}" if inside else left + right) + repeated

    def hops(self, hops: s.Hops) -> str:
        """How many relationships a path may have."""
        if hops.low is not None and hops.low == hops.high:
            return f"*{hops.low}"
        low, high = ("" if bound is None else str(bound) for bound in (hops.low, hops.high))
        return f"*{low}..{high}" if low or high else "*"

    def repetition(self, hops: s.Hops) -> str:
        """How often what stands before it is repeated."""
        return f"{{{hops.low},{'' if hops.high is None else hops.high}}}"

    def labels(self, labels: s.Labels) -> str:
        """A label expression: plain labels as `A:B:C`, which all versions of the language know.

        Neo4j refuses that form beside `&`, `|` and `!`, so an expression with more than plain labels has `&` alone.
        """
        if (names := _chain(labels, "&")) is not None:
            return ":".join(map(self.name, names))
        return self._label_expression(labels)

    def _label_expression(self, labels: s.Labels) -> str:
        match labels:
            case s.LabelName():
                return self.name(labels.name)
            case s.AnyLabel():
                return "%"
            case s.NotLabel():
                return f"!({self._label_expression(labels.operand)})"
            case s.LabelPair():
                if (names := _chain(labels, labels.operator)) is not None:
                    return labels.operator.join(map(self.name, names))
                left, right = (self._label_expression(part) for part in (labels.left, labels.right))
                return f"({left}){labels.operator}({right})"

    def variable(self, variable: str) -> str:
        """A variable's name."""
        return self.name(variable)

    def write(self, expression: s.Expression) -> str:
        """An expression, in brackets where it has operators."""
        match expression:
            case s.Constant():
                return constant(expression.value)
            case s.Parameter():
                return f"${self.name(expression.name)}"
            case s.Variable():
                return self.variable(expression.name)
            case s.Property():
                return self.property(expression)
            case s.Index():
                return self.index(expression)
            case s.Slice():
                return self.slice(expression)
            case s.ListOf():
                return self.list_of(expression)
            case s.MapOf():
                return self.map(expression)
            case s.MapProjection():
                return self.map_projection(expression)
            case s.Unary():
                return f"({expression.operator} {self.write(expression.operand)})"
            case s.Binary():
                return self.binary(expression)
            case s.IsNull():
                return f"({self.write(expression.operand)} IS {'NOT ' if expression.negated else ''}NULL)"
            case s.HasLabels():
                return f"({self.variable(expression.variable)}:{self.labels(expression.labels)})"
            case s.Call():
                return self.call(expression)
        return self._write_form(expression)

    def _write_form(self, expression: s.Expression) -> str:
        """Expressions that bind variables or have keywords of their own."""
        match expression:
            case s.Case():
                return self.case(expression)
            case s.ListComprehension():
                return self.comprehension(expression)
            case s.PatternComprehension():
                return self.pattern_comprehension(expression)
            case s.Quantifier():
                return self.quantifier(expression)
            case s.Reduce():
                return self.reduce(expression)
            case s.Subquery():
                return f"{expression.kind} {{ {self.query(expression.query)} }}"
            case s.Cast():
                raise QueryRejected("CAST is not Cypher here; use toInteger, toFloat, toString or date", "CAST")
        raise AssertionError(f"{type(expression).__name__} is no expression")

    def property(self, expression: s.Property) -> str:
        """A property of a node, a relationship, a map or a temporal value."""
        return f"{self.write(expression.of)}.{self.name(expression.name)}"

    def index(self, expression: s.Index) -> str:
        """An element of a list, counted from 0."""
        return f"{self.write(expression.of)}[{self.write(expression.at)}]"

    def slice(self, expression: s.Slice) -> str:
        """A part of a list, from `low` up to before `high`."""
        low, high = ("" if end is None else self.write(end) for end in (expression.low, expression.high))
        return f"{self.write(expression.of)}[{low}..{high}]"

    def list_of(self, expression: s.ListOf) -> str:
        """A list."""
        return "[" + ", ".join(self.write(item) for item in expression.items) + "]"

    def map(self, expression: s.MapOf) -> str:
        """A map."""
        return "{" + ", ".join(f"{self.name(key)}: {self.write(value)}" for key, value in expression.items) + "}"

    def map_projection(self, expression: s.MapProjection) -> str:
        """A map made of properties of a variable."""
        items = [".*"] if expression.all else []
        items += [f"{self.name(key)}: {self.write(value)}" for key, value in expression.items]
        return f"{self.variable(expression.variable)} {{{', '.join(items)}}}"

    def binary(self, expression: s.Binary) -> str:
        """Two operands and what joins them."""
        return f"({self.write(expression.left)} {expression.operator} {self.write(expression.right)})"

    def call(self, call: s.Call) -> str:
        """A function on the allow-list."""
        written = self.functions.get(call.name)
        if written is None:
            raise QueryRejected("this function is not allowed", call.name)
        if call.star:
            return f"{written}(*)"
        arguments = ", ".join(self.write(argument) for argument in call.arguments)
        return f"{written}({'DISTINCT ' if call.distinct else ''}{arguments})"

    def case(self, case: s.Case) -> str:
        """CASE."""
        text = "CASE" if case.subject is None else f"CASE {self.write(case.subject)}"
        for condition, result in case.branches:
            text += f" WHEN {self.write(condition)} THEN {self.write(result)}"
        return text + ("" if case.otherwise is None else f" ELSE {self.write(case.otherwise)}") + " END"

    def comprehension(self, expression: s.ListComprehension) -> str:
        """A list made of another."""
        text = f"{self.variable(expression.variable)} IN {self.write(expression.items)}"
        text += "" if expression.where is None else f" WHERE {self.write(expression.where)}"
        return f"[{text}{'' if expression.result is None else f' | {self.write(expression.result)}'}]"

    def pattern_comprehension(self, expression: s.PatternComprehension) -> str:
        """A list made of the matches of a pattern."""
        conditions = [self.write(where) for where in conditions_of((expression.path,), expression.where)]
        return f"[{self.path(expression.path)}{self._where(conditions)} | {self.write(expression.result)}]"

    def quantifier(self, expression: s.Quantifier) -> str:
        """any, all, none or single of a list's elements."""
        variable, items = self.variable(expression.variable), self.write(expression.items)
        return f"{expression.kind}({variable} IN {items} WHERE {self.write(expression.where)})"

    def reduce(self, expression: s.Reduce) -> str:
        """A list folded into one value."""
        head = f"{self.variable(expression.accumulator)} = {self.write(expression.start)}"
        items = f"{self.variable(expression.variable)} IN {self.write(expression.items)}"
        return f"reduce({head}, {items} | {self.write(expression.step)})"

    def _where(self, conditions: list[str]) -> str:
        return " WHERE " + " AND ".join(conditions) if conditions else ""

    def _properties(self, properties: s.MapOf | s.Parameter | None) -> str:
        return "" if properties is None else " " + self.write(properties)


def _chain(labels: s.Labels, operator: str) -> list[str] | None:
    """The names of plain labels that one operator joins, None for anything else."""
    match labels:
        case s.LabelName():
            return [labels.name]
        case s.LabelPair() if labels.operator == operator:
            left, right = _chain(labels.left, operator), _chain(labels.right, operator)
            return None if left is None or right is None else left + right
    return None


def conditions_of(paths: Sequence[s.Path], where: s.Expression | None) -> list[s.Expression]:
    """The conditions inside patterns, but for those on the paths of a search, then the one that follows them."""
    inside = [condition for path in paths if path.search is None for condition in conditions_in(path)]
    return inside if where is None else [*inside, where]


def conditions_in(path: s.Path) -> list[s.Expression]:
    """The conditions on nodes and relationships of a path, then that on the path itself."""
    found = [node.where for node in path.nodes] + [relationship.where for relationship in path.plain]
    return [where for where in (*found, path.within) if where is not None]


def constant(value: None | bool | int | float | str) -> str:
    """A literal."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
    return repr(value).replace("e+", "e")
