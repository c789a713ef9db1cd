"""Wrong settings in plain words: where each was set, what was expected there, what was given."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError


def explain(error: ValidationError, sources: Mapping[str, str]) -> str:
    """One line per wrong value: where it was set, its key, what was expected and what was given."""
    lines: dict[str, str] = {}
    for problem in error.errors():
        names = [str(part) for part in problem["loc"]]
        if not names:  # a rule over several settings, which it names itself
            message = problem["msg"].removeprefix("Value error, ")
            source = next((place for key, place in sources.items() if key in message), "config")
            lines[message] = f"{source}: {message}"
            continue
        key = next((key for key in sources if key == ".".join(names[: key.count(".") + 1])), ".".join(names))
        message = _expected(problem)
        source = sources.get(key, "config")
        lines.setdefault(key, f"{source}: {key}: {message}, got {problem['input']!r}")
    return "\n".join(lines.values())


def _expected(problem: Mapping[str, Any]) -> str:
    """What a setting takes, in plain words."""
    limits = problem.get("ctx", {})
    match problem["type"]:
        case "int_parsing" | "int_type" | "int_from_float":
            return "expected a whole number"
        case "float_parsing" | "float_type" | "finite_number":
            return "expected a number"
        case "bool_parsing" | "bool_type":
            return "expected true or false"
        case "string_type":
            return "expected a text"
        case "tuple_type" | "list_type":
            return "expected a list"
        case "model_type" | "dict_type":
            return "expected settings below it"
        case "greater_than_equal":
            return f"expected at least {limits['ge']:g}"
        case "greater_than":
            return f"expected more than {limits['gt']:g}"
        case "less_than_equal":
            return f"expected at most {limits['le']:g}"
        case "less_than":
            return f"expected less than {limits['lt']:g}"
        case "literal_error":
            return f"expected {limits['expected']}"
    message = str(problem["msg"]).removeprefix("Value error, ")
    return re.sub(r"^Input should be", "expected", message)
