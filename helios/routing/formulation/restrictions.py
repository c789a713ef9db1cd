"""Which rows a plan keeps: comparisons, rows of other tables that must not exist, and dates as columns write them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from helios.executors.values import Value
from helios.routing.formulation.conditions import NEGATED
from helios.routing.formulation.cues import Cue
from helios.routing.formulation.dates import DATE, YEARS, within
from helios.routing.formulation.draft import Draft, Filter
from helios.routing.formulation.linking import says_when
from helios.routing.formulation.pieces import Piece, text_before
from helios.routing.formulation.plan import ROWS, Aggregate, ColumnRef, Condition, Operator, Plan, PlanError, Term
from helios.routing.formulation.schema import WAYS, SchemaView
from helios.routing.formulation.settling import Settled
from helios.routing.formulation.words import IRREGULAR, lemma, stem

USED = {stem(word) for word in ("used", "appear", "serve", "occur")}


def _does(verb: str, words: Sequence[str]) -> bool:
    """Whether rows of a table are called by what a verb does: rented, and rentals."""
    root = stem(verb)
    return any(root in (word, stem(word)) or (len(root) > 3 and word.startswith(root)) for word in words)


class Restrictions:
    """The conditions of a draft whose columns are settled, and the tables that they need."""

    def __init__(self, draft: Draft, settled: Settled, schema: SchemaView) -> None:
        self.draft, self.settled, self.schema = draft, settled, schema
        self.needed: list[str] = []
        self.counts: list[Condition] = []
        self.money: ColumnRef | None = None
        """The amount that "how much" asks for."""
        read = [piece.text for piece in draft.pieces if piece.cue in (Cue.WORD, Cue.COLUMN)]
        said = {stem(lemma(word)) for text in read for word in text.lower().split()}
        named = [piece for piece in draft.pieces if piece.cue == Cue.TABLE]
        for piece in named:  # a driver, where the table has staff
            own = {stem(word) for table in piece.tables[:1] for word in schema.tables[table].words}
            said |= {stem(lemma(word)) for word in piece.text.lower().split()} - own
        self.said = frozenset(said)

    def _where(self, entity: str) -> tuple[list[tuple[Condition, ...]], dict[str, list[Condition]]]:
        """Conditions on the joined rows, and on rows of other tables that must not exist."""
        where: list[tuple[Condition, ...]] = []
        absent: dict[str, list[Condition]] = {}
        for piece, _ in self.draft.absent[:1]:
            sure = [link for link in piece.columns if link.score > 0.9 or says_when(link, piece.text)]
            own = next((link.column for link in sure if link.table == entity), None)
            if piece.cue == Cue.COLUMN and own is not None:
                where.append((Condition(Term(own), Operator.IS_NULL),))
            else:
                absent[self._nearest(entity, piece)] = []
        for part in self.draft.filters:
            condition = self._condition(part) if not part.inside else None
            if condition is None or condition.term.column is None:
                continue
            table = condition.term.column.table
            if self._counts(part, condition):
                self._need([self._listed(condition.term.column)])
                number = part.value.number if part.value is not None else None
                counted = Term(condition.term.column, Aggregate.COUNT, distinct=True) if self._different(part) else ROWS
                self.counts.append(Condition(counted, part.operator, (plain_number(number or 0.0),)))
                continue
            if (by_role := self._by_role(part, condition)) is not None:
                where.append((by_role,))
                continue
            spoken = (entity, self._spoken(), *self._measured())
            elsewhere = part.negated and table not in spoken and self._many(entity, table)
            within = any(piece.start < self._start(part) for piece, _ in self.draft.absent)
            if elsewhere or (absent and (table in absent or (within and table != entity))):
                home = next(iter(absent), table) if within else table
                absent.setdefault(home, []).append(condition)
                continue
            if part.negated:
                condition = replace(condition, operator=NEGATED.get(condition.operator, condition.operator))
            self._need([table])
            if any(condition in some for some in where):
                continue
            same = where and where[-1][0].term == condition.term and condition.operator == Operator.EQ
            listed = same and where[-1][0].operator == Operator.EQ and not self._together(condition)
            if where and (part.alternative or listed):
                where[-1] = (*where[-1], condition)
            elif part.operator is Operator.IS_NULL and condition.operator is Operator.EQ and not part.negated:
                where.append((condition, Condition(condition.term, Operator.IS_NULL)))  # nothing, or not said
            else:
                where.append((condition,))
        return where, absent

    def _by_role(self, part: Filter, condition: Condition) -> Condition | None:
        """A condition on what a row refers to in one of its roles, where the question speaks of several: "a main
        supplier in Leeds and a backup supplier in Bristol"."""
        role = self._role(part)
        if role is None or part.negated or len(set(filter(None, map(self._role, self.draft.filters)))) < 2:
            return None
        own, key = role
        self._need([own.table])
        rows = Plan(key.table, (Term(key),), where=((condition,),))
        return Condition(Term(own), Operator.IN, query=rows)

    def _role(self, part: Filter) -> tuple[ColumnRef, ColumnRef] | None:
        """The column that refers to the rows of a condition, and the key; None where no mention names one.

        Without a mention "from" and "to" name the ends of what goes from one place to another.
        """
        column = self.settled.of(part)
        if column is None:
            return None
        referring = [(own, key) for own, key in self.schema.refers if key.table == column.table]
        if part.subject is not None:
            named = {link.column for link in part.subject.columns}
            found = [(own, key) for own, key in referring if own in named]
        else:
            ends = WAYS.get(self._preposition(part), ())
            found = [(own, key) for own, key in referring if self._is_called(own, ends, key.table)]
            spoken = {table for piece in self.draft.pieces for table in piece.tables}
            found = [pair for pair in found if pair[0].table in spoken] or found
        return found[0] if len(found) == 1 else None

    def _preposition(self, part: Filter) -> str:
        """The preposition that stands before the value of a condition."""
        before = [p for p in self.draft.pieces if part.value is not None and p.end <= part.value.start][-1:]
        return before[0].text.lower() if before and before[0].cue == Cue.PREPOSITION else ""

    def _is_called(self, column: ColumnRef, names: Sequence[str], of: str) -> bool:
        """Whether a word of a column's name is one of some, or at least three letters of one, beside what a table is
        called."""
        words = set(self.schema.column(column).words) - set(self.schema.tables[of].words)
        return any(
            stem(word) == stem(name) or (len(word) > 2 and name.startswith(word)) for word in words for name in names
        )

    def _measured(self) -> set[str]:
        """The tables whose rows are counted or added up: "the most paid for bookings that were not refunded"."""
        items = [item for item in (*self.draft.select, *self.draft.orders) if item.aggregate or item.many]
        items += [part.item for part in self.draft.having if part.item is not None]
        columns = (self.settled.of(item) for item in items)
        found = {column.table for column in columns if column is not None}
        return found | {table for item in items if item.piece is not None for table in item.piece.tables[:1]}

    def _nearest(self, entity: str, piece: Piece) -> str:
        """The table of a mention, of a column the one that the entity is nearest to."""
        if piece.cue != Cue.COLUMN:
            return piece.tables[0]
        sure = [link for link in piece.columns if link.score > 0.9] or piece.columns
        tables = dict.fromkeys(link.table for link in sure)
        return min(tables, key=lambda table: len(self.schema.path([entity], table) or range(99)))

    def _unused(self, entity: str) -> str | None:
        """The table whose rows speak of an entity that has "never been used": the only one, or one the verb names."""
        speaking = dict.fromkeys(own.table for own, key in self.schema.refers if key.table == entity)
        spoken = self.draft.never or ()
        verbs = [word for piece in spoken if piece.cue == Cue.WORD for word in piece.text.lower().split()]
        said = {stem(word) for word in verbs}
        named = [t for t in speaking if any(_does(verb, self.schema.tables[t].words) for verb in verbs)]
        named = named or [t for t in speaking if any(self._done_in(t, piece) for piece in spoken)]
        if len(named) == 1:
            return named[0]
        only = [t for t in speaking if not any(t in piece.tables for piece in self.draft.mentions)]
        never = any(p.cue == Cue.NOT and p.text == "never" for p in self.draft.pieces)
        return only[0] if len(only) == 1 and (said & USED or never) else None

    def _done_in(self, table: str, piece: Piece) -> bool:
        """Whether what has not been done is told by a table: rented in rentals, hired where a hire has an amount."""
        text = piece.text.lower()
        if piece.cue != Cue.WORD and text_before(self.draft.pieces, piece) in ("a", "an", "any", "anything"):
            return any(link.table == table for link in piece.links)  # "never placed an order"
        if piece.cue == Cue.WORD or not (text.endswith("ed") or text in IRREGULAR):
            return False
        own = {link.table for link in piece.links if link.column is None or not link.whole}
        return _does(text, self.schema.tables[table].words) or own == {table}

    def _counts(self, part: Filter, condition: Condition) -> bool:
        """ "More than one friend", where friends are names: how many there are is compared."""
        if part.value is None or part.subject is None or part.value.cue != Cue.NUMBER or condition.term.column is None:
            return False
        view = self.schema.column(condition.term.column)
        near = part.subject.start == part.value.end or self._different(part) or self._or_more(part)
        several = lemma(part.subject.text.split()[-1]) != part.subject.text.split()[-1].lower()
        averaged = any(
            item.aggregate is Aggregate.AVG and self.settled.of(item) == view.ref for item in self.draft.select
        )
        counted = view.text or (several and (view.key or averaged))
        return near and counted and not view.temporal and not view.primary

    def _different(self, part: Filter) -> bool:
        """Whether "different" stands between a number and what is counted: at least three different doctors."""
        if part.value is None or part.subject is None:
            return False
        between = [p.cue for p in self.draft.pieces if part.value.end <= p.start < part.subject.start]
        return between == [Cue.DISTINCT]

    def _or_more(self, part: Filter) -> bool:
        """Whether the comparison stands between a number and what is counted: two or more kinds."""
        assert part.value is not None and part.subject is not None
        between = [p.cue for p in self.draft.pieces if part.value.end <= p.start < part.subject.start]
        return between == [Cue.COMPARE]

    def _listed(self, column: ColumnRef) -> str:
        """The table that has a row for each of what is counted: models are those of the list that cars refer to."""
        words = self.schema.column(column).words
        for own, other in self.schema.refers:
            if own == column and stem(words[-1]) in {stem(word) for word in self.schema.tables[other.table].words}:
                return other.table
        return column.table

    def _start(self, part: Filter) -> int:
        return max((p.start for p in (part.subject, part.value) if p is not None), default=0)

    def _together(self, condition: Condition) -> bool:
        """Whether two values joined by "and" must both be met by what is selected, each by a row of its own."""
        counted = any(item.aggregate is not None for item in self.draft.select)
        selected = {self.settled.of(item) for item in self.draft.select}
        return self.draft.both or not (counted or condition.term.column in selected)

    def _two_rows(self, where: Sequence[tuple[Condition, ...]]) -> bool:
        """Whether two conditions may be met by a row each: "both a film in French and a film on birds"."""
        both = next((p.start for p in self.draft.pieces if p.cue == Cue.BOTH), None)
        if both is None or any(item.aggregate is not None for item in self.draft.select):
            return False
        named = [p.tables[0] for p in self.draft.mentions if p.start > both and p.tables]
        return any(named.count(table) > 1 for table in named) and where[0][0].term != where[1][0].term

    def _many(self, entity: str, table: str) -> bool:
        """Whether an entity may have several rows of a table."""
        path = self.schema.path([entity], table) or ()
        return any(not self.schema.column(join.right).primary or len(self.schema.tables[join.right.table].keys) > 1
                   for join in path)  # fmt: skip

    def _condition(self, part: Filter) -> Condition | None:
        column = self.settled.of(part) or self._day_of_money(part)
        if column is None:
            return None
        operator = part.operator
        view = self.schema.column(column)
        if operator == Operator.IS_NULL and view.amount:
            return Condition(Term(column), Operator.EQ, (0,))
        if id(part) in self.settled.flipped:
            mirrored = {Operator.GT: Operator.LT, Operator.LT: Operator.GT, Operator.GE: Operator.LE}
            operator = mirrored.get(operator, operator)
        if part.than is not None:
            than = self.settled.of(part.than)
            if than is None or not self._alike(column, than):
                raise PlanError("columns of unlike values are not compared")
            return Condition(Term(column), operator, than=than)
        if part.average is not None and not self.schema.column(column).numeric and (own := self._number_asked()):
            column = own  # "who is paid more than the average clerk? Name and wage"
        elif part.average is not None and (amount := self._amount_for(column)) != column:
            if amount is None:
                raise PlanError("words have no average")
            column = amount  # "donations that are bigger than the average donation"
        if part.average is not None and part.own is not None:
            return self._of_own_kind(part, column, operator)
        if part.average is not None:
            inner = [c for other in self.draft.filters if other.inside and (c := self._condition(other)) is not None]
            tables = [column.table, *(c.term.column.table for c in inner if c.term.column is not None)]
            reached = self.schema.connect(tables)
            where = tuple((c,) for c in inner) if reached is not None else ()
            query = Plan(column.table, (Term(column, part.average),), reached[1] if reached is not None else (), where)
            return Condition(Term(column), operator, query=query)
        dates = self._dates(part, column, operator)
        if dates is not None:
            return Condition(Term(column), *dates)
        other = self._compared_row(part, column)
        if other is not None:
            return Condition(Term(column), operator, query=other)
        values = tuple(self._value(piece, column, operator) for piece in (part.value, part.second) if piece is not None)
        return Condition(Term(column), operator, values)

    def _amount_for(self, column: ColumnRef) -> ColumnRef | None:
        """A column that has an average, or in its place the only amount of its table."""
        view = self.schema.column(column)
        return column if view.numeric or view.temporal else self.schema.tables[column.table].only_amount

    def _day_of_money(self, part: Filter) -> ColumnRef | None:
        """When money was taken or spent, for a date that no other rows have: what a verb names, or the first."""
        if self.money is None or part.value is None or not _period(part.value):
            return None
        days = [column for column in self.schema.tables[self.money.table].columns if column.temporal]
        named = [column for column in days if self.said & {stem(word) for word in column.words}]
        return next((column.ref for column in (*named, *days)), None)

    def _alike(self, column: ColumnRef, other: ColumnRef) -> bool:
        """Whether two columns hold the same sort of values: amounts, times, keys of one table."""
        one, two = self.schema.column(column), self.schema.column(other)
        keys = {own: key for own, key in self.schema.refers}
        if one.key or two.key:
            return column != other and keys.get(column, column) == keys.get(other, other)
        return column != other and (one.numeric, one.temporal) == (two.numeric, two.temporal)

    def _number_asked(self) -> ColumnRef | None:
        """The first amount that is asked for."""
        columns = (self.settled.of(item) for item in self.draft.select)
        views = (self.schema.column(column) for column in columns if column is not None)
        return next((view.ref for view in views if view.numeric and not view.key), None)

    def _of_own_kind(self, part: Filter, column: ColumnRef, operator: Operator) -> Condition:
        """Compared with an aggregate over the rows that share a column, or refer to the same row, with the row."""
        assert part.own is not None and part.own.piece is not None and part.average is not None
        kind = self.settled.of(part.own)
        if kind is None or kind.table != column.table:
            tables = {*part.own.piece.tables, *([kind.table] if kind is not None else [])}
            kinds = [own for own, key in self.schema.refers if own.table == column.table and key.table in tables]
            kind = kinds[0] if len(kinds) == 1 else None
        if kind is None:
            raise PlanError("nothing says which rows are of a row's own kind")
        query = Plan(column.table, (Term(column, part.average),))
        return Condition(Term(column), operator, query=query, own=kind)

    def _dates(self, part: Filter, column: ColumnRef, operator: Operator) -> tuple[Operator, tuple[str, ...]] | None:
        """How a column of dates compares with a date, a month or a year; None for anything else."""
        pieces = [piece for piece in (part.value, part.second) if piece is not None]
        periods = [_period(piece) for piece in pieces]
        view = self.schema.column(column)
        if not pieces or not all(periods):
            return None
        sides = [within(period, operator, view.samples) for period in periods]
        if sides[0] is None or sides[-1] is None:
            return None
        return sides[0][0], (*sides[0][1][:1], *sides[-1][1][1:])

    def _compared_row(self, part: Filter, column: ColumnRef) -> Plan | None:
        """What a row that is named has in a column: "more than Jed" has."""
        links = [link for link in (part.value.values if part.value is not None else ()) if link.table == column.table]
        if part.operator in (Operator.EQ, Operator.NE) or not links or not self.schema.column(column).numeric:
            return None
        named = Condition(Term(links[0].column), Operator.EQ, (links[0].value,))
        return Plan(column.table, (Term(column),), where=((named,),))

    def _value(self, piece: Piece, column: ColumnRef, operator: Operator) -> Value:
        if operator in (Operator.EQ, Operator.NE):
            stored = [link for link in piece.values if link.column == column]
            if stored:
                return max(stored, key=lambda link: link.score).value
        if piece.number is not None:
            return plain_number(piece.number) if self.schema.column(column).numeric else piece.text.replace(",", "")
        return piece.text

    def _exclusion(self, entity: str, table: str, filters: list[Condition]) -> Condition | None:
        """The entity's key is not among those that the other table's rows lead to."""
        path = self.schema.path([entity], table, self.said)
        if not path:
            return None
        selected = [self.settled.of(item) for item in self.draft.select if item.aggregate is None]
        if not any(entity in piece.tables for piece in self.draft.mentions) and len(selected) == 1 and selected[0]:
            column = selected[0]
            having = tuple((condition,) for condition in filters)
            return Condition(Term(column), Operator.NOT_IN, query=Plan(entity, (Term(column),), path, having))
        first = path[0]
        if len(path) == 1 and not filters and (first.left, first.right) in self.schema.refers:
            return Condition(Term(first.left), Operator.IS_NULL)
        reached = self.schema.connect(
            [
                first.right.table,
                *(j.right.table for j in path[1:]),
                *(c.term.column.table for c in filters if c.term.column),
            ]
        )
        if reached is None:
            return None
        joins = reached[1]
        known = Condition(Term(first.right), Operator.NOT_NULL)
        where = ((known,), *((condition,) for condition in filters))
        query = Plan(first.right.table, (Term(first.right),), joins, where)
        return Condition(Term(first.left), Operator.NOT_IN, query=query)

    def _spoken(self) -> str | None:
        """The table that is named first: "names of entrepreneurs", though other rows hold the names."""
        return self.draft.mentions[0].tables[0] if self.draft.mentions else None

    def _need(self, tables: Iterable[str]) -> None:
        self.needed += [table for table in tables if table not in self.needed]


