"""Operators and lists by ladybug's means, where it answers otherwise than openCypher: mostly where something is null.

What an operand's types tell to be different is refused (`same_kind`); what can be written so that it means the same is.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from helios.errors import QueryFailed
from helios.executors.cypher import syntax as s
from helios.executors.cypher.scope import Type

if TYPE_CHECKING:
    from helios.executors.cypher.dialect import LadybugRenderer

SCALARS = (Type.INTEGER, Type.FLOAT, Type.STRING, Type.BOOLEAN, Type.TIME)
COMPARISONS = ("=", "<>", "<", ">", "<=", ">=")
NEVER_NULL = ("collect", "keys", "nodes", "range", "relationships", "split")
"""Functions whose lists hold no null."""
KINDS = {
    Type.INTEGER: "a number", Type.FLOAT: "a number", Type.STRING: "text", Type.BOOLEAN: "true or false",
    Type.TIME: "a date or time", Type.LIST: "a list",
}  # fmt: skip


def same_kind(types: Iterable[Type], where: str) -> None:
    """QueryFailed where values of different kinds meet: openCypher tells 1 from '1', ladybug makes one the other."""
    kinds = sorted({KINDS[type_] for type_ in types if type_ in KINDS})
    if len(kinds) > 1:
        raise QueryFailed(
            f"{where}: {' and '.join(kinds)} meet, which this engine would turn into each other; "
            "use toInteger(), toFloat(), toString() or date()"
        )


def written_twice(renderer: "LadybugRenderer", expression: s.Expression) -> str:
    """An operand for a form that names it several times; QueryFailed for one that differs each time."""
    if any(isinstance(part, s.Call) and part.name == "rand" for part in s.walk(expression)):
        raise QueryFailed("this engine cannot use rand() here; give it a name with WITH first")
    return renderer.write(expression)


def element(renderer: "LadybugRenderer", of: s.Expression, place: str) -> str:
    """The element of a list at a place that counts from 1, or from -1 at the end; null where there is none."""
    if renderer.scope.type_of(of) == Type.NULL:
        return "null"
    refuse_text(renderer, of)
    part = f"list_slice({written_twice(renderer, of)}, {place}, {place})"
    if renderer.scope.element_type(of) in SCALARS:
        return f"list_min({part})"  # of one element; of none it is null, which list_any_value is not
    each = renderer.fresh()
    return f"(CASE WHEN any({each} IN {part} WHERE {each} IS NOT NULL) THEN list_any_value({part}) END)"


def refuse_text(renderer: "LadybugRenderer", of: s.Expression) -> None:
    """QueryFailed for text where a list is expected: ladybug would take its letters."""
    if renderer.scope.type_of(of) == Type.STRING:
        raise QueryFailed("text has no elements; use substring(), left() or right()")


def joined(renderer: "LadybugRenderer", sum_: s.Binary) -> str | None:
    """Text or lists put together with `+`; None for numbers and what is unknown."""
    left, right = renderer.scope.type_of(sum_.left), renderer.scope.type_of(sum_.right)
    if Type.LIST in (left, right):
        if left in SCALARS:
            return f"list_prepend({renderer.write(sum_.right)}, {renderer.write(sum_.left)})"
        if right in SCALARS:
            return f"list_append({renderer.write(sum_.left)}, {renderer.write(sum_.right)})"
        return None
    return _text(renderer, sum_) if Type.STRING in (left, right) else None


def contained(renderer: "LadybugRenderer", test: s.Binary) -> str:
    """`x IN xs`: null where x is not among them but could be a null of theirs."""
    if test.right == s.ListOf(()):
        return "false"
    same_kind((renderer.scope.type_of(test.left), renderer.scope.element_type(test.right)), "IN")
    if never_null(test.right):
        return f"({renderer.write(test.left)} IN {renderer.write(test.right)})"
    found = f"({written_twice(renderer, test.left)} IN {written_twice(renderer, test.right)})"
    each = renderer.fresh()
    missing = f"any({each} IN {renderer.write(test.right)} WHERE {each} IS NULL)"
    return f"(CASE WHEN {found} THEN true WHEN {missing} THEN null ELSE {found} END)"


def compared(renderer: "LadybugRenderer", test: s.Binary) -> str:
    """A comparison of two values of one kind."""
    same_kind(map(renderer.scope.type_of, (test.left, test.right)), test.operator)
    for side in (test.left, test.right):
        if isinstance(side, s.ListOf) and s.Constant(None) in side.items:
            raise QueryFailed(f"{test.operator}: this engine takes two nulls in lists for the same; compare elements")
    return f"({renderer.write(test.left)} {test.operator} {renderer.write(test.right)})"


def holds_text(renderer: "LadybugRenderer", test: s.Binary) -> str:
    """`text CONTAINS part`: every text holds the empty one."""
    plain = f"({renderer.write(test.left)} CONTAINS {renderer.write(test.right)})"
    if isinstance(test.right, s.Constant) and test.right.value:
        return plain
    text, part = (written_twice(renderer, side) for side in (test.left, test.right))
    return f"(CASE WHEN {text} IS NULL OR {part} IS NULL THEN null WHEN size({part}) = 0 THEN true ELSE {plain} END)"


def quantified(renderer: "LadybugRenderer", test: s.Quantifier) -> str:
    """any, all, none, single: null where an element's condition is null and the others leave it open."""
    items = written_twice(renderer, test.items)
    refuse_text(renderer, test.items)
    with renderer.scope.local(test.variable, renderer.scope.element_of(test.items)):
        variable, where = renderer.variable(test.variable), written_twice(renderer, test.where)
    plain = f"{test.kind}({variable} IN {items} WHERE {where})"
    if never_null(test.items) and _tells(test.where, test.variable):
        return plain
    unknown = f"any({variable} IN {items} WHERE ({where}) IS NULL)"
    if test.kind == "single":
        return f"(CASE WHEN {unknown} THEN null ELSE {plain} END)"
    decided = {
        "any": (f"any({variable} IN {items} WHERE {where})", "true", "false"),
        "all": (f"any({variable} IN {items} WHERE NOT ({where}))", "false", "true"),
        "none": (f"any({variable} IN {items} WHERE {where})", "false", "true"),
    }
    condition, then, otherwise = decided[test.kind]
    listed = f"WHEN {items} IS NULL THEN null "
    return f"(CASE {listed}WHEN {condition} THEN {then} WHEN {unknown} THEN null ELSE {otherwise} END)"


