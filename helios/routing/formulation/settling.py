"""Which column does a mention mean? Every way to settle a draft's mentions, best first.

A mention's options are scored by its words, by the tables named near it, and by the values compared with it; together
they should need few tables.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from itertools import product
from math import prod

from helios.routing.formulation.cues import OWNERS, Cue, Grade
from helios.routing.formulation.dates import DATE, IN_A_YEAR, YEARS, holds_years
from helios.routing.formulation.dates import STORED as STORED_DAY
from helios.routing.formulation.draft import Draft, Filter, Item
from helios.routing.formulation.linking import Link
from helios.routing.formulation.pieces import Piece, text_before
from helios.routing.formulation.plan import ColumnRef, Operator
from helios.routing.formulation.schema import WAYS, ColumnView, SchemaView, units_of
from helios.routing.formulation.words import lemma, similarity, stem

OPTIONS, SETTLEMENTS, COMBINATIONS = 4, 6, 1024
"""How many columns a mention may mean, how many ways to settle all mentions are kept, and how many are looked at."""
NEAREST, NEAR, MENTIONED = 0.5, 0.25, 0.15
"""What a column gains where its table is named next to it, on its other side, or anywhere."""
SIDE = 0.2
"""What "to" before a value says for a column that is called by that end, and against one called by the other."""
STORED = 0.3
"""What a date gains in whose column that day stands."""
AWAY = 0.05
"""What the date of another table loses."""
TABLE_COST = 0.22
AGAIN_SAID = ("again", "both", "back", "another", "also")
"""Words that say that the same happened twice."""
SELF = 0.4
"""What a column that is asked for loses where the question gives its value."""
AGAIN = 0.6
"""What ordering by a selected column gains."""
AMOUNTS = ("more than", "less than", "fewer than", "greater than", "in excess of", "exceeding", "exceed", "exceeds")
"""Comparisons of amounts, not of years."""
NAME_ASKED = 0.95
"""What a column is worth that a table's rows are called by, where a name is asked for."""
LASTING = frozenset(map(stem, (
    "birth", "born", "join", "joined", "hire", "hired", "expiry", "expire", "expires", "install", "installed", "build",
    "built", "found", "founded", "open", "opened", "discontinue", "discontinued", "retire", "retired", "leave", "left",
    "decommission", "decommissioned", "establish", "established", "renewal", "valid", "until", "stop", "stopped",
    "start", "started", "member", "registered", "service", "close", "closed",
)))  # fmt: skip
"""Words of dates that people and things have once, beside which an event's date is rather meant."""
CLOCK = re.compile(r"\d{1,2}:\d\d")
"""What times of a day begin with."""
BARRIERS = (Cue.RELATIVE, Cue.COMPARE, Cue.SUPERLATIVE, Cue.ORDER, Cue.ASK, Cue.END)


@dataclass(frozen=True, slots=True)
class Settled:
    """The column of every mention, by the identity of its item or filter."""

    columns: dict[int, ColumnRef]
    score: float
    weakest: float
    """The lowest score of a name's words."""
    flipped: frozenset[int]
    """Items whose attribute runs the other way: the oldest has the earliest birth date."""

    def of(self, part: object) -> ColumnRef | None:
        return self.columns.get(id(part))


@dataclass(frozen=True, slots=True)
class Option:
    """A column that a mention may mean."""

    column: ColumnRef
    score: float
    words: float
    flipped: bool = False


