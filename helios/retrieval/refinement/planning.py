"""Plans for a question: which column of which table, from which end, among which rows.

Every plan that the wording and the types allow is laid out and executed at once; a scorer trained on which plans hit
the gold rows of train questions then says how likely each is (`scorer.py`). Features are plain numbers in the order
of `FEATURES`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from helios.retrieval.refinement.columns import Kind, TypedColumn
from helios.retrieval.refinement.execution import Executor, Orders
from helios.retrieval.refinement.filters import RowFilter, row_filters
from helios.retrieval.refinement.restoring import RestoredTable
from helios.retrieval.refinement.wording import Cue, Sense, stem, stems, words_of

HEAD = 50
"""Edges from the top whose scores are the scale of all gaps between scores."""
MOST_TIES = 3
"""Rows that one plan may choose."""
FEATURES = (
    "table_rank", "table_gap", "row_gap", "row_rank", "row_found", "rows", "retrieved_share",
    "best_margin", "fifth_margin", "row_drop", "row_behind", "top_margin", "at_top", "share",
    "age", "time", "size", "amount", "quality", "place_cue", "place", "cue_start", "cues",
    "date", "end", "number", "duration", "place_kind", "order", "born", "founded", "population", "capacity",
    "hint", "after_share", "after_first", "header_share", "header_words", "coverage", "distinct",
    "cell_filter", "year_filter", "text_filter", "both_filter", "strength", "group_share", "group_size", "ties",
    "filters_offered", "stated", "world", "name_in_title", "head_share", "row_words",
)  # fmt: skip

_TYPES: dict[Sense, dict[Kind, int]] = {
    Sense.AGE: {Kind.DATE: 1, Kind.BORN: 1, Kind.FOUNDED: 1, Kind.NUMBER: -1, Kind.ORDER: 1},
    Sense.TIME: {Kind.DATE: 1, Kind.END: 1, Kind.ORDER: 1, Kind.PLACE: 1, Kind.NUMBER: 1, Kind.FOUNDED: 1},
    Sense.SIZE: {
        Kind.NUMBER: 1, Kind.DURATION: 1, Kind.POPULATION: 1, Kind.CAPACITY: 1, Kind.PLACE: -1, Kind.ORDER: -1,
    },
    Sense.AMOUNT: {
        Kind.NUMBER: 1, Kind.DURATION: 1, Kind.POPULATION: 1, Kind.CAPACITY: 1, Kind.PLACE: -1, Kind.ORDER: -1,
    },
    Sense.QUALITY: {Kind.NUMBER: 1, Kind.DURATION: -1, Kind.PLACE: -1, Kind.ORDER: -1},
    Sense.PLACE: {Kind.PLACE: 1, Kind.NUMBER: 1, Kind.ORDER: 1, Kind.DATE: 1},
}  # fmt: skip
"""For every sense the kinds of columns that it may compare; -1 where large is told by small values."""
_FACT_KINDS = {
    Sense.AGE: (Kind.BORN, Kind.FOUNDED),
    Sense.TIME: (Kind.FOUNDED,),
    Sense.SIZE: (Kind.POPULATION, Kind.CAPACITY),
    Sense.AMOUNT: (Kind.POPULATION, Kind.CAPACITY),
}
_END_WORDS = {True: "largest", False: "smallest"}


@dataclass(frozen=True, slots=True)
class Plan:
    """One executed plan: the rows it chose in one table, and how it reads."""

    table: RestoredTable
    column: TypedColumn
    rows: tuple[int, ...]
    filter: RowFilter
    largest: bool
    place: int
    features: tuple[float, ...]
    places: NDArray[np.float64]
    """Every row's place from the end that is asked for (rows), NaN where the filter or the column leaves it out."""

    @property
    def segments(self) -> tuple[int, ...]:
        """The numbers of the chosen rows' segments."""
        return tuple(self.table.first_segment + row for row in self.rows)

    @property
    def words(self) -> str:
        """The plan for people: `2nd smallest born of "Player" among rows where Position is "forward"`."""
        table, column = self.table.table, self.column
        what = "row in order" if column.kind is Kind.ORDER else f'{column.kind.value} of "{column.header}"'
        end = (
            _END_WORDS[self.largest] if self.place == 1 else f"number {self.place} from the {_END_WORDS[self.largest]}"
        )
        among = "" if self.filter.kind == "all" else f" where {self.filter.words}"
        title = f"{table.title}, {table.section}" if table.section else table.title
        return f"{end} {what}{among} in {title}"


def lay_plans(
    question: str,
    cues: Sequence[Cue],
    tables: Sequence[RestoredTable],
    executor: Executor,
    *,
    head: Sequence[float],
) -> list[Plan]:
    """Every plan, executed; no cue or no table, no plan.

    `head` has the scores of the subgraph's first edges, best first: 50 or as many as there are.
    """
    draft = _Draft(question, cues, tables, head)
    if not draft.wanted:
        return []
    orders = executor.orders(
        [(t, column.values) for t, column in draft.columns], [(t, chosen.mask) for t, chosen in draft.groups]
    )
    plans = [plan for wish in draft.wanted if (plan := draft.execute(wish, orders)) is not None]
    return _with_shares(plans)


