"""A grid of cells as found in spreadsheets and CSV files: its tables, and which rows of each are titles and header."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import NamedTuple

from helios.config import CorpusBudget
from helios.corpus.budget import STANDARD
from helios.corpus.page import split_passages
from helios.corpus.shape import INFOBOX_HEADER, cell_text, shaped_table
from helios.types import Passage, Table, TableKind

Row = tuple[str, ...]
_NUMBER = re.compile(r"[-+(]?[$€£¥]?\s?\d[\d,.\s'’]*(e[-+]?\d+)?\s?[%)]?", re.IGNORECASE)
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}([-/.]\d{1,4})?([ T]\d{1,2}:\d{2}(:\d{2})?)?")
_FIGURE = re.compile(r"\d")
_YEAR = re.compile(r"(1[5-9]|20|21)\d\d")
_PROBED_ROWS = 50
_TITLE_ROWS = 10


_FORM_ROWS = 60
_FORM_SHARE = 0.25
_LINE_WORDS = 5
_TOLD_WORDS = 3
_SENTENCE_ENDS = ".,;:!?"


@dataclass(frozen=True, slots=True)
class Grid:
    """Title lines found above the header, the header (empty if there is none), the rows below, and notes below those.

    A form has an attribute and its value in every row, and no header.
    """

    titles: tuple[str, ...]
    header: Row
    rows: tuple[Row, ...]
    first_row: int
    """Position of the first of `rows` in the grid that was split."""
    notes: tuple[str, ...] = ()
    is_form: bool = False
    is_text: bool = False
    """Whether its rows are lines of text in one column."""


class Area(NamedTuple):
    """One table of a sheet: the numbers of its rows and columns, of lines above and of notes below."""

    rows: Sequence[int]
    columns: Sequence[int]
    above: Sequence[int] = ()
    notes: Sequence[int] = ()

    def cells(self, rows: Sequence[Row]) -> list[Row]:
        """Its cells, without blank columns."""
        left, right = self.columns[0], self.columns[-1] + 1
        cut = [rows[number][left:right] for number in self.rows]
        if right - left != len(self.columns):
            padded = (row + ("",) * (right - left) for row in cut)
            cut = [tuple(row[column - left] for column in self.columns) for row in padded]
        lines = zip(self.rows, cut, strict=True)  # a title may stand beside the table
        return [row if any(row) else (next(filter(None, rows[number]), ""),) for number, row in lines]


def areas(rows: Sequence[Row]) -> list[Area]:
    """The tables of a sheet, told apart by blank rows and columns.

    What follows a blank row is a table of its own if it has a title, columns that the table above does not have, or a
    header; otherwise the table above goes on, as it does with a row of totals.
    """
    groups: list[_Group] = []
    titles: list[int] = []
    for band in _bands(rows):
        if all(is_line(rows[number]) for number in band):
            titles += band
        elif groups and not _begins_table(rows, groups[-1], titles, band):
            groups[-1].rows.extend(titles + band)
            titles = []
        elif groups and sum(_values(rows[number]) > 1 for number in groups[-1].rows) == 1:
            groups[-1] = _Group(titles + band, above=groups[-1].above + groups[-1].rows, notes=[])
            titles = []
        else:
            groups.append(_Group(titles + band, above=[], notes=[]))
            titles = []
    if titles and groups:
        groups[-1].notes.extend(titles)
    elif titles:
        groups.append(_Group(titles, above=[], notes=[]))
    return [area for group in groups for area in _beside(rows, group)]


def split_grid(cells: Sequence[Sequence[object]], *, header_rows: int | None = None) -> Grid:
    """Find titles and header. `header_rows` says how many rows below the titles are header, if known.

    A row above the data with a single value (once, or repeated by a merged cell), or with few beside the width of the
    data, is a title. The first row after the titles is the header unless its cells look like those below it.
    """
    rows = [tuple(cell_text(cell) for cell in row) for row in cells]
    titles, start = _titles(rows)
    body = rows[start:]
    if header_rows is None:
        if _is_form(body):
            attributes = tuple((row[0].rstrip(": "), row[1]) for row in body)
            return Grid(titles, (), attributes, start, is_form=True)
        if _is_text(rows):
            return Grid((), (), tuple(rows), 0, is_text=True)
        header_rows = 2 if _is_header_of_two(body) else int(has_header(body))
    header = join_header(body[:header_rows])
    return Grid(titles, header, tuple(body[header_rows:]), start + header_rows)


def split_grid_by(rows: Sequence[Row], area: Area, header_depth: Callable[[Area, int], int]) -> Grid:
    """The grid of an area whose merged cells say how many rows are header, by the place of the first of them."""
    own = area.cells(rows)
    grid = split_grid(own)
    depth = header_depth(area, grid.first_row - bool(grid.header))
    return split_grid(own, header_rows=depth) if depth > 1 and not grid.is_form else grid


def grid_records(
    base_id: str, title: str, grids: Iterable[Grid], *, section: str = "", budget: CorpusBudget = STANDARD,
    tables: int = 0, passages: int = 0,
) -> Iterator[Table | Passage]:  # fmt: skip
    """The tables of a sheet, the first with the id of the sheet; lines of text are passages, also those above and below
    a table.

    `title` is for a table that has none above its header. So many `tables` and `passages` of the sheet came before.
    """
    told: set[tuple[str, ...]] = {()}
    parts: list[Table | tuple[str, ...]]
    for grid in grids:
        own, *above = grid.titles or (title,)
        if grid.is_text:
            own, parts = title, [(*grid.titles, *filter(None, chain.from_iterable(grid.rows)), *grid.notes)]
        else:
            tables += 1
            kind = TableKind.INFOBOX if grid.is_form else TableKind.TABLE
            header = INFOBOX_HEADER if grid.is_form else grid.header
            table = shaped_table(
                base_id if tables == 1 else f"{base_id}#table-{tables}", own, header, grid.rows,
                section=section, intro="\n".join((*above, *grid.notes)), kind=kind, budget=budget,
            )  # fmt: skip
            parts = [telling(above), table, telling(grid.notes)]
        for part in parts:
            if isinstance(part, Table):
                yield part
            elif part not in told:
                found = line_passages(base_id, own, part, section=section, passages=passages)
                passages += len(found)
                told.add(part)  # tables beside each other share what stands above and below them
                yield from found


def telling(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines around a table that say something on their own; "in thousands" does not."""
    return tuple(line for line in lines if len(line.split()) >= _TOLD_WORDS)


