"""What the samples of a property tell of its values: numbers kept as text, dates, seconds since 1970."""

import re

from helios.routing.formulation.word_forms import name_words
from helios.sources.descriptor import Column

EPOCHS = range(946_684_800, 2_524_608_000)
"""Seconds since 1970 from 2000 to 2050."""


def is_list(column: Column) -> bool:
    """Whether a property holds lists: `STRING[]`, `LIST<STRING>`."""
    return column.type.endswith("[]") or column.type.upper().startswith("LIST")


def number_as_text(column: Column) -> bool:
    """Whether a text property holds numbers, by its samples; identifiers are left as they are."""
    if column.type.lower() not in ("string", "str", "text") or not column.samples:
        return False
    if name_words(column.name)[-1] in ("id", "code", "phone", "fax", "via"):
        return False
    return all(re.fullmatch(r"-?\d+(?:\.\d+)?", sample) for sample in column.samples)


def dated(column: Column) -> bool:
    """Whether a property holds years or dates, by its samples."""
    if not column.samples:
        return False
    if column.type.lower() in ("string", "str", "text"):
        return all(re.match(r"(?:1[5-9]|20)\d\d-\d\d", sample) for sample in column.samples)
    return all(re.fullmatch(r"(?:1[5-9]|20)\d\d", sample) for sample in column.samples)


def is_epoch(column: Column) -> bool:
    """Whether a property counts seconds since 1970, by its samples and its name."""
    if not {"date", "time", "created", "creation", "timestamp", "updated", "at"} & set(name_words(column.name)):
        return False
    return bool(column.samples) and all(s.isdigit() and int(s) in EPOCHS for s in column.samples)
