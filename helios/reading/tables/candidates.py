"""All programs that a question may mean of a table, with what speaks for each.

Shape legend: N programs, S sets of matches, C columns, W words of the question, F features.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from helios.models.encoder import TokenVectors
from helios.reading.question import Asked
from helios.reading.question import Kind as AskedKind
from helios.reading.tables import shapes
from helios.reading.tables.compared import compared_matches
from helios.reading.tables.heard import NOTHING, Heard, heard_matches
from helios.reading.tables.matching import Match, Word, matches_of, near_matches
from helios.reading.tables.programs import OPS, Op, Program, are_rivals, selected
from helios.reading.tables.sheet import KINDS, Kind, Sheet, words_of
from helios.reading.tables.wording import CUES, Wording

FloatArray = NDArray[np.float32]
MOST_SETS = 50
MOST_HEARD = 3
"""Matches that are only heard which are combined with two others."""
HEARD_WEIGHT = 0.3
"""What such a match is worth among sets, in words."""
PAIRING, ORDERING = (Op.DIFFERENCE, Op.WHETHER), (Op.EXTREME, Op.MODE, Op.TOP_SUM)
"""Operations over two values of a column, and over an order."""
SETS_ORDERED = 8
"""Sets of matches that are combined with an order; they come with every column and every order."""
MOST_COLUMNS = 40
MOST_APART = 12
"""Columns of a kind whose values are compared with each other within a row."""
ASKED = tuple(AskedKind)

TABLE = (
    "table_rank", "table_share", "table_probability", "present", "title_similarity", "rows", "columns", "form",
)  # fmt: skip
SET = (
    "matches", "set_words", "set_content", "set_share", "least_share", "whole", "values", "from_evidence",
    "evidence_rank", "row_probability", "set_rows", "one_row", "set_header", "compared", "named_header",
    "unused",
)  # fmt: skip
COLUMN = (
    "header_lexical", "header_similarity", "header_rest", "header_coverage", "header_focus", "focus_lexical",
    "kind", "distinct", "filled", "length", "matched", "position", "header_words", "in_question", "joined",
)  # fmt: skip
JOINT = (
    "op", "descending", "place", "same_column", "unexplained", "most_unexplained", "words_unexplained",
    "plain_unexplained", "asked_kind", "asking", "content", "direction", "answers",
)  # fmt: skip
FEATURES = (
    *TABLE, *SET, *COLUMN, *(f"order_{name}" for name in COLUMN), *JOINT, *(f"cue_{name}" for name in CUES),
    *(f"shape_{name}" for name in shapes.COLUMN), *(f"order_shape_{name}" for name in shapes.COLUMN), *shapes.JOINT,
)  # fmt: skip
ASKING = ("", "what", "which", "who", "whom", "whose", "when", "where", "how", "why")


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """A question as all tables are asked it."""

    asked: Asked
    words: tuple[Word, ...]
    wording: Wording
    vectors: TokenVectors

    @property
    def content(self) -> NDArray[np.bool_]:
        """bool (W): words that say something."""
        return np.array([not word.stop for word in self.words], bool)


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Where a table stands in the evidence."""

    rank: int
    share: float
    probability: float
    present: float
    """The chance that the corpus holds what is asked for."""
    rows: tuple[tuple[int, int, float], ...]
    """(rank, row, probability) of its best edges."""


@dataclass(frozen=True, slots=True)
class TablePrograms:
    """Programs over one table: numbers of their parts, and their features (N, F)."""

    sheet: Sheet
    sets: tuple[tuple[Match, ...], ...]
    parts: NDArray[np.int64] = field(repr=False)
    """int64 (N, 6): op, set, column, order column, descending, place."""
    features: FloatArray = field(repr=False)

    def program(self, number: int) -> Program:
        op, chosen, column, order, descending, place = self.parts[number].tolist()
        return Program(self.sheet, OPS[op], self.sets[chosen], column, order, bool(descending), place)


@dataclass(frozen=True, slots=True)
class AskedTable:
    """A table with what a question names in it."""

    reading: TableQuestion
    sheet: Sheet
    facts: TableFacts
    values: Sequence[tuple[int, int, TokenVectors]] = field(repr=False)
    """(column, key, vectors) of the values of columns that have few."""
    similar: FloatArray = field(repr=False)
    """float32 (C + 1, W): how near the columns' names and, last, the title are to each word."""
    matches: tuple[Match, ...]
    sets: tuple[tuple[Match, ...], ...]