def line_passages(
    base_id: str, title: str, lines: Sequence[str], *, section: str = "", passages: int = 0
) -> list[Passage]:
    """Lines of a sheet as passages, each a sentence of its own; so many `passages` of the sheet came before."""
    texts = split_passages([line if line[-1] in _SENTENCE_ENDS else f"{line}." for line in lines if line])
    return [
        Passage(f"{base_id}#passage-{number}", title, f"{section}: {text}" if section else text)
        for number, text in enumerate(texts, start=passages + 1)
    ]


def sheet_grids(rows: Sequence[Row]) -> Iterator[Grid]:
    """Every table of a sheet, without blank rows and columns."""
    return (with_notes(split_grid(area.cells(rows)), rows, area) for area in areas(rows))


def with_notes(grid: Grid, rows: Sequence[Row], area: Area) -> Grid:
    """A grid with the lines above and the notes below its area."""
    above, below = ([" ".join(filter(None, rows[number])) for number in lines] for lines in (area.above, area.notes))
    return replace(grid, titles=(*grid.titles, *above), notes=tuple(below))


class _Group(NamedTuple):
    rows: list[int]
    above: list[int]
    notes: list[int]


def _bands(rows: Sequence[Row]) -> Iterator[list[int]]:
    """Numbers of rows between blank ones."""
    band: list[int] = []
    for number, row in enumerate(rows):
        if any(row):
            band.append(number)
        elif band:
            yield band
            band = []
    if band:
        yield band


