"""DOCX: headings, paragraphs and tables in the order of the document, cells of merged ranges filled.

A footnote or an endnote is a paragraph after the paragraph or the table that refers to it.
"""

import zipfile
from collections.abc import Iterator
from typing import Any

from helios.corpus.budget import check
from helios.corpus.encoding import readable
from helios.corpus.page import Block, Heading, Paragraph, page_records
from helios.corpus.readers.extra import cells_table, check_parts, library, parsing
from helios.corpus.readers.text import ended
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.source import SourceFile

_HEADING_WORDS = 12
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_NOTE_PARTS = {"/word/footnotes.xml": "footnote", "/word/endnotes.xml": "endnote"}
Notes = dict[tuple[str, str], str]
_STYLES = ("heading ", "title", "subtitle")


def detect(source: SourceFile) -> bool:
    """By the file name's ending."""
    return source.suffix in (".docx", ".docm")


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Tables and passages in order; the title is that of the document's properties, its first heading, or its name."""
    docx = library("docx", "DOCX")
    with parsing("DOCX"), source.seekable() as raw:
        with zipfile.ZipFile(raw) as archive:
            check_parts(source, archive)
        raw.seek(0)
        document = docx.Document(raw)
        page = list(_blocks(document, source, _notes(document)))
        own = " ".join((document.core_properties.title or "").split())
    first = next((block.text for block in page[:1] if isinstance(block, Heading)), "")
    for record in page_records(
        source.base_id, readable(own) or first or source.title, iter(page), budget=source.budget
    ):
        yield Parsed(record)


def _notes(document: Any) -> Notes:
    """The texts of footnotes and endnotes by their kind and number; separators have none."""
    from docx.oxml import parse_xml

    found: Notes = {}
    for part in document.part.package.iter_parts():
        kind = _NOTE_PARTS.get(str(part.partname))
        if kind is None:
            continue
        for note in parse_xml(part.blob).findall(f"{_WORD}{kind}"):
            texts = ("".join(text.itertext(f"{_WORD}t", f"{_WORD}tab")) for text in note.iter(f"{_WORD}p"))
            text = readable(" ".join(" ".join(texts).split()))
            if text:
                found[kind, str(note.get(f"{_WORD}id"))] = text
    return found


def _notes_of(element: Any, notes: Notes) -> Iterator[Block]:
    """The notes that a paragraph or a table refers to, in order."""
    for kind in _NOTE_PARTS.values():
        for mark in element.iter(f"{_WORD}{kind}Reference"):
            if text := notes.get((kind, str(mark.get(f"{_WORD}id")))):
                yield Paragraph(ended(text))


def _blocks(container: Any, source: SourceFile, notes: Notes) -> Iterator[Block]:
    """The content of a document or of a cell."""
    for piece in container.iter_inner_content():
        if hasattr(piece, "rows"):
            yield from _table(piece, source, notes)
            yield from _notes_of(piece._tbl, notes)
        elif text := readable(" ".join(piece.text.split())):
            level = _heading_level(piece, text)
            is_item = _style(piece).startswith("list")
            yield Heading(level, text) if level else Paragraph(ended(text) if is_item else text)
            yield from _notes_of(piece._p, notes)


def _table(table: Any, source: SourceFile, notes: Notes) -> Iterator[Block]:
    """A table, then those within its cells; a table of one cell is a box around text."""
    rows: list[list[str]] = []
    nested: dict[int, Any] = {}
    count = 0
    for row in table.rows:
        cells = row.cells  # a merged cell once for every place that it covers
        count += len(cells)
        check(source.budget, "cells", count, "cells of a table")
        rows.append([readable(" ".join(cell.text.split())) for cell in cells])
        nested |= {id(inner._tbl): inner for cell in cells for inner in cell.tables}
    if len(rows) == 1 and len(set(rows[0])) == 1:
        yield from _blocks(table.rows[0].cells[0], source, {})
        return
    yield from cells_table(rows)
    for inner in nested.values():
        yield from _table(inner, source, notes)


def _heading_level(paragraph: Any, text: str) -> int:
    """The level of a heading by its style; a short line that is bold as a whole is one of the lowest; 0 for none."""
    style = _style(paragraph)
    if style.startswith(_STYLES):
        digit = style[-1]
        return min(int(digit), 6) if digit.isdecimal() and digit != "0" else 1
    runs = [run for run in paragraph.runs if run.text.strip()]
    is_bold = bool(runs) and all(run.bold for run in runs)
    return 6 if is_bold and len(text.split()) <= _HEADING_WORDS and text[-1] not in ".,;:!?" else 0


def _style(paragraph: Any) -> str:
    return (paragraph.style.name or "").lower() if paragraph.style is not None else ""
