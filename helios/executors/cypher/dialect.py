"""Neo4j's Cypher in ladybug's dialect: a checked query written for an engine with tables and other habits.

What differs: labels are tables; a relationship may occur twice in a match unless forbidden; lists count from 1;
subqueries hold one MATCH; WITH … ORDER BY wants a LIMIT and loses its order before an aggregate; functions have other
names (`dialect_functions`), operators and lists another idea of null (`dialect_operators`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from helios.errors import QueryFailed
from helios.executors.cypher import dialect_operators as operators
from helios.executors.cypher import syntax as s
from helios.executors.cypher.catalog import GraphCatalog, NodeTable, RelationshipTable, named
from helios.executors.cypher.dialect_functions import NATIVE, PARTS_OF_TIME, WRITERS
from helios.executors.cypher.functions import FUNCTIONS
from helios.executors.cypher.render import Renderer, conditions_of, constant
from helios.executors.cypher.scope import Binding, Scope, Type, column_type
from helios.executors.cypher.tokens import name

MAX_WRITTEN = 100_000
"""Characters of one expression as it is written for ladybug."""
ALL_ROWS = 2**63 - 1
WHOLE = "helios_whole"
"""Key of a map made of all properties: a list of those that are left out where they are null."""
SHORTEST = {"shortestPath": "SHORTEST", "allShortestPaths": "ALL SHORTEST"}
Relationships = list[tuple[s.Relationship, tuple[RelationshipTable, ...]]]


class LadybugRenderer(Renderer):
    """Writes one query for one database."""

    functions = {**FUNCTIONS, **NATIVE}

    def __init__(self, catalog: GraphCatalog, parameters: Mapping[str, object] | None = None) -> None:
        """`parameters`: what is given for them, whose types choose between ways of writing."""
        self.catalog = catalog
        self.scope = Scope(parameters=parameters or {})
        self._names: dict[str, str] = {}
        self._anonymous = 0
        self._fresh = 0

    def query(self, query: s.Query) -> str:
        """Single queries and what joins them; none knows the variables of another."""
        parts: list[str] = []
        for part in query.parts:
            self.scope = Scope(parameters=self.scope.parameters)
            parts.append(" ".join(self.clause(clause) for clause in part))
        return (" UNION ALL " if query.all else " UNION ").join(parts)

    def fresh(self) -> str:
        """A name for a variable of the translation's own."""
        self._fresh += 1
        return f"helios_x{self._fresh}"

    def name(self, value: str) -> str:
        """A name, always in backticks."""
        return name(value)

    def variable(self, variable: str) -> str:
        """A name of its own for each variable: ladybug takes `n` and `N` for the same."""
        folded = variable.casefold()
        while self._names.setdefault(folded, variable) != variable:
            folded += "_"
        return name(folded if folded != variable.casefold() else variable)

    def match(self, match: s.Match) -> str:
        """MATCH, with what Neo4j demands of its relationships said in WHERE."""
        paths, conditions = self.matched(match)
        return ("OPTIONAL " if match.optional else "") + f"MATCH {paths}{self._where(conditions)}"

    def matched(self, match: s.Match) -> tuple[str, list[str]]:
        """The paths and the conditions of a MATCH."""
        relationships: Relationships = []
        match = replace(match, paths=tuple(self._prepared(path, relationships) for path in match.paths))
        impossible = ["false"] if any(self._is_empty(path) for path in match.paths) else []
        written = ", ".join(self.path(path) for path in match.paths)
        conditions = [self.write(where) for where in conditions_of(match.paths, match.where)]
        return written, impossible + conditions + self._distinct(relationships)

    def path(self, path: s.Path) -> str:
        """A path; shortest ones are a kind of relationship here."""
        if path.shortest is None:
            return super().path(path)
        start, end = (self.node(node) for node in path.nodes)
        text = start + self.relationship(path.plain[0], kind=SHORTEST[path.shortest]) + end
        return text if path.variable is None else f"{self.variable(path.variable)} = {text}"

    def relationship(self, relationship: s.Relationship, *, kind: str = "TRAIL") -> str:
        """A relationship; Neo4j's paths of many pass none twice."""
        if isinstance(relationship.properties, s.Parameter):
            raise QueryFailed("this engine takes no map of properties as a parameter; name each property")
        self._check_properties(relationship.properties, self.catalog.relationship_tables(relationship.types))
        if relationship.hops is None:
            return super().relationship(relationship)
        low, high = relationship.hops.low, relationship.hops.high
        bounds = f"{1 if low is None else low}..{'' if high is None else high}"
        inside = "" if relationship.variable is None else self.variable(relationship.variable)
        inside += "" if relationship.types is None else ":" + self._types(relationship.types)
        left, right = {"->": ("-", "->"), "<-": ("<-", "-"), "--": ("-", "-")}[relationship.direction]
        return f"{left}[{inside}* {kind} {bounds}{self._properties(relationship.properties)}]{right}"

    def node(self, node: s.Node) -> str:
        """A node, with its labels as tables."""
        if isinstance(node.properties, s.Parameter):
            raise QueryFailed("this engine takes no map of properties as a parameter; name each property")
        text = "" if node.variable is None else self.variable(node.variable)
        tables = self.catalog.node_tables(node.labels)
        self._check_properties(node.properties, tables)
        if node.labels is not None and 0 < len(tables) < len(self.catalog.nodes):
            text += ":" + "|".join(name(table.name) for table in tables)
        return f"({text}{self._properties(node.properties)})"

    def labels(self, labels: s.Labels) -> str:
        """Relationship types in a pattern."""
        return self._types(labels)

    def call_subquery(self, call: s.CallSubquery) -> str:
        """There are none."""
        raise QueryFailed("this engine has no CALL { … }; use WITH, OPTIONAL MATCH or COUNT { MATCH … }")

    def projection(self, projection: s.Projection) -> str:
        """WITH or RETURN; an order without a limit gets one that ends nothing."""
        if projection.star:
            visible = tuple(s.Item(s.Variable(each), None, each) for each in self.scope.visible)
            projection = replace(projection, star=False, items=visible + projection.items)
            if not projection.items:
                raise QueryFailed("there are no variables for *")
        if projection.last or not projection.order:
            return super().projection(projection)
        if projection.limit is None:
            projection = replace(projection, limit=s.Constant(ALL_ROWS))
        # ladybug 0.22 drops the order below an aggregate, and then limits other rows; not so below UNWIND
        return f"{super().projection(projection)} UNWIND [1] AS {self.fresh()}"

    def projected(self, projection: s.Projection) -> str:
        """What follows the columns knows their names; the clauses after WITH know nothing else."""
        columns = {item.alias or item.column: self.scope.binding_of(item.expression) for item in projection.items}
        self.scope.bindings |= columns
        text = super().projected(projection)
        self.scope.bindings = columns
        return text

    def clause(self, clause: s.Clause) -> str:
        """One clause; what UNWIND binds is an element of its list."""
        if isinstance(clause, s.Unwind):
            operators.refuse_text(self, clause.items)
            binding = self.scope.element_of(clause.items)
            text = super().clause(clause)
            self.scope.bind(clause.variable, binding)
            return text
        return super().clause(clause)

    def property(self, expression: s.Property) -> str:
        """A property, or a part of a date."""
        part = PARTS_OF_TIME.get(expression.name)
        if part is not None and self.scope.type_of(expression.of) == Type.TIME:
            return f"date_part('{part}', {self.write(expression.of)})"
        return super().property(expression)

    def index(self, expression: s.Index) -> str:
        """An element; null past the end."""
        if isinstance(expression.at, s.Constant) and isinstance(expression.at.value, str):
            return self.property(s.Property(expression.of, expression.at.value))
        if self.scope.type_of(expression.at) == Type.STRING:
            raise QueryFailed("this engine takes the name of a property as written text only, such as n['name']")
        return operators.element(self, expression.of, self._place(expression.at))

    def slice(self, expression: s.Slice) -> str:
        """A part of a list, from 1 and with its last element."""
        operators.refuse_text(self, expression.of)
        low = "1" if expression.low is None else self._place(expression.low)
        high = "-1"
        if expression.high is not None:
            place = operators.written_twice(self, expression.high)
            high = f"CASE WHEN {place} >= 0 THEN {place} ELSE {place} - 1 END"
        return f"list_slice({self.write(expression.of)}, {low}, {high})"

    def list_of(self, expression: s.ListOf) -> str:
        """A list of values of one kind."""
        operators.same_kind(map(self.scope.type_of, expression.items), "[…]")
        return super().list_of(expression)

    def case(self, case: s.Case) -> str:
        """CASE, whose results are of one kind, and what it compares too."""
        results = [result for _, result in case.branches] + ([case.otherwise] if case.otherwise is not None else [])
        operators.same_kind(map(self.scope.type_of, results), "CASE")
        if case.subject is not None:
            compared = [case.subject, *(value for value, _ in case.branches)]
            if s.Constant(None) in compared:
                raise QueryFailed("this engine takes null for equal to null in CASE; write CASE WHEN … IS NULL")
            operators.same_kind(map(self.scope.type_of, compared), "CASE")
        return super().case(case)

    def map_projection(self, expression: s.MapProjection) -> str:
        """A map with its keys written out."""
        binding = self.scope.bindings.get(expression.variable)
        if expression.all and (binding is None or binding.type not in (Type.NODE, Type.RELATIONSHIP)):
            raise QueryFailed("`.*` works on nodes and relationships only")
        items: dict[str, s.Expression] = {}
        if expression.all and binding is not None:
            items = {key: s.Property(s.Variable(expression.variable), key) for key in binding.columns}
            optional = tuple(s.Constant(key) for key in items if key not in dict(expression.items))
            items[WHOLE] = s.ListOf(optional)
        return self.map(s.MapOf(tuple((items | dict(expression.items)).items())))

    def binary(self, expression: s.Binary) -> str:
        """Two operands."""
        match expression.operator:
            case "||":
                return self.binary(replace(expression, operator="+"))
            case "+":
                return operators.joined(self, expression) or super().binary(expression)
            case "IN":
                return operators.contained(self, expression)
            case "CONTAINS":
                return operators.holds_text(self, expression)
            case operator if operator in operators.COMPARISONS:
                return operators.compared(self, expression)
        return super().binary(expression)

    def quantifier(self, expression: s.Quantifier) -> str:
        """any, all, none or single."""
        return operators.quantified(self, expression)

    def call(self, call: s.Call) -> str:
        """A function by its name here."""
        writer = WRITERS.get(call.name)
        if writer is not None:
            return writer(self, call)
        return super().call(call)

    def comprehension(self, expression: s.ListComprehension) -> str:
        """A list made of another: a filter, then a transformation."""
        operators.refuse_text(self, expression.items)
        variable, text = self.variable(expression.variable), self.write(expression.items)
        with self.scope.local(expression.variable, self.scope.element_of(expression.items)):
            if expression.where is not None:
                text = f"list_filter({text}, {variable} -> {self.write(expression.where)})"
            if expression.result is not None:
                text = f"list_transform({text}, {variable} -> {self.write(expression.result)})"
        return text

    def pattern_comprehension(self, expression: s.PatternComprehension) -> str:
        """There are none."""
        raise QueryFailed("this engine has no [(a)-->(b) | …]; use OPTIONAL MATCH and collect()")

    def reduce(self, expression: s.Reduce) -> str:
        """A fold; the start is the first element here."""
        variables = f"({self.variable(expression.accumulator)}, {self.variable(expression.variable)})"
        items = f"list_concat([{self.write(expression.start)}], {self.write(expression.items)})"
        start = self.scope.binding_of(expression.start)
        with (
            self.scope.local(expression.accumulator, start),
            self.scope.local(expression.variable, self.scope.element_of(expression.items)),
        ):
            return f"list_reduce({items}, {variables} -> {self.write(expression.step)})"

    def _write_form(self, expression: s.Expression) -> str:
        match expression:
            case s.Subquery():
                return self._subquery(expression)
            case s.Cast():
                return f"cast({self.write(expression.operand)} AS {expression.type})"
        return super()._write_form(expression)

    def write(self, expression: s.Expression) -> str:
        """An expression; a label predicate asks for the table."""
        if isinstance(expression, s.HasLabels):
            return self._has_labels(expression)
        if isinstance(expression, s.Parameter):
            return f"${expression.name}"
        text = super().write(expression)
        if len(text) > MAX_WRITTEN:  # some forms write an operand several times, and those nest
            raise QueryFailed("the query is too long in this engine's dialect; ask for less at once")
        return text

    def _has_labels(self, expression: s.HasLabels) -> str:
        binding = self.scope.bindings.get(expression.variable)
        if binding is not None and binding.type == Type.RELATIONSHIP:
            tables = [table.name for table in self.catalog.relationship_tables(expression.labels)]
        else:
            tables = [table.name for table in self.catalog.node_tables(expression.labels)]
        listed = ", ".join(constant(table) for table in tables)
        return f"(label({self.variable(expression.variable)}) IN [{listed}])" if tables else "false"

    def _subquery(self, expression: s.Subquery) -> str:
        """One MATCH of all the subquery's: that is what EXISTS and COUNT may hold here."""
        clauses = expression.query.parts[0]
        end = clauses[-1]
        if expression.kind == "EXISTS" and isinstance(end, s.Projection) and end.limit is None and end.skip is None:
            clauses = clauses[:-1]
        matches = [clause for clause in clauses if isinstance(clause, s.Match) and not clause.optional]
        if expression.kind == "COLLECT" or len(expression.query.parts) > 1 or len(matches) < len(clauses):
            raise QueryFailed(f"this engine's {expression.kind} {{ … }} holds MATCH and WHERE only; use WITH before it")
        outer = dict(self.scope.bindings)
        written = [self.matched(clause) for clause in matches]
        self.scope.bindings = outer
        conditions = [condition for _, conditions in written for condition in conditions]
        return f"{expression.kind} {{ MATCH {', '.join(paths for paths, _ in written)}{self._where(conditions)} }}"

    def _place(self, at: s.Expression) -> str:
        """A place counted from 1; negative ones count from the end in both."""
        match at:
            case s.Constant(value=int(value)):
                return str(value + 1)
            case s.Unary(operator="-", operand=s.Constant(value=int(value))):
                return str(-value)
        place = operators.written_twice(self, at)
        return f"CASE WHEN {place} >= 0 THEN {place} + 1 ELSE {place} END"

    def _types(self, types: s.Labels) -> str:
        return "|".join(name(table.name) for table in self.catalog.relationship_tables(types)) or name(named(types)[0])

    def _is_empty(self, path: s.Path) -> bool:
        """Whether the labels of a path exclude each other; QueryFailed for names that the graph lacks."""
        known = set(self.catalog.labels)
        for node in path.nodes:
            if missing := [label for label in named(node.labels) if label not in known]:
                raise QueryFailed(f"no node has the label {missing[0]}; there are {', '.join(sorted(known))}")
        types = {table.name for table in self.catalog.relationships}
        for relationship in path.plain:
            if missing := [label for label in named(relationship.types) if label not in types]:
                raise QueryFailed(f"no relationship has the type {missing[0]}; there are {', '.join(sorted(types))}")
        return any(not self.catalog.node_tables(node.labels) for node in path.nodes)

    def _prepared(self, path: s.Path, seen: Relationships) -> s.Path:
        """A path whose relationships have names, and whose variables are known."""
        for node in path.nodes:
            tables = self.catalog.node_tables(node.labels)
            bound = self.scope.bindings.get(node.variable or "")
            if bound is None or bound.type != Type.NODE or node.labels is not None:
                self.scope.bind(node.variable, Binding(Type.NODE, nodes=tables))
        relationships: list[s.Relationship] = []
        for relationship in path.plain:
            if relationship.variable is None:
                self._anonymous += 1
                relationship = replace(relationship, variable=f"helios_r{self._anonymous}")
            tables_of = self.catalog.relationship_tables(relationship.types)
            kind = Type.RELATIONSHIP if relationship.hops is None else Type.LIST
            self.scope.bind(relationship.variable, Binding(kind, relationships=tables_of))
            relationships.append(relationship)
            if path.shortest is None:
                seen.append((relationship, tables_of))
        self.scope.bind(path.variable, Binding(Type.PATH))
        return replace(path, relationships=tuple(relationships))

    def _distinct(self, relationships: Relationships) -> list[str]:
        """Neo4j lets no relationship occur twice in one MATCH."""
        conditions: list[str] = []
        for place, (one, tables) in enumerate(relationships):
            for other, others in relationships[:place]:
                if one.variable == other.variable or not set(_numbers(tables)) & set(_numbers(others)):
                    continue
                first, second = (self.variable(each.variable or "") for each in (other, one))
                if one.hops is None and other.hops is None:
                    conditions.append(f"id({first}) <> id({second})")
                elif one.hops is None or other.hops is None:
                    single, many = (second, first) if one.hops is None else (first, second)
                    conditions.append(f"none(helios_x IN rels({many}) WHERE id(helios_x) = id({single}))")
        return conditions

    def _check_properties(
        self, properties: s.MapOf | s.Parameter | None, tables: Iterable[NodeTable | RelationshipTable]
    ) -> None:
        """QueryFailed for a property in a pattern that is compared with a value of another kind."""
        if isinstance(properties, s.MapOf):
            for key, value in properties.items:
                columns = {column_type(table.properties[key]) for table in tables if key in table.properties}
                operators.same_kind({*columns, self.scope.type_of(value)}, key)


def _numbers(tables: tuple[RelationshipTable, ...]) -> list[int]:
    return [table.number for table in tables]