def _begins_table(rows: Sequence[Row], above: _Group, titles: Sequence[int], band: Sequence[int]) -> bool:
    """Whether rows below a blank one, with the title lines above them, are a table of their own."""
    wide = [rows[number] for number in band if _values(rows[number]) > 1]
    if len(wide) < 2:
        return False
    first, body = wide[0], wide[1:_PROBED_ROWS]
    if any(_is_value(cell) for cell in first if cell) and not _years_in_order(first):
        return bool(titles) and len(above.rows) > 1
    before = [rows[number] for number in above.rows[-_PROBED_ROWS:] if _values(rows[number]) > 1]
    if _votes(first, body) > 0 or (titles and len(above.rows) > 1):
        return True
    return not _columns([first]) <= _columns(before) or (len(before) > 1 and _breaks(first, before))


def _breaks(row: Row, before: Sequence[Row]) -> bool:
    """Whether a row has words where the rows before have values."""
    columns = [[line[column] for line in before if column < len(line) and line[column]] for column in range(len(row))]
    with_values = [name for name, cells in zip(row, columns, strict=True) if _are_values(cells[1:])]
    return bool(with_values) and not any(_is_value(cell) or not cell for cell in with_values)


def _beside(rows: Sequence[Row], group: _Group) -> Iterator[Area]:
    """The tables that stand beside each other in a group of rows, parted by blank columns; mostly one.

    A blank column alone may be there for looks: tables have different rows, titles of their own, or the same names.
    Rows below a blank one do not count: totals stand under some columns only.
    """
    wide = [rows[number] for number in group.rows if _values(rows[number]) > 1]
    own_columns = _columns(wide or [rows[number] for number in group.rows])
    columns = sorted(own_columns)
    starts = [column for column in columns if column - 1 not in own_columns]
    ends = [column + 1 for column in columns if column + 1 not in own_columns]
    parts = []
    for left, right in zip(starts, ends, strict=True):
        own = [number for number in group.rows if any(rows[number][left:right])]
        parts.append(Area(own, range(left, right), group.above, group.notes))
    if len(parts) > 1 and all(_is_form([row for row in part.cells(rows) if _values(row) > 1]) for part in parts):
        yield from parts
        return
    headers = [header for part in parts if (header := _header_of(rows, part))]
    if len(parts) == len(headers) > 1:
        bodies = {_unbroken(part.rows[number:]) for part, (number, _) in zip(parts, headers, strict=True)}
        titled = all(number for number, _ in headers)
        if titled or len(bodies) > 1 or set(headers[0][1]) & set(headers[1][1]):
            yield from parts
            return
    yield Area(group.rows, columns, group.above, group.notes)


def _unbroken(numbers: Sequence[int]) -> tuple[int, ...]:
    """The numbers up to the first gap."""
    return tuple(number for at, number in enumerate(numbers) if number == numbers[0] + at)


def _header_of(rows: Sequence[Row], area: Area) -> tuple[int, Row] | None:
    """Place and names of the header of a table with two columns and rows at least, and a name above each column."""
    cells = area._replace(rows=area.rows[:_PROBED_ROWS]).cells(rows)
    wide = [number for number, row in enumerate(cells) if _values(row) > 1]
    if len(area.columns) < 2 or len(wide) < 2:
        return None
    body = [cells[number] for number in wide]
    return (wide[0], body[0]) if all(body[0]) and has_header(body) else None


def _columns(rows: Sequence[Row]) -> set[int]:
    """Numbers of the columns that are not blank."""
    width = max(map(len, rows), default=0)
    blank = set(range(width))
    for row in rows:
        blank = {column for column in blank if column >= len(row) or not row[column]}
        if not blank:
            break
    return set(range(width)) - blank


