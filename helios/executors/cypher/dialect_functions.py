"""Neo4j's functions by ladybug's means; a function that ladybug cannot stand in for says so."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from helios.errors import QueryFailed
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
TRAILING_ZEROS, FIRST_GROUP = constant(r"(\.[0-9]+?)0+$"), constant(r"\1")
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
            return f"regexp_replace(cast({argument} AS STRING), {TRAILING_ZEROS}, {FIRST_GROUP})"
        case Type.BOOLEAN:
            return f"lower(cast({argument} AS STRING))"
    return f"cast({argument} AS STRING)"


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
    return f"substring({text}, {start} + 1, {length[0] if length else f'size({text})'})"


def _round(renderer: "LadybugRenderer", call: s.Call) -> str:
    number, *places = arguments_of(renderer, call, 2 if len(call.arguments) == 2 else 1)
    return f"round({number}, {places[0] if places else 0})"


def _labels(renderer: "LadybugRenderer", call: s.Call) -> str:
    (node,) = arguments_of(renderer, call, 1)
    several = [table for table in renderer.catalog.nodes if table.labels != (table.name,)]
    if not several:
        return f"[label({node})]"
    whens = "".join(
        f" WHEN {constant(table.name)} THEN [{', '.join(constant(label) for label in table.labels)}]"
        for table in several
    )
    return f"CASE label({node}){whens} ELSE [label({node})] END"


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
    return f"list_filter([{cases}], helios_x -> helios_x IS NOT NULL)"


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


def _is_not_null(renderer: "LadybugRenderer", call: s.Call) -> str:
    return f"({arguments_of(renderer, call, 1)[0]} IS NOT NULL)"


TRUE_OR_FALSE = "CASE lower(trim(cast({0} AS STRING))) WHEN 'true' THEN true WHEN 'false' THEN false END"
SPREAD = "abs(sum(cast({0} AS DOUBLE) * {0}) - sum(cast({0} AS DOUBLE)) * avg({0}))"
WRITERS: dict[str, Writer] = {
    "tofloat": _to_float, "tofloatornull": _to_float, "tointeger": _to_integer, "tointegerornull": _to_integer,
    "tostring": _to_string, "tostringornull": _to_string, "length": _length, "size": _size,
    "char_length": renamed("size"), "character_length": renamed("size"), "substring": _substring, "round": _round,
    "labels": _labels, "keys": _keys, "elementid": _element_id, "date": _date, "datetime": _datetime,
    "localdatetime": _datetime, "duration": _duration, "exists": _is_not_null,
    "toboolean": template(TRUE_OR_FALSE), "tobooleanornull": template(TRUE_OR_FALSE),
    "type": renamed("label"), "startnode": renamed("start_node"), "endnode": renamed("end_node"),
    "relationships": renamed("rels"), "head": template("list_any_value(list_slice({0}, 1, 1))"),
    "last": template("list_any_value(list_slice({0}, -1, -1))"), "tail": template("list_slice({0}, 2, -1)"),
    "isempty": template("(size({0}) = 0)"), "split": renamed("string_split"), "btrim": renamed("trim"),
    "log": renamed("ln"), "exp": template("pow(2.718281828459045, {0})"), "e": template("2.718281828459045"),
    "rand": renamed("random"), "datetime.fromepoch": template("to_timestamp({0})"),
    "datetime.fromepochmillis": renamed("epoch_ms"), "date.truncate": renamed("date_trunc"),
    "datetime.truncate": renamed("date_trunc"), "localdatetime.truncate": renamed("date_trunc"),
    "timestamp": template("to_epoch_ms(current_timestamp())"),
    "stdev": template(f"coalesce(sqrt({SPREAD} / nullif(count({{0}}) - 1, 0)), 0.0)"),
    "stdevp": template(f"coalesce(sqrt({SPREAD} / nullif(count({{0}}), 0)), 0.0)"),
} | dict.fromkeys(
    ("duration.between", "duration.indays", "duration.inmonths", "duration.inseconds", "haversin", "isnan",
     "localtime", "normalize", "point", "point.distance", "point.withinbbox", "time", "valuetype"),
    missing,
)  # fmt: skip
