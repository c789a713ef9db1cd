"""Execution match: do two queries give the same rows?

The rules are those of Spider's test-suite evaluation, with the strictness about duplicates kept:

- rows are a multiset; their order counts only where the gold query orders them (`ordered`);
- columns may stand in any order, but their number must agree, and one order must fit all rows;
- numbers are equal by value: 1, 1.0, True and Decimal("1.00") are one value, floats to nine significant digits;
- text and numbers differ: "1" is not 1 (Spider and BIRD compare Python values, where the two differ as well);
- NULL equals NULL alone; dates and times equal their ISO text, `T` or a space between the two;
- no rows equal no rows, whatever the columns are.

Spider's script drops DISTINCT from both queries before it runs them unless it is told to keep it; here queries run
as they are, so a missing DISTINCT fails where it shows. BIRD compares sets of rows with the columns in the gold's order
(`columns="same"`, `duplicates=False`, never ordered).
"""

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import Literal

from helios.executors.values import Value, plain

Key = Hashable
DIGITS = 9
"""Significant digits of a number with a fraction."""
ISO = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d(?::\d\d)?.*)")


def rows_match(
    rows: Sequence[Sequence[Value]], gold: Sequence[Sequence[Value]], *,
    ordered: bool, columns: Literal["any", "same"] = "any", duplicates: bool = True,
) -> bool:  # fmt: skip
    """Whether rows agree with the gold rows; see the module for the rules."""
    if not rows or not gold:
        return len(rows) == len(gold)
    if len(rows[0]) != len(gold[0]):
        return False
    found, expected = _keys(rows), _keys(gold)
    if not ordered and not duplicates:
        found, expected = list(dict.fromkeys(found)), list(dict.fromkeys(expected))
    if len(found) != len(expected):
        return False
    if columns == "same":
        return found == expected if ordered else Counter(found) == Counter(expected)
    if ordered:
        return Counter(zip(*found, strict=True)) == Counter(zip(*expected, strict=True))
    return _some_order_fits(list(zip(*found, strict=True)), list(zip(*expected, strict=True)))


def is_ordered(query: str) -> bool:
    """Whether a gold query orders its rows (Spider's test: the words ORDER BY occur)."""
    return re.search(r"\border\s+by\b", query, re.IGNORECASE) is not None


def value_key(value: Value) -> Key:
    """A hashable that is equal for values that count as equal."""
    match value:
        case None:
            return ("null",)
        case bool() | int():
            return int(value)
        case float() | Decimal():
            return _number(value)
        case datetime() | date() | time():
            return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
        case str():
            return ISO.sub(r"\1 \2", value) if ISO.fullmatch(value) else value
        case list() | tuple():
            return ("list", *map(value_key, value))
    return repr(plain(value))


def _number(value: float | Decimal) -> Key:
    if isinstance(value, Decimal):
        if not value.is_finite():
            return str(value).lower()
        if value == value.to_integral_value():
            return int(value)
    number = float(value)
    if not isfinite(number):
        return str(number).lower()
    rounded = number if number.is_integer() else float(f"{number:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded


def _keys(rows: Sequence[Sequence[Value]]) -> list[tuple[Key, ...]]:
    return [tuple(map(value_key, row)) for row in rows]


def _some_order_fits(found: list[tuple[Key, ...]], expected: list[tuple[Key, ...]]) -> bool:
    """Backtrack over the found columns (each as its values from the first row to the last)."""
    totals = [Counter(column) for column in found]
    prefixes = [Counter(zip(*expected[: n + 1], strict=True)) for n in range(len(expected))]
    wanted = [Counter(column) for column in expected]

    def extend(chosen: list[int]) -> bool:
        depth = len(chosen)
        if depth == len(expected):
            return True
        tried: set[tuple[Key, ...]] = set()
        for i, column in enumerate(found):
            if i in chosen or totals[i] != wanted[depth] or column in tried:
                continue
            tried.add(column)
            rows = Counter(zip(*(found[j] for j in (*chosen, i)), strict=True))
            if rows == prefixes[depth] and extend([*chosen, i]):
                return True
        return False

    return extend([])