def is_line(row: Row) -> bool:
    """Whether a row is a line of text, and no row of a table."""
    return _values(row) == 1 and not _is_value(next(filter(None, row)))


def _values(row: Row) -> int:
    """How many different values a row has."""
    return len(set(filter(None, row)))


def _is_form(rows: Sequence[Row]) -> bool:
    """Two columns, a label and its value: by the labels' colons, or because the values are of several kinds."""
    if not 2 <= len(rows) <= _FORM_ROWS or any(len(row) != 2 for row in rows):
        return False
    labels = [row[0] for row in rows]
    if not all(labels) or len(set(labels)) < len(labels) or any(map(_is_value, labels)):
        return False
    if sum(label.endswith(":") for label in labels) * 2 >= len(labels):
        return True
    kinds = Counter(_kind(row[1]) for row in rows[1:] if row[1])
    return (
        len(kinds) > 1 and len(rows) > 3 and kinds.total() - max(kinds.values()) >= max(2, _FORM_SHARE * kinds.total())
    )


def _is_text(rows: Sequence[Row]) -> bool:
    """One column of a few lines of several words."""
    if len(rows) > _FORM_ROWS or any(len(row) != 1 for row in rows):
        return False
    return sum(len(row[0].split()) for row in rows) >= _LINE_WORDS * len(rows)


def _is_header_of_two(rows: Sequence[Row]) -> bool:
    """Whether merged cells of the first row, here repeated, have different names below them."""
    if len(rows) < 3 or len(rows[0]) != len(rows[1]):
        return False
    groups = [
        (left, right) for left, right in pairwise(zip(rows[0], rows[1], strict=True)) if left[0] == right[0] != ""
    ]
    parted = bool(groups) and all(left[1] != right[1] for left, right in groups)
    return parted and all(rows[1]) and not any(map(_is_value, rows[1])) and len(set(rows[1])) == len(rows[1])


def _kind(cell: str) -> str:
    if _DATE.fullmatch(cell) or _NUMBER.fullmatch(cell):
        return "date" if _DATE.fullmatch(cell) else "number"
    return "figures" if _FIGURE.search(cell) else "words"


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
    return _votes(first, body) >= 0


def _votes(first: Row, body: Sequence[Row]) -> int:
    """How much speaks for a row as the header of those below it."""
    votes = 0
    for column, name in enumerate(first):
        below = [row[column] for row in body if column < len(row) and row[column]]
        if not name or not below:
            continue
        values_below = _are_values(below)
        if _YEAR.fullmatch(name) and not any(map(_YEAR.fullmatch, below)):
            votes += 1
        elif _is_value(name):
            votes -= 2 if values_below else 1
        elif values_below:
            votes += 2
        elif name in below or (_FIGURE.search(name) and _mostly(_FIGURE.search, below)):
            votes -= 1
    return votes


def _are_values(cells: Sequence[str]) -> bool:
    return bool(cells) and _mostly(_is_value, cells)


def _mostly(test: Callable[[str], object], cells: Sequence[str]) -> bool:
    return sum(bool(test(cell)) for cell in cells) >= 0.7 * len(cells)


def _titles(rows: Sequence[Row]) -> tuple[tuple[str, ...], int]:
    """Title lines at the top and the number of rows that they and blank rows take."""
    width = max((sum(map(bool, row)) for row in rows[:_PROBED_ROWS]), default=0)
    titles: list[str] = []
    for position, row in enumerate(rows[: _TITLE_ROWS + 1]):
        values = dict.fromkeys(filter(None, row))
        if not values:
            continue
        is_title = len(values) == 1 or sum(map(bool, row)) <= (width - 1) // 2
        if not is_title or width < 2 or position + 1 >= len(rows) or position == _TITLE_ROWS:
            return tuple(titles), position
        titles.append(" ".join(values))
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
