"""What the LLM refiner asks: prompts in our own words and the shapes of their replies (HELIOS 4.3, appendix I).

Rows, passages and pairs carry numbers in square brackets, and a reply can hold nothing but such numbers. Text of
the corpus is quoted (helios.llm.quoting) on lines that begin with our numbers. Budgets are kept to the last token of
`estimate_tokens`; what is shortened ends in an ellipsis, and everything that is shortened or left out is counted.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, create_model

from helios.llm import Message, Request, estimate_tokens
from helios.llm.quoting import RULE, block, clip, one_line
from helios.types import Passage, Segment, Table

MOST_NUMBERS = 20
"""Rows that one reply may name; a question for more is a question for the whole table."""
CELL_BYTES = (160, 60, 30)
"""Longest cell of a whole table, shortened in these steps until the table fits."""
STAR_CELL_BYTES = (300, 120, 60, 30)
"""Longest cell of a star's row, shortened in these steps until the row takes no more than half of the prompt."""
TITLE_BYTES = 200
FEWEST_PROMPT_TOKENS = 60
"""Fewest tokens that a table or a star can be shown in."""
FEWEST_COLUMNS = 2
SHORTEST_PASSAGE_TOKENS = 40
LONGEST_PASSAGE_TOKENS = 300
_BYTES_PER_TOKEN = 3
_TOKENS_PER_NUMBER = 6
"""Tokens of a number in a reply with its comma and space, generously."""

SYSTEM = (
    f"You select evidence from tables and short passages for a question. {RULE} Reply with one JSON object that fits "
    "the given schema, without any other text. Name rows, passages and pairs by their numbers in square brackets."
)
CLASSIFY = (
    "Decide whether the question can only be answered by comparing or combining several rows of a table: finding an "
    "extreme (largest, earliest, most recent, last), a place in an order (second, third oldest), a count, a total or "
    "an average. If the question just names the values that the wanted row has, the answer is false.\n\n"
    "Examples:\n"
    "Which architect planned the tallest tower of the city? -> true\n"
    "Which architect planned the tower that was finished in 1931? -> false\n"
    "In which town was the second winner of the prize born? -> true\n"
    "How many of the ships were built before the war? -> true\n"
    "What does the river that flows through Lyon empty into? -> false"
)
AGGREGATE = (
    "The question asks for something that follows from several rows of a table, such as an extreme, a place in an "
    "order or the most recent entry. Work it out over all rows of the table below, using the passages that belong to "
    "the rows where the cells are not enough, and give the numbers of the rows that are the result, not of all rows "
    "that you looked at. If the table has nothing to do with the question, give no row."
)
VERIFY = (
    "Below are one row of a table and the passages that are linked to it. Give the numbers of the passages that help "
    "to answer the question, be it only for one step of it, together with the row. Leave out the passages that are "
    "merely about something similar. If none helps, give none."
)
VERIFY_GRAPH = (
    "Below are rows of tables, each followed by the passages that are linked to it. Every numbered line is a pair of "
    "the row above it and a passage. Give the numbers of the pairs that help to answer the question, be it only for "
    "one step of it. Leave out pairs that are merely about something similar. If none helps, give none."
)


class AggregationQuery(BaseModel):
    """Whether a question needs an aggregation over rows."""

    model_config = ConfigDict(extra="forbid")
    aggregation: bool


class Numbers(BaseModel):
    """Numbers of what was shown; `numbers_up_to` makes shapes that allow no others."""

    model_config = ConfigDict(extra="forbid")
    numbers: list[int]

    def distinct(self) -> tuple[int, ...]:
        """The numbers in their order, each once."""
        return tuple(dict.fromkeys(self.numbers))


@lru_cache(maxsize=512)
def numbers_up_to(count: int, *, most: int) -> type[Numbers]:
    """The shape of a reply that names at most `most` of the numbers 1 to `count`."""
    number = Annotated[int, Field(ge=1, le=count)]
    field: Any = (list[number], Field(max_length=min(count, most)))
    return cast(type[Numbers], create_model("Numbers", __base__=Numbers, numbers=field))