def asked_table(
    reading: TableQuestion, sheet: Sheet, facts: TableFacts, headers: Sequence[TokenVectors],
    values: Sequence[tuple[int, int, TokenVectors]] = (),
) -> AskedTable:  # fmt: skip
    """What a question names in a table; `headers` are the vectors of the columns' names and, last, of its title."""
    rows = [row for _, row, _ in facts.rows]
    near = list(near_matches(reading.words, reading.vectors, sheet, values))
    similar = np.array([_similarity(reading, vectors) for vectors in headers], np.float32)
    beside = compared_matches(reading.asked.text, reading.words, reading.wording, sheet, similar[:-1])
    matches = matches_of(reading.asked.text, reading.words, reading.wording, sheet, rows, near, beside)
    sets = match_sets(matches, reading, sheet)
    return AskedTable(reading, sheet, facts, values, similar, tuple(matches), tuple(sets))


def programs_of(table: AskedTable, heard: Heard = NOTHING) -> TablePrograms:
    """Every program of a table that the question's words may mean, and what the reader of columns hears in it."""
    reading, sheet, matches, sets = table.reading, table.sheet, table.matches, table.sets
    more = tuple(heard_matches(heard, matches, reading.words, reading.vectors, sheet, table.values))
    if more or not heard.ops.isdisjoint(PAIRING):
        sets = tuple(match_sets(matches, reading, sheet, heard=heard, more=more))
        matches = (*matches, *more)
    parts = np.array(list(_programs(sets, reading, sheet, heard)) or np.zeros((0, 6)), np.int64)
    if sheet.months:
        parts = _of_months(parts, sheet, ordered=reading.wording.orders)
    seen = _Seen(reading, sheet, table.facts, table.similar, matches, sets)
    return TablePrograms(sheet, sets, parts, seen.features(parts))


def _of_months(parts: NDArray[np.int64], sheet: Sheet, *, ordered: bool) -> NDArray[np.int64]:
    """The programs that give a month: in an order that of all its rows together, and not that of one row."""
    ops = [OPS.index(op) for op in ((Op.MODE, Op.TOP_SUM) if ordered else (Op.LOOKUP, Op.MODE, Op.TOP_SUM))]
    return parts[np.isin(parts[:, 2], sheet.months) & np.isin(parts[:, 0], ops)]


def match_sets(
    matches: Sequence[Match], reading: TableQuestion, sheet: Sheet, *, heard: Heard = NOTHING,
    more: Sequence[Match] = (),
) -> list[tuple[Match, ...]]:  # fmt: skip
    """Matches that go together: different words, and rows that they have in common; more words first. `more` are those
    that are only heard."""
    content = reading.content
    wording = reading.wording
    whether = wording.has("whether") or Op.WHETHER in heard.ops
    two = wording.has("difference") or bool(wording.rivals) or (whether and bool(wording.sooner))
    two = two or not heard.ops.isdisjoint(PAIRING)
    found: list[tuple[float, tuple[Match, ...]]] = [(0.0, ())]
    unsaid = set(map(id, more))
    every, few = [*matches, *more], [*[m for m in matches if m.words][:8], *more[:MOST_HEARD]]
    for size in (1, 2, 3):
        for chosen in combinations(every if size < 3 else few, size):
            said = [match.words for match in chosen]
            if size > 1 and (len(frozenset.union(*said)) < sum(map(len, said)) or any(m.column < 0 for m in chosen)):
                continue
            several = len({match.column for match in chosen}) < size
            if several and not (two or all(m.operator not in "=~" for m in chosen)):
                continue
            rows = selected(sheet, chosen)
            if not rows.any() and not (several and two) and not (size > 1 and whether):
                continue
            words = frozenset().union(*said)
            weight = float(sum(content[list(words)])) + 0.2 * sum(match.share for match in chosen) - 0.05 * size
            weight += HEARD_WEIGHT * sum(id(match) in unsaid for match in chosen)
            found.append((weight, chosen))
    found.sort(key=lambda item: -item[0])
    kept = [chosen for _, chosen in found[:MOST_SETS]]
    return kept if () in kept else [*kept, ()]


