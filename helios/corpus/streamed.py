"""The tables of a large sheet that is read row by row: titles, header and columns are those of its first rows.

What `helios.corpus.grid` says of a whole sheet holds for the first rows of each table, and of what follows a blank
row: another table, notes at the end, or more of the table above.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from helios.corpus.budget import check_cells
from helios.corpus.grid import (
    Area,
    Grid,
    Row,
    areas,
    grid_records,
    is_line,
    line_passages,
    split_grid,
    split_grid_by,
    telling,
    with_notes,
)
from helios.corpus.record import Parsed
from helios.corpus.shape import PIECE_CELLS
from helios.corpus.source import SourceFile
from helios.types import Table

FIRST_ROWS = 2000
"""Rows that say what a table's titles, header and columns are."""
_BAND_ROWS = 50
_PROBED_GAPS = 1000
"""Gaps in a table after which another one may begin; one with more of them has them for looks."""
Numbered = tuple[int, Row]
"""A row with the line that it begins at."""
HeaderDepth = Callable[[Area, int], int]
"""How many rows of an area are header, by the place of the first of them."""


def streamed_tables(
    source: SourceFile, rows: Iterator[Numbered], *, base_id: str | None = None, section: str = "",
    header_depth: HeaderDepth | None = None,
) -> Iterator[Parsed]:  # fmt: skip
    """The tables of a sheet whose cells are text without blanks around it, large ones in pieces.

    `base_id` is that of the file, unless it holds several sheets. Merged cells say how many of the first rows are the
    header (`header_depth`).
    """
    base_id = source.base_id if base_id is None else base_id
    header_depth = header_depth or _one_row
    ahead = _Ahead(_with_single_gaps(rows))
    tables = passages = 0
    while head := ahead.next(FIRST_ROWS):
        cells = [row for _, row in head]
        found = areas(cells)
        goes_on = len(head) == FIRST_ROWS and bool(found) and not found[-1].notes
        whole = found[:-1] if goes_on else found
        grids = [with_notes(split_grid_by(cells, area, header_depth), cells, area) for area in whole]
        if goes_on:
            grids.append(_begun(cells, found[-1], header_depth))
        header_depth = _one_row
        ahead.drop(len(head))
        records = list(
            grid_records(
                base_id, source.title, grids, section=section, budget=source.budget, tables=tables, passages=passages
            )
        )
        tables += sum(isinstance(record, Table) for record in records)
        passages += len(records) - sum(isinstance(record, Table) for record in records)
        last = records.pop() if goes_on else None
        yield from (Parsed(record, head[0][0]) for record in records)
        if isinstance(last, Table):
            going_on = _Continued(source, last, found[-1].columns, head[0][0])
            yield from going_on.pieces(ahead)
            below = line_passages(base_id, last.title, telling(going_on.notes), section=section, passages=passages)
            passages += len(below)
            yield from (Parsed(passage, head[0][0]) for passage in below)


def _with_single_gaps(rows: Iterator[Numbered]) -> Iterator[Numbered]:
    """Rows with one blank row where there are several, and none at the end."""
    gap: Numbered | None = None
    for number, row in rows:
        if any(row):
            yield from () if gap is None else (gap,)
            yield number, row
            gap = None
        else:
            gap = gap or (number, ())


class _Ahead:
    """Rows in order, of which the next ones can be looked at before they are taken."""

    def __init__(self, rows: Iterator[Numbered]) -> None:
        self._rows = rows
        self._seen: deque[Numbered] = deque()

    def next(self, count: int) -> list[Numbered]:
        """The next rows, left where they are."""
        self._seen.extend(islice(self._rows, max(0, count - len(self._seen))))
        return list(islice(self._seen, count))

    def drop(self, count: int) -> None:
        """Take rows that were looked at."""
        for _ in range(count):
            self._seen.popleft()

    def __iter__(self) -> Iterator[Numbered]:
        while self._seen or self.next(1):
            yield self._seen.popleft()


class _Continued:
    """A table whose first rows are known, with the rows that follow it, up to another table or the end.

    A cell to the right of the known columns, or in one that was blank, gives the table one more column.
    """

    def __init__(self, source: SourceFile, table: Table, columns: Sequence[int], line: int) -> None:
        self._source = source
        self._table = table
        self._line = line
        self._places = {column: place for place, column in enumerate(columns)}
        self._header = list(table.header)
        self._rows = list(table.rows)
        self._recent: deque[Row] = deque(self._rows[-_BAND_ROWS:], _BAND_ROWS)
        self._count = 0
        self._gaps = 0
        self.notes: tuple[str, ...] = ()
        """Lines below it, known after its last piece."""

    def pieces(self, rows: _Ahead) -> Iterator[Parsed]:
        """The table in pieces; RecordShapeError for more cells than the budget allows."""
        yield Parsed(self._piece(), self._line, more=True)
        size = 0
        for _, row in rows:
            if not any(row):
                self.notes, ends = self._after_blank(rows)
                if ends:
                    break
                continue
            self._recent.append(row)
            self._rows.append(self._placed(row))
            size += len(self._rows[-1])
            if size > PIECE_CELLS:
                yield Parsed(self._piece(), self._line, more=True)
                size = 0
        intro = "\n".join(filter(None, (self._table.intro, *self.notes)))
        yield Parsed(replace(self._piece(), intro=intro), self._line)

    def _after_blank(self, rows: _Ahead) -> tuple[tuple[str, ...], bool]:
        """Notes that end the sheet, if there are any, and whether the table ends here."""
        band = [row for _, row in rows.next(_BAND_ROWS)]
        self._gaps += 1
        if self._gaps > _PROBED_GAPS:
            return (), False
        if len(band) < _BAND_ROWS and all(is_line(row) for row in band if any(row)):
            notes = tuple(" ".join(filter(None, row)) for row in band if any(row))
            rows.drop(len(band))
            return notes, True
        return (), len(areas([*self._recent, (), *band])) > len(areas(list(self._recent)))

    def _placed(self, row: Row) -> Row:
        """A row in the table's columns, as wide as the table is by now."""
        for column in range(len(row)):
            if row[column] and column not in self._places:
                self._places[column] = len(self._header)
                self._header.append(f"column {len(self._header) + 1}")
        cells = [""] * len(self._header)
        for column, cell in enumerate(row):
            if cell:
                cells[self._places[column]] = cell
        return tuple(cells)

    def _piece(self) -> Table:
        """The rows so far, which are counted and forgotten."""
        width = len(self._header)
        rows = tuple(row if len(row) == width else row + ("",) * (width - len(row)) for row in self._rows)
        self._count += len(rows)
        what = "cells of the table, every row as wide as the widest"
        check_cells(self._source.budget, self._source.size, width * (self._count + 1), what)
        self._rows = []
        return replace(self._table, header=tuple(self._header), rows=rows)


def _begun(rows: Sequence[Row], area: Area, header_depth: HeaderDepth) -> Grid:
    """The grid of an area that goes on after these rows, and so is neither a form nor a few lines of text."""
    grid = split_grid_by(rows, area, header_depth)
    if grid.is_form or grid.is_text:
        grid = split_grid(area.cells(rows), header_rows=1)
    return with_notes(grid, rows, area)


def _one_row(area: Area, first: int) -> int:
    """The header of an area without merged cells."""
    return 1
