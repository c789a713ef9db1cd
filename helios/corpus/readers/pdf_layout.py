"""The layout of one PDF page: its tables and its lines of text, in reading order.

A table is what ruling lines enclose, or lines whose words stand in the same columns. Text in two columns is read one
column after the other. Coordinates are points from the left and the top.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from helios.corpus.encoding import readable

_BOLD = re.compile(r"(?i)bold|black|heavy|semibold|demi")
_UNMAPPED = re.compile(r"\(cid:\d+\)")
_MOST_EDGES = 5000
"""More lines than that are a drawing."""
_CELL_GAP = 1.0
"""Of a line's size: more white than that between words parts cells."""
_GUTTER = 0.8
"""The same for the white between two columns of text."""
_ALIGNED_ROWS = 3
_COLUMN_WORDS = 4.0
"""Words that a line of a text in columns has at least, on average."""
_COLUMN_LINES = 5


class Line(NamedTuple):
    """A line of text."""

    text: str
    left: float
    right: float
    top: float
    bottom: float
    size: float
    bold: bool
    height: float
    """That of the page."""

    def margin_key(self, share: float) -> str:
        """The text with its digits alike if the line is at the page's top or bottom, else nothing."""
        is_edge = self.bottom < share * self.height or self.top > (1 - share) * self.height
        return re.sub(r"\d+", "0", self.text) if is_edge else ""

    def is_short(self, words: int) -> bool:
        """Whether it could be a heading: few words, no end of a sentence."""
        return len(self.text.split()) <= words and self.text[-1] not in ".,;" and any(map(str.isalpha, self.text))


class Cells(NamedTuple):
    """A table: its rows, of one length."""

    rows: Sequence[tuple[str, ...]]
    top: float


Piece = Line | Cells


class _Word(NamedTuple):
    text: str
    left: float
    right: float
    top: float
    bottom: float
    size: float
    bold: bool


def page_pieces(page: Any) -> Iterator[Piece]:
    """Lines and tables from top to bottom."""
    tables = [table for table in _ruled(page) if _is_table(table[1])]
    boxes = [box for box, _ in tables]
    words = [word for word in _words(page) if not any(_inside(word, box) for box in boxes)]
    waiting = sorted((Cells(rows, box[1]) for box, rows in tables), key=lambda cells: cells.top)
    for words_of_column in _in_reading_order(words):
        for piece in _aligned([*_lines(words_of_column)], float(page.height)):
            while waiting and waiting[0].top < piece.top:
                yield waiting.pop(0)
            yield piece
    yield from waiting


def _ruled(page: Any) -> Iterator[tuple[tuple[float, float, float, float], list[tuple[str, ...]]]]:
    """(box, rows) of what ruling lines enclose; a cell over several places is repeated in each."""
    if len(page.edges) > _MOST_EDGES:
        return
    for table in page.find_tables():
        rows: list[tuple[str, ...]] = []
        for row in table.extract():
            cells: list[str] = []
            for column, cell in enumerate(row):
                if cell is None:
                    above = rows[-1][column] if rows and column < len(rows[-1]) else ""
                    cells.append(cells[-1] if cells and row[0] is not None else above)
                else:
                    cells.append(_clean(" ".join(cell.split())))
            rows.append(tuple(cells))
        yield table.bbox, [row for row in rows if any(row)]


def _is_table(rows: Sequence[tuple[str, ...]]) -> bool:
    """Two rows and two columns at least; anything less is a frame around text."""
    return len(rows) > 1 and sum(any(row[column] for row in rows) for column in range(len(rows[0]))) > 1


def _words(page: Any) -> Iterator[_Word]:
    for word in page.extract_words(return_chars=True):
        first = word["chars"][0]
        text = _clean(word["text"])
        if text:
            bold = _BOLD.search(str(first.get("fontname", ""))) is not None
            size = round(float(first["size"]) * 2) / 2
            yield _Word(text, word["x0"], word["x1"], word["top"], word["bottom"], size, bold)


def _inside(word: _Word, box: tuple[float, float, float, float]) -> bool:
    across, down = (word.left + word.right) / 2, (word.top + word.bottom) / 2
    return box[0] <= across <= box[2] and box[1] <= down <= box[3]