def plain_number(number: float) -> int | float:
    return int(number) if number.is_integer() else number


def contrary_of(
    where: list[tuple[Condition, ...]],
) -> tuple[tuple[tuple[Condition, ...], ...], tuple[Condition, ...] | None]:  # fmt: skip
    """Two conditions on one column that no row can meet at once: the second becomes a plan of its own."""
    for i, first in enumerate(where):
        for second in where[i + 1 :]:
            if len(first) > 1 or len(second) > 1 or first[0].term != second[0].term:
                continue
            operators = {first[0].operator, second[0].operator}
            apart = operators == {Operator.LT, Operator.GT} and not _overlap(first[0], second[0])
            if operators == {Operator.EQ} or apart or (operators == {Operator.BETWEEN} and _apart(first[0], second[0])):
                rest = tuple(c for c in where if c is not first and c is not second)
                return (*rest, first), second
    return tuple(where), None


def _apart(first: Condition, second: Condition) -> bool:
    """Whether two spans of days have no day in common: "in March and again in June"."""
    spans = sorted((str(low), str(high)) for low, high in (first.values, second.values))
    return all(DATE.match(day) for span in spans for day in span) and spans[0][1] < spans[1][0]


def _overlap(first: Condition, second: Condition) -> bool:
    low, high = (first, second) if first.operator == Operator.GT else (second, first)
    if not low.values or not high.values:
        return True
    left, right = low.values[0], high.values[0]
    return isinstance(left, int | float) and isinstance(right, int | float) and left < right


def _period(piece: Piece) -> str:
    """A day, a month or a year of a question; empty for anything else."""
    if piece.number is not None and piece.number in YEARS:
        return str(int(piece.number))
    return piece.text if DATE.fullmatch(piece.text) else ""
