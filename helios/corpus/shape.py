"""From what a file holds to a rectangular table: names for empty headers, padding, no cell lost."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from helios.config import CorpusBudget
from helios.corpus.budget import STANDARD, check
from helios.types import Hyperlink, Table, TableKind

INFOBOX_HEADER = ("attribute", "value")


PIECE_CELLS = 1 << 18
"""Cells of a piece of a large table, about."""


def cut(table: Table) -> Iterator[tuple[Table, bool]]:
    """(piece, whether more follow) of a table, the links in the last one; a small table is one piece."""
    size = max(1, PIECE_CELLS // len(table.header))
    last = max(0, (len(table.rows) - 1) // size * size)
    for start in range(0, last, size):
        yield replace(table, rows=table.rows[start : start + size], hyperlinks=()), True
    yield replace(table, rows=table.rows[last:]) if last else table, False


def joined(pieces: Sequence[Table]) -> Table:
    """The whole table of its pieces in order; the last one has the final header."""
    if len(pieces) == 1:
        return pieces[0]
    width = len(pieces[-1].header)
    rows = (row if len(row) == width else row + ("",) * (width - len(row)) for piece in pieces for row in piece.rows)
    return replace(pieces[-1], rows=tuple(rows))


def cell_text(value: object) -> str:
    """A cell as text: None is empty, truth values are lower case, floats have 15 digits at most."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.15g}"
    return str(value)


def rectangular(
    header: Sequence[object], rows: Iterable[Sequence[object]], *, budget: CorpusBudget = STANDARD
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Header and rows as text of one width, that of the widest: short rows are padded with "".

    Header names that are empty or missing become "column N", N counted from 1. RecordShapeError where the table has
    more cells, or more text in them, than the budget allows.
    """
    texts = []
    length = 0
    for row in rows:
        texts.append(tuple(map(cell_text, row)))
        length += sum(map(len, texts[-1]))
        check(budget, "text_mb", length, "text of the table")
    width = max(len(header), *map(len, texts)) if texts else len(header)
    check(budget, "cells", max(1, width) * (len(texts) + 1), "cells of the table, every row as wide as the widest")
    names = [cell_text(name) for name in header] + [""] * (width - len(header))
    filled = tuple(name or f"column {number}" for number, name in enumerate(names, 1))
    padded = tuple(row if len(row) == width else row + ("",) * (width - len(row)) for row in texts)
    return filled, padded


def shaped_table(
    table_id: str,
    title: str,
    header: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    section: str = "",
    intro: str = "",
    url: str = "",
    kind: TableKind = TableKind.TABLE,
    hyperlinks: tuple[Hyperlink, ...] = (),
    budget: CorpusBudget = STANDARD,
) -> Table:
    """A table made rectangular."""
    names, cells = rectangular(header, rows, budget=budget)
    return Table(table_id, title, names, cells, section, intro, url, kind, hyperlinks)
