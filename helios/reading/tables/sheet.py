"""A whole table made ready for questions: columns with numbers and dates, and an inverted list of its values.

Shape legend: R rows, C columns.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from helios.index.lexical import terms_of
from helios.reading.tables.dates import are_month_first, read_day, read_time
from helios.reading.tables.headers import spelled_out
from helios.types import Table, TableKind

FloatArray = NDArray[np.float64]
MISSING = frozenset(
    ("", "-", "–", "—", "?", "n/a", "na", "n.a.", "none", "null", "tbc", "tbd", "k.a.", "s/d", "nd", "无", "暂无")
)
"""Cells that say only that nothing is known."""
LEAST_SHARE = 0.7
"""Share of a column's filled cells that must be numbers, or dates, for the column to hold them."""
LEAST_SUMMED = 4
"""Rows above which the last one may be known as a total by its numbers: of 1, 2, 3 the last is the sum by chance."""
LONGEST_VALUE = 14
"""Words of a cell that a question may name; a longer one is text."""
WORD = re.compile(r"[぀-ヿ㐀-鿿가-힯]|[^\W_぀-ヿ㐀-鿿가-힯]+")
"""A word, or one character of a script that does not part words."""
_NUMBER = re.compile(
    r"^[^\w\d+−–-]{0,3}\s*(?:[A-Za-z]{2,3}\s+|[A-Za-z]{0,3}[$€£¥]\s*)?(?P<sign>[-−–+])?\s*[$€£¥]?"
    r"(?P<digits>\d[\d.,'\u2009\u202f\u00a0 ]*)(?P<rest>.{0,24})$",
    re.DOTALL,
)
_SCALES = {"k": 1e3, "thousand": 1e3, "million": 1e6, "mio": 1e6, "mn": 1e6, "m€": 1e6, "billion": 1e9, "bn": 1e9}
_TOTALS = frozenset(
    ("total", "totals", "sum", "sums", "subtotal", "gesamt", "summe", "insgesamt", "totaux", "somme", "suma", "totales")
    + ("合计", "总计", "总数", "小计")
)
_ALL = frozenset(("all", "overall", "alle", "tous", "toutes", "todos", "todas", "全部"))
_YEARS = frozenset(("year", "jahr", "année", "annee", "año"))
_NUMBERING = frozenset(
    ("id", "number", "code", "reference", "nr", "nummer", "numéro", "numero", "número", "código")
    + ("编号", "序号")
)  # fmt: skip


_FIRST_NAMES = frozenset(
    ("first name", "firstname", "forename", "forenames", "given name", "first", "fname", "f name", "fnm", "first nm")
    + ("vorname", "prénom", "prenom", "nombre")
)
_LAST_NAMES = frozenset(
    ("last name", "lastname", "surname", "family name", "last", "lname", "l name", "lnm", "snm", "sname", "last nm")
    + ("nachname", "name", "nom", "apellido", "apellidos")
)


class Kind(StrEnum):
    """What a column holds."""

    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    TIME = "time"


KINDS = tuple(Kind)


def words_of(text: str) -> list[str]:
    """Words folded as in the index; each character of Chinese and Japanese is a word."""
    return [term for word in WORD.findall(text) for term in terms_of(word)]


COMMA = re.compile(r",\s")
_SURNAME = r"(?P<last>[^\W\d_a-z][\w'’-]{2,}(?: [^\W\d_a-z][\w'’-]+)?)"
_SHORT_NAME = re.compile(rf"(?P<first>[^\W\d_a-z])\. ?{_SURNAME}")
_FULL_NAME = re.compile(rf"(?P<first>[^\W\d_a-z][\w'’-]+) {_SURNAME}")
"""A person by an initial, and by the first name: J. Hill and Joan Hill."""
LONGEST_LIST = 400
"""Characters of a cell in which the items of a list are looked for."""


@dataclass(frozen=True, slots=True)
class SheetColumn:
    """A column: its cells, and their values where they are comparable (R), NaN where there is none."""

    header: str
    words: tuple[str, ...]
    cells: tuple[str, ...]
    kind: Kind
    values: FloatArray
    """Numbers as they stand, dates as days, times as minutes; all NaN in a column of text."""
    keys: NDArray[np.int32]
    """The number of each cell's value among the column's distinct ones, -1 for an empty cell."""
    lists_by_commas: bool = False
    """Whether commas part items that recur in other cells: days, not "Paris, Texas"."""
    people: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The whole names of people who also stand here with an initial, by what that cell's key is."""

    @property
    def distinct(self) -> int:
        """Different values."""
        return int(self.keys.max(initial=-1)) + 1

    def said(self, row: int) -> str:
        """A cell in one line; a person by the whole name."""
        text = " ".join(self.cells[row].split())
        return self.people.get(text.casefold(), text) if self.people else text

    @property
    def is_key(self) -> bool:
        """Whether every row has a value of its own."""
        return len(self.keys) > 1 and self.distinct == len(self.keys)

    @property
    def is_amount(self) -> bool:
        """Whether it holds numbers that can be added: neither years nor numbers that tell the rows apart."""
        if self.kind is not Kind.NUMBER:
            return False
        words = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", spelled_out(self.header)).casefold())
        last = words[-1] if words else ""
        filled = int((self.keys >= 0).sum())
        return last not in _YEARS and not (last in _NUMBERING and self.distinct == filled)


