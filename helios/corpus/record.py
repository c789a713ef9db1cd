"""One JSON record to one Table or Passage, whichever of the known schemas it follows.

- ours: {id, title, section_title, section_text, intro, url, header, rows, links} and {id, title, text, url}
- BEIR: {_id, title, text}
- typed units: {id, type: text|table|infobox, title, url, content}
- OTT-QA: {uid, title, section_title, section_text, intro, url, header, data}, cells may be [text, [urls]]
"""

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from helios.config import CorpusBudget
from helios.corpus.budget import STANDARD, RecordShapeError, check, limited
from helios.corpus.shape import INFOBOX_HEADER, shaped_table
from helios.types import Hyperlink, Metadata, Passage, Table, TableKind

Json = Mapping[str, Any]
_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(rf"(?:{_WHOLE.pattern}(?:\.[0-9]*)?|[+-]?\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
NAME_LENGTH = 1 << 16
"""Characters of the name of a field or an attribute, with those of the objects that it is in."""


class Parsed(NamedTuple):
    """What a reader yields: a record and the line where it starts, None where lines mean nothing."""

    record: Table | Passage
    line: int | None = None
    more: bool = False
    """Whether the table goes on: the next ones have more of its rows, and the last one its final titles and header."""


def is_record(value: object) -> bool:
    """Whether a JSON value looks like a table or a passage at all (questions and settings do not)."""
    if not isinstance(value, Mapping) or "question" in value:
        return False
    has_table = "header" in value and ("rows" in value or "data" in value)
    return has_table or "text" in value or ("content" in value and "type" in value)


def record_id(value: object) -> str | None:
    """The id of a JSON record as text, None if it has none."""
    if isinstance(value, Mapping):
        for name in ("id", "_id", "uid"):
            if isinstance(value.get(name), str | int):
                return str(value[name])
    return None


def first_object(head: bytes) -> Json | None:
    """The first object of JSON lines or of an array, from a file's first bytes; None where it is not whole there."""
    try:
        text = head.decode("utf-8-sig", "replace").lstrip("[ \r\n\t")
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, Mapping) else None


def parse_record(value: object, *, check_text: bool = True, budget: CorpusBudget = STANDARD) -> Table | Passage:
    """A JSON object as Table or Passage; RecordShapeError says what is wrong with it.

    `check_text=False` is for a caller who knows that there are neither NULs nor lone surrogates.
    """
    if not isinstance(value, Mapping):
        raise RecordShapeError(f"expected a JSON object, found {type(value).__name__}")
    if check_text:
        _check_text(value)
    if "header" in value and ("rows" in value or "data" in value):
        return _table(value, budget)
    if "content" in value and "type" in value:
        return _unit(value, budget)
    if "text" in value:
        return Passage(
            _id(value),
            _text(value, "title"),
            _text(value, "text"),
            _text(value, "url"),
            metadata=record_metadata(value, budget),
        )
    raise RecordShapeError("neither a table (header and rows) nor a passage (text)")


