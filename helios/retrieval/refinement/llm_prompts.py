"""What the LLM refiner asks: prompts in our own words and the shapes of their replies (HELIOS 4.3, appendix I).

Tables, rows and passages carry numbers in square brackets, and a reply names them by nothing else. Text of the
corpus is quoted (helios.llm.quoting) on lines that begin with our numbers. Budgets are kept to the last token of
`estimate_tokens`; an ellipsis marks what is shortened, and everything that is shortened or left out is counted.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, create_model

from helios.index.function_words import telling_terms
from helios.index.lexical import terms_of
from helios.llm import Message, Request, estimate_tokens
from helios.llm.excerpt import excerpt
from helios.llm.quoting import RULE, block, clip, one_line
from helios.models.text import sentences_of
from helios.types import Passage, Segment, Table

MOST_NUMBERS = 20
"""Rows that one reply may name; a question for more is a question for the whole table."""
CELL_BYTES = (160, 60, 30)
"""Longest cell of a whole table, shortened in these steps until the table fits."""
STAR_CELL_BYTES = (300, 120, 60, 30)
"""Longest cell of a star's row, shortened in these steps until the row takes no more than its share of the prompt."""
TITLE_BYTES = 200
LISTED_BYTES = 150
"""Longest line of a table in the list of titles."""
FEWEST_PROMPT_TOKENS = 60
"""Fewest tokens that a table or a star can be shown in."""
FEWEST_COLUMNS = 2
FEWEST_ROW_TOKENS = 20
SHORTEST_PASSAGE_TOKENS = 40
LONGEST_PASSAGE_TOKENS = 150
LONGEST_LINKED_TOKENS = 60
"""Of a passage beside a whole table, whose rows have many."""
_BYTES_PER_TOKEN = 3
_TOKENS_PER_NUMBER = 6
"""Tokens of a number in a reply with its comma and space, generously."""

SYSTEM = (
    f"You select evidence from tables and short passages for a question. {RULE} Reply with one JSON object that fits "
    "the given schema, without any other text. Name tables, rows and passages by their numbers in square brackets."
)
SURVEY = (
    'First "aggregation": decide whether the question can only be answered by comparing or combining several rows of '
    "a table: finding an extreme (largest, earliest, most recent, last), a place in an order (second, third oldest), a "
    "count, a total or an average. It is false if the question just names the values that the wanted row has. It is "
    "false, too, if a rank only describes a thing, as an article about that thing says it: such a rank is read there "
    "and not worked out.\n"
    'Then "tables": the numbers of the listed tables whose rows may help to answer, be it only for one step, the '
    "likeliest first, judged by their titles and columns. Leave out those about something else; where you cannot tell, "
    "name the table.\n\n"
    "Examples of the first decision:\n"
    "Which architect planned the tallest tower of the city? -> true\n"
    "Which architect planned the tower that was finished in 1931? -> false\n"
    "In which town was the second winner of the prize born? -> true\n"
    "How many of the ships were built before the war? -> true\n"
    "Who leads the club whose ground is in the third-largest town of Wales? -> false\n"
    "What does the river that flows through Lyon empty into? -> false"
)
AGGREGATE = (
    "The question asks for something that follows from several rows of a table, such as an extreme, a place in an "
    "order or the most recent entry. Work it out over all rows of the table below, using the passages that belong to "
    "the rows where the cells are not enough, and give the numbers of the rows that are the result, not of all rows "
    "that you looked at. If the table has nothing to do with the question, give no row."
)
VERIFY = (
    'Below are rows of tables and the passages that they link to. "numbers": the rows and the passages that help to '
    "answer the question, be it only for one step of it, the most helpful first. Leave out what is merely about "
    'something similar; if nothing helps, give none. "enough": true if what you named is all that the answer needs.'
)
CHOSEN = " All rows of their tables were compared before: those below are the result."
"""Added to `VERIFY` where the aggregation chose the rows."""


class Numbers(BaseModel):
    """Numbers of what was shown; `limited` makes shapes that allow no others."""

    model_config = ConfigDict(extra="forbid")
    numbers: list[int]

    def distinct(self) -> tuple[int, ...]:
        """The numbers in their order, each once."""
        return tuple(dict.fromkeys(self.numbers))


class Survey(BaseModel):
    """Whether a question needs an aggregation over rows, and which of the listed tables are about it."""

    model_config = ConfigDict(extra="forbid")
    aggregation: bool
    tables: list[int]


class Verdict(Numbers):
    """Rows and passages that help, and whether they are all that the answer needs."""

    enough: bool