@dataclass(frozen=True, slots=True)
class TablePrompt:
    """A table as a prompt shows it: number n stands for row `rows[n - 1]`, counted from 0."""

    text: str
    rows: tuple[int, ...]
    rows_left_out: int = 0
    columns_left_out: int = 0
    cells_cut: int = 0

    def left_out(self) -> str:
        """What of the table is not in the prompt, in words; empty if all is."""
        parts = [
            f"{count} {name}{'s' * (count > 1)}"
            for count, name in ((self.rows_left_out, "row"), (self.columns_left_out, "column"))
            if count
        ]
        words = f"{' and '.join(parts)} did not fit into the prompt" if parts else ""
        cut = f"{self.cells_cut} cells were shortened" if self.cells_cut else ""
        return ", ".join(filter(None, (words, cut)))


@dataclass(frozen=True, slots=True)
class StarPrompt:
    """A row with the first `shown` of its passages, `cut` of them (or cells of the row) shortened."""

    text: str
    shown: int
    cut: int = 0


def classify(question: str, *, max_tokens: int) -> Request[AggregationQuery]:
    """Ask whether the question is an aggregation query."""
    return Request(_messages(CLASSIFY, "", question), AggregationQuery, max_tokens)


def aggregate(question: str, text: str, *, count: int, max_tokens: int) -> Request[Numbers]:
    """Ask which of `count` numbered rows are the result of the question's aggregation."""
    return Request(_messages(AGGREGATE, text, question), numbers_up_to(count, most=MOST_NUMBERS), max_tokens)


