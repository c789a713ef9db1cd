"""Documents of a corpus: JSON lines with an id, a title and a text; BEIR's `corpus.jsonl` is one such file.

A text that is no string is told in words: a table's rows as `column: cell`, any other nesting as `key: value`.
"""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from helios.errors import SourceUnavailable

FILES = ("corpus.jsonl", "corpus.jsonl.gz", "documents.jsonl", "documents.jsonl.gz")
"""Names of the file of documents in a folder."""
IDS = ("_id", "id", "doc_id", "document_id")
TITLES = ("title", "name")
TEXTS = ("text", "content", "contents", "body", "abstract")
HEADERS = ("columns", "header", "headers")


@dataclass(frozen=True, slots=True)
class Document:
    """One document."""

    document_id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Fields:
    """Names of the fields of a record; empty ones are told from the first record."""

    id: str = ""
    title: str = ""
    text: str = ""


def documents_file(path: Path) -> Path:
    """The file of documents itself, or the one in a folder; SourceUnavailable where there is none."""
    if path.is_file():
        return path
    for name in FILES:
        if (path / name).is_file():
            return path / name
    raise SourceUnavailable(f"{path}: expected an index folder, or documents in {' or '.join(FILES)}")


def read_documents(file: Path, fields: Fields) -> Iterator[Document]:
    """All documents of a file in their order; SourceUnavailable names the file, the line and what is wrong there.

    An id that stands twice would make results ambiguous and is refused.
    """
    known: Fields | None = None
    seen: set[str] = set()
    with _opened(file) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"{file}:{number}"
            record = _record(line, where)
            known = known or _fields(record, fields, where)
            if known.id not in record:
                raise SourceUnavailable(f"{where}: no field {known.id!r}")
            document_id = str(record[known.id])
            if document_id in seen:
                raise SourceUnavailable(f"{where}: the id {document_id!r} stands a second time")
            seen.add(document_id)
            title = in_words(record.get(known.title, "")) if known.title else ""
            yield Document(document_id, title, in_words(record.get(known.text, "")))


def in_words(value: Any) -> str:
    """Any JSON value as text to search."""
    match value:
        case None:
            return ""
        case str():
            return value
        case Mapping():
            header = next((value[name] for name in HEADERS if isinstance(value.get(name), list)), None)
            rows = value.get("rows")
            if header is not None and isinstance(rows, list):
                return "\n".join(_row(header, row) for row in rows)
            return "\n".join(f"{name}: {words}" for name, item in value.items() if (words := in_words(item)))
        case list() | tuple():
            return "\n".join(words for item in value if (words := in_words(item)))
    return str(value)


def _row(header: Sequence[Any], row: Any) -> str:
    if not isinstance(row, list):
        return in_words(row)
    names = [*map(str, header), *[""] * len(row)]
    cells = ((name, in_words(cell)) for name, cell in zip(names, row, strict=False))
    return " ; ".join(f"{name}: {cell}" if name else cell for name, cell in cells if cell)


def _record(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise SourceUnavailable(f"{where}: not JSON ({error})") from None
    if not isinstance(record, dict):
        raise SourceUnavailable(f"{where}: expected an object, got {type(record).__name__}")
    return record


def _fields(record: Mapping[str, Any], asked: Fields, where: str) -> Fields:
    for name in (asked.id, asked.title, asked.text):
        if name and name not in record:
            raise SourceUnavailable(f"{where}: no field {name!r}; it has {', '.join(record)}")
    return Fields(
        asked.id or _first(record, IDS, "id_field", where),
        asked.title or next((name for name in TITLES if name in record), ""),
        asked.text or _first(record, TEXTS, "text_field", where),
    )


def _first(record: Mapping[str, Any], names: Sequence[str], key: str, where: str) -> str:
    for name in names:
        if name in record:
            return name
    raise SourceUnavailable(
        f"{where}: none of the fields {', '.join(names)}; name the right one of {', '.join(record)} with {key}"
    )


@contextmanager
def _opened(file: Path) -> Iterator[IO[str]]:
    try:
        with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
            yield lines
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise SourceUnavailable(f"{file}: cannot be read ({error})") from None