Named = TypeVar("Named", Numbers, Survey, Verdict)


@lru_cache(maxsize=512)
def limited(shape: type[Named], count: int, *, most: int) -> type[Named]:
    """The shape of a reply that names at most `most` of the numbers 1 to `count`."""
    number = Annotated[int, Field(ge=1, le=max(1, count))]
    field: Any = (list[number], Field(max_length=min(count, most)))
    name = "tables" if shape is Survey else "numbers"
    return cast(type[Named], create_model(shape.__name__, __base__=shape, **{name: field}))


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
class StarsPrompt:
    """Stars as a prompt shows them: first the rows of the first `rows` stars, from number 1 on, then passages."""

    text: str
    rows: int
    passages: tuple[tuple[str, ...], ...] = ()
    """For every number after those of the rows the ids of its passages: several where titles share one text."""
    cut: int = 0
    """Rows and passages that were shortened."""
    left_out: int = 0
    """Passages of the shown rows that are not in the prompt."""


def survey(question: str, tables: Sequence[Table], *, max_tokens: int) -> Request[Survey]:
    """Ask whether the question is an aggregation query, and which tables, by their titles and columns, are about it."""
    listed = "\n".join(f"[{number}] {_listed(table)}" for number, table in enumerate(tables, start=1))
    shape = limited(Survey, len(tables), most=MOST_NUMBERS)
    return Request(_messages(SURVEY, listed, question), shape, max_tokens)


def aggregate(question: str, text: str, *, count: int, max_tokens: int) -> Request[Numbers]:
    """Ask which of `count` numbered rows are the result of the question's aggregation."""
    return Request(_messages(AGGREGATE, text, question), limited(Numbers, count, most=MOST_NUMBERS), max_tokens)


