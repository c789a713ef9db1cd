"""What a query's variables stand for, as far as its text tells: enough to choose between two ways of writing."""

from dataclasses import dataclass, field
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
SAME_AS_ARGUMENT = ("min", "max", "sum", "abs", "coalesce", "head", "last")


@dataclass(frozen=True, slots=True)
class Binding:
    """What a variable holds: its type, and the tables it may come from."""

    type: Type
    nodes: tuple[NodeTable, ...] = ()
    relationships: tuple[RelationshipTable, ...] = ()

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

    def bind(self, variable: str | None, binding: Binding) -> None:
        """Remember a variable; one that is bound already keeps its narrower meaning."""
        if variable is not None:
            self.bindings[variable] = binding

    def type_of(self, expression: s.Expression) -> Type:
        """The type of an expression; UNKNOWN where its text does not tell."""
        match expression:
            case s.Constant():
                return _constant_type(expression.value)
            case s.Variable():
                binding = self.bindings.get(expression.name)
                return Type.UNKNOWN if binding is None else binding.type
            case s.Property():
                return self._property_type(expression)
            case s.Call():
                if expression.name in SAME_AS_ARGUMENT and expression.arguments:
                    return self.type_of(expression.arguments[0])
                return RESULT_TYPES.get(expression.name, Type.UNKNOWN)
            case s.Binary():
                return self._operation_type(expression)
            case s.Unary():
                return Type.BOOLEAN if expression.operator == "NOT" else self.type_of(expression.operand)
            case s.IsNull() | s.HasLabels() | s.Quantifier():
                return Type.BOOLEAN
            case s.ListOf() | s.ListComprehension() | s.PatternComprehension() | s.Slice():
                return Type.LIST
            case s.Subquery():
                return Type.INTEGER if expression.kind == "COUNT" else Type.BOOLEAN
        return Type.UNKNOWN

    def _property_type(self, expression: s.Property) -> Type:
        if not isinstance(expression.of, s.Variable):
            return Type.UNKNOWN
        binding = self.bindings.get(expression.of.name)
        types = set() if binding is None else {column_type(each) for each in binding.columns.get(expression.name, ())}
        return types.pop() if len(types) == 1 else Type.UNKNOWN

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


def _constant_type(value: object) -> Type:
    match value:
        case bool():
            return Type.BOOLEAN
        case int():
            return Type.INTEGER
        case float():
            return Type.FLOAT
        case str():
            return Type.STRING
    return Type.UNKNOWN
