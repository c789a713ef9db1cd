"""Filters: which tables and passages a search may see, in a small typed language.

    source = 'sales.csv'
    year >= 1990 and (region = 'north' or region = 'south') and not draft = true
    table.title ~ '*Olympic*' and passage.source in ('a.md', 'b.md')
    owner exists

A field is `id`, `title`, `section`, `source` (the file that a record came from), `kind` (table, infobox or passage),
`url`, or one of the records' own (`metadata` in JSON lines, columns of a sidecar file). Names with other characters
stand in double quotes, as in table."next year". Operators: = != < <= > >=, `~` (a pattern with * and ?, whatever the
case), `in (…)`, `exists`; values are 'text', numbers, true and false. A value is compared with values of its own type:
to others it is neither equal nor in any order. A record without a field, or with an empty one of those named here,
meets no condition on it.

A condition on a plain field is asked of every record; `table.` and `passage.` ask those alone: for the others the
condition is left out, and where none is left they pass.
A search with a filter finds what it would find if the index held only the records that pass (how rare words are is
still counted over all), so that nothing of the others is shown, read or counted on the way.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import translate
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from helios.errors import WhereError

if TYPE_CHECKING:
    from helios.corpus.store import CorpusStore
    from helios.corpus.view import CorpusView

Scalar = str | float | bool
Mask = NDArray[np.bool_]
BUILT_IN = ("id", "title", "section", "source", "kind", "url")
MAX_CHARACTERS = 10_000
MAX_DEPTH = 50
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>'(?:[^']|'')*') | (?P<name>(?:(?:table|passage)\.)?"(?:[^"]|"")*"|[^\W\d]\w*(?:[.-]\w+)*) |
    (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?) | (?P<sign>!=|<=|>=|[=<>~(),])
    )""",
    re.VERBOSE,
)
_WORDS = frozenset(("and", "or", "not", "in", "exists", "true", "false"))
Operator = Literal["=", "!=", "<", "<=", ">", ">=", "~", "in", "exists"]


@dataclass(frozen=True, slots=True)
class Field:
    """A field, of tables or passages alone where it says so."""

    name: str
    of: Literal["", "table", "passage"] = ""

    def __str__(self) -> str:
        plain = re.fullmatch(r"[^\W\d]\w*", self.name) and self.name.lower() not in _WORDS
        name = self.name if plain else '"' + self.name.replace('"', '""') + '"'
        return f"{self.of}.{name}" if self.of else name


@dataclass(frozen=True, slots=True)
class Condition:
    """A field compared with values."""

    field: Field
    operator: Operator
    values: tuple[Scalar, ...] = ()

    def __str__(self) -> str:
        if self.operator == "exists":
            return f"{self.field} exists"
        shown = ", ".join(map(_shown, self.values))
        return f"{self.field} in ({shown})" if self.operator == "in" else f"{self.field} {self.operator} {shown}"


@dataclass(frozen=True, slots=True)
class Combined:
    """Conditions of which all, any, or (with one) not one must hold."""

    operator: Literal["and", "or", "not"]
    parts: "tuple[Expression, ...]"

    def __str__(self) -> str:
        if self.operator == "not":
            return f"not ({self.parts[0]})"
        return f" {self.operator} ".join(
            f"({part})" if isinstance(part, Combined) else str(part) for part in self.parts
        )


Expression = Condition | Combined


@dataclass(frozen=True, slots=True)
class Where:
    """A filter; `str` gives it back in the language."""

    expression: Expression

    @classmethod
    def parse(cls, text: str) -> "Where":
        """Read a filter; WhereError says where it is wrong and what was expected."""
        if len(text) > MAX_CHARACTERS:
            raise WhereError(f"the filter has {len(text)} characters, at most {MAX_CHARACTERS} are read")
        return cls(_Parser(text).whole())

    def __str__(self) -> str:
        return str(self.expression)

    def nodes(self, corpus: "CorpusStore | CorpusView") -> Mask:
        """Which nodes of a corpus pass: segments in their order, then passages.

        WhereError for a field that no record has, and for a built-in one compared with a number.
        """
        tables, passages = _Records(corpus, "table"), _Records(corpus, "passage")
        for field in _fields(self.expression):
            _check_known(field, tables, passages)
        of_tables, of_passages = (_passing(_evaluate(self.expression, side), side) for side in (tables, passages))
        rows = np.diff(corpus.segment_offsets)
        return np.concatenate([np.repeat(of_tables, rows), of_passages])


