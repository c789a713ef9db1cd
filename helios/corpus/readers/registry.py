"""`read_corpus`: find the files, recognise each one's format, yield its records, watch over ids."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from helios.config import CorpusBudget
from helios.corpus.budget import STANDARD
from helios.corpus.files import FileList
from helios.corpus.mapping import FieldMap
from helios.corpus.readers import (
    archive,
    beir,
    data,
    delimited,
    docx,
    html,
    jsonl,
    mail,
    mapped,
    markdown,
    ottqa,
    parquet,
    pdf,
    pptx,
    sheets,
    text,
    workbook,
    xml,
)
from helios.corpus.readers.isolation import read_isolated
from helios.corpus.readers.passed import passed_over, unknown
from helios.corpus.record import Parsed
from helios.corpus.rejects import HOPELESS, OnError, Rejection, RejectsWriter, TooManyRejectsError
from helios.corpus.seen import SeenIds
from helios.corpus.shape import joined
from helios.corpus.source import SourceFile, corpus_files
from helios.errors import CorpusError, RecordError
from helios.types import Passage, Table


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
    holds_files: bool = False
    """Whether there are files of their own within it."""
    prepared: bool = False
    """Whether every line was written to be a record: one that is none is a mistake that somebody wants to know of."""


FORMATS: tuple[Format, ...] = (
    Format("parquet", parquet.detect, parquet.read),
    Format("xlsx", workbook.detect, workbook.read),
    Format("docx", docx.detect, docx.read),
    Format("pptx", pptx.detect, pptx.read),
    Format("sheets", sheets.detect, sheets.read),
    Format("pdf", pdf.detect, pdf.read),
    Format("zip", archive.detect, archive.read, holds_files=True),
    Format("mail", mail.detect, mail.read, holds_files=True),
    Format("beir", beir.detect, beir.read, isolated=False, prepared=True),
    Format("jsonl", jsonl.detect, jsonl.read, isolated=False, prepared=True),
    Format("ottqa", ottqa.detect, ottqa.read, repeats_passages=True),
    Format("data", data.detect, data.read),
    Format("csv", delimited.detect, delimited.read),
    Format("markdown", markdown.detect, markdown.read),
    Format("html", html.detect, html.read),
    Format("xml", xml.detect, xml.read),
    Format("text", text.detect, text.read),
)
"""Every known format; the first that recognises a file reads it."""
MAPPED = Format("mapped", mapped.detect, mapped.read)
"""What reads records by the fields that --map names."""


def read_corpus(
    path: Path | str,
    *,
    on_error: OnError = "stop",
    rejects: RejectsWriter | None = None,
    files: FileList | None = None,
    budget: CorpusBudget = STANDARD,
    follow_links: bool = False,
    mapping: FieldMap | None = None,
) -> Iterator[Table | Passage]:
    """Tables and passages of a file or a folder (recursively, in sorted order), always in the same order.

    Files in a folder that are no corpus (questions, judgements, settings) are passed over. With
    `on_error="stop"` the first bad record raises RecordError; with "skip" it is written to `rejects`
    and the rest is kept; so is a file, or a record, that exceeds the budget. "auto" skips what cannot be read
    in a folder, but stops at a line of JSON lines, and for a single file. Links that leave the folder
    are passed over unless `follow_links`. Records of JSON, CSV and Parquet files that have the fields of `mapping`
    are passages. What became of every file is told to `files`. CorpusError if nothing can be read at all, or no
    file has these fields.
    """
    return _whole(
        read_pieces(
            path,
            on_error=on_error,
            rejects=rejects,
            files=files,
            budget=budget,
            follow_links=follow_links,
            mapping=mapping,
        )  # fmt: skip
    )


def _whole(reading: Iterator[Parsed]) -> Iterator[Table | Passage]:
    """Records whose tables are joined from their pieces; a table that breaks off is left out."""
    pieces: list[Table] = []
    for parsed in reading:
        record = parsed.record
        if not isinstance(record, Table):
            yield record
            continue
        if pieces and pieces[-1].table_id != record.table_id:  # the file broke off within a table
            pieces.clear()
        pieces.append(record)
        if not parsed.more:
            yield joined(pieces)
            pieces.clear()


def read_pieces(
    path: Path | str,
    *,
    on_error: OnError = "stop",
    rejects: RejectsWriter | None = None,
    files: FileList | None = None,
    budget: CorpusBudget = STANDARD,
    follow_links: bool = False,
    mapping: FieldMap | None = None,
    progress: Callable[[int], None] = lambda size: None,
) -> Iterator[Parsed]:
    """What `read_corpus` reads, large tables in pieces that follow each other; a table without a last one is none.

    `progress` is told how many more bytes of the files were read.
    """
    path = Path(path)
    rejection = Rejection("stop" if on_error == "auto" and path.is_file() else on_error, rejects, files)
    return _read_files(path, rejection, budget, progress, follow_links=follow_links, mapping=mapping)


def recognise(source: SourceFile) -> Format | None:
    """The format of a file, None where it is no corpus file."""
    if passed_over(source):
        return None
    return next((known for known in (MAPPED, *FORMATS) if known.detect(source)), None)


def why_passed_over(source: SourceFile) -> str:
    """Why a file that `recognise` has no format for is not read."""
    return passed_over(source) or unknown(source)


def read_file(known: Format, source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Records of one file, which may repeat ids."""
    rejection.begin(source.name, known.name, prepared=known.prepared)
    if known.isolated:
        return read_isolated(known.name, source, rejection)
    return known.read(source, rejection)