@dataclass(frozen=True, slots=True)
class Value:
    """A distinct value of a column, as words, and its rows."""

    column: int
    words: tuple[str, ...]
    rows: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Joined:
    """A column of another table beside the rows of one that refers to it."""

    sheet: "Sheet" = field(repr=False)
    column: int
    by: int
    """The column that refers."""
    rows: NDArray[np.int64] = field(repr=False)
    """int64 (R): the other table's row that is referred to, -1 for none."""

    @property
    def is_month(self) -> bool:
        """Whether it says in which month a date of the row's own lies."""
        return False

    @property
    def header(self) -> str:
        """What the column is called there."""
        return self.sheet.columns[self.column].header

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells (R), empty where no row is referred to."""
        cells = self.sheet.columns[self.column].cells
        return tuple(cells[row] if row >= 0 else "" for row in self.rows.tolist())


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cell stands."""

    table: Table = field(repr=False)
    row: int
    column: int

    @property
    def text(self) -> str:
        """The cell."""
        return self.table.rows[self.row][self.column]


class Source(Protocol):
    """Where the cells of a derived sheet stand."""

    def places(self, row: int, column: int) -> "tuple[Place, ...]": ...


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table, ready for questions. An infobox lies on its side: each attribute is a column of the only row."""

    table: Table
    columns: tuple[SheetColumn, ...]
    counted: NDArray[np.bool_]
    """bool (R): rows that are no totals of the others."""
    values: tuple[Value, ...] = field(repr=False)
    postings: dict[str, list[int]] = field(repr=False)
    """Numbers of the values that hold a word."""
    spellings: dict[tuple[str, int], list[str]] = field(repr=False)
    """Words of values by first letter and length."""
    names: tuple[int, ...] = ()
    """The columns of first and last names, where people stand in two; the last own column then holds whole names."""
    joined: tuple[Joined, ...] = ()
    """What the last columns are in other tables, where some were joined."""
    source: Source | None = field(default=None, repr=False)
    """Where the cells stand, if the sheet was put together from others."""

    @classmethod
    def of(cls, table: Table) -> "Sheet":
        """Read all cells of a table."""
        lying = is_form(table)
        cells = [tuple(row[1] for row in table.rows)] if lying else list(table.rows)
        headers = tuple(row[0] for row in table.rows) if lying else table.header
        columns = tuple(column_of(header, tuple(row[at] for row in cells)) for at, header in enumerate(headers))
        first, last = _name_columns(columns)
        if first >= 0:
            columns = (*columns, _whole_name(columns[first], columns[last]))
        counted = np.array([not _is_total(row) for row in cells], bool)
        named = len(cells) > 2 and _sums_up(cells[-1], len(cells) - 1)
        if named or (len(cells) > LEAST_SUMMED and _adds_up(columns)):
            counted[-1] = False
        return cls._of(table, columns, counted, (first, last) if first >= 0 else ())

    @classmethod
    def _of(
        cls, table: Table, columns: tuple[SheetColumn, ...], counted: NDArray[np.bool_], names: tuple[int, ...],
        joined: tuple[Joined, ...] = (), source: Source | None = None,
    ) -> "Sheet":  # fmt: skip
        values, postings = _values(columns)
        spellings: dict[tuple[str, int], list[str]] = {}
        for word in postings:
            spellings.setdefault((word[0], len(word)), []).append(word)
        return cls(table, columns, counted, values, postings, spellings, names, joined, source)

    def joining(self, others: Iterable[Joined]) -> "Sheet":
        """This table with columns of others beside its own; one that is called as another is gets the name of the
        column that refers before its own."""
        columns, joined = list(self.columns), tuple(others)
        for one in joined:
            header = one.header
            if header.casefold() in {column.header.casefold() for column in columns}:
                header = f"{self.columns[one.by].header} {header}"
            columns.append(column_of(header, one.cells))
        if not joined:
            return self
        beside = (*self.joined, *joined)
        return self._of(self.table, tuple(columns), self.counted, self.names, beside, self.source)

    @classmethod
    def made(
        cls, table: Table, columns: tuple[SheetColumn, ...], counted: NDArray[np.bool_], source: Source
    ) -> "Sheet":
        """A sheet of columns that were put together, in the name of a table."""
        return cls._of(table, columns, counted, (), source=source)

    @property
    def name(self) -> str:
        """What the table is called: by its file and its titles."""
        said = (Path(self.table.source).stem, self.table.title, self.table.section)
        return " ".join(dict.fromkeys(filter(None, said)))

    @property
    def own(self) -> int:
        """Columns that are not joined."""
        return len(self.columns) - len(self.joined)

    @property
    def months(self) -> tuple[int, ...]:
        """The columns of months that were put beside its own, for a question that asks for one."""
        return tuple(at for at, one in enumerate(self.joined, start=self.own) if one.is_month)

    @property
    def size(self) -> int:
        """Rows: those of the table, one for an infobox."""
        return len(self.counted)

    @property
    def lies(self) -> bool:
        """Whether the columns are rows of the table."""
        return is_form(self.table)

    def places(self, row: int, column: int) -> tuple[Place, ...]:
        """Where a cell stands; a whole name stands in two cells, a joined one in that which refers and in its own."""
        if column >= self.own:
            joined = self.joined[column - self.own]
            other = int(joined.rows[row])
            return (*self.places(row, joined.by), *(joined.sheet.places(other, joined.column) if other >= 0 else ()))
        if self.source is not None:
            return self.source.places(row, column)
        columns = self.names if self.names and column == self.own - 1 else (column,)
        return tuple(Place(self.table, *((one, 1) if self.lies else (row, one))) for one in columns)


def _name_columns(columns: tuple[SheetColumn, ...]) -> tuple[int, int]:
    """The columns of first and last names that stand side by side, (-1, -1) where there are none."""
    heads = [" ".join(re.findall(r"[^\W\d_]+", column.header.casefold())) for column in columns]
    for at in range(len(heads) - 1):
        for first, last in ((at, at + 1), (at + 1, at)):
            if heads[first] in _FIRST_NAMES and heads[last] in _LAST_NAMES:
                return first, last
    return -1, -1


def _whole_name(first: SheetColumn, last: SheetColumn) -> SheetColumn:
    cells = (" ".join(f"{a} {b}".split()) for a, b in zip(first.cells, last.cells, strict=True))
    return column_of("name", tuple(cells))


def is_form(table: Table) -> bool:
    """Whether a table is a list of attributes of one thing."""
    return table.kind is TableKind.INFOBOX and len(table.header) == 2


def column_of(header: str, cells: tuple[str, ...]) -> SheetColumn:
    """Cells with what they hold."""
    filled = [cell for cell in cells if cell.strip().casefold() not in MISSING]
    kind, values = Kind.TEXT, np.full(len(cells), np.nan)
    if filled:
        for known, read in ((Kind.TIME, _times), (Kind.DATE, _dates), (Kind.NUMBER, read_numbers)):
            found_values = read(cells)
            if np.isfinite(found_values).sum() >= LEAST_SHARE * len(filled):
                kind, values = known, found_values
                break
    found: dict[str, int] = {}
    people = _people(filled) if kind is Kind.TEXT else {}
    folded = (" ".join(cell.split()).casefold() for cell in cells)
    whole = ((people[key].casefold() if key in people else key) for key in folded) if people else folded
    keys = [found.setdefault(key, len(found)) if key else -1 for key in whole]
    return SheetColumn(
        header,
        tuple(dict.fromkeys(words_of(f"{header} {spelled_out(header)}"))),
        cells,
        kind,
        values,
        np.array(keys, np.int32),
        kind is Kind.TEXT and _lists_by_commas(set(filled)),
        people,
    )


def _people(cells: Iterable[str]) -> dict[str, str]:
    """Names with an initial, folded, with the only whole name among the cells that each may stand for."""
    short: dict[str, tuple[str, str]] = {}
    full: dict[tuple[str, str], dict[str, str]] = {}
    for cell in {" ".join(cell.split()) for cell in cells}:
        if found := _SHORT_NAME.fullmatch(cell):
            short[cell.casefold()] = (found["first"].casefold(), found["last"].casefold())
        elif found := _FULL_NAME.fullmatch(cell):
            names = full.setdefault((found["first"][0].casefold(), found["last"].casefold()), {})
            names.setdefault(cell.casefold(), cell)
    return {key: next(iter(full[name].values())) for key, name in short.items() if len(full.get(name, ())) == 1}


def _lists_by_commas(cells: Iterable[str]) -> bool:
    """Whether at least half of what commas part stands in several of these different cells."""
    items = [[item.strip().casefold() for item in COMMA.split(cell[:LONGEST_LIST])] for cell in cells]
    counts = Counter(item for own in items for item in set(own))
    listed = [item for own in items if len(own) > 1 for item in own]
    return 2 * sum(counts[item] > 1 for item in listed) >= len(listed) > 0


def _times(cells: Sequence[str]) -> FloatArray:
    return np.array([read_time(cell) for cell in cells])


def _dates(cells: Sequence[str]) -> FloatArray:
    """Days; NaN for all cells of a column of years, which are numbers."""
    if all(re.fullmatch(r"\d{4}", cell.strip()) for cell in cells if cell.strip()):
        return np.full(len(cells), np.nan)
    month_first = are_month_first(cells)
    return np.array([read_day(cell, month_first=month_first) for cell in cells])


def read_numbers(cells: Iterable[str]) -> FloatArray:
    """Numbers that cells begin with, NaN for none; whether a comma marks decimals is decided by all of them."""
    found = [_NUMBER.match(unicodedata.normalize("NFKC", cell).strip()) for cell in cells]
    digits = [match["digits"].strip() for match in found if match]
    comma = _comma_decimals(digits)
    return np.array([np.nan if match is None else _number(match, comma=comma) for match in found])


def _comma_decimals(digits: Iterable[str]) -> bool:
    """Whether `1.234,5` is meant: some comma is no mark of thousands, and no point is one of decimals."""
    texts = list(digits)
    commas = [text for text in texts if re.search(r",(?!\d{3}(?!\d))\d", text) or re.search(r"\.\d{3},", text)]
    points = [text for text in texts if re.search(r"\.(?!\d{3}(?!\d))\d", text)]
    return len(commas) > len(points)


def _number(match: re.Match[str], *, comma: bool) -> float:
    digits = re.sub(r"[\s'\u2009\u202f\u00a0]", "", match["digits"]).rstrip(".,")
    digits = digits.replace(".", "").replace(",", ".") if comma else digits.replace(",", "")
    if not comma and digits.count(".") > 1:
        return np.nan
    rest = match["rest"].strip().casefold()
    if rest[:1] in ("-", "/", ":", "–") and rest[1:2].isdigit():
        return np.nan  # 12:30, 2020-21, 3/4
    try:
        value = float(digits)
    except ValueError:
        return np.nan
    value *= next((scale for word, scale in _SCALES.items() if rest == word or rest.startswith(word + " ")), 1.0)
    return -value if match["sign"] in ("-", "−", "–") else value


def _is_total(row: tuple[str, ...]) -> bool:
    first = next((cell for cell in row if cell.strip()), "")
    words = [word.casefold() for word in re.findall(r"\w+", first)[:2]]
    return bool(words) and (words[0] in _TOTALS or (len(words) > 1 and words[0] == "grand" and words[1] in _TOTALS))


def _sums_up(row: tuple[str, ...], above: int) -> bool:
    """Whether a last row speaks of all rows above it: "All", "17 locks"."""
    first = next((cell for cell in row if cell.strip()), "").strip().casefold()
    number, _, named = first.partition(" ")
    return first in _ALL or (number == str(above) and named.isalpha())


def _adds_up(columns: Iterable[SheetColumn]) -> bool:
    """Whether the numbers of the last row are the sums of those above them, in several of its columns of numbers and in
    most of them; one sum comes about by chance."""
    sums = [(float(np.nansum(one.values[:-1])), float(one.values[-1])) for one in columns if one.is_amount]
    told = [(above, last) for above, last in sums if np.isfinite(last) and last]
    agree = sum(abs(above - last) <= 1e-6 * abs(last) for above, last in told)
    return agree > 1 and 2 * agree > len(told)


def _values(columns: tuple[SheetColumn, ...]) -> tuple[tuple[Value, ...], dict[str, list[int]]]:
    values: list[Value] = []
    postings: dict[str, list[int]] = {}
    for number, column in enumerate(columns):
        order = np.argsort(column.keys, kind="stable")
        starts = np.searchsorted(column.keys[order], np.arange(column.distinct + 1))
        for key in range(column.distinct):
            rows = order[starts[key] : starts[key + 1]]
            said = {column.cells[row]: None for row in rows} if column.people else (column.cells[rows[0]],)
            forms = (words for cell in said for words in (words_of(cell[:200]), words_of(spelled_out(cell[:200]))))
            for words in dict.fromkeys(map(tuple, forms)):
                if 0 < len(words) <= LONGEST_VALUE:
                    for word in Counter(words):
                        postings.setdefault(word, []).append(len(values))
                    values.append(Value(number, words, rows))
    return tuple(values), postings