def _programs(
    sets: Sequence[tuple[Match, ...]], reading: TableQuestion, sheet: Sheet, heard: Heard
) -> Iterator[tuple[int, ...]]:
    wording, ops = reading.wording, heard.ops
    columns = range(min(len(sheet.columns), MOST_COLUMNS))
    comparable = [c for c in columns if c < sheet.own and sheet.columns[c].kind is not Kind.TEXT]
    numbers = [c for c in comparable if sheet.columns[c].kind is Kind.NUMBER]
    amounts = [c for c in numbers if sheet.columns[c].is_amount]
    groups = [c for c in columns if 1 < sheet.columns[c].distinct < sheet.size]
    op = {name: number for number, name in enumerate(OPS)}
    adding = any(wording.has(cue) for cue in ("sum", "average", "much")) or not ops.isdisjoint((Op.SUM, Op.AVERAGE))
    counting = wording.has("count") or not ops.isdisjoint((Op.COUNT, Op.DISTINCT))
    difference = wording.has("difference") or Op.DIFFERENCE in ops
    whether, orders = wording.has("whether") or Op.WHETHER in ops, wording.orders or not ops.isdisjoint(ORDERING)
    lasting = difference or wording.lasts
    kinds = [kind for kind, asked in ((Kind.NUMBER, difference), (Kind.DATE, lasting), (Kind.TIME, lasting)) if asked]
    alike = [[c for c in comparable if sheet.columns[c].kind is kind] for kind in kinds]
    apart = [pair for columns_of in alike for pair in combinations(columns_of[:MOST_APART], 2)]
    editions = list(_across_editions(sheet)) if difference else []
    ordered = 0
    for number, chosen in enumerate(sets):
        rows = selected(sheet, chosen) if chosen else np.zeros(sheet.size, bool)
        by_words = not any(match.column < 0 for match in chosen)
        several = len(chosen) > 1 and len({m.column for m in chosen[-2:]}) == 1
        if (several and difference) or (lasting and (rows & sheet.counted).sum() == 2):
            counts = (-1,) if several and by_words and wording.has("count") else ()
            yield from ((op[Op.DIFFERENCE], number, c, -1, 0, 1) for c in (*counts, *comparable))
        if difference and wording.has("most") and wording.has("least"):
            yield from ((op[Op.DIFFERENCE], number, c, c, 0, 1) for c in comparable)
        if rows.sum() == 1:
            yield from ((op[Op.DIFFERENCE], number, c, other, 0, 1) for c, other in (*apart, *editions))
        used = {match.column for match in chosen if match.operator == "="}
        if chosen:
            yield from ((op[Op.LOOKUP], number, c, -1, 0, 1) for c in columns if c not in used)
        else:
            yield from ((op[Op.LOOKUP], number, c, -1, 0, 1) for c in columns if sheet.columns[c].distinct <= 12)
        if counting and by_words:
            yield op[Op.COUNT], number, -1, -1, 0, 1
            yield from ((op[Op.DISTINCT], number, c, -1, 0, 1) for c in groups if c not in used)
        if (adding or wording.has("count")) and by_words:
            yield from ((kind, number, c, -1, 0, 1) for c in amounts for kind in (op[Op.SUM], op[Op.AVERAGE]))
        elif by_words and rows.sum() > 1:
            yield from ((op[Op.SUM], number, c, -1, 0, 1) for c in amounts)
        if whether and by_words:
            at = (op[Op.WHETHER], number)
            yield from ((*at, c, -1, less, 1) for c, less in _asserted(chosen, wording, sheet, ops, comparable))
        if orders and ordered < SETS_ORDERED and by_words:
            ordered += 1
            said = wording.has("most") or wording.has("least") or wording.has("either")
            places = dict.fromkeys((wording.place, 1) if said else (wording.place,))  # "the dearest of the third term"
            for down, place in product((0, 1), places):
                yield from ((op[Op.MODE], number, c, -1, down, place) for c in groups if c not in used)
                for order in comparable:
                    yield from ((op[Op.EXTREME], number, c, order, down, place) for c in columns if c not in used)
                    if wording.few and place == wording.place:
                        few = -wording.few
                        yield from ((op[Op.EXTREME], number, c, order, down, few) for c in columns if c != order)
                    yield from (
                        (op[Op.TOP_SUM], number, c, order, down, place)
                        for c in groups
                        if c not in used and c != order and order in amounts
                    )