class _Records:
    """Fields of all tables, or of all passages, of a corpus."""

    def __init__(self, corpus: "CorpusStore | CorpusView", of: Literal["table", "passage"]) -> None:
        self.of = of
        self.records = corpus.tables if of == "table" else corpus.passages
        self._metadata: list[Mapping[str, Any]] | None = None

    def __len__(self) -> int:
        return len(self.records)

    @property
    def metadata(self) -> "list[Mapping[str, Any]]":
        """The records' own fields."""
        if self._metadata is None:
            self._metadata = [json.loads(text) if text else {} for text in self.records.column("metadata")]
        return self._metadata

    def values(self, name: str) -> "Sequence[Any]":
        """The values of a field, None where a record has none."""
        if name == "kind" and self.of == "passage":
            return ["passage"] * len(self)
        if name == "section" and self.of == "passage":
            return [None] * len(self)
        if name in BUILT_IN:
            return [value or None for value in self.records.column(name)]
        return [record.get(name) for record in self.metadata]

    def names(self) -> set[str]:
        """Fields of the records' own."""
        return {name for record in self.metadata for name in record}


def _evaluate(expression: Expression, records: _Records) -> Mask | None:
    """Which records meet an expression; None where it does not concern them."""
    if isinstance(expression, Condition):
        return _met(expression, records) if expression.field.of in ("", records.of) else None
    known = [found for part in expression.parts if (found := _evaluate(part, records)) is not None]
    if not known:
        return None
    if expression.operator == "not":
        return ~known[0]
    combine = np.logical_and if expression.operator == "and" else np.logical_or
    return np.asarray(combine.reduce(known), bool)


def _passing(met: Mask | None, records: _Records) -> Mask:
    return np.ones(len(records), bool) if met is None else met


def _met(condition: Condition, records: _Records) -> Mask:
    test = _test(condition)
    values = records.values(condition.field.name)
    known: dict[Any, bool] = {}
    found = np.zeros(len(records), bool)
    for place, value in enumerate(values):
        if value is None:
            continue
        key = (type(value), value)
        met = known.get(key)
        if met is None:
            met = known[key] = test(value)
        found[place] = met
    return found


def _test(condition: Condition) -> "Callable[[Scalar], bool]":
    """Whether a value, which is there, meets a condition."""
    values = condition.values
    match condition.operator:
        case "exists":
            return lambda value: True
        case "in":
            return lambda value: any(_equal(value, one) for one in values)
        case "=":
            return lambda value: _equal(value, values[0])
        case "!=":
            return lambda value: not _equal(value, values[0])
        case "~":
            plain = str(values[0]).casefold().replace("[", "[[]")  # for `translate` it begins a set of characters
            pattern = re.compile(translate(plain))
            return lambda value: isinstance(value, str) and bool(pattern.match(value.casefold()))
        case operator:
            return lambda value: _ordered(value, operator, values[0])


def _kind(value: Scalar) -> str:
    return "truth" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def _equal(value: Scalar, other: Scalar) -> bool:
    return _kind(value) == _kind(other) and value == other


def _ordered(value: Scalar, operator: str, other: Scalar) -> bool:
    if _kind(value) != _kind(other) or _kind(value) == "truth":
        return False
    less, equal = value < other, value == other  # type: ignore[operator]
    return {"<": less, "<=": less or equal, ">": not less and not equal, ">=": not less}[operator]


def _fields(expression: Expression) -> "Iterator[Condition]":
    if isinstance(expression, Condition):
        yield expression
    else:
        for part in expression.parts:
            yield from _fields(part)