def never_null(items: s.Expression) -> bool:
    """Whether a list is known to hold no null."""
    match items:
        case s.ListOf():
            return all(isinstance(item, s.Constant) and item.value is not None for item in items.items)
        case s.Call():
            return items.name in NEVER_NULL
    return False


def _tells(where: s.Expression, variable: str) -> bool:
    """Whether a condition looks at nothing but an element that is not null and constants."""
    plain = (s.Binary, s.Constant, str, bool, int, float)
    return all(isinstance(part, plain) or part == s.Variable(variable) for part in s.walk(where)) and (
        s.Constant(None) not in s.walk(where)
    )


def _text(renderer: "LadybugRenderer", sum_: s.Binary) -> str:
    """All operands of a chain as text; one that is null makes all of it null."""
    operands = _operands(renderer, sum_)
    optional = [operand for operand in operands if not isinstance(operand, s.Constant) or operand.value is None]
    text = " + ".join(_as_text(renderer, operand) for operand in operands)
    if not optional:
        return f"({text})"
    nulls = " OR ".join(f"{written_twice(renderer, operand)} IS NULL" for operand in optional)
    return f"(CASE WHEN {nulls} THEN null ELSE {text} END)"


def _operands(renderer: "LadybugRenderer", expression: s.Expression) -> list[s.Expression]:
    """What a chain of `+` adds to text: numbers on its left are added up first."""
    if (
        not isinstance(expression, s.Binary)
        or expression.operator != "+"
        or renderer.scope.type_of(expression) != Type.STRING
    ):
        return [expression]
    return _operands(renderer, expression.left) + _operands(renderer, expression.right)


def _as_text(renderer: "LadybugRenderer", operand: s.Expression) -> str:
    type_ = renderer.scope.type_of(operand)
    return renderer.write(operand if type_ == Type.STRING else s.Call("tostring", (operand,)))
