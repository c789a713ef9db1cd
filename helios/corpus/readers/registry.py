"""`read_corpus`: find the files, recognise each one's format, yield its records, watch over ids."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from helios.corpus.readers import jsonl
from helios.corpus.rejects import OnError, Rejection, RejectsWriter
from helios.corpus.seen import SeenIds
from helios.corpus.source import SourceFile
from helios.errors import CorpusError, RecordError
from helios.types import Passage, Table

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: how to recognise it and how to read it."""

    name: str
    detect: Callable[[SourceFile], bool]
    read: Callable[[SourceFile, Rejection], Iterator[Table | Passage]]
    repeats_passages: bool = False
    """Files of this format repeat passages among each other; the first one counts and none is an error."""


FORMATS: tuple[Format, ...] = (Format("jsonl", jsonl.detect, jsonl.read),)
"""Every known format; the first that recognises a file reads it."""


def read_corpus(
    path: Path | str, *, on_error: OnError = "stop", rejects: RejectsWriter | None = None
) -> Iterator[Table | Passage]:
    """Tables and passages of a file or a folder (recursively, in sorted order), always in the same order.

    Files in a folder that are no corpus (questions, judgements, settings) are passed over. With
    `on_error="stop"` the first bad record raises RecordError; with "skip" it is written to `rejects`
    and the rest is kept. CorpusError if nothing can be read at all.
    """
    path = Path(path)
    rejection = Rejection(on_error, rejects)
    return _records(path, rejection)


def _records(path: Path, rejection: Rejection) -> Iterator[Table | Passage]:
    seen_tables, seen_passages = SeenIds(), SeenIds()
    readable = False
    for source in _sources(path, rejection):
        known = next((known for known in FORMATS if known.detect(source)), None)
        if known is None:
            log.info("%s: not a corpus file, passed over", source.path)
            continue
        readable = True
        for record in known.read(source, rejection):
            is_table = isinstance(record, Table)
            record_id = record.table_id if isinstance(record, Table) else record.passage_id
            if (seen_tables if is_table else seen_passages).add(record_id):
                yield record
            elif is_table or not known.repeats_passages:
                what = "table" if is_table else "passage"
                error = RecordError(
                    source.path, None, f"duplicate {what} id {record_id!r}", record_id=record_id
                )
                rejection.reject(error, repr(record))
    if not readable:
        names = ", ".join(known.name for known in FORMATS)
        raise CorpusError(f"{path}: no file that is a corpus; known formats: {names}")


def _sources(path: Path, rejection: Rejection) -> Iterator[SourceFile]:
    if path.is_file():
        yield SourceFile.open(path, path.name)
        return
    if not path.is_dir():
        raise CorpusError(f"{path}: no such file or folder")
    files = [file for file in path.rglob("*") if file.is_file()]
    named = sorted((file.relative_to(path).as_posix(), file) for file in files)
    for name, file in named:
        if any(part.startswith(".") for part in name.split("/")):
            continue
        try:
            yield SourceFile.open(file, name)
        except CorpusError as error:
            rejection.reject(RecordError(file, None, str(error)))