def _check_known(condition: Condition, tables: _Records, passages: _Records) -> None:
    """WhereError for a field that nothing has, and for a text that is compared with a number."""
    name = condition.field.name
    if name in BUILT_IN:
        wrong = [value for value in condition.values if not isinstance(value, str)]
        if wrong:
            raise WhereError(f"{name} is text, but is compared with {_shown(wrong[0])}: put the value in single quotes")
        return
    sides = [side for side in (tables, passages) if condition.field.of in ("", side.of)]
    known = set().union(*(side.names() for side in sides))
    if name not in known:
        names = sorted({*BUILT_IN, *known})
        near = get_close_matches(name, names, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"fields: {', '.join(names[:30])}"
        raise WhereError(f"no record has the field {name!r}; {hint}")


def _shown(value: Scalar) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value + 0).removesuffix(".0")  # no minus before 0


class _Parser:
    """Recursive descent over the tokens of a filter."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._split())
        self.at = 0
        self.depth = 0

    def whole(self) -> Expression:
        if not self.tokens:
            raise WhereError("the filter is empty; expected something like year >= 1990")
        found = self._any()
        if self.at < len(self.tokens):
            raise self._error("`and`, `or` or the end")
        return found

    def _split(self) -> "Iterator[tuple[str, str, int]]":
        position = 0
        while position < len(self.text.rstrip()):
            found = _TOKEN.match(self.text, position)
            if found is None:
                shown = self.text[position : position + 20].strip()
                raise WhereError(f"filter, character {position + 1}: cannot read {shown!r}")
            kind = str(found.lastgroup)
            yield kind, found[kind], found.start(kind)
            position = found.end()

    def _any(self) -> Expression:
        return self._joined("or", self._all)

    def _all(self) -> Expression:
        return self._joined("and", self._one)

    def _joined(self, word: Literal["and", "or"], part: "Callable[[], Expression]") -> Expression:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Combined(word, tuple(parts))

    def _one(self) -> Expression:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise WhereError(f"the filter is nested more than {MAX_DEPTH} deep")
        try:
            if self._take("not"):
                return Combined("not", (self._one(),))
            if self._take("("):
                inner = self._any()
                self._expect(")")
                return inner
            return self._condition()
        finally:
            self.depth -= 1

    def _condition(self) -> Condition:
        field = self._field()
        if self._take("exists"):
            return Condition(field, "exists")
        if self._take("in"):
            self._expect("(")
            values = [self._value()]
            while self._take(","):
                values.append(self._value())
            self._expect(")")
            return Condition(field, "in", tuple(values))
        for operator in ("!=", "<=", ">=", "=", "<", ">", "~"):
            if self._take(operator):
                value = self._value()
                if operator == "~" and not isinstance(value, str):
                    raise self._error("a pattern in single quotes", at=self.at - 1)
                return Condition(field, operator, (value,))
        raise self._error("one of = != < <= > >= ~, `in` or `exists`")

    def _field(self) -> Field:
        kind, text, _ = self.tokens[self.at] if self.at < len(self.tokens) else ("", "", 0)
        if kind != "name" or text.lower() in _WORDS:
            raise self._error("the name of a field")
        self.at += 1
        side, dot, name = text.partition(".")
        if not dot or side not in ("table", "passage"):
            side, name = "", text
        name = name[1:-1].replace('""', '"') if name.startswith('"') else name
        return Field(name, side)  # type: ignore[arg-type]

    def _value(self) -> Scalar:
        kind, text, _ = self.tokens[self.at] if self.at < len(self.tokens) else ("", "", 0)
        self.at += 1
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            if abs(float(text)) > sys.float_info.max:
                raise self._error("a number below 1e308", at=self.at - 1)
            return int(text) if text.lstrip("+-").isdecimal() else float(text)
        if kind == "name" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise self._error("a value: 'text', a number, true or false", at=self.at - 1)

    def _take(self, wanted: str) -> bool:
        if self.at < len(self.tokens):
            kind, text, _ = self.tokens[self.at]
            if (kind == "sign" and text == wanted) or (kind == "name" and text.lower() == wanted):
                self.at += 1
                return True
        return False

    def _expect(self, wanted: str) -> None:
        if not self._take(wanted):
            raise self._error(f"`{wanted}`")

    def _error(self, expected: str, *, at: int | None = None) -> WhereError:
        place = self.at if at is None else at
        if place >= len(self.tokens):
            return WhereError(f"the filter {self.text.strip()!r} ends too early: expected {expected}")
        _, text, position = self.tokens[place]
        return WhereError(f"filter, character {position + 1}: expected {expected}, found {text[:50]!r}")