def _with_shares(plans: Sequence[Plan]) -> list[Plan]:
    """The plans with the share of all plans that choose the same rows."""
    chosen = Counter((plan.table.number, plan.rows) for plan in plans)
    place = FEATURES.index("share")
    found = []
    for plan in plans:
        share = chosen[plan.table.number, plan.rows] / len(plans)
        features = (*plan.features[:place], share, *plan.features[place + 1 :])
        found.append(replace(plan, features=features))
    return found


@dataclass(frozen=True, slots=True)
class _Wish:
    """A plan before its execution: numbers of a cue, a column and a group."""

    cue: int
    column: int
    group: int
    largest: bool


class _Draft:
    """The columns, groups and plans of one question, numbered for one execution."""

    def __init__(
        self,
        question: str,
        cues: Sequence[Cue],
        tables: Sequence[RestoredTable],
        head: Sequence[float],
    ) -> None:
        self.cues = cues
        self.tables = tables
        self.question_stems = stems(question)
        self.columns: list[tuple[int, TypedColumn]] = []
        self.groups: list[tuple[int, RowFilter]] = []
        self.wanted: list[_Wish] = []
        self._top = head[0] if head else 0.0
        self._spread = max(1e-6, head[0] - head[-1]) if head else 1.0
        self._top_margin = (head[0] - head[1]) / self._spread if len(head) > 1 else 1.0
        self._stated = _stated_shares(question, cues, tables)
        facts = tuple(dict.fromkeys(kind for cue in cues for kind in _FACT_KINDS.get(cue.sense, ())))
        for number, table in enumerate(tables):
            columns = [*table.columns, *(table.facts(facts) if facts else ())]
            filters = row_filters(question, table, cues)
            self._lay(number, columns, filters)

    def _lay(self, table: int, columns: Sequence[TypedColumn], filters: Sequence[RowFilter]) -> None:
        groups = range(len(self.groups), len(self.groups) + len(filters))
        self.groups += [(table, chosen) for chosen in filters]
        for column in columns:
            ends = [(number, end) for number, cue in enumerate(self.cues) for end in _ends(cue, column)]
            if not ends:
                continue
            self.columns.append((table, column))
            self.wanted += [_Wish(cue, len(self.columns) - 1, group, end) for cue, end in ends for group in groups]

    def execute(self, wish: _Wish, orders: Orders) -> Plan | None:
        """The plan with its rows and features, None where it chooses no row or too many."""
        cue = self.cues[wish.cue]
        number, column = self.columns[wish.column]
        found = orders.of(wish.group, wish.column)
        ranks = (orders.from_large if wish.largest else orders.from_small)[found]
        if cue.sense is Sense.PLACE and column.kind in (Kind.PLACE, Kind.NUMBER):
            chosen = orders.value[found] == cue.place
        else:
            chosen = ranks == cue.place
        rows = orders.row[found][chosen]
        if len(orders.row[found]) < 2 or not 0 < len(rows) <= MOST_TIES:
            return None
        table, chosen_filter = self.tables[number], self.groups[wish.group][1]
        size = int(orders.size[found][0])
        features = self._features(wish, table, column, chosen_filter, rows, size)
        places = np.full(len(table.scores), np.nan)
        places[orders.row[found]] = ranks
        numbers = tuple(int(row) for row in rows)
        return Plan(table, column, numbers, chosen_filter, wish.largest, cue.place, features, places)

    def _features(
        self,
        wish: _Wish,
        table: RestoredTable,
        column: TypedColumn,
        chosen: RowFilter,
        rows: NDArray[np.int64],
        size: int,
    ) -> tuple[float, ...]:
        cue = self.cues[wish.cue]
        values = {
            **self._row_features(table, rows),
            **_cue_features(cue, len(self.cues), len(self.question_stems)),
            **{("place_kind" if kind is Kind.PLACE else kind.value): float(column.kind is kind) for kind in Kind},
            **_header_features(cue, column, self.question_stems),
            **_filter_features(chosen, len(table.table.rows), size),
        }
        finite = column.values[np.isfinite(column.values)]
        values["coverage"] = len(finite) / len(column.values)
        values["distinct"] = len(np.unique(finite)) / max(1, len(finite))
        values["ties"] = float(len(rows))
        values["filters_offered"] = float(sum(t == self.tables.index(table) for t, _ in self.groups))
        values["stated"], values["world"] = self._stated[wish.cue]
        values["name_in_title"] = float(cue.sense.value in table.title_words or bool(cue.hints & table.title_words))
        question = frozenset(self.question_stems)
        values["row_words"] = max(len(table.row_words[row] & question) for row in rows) / max(1, len(question))
        return tuple(float(values[name]) for name in FEATURES)

    def _row_features(self, table: RestoredTable, rows: NDArray[np.int64]) -> dict[str, float]:
        best = float(np.nanmax(table.scores))
        scores = table.scores[rows]
        found = bool(np.isfinite(scores).any())
        score = float(np.nanmax(scores)) if found else np.nan
        return {
            "table_rank": float(table.rank),
            "table_gap": (self._top - best) / max(1e-6, abs(self._top)),
            "row_gap": (best - score) / max(1e-6, abs(best)) if found else 1.0,
            "row_rank": float((table.scores > score).sum()) if found else float(len(table.scores)),
            "row_found": float(found),
            "rows": float(len(table.scores)),
            "retrieved_share": float(np.isfinite(table.scores).mean()),
            **self._margins(table, score if found else self._top - self._spread),
            "at_top": float(found and score >= self._top),
            "share": 0.0,
        }

    def _margins(self, table: RestoredTable, score: float) -> dict[str, float]:
        """How far the scores of a table's rows, and a chosen row's, lie apart, in parts of the spread of the head."""
        ranked = np.sort(table.scores[np.isfinite(table.scores)])[::-1]
        return {
            "best_margin": float(ranked[0] - ranked[1]) / self._spread if len(ranked) > 1 else 1.0,
            "fifth_margin": float(ranked[0] - ranked[min(4, len(ranked) - 1)]) / self._spread,
            "row_drop": (float(ranked[0]) - score) / self._spread,
            "row_behind": (self._top - score) / self._spread,
            "top_margin": self._top_margin,
        }


