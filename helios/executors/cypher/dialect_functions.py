"""Neo4j's functions by ladybug's means; a function that ladybug cannot stand in for says so."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from helios.errors import QueryFailed
from helios.executors.cypher import dialect_operators as operators
from helios.executors.cypher import syntax as s
from helios.executors.cypher.render import constant
from helios.executors.cypher.scope import NUMBERS, Type

if TYPE_CHECKING:
    from helios.executors.cypher.dialect import LadybugRenderer

Writer = Callable[["LadybugRenderer", s.Call], str]

NATIVE = {
    function: function
    for function in (
        "concat", "current_date", "current_timestamp", "date_part", "date_trunc", "label", "list_concat",
        "list_contains", "list_distinct", "list_extract", "list_sort", "list_sum", "list_unique", "regexp_extract",
        "regexp_matches", "regexp_replace", "string_split",
    )
}  # fmt: skip
"""Functions of ladybug's own that a query may call; none of them makes much of little."""
PARTS_OF_TIME = {
    part: part.lower()
    for part in ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
} | {"epochSeconds": "epoch"}
NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?"
INTEGER = r"[+-]?[0-9]{1,18}(\.[0-9]*)?"
UNITS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")


def renamed(written: str) -> Writer:
    """The same function under another name."""

    def write(renderer: "LadybugRenderer", call: s.Call) -> str:
        arguments = ", ".join(renderer.write(argument) for argument in call.arguments)
        return f"{written}({'DISTINCT ' if call.distinct else ''}{arguments})"

    return write


def template(written: str) -> Writer:
    """Text with the arguments in place of {0}, {1} …; the same number of arguments is expected."""
    count = max((place + 1 for place in range(4) if f"{{{place}}}" in written), default=0)

    def write(renderer: "LadybugRenderer", call: s.Call) -> str:
        return written.format(*arguments_of(renderer, call, count))

    return write


def element(place: int) -> Writer:
    """An element of a list."""

    def write(renderer: "LadybugRenderer", call: s.Call) -> str:
        arguments_of(renderer, call, 1)
        return operators.element(renderer, call.arguments[0], str(place))

    return write


def missing(renderer: "LadybugRenderer", call: s.Call) -> str:
    """Refuse what has no like here."""
    raise QueryFailed(f"this engine has no function {renderer.functions[call.name]}")


def arguments_of(renderer: "LadybugRenderer", call: s.Call, count: int) -> list[str]:
    """The arguments as text; QueryFailed unless there are `count`."""
    if len(call.arguments) != count:
        raise QueryFailed(f"{renderer.functions[call.name]} takes {count} arguments, not {len(call.arguments)}")
    return [renderer.write(argument) for argument in call.arguments]


def _type(renderer: "LadybugRenderer", call: s.Call) -> Type:
    return renderer.scope.type_of(call.arguments[0]) if call.arguments else Type.UNKNOWN


def _text(renderer: "LadybugRenderer", call: s.Call) -> str:
    (argument,) = arguments_of(renderer, call, 1)
    return f"trim({argument})" if _type(renderer, call) == Type.STRING else f"trim(cast({argument} AS STRING))"


def _to_float(renderer: "LadybugRenderer", call: s.Call) -> str:
    if _type(renderer, call) in NUMBERS:
        return f"cast({renderer.write(call.arguments[0])} AS DOUBLE)"
    text = _text(renderer, call)
    return f"cast(CASE WHEN {text} =~ {constant(NUMBER)} THEN {text} ELSE NULL END AS DOUBLE)"


def _to_integer(renderer: "LadybugRenderer", call: s.Call) -> str:
    type_ = _type(renderer, call)
    if type_ == Type.INTEGER:
        return arguments_of(renderer, call, 1)[0]
    if type_ == Type.BOOLEAN:
        (truth,) = arguments_of(renderer, call, 1)
        return f"CASE WHEN {truth} THEN 1 WHEN NOT {truth} THEN 0 END"
    if type_ == Type.FLOAT:
        (number,) = arguments_of(renderer, call, 1)
        return f"cast(CASE WHEN {number} >= 0 THEN floor({number}) ELSE ceil({number}) END AS INT64)"
    text = _text(renderer, call)
    digits = f"regexp_extract({text}, '[+-]?[0-9]+')"
    return f"cast(CASE WHEN {text} =~ {constant(INTEGER)} THEN {digits} ELSE NULL END AS INT64)"


def _to_string(renderer: "LadybugRenderer", call: s.Call) -> str:
    (argument,) = arguments_of(renderer, call, 1)
    match _type(renderer, call):
        case Type.STRING:
            return argument
        case Type.FLOAT:
            raise QueryFailed("this engine writes fractions with six digits; return the number itself")
        case Type.BOOLEAN:
            return f"lower(cast({argument} AS STRING))"
    return f"cast({argument} AS STRING)"


