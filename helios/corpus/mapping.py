"""`--map`: which fields of a record of any shape are the title, the text, the id and the address of a passage.

    FieldMap.parse("title=headline,text=body,id=doc.key")

A field within an object is named `outer.inner`. What is not mapped becomes metadata of the passage.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from helios.config import CorpusBudget
from helios.corpus.budget import RecordShapeError, limited
from helios.corpus.encoding import readable
from helios.corpus.record import check_name
from helios.corpus.shape import cell_text
from helios.errors import ConfigError
from helios.types import Passage

Values = Mapping[str, list[Any]]
"""The plain values of a record by the name of their field; a list of several has them all, an empty field has none."""
_FIELDS_NAMED = 30


@dataclass(frozen=True, slots=True)
class FieldMap:
    """Names of fields; `id` and `url` may be left out."""

    title: str
    text: str
    id: str = ""
    url: str = ""

    @classmethod
    def parse(cls, written: str) -> "FieldMap":
        """What `--map` says, such as `title=headline,text=body`; ConfigError for what it does not know or lacks."""
        roles = [field.name for field in fields(cls)]
        found: dict[str, str] = {}
        for part in written.split(","):
            role, _, name = map(str.strip, part.partition("="))
            if role not in roles or not name or role in found:
                raise ConfigError(
                    f"--map {written}: {part!r} is not one of title=FIELD, text=FIELD, id=FIELD, url=FIELD, each once"
                )
            found[role] = name
        if lacking := [role for role in ("title", "text") if role not in found]:
            raise ConfigError(f"--map {written}: lacks {lacking[0]}=FIELD; expected title=FIELD,text=FIELD at least")
        return cls(**found)

    def roles(self) -> dict[str, str]:
        """The field of every role that is mapped."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {role: name for role, name in named.items() if name}

    def unknown(self, names: Mapping[str, object]) -> str:
        """Which of the mapped fields are not among `names`, and which those are; empty where all are."""
        lost = [f"{name!r} ({role})" for role, name in self.roles().items() if name not in names]
        if not lost:
            return ""
        known = ", ".join(list(names)[:_FIELDS_NAMED]) or "none"
        more = f" and {len(names) - _FIELDS_NAMED} more" if len(names) > _FIELDS_NAMED else ""
        return f"no record has the field {' or '.join(lost)} that --map names; fields here: {known}{more}"

    def passage(self, record: object, *, default_id: str, budget: CorpusBudget) -> Passage:
        """A record as a passage; RecordShapeError where it lacks a field, or its text or id is empty."""
        values = field_values(record)
        roles = self.roles()
        for role, name in roles.items():
            if name not in values:
                raise RecordShapeError(f"no field {name!r}, its {role} by --map")
        for role in ("text", "id"):
            if role in roles and not _joined(values[roles[role]], "\n"):
                raise RecordShapeError(f"the field {roles[role]!r}, its {role} by --map, is empty")
        own = {role: _joined(values[name], "\n" if role == "text" else "; ") for role, name in roles.items()}
        others = ((name, _plain(found)) for name, found in values.items() if name not in roles.values() and found)
        return Passage(
            own.get("id", default_id), " ".join(own["title"].split()), own["text"], own.get("url", ""),
            metadata=tuple(sorted(limited(others, budget))),
        )  # fmt: skip


def field_values(record: object) -> Values:
    """The values of a record's fields, those of objects within by `outer.inner`; RecordShapeError for no object."""
    if not isinstance(record, Mapping):
        raise RecordShapeError(f"expected an object with fields, found {type(record).__name__}")
    values: dict[str, list[Any]] = {}
    for name, value in _leaves(record, ""):
        known = values.setdefault(name, [])
        if value is not None and value != "" and not (isinstance(value, float) and not math.isfinite(value)):
            known.append(value)
    return values


def _leaves(value: object, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for inner, member in value.items():
            check_name(len(name) + len(str(inner)))
            yield from _leaves(member, f"{name}.{readable(str(inner))}" if name else readable(str(inner)))
    elif isinstance(value, list | tuple):
        yield name, None
        for member in value:
            yield from _leaves(member, name)
    else:
        yield name, value


def _plain(found: list[Any]) -> str | float | bool:
    """The value of a field of metadata: as it is, several as one text."""
    (value, *more) = found
    return value if isinstance(value, bool | int | float) and not more else _joined(found, "; ")


def _joined(found: list[Any], by: str) -> str:
    return by.join(filter(None, (readable(cell_text(value)) for value in found)))