def settle(draft: Draft, schema: SchemaView) -> list[Settled]:
    """Ways to settle all mentions of a draft, best first; mentions without any option stay open."""
    around = _Surroundings(draft, schema)
    parts: list[object] = [*draft.select, *draft.groups, *draft.orders, *draft.filters]
    parts += [part.item for part in draft.having if part.item is not None]
    parts += [item for part in draft.filters for item in (part.than, part.own) if item is not None]
    again = any(piece.text.lower() in AGAIN_SAID for piece in draft.pieces)
    options = _few(_shared([(part, found) for part in parts if (found := around.options(part))], again=again))
    named = {table for piece in draft.mentions for table in piece.tables[:1]}
    ways: list[Settled] = []
    for choice in product(*(some for _, some in options)):
        tables = {option.column.table for option in choice}
        selected = {o.column for o, (ps, _) in zip(choice, options, strict=True) if any(p in draft.select for p in ps)}
        ordered = {o.column for o, (ps, _) in zip(choice, options, strict=True) if any(p in draft.orders for p in ps)}
        reached = schema.connect(sorted(tables | named)) if tables | named else None
        size = len(reached[1]) + 1 if reached is not None else 6 if tables else 0
        score = sum(option.score for option in choice) - TABLE_COST * size
        score += AGAIN * len(selected & ordered)
        given = {o.column for o, (ps, _) in zip(choice, options, strict=True) if any(map(_one, ps))}
        within = {o.column for o, (ps, _) in zip(choice, options, strict=True) if any(map(_spanned, ps))}
        score -= SELF * len(selected & given - within)
        days = (schema.column(column) for column in selected & within)
        score += SELF * sum(day.temporal and not day.numeric for day in days)
        chosen = [(part, o) for (sharing, _), o in zip(options, choice, strict=True) for part in sharing]
        columns = {id(part): option.column for part, option in chosen}
        flipped = frozenset(id(part) for part, option in chosen if option.flipped)
        weakest = min((option.words for option in choice), default=1.0)
        ways.append(Settled(columns, score, weakest, flipped))
    return nlargest(SETTLEMENTS, ways, key=lambda settled: settled.score)


def _one(part: object) -> bool:
    """Whether a filter leaves one value of its column."""
    return isinstance(part, Filter) and part.operator == Operator.EQ and not part.negated and not part.alternative


def _spanned(part: object) -> bool:
    """Whether a filter leaves the days of a year, of a month or of a span."""
    if not isinstance(part, Filter) or part.value is None:
        return False
    beyond = part.operator in (Operator.GT, Operator.GE, Operator.LT, Operator.LE)
    return (
        beyond
        or part.second is not None
        or part.value.number in YEARS
        or re.fullmatch(r"\d{4}-\d\d", part.value.text) is not None
    )


def lasts(column: ColumnView) -> bool:
    """Whether a column says when somebody was born or hired, or something built, and not when anything happened."""
    return bool(LASTING & {stem(word) for word in column.words})


def _clock(column: ColumnView) -> bool:
    """Whether a column holds times of a day, which are no dates."""
    return bool(column.samples) and all(map(CLOCK.match, column.samples))


def _few(options: list[tuple[list[object], list[Option]]]) -> list[tuple[list[object], list[Option]]]:
    """Fewer options for each mention where there are many mentions."""
    for kept in range(OPTIONS, 0, -1):
        some = [(parts, found[:kept]) for parts, found in options]
        if prod(len(found) for _, found in some) <= COMBINATIONS:
            return some
    return [(parts, found[:1]) for parts, found in options]


def _shared(
    options: list[tuple[object, list[Option]]], *, again: bool = False
) -> list[tuple[list[object], list[Option]]]:
    """Parts that come from one mention mean one column; so do two months where it is said that it was `again`."""
    found: dict[int, tuple[list[object], list[Option]]] = {}
    for part, some in options:
        piece = part.subject if isinstance(part, Filter) else part.piece if isinstance(part, Item) else None
        key = id(piece) if piece is not None else id(part)
        if again and piece is None and isinstance(part, Filter) and part.value and DATE.fullmatch(part.value.text):
            key = 0
        if key not in found:
            found[key] = ([part], some)
            continue
        sharing, before = found[key]
        columns = {option.column for option in some}
        both = [option for option in before if option.column in columns]
        found[key] = ([*sharing, part], both or before)
    return list(found.values())


