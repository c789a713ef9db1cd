"""JSON, JSON lines and YAML of any shape, as tables, infoboxes and passages (helios.corpus.fields)."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import yaml

from helios.corpus.budget import Nesting, RecordShapeError, check_nesting
from helios.corpus.encoding import broken_reason, decode, is_broken
from helios.corpus.fields import checked, data_blocks, title_of
from helios.corpus.page import page_records
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.source import SourceFile
from helios.errors import RecordError

LINES = (".jsonl", ".ndjson")
_JSON = (".json", ".geojson")
YAML = (".yaml", ".yml")
_YAML_NOTHING = ("~", "null", "Null", "NULL")
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def detect(source: SourceFile) -> bool:
    """By the file name's ending; files of prepared records have readers of their own."""
    return source.suffix in (*LINES, *_JSON, *YAML)


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """The tables and passages of a file; a line of JSON lines that is broken is rejected alone."""
    value = whole(source, rejection)
    value = checked(value, source.budget, size=max(source.size, len(source.head)))
    title = title_of(value) or source.title
    for record in page_records(source.base_id, title, data_blocks(value, source.budget), budget=source.budget):
        yield Parsed(record)


def whole(source: SourceFile, rejection: Rejection) -> Any:
    """The value of a file, of JSON lines a list of those of its lines; RecordShapeError for what is no such file."""
    if source.suffix in LINES:
        return [value for _, value in lines(source, rejection)]
    text = decode(source.read())
    if is_broken(text):
        raise RecordShapeError(broken_reason(text))
    if source.suffix in YAML:
        return _yaml(text)
    check_nesting(source.budget, Nesting().deepest(text.encode()))
    try:
        return _json(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and text.count("\n", 0, error.pos) <= 1:
            return [value for _, value in lines(source, rejection)]
        raise RecordShapeError(f"not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None


def lines(source: SourceFile, rejection: Rejection) -> Iterator[tuple[int, Any]]:
    """(line number from 1, value) of every line of JSON; a broken one is rejected alone."""
    for number, line in source.lines(rejection):
        if not line.strip():
            continue
        try:
            check_nesting(source.budget, Nesting().deepest(line))
            yield number, _json(line.decode("utf-8-sig"))
        except (ValueError, RecordShapeError) as error:
            reason = f"not valid JSON: {error}"
            rejection.reject(
                RecordError(source.path, number, reason), line.decode("utf-8", "backslashreplace").rstrip("\r\n")
            )


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # Python's own limit
        raise RecordShapeError(f"a number of more than {sys.get_int_max_str_digits():,} digits") from None
    except RecursionError:
        raise RecordShapeError("nested too deeply") from None


def _yaml(text: str) -> Any:
    try:
        documents = list(yaml.load_all(text, Loader=_AsWritten))
    except yaml.YAMLError as error:
        raise RecordShapeError(f"not valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise RecordShapeError("nested too deeply") from None
    return documents[0] if len(documents) == 1 else documents


class _AsWritten(_Loader):  # type: ignore[misc]
    """Values as they are written: neither `no` nor `12:30` nor `010` means something else."""

    def construct_scalar(self, node: yaml.ScalarNode) -> str | None:
        return None if not node.style and node.value in _YAML_NOTHING else str(node.value)
