"""PDF: headings, paragraphs and tables page by page (layout in helios.corpus.readers.pdf_layout)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from helios.corpus.budget import RecordShapeError, check_expansion
from helios.corpus.encoding import readable
from helios.corpus.page import Block, Heading, Paragraph, Place, page_records
from helios.corpus.readers.extra import cells_table, library, parsing
from helios.corpus.readers.pdf_layout import Cells, Line, Piece, page_pieces
from helios.corpus.readers.text import ended, join_lines
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.source import SourceFile
from helios.errors import RecordError

_HEADING_WORDS = 15
_HEADING_SIZE = 1.15
"""Of the size of running text."""
_MARGIN = 0.12
"""Share of a page's height at its top and bottom where headers and footers are."""
_REPEATED = 0.6
_PARAGRAPH_GAP = 0.7
"""Of a line's size: more white than that above a line begins a paragraph."""
_SCAN = "no text in it: a scan needs text recognition (OCR) first"
_BULLET = re.compile(r"[-*+•▪–]\s")
_ITEM = re.compile(r"(?:[-*+•▪–]|\(?\d{1,2}[.)])\s")


def detect(source: SourceFile) -> bool:
    """By the first bytes, or by the file name's ending."""
    return b"%PDF-" in source.head[:1024] or source.suffix == ".pdf"


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Tables and passages in page order, with the page's number; RecordShapeError for a file without any text."""
    pdfplumber = library("pdfplumber", "PDF")
    with parsing("PDF"), source.seekable() as raw:
        try:
            document = pdfplumber.open(raw)
        except Exception as error:
            if "Password" in repr(error):
                raise RecordShapeError("encrypted: save it without a password") from None
            raise
        with document:
            scans: list[int] = []
            pages = [list(_pieces(page, source, scans)) for page in document.pages]
            own = readable(" ".join(str((document.metadata or {}).get("Title") or "").split()))
    if not any(pages):
        raise RecordShapeError(_SCAN)
    for number in scans:
        rejection.reject(RecordError(source.path, None, f"page {number}: {_SCAN}", record_id=source.base_id))
    page = list(pdf_blocks(pages))
    first = next((block.text for block in page if isinstance(block, Heading)), "")
    title = own if _is_said(own, pages[0]) else first or source.title
    for record in page_records(source.base_id, title, iter(page), budget=source.budget):
        yield Parsed(record)


def _is_said(title: str, page: Sequence[Piece]) -> bool:
    """Whether the title in the file's properties is on the first page too, as that of a template is not."""
    text = " ".join(piece.text for piece in page if isinstance(piece, Line)).lower()
    return bool(title) and " ".join(title.lower().split()) in text


def _pieces(page: Any, source: SourceFile, scans: list[int]) -> Iterator[Piece]:
    """What is on a page; nothing of a page whose content unpacks to too much is parsed.

    The number of a page that has an image and no text is added to `scans`.
    """
    content = sum(len(stream.get_data()) for stream in page.page_obj.contents)
    check_expansion(source.budget, source.size, content, "content of a page")
    pieces = page_pieces(page)
    first = next(pieces, None)
    if first is not None:
        yield first
        yield from pieces
    elif page.images:
        scans.append(page.page_number)
    page.close()


def pdf_blocks(pages: Sequence[Sequence[Piece]]) -> Iterator[Block]:
    """Headings by size, paragraphs by white space, tables; each with the number of the page where it begins."""
    for unit in _units(pages):
        yield Place((("page", unit.page),))
        if unit.rows:
            yield from cells_table(unit.rows)
        elif unit.level:
            yield Heading(unit.level, " ".join(line.text for line in unit.lines))
        else:
            text = join_lines([line.text for line in unit.lines], wrapped=True)
            yield Paragraph(ended(text) if _ITEM.match(text) else text)


@dataclass(frozen=True, slots=True)
class _Unit:
    """Lines of one heading or paragraph, or the rows of one table."""

    page: int
    level: int
    lines: list[Line]
    rows: list[tuple[str, ...]]


def _units(pages: Sequence[Sequence[Piece]]) -> Iterator[_Unit]:
    """What belongs together, also over the end of a page; lines that most pages repeat are left out."""
    styles = _Styles.of(pages)
    repeated = _repeated(pages)
    last: _Unit | None = None
    for number, page in enumerate(pages, 1):
        kept = [piece for piece in page if not (isinstance(piece, Line) and piece.margin_key(_MARGIN) in repeated)]
        for position, piece in enumerate(kept):
            if isinstance(piece, Cells):
                rows = list(piece.rows)
                if last and last.rows and not position and len(last.rows[0]) == len(rows[0]):
                    last.rows.extend(rows[rows[0] == last.rows[0] :])
                    continue
                unit = _Unit(number, 0, [], rows)
            else:
                level = styles.level(piece)
                like = last and last.lines and level == last.level
                goes_on = last and like and not _begins(last.lines[-1], piece, on_new_page=not position)
                if last and goes_on and (not position or last.page == number or kept[position - 1] in last.lines):
                    last.lines.append(piece)
                    continue
                unit = _Unit(number, level, [piece], [])
            if last:
                yield last
            last = unit
    if last:
        yield last


def _begins(before: Line, line: Line, *, on_new_page: bool) -> bool:
    """Whether a line begins a paragraph, and does not go on with the one that the line before is of."""
    if _ITEM.match(line.text):
        return True
    if on_new_page or line.top < before.top:  # or the next column
        return before.text[-1] in ".!?:;" or not (line.text[0].islower() or before.text.endswith("-"))
    return line.top - before.bottom > _PARAGRAPH_GAP * before.size


class _Styles(NamedTuple):
    """The size and weight of running text, and the sizes of headings, the largest first."""

    size: float
    bold: bool
    sizes: Sequence[float]

    @classmethod
    def of(cls, pages: Sequence[Sequence[Piece]]) -> "_Styles":
        lines = [piece for page in pages for piece in page if isinstance(piece, Line)]
        letters: Counter[tuple[float, bool]] = Counter()
        for line in lines:
            letters[line.size, line.bold] += len(line.text)
        size, bold = letters.most_common(1)[0][0] if letters else (0.0, False)
        larger = {line.size for line in lines if line.size >= _HEADING_SIZE * size and line.is_short(_HEADING_WORDS)}
        return cls(size, bold, sorted(larger, reverse=True))

    def level(self, line: Line) -> int:
        """The level of a heading, 0 for running text."""
        if not line.is_short(_HEADING_WORDS) or _BULLET.match(line.text):
            return 0
        if line.size in self.sizes:
            return min(self.sizes.index(line.size) + 1, 5)
        return 6 if line.bold and not self.bold and line.size >= self.size else 0


def _repeated(pages: Sequence[Sequence[Piece]]) -> set[str]:
    """Headers and footers: lines at the edges of most pages, whatever numbers they have."""
    if len(pages) < 2:
        return set()
    lines = [{piece.margin_key(_MARGIN) for piece in page if isinstance(piece, Line)} for page in pages]
    counts = Counter(key for page in lines for key in page if key)
    return {key for key, count in counts.items() if count >= max(2, _REPEATED * len(pages))}