def _lines(words: Sequence[_Word]) -> Iterator[list[_Word]]:
    """Words of one height, from left to right."""
    line: list[_Word] = []
    for word in sorted(words, key=lambda word: (word.top, word.left)):
        if line and word.top > (line[0].top + line[0].bottom) / 2:
            yield sorted(line, key=lambda word: word.left)
            line = []
        line.append(word)
    if line:
        yield sorted(line, key=lambda word: word.left)


def _in_reading_order(words: Sequence[_Word]) -> Iterator[list[_Word]]:
    """The words of a page, or of its columns one after the other; what reaches over both columns parts them."""
    lines = list(_lines(words))
    gutter = _gutter(lines)
    if gutter is None:
        yield list(words)
        return
    left: list[_Word] = []
    right: list[_Word] = []
    for line in lines:
        if _crosses(line, gutter):
            yield from filter(None, (left, right, line))
            left, right = [], []
        else:
            left = left + [word for word in line if word.right <= gutter]
            right = right + [word for word in line if word.left >= gutter]
    yield from filter(None, (left, right))


def _gutter(lines: Sequence[list[_Word]]) -> float | None:
    """Where the white between two columns of running text is; None for a page that has one column."""
    if len(lines) < _COLUMN_LINES:
        return None
    start, end = min(line[0].left for line in lines), max(line[-1].right for line in lines)
    middle = [start + (end - start) * (35 + step) / 100 for step in range(31)]
    crossed = [sum(_crosses(line, x) for line in lines) for x in middle]
    best = min(range(len(middle)), key=lambda at: (crossed[at], abs(at - 15)))
    at = middle[best]
    both = [line for line in lines if line[0].right <= at <= line[-1].left and not _crosses(line, at)]
    if crossed[best] > 0.3 * len(lines) or len(both) < _COLUMN_LINES:
        return None
    on_left = sum(word.right <= at for line in both for word in line)
    on_right = sum(word.left >= at for line in both for word in line)
    return at if min(on_left, on_right) >= _COLUMN_WORDS * len(both) else None


def _crosses(line: Sequence[_Word], at: float) -> bool:
    """Whether a line reaches over a place, where it has a word or the usual white between two."""
    if any(word.left < at < word.right for word in line):
        return True
    return any(
        before.right <= at <= word.left and word.left - before.right < _GUTTER * word.size
        for before, word in pairwise(line)
    )


def _aligned(lines: Sequence[list[_Word]], height: float) -> Iterator[Piece]:
    """Lines of text, those whose cells stand in the same columns as a table."""
    at = 0
    while at < len(lines):
        rows = _aligned_rows([_cells(line) for line in lines[at:]])
        if len(rows) >= _ALIGNED_ROWS:
            yield Cells(rows, lines[at][0].top)
            at += len(rows)
        else:
            yield _line(lines[at], height)
            at += 1


def _cells(line: Sequence[_Word]) -> list[tuple[float, float, str]]:
    """(left, right, text) of what white space parts in a line."""
    cells = [[line[0]]]
    for before, word in pairwise(line):
        if word.left - before.right > _CELL_GAP * before.size:
            cells.append([word])
        else:
            cells[-1].append(word)
    return [(cell[0].left, cell[-1].right, " ".join(word.text for word in cell)) for cell in cells]


def _aligned_rows(lines: Sequence[list[tuple[float, float, str]]]) -> list[tuple[str, ...]]:
    """The rows that the first lines make, as long as each cell stands below one of the first line's alone."""
    columns = [(left, right) for left, right, _ in lines[0]]
    rows: list[tuple[str, ...]] = []
    if len(columns) < 2:
        return rows
    for line in lines:
        row = [""] * len(columns)
        for left, right, text in line:
            below = [at for at, (start, end) in enumerate(columns) if left < end and right > start]
            if len(below) != 1 or row[below[0]]:
                return rows
            row[below[0]] = text
            columns[below[0]] = min(left, columns[below[0]][0]), max(right, columns[below[0]][1])
        if len(line) < 2:
            return rows
        rows.append(tuple(row))
    return rows


def _line(words: Sequence[_Word], height: float) -> Line:
    longest = max(words, key=lambda word: len(word.text))
    is_bold = all(word.bold for word in words)
    text = " ".join(word.text for word in words)
    top, bottom = min(word.top for word in words), max(word.bottom for word in words)
    return Line(text, words[0].left, words[-1].right, top, bottom, longest.size, is_bold, height)


def _clean(text: str) -> str:
    """Text without what a font does not say."""
    return readable(_UNMAPPED.sub("\ufffd", text))