def _check_text(value: Json) -> None:
    text = json.dumps(value, ensure_ascii=False)
    if "\\u0000" in text and "\0" in "".join(_strings(value)):
        raise RecordShapeError("NUL character in text; the file is damaged or was decoded wrongly")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RecordShapeError("half of a surrogate pair in text; not valid Unicode") from error


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield name
            yield from _strings(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _strings(inner)


def _id(value: Json) -> str:
    found = record_id(value)
    if not found:
        raise RecordShapeError("no id (a non-empty text in `id`, `_id` or `uid`)")
    return found


def _text(value: Json, name: str) -> str:
    text = value.get(name)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise RecordShapeError(f"`{name}` is {type(text).__name__}, expected text")
    return text


def _list(value: Json, name: str) -> Sequence[Any]:
    items = value[name]
    if not isinstance(items, list | tuple):
        raise RecordShapeError(f"`{name}` is {type(items).__name__}, expected a list")
    return items


def _table(value: Json, budget: CorpusBudget) -> Table:
    rows_name = "rows" if "rows" in value else "data"
    rows = _list(value, rows_name)
    for number, row in enumerate(rows):
        if not isinstance(row, list | tuple):
            raise RecordShapeError(f"row {number} is {type(row).__name__}, expected a list of cells")
    check(budget, "cells", len(rows) * max(1, *map(len, rows)) if rows else 0, "cells of the table")
    header = [_cell(cell)[0] for cell in _list(value, "header")]
    cells = [[_cell(cell) for cell in row] for row in rows]
    if not header and not any(cells):
        raise RecordShapeError("a table without columns")
    linked = tuple(
        Hyperlink(row_number, column, url)
        for row_number, row in enumerate(cells)
        for column, (_, urls) in enumerate(row)
        for url in urls
    )
    table = shaped_table(
        _id(value),
        _text(value, "title"),
        header,
        [[text for text, _ in row] for row in cells],
        section=_text(value, "section_title") or _text(value, "section"),
        intro="\n\n".join(filter(None, (_text(value, "intro"), _text(value, "section_text")))),
        url=_text(value, "url"),
        kind=_kind(value),
        budget=budget,
    )
    return _with_links(replace(table, metadata=record_metadata(value, budget)), linked + _links(value))


def _cell(cell: object) -> tuple[object, tuple[str, ...]]:
    """The content of a cell and the pages it links to: plain, or OTT-QA's [text, [urls]]."""
    if not isinstance(cell, list | tuple):
        if isinstance(cell, Mapping):
            raise RecordShapeError("a cell is an object, expected text, a number or [text, [urls]]")
        return cell, ()
    if len(cell) == 2 and isinstance(cell[1], list | tuple) and all(isinstance(url, str) for url in cell[1]):
        return cell[0], tuple(cell[1])
    raise RecordShapeError("a cell is a list, expected text, a number or [text, [urls]]")


def record_metadata(value: Json, budget: CorpusBudget = STANDARD) -> Metadata:
    """The record's own fields; those of an object within are named `outer.inner`."""
    fields = value.get("metadata")
    if fields is None:
        return ()
    if not isinstance(fields, Mapping):
        raise RecordShapeError(f"`metadata` is {type(fields).__name__}, expected an object")
    return tuple(sorted(limited(_scalars(fields, ""), budget)))


def _scalars(fields: Json, prefix: str) -> Iterator[tuple[str, str | float | bool]]:
    for name, value in fields.items():
        check_name(len(prefix) + len(name))
        if isinstance(value, Mapping):
            yield from _scalars(value, f"{prefix}{name}.")
        elif isinstance(value, float) and not math.isfinite(value):
            raise RecordShapeError(f"`metadata.{prefix}{name}` is {value}, expected a finite number")
        elif isinstance(value, str | bool | int | float):
            yield f"{prefix}{name}", value
        elif value is not None:
            kind = type(value).__name__
            raise RecordShapeError(f"`metadata.{prefix}{name}` is {kind}, expected text, a number, true or false")


def field_value(cell: str) -> str | float | bool | None:
    """What a cell says as a field of metadata: a number, a truth value, a text, or nothing."""
    text = cell.strip()
    if not text:
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if not _NUMBER.fullmatch(text) or abs(float(text)) > sys.float_info.max:
        return text
    return int(text) if _WHOLE.fullmatch(text) else float(text)


def check_name(length: int) -> None:
    """RecordShapeError for a name of a field that is too long."""
    if length > NAME_LENGTH:
        raise RecordShapeError(f"the name of a field has {length:,} characters, expected {NAME_LENGTH:,} at most")


def _kind(value: Json) -> TableKind:
    kind = value.get("kind", TableKind.TABLE)
    if kind not in tuple(TableKind):
        raise RecordShapeError(f"`kind` is {kind!r}, expected one of {', '.join(TableKind)}")
    return TableKind(kind)


def _links(value: Json) -> tuple[Hyperlink, ...]:
    links = []
    for link in _list(value, "links") if value.get("links") is not None else ():
        match link:
            case [int(row), int(column), str(passage_id)]:
                links.append(Hyperlink(row, column, passage_id))
            case _:
                raise RecordShapeError(f"link {json.dumps(link)} is not [row, column, passage id]")
    return tuple(links)


def _with_links(table: Table, links: tuple[Hyperlink, ...]) -> Table:
    for link in links:
        if not (0 <= link.row < len(table.rows) and 0 <= link.column < len(table.header)):
            raise RecordShapeError(f"link to cell ({link.row}, {link.column}), which the table does not have")
    return replace(table, hyperlinks=links)


def _unit(value: Json, budget: CorpusBudget) -> Table | Passage:
    """A typed unit: text content, {columns, rows}, or an infobox as (nested) attribute → value."""
    unit_id, title, url, content = (
        _id(value),
        _text(value, "title"),
        _text(value, "url"),
        value["content"],
    )
    match value["type"], content:
        case "text", str():
            return Passage(unit_id, title, content, url, metadata=record_metadata(value, budget))
        case "table", {"columns": list(columns), "rows": list(rows)}:
            record = {"id": unit_id, "title": title, "url": url, "header": columns, "rows": rows}
            return _table(record | {"metadata": value.get("metadata")}, budget)
        case "infobox", Mapping():
            rows = [*limited(_attributes(content, ()), budget)]
            table = shaped_table(unit_id, title, INFOBOX_HEADER, rows, url=url, kind=TableKind.INFOBOX, budget=budget)
            return replace(table, metadata=record_metadata(value, budget))
    raise RecordShapeError(f"a unit of type {value['type']!r} with {type(content).__name__} content")


def _attributes(content: Json, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Rows of an infobox; an attribute inside a group is named "group / attribute"."""
    for name, value in content.items():
        check_name(len(name) + sum(map(len, path)))
        if isinstance(value, Mapping) and value:
            yield from _attributes(value, (*path, name))
        else:
            items = value if isinstance(value, list) else ["" if isinstance(value, Mapping) else value]
            yield " / ".join((*path, name)), " ; ".join(str(item) for item in items if item is not None)
