"""A sidecar file: fields of records beside the corpus, for filters (`helios.corpus.where`).

A CSV or TSV with a header, or JSON lines, that has a column `id`: the id of a record, or the name of a file of the
corpus, whose records it then is about. Its other columns are fields; what a record says of itself counts more, and a
line about the record more than one about its file. In CSV a value that reads as a number is one (with zeros in front it
is a code, and a text), `true` and `false` are truth values, an empty one is none, and a column without a name is passed
over.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from helios.corpus.budget import RecordShapeError
from helios.corpus.encoding import decode
from helios.corpus.readers.delimited import sniff_delimiter
from helios.corpus.record import field_value, record_metadata
from helios.errors import CorpusError, RecordError
from helios.types import Metadata, Passage, Table

Fields = Mapping[str, str | float | bool]


class Sidecar:
    """Fields by id."""

    def __init__(self, fields: Mapping[str, Fields]) -> None:
        self._fields = fields

    @classmethod
    def read(cls, path: Path) -> "Sidecar":
        """Read a file; CorpusError names the line and what is wrong with it."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise CorpusError(f"{path}: cannot be read ({error.strerror})") from None
        lines = _json_lines(path, content) if path.suffix in (".jsonl", ".ndjson") else _delimited(path, content)
        fields: dict[str, Fields] = {}
        for number, about, own in lines:
            if about in fields:
                raise RecordError(path, number, f"{about!r} has a line already")
            fields[about] = own
        return cls(fields)

    def completed(self, record: Table | Passage) -> Table | Passage:
        """A record with the fields that the file has for it and for its source."""
        record_id = record.table_id if isinstance(record, Table) else record.passage_id
        known = {**self._fields.get(record.source, {}), **self._fields.get(record_id, {}), **dict(record.metadata)}
        metadata: Metadata = tuple(sorted(known.items()))
        return replace(record, metadata=metadata) if metadata else record


def _json_lines(path: Path, content: bytes) -> Iterator[tuple[int, str, Fields]]:
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value: Any = json.loads(line)
            about = value.pop("id")
            if isinstance(about, bool) or not isinstance(about, str | int) or about == "":
                raise RecordShapeError("`id` must be a text or a whole number")
            yield number, str(about), dict(record_metadata({"metadata": value}))
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError, RecordShapeError) as error:
            raise RecordError(path, number, f"expected an object with an `id` and plain fields ({error})") from None


def _delimited(path: Path, content: bytes) -> Iterator[tuple[int, str, Fields]]:
    text = decode(content)
    reader = csv.DictReader(
        io.StringIO(text, newline=""), delimiter=sniff_delimiter(text[: 1 << 16], suffix=path.suffix), strict=True
    )
    try:
        names = [name for name in reader.fieldnames or () if name]
        if "id" not in names:
            raise RecordError(path, 1, "no column `id`: it names the records, or the files, that the fields are of")
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise RecordError(path, 1, f"two columns are called {twice!r}")
        for row in reader:
            about = row.pop("id")
            extra = row.pop(None, None)
            if extra is not None:
                raise RecordError(path, reader.line_num, "more cells than the header has names")
            if not about:
                raise RecordError(path, reader.line_num, "no `id`")
            own = {name: value for name, cell in row.items() if name and (value := field_value(cell or "")) is not None}
            yield reader.line_num, about, own
    except csv.Error as error:
        raise RecordError(path, reader.reader.line_num, f"not valid CSV: {error}") from None
