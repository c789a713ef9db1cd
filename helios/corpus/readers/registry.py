"""`read_corpus`: find the files, recognise each one's format, yield its records, watch over ids."""

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from helios.config import CorpusBudget
from helios.corpus.budget import STANDARD
from helios.corpus.readers import beir, delimited, html, jsonl, markdown, ottqa, parquet, workbook
from helios.corpus.readers.isolation import read_isolated
from helios.corpus.record import Parsed
from helios.corpus.rejects import OnError, Rejection, RejectsWriter
from helios.corpus.seen import SeenIds
from helios.corpus.source import SourceFile, corpus_files
from helios.errors import CorpusError, RecordError
from helios.types import Passage, Table

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: how to recognise it and how to read it."""

    name: str
    detect: Callable[[SourceFile], bool]
    read: Callable[[SourceFile, Rejection], Iterator[Parsed]]
    repeats_passages: bool = False
    """Files of this format repeat passages among each other; the first one counts and none is an error."""
    isolated: bool = True
    """Whether it is read in a process of its own, with limited memory."""


FORMATS: tuple[Format, ...] = (
    Format("parquet", parquet.detect, parquet.read),
    Format("xlsx", workbook.detect, workbook.read),
    Format("beir", beir.detect, beir.read, isolated=False),
    Format("jsonl", jsonl.detect, jsonl.read, isolated=False),
    Format("ottqa", ottqa.detect, ottqa.read, repeats_passages=True),
    Format("csv", delimited.detect, delimited.read),
    Format("markdown", markdown.detect, markdown.read),
    Format("html", html.detect, html.read),
)
"""Every known format; the first that recognises a file reads it."""


def read_corpus(
    path: Path | str,
    *,
    on_error: OnError = "stop",
    rejects: RejectsWriter | None = None,
    budget: CorpusBudget = STANDARD,
    follow_links: bool = False,
) -> Iterator[Table | Passage]:
    """Tables and passages of a file or a folder (recursively, in sorted order), always in the same order.

    Files in a folder that are no corpus (questions, judgements, settings) are passed over. With
    `on_error="stop"` the first bad record raises RecordError; with "skip" it is written to `rejects`
    and the rest is kept; so is a file, or a record, that exceeds the budget. Links that leave the folder
    are passed over unless `follow_links`. CorpusError if nothing can be read at all.
    """
    rejection = Rejection(on_error, rejects)
    return _read_files(Path(path), rejection, budget, follow_links=follow_links)


def recognise(source: SourceFile) -> Format | None:
    """The format of a file, None where it is no corpus file."""
    return next((known for known in FORMATS if known.detect(source)), None)


def read_file(known: Format, source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Records of one file, which may repeat ids."""
    if known.isolated:
        return read_isolated(known.name, source, rejection)
    return known.read(source, rejection)


def _read_files(
    path: Path, rejection: Rejection, budget: CorpusBudget, *, follow_links: bool
) -> Iterator[Table | Passage]:
    seen_tables, seen_passages = SeenIds(), SeenIds()
    readable = False
    for source in _sources(path, rejection, budget, follow_links=follow_links):
        known = recognise(source)
        if known is None:
            log.info("%s: not a corpus file, passed over", source.path)
            continue
        readable = True
        for parsed in read_file(known, source, rejection):
            record = replace(parsed.record, source=source.name)
            if isinstance(record, Table):
                what, record_id, is_new = "table", record.table_id, seen_tables.add(record.table_id)
            else:
                what, record_id, is_new = "passage", record.passage_id, seen_passages.add(record.passage_id)
            if is_new:
                yield record
            elif what == "table" or not known.repeats_passages:
                reason = f"duplicate {what} id {record_id!r}"
                error = RecordError(source.path, parsed.line, reason, record_id=record_id)
                rejection.reject(error, json.dumps(asdict(record), ensure_ascii=False))
    if not readable:
        names = ", ".join(known.name for known in FORMATS)
        raise CorpusError(f"{path}: nothing here is a corpus; known formats: {names}")


def _sources(path: Path, rejection: Rejection, budget: CorpusBudget, *, follow_links: bool) -> Iterator[SourceFile]:
    """The files to read; those of a folder that cannot be opened are rejected."""
    for name, file in corpus_files(path, follow_links=follow_links):
        try:
            yield SourceFile.open(file, name, budget)
        except CorpusError as error:
            if path.is_file():
                raise
            rejection.reject(RecordError(file, None, str(error)))