def _read_files(
    path: Path, rejection: Rejection, budget: CorpusBudget, progress: Callable[[int], None], *, follow_links: bool,
    mapping: FieldMap | None,
) -> Iterator[Parsed]:  # fmt: skip
    seen_tables, seen_passages = SeenIds(), SeenIds()
    reason = "nothing here is a corpus"
    unmapped: SourceFile | None = None
    for source in _sources(path, rejection, budget, follow_links=follow_links, mapping=mapping):
        known = recognise(source)
        if known is None:
            rejection.pass_over(source.name, why_passed_over(source))
            if path.is_file():
                reason = why_passed_over(source)
            continue
        reason = ""
        told, rows, is_new, goes_on = 0, 0, True, ""
        try:
            for parsed in read_file(known, source, rejection):
                record = replace(parsed.record, source=rejection.current)
                progress(max(0, source.position.consumed - told))
                told = max(told, source.position.consumed)
                if isinstance(record, Table):
                    what, record_id = "table", record.table_id
                    begins = goes_on != record_id
                    is_new = seen_tables.add(record_id) if begins else is_new
                    rows = len(record.rows) + (0 if begins else rows)
                    goes_on = record_id if parsed.more else ""
                else:
                    what, record_id, is_new, begins = (
                        "passage",
                        record.passage_id,
                        seen_passages.add(record.passage_id),
                        True,
                    )
                if is_new:
                    if not parsed.more:
                        rejection.add(record, rows=rows)
                    yield parsed._replace(record=record)
                elif not begins:
                    continue
                elif what == "table" or not known.repeats_passages:
                    duplicate = f"duplicate {what} id {record_id!r}"
                    error = RecordError(source.path, parsed.line, duplicate, record_id=record_id)
                    rejection.reject(error, json.dumps(asdict(record), ensure_ascii=False))
        except TooManyRejectsError:
            why = f"{HOPELESS:,} of its records cannot be used, and hardly any can: the rest of the file is not read"
            rejection.reject(RecordError(source.path, None, why))
        progress(max(0, source.size - told))
        if mapping and known is MAPPED and unmapped is None:
            unmapped = source
    if mapping and not rejection.has_read(MAPPED.name):
        raise CorpusError(f"{path}: {_why_unmapped(unmapped)}")
    if reason:
        names = ", ".join(known.name for known in FORMATS)
        raise CorpusError(f"{path}: {reason}; known formats: {names}")


def _why_unmapped(source: SourceFile | None) -> str:
    """Why a map fits no file, by the first that it could have fitted."""
    if source is None:
        return "no JSON, CSV or Parquet file, to which --map applies"
    try:
        list(read_file(MAPPED, replace(source, mapping_is_strict=True), Rejection("stop")))
    except RecordError as error:
        return str(error)
    return "no file has the fields that --map names"


def _sources(
    path: Path, rejection: Rejection, budget: CorpusBudget, *, follow_links: bool, mapping: FieldMap | None
) -> Iterator[SourceFile]:
    """The files to read; those of a folder that cannot be opened are rejected."""
    for name, file, reason in corpus_files(path, follow_links=follow_links):
        if reason:
            rejection.pass_over(name, reason)
            continue
        try:
            yield SourceFile.open(file, name, budget, mapping=mapping, strict=path.is_file())
        except CorpusError as error:
            if path.is_file():
                raise
            rejection.begin(name, "")
            rejection.reject(RecordError(file, None, str(error).removeprefix(f"{file}: ")))
