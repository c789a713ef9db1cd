"""A grid of cells as found in spreadsheets and CSV files: which rows are titles, which are the header."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from helios.corpus.shape import cell_text

Row = tuple[str, ...]
_NUMBER = re.compile(r"[-+(]?[$€£¥]?\s?\d[\d,.\s'’]*(e[-+]?\d+)?\s?[%)]?", re.IGNORECASE)
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}([-/.]\d{1,4})?([ T]\d{1,2}:\d{2}(:\d{2})?)?")
_YEAR = re.compile(r"(1[5-9]|20|21)\d\d")
_PROBED_ROWS = 50
_TITLE_ROWS = 10


@dataclass(frozen=True, slots=True)
class Grid:
    """Title lines found above the header, the header (empty if there is none), and the rows below."""

    titles: tuple[str, ...]
    header: Row
    rows: tuple[Row, ...]
    first_row: int
    """Position of the first of `rows` in the grid that was split."""


def split_grid(cells: Sequence[Sequence[object]], *, header_rows: int | None = None) -> Grid:
    """Find titles and header. `header_rows` says how many rows below the titles are header, if known.

    A row above the data with a single value (once, or repeated by a merged cell) is a title. The first
    row after the titles is the header unless its cells look like those below it.
    """
    rows = [tuple(cell_text(cell) for cell in row) for row in cells]
    titles, start = _titles(rows)
    body = rows[start:]
    if header_rows is None:
        header_rows = 1 if has_header(body) else 0
    header = join_header(body[:header_rows])
    return Grid(titles, header, tuple(body[header_rows:]), start + header_rows)


def join_header(rows: Sequence[Row]) -> Row:
    """One header of several: the different names above a column, joined by spaces."""
    if len(rows) == 1:
        return rows[0]
    width = max((len(row) for row in rows), default=0)
    columns = ([row[column] for row in rows if column < len(row)] for column in range(width))
    return tuple(" ".join(dict.fromkeys(name for name in names if name)) for names in columns)


def has_header(rows: Sequence[Row]) -> bool:
    """Whether the first row names the columns: its cells differ in kind from those below."""
    if not rows or not any(rows[0]):
        return bool(rows)
    first, body = rows[0], rows[1:_PROBED_ROWS]
    if _years_in_order(first):
        return True
    if not body:
        return not all(_is_value(cell) for cell in first if cell)
    votes = 0
    for column, name in enumerate(first):
        below = [row[column] for row in body if column < len(row) and row[column]]
        if not name or not below:
            continue
        values_below = sum(map(_is_value, below)) >= 0.7 * len(below)
        if _is_value(name):
            votes -= 2 if values_below else 1
        elif values_below:
            votes += 2
        elif name in below:
            votes -= 1
    return votes >= 0


def _titles(rows: Sequence[Row]) -> tuple[tuple[str, ...], int]:
    """Title lines at the top and the number of rows that they and blank rows take."""
    width = max((sum(map(bool, row)) for row in rows[:_PROBED_ROWS]), default=0)
    titles: list[str] = []
    for position, row in enumerate(rows[: _TITLE_ROWS + 1]):
        values = dict.fromkeys(filter(None, row))
        if not values:
            continue
        if len(values) > 1 or width < 2 or position + 1 >= len(rows) or position == _TITLE_ROWS:
            return tuple(titles), position
        titles.extend(values)
    return (), 0


def _is_value(cell: str) -> bool:
    return bool(_NUMBER.fullmatch(cell) or _DATE.fullmatch(cell))


def _years_in_order(row: Row) -> bool:
    """A header such as Country, 2019, 2020, 2021: its only numbers are rising or falling years."""
    numbers = [cell for cell in row if _is_value(cell)]
    if not 2 <= len(numbers) < len(row):
        return False
    ordered = sorted(set(numbers))
    return all(_YEAR.fullmatch(number) for number in numbers) and numbers in (ordered, ordered[::-1])
