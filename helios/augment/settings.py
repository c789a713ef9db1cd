"""What a person says of a database that its catalogue does not: keys, times, and which columns a question is given.

    keys: ["tickets.customer_id -> customers.id", "lines(order_no, shop) -> orders(no, shop)"]
    primary: {lines: [order_no, shop, position]}
    time: {tickets: opened, replies: sent}
    exclude: [customers.phone, "*.password", votes]
    mask: [customers.email]
    kinds: {tickets.priority: category}
    depth: 2

All of it is optional. Names are compared without capitals; `*` and `?` stand for any characters and for one.
"""

import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, field_validator

from helios.augment.context import Kind
from helios.config import Section
from helios.errors import ConfigError
from helios.sources.descriptor import ForeignKey

_SIDE = re.compile(r"\s*([^\s.(),]+)\s*(?:\.\s*([^\s.(),]+)|\(([^()]+)\))\s*")
MOST_ATTRIBUTES = 10_000


class AugmentSettings(Section):
    """How a context is gathered."""

    keys: tuple[str, ...] = ()
    """Keys that the database does not declare: `table.column -> table.column`, `table(a, b) -> table(a, b)`."""
    primary: dict[str, tuple[str, ...]] = {}
    """The columns that name a row, for tables whose primary key is not declared."""
    time: dict[str, str | None] = {}
    """The column that says when a row was written; null for a table whose rows have no time."""
    include: tuple[str, ...] = ()
    """Tables (`customers`) and columns (`customers.name`) whose values a question is given; none: all of them."""
    exclude: tuple[str, ...] = ()
    """Tables and columns that are not read; keys over them are not followed."""
    mask: tuple[str, ...] = ()
    """Columns whose values are counted, and never given."""
    kinds: dict[str, Kind] = {}
    """What the values of a column are, where it is not to be guessed: text, category, number, date."""
    depth: int = Field(default=2, ge=0, le=6)
    """Keys that are followed one after another; tables that only join two others are not counted."""
    per_column: int = Field(default=30, ge=1, le=1000)
    """Values of a column at most; more are sampled."""
    attributes: int = Field(default=200, ge=1, le=MOST_ATTRIBUTES)
    """Values of all columns together at most."""
    characters: int = Field(default=1500, ge=16, le=100_000)
    """Of one value; longer texts are cut."""
    seed: int = 0
    """Another seed samples other rows."""
    seconds: float = Field(default=2.0, gt=0.0, le=600.0)
    """After so long what is there is given, and it is said that more was to come."""

    @field_validator("keys")
    @classmethod
    def _readable(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        for key in keys:
            read_key(key)
        return keys

    @field_validator("primary", mode="before")
    @classmethod
    def _listed(cls, primary: Any) -> Any:
        if not isinstance(primary, dict):
            return primary
        return {table: (names,) if isinstance(names, str) else names for table, names in primary.items()}


def read_key(text: str) -> tuple[str, ForeignKey]:
    """A key of the settings: the table that has it, and what it refers to; ValueError."""
    left, arrow, right = text.partition("->")
    sides = [_SIDE.fullmatch(side) for side in (left, right)]
    if not arrow or None in sides:
        raise ValueError(f"{text!r}: expected `table.column -> table.column` or `table(a, b) -> table(a, b)`")
    (table, own), (other, referred) = (_names(side) for side in sides if side is not None)
    if len(own) != len(referred):
        raise ValueError(f"{text!r}: {len(own)} columns cannot refer to {len(referred)}")
    return table, ForeignKey(own, other, referred)


def read_settings(path: Path | str) -> AugmentSettings:
    """The settings of a YAML file; ConfigError names the file and every wrong key."""
    path = Path(path).expanduser()
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not YAML ({' '.join(str(error).split())[:200]})") from None
    if document is not None and not isinstance(document, dict):
        raise ConfigError(f"{path}: expected settings such as `keys:` and `time:`, got {type(document).__name__}")
    try:
        return AugmentSettings.model_validate(document or {})
    except ValidationError as error:
        lines = [
            f"{path}: {'.'.join(str(part) for part in problem['loc'])}: {problem['msg'].removeprefix('Value error, ')}"
            for problem in error.errors(include_input=False, include_url=False)
        ]
        raise ConfigError("\n".join(lines)) from None


def _names(side: re.Match[str]) -> tuple[str, tuple[str, ...]]:
    columns = (side[2],) if side[2] else tuple(name.strip() for name in side[3].split(","))
    return side[1], columns