def verify(question: str, text: str, *, count: int, max_tokens: int, graph: bool = False) -> Request[Numbers]:
    """Ask which of `count` numbered passages of a star, or pairs of a graph, are relevant."""
    task = VERIFY_GRAPH if graph else VERIFY
    most = max(1, min(count, max_tokens // _TOKENS_PER_NUMBER))
    return Request(_messages(task, text, question), numbers_up_to(count, most=most), max_tokens)


def show_table(table: Table, question: str, *, tokens: int, first: Collection[int] = (), start: int = 1) -> TablePrompt:
    """A whole table in at most `tokens` (FEWEST_PROMPT_TOKENS or more), its rows numbered from `start`.

    Where it does not fit: cells are shortened, then columns that have the least to do with the question go, then
    rows, those in `first` last. A table of which no row fits has no rows.
    """
    room = tokens * _BYTES_PER_TOKEN
    title = _title(table.title, table.section, room // 3)
    room -= len(title.encode()) + len("\nColumns: ")
    columns = tuple(range(len(table.header)))
    numbers = sum(_number_bytes(number) for number in range(start, start + len(table.rows)))
    for limit in CELL_BYTES:
        sizes = _column_sizes(table, limit)
        if sum(sizes) + numbers <= room:
            return _table_prompt(title, table, columns, range(len(table.rows)), limit, start)
    shortest = CELL_BYTES[-1]
    columns = _columns_that_fit(table, question, sizes, room - numbers)
    rows = _rows_that_fit(table, columns, shortest, room, first, start)
    return _table_prompt(title, table, columns, rows, shortest, start)


def show_star(segment: Segment, passages: Sequence[Passage], *, tokens: int, start: int = 1) -> StarPrompt:
    """A row and as many of its passages as fit, best first, each shortened to its share of `tokens`.

    No passage at all where fewer than FEWEST_PROMPT_TOKENS are left.
    """
    room = tokens * _BYTES_PER_TOKEN
    rows = [_row(segment, size, room) for size in STAR_CELL_BYTES]
    fits = len(rows[0].encode()) * 2 <= room
    row = next((row for row in rows if len(row.encode()) * 2 <= room), None)
    row = f"{clip(rows[-1], room // 2) if row is None else row}\nLinked passages:"
    left = tokens - estimate_tokens(row)
    shown = min(len(passages), max(1, left // SHORTEST_PASSAGE_TOKENS)) if tokens >= FEWEST_PROMPT_TOKENS else 0
    share = min(LONGEST_PASSAGE_TOKENS, left // max(1, shown)) * _BYTES_PER_TOKEN
    lines = []
    for number, passage in enumerate(passages[:shown], start=start):
        lines.append(f"[{number}] {_passage(passage, share - _number_bytes(number))}")
    whole = zip(lines, passages, strict=False)
    cut = sum(not line.endswith(one_line(passage.text)) for line, passage in whole)
    row_cut = any(len(one_line(cell).encode()) > STAR_CELL_BYTES[0] for cell in segment.cells) or not fits
    return StarPrompt("\n".join([row, *lines]), shown, cut + row_cut)


def show_linked(passages: Sequence[tuple[int, Passage]], *, tokens: int) -> str:
    """Passages with the numbers of their rows, as many as fit, each at most a hundred tokens."""
    lines: list[str] = []
    for number, passage in passages:
        label = f"Linked to row [{number}]: "
        size = min(100, tokens) * _BYTES_PER_TOKEN - len(label) - 1
        if size < SHORTEST_PASSAGE_TOKENS:
            break
        lines.append(f"{label}{_passage(passage, size)}")
        tokens -= estimate_tokens(f"{lines[-1]}\n")
    return "\n".join(lines)


def _messages(task: str, data: str, question: str) -> tuple[Message, ...]:
    shown = f"\n\n{block(data)}" if data else ""
    return (Message("system", SYSTEM), Message("user", f"{task}{shown}\n\nQuestion: {one_line(question)}"))


def _title(title: str, section: str, room: int) -> str:
    size = min(TITLE_BYTES, max(0, room - 9) // 2)
    return f"Table: {clip(title, size)}{', ' if section else ''}{clip(section, size)}"


def _row(segment: Segment, size: int, room: int) -> str:
    cells = (
        f"{clip(name, min(80, size))}: {clip(cell, size)}"
        for name, cell in zip(segment.header, segment.cells, strict=True)
        if cell.strip()
    )
    return f"{_title(segment.title, segment.section, room // 4)}\nRow: {' | '.join(cells)}"


def _passage(passage: Passage, size: int) -> str:
    title = clip(passage.title, min(100, size // 3))
    return f"{title}: {clip(passage.text, size - len(title.encode()) - 2)}"


def _number_bytes(number: int) -> int:
    """Bytes of a line break and a number's mark."""
    return len(f"\n[{number}] ")


def _table_prompt(
    title: str, table: Table, columns: Sequence[int], rows: Sequence[int], limit: int, start: int
) -> TablePrompt:
    header = " | ".join(clip(table.header[column], limit) for column in columns)
    cells = [[clip(table.rows[row][column], limit) for column in columns] for row in rows]
    lines = [f"[{number}] {' | '.join(shown)}" for number, shown in enumerate(cells, start=start)]
    return TablePrompt(
        "\n".join([title, f"Columns: {header}", *lines]),
        tuple(rows),
        rows_left_out=len(table.rows) - len(rows),
        columns_left_out=len(table.header) - len(columns),
        cells_cut=sum(len(one_line(table.rows[row][c]).encode()) > limit for row in rows for c in columns),
    )


def _column_sizes(table: Table, limit: int) -> list[int]:
    """Bytes of every column with its header, its cells shortened, separators included."""
    return [
        sum(len(clip(cell, limit).encode()) + 3 for cell in (name, *(row[column] for row in table.rows)))
        for column, name in enumerate(table.header)
    ]


def _columns_that_fit(table: Table, question: str, sizes: Sequence[int], room: int) -> tuple[int, ...]:
    """The columns nearest to the question, at least two, in their order in the table."""
    asked = _words(question)
    nearness = []
    for column, name in enumerate(table.header):
        words = _words(" ".join([name, *(row[column] for row in table.rows)]))
        figures = sum(any(c.isdigit() for c in row[column]) for row in table.rows) * 2 > len(table.rows)
        nearness.append((-2 * len(asked & _words(name)) - len(asked & words) - figures - (column == 0), column))
    chosen: list[int] = []
    for _, column in sorted(nearness):
        room -= sizes[column]
        if room < 0 and len(chosen) >= FEWEST_COLUMNS:
            break
        chosen.append(column)
    return tuple(sorted(chosen))


def _rows_that_fit(
    table: Table, columns: Sequence[int], limit: int, room: int, first: Collection[int], start: int
) -> tuple[int, ...]:
    """Rows in table order; where not all fit, those of `first` are taken before the others."""
    chosen: list[int] = []
    number = _number_bytes(start + len(table.rows))
    room -= sum(len(clip(table.header[column], limit).encode()) + 3 for column in columns)
    for row in sorted(range(len(table.rows)), key=lambda row: (row not in first, row)):
        room -= number + sum(len(clip(table.rows[row][column], limit).encode()) + 3 for column in columns)
        if room < 0:
            break
        chosen.append(row)
    return tuple(sorted(chosen))


def _words(text: str) -> set[str]:
    """Words of three letters or more, without a plural's s."""
    words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
    return {word.rstrip("s") for word in words if len(word) > 2}