class _Surroundings:
    """Where the tables of a question are named, seen from a mention."""

    def __init__(self, draft: Draft, schema: SchemaView) -> None:
        self.draft, self.schema = draft, schema
        self.pieces = list(draft.pieces)
        self.mentioned = {table for piece in self.pieces for table in piece.tables[:2]}

    def options(self, part: object) -> list[Option]:
        if isinstance(part, Filter):
            found = self._filter_options(part)
        else:
            assert isinstance(part, Item)
            found = self._item_options(part)
        best: dict[ColumnRef, Option] = {}
        for option in found:
            if option.column not in best or best[option.column].score < option.score:
                best[option.column] = option
        return nlargest(OPTIONS, best.values(), key=lambda option: option.score)

    def _item_options(self, item: Item) -> list[Option]:
        if item.grade is not None:
            found = list(self._attributes(item.grade, self._graded(item.near)))
            own = item.piece.tables[:1] if item.piece is not None else ()
            return [option for option in found if not own or option.column.table in own]
        if item.piece is None or item.piece.cue == Cue.TABLE:
            return []
        filtering = item in self.draft.orders or not any(item is i for i in self.draft.select)
        found = [self._option(link, item.piece, filtering=filtering) for link in item.piece.columns]
        if lemma(item.piece.text) == "name":
            naming = {table.naming.ref for table in self.schema.tables.values() if table.naming is not None}
            lifted = [o.column in naming and o.words < NAME_ASKED for o in found]
            found = [replace(o, score=o.score + NAME_ASKED - o.words, words=NAME_ASKED) if lift else o
                     for o, lift in zip(found, lifted, strict=True)]  # fmt: skip
        return [*found, *self._called(item.piece)]

    def _called(self, piece: Piece) -> Iterator[Option]:
        """What "name" and "id" mean of a table that has no columns of these names."""
        near = self.left(piece) if self.owned(piece) else None
        groups = [item.piece for item in self.draft.groups if item.piece is not None and item.piece.tables]
        if near is not None and len(groups) == 1 and groups[0].start < near.start:
            near = groups[0]  # "for each band that has six tracks, its name"
        near = near or self.right(piece) or self.asked_about(piece) or self.left(piece)
        if near is None or not near.tables:
            return
        table = self.schema.tables[near.tables[0]]
        if lemma(piece.text) in ("name", "full name") and table.naming is not None:
            yield Option(table.naming.ref, 0.9 + NEAREST, 0.9)
        numbered = lemma(piece.text) == "number" and near.end == piece.start
        if (lemma(piece.text) == "id" or numbered) and len(table.keys) == 1:
            yield Option(table.keys[0].ref, 0.85 + NEAREST, 0.85)

    def _filter_options(self, part: Filter) -> list[Option]:
        equal = part.operator in (Operator.EQ, Operator.NE)
        links = part.value.values if part.value is not None and (equal or part.subject is None) else ()
        if part.value is not None and DATE.fullmatch(part.value.text):
            links = tuple(link for link in links if self._written_so(link, part.value))
        stored = {link.column for link in links}
        at = part.value or part.subject
        if part.subject is not None and part.value is not None and DATE.fullmatch(part.value.text):
            dates = [k for k in part.subject.columns if k.column and self.schema.column(k.column).temporal]
            if not dates:
                return list(self._temporal(part.value))
        if part.subject is not None and part.subject.columns:
            found = [self._option(link, part.subject, filtering=True) for link in part.subject.columns]
            met = [Option(o.column, o.score + 0.6, o.words) for o in found if o.column in stored]
            if links and not met and equal:
                return [self._option(link, at, filtering=True) for link in links if at is not None]
            return met or [o for o in found if self._fits(o.column, part)] or found
        if links and at is not None:
            like = part.operator in (Operator.CONTAINS, Operator.STARTS, Operator.ENDS)
            table = self.nearest(at) if like and at.quoted else None
            naming = self.schema.tables[table].naming if table is not None else None
            if naming is not None:
                return [Option(naming.ref, 0.6, 0.8)]
            return [] if like else [self._on_its_way(self._option(link, at, filtering=True), at) for link in links]
        if part.grade is not None and (part.grade.attributes or part.grade.inverse):
            return list(self._attributes(part.grade, self.nearest(at)))
        if part.value is not None and part.value.cue == Cue.NUMBER:
            return list(self._numeric(part))
        if part.value is not None and DATE.fullmatch(part.value.text):
            return list(self._temporal(part.value))
        table = self.nearest(at)
        naming = self.schema.tables[table].naming if table else None
        return [Option(naming.ref, 0.6, 0.8)] if naming is not None else []

    def _on_its_way(self, option: Option, value: Piece) -> Option:
        """An option with what "from" or "to" before the value says for or against its column: to_town, destination."""
        way = text_before(self.pieces, value)
        if way not in WAYS:
            return option
        words = self.schema.column(option.column).words
        gain = sum(SIDE if end == way else -SIDE for end, called in WAYS.items() if set(called) & set(words))
        return Option(option.column, option.score + gain, option.words)

    def _written_so(self, link: Link, value: Piece) -> bool:
        """Whether a month or a day stands in a column just as the question has it, and in none of dates."""
        column = link.column
        return column is not None and str(link.value) == value.text and not self.schema.column(column).temporal

    def _fits(self, column: ColumnRef, part: Filter) -> bool:
        """Whether the type of a column agrees with the value."""
        view = self.schema.column(column)
        if part.value is None:
            return True
        return part.value.cue != Cue.NUMBER or view.numeric or view.temporal or view.key

    def _numeric(self, part: Filter) -> Iterator[Option]:
        """Columns for a bare number: a year asks for a date, another number for the table's only measure."""
        assert part.value is not None
        table = self.nearest(part.value)
        if table is None and part.value.number in YEARS and self.dated(part.value):
            yield from self._temporal(part.value)
        if table is None or part.value.number is None:
            return
        before = self.left(part.value)
        keys = self.schema.tables[table].keys
        if before is not None and before.end == part.value.start and part.operator == Operator.EQ and len(keys) == 1:
            yield Option(keys[0].ref, 0.6, 0.8)  # "course 301"
            return
        columns = self.schema.tables[table].columns
        before = self.left(part.value) or self.right(part.value)
        tables = before.tables if before is not None and table in before.tables else (table,)
        dated = self.dated(part.value) if part.operator == Operator.EQ else not self.amount(part.value)
        if part.value.number in YEARS and dated:
            yield from self._temporal(part.value, tables)
            return
        measures = [c for c in columns if c.numeric and not c.key]
        after = next((p.text for p in self.pieces if p.start == part.value.end and p.cue == Cue.WORD), "")
        units = units_of(after, measures)
        if after and units:
            yield from (Option(c.ref, 0.8, 0.9) for c in units)  # "higher than 4000 metres", in elev_m
            return
        year = part.value.number in YEARS and text_before(self.pieces, part.value) in (*IN_A_YEAR, "of")
        if len(measures) == 1 and (not year or holds_years(measures[0].samples)):
            yield Option(measures[0].ref, 0.4, 0.5)

    def _temporal(self, value: Piece, tables: Sequence[str] = ()) -> Iterator[Option]:
        """Columns of dates and years for a date: those that a verb tells, those of the table spoken of, and others."""
        before = self.left(value) or self.right(value)
        near = self.nearest(value)
        near = near or next((link.table for p in self.pieces for link in p.columns[:1]), None)
        near = near or next((link.table for p in self.pieces for link in p.values[:1]), None)
        tables = tables or (before.tables if before is not None else (near,) if near is not None else ())
        joined = {join.right.table: None for name in tables for join in self.schema.joins.get(name, ())}
        beside, own = ([c for name in some for c in self.schema.tables[name].columns if c.temporal and not _clock(c)]
                       for some in (joined, tables))  # fmt: skip
        said = {stem(p.text) for p in self.pieces if p.cue == Cue.WORD}
        told = [c for c in beside if said & {stem(word) for word in c.words}]  # "registered in 2016"
        yield from (Option(c.ref, 0.9, 0.7) for c in told)
        said |= {stem(word) for p in self.pieces for word in p.text.lower().split()}
        elsewhere = [name for name in self._dated_of_measured() if name not in tables]
        if set(tables) & set(self._measured()):
            elsewhere = []  # what is measured stands in the table that is spoken of
        measured = [c for name in elsewhere for c in self.schema.tables[name].columns]
        for c in measured:
            if c.temporal and not _clock(c) and c not in told:
                yield Option(c.ref, 0.75 - NEAR * bool(LASTING & {stem(word) for word in c.words} - said), 0.6)
        if own and not all(map(lasts, own)):
            beside = []
        stored = {link.column for link in value.values}
        for column in (*own, *beside):
            if column not in told:
                lasting = bool(LASTING & {stem(word) for word in column.words} - said)
                held = STORED * (STORED_DAY.fullmatch(value.text) is not None and column.ref in stored)
                worth = (
                    held
                    + 0.5
                    - NEAR * lasting
                    - AWAY * (bool(own) and column in beside)
                    + AWAY * self._of_itself(column)
                )
                yield Option(column.ref, worth, 0.6)

    def _of_itself(self, column: ColumnView) -> bool:
        """Whether a date is called as its table is: the visit_date of visits."""
        words = set(column.words) - {"date", "day", "on", "at"}
        return bool(words) and words <= set(self.schema.tables[column.ref.table].words)

    def _dated_of_measured(self) -> list[str]:
        """The measured tables, or those that their rows belong to where they have no dates of their own."""
        found: list[str] = []
        for name in self._measured():
            if any(column.temporal for column in self.schema.tables[name].columns):
                found.append(name)
            else:
                joins = self.schema.joins.get(name, ())
                found += [join.right.table for join in joins if (join.left, join.right) in self.schema.refers]
        return found

    def _measured(self) -> list[str]:
        """The tables of amounts that are asked for: "how many crates did the mill get in May" is of deliveries."""
        pieces = [item.piece for item in self.draft.select if item.piece is not None and item.piece.cue != Cue.TABLE]
        named = [piece.columns for piece in pieces if piece.columns]
        links = [
            next((k for k in some if k.score == some[0].score and k.table in self.mentioned), some[0]) for some in named
        ]
        views = [self.schema.column(link.column) for link in links if link.column is not None]
        return [view.ref.table for view in views if view.amount]

    def _attributes(self, grade: Grade, near: str | None) -> Iterator[Option]:
        for words, flipped in ((grade.attributes, False), (grade.inverse, True)):
            for column in self.schema.columns():
                if not (grade.any_type or column.numeric or column.temporal or "age" in column.words):
                    continue
                alike = max((similarity(w, other) for w in words for other in column.words), default=0.0)
                if alike >= (0.6 if grade.any_type else 0.85) and not (column.key and not column.temporal):
                    score = alike * (0.7 if flipped else 0.9) + self._table_gain(column.ref.table, near)
                    yield Option(column.ref, score, 0.9, flipped)

    def _graded(self, cue: Piece | None) -> str | None:
        """The table whose rows an adjective compares: the next one named, else the question's first."""
        right = self.right(cue) if cue is not None else None
        after = next((p for p in self.pieces if cue is not None and p.start >= cue.end), None)
        if right is None and after is not None and after.columns and after.columns[0].whole:
            return after.columns[0].table  # "the most recent treatment cost"
        found = right or next((p for p in self.pieces if p.cue == Cue.TABLE), None)
        return found.tables[0] if found is not None else None

    def _table_gain(self, table: str, near: str | None) -> float:
        if near is None:
            return MENTIONED if table in self.mentioned else 0.0
        return NEAREST if table == near else MENTIONED if table in self.mentioned else 0.0

    def _option(self, link: Link, piece: Piece, *, filtering: bool) -> Option:
        assert link.column is not None
        left, right = self.left(piece), self.right(piece)
        before, after = self.speaks_of(piece), set(right.tables[:2]) if right is not None else set()
        asked = None if filtering or after else self.asked_about(piece)
        before = set(asked.tables[:2]) if asked is not None else before
        backwards = filtering or (self.owned(piece) and bool(before or left))
        first, second = (before or set(left.tables[:2] if left else ()), after) if backwards else (after, before)
        gain = 0.0
        if link.table in first:
            gain = NEAREST
        elif link.table in second:
            gain = NEAR if first else NEAREST
        elif link.table in self.mentioned:
            gain = MENTIONED
        view = self.schema.column(link.column)
        gain -= 0.05 * (view.key and not view.primary)
        gain += 0.03 * (set(view.words) <= set(self.schema.tables[link.table].words))
        return Option(link.column, link.score + gain, link.score)

    def dated(self, piece: Piece) -> bool:
        """Whether "in" or the like stands before a number, so that it is a year: "for 2023", not "for 2000 guests"."""
        before = text_before(self.pieces, piece)
        following = next((p.cue for p in self.pieces if p.start >= piece.end), Cue.END)
        alone = following in (Cue.END, Cue.COMMA, Cue.AND, Cue.PREPOSITION)
        return before in IN_A_YEAR or (before == "for" and alone)

    def amount(self, piece: Piece) -> bool:
        """Whether "more than" or the like stands before a number, so that it is no year."""
        return text_before(self.pieces, piece) in AMOUNTS

    def left(self, piece: Piece) -> Piece | None:
        """The nearest table named before a piece."""
        before = (p for p in reversed(self.pieces) if p.end <= piece.start)
        return next((p for p in before if p.cue == Cue.TABLE), None)

    def owned(self, piece: Piece) -> bool:
        """Whether "its" or "their" stands before a piece, so that it belongs to what was named before."""
        before = next((p for p in reversed(self.pieces) if p.end <= piece.start), None)
        return before is not None and before.cue == Cue.WORD and before.text in OWNERS

    def asked_about(self, piece: Piece) -> Piece | None:
        """The question's first table, for a mention in a later sentence that names no table: "… ? List the id."."""
        before = [p for p in self.pieces if p.end <= piece.start]
        ends = [i for i, p in enumerate(before) if p.cue == Cue.END]
        if not ends or any(p.cue in (Cue.TABLE, Cue.EACH) for p in before[ends[-1] :]):
            return None
        return next((p for p in before[: ends[-1]] if p.cue == Cue.TABLE), None)

    def speaks_of(self, piece: Piece) -> set[str]:
        """The tables that the words before a piece speak of: one that is named, or that holds a value."""
        for before in reversed(self.pieces):
            if before.end > piece.start:
                continue
            if before.cue == Cue.TABLE:
                return set(before.tables[:2])
            if before.cue == Cue.VALUE and before.values:
                return {link.table for link in before.values}
        return set()

    def right(self, piece: Piece) -> Piece | None:
        """The next table named after a piece, up to where another clause begins."""
        after = [p for p in self.pieces if p.start >= piece.end]
        counted = False
        for p in after:
            if p.cue in BARRIERS:
                return None
            if p.cue == Cue.TABLE and not counted:
                return p
            counted = p.cue == Cue.COUNT or (counted and p.cue not in (Cue.TABLE, Cue.COLUMN))
        return None

    def nearest(self, piece: Piece | None) -> str | None:
        """The table that a piece most likely speaks of."""
        found = None
        if piece is not None:
            found = self.left(piece) or self.right(piece)
        if found is None:
            found = next((p for p in self.pieces if p.cue == Cue.TABLE), None)
        if found is not None:
            return found.tables[0]
        return next((link.table for p in self.pieces for link in p.columns if link.whole), None)
