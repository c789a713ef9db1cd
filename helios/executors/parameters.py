"""How much the parameters of a query may be: `Decimal("1E+300000000")` is short until somebody writes it out."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from helios.errors import QueryRejected
from helios.executors.values import Value

MOST_DIGITS = 4000
"""Of one number, written out."""
MOST_BYTES = 2**20
"""Of all parameters of a query together, as text."""
SMALL = 8


def check_sizes(parameters: Mapping[str, Value]) -> None:
    """QueryRejected for parameters that are too long together, and for a number of too many digits."""
    room = MOST_BYTES
    for name, value in parameters.items():
        pending = [value]
        while pending:
            part = pending.pop()
            match part:
                case Mapping():
                    pending += [*part.keys(), *part.values()]
                case list() | tuple():
                    pending += part
            if _digits(part) > MOST_DIGITS:
                raise QueryRejected(f"a number of a parameter has more than {MOST_DIGITS:,} digits", name)
            room -= SMALL + (len(part) if isinstance(part, bytes | Sequence | Mapping) else 0)
            if room < 0:
                raise QueryRejected(f"the parameters have more than {MOST_BYTES:,} bytes together", name)


def _digits(value: Value) -> int:
    match value:
        case Decimal() if value.is_finite():
            _, digits, exponent = value.as_tuple()
            return len(digits) + abs(int(exponent))
        case int():
            return value.bit_length() // 3
    return 0
