"""What a query's variables stand for, as far as its text tells: enough to choose between two ways of writing."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from helios.executors.cypher import syntax as s
from helios.executors.cypher.catalog import NodeTable, RelationshipTable


class Type(StrEnum):
    """Types that matter to the translation."""

    UNKNOWN = "unknown"
    NODE = "node"
    RELATIONSHIP = "relationship"
    PATH = "path"
    INTEGER = "integer"
    FLOAT = "float"
    STRING = "string"
    BOOLEAN = "boolean"
    TIME = "time"
    LIST = "list"
    NULL = "null"


OWN = "helios_"
"""How names of the translation's own begin."""
NUMBERS = (Type.INTEGER, Type.FLOAT)
RESULTS = {
    Type.INTEGER: ("count", "size", "tointeger", "length", "char_length", "id", "sign", "timestamp"),
    Type.FLOAT: ("avg", "tofloat", "sqrt", "round", "floor", "ceil", "stdev", "stdevp", "percentilecont", "log",
                 "rand"),
    Type.STRING: (
        "tolower", "toupper", "lower", "upper", "tostring", "trim", "ltrim", "rtrim", "replace", "substring", "left",
        "right", "type", "elementid", "concat",
    ),
    Type.TIME: ("date", "datetime", "localdatetime", "date.truncate", "datetime.truncate", "datetime.fromepoch",
                "datetime.fromepochmillis"),
    Type.LIST: ("collect", "keys", "labels", "nodes", "relationships", "range", "split", "tail"),
    Type.BOOLEAN: ("exists", "isempty", "toboolean"),
}  # fmt: skip
RESULT_TYPES = {function: type_ for type_, functions in RESULTS.items() for function in functions}
SAME_AS_ARGUMENT = ("min", "max", "sum", "abs", "reverse", "tail")
ELEMENTS = {
    "keys": Type.STRING, "labels": Type.STRING, "split": Type.STRING, "range": Type.INTEGER, "nodes": Type.NODE,
    "relationships": Type.RELATIONSHIP,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Binding:
    """What a variable holds: its type, and the tables it may come from."""

    type: Type
    nodes: tuple[NodeTable, ...] = ()
    relationships: tuple[RelationshipTable, ...] = ()
    element: Type = Type.UNKNOWN
    """What a list holds."""

    @property
    def columns(self) -> dict[str, set[str]]:
        """The properties that it may have, each with its types in the tables that have it."""
        columns: dict[str, set[str]] = {}
        for properties in [table.properties for table in self.nodes] + [each.properties for each in self.relationships]:
            for name, type_ in properties.items():
                columns.setdefault(name, set()).add(type_)
        return columns


@dataclass(slots=True)
class Scope:
    """Variables by name; names that a later clause binds anew are overwritten."""

    bindings: dict[str, Binding] = field(default_factory=dict)
    parameters: Mapping[str, object] = field(default_factory=dict)

    def bind(self, variable: str | None, binding: Binding) -> None:
        """Remember a variable."""
        if variable is not None:
            self.bindings[variable] = binding

    @property
    def visible(self) -> tuple[str, ...]:
        """The variables that `*` stands for: those with a name in the query."""
        return tuple(variable for variable in self.bindings if not variable.startswith(OWN))

    @contextmanager
    def local(self, variable: str, binding: Binding) -> Iterator[None]:
        """A variable that one expression binds, such as a list comprehension."""
        outer = dict(self.bindings)
        self.bindings[variable] = binding
        yield
        self.bindings = outer

    def binding_of(self, expression: s.Expression) -> Binding:
        """What a variable with this expression's value would hold."""
        if isinstance(expression, s.Variable) and expression.name in self.bindings:
            return self.bindings[expression.name]
        return Binding(self.type_of(expression), element=self.element_type(expression))

    def element_of(self, items: s.Expression) -> Binding:
        """What a variable holds that goes through a list."""
        return Binding(self.element_type(items))

    def type_of(self, expression: s.Expression) -> Type:
        """The type of an expression; UNKNOWN where its text does not tell."""
        match expression:
            case s.Constant():
                return value_type(expression.value)
            case s.Variable():
                binding = self.bindings.get(expression.name)
                return Type.UNKNOWN if binding is None else binding.type
            case s.Property():
                return self._property_type(expression)
            case s.Parameter() if expression.name in self.parameters:
                return value_type(self.parameters[expression.name])
            case s.Cast():
                return column_type(expression.type)
            case s.Call():
                return self._call_type(expression)
            case s.Index():
                return self.element_type(expression.of)
            case s.Case():
                branches = [result for _, result in expression.branches]
                return self._common([*branches, expression.otherwise or s.Constant(None)])
            case s.Binary():
                return self._operation_type(expression)
            case s.Unary():
                return Type.BOOLEAN if expression.operator == "NOT" else self.type_of(expression.operand)
            case s.IsNull() | s.HasLabels() | s.Quantifier():
                return Type.BOOLEAN
            case s.ListOf() | s.ListComprehension() | s.PatternComprehension():
                return Type.LIST
            case s.Slice():
                return self.type_of(expression.of)
            case s.Subquery():
                return Type.INTEGER if expression.kind == "COUNT" else Type.BOOLEAN
        return Type.UNKNOWN

    def element_type(self, expression: s.Expression | None) -> Type:
        """The type of a list's elements; UNKNOWN where its text does not tell."""
        match expression:
            case s.ListOf():
                return self._common(expression.items)
            case s.Parameter():
                items = self.parameters.get(expression.name)
                return common(map(value_type, items)) if isinstance(items, list | tuple) else Type.UNKNOWN
            case s.Variable():
                binding = self.bindings.get(expression.name)
                return Type.UNKNOWN if binding is None else binding.element
            case s.Property(of=s.Variable()):
                types = {column_type(each.removesuffix("[]")) for each in self._columns(expression)}
                return common(types)
            case s.Slice():
                return self.element_type(expression.of)
            case s.ListComprehension(result=None):
                return self.element_type(expression.items)
            case s.Call(name="collect") if expression.arguments:
                return self.type_of(expression.arguments[0])
            case s.Call(name="tail" | "reverse" | "coalesce") if expression.arguments:
                return self.element_type(expression.arguments[0])
            case s.Call():
                return ELEMENTS.get(expression.name, Type.UNKNOWN)
            case s.Binary(operator="+"):
                return common((self.element_type(expression.left), self.element_type(expression.right)))
        return Type.UNKNOWN

    def _call_type(self, call: s.Call) -> Type:
        if call.name in ("head", "last") and call.arguments:
            return self.element_type(call.arguments[0])
        if call.name == "coalesce":
            return self._common(call.arguments)
        if call.name in SAME_AS_ARGUMENT and call.arguments:
            return self.type_of(call.arguments[0])
        return RESULT_TYPES.get(call.name, Type.UNKNOWN)

    def _common(self, expressions: Iterable[s.Expression]) -> Type:
        return common(map(self.type_of, expressions))

    def _property_type(self, expression: s.Property) -> Type:
        return common(map(column_type, self._columns(expression)))

    def _columns(self, expression: s.Property) -> set[str]:
        """The types that a property of a variable has in its tables, as ladybug writes them."""
        binding = self.bindings.get(expression.of.name) if isinstance(expression.of, s.Variable) else None
        return set() if binding is None else binding.columns.get(expression.name, set())

    def _operation_type(self, expression: s.Binary) -> Type:
        left, right = self.type_of(expression.left), self.type_of(expression.right)
        match expression.operator:
            case "+" if Type.STRING in (left, right) and Type.LIST not in (left, right):
                return Type.STRING
            case "||":
                return left
            case "+" | "-" | "*" | "/" | "%":
                if left in NUMBERS and right in NUMBERS:
                    return Type.FLOAT if Type.FLOAT in (left, right) else Type.INTEGER
                return left if left == right else Type.UNKNOWN
            case "^":
                return Type.FLOAT
        return Type.BOOLEAN


def common(types: Iterable[Type]) -> Type:
    """The one type of several values, whatever of them is null; whole numbers among fractions are fractions."""
    found = set(types) - {Type.NULL}
    if found == set(NUMBERS):
        return Type.FLOAT
    return found.pop() if len(found) == 1 else Type.UNKNOWN


def column_type(written: str) -> Type:
    """The type of a column of ladybug."""
    if written.endswith("]"):
        return Type.LIST
    if written.startswith(("INT", "UINT", "SERIAL")) and written != "INTERVAL":
        return Type.INTEGER
    if written.startswith(("DOUBLE", "FLOAT", "DECIMAL")):
        return Type.FLOAT
    if written.startswith(("DATE", "TIMESTAMP")):
        return Type.TIME
    return {"STRING": Type.STRING, "BOOL": Type.BOOLEAN}.get(written, Type.UNKNOWN)


def value_type(value: object) -> Type:
    """The type of a constant or a parameter."""
    match value:
        case None:
            return Type.NULL
        case bool():
            return Type.BOOLEAN
        case int():
            return Type.INTEGER
        case float():
            return Type.FLOAT
        case str():
            return Type.STRING
        case date():
            return Type.TIME
        case list() | tuple():
            return Type.LIST
    return Type.UNKNOWN