def verify(question: str, text: str, *, count: int, max_tokens: int, chosen: bool = False) -> Request[Verdict]:
    """Ask which of `count` numbered rows and passages are relevant; `chosen` rows are an aggregation's result."""
    most = max(1, min(count, max_tokens // _TOKENS_PER_NUMBER))
    task = f"{VERIFY}{CHOSEN}" if chosen else VERIFY
    return Request(_messages(task, text, question), limited(Verdict, count, most=most), max_tokens)


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


def show_stars(stars: Sequence[tuple[Segment, Sequence[Passage]]], question: str, *, tokens: int) -> StarsPrompt:
    """Rows, best first, then the passages that they link to, in at most `tokens`.

    A passage is shown once with the numbers of all its rows, and so are titles with the same text; where there is no
    room for all, the best of every row come first. Longer passages are shown by the sentences that have to do with
    the question. Nothing is shown in fewer than FEWEST_PROMPT_TOKENS.
    """
    if tokens < FEWEST_PROMPT_TOKENS or not stars:
        return StarsPrompt("", 0)
    stars = stars[: max(1, tokens // 2 // FEWEST_ROW_TOKENS)]
    lines, cut = _rows([segment for segment, _ in stars], tokens * _BYTES_PER_TOKEN // 2)
    left = tokens - estimate_tokens("\n".join([*lines, "Linked passages:"])) - 1
    pages = list(_pages([(number, passages) for number, (_, passages) in enumerate(stars, start=1)]))
    shown = pages[: max(1, left // SHORTEST_PASSAGE_TOKENS)]
    size = min(LONGEST_PASSAGE_TOKENS, left // max(1, len(shown))) * _BYTES_PER_TOKEN
    asked = _asked(question, (title for segment, _ in stars for title in (segment.title, segment.section)))
    for number, page in enumerate(shown, start=len(stars) + 1):
        line = _page(page, asked, size - _number_bytes(number))
        cut += not line.endswith(one_line(page.passages[0].text))
        lines += ["Linked passages:"] * (number == len(stars) + 1) + [f"[{number}] {line}"]
    ids = tuple(tuple(passage.passage_id for passage in page.passages) for page in shown)
    return StarsPrompt("\n".join(lines), len(stars), ids, cut, len(pages) - len(shown))


def show_linked(
    linked: Sequence[tuple[int, Sequence[Passage]]], tables: Sequence[Table], question: str, *, tokens: int
) -> str:
    """The passages of numbered rows, as many as fit: each once with its rows, those of the fewest rows first.

    What many rows link to (their country, their club) does not tell them apart.
    """
    asked = _asked(question, (title for table in tables for title in (table.title, table.section)))
    lines: list[str] = []
    for page in sorted(_pages(linked), key=lambda page: len(page.rows)):
        size = min(LONGEST_LINKED_TOKENS, tokens) * _BYTES_PER_TOKEN - 1
        if size < SHORTEST_PASSAGE_TOKENS:
            break
        lines.append(_page(page, asked, size))
        tokens -= estimate_tokens(f"{lines[-1]}\n")
    return "\n".join(lines)


def _asked(question: str, titles: Iterable[str]) -> frozenset[str]:
    """What a passage is searched for: the question's terms without those that the titles of the tables say already."""
    terms = frozenset(telling_terms(question))
    return terms - {term for title in titles for term in terms_of(title)} or terms


def _messages(task: str, data: str, question: str) -> tuple[Message, ...]:
    shown = f"\n\n{block(data)}" if data else ""
    return (Message("system", SYSTEM), Message("user", f"{task}{shown}\n\nQuestion: {one_line(question)}"))


def _title(title: str, section: str, room: int) -> str:
    size = min(TITLE_BYTES, max(0, room - 9) // 2)
    return f"Table: {clip(title, size)}{', ' if section else ''}{clip(section, size)}"


def _listed(table: Table) -> str:
    """A table in one line: its titles, its columns, and how many rows it has."""
    title = _title(table.title, table.section, 2 * LISTED_BYTES).removeprefix("Table: ")
    columns = ", ".join(one_line(name) for name in table.header)
    return f"{clip(title, LISTED_BYTES)} (columns: {clip(columns, LISTED_BYTES)}; {len(table.rows)} rows)"


def _rows(segments: Sequence[Segment], room: int) -> tuple[list[str], int]:
    """Numbered rows in at most `room` bytes, a table's title before its first one; and how many were shortened."""
    share = room // len(segments)
    lines: list[str] = []
    title = ""
    cut = 0
    for number, segment in enumerate(segments, start=1):
        head = _title(segment.title, segment.section, share // 2)
        left = share - _number_bytes(number) - (len(head) + 1 if head != title else 0)
        whole, *shorter = (_row(segment, size) for size in STAR_CELL_BYTES)
        row = next((row for row in (whole, *shorter) if len(row.encode()) <= left), None)
        row = clip(shorter[-1], max(0, left)) if row is None else row
        cut += row != whole or any(len(one_line(cell).encode()) > STAR_CELL_BYTES[0] for cell in segment.cells)
        lines += [head] * (head != title) + [f"[{number}] {row}"]
        title = head
    return lines, cut


def _row(segment: Segment, size: int) -> str:
    """The cells that hold something, each in at most `size` bytes, without our mark between cells inside of them."""
    pairs = [(name, cell) for name, cell in zip(segment.header, segment.cells, strict=True) if cell.strip()]
    return f"Row: {' | '.join(f'{clip(name, min(80, size))}: {clip(cell, size)}' for name, cell in pairs)}"


@dataclass(frozen=True, slots=True)
class _Page:
    """A text that rows link to: the passages that have it, and the numbers of the rows, best first."""

    passages: list[Passage]
    rows: list[int]


def _pages(linked: Sequence[tuple[int, Sequence[Passage]]]) -> Iterator[_Page]:
    """The passages of numbered rows by their texts: the best one of every row, then the second of every row, ..."""
    pages: dict[str, _Page] = {}
    for rank in range(max((len(passages) for _, passages in linked), default=0)):
        for row, passages in linked:
            if rank >= len(passages):
                continue
            page = pages.setdefault(one_line(passages[rank].text).casefold(), _Page([], []))
            if passages[rank] not in page.passages:
                page.passages.append(passages[rank])
            if row not in page.rows:
                page.rows.append(row)
    for page in pages.values():
        page.rows.sort()
        yield page


def _page(page: _Page, asked: Collection[str], size: int) -> str:
    rows = ", ".join(f"[{row}]" for row in page.rows)
    titles = " or ".join(dict.fromkeys(one_line(passage.title) for passage in page.passages))
    head = f"{clip(titles, size // 4)} (linked from {clip(rows, size // 4)})"
    named = {term for passage in page.passages for term in terms_of(passage.title)}
    return _passage(head, page.passages[0], [term for term in asked if term not in named], size)


def _passage(head: str, passage: Passage, asked: Collection[str], size: int) -> str:
    head = clip(head, min(200, size // 2 + 20))
    sentences = [text for _, text in sentences_of(passage)]
    return f"{head}: {excerpt(sentences, asked, size - len(head.encode()) - 2)}"


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