def _asserted(
    chosen: Sequence[Match], wording: Wording, sheet: Sheet, ops: frozenset[Op], comparable: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """(column, whether less is asked) of what a yes or no may be about: how many rows there are, or a column by which
    two values are compared."""
    heard = Op.WHETHER in ops
    if len(chosen) > 1 and are_rivals(*chosen[-2:]) and (wording.rivals or wording.sooner or heard):
        for c in (-1, *comparable):
            of_time = c >= 0 and sheet.columns[c].kind is not Kind.NUMBER
            sign = (wording.sooner or wording.rivals) if of_time else wording.rivals
            yield c, int(sign < 0)
        return
    named = len({match.column for match in chosen})
    if named and (wording.exists or heard or (named > 1 and not wording.rivals)):
        yield -1, 0


def _across_editions(sheet: Sheet) -> Iterator[tuple[int, int]]:
    """Columns of numbers of a table and of another one that lists the same things, such as last year's prices: those
    with names in common, or all where none have."""
    own = [c for c in range(sheet.own) if sheet.columns[c].kind is Kind.NUMBER][:MOST_APART]
    others = [
        at for at, one in enumerate(sheet.joined, start=sheet.own)
        if sheet.columns[at].kind is Kind.NUMBER and sheet.columns[one.by].is_key
    ]  # fmt: skip
    words = {c: set(sheet.columns[c].words) for c in own}
    names = {at: set(words_of(sheet.joined[at - sheet.own].header)) for at in others}
    pairs = list(product(own, others))
    alike = [(c, at) for c, at in pairs if words[c] & names[at]]
    yield from alike or pairs


class _Seen:
    """What the features are made of: similarities of words and headers, and what each set of matches explains."""

    def __init__(
        self,
        reading: TableQuestion,
        sheet: Sheet,
        facts: TableFacts,
        similar: FloatArray,
        matches: Sequence[Match],
        sets: Sequence[tuple[Match, ...]],
    ) -> None:
        self.reading, self.sheet, self.facts, self.sets = reading, sheet, facts, sets
        self.content = reading.content
        self.similar, self.title = similar[:-1], similar[-1]
        self.lexical = np.array([_lexical(reading.words, column.words) for column in sheet.columns], np.float32)
        self.explains = np.maximum(self.similar, self.lexical)
        self.covered = np.zeros((len(sets), len(reading.words)), np.float32)
        for number, chosen in enumerate(sets):
            self.covered[number, [word for match in chosen for word in match.words]] = 1.0
        self.all_matched = np.zeros(len(reading.words), np.float32)
        for match in matches:
            self.all_matched[list(match.words)] = 1.0
        self.cued = np.zeros(len(reading.words), np.float32)
        for start, end in reading.wording.cues.values():
            for number, word in enumerate(reading.words):
                self.cued[number] = max(self.cued[number], float(word.start < end and word.end > start))
        first, last = reading.asked.focus_span
        inside = np.array([word.start >= first and word.end <= last for word in reading.words], bool)
        self.focus = inside & self.content

    def features(self, parts: NDArray[np.int64]) -> FloatArray:
        """float32 (N, F)."""
        count = len(parts)
        if not count:
            return np.zeros((0, len(FEATURES)), np.float32)
        op, chosen, column, order = (parts[:, at] for at in range(4))
        table = np.tile(self._table(), (count, 1))
        own = self._columns(chosen, column)
        ordering = self._columns(chosen, order)
        cues = np.tile([float(self.reading.wording.has(cue)) for cue in CUES], (count, 1))
        sets = self._sets()
        joint = self._joint(parts, sets[:, SET.index("set_rows")])
        shape = self._shapes(parts)
        return np.column_stack([table, sets[chosen], own, ordering, joint, cues, shape]).astype(np.float32)

    def _shapes(self, parts: NDArray[np.int64]) -> FloatArray:
        """float32 (N, 2 len(shapes.COLUMN) + len(shapes.JOINT)): what columns look like and what is asked for."""
        op, _, column, order, down, _ = parts.T
        columns = self.sheet.columns
        nothing = np.full((1, len(shapes.COLUMN)), -1.0, np.float32)
        looks = np.concatenate([shapes.column_shapes(columns), nothing])
        asked = shapes.asked_shapes(self.reading.asked.text)
        of_time = np.array([*map(shapes.is_of_time, columns), False])
        money, phones = (looks[column, shapes.COLUMN.index(name)] for name in ("money", "phones"))
        towards = shapes.time_hint(self.reading.asked.text) * np.where(down > 0, 1, -1) * of_time[order]
        fits = (asked[at] * np.where(of < 0, 0.0, 2 * of - 1) for at, of in ((0, money), (1, phones)))
        constant = np.tile(asked, (len(op), 1))
        return np.column_stack([looks[column], looks[order], constant, *fits, towards]).astype(np.float32)

    def _table(self) -> list[float]:
        sheet, content = self.sheet, self.content
        return [
            self.facts.rank,
            self.facts.share,
            self.facts.probability,
            self.facts.present,
            float(self.title[content].mean()) if content.any() else 0.0,
            sheet.size,
            len(sheet.columns),
            sheet.lies,
        ]

    def _sets(self) -> FloatArray:
        """float32 (S, len(SET))."""
        rows = []
        evidence = {row: rank for rank, row, _ in reversed(self.facts.rows)}
        chances = {row: chance for _, row, chance in reversed(self.facts.rows)}
        for number, chosen in enumerate(self.sets):
            at = np.flatnonzero(selected(self.sheet, chosen)) if chosen else np.zeros(0, np.int64)
            covered = self.covered[number] > 0
            shares = [match.share for match in chosen if match.column >= 0]
            headers = [
                float((self.explains[m.column] * self.content * ~covered).max(initial=0.0))
                for m in chosen
                if m.column >= 0
            ]
            named = [
                float(self.lexical[:, list(m.words)].max(initial=0.0)) for m in chosen if m.words and m.operator in "=~"
            ]
            unused = (self.all_matched > 0) & ~covered & self.content
            rows.append(
                [
                    len(chosen),
                    covered.sum(),
                    (covered & self.content).sum(),
                    np.mean(shares) if shares else 0.0,
                    min(shares, default=0.0),
                    sum(m.operator == "=" for m in chosen),
                    max((m.values for m in chosen), default=0),
                    any(m.column < 0 for m in chosen),
                    min((evidence.get(int(row), 99) for row in at[:200]), default=99),
                    max((chances.get(int(row), 0.0) for row in at[:200]), default=0.0),
                    len(at),
                    len(at) == 1,
                    max(headers, default=0.0),
                    sum(m.operator not in ("=", "~", "row") for m in chosen),
                    max(named, default=0.0),
                    unused.sum(),
                ]
            )
        return np.array(rows, np.float32)

    def _columns(self, chosen: NDArray[np.int64], column: NDArray[np.int64]) -> FloatArray:
        """float32 (N, len(COLUMN)): -1 where a program has no such column."""
        sheet, content = self.sheet, self.content.astype(np.float32)
        rest = content * (1 - self.covered)  # (S, W)
        weight = np.maximum(1.0, rest.sum(axis=1))
        gaps = self.explains[None] * rest[:, None]  # (S, C, W)
        best, coverage = gaps.max(axis=2, initial=0.0), gaps.sum(axis=2) / weight[:, None]
        focus = self.focus.astype(np.float32)
        matched = np.zeros((len(self.sets), len(sheet.columns)), np.float32)
        for number, match in ((n, m) for n, found in enumerate(self.sets) for m in found if m.column >= 0):
            matched[number, match.column] = 1.0
        length = [np.mean([len(cell) for cell in c.cells[:50]] or [0]) for c in sheet.columns]
        plain = np.array(
            [
                [
                    lexical.max(initial=0.0),
                    similar.max(initial=0.0),
                    0.0,
                    0.0,
                    (similar * focus).max(initial=0.0),
                    (lexical * focus).max(initial=0.0),
                    KINDS.index(c.kind),
                    c.distinct / max(1, sheet.size),
                    (c.keys >= 0).mean() if len(c.keys) else 0.0,
                    size,
                    0.0,
                    number,
                    len(c.words),
                    sum(lexical) / max(1, len(c.words)),
                    number >= sheet.own,
                ]
                for number, (c, size, lexical, similar) in enumerate(
                    zip(sheet.columns, length, self.lexical * content, self.similar * content, strict=True)
                )
            ],
            np.float32,
        )
        found = plain[column]
        found[:, COLUMN.index("header_rest")] = best[chosen, column]
        found[:, COLUMN.index("header_coverage")] = coverage[chosen, column]
        found[:, COLUMN.index("matched")] = matched[chosen, column]
        found[column < 0] = -1.0
        return found

    def _joint(self, parts: NDArray[np.int64], rows: FloatArray) -> FloatArray:
        """float32 (N, len(JOINT)); `rows` is how many rows each set of matches selects (S)."""
        op, chosen, column, order, down, place = parts.T
        content = self.content
        nothing = np.zeros((1, len(content)), np.float32)
        explains = np.concatenate([self.explains, nothing])
        lexical = np.concatenate([self.lexical, nothing])
        matched = [max((m.column for m in found), default=-1) for found in self.sets]
        sure = np.maximum(self.covered[chosen], self.cued)
        by_columns = np.maximum(explains[column], explains[order])
        by_filter = explains[np.array(matched)[chosen]]
        explained = np.maximum(np.maximum(sure, by_columns), np.maximum(by_filter, self.title))
        plain = np.maximum(sure, np.maximum(lexical[column], lexical[order]))
        left = (1 - np.minimum(1.0, explained)) * content
        total = max(1, int(content.sum()))
        said = self.reading.wording
        hint = (
            1 if said.has("most") and not said.has("least") else -1 if said.has("least") and not said.has("most") else 0
        )
        direction = np.where(
            np.isin(op, [OPS.index(o) for o in (Op.EXTREME, Op.MODE, Op.TOP_SUM)]), np.where(down > 0, hint, -hint), 0
        )
        asked = self.reading.asked
        answers = np.where(op == OPS.index(Op.LOOKUP), rows[chosen], 1.0)
        return np.column_stack(
            [
                op,
                down,
                place,
                (column == order) & (column >= 0),
                left.sum(axis=1) / total,
                left.max(axis=1, initial=0.0),
                (left > 0.5).sum(axis=1),
                ((1 - plain) * content).sum(axis=1) / total,
                np.full(len(parts), ASKED.index(asked.kind)),
                np.full(len(parts), ASKING.index(asked.word)),
                np.full(len(parts), total),
                direction,
                answers,
            ]
        ).astype(np.float32)


def _similarity(reading: TableQuestion, vectors: TokenVectors) -> FloatArray:
    """float32 (W): how well each word's tokens are matched by the tokens of a text."""
    found = np.zeros(len(reading.words), np.float32)
    if not len(vectors.vectors):
        return found
    best = (reading.vectors.vectors @ vectors.vectors.T).max(axis=1)
    spans = reading.vectors.spans
    for number, word in enumerate(reading.words):
        inside = (spans[:, 0] < word.end) & (spans[:, 1] > word.start)
        if inside.any():
            found[number] = best[inside].mean()
    return found


def _lexical(words: Sequence[Word], header: Sequence[str]) -> FloatArray:
    """float32 (W): 1 for a word of the header, less where only parts of words agree."""
    found = np.zeros(len(words), np.float32)
    for number, word in enumerate(words):
        for other in header:
            if word.text == other:
                found[number] = 1.0
            elif min(len(word.text), len(other)) >= 4 and found[number] < 1.0:
                found[number] = max(found[number], _shared(word.text, other))
    return found


def _shared(one: str, other: str) -> float:
    """Share of the longer word that is the beginning, the end or the middle of both."""
    short, long = sorted((one, other), key=len)
    if short in long:
        return 0.9 * len(short) / len(long) + 0.1
    size = next((n for n in range(len(short), 3, -1) if short[:n] == long[:n]), 0)
    return size / len(long) if size >= 4 else 0.0
