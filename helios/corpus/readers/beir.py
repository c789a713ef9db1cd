"""BEIR: corpus.jsonl with {_id, title, text}; its queries and judgements are no corpus."""

import json
from collections.abc import Iterator

from helios.corpus.readers import jsonl
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.source import SourceFile


def detect(source: SourceFile) -> bool:
    """A JSON-lines file whose first record has `_id` and `text`, the queries of a corpus excepted."""
    if source.suffix != ".jsonl" or not jsonl.detect(source):
        return False
    try:
        first = json.loads(source.head.split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "_id" in first and "text" in first


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Passages in file order."""
    return jsonl.read(source, rejection)