def _to_boolean(renderer: "LadybugRenderer", call: s.Call) -> str:
    (argument,) = arguments_of(renderer, call, 1)
    if _type(renderer, call) == Type.INTEGER:
        return f"({argument} <> 0)"
    return f"CASE lower(trim(cast({argument} AS STRING))) WHEN 'true' THEN true WHEN 'false' THEN false END"


def _reverse(renderer: "LadybugRenderer", call: s.Call) -> str:
    (argument,) = arguments_of(renderer, call, 1)
    match _type(renderer, call):
        case Type.LIST:
            return f"list_reverse({argument})"
        case Type.STRING:
            return f"reverse({argument})"
    raise QueryFailed("this engine must know whether reverse() is given text or a list; use toString() for text")


def _tail(renderer: "LadybugRenderer", call: s.Call) -> str:
    (argument,) = arguments_of(renderer, call, 1)
    operators.refuse_text(renderer, call.arguments[0])
    return f"list_slice({argument}, 2, -1)"


def _sum(renderer: "LadybugRenderer", call: s.Call) -> str:
    return f"coalesce({renamed('sum')(renderer, call)}, 0)"


def _spread(count: str) -> Writer:
    """The standard deviation from sums, over a count that is given."""

    def write(renderer: "LadybugRenderer", call: s.Call) -> str:
        if call.distinct:
            raise QueryFailed(
                f"this engine has no {renderer.functions[call.name]}(DISTINCT …); use WITH DISTINCT before"
            )
        (of,) = arguments_of(renderer, call, 1)
        of = f"cast({of} AS DOUBLE)"
        spread = f"abs(sum({of} * {of}) - sum({of}) * avg({of}))"
        return f"coalesce(sqrt({spread} / nullif({count.format(of)}, 0)), 0.0)"

    return write


def _length(renderer: "LadybugRenderer", call: s.Call) -> str:
    (argument,) = arguments_of(renderer, call, 1)
    variable = isinstance(call.arguments[0], s.Variable) and _type(renderer, call) in (Type.PATH, Type.LIST)
    return f"length({argument})" if variable else f"size({argument})"


def _size(renderer: "LadybugRenderer", call: s.Call) -> str:
    (argument,) = arguments_of(renderer, call, 1)
    of = call.arguments[0]
    binding = renderer.scope.bindings.get(of.name) if isinstance(of, s.Variable) else None
    hops = binding is not None and binding.type == Type.LIST and binding.relationships
    return f"length({argument})" if hops else f"size({argument})"


def _substring(renderer: "LadybugRenderer", call: s.Call) -> str:
    text, start, *length = arguments_of(renderer, call, 3 if len(call.arguments) == 3 else 2)
    _refuse_negative(call)
    return f"substring({text}, {start} + 1, {length[0] if length else f'size({text})'})"


def _end_of_text(renderer: "LadybugRenderer", call: s.Call) -> str:
    text, length = arguments_of(renderer, call, 2)
    _refuse_negative(call)
    return f"{call.name}({text}, {length})"


def _refuse_negative(call: s.Call) -> None:
    for argument in call.arguments[1:]:
        if isinstance(argument, s.Unary) and argument.operator == "-":
            raise QueryFailed(f"{call.name}() takes no negative place or length")


def _round(renderer: "LadybugRenderer", call: s.Call) -> str:
    if len(call.arguments) == 2:
        number, places = arguments_of(renderer, call, 2)
        return f"round({number}, {places})"
    arguments_of(renderer, call, 1)
    number = operators.written_twice(renderer, call.arguments[0])
    return f"cast(CASE WHEN {number} - floor({number}) >= 0.5 THEN ceil({number}) ELSE floor({number}) END AS DOUBLE)"


def _labels(renderer: "LadybugRenderer", call: s.Call) -> str:
    (node,) = arguments_of(renderer, call, 1)
    several = [table for table in renderer.catalog.nodes if table.labels != (table.name,)]
    if not several:
        return f"(CASE WHEN id({node}) IS NULL THEN null ELSE [label({node})] END)"
    whens = "".join(
        f" WHEN {constant(table.name)} THEN [{', '.join(constant(label) for label in table.labels)}]"
        for table in several
    )
    return f"(CASE WHEN id({node}) IS NULL THEN null ELSE CASE label({node}){whens} ELSE [label({node})] END END)"


def _keys(renderer: "LadybugRenderer", call: s.Call) -> str:
    of = call.arguments[0] if call.arguments else None
    binding = renderer.scope.bindings.get(of.name) if isinstance(of, s.Variable) else None
    if binding is None or not (binding.nodes or binding.relationships):
        return missing(renderer, call)
    (written,) = arguments_of(renderer, call, 1)
    cases = ", ".join(
        f"CASE WHEN {written}.`{key}` IS NULL THEN NULL ELSE {constant(key)} END"
        for key in binding.columns
        if not key.startswith("helios_")
    )
    each = renderer.fresh()
    held = f"list_filter([{cases}], {each} -> {each} IS NOT NULL)"
    return f"(CASE WHEN id({written}) IS NULL THEN null ELSE {held} END)"