def _ends(cue: Cue, column: TypedColumn) -> Iterator[bool]:
    """From which end a cue takes a column of this kind: True for the large values; nothing if it does not."""
    sign = _TYPES[cue.sense].get(column.kind)
    header = set(stems(column.header))
    if sign is None:
        return
    if column.kind is Kind.NUMBER and cue.sense is Sense.AGE and "age" not in header:
        return
    if column.kind is Kind.NUMBER and cue.sense is Sense.TIME and not header & _COUNTERS:
        return
    if (
        column.kind is Kind.NUMBER
        and cue.sense is Sense.PLACE
        and not header & (_COUNTERS | {stem(w) for w in cue.after})
    ):
        return
    yield cue.larger if sign > 0 else not cue.larger


_COUNTERS = {"no", "number", "round", "season", "episode", "week", "edition", "pick", "#", "rank", "order", "game"}


def _cue_features(cue: Cue, cues: int, words: int) -> dict[str, float]:
    senses = {("place_cue" if sense is Sense.PLACE else sense.value): float(cue.sense is sense) for sense in Sense}
    return senses | {"place": float(cue.place), "cue_start": cue.start / max(1, words), "cues": float(cues)}


def _header_features(cue: Cue, column: TypedColumn, question: Sequence[str]) -> dict[str, float]:
    """How well the header names what is compared: hint words, words after the cue, words of the whole question."""
    header = [word for word in stems(column.header) if not word.isdigit()]
    after = [stem(word) for word in cue.after]
    named = [word for word in header if word in after]
    return {
        "hint": float(any(stem(word) in header for word in cue.hints)),
        "after_share": len(named) / max(1, len(header)),
        "after_first": 1.0 / (1 + min((after.index(word) for word in named), default=9)),
        "header_share": sum(word in question for word in header) / max(1, len(header)),
        "header_words": float(len(header)),
        "head_share": float(bool(after) and after[0] in header),
    }


def _filter_features(chosen: RowFilter, rows: int, size: int) -> dict[str, float]:
    return {
        "cell_filter": float(chosen.kind == "cell"),
        "year_filter": float(chosen.kind == "year"),
        "text_filter": float(chosen.kind == "text"),
        "both_filter": float(chosen.kind == "both"),
        "strength": chosen.strength,
        "group_share": float(chosen.mask.sum()) / rows,
        "group_size": float(size),
    }


_WORLD = {"world", "country", "state", "city", "population", "area", "province", "nation", "continent", "kingdom"}


def _stated_shares(question: str, cues: Sequence[Cue], tables: Sequence[RestoredTable]) -> list[tuple[float, float]]:
    """For every cue: how much of the superlative's phrase a linked passage states word by word, and world words.

    "the largest city in Imperial Valley" is stated by a passage about the city and needs no aggregation.
    """
    texts = [text.casefold() for table in tables[:2] for text in table.openings.values()]
    shares = []
    for cue in cues:
        phrase = [*words_of(cue.word), *cue.after][:7]
        longest = 0
        held = texts
        for length in range(2, len(phrase) + 1):
            wanted = " ".join(phrase[:length])
            held = [text for text in held if wanted in text]
            if not held:
                break
            longest = length
        shares.append((longest / max(1, len(phrase)), float(bool(_WORLD & {stem(word) for word in cue.after}))))
    return shares
