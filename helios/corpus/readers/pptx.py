"""PPTX: the title, texts, tables and charts of every slide, and the speaker's notes; the page is the slide's number."""

import zipfile
from collections.abc import Iterator
from typing import Any

from helios.corpus.budget import check
from helios.corpus.encoding import readable
from helios.corpus.page import Block, Heading, PageTable, Paragraph, Place, page_records
from helios.corpus.readers.extra import cells_table, check_parts, library, parsing
from helios.corpus.readers.text import ended
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.source import SourceFile


def detect(source: SourceFile) -> bool:
    """By the file name's ending."""
    return source.suffix in (".pptx", ".pptm", ".ppsx")


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Tables and passages slide by slide."""
    pptx = library("pptx", "PPTX")
    with parsing("PPTX"), source.seekable() as raw:
        with zipfile.ZipFile(raw) as archive:
            check_parts(source, archive)
        raw.seek(0)
        slides = pptx.Presentation(raw).slides
        page = [block for number, slide in enumerate(slides, 1) for block in _slide(slide, number, source)]
    title = next((block.text for block in page if isinstance(block, Heading)), "") or source.title
    for record in page_records(source.base_id, title, iter(page), budget=source.budget):
        yield Parsed(record)


def _slide(slide: Any, number: int, source: SourceFile) -> Iterator[Block]:
    yield Place((("page", number),))
    title = slide.shapes.title
    heading = _text(title.text_frame.text) if title is not None else ""
    yield Heading(1, heading)
    for shape in slide.shapes:
        if title is None or shape.shape_id != title.shape_id:
            yield from _shape(shape, source)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        yield from _paragraphs(slide.notes_slide.notes_text_frame)


def _shape(shape: Any, source: SourceFile) -> Iterator[Block]:
    """The text, table or chart of a shape; those of all shapes in a group."""
    if hasattr(shape, "shapes"):
        for inner in shape.shapes:
            yield from _shape(inner, source)
    elif getattr(shape, "has_table", False):
        rows = [[_text(_origin(shape.table, cell).text) for cell in row.cells] for row in shape.table.rows]
        check(source.budget, "cells", sum(map(len, rows)), "cells of a table")
        yield from cells_table(rows)
    elif getattr(shape, "has_chart", False):
        yield from _chart(shape.chart)
    elif shape.has_text_frame:
        yield from _paragraphs(shape.text_frame)


def _origin(table: Any, cell: Any) -> Any:
    """The cell whose text a merged one shows."""
    if not cell.is_spanned:
        return cell
    for row in table.rows:
        for other in row.cells:
            covers = other.is_merge_origin and cell._tc.row_idx - other._tc.row_idx in range(other.span_height)
            if covers and cell._tc.col_idx - other._tc.col_idx in range(other.span_width):
                return other
    return cell


def _chart(chart: Any) -> Iterator[PageTable]:
    """What a chart shows: a row for each category, a column for each series."""
    title = _text(chart.chart_title.text_frame.text) if chart.has_title and chart.chart_title.has_text_frame else ""
    for plot in chart.plots:
        series = list(plot.series)
        rows = [
            [str(category), *(f"{one.values[number]:.15g}" if _has(one, number) else "" for one in series)]
            for number, category in enumerate(plot.categories)
        ]
        if rows:
            yield PageTable(["", *(readable(one.name or "") for one in series)], rows, title)


def _has(series: Any, number: int) -> bool:
    return number < len(series.values) and series.values[number] is not None


def _paragraphs(frame: Any) -> Iterator[Paragraph]:
    for paragraph in frame.paragraphs:
        if text := _text(paragraph.text):
            yield Paragraph(ended(text))


def _text(text: str) -> str:
    return readable(" ".join(text.split()))