def _properties(renderer: "LadybugRenderer", call: s.Call) -> str:
    match call.arguments:
        case (s.Variable(name=variable),):
            return renderer.map_projection(s.MapProjection(variable, (), all=True))
        case (s.MapOf(),):
            return renderer.write(call.arguments[0])
    return missing(renderer, call)


def _element_id(renderer: "LadybugRenderer", call: s.Call) -> str:
    (of,) = arguments_of(renderer, call, 1)
    argument = call.arguments[0]
    binding = renderer.scope.bindings.get(argument.name) if isinstance(argument, s.Variable) else None
    keys = {table.key for table in binding.nodes} if binding is not None else set()
    return f"cast({of}.`{keys.pop()}` AS STRING)" if len(keys) == 1 else f"cast(id({of}) AS STRING)"


def _date(renderer: "LadybugRenderer", call: s.Call) -> str:
    if not call.arguments:
        return "current_date()"
    (of,) = call.arguments
    if isinstance(of, s.MapOf):
        parts = dict(of.items)
        year, month, day = (parts.get(part, s.Constant(1)) for part in ("year", "month", "day"))
        return f"make_date({renderer.write(year)}, {renderer.write(month)}, {renderer.write(day)})"
    return f"cast({renderer.write(of)} AS DATE)"


def _datetime(renderer: "LadybugRenderer", call: s.Call) -> str:
    if not call.arguments:
        return "current_timestamp()"
    (of,) = call.arguments
    if isinstance(of, s.MapOf):
        parts = dict(of.items)
        if "epochSeconds" in parts:
            return f"to_timestamp({renderer.write(parts['epochSeconds'])})"
        if "epochMillis" in parts:
            return f"epoch_ms({renderer.write(parts['epochMillis'])})"
        return f"cast({_date(renderer, call)} AS TIMESTAMP)"
    return f"cast({renderer.write(of)} AS TIMESTAMP)"


def _duration(renderer: "LadybugRenderer", call: s.Call) -> str:
    of = call.arguments[0] if len(call.arguments) == 1 else None
    if isinstance(of, s.MapOf):
        amounts = [(unit, value.value) for unit, value in of.items if isinstance(value, s.Constant)]
        if len(amounts) == len(of.items) and all(unit in UNITS and isinstance(n, int) for unit, n in amounts):
            days = {"weeks": ("days", 7)}
            named = ((*days.get(unit, (unit, 1)), n) for unit, n in amounts)
            text = " ".join(f"{int(str(n)) * factor} {unit}" for unit, factor, n in named)
            return f"interval({constant(text)})"
    raise QueryFailed("this engine takes durations as duration({days: 1, hours: 2}) with numbers only")


def _coalesce(renderer: "LadybugRenderer", call: s.Call) -> str:
    operators.same_kind(map(renderer.scope.type_of, call.arguments), "coalesce")
    return renamed("coalesce")(renderer, call)


def _is_not_null(renderer: "LadybugRenderer", call: s.Call) -> str:
    return f"({arguments_of(renderer, call, 1)[0]} IS NOT NULL)"


WRITERS: dict[str, Writer] = {
    "tofloat": _to_float, "tofloatornull": _to_float, "tointeger": _to_integer, "tointegerornull": _to_integer,
    "tostring": _to_string, "tostringornull": _to_string, "length": _length, "size": _size,
    "char_length": renamed("size"), "character_length": renamed("size"), "substring": _substring, "round": _round,
    "labels": _labels, "keys": _keys, "elementid": _element_id, "date": _date, "datetime": _datetime,
    "localdatetime": _datetime, "duration": _duration, "exists": _is_not_null,
    "toboolean": _to_boolean, "tobooleanornull": _to_boolean, "reverse": _reverse, "sum": _sum,
    "left": _end_of_text, "right": _end_of_text, "properties": _properties, "coalesce": _coalesce,
    "type": renamed("label"), "startnode": renamed("start_node"), "endnode": renamed("end_node"),
    "relationships": renamed("rels"), "head": element(1), "last": element(-1), "tail": _tail,
    "isempty": template("(size({0}) = 0)"), "split": renamed("string_split"), "btrim": renamed("trim"),
    "log": renamed("ln"), "exp": template("pow(2.718281828459045, {0})"), "e": template("2.718281828459045"),
    "rand": renamed("random"), "datetime.fromepoch": template("to_timestamp({0})"),
    "datetime.fromepochmillis": renamed("epoch_ms"), "date.truncate": renamed("date_trunc"),
    "datetime.truncate": renamed("date_trunc"), "localdatetime.truncate": renamed("date_trunc"),
    "timestamp": template("to_epoch_ms(current_timestamp())"),
    "stdev": _spread("count({0}) - 1"), "stdevp": _spread("count({0})"),
} | dict.fromkeys(
    ("duration.between", "duration.indays", "duration.inmonths", "duration.inseconds", "haversin", "isnan",
     "localtime", "normalize", "point", "point.distance", "point.withinbbox", "time", "valuetype"),
    missing,
)  # fmt: skip
