"""From a draft whose columns are settled to a plan: joins, groups, exclusions and set operations."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from helios.executors.values import Value
from helios.routing.formulation.conditions import NEGATED
from helios.routing.formulation.cues import Cue
from helios.routing.formulation.draft import Draft, Filter, Item
from helios.routing.formulation.pieces import Piece
from helios.routing.formulation.plan import (
    ROWS,
    Aggregate,
    ColumnRef,
    Condition,
    Join,
    Operator,
    Order,
    Plan,
    PlanError,
    SetOperation,
    Term,
)
from helios.routing.formulation.pruning import pruned, tables_read
from helios.routing.formulation.schema import SchemaView
from helios.routing.formulation.settling import Settled
from helios.routing.formulation.words import lemma, stem


def make_plan(draft: Draft, settled: Settled, schema: SchemaView) -> Plan | None:
    """The plan of a draft, or None where its tables do not connect, nothing is selected or no query can say it."""
    try:
        return _Planner(draft, settled, schema).plan()
    except PlanError:
        return None


WHOLE = 0.9
"""A score from which a name is said in full."""
USED = {stem(word) for word in ("used", "appear", "serve", "occur")}
SHARED = {stem(word) for word in ("shared", "common", "same")}
"""Words of values that stand in two tables."""
VERBS = ("live", "have", "own")
"""Verbs that tables of links are called by."""
WAYS = {
    "from": ("from", "origin", "source", "departure", "start", "sender"),
    "to": ("to", "destination", "target", "arrival", "end", "receiver", "recipient"),
}
"""What schemas call the two ends of what goes from one place to another."""


class _Planner:
    def __init__(self, draft: Draft, settled: Settled, schema: SchemaView) -> None:
        self.draft, self.settled, self.schema = draft, settled, schema
        self.needed: list[str] = []
        self.counts: list[Condition] = []
        self.said = frozenset(stem(piece.text) for piece in draft.pieces if piece.cue == Cue.WORD)

    def plan(self) -> Plan | None:
        across = self._across()
        if across is not None:
            return across
        select, plain = self._select()
        group = self._group(select, plain)
        orders = self._orders(select)
        having = self._having()
        counted = bool(having) or any(order.term.aggregate is not None for order in orders)
        if counted and not group:
            group = self._entity(select)
        if not select and (main := self._main()) is not None and (naming := self._naming(main)) is not None:
            select = [Term(naming)]
        if not select:
            return None
        entity = select[0].column.table if select[0].column is not None else self._main()
        if entity is None:
            return None
        where, absent = self._where(entity)
        if self.counts:
            having += self.counts
            group = group or self._entity(select)
        self._need(term.column.table for term in select if term.column is not None)
        self._need(order.term.column.table for order in orders if order.term.column is not None)
        self._need(column.table for column in group)
        self._need([entity])
        self._mentioned(absent)
        joined = self.schema.connect(dict.fromkeys([entity, *self.needed]), self.said)
        if joined is None:
            return None
        joined = joined[0], tuple(self._said(join) for join in joined[1])
        conditions, contrary = _contrary(where)
        exclusions = [self._exclusion(entity, table, filters) for table, filters in absent.items()]
        if any(exclusion is None for exclusion in exclusions):
            return None
        plan = Plan(
            joined[0], tuple(select), joined[1], (*conditions, *((e,) for e in exclusions if e is not None)),
            tuple(dict.fromkeys(group)), tuple(having), tuple(orders), self.draft.limit if orders else None,
            self.draft.distinct and not any(term.aggregate for term in select),
        )  # fmt: skip
        if plan.select == (ROWS,) and not group and self._exists(plan.with_(select=(Term(self._key(entity)),))):
            plan = plan.with_(select=(Term(self._key(entity), Aggregate.COUNT, distinct=True),))
        if self.draft.either and plan.having and plan.where and not plan.order:
            other = self._without_count(plan, entity, where)
            return pruned(plan.with_(where=(), combined=(SetOperation.UNION, other)), self.schema)
        plan = self._each_once(self._with_many(plan, entity))
        if self._exists(plan) or any(e is not None and e.term in select for e in exclusions):
            plan = plan.with_(distinct=True)
        if contrary is not None:
            other = plan.with_(where=(*conditions[:-1], contrary), order=(), limit=None)
            plan = plan.with_(combined=(SetOperation.INTERSECT, pruned(other, self.schema)), order=(), limit=None)
        return pruned(plan, self.schema)

    def _across(self) -> Plan | None:
        """A column that two tables have, joined by both, or, or not: "last names used by customers and by staff"."""
        draft = self.draft
        items = [item for item in draft.select if item.piece is None or item.piece.cue != Cue.TABLE]
        piece = items[0].piece if len(items) == 1 and items[0].aggregate is None else None
        if piece is None:
            return None
        if draft.filters or draft.having or draft.orders or draft.groups:
            return None
        columns = {link.table: link.column for link in reversed(piece.columns) if link.score > WHOLE}
        tables = [t for p in draft.mentions for t in p.tables[:1] if p.start > piece.start]
        starts = [p.start for p in draft.mentions if p.start > piece.start]
        if len(tables) != 2 or tables[0] == tables[1]:
            return None
        first, second = columns.get(tables[0]), columns.get(tables[1])
        if first is None or second is None:
            return None
        left, right = self.schema.column(first), self.schema.column(second)
        if (left.key or right.key) and left.words != right.words:
            return None
        between = {p.cue for p in draft.pieces if starts[0] < p.start < starts[1]}
        said = {stem(p.text) for p in draft.pieces if p.cue == Cue.WORD}
        if Cue.NOT in between:
            operation = SetOperation.EXCEPT if said & USED else None
        elif Cue.OR in between:
            operation = SetOperation.UNION
        else:
            operation = SetOperation.INTERSECT if draft.both or said & SHARED else None
        if operation is None:
            return None
        return Plan(tables[0], (Term(first),), combined=(operation, Plan(tables[1], (Term(second),))))

    def _said(self, join: Join) -> Join:
        """The join between two tables whose column the question speaks of, where there are several."""
        others = [j for j in self.schema.joins.get(join.left.table, ()) if j.right.table == join.right.table]
        if len(set(others)) < 2:
            return join
        said = {stem(word) for piece in self.draft.pieces for word in piece.text.lower().split()}
        said |= {stem(word) for way, words in WAYS.items() if stem(way) in said for word in words}

        named = {w for table in (join.left.table, join.right.table) for w in self.schema.tables[table].words}

        def heard(one: Join) -> int:
            words = {*self.schema.column(one.left).words, *self.schema.column(one.right).words} - named
            return sum(stem(word) in said for word in words)

        return max([join, *others], key=heard)

    def _exists(self, plan: Plan) -> bool:
        """Whether a table with several rows an entity is joined only because some of them exist."""
        if plan.group or plan.order or any(term.aggregate is not None for term in plan.select):
            return False
        read = tables_read(plan.with_(where=tuple(some for some in plan.where if len(some) == 1)))
        many = {t for t in plan.tables if self._many(plan.table, t) and t != self._spoken()}
        return bool(many) and not many & read

    def _with_many(self, plan: Plan, entity: str) -> Plan:
        """How many have more than so many: those that do are counted, not their rows."""
        counted = plan.select[0]
        if not plan.having or len(plan.select) > 1 or counted.aggregate != Aggregate.COUNT or plan.combined is not None:
            return plan
        own = [item.piece.tables[0] for item in self.draft.select if item.piece is not None and item.piece.tables]
        table = own[0] if own else entity
        key = self._key(table) if own else counted.column or self._key(entity)
        reached = self.schema.connect(dict.fromkeys([table, *plan.tables]), self.said)
        if key is None or reached is None:
            return plan
        having = Plan(table, (Term(key),), reached[1], plan.where, (key,), plan.having)
        return Plan(table, (ROWS,), where=((Condition(Term(key), Operator.IN, query=pruned(having, self.schema)),),))

    def _without_count(self, plan: Plan, entity: str, where: Sequence[tuple[Condition, ...]]) -> Plan:
        """What "or" sets beside a count: the same of what meets the conditions, without tables that are counted."""
        tables = [c.term.column.table for some in where for c in some if c.term.column is not None]
        tables += [term.column.table for term in plan.select if term.column is not None]
        reached = self.schema.connect(dict.fromkeys([entity, *tables]), self.said)
        joins = reached[1] if reached is not None else plan.joins
        return pruned(plan.with_(joins=joins, group=(), having=()), self.schema)

    def _each_once(self, plan: Plan) -> Plan:
        """An average over what has rows in another table takes each of them once, however many rows it has there."""
        terms = [term for term in plan.select if term.aggregate not in (None, Aggregate.COUNT)]
        if not terms or len(terms) < len(plan.select) or plan.group or plan.order or plan.combined is not None:
            return plan
        own = {term.column.table for term in terms if term.column is not None}
        key = self._key(plan.table)
        several = any(self._many(plan.table, table) for table in plan.tables if table not in own)
        if own != {plan.table} or key is None or not several or len(self.schema.tables[plan.table].keys) != 1:
            return plan
        inner = Plan(plan.table, (Term(key),), plan.joins, plan.where)
        return Plan(plan.table, plan.select, where=((Condition(Term(key), Operator.IN, query=inner),),))

    def _spoken(self) -> str | None:
        """The table that is named first: "names of entrepreneurs", though other rows hold the names."""
        return self.draft.mentions[0].tables[0] if self.draft.mentions else None

    def _near(self, piece: Piece, select: Sequence[Term]) -> str:
        """The table of a mention that is nearest to what is selected."""
        starts = [term.column.table for term in select if term.column is not None]
        if not starts or len(piece.tables) == 1:
            return piece.tables[0]
        return min(piece.tables, key=lambda table: len(self.schema.path(starts, table) or range(99)))

    def _main(self) -> str | None:
        """The table that a question is about, where no column says it."""
        for item in self.draft.select:
            if item.piece is not None and item.piece.tables:
                return item.piece.tables[0]
        for piece in self.draft.mentions:
            return piece.tables[0]
        counted = [self.settled.of(item) for item in self.draft.select if item.aggregate == Aggregate.COUNT]
        if counted and counted[0] is not None:
            return self._listed(counted[0])
        return next((column.table for column in self.settled.columns.values()), None)

    def _need(self, tables: Iterable[str]) -> None:
        self.needed += [table for table in tables if table not in self.needed]

    def _select(self) -> tuple[list[Term], list[ColumnRef]]:
        terms = [term for item in self.draft.select if (term := self._term(item)) is not None]
        terms = self._shared(list(dict.fromkeys(terms)))
        if not self.draft.groups:
            summed = {term.column for term in terms if term.aggregate is not None}
            terms = [term for term in terms if term.aggregate is not None or term.column not in summed]
        return terms, [term.column for term in terms if term.aggregate is None and term.column is not None]

    def _shared(self, terms: list[Term]) -> list[Term]:
        """ "The average latitude and longitude": one aggregate of all columns that are numbers."""
        shared = terms[0].aggregate if terms else None
        if shared in (None, Aggregate.COUNT) or self.draft.groups or self.draft.orders:
            return terms
        views = [self.schema.column(term.column) for term in terms[1:] if term.column is not None]
        if len(views) < len(terms) - 1 or any(term.aggregate for term in terms[1:]):
            return terms
        if not all(view.numeric and not view.key for view in views):
            return terms
        said = [item.piece for item in self.draft.select if item.piece is not None]
        between = [p for p in self.draft.pieces if said and said[0].start < p.start < said[-1].start]
        if any(p.cue not in (Cue.AND, Cue.COMMA, Cue.COLUMN) for p in between):
            return terms
        return [replace(term, aggregate=shared) for term in terms]

    def _term(self, item: Item) -> Term | None:
        column = self.settled.of(item)
        table = item.piece.tables[0] if item.piece is not None and item.piece.tables else None
        if item.aggregate == Aggregate.COUNT and not self._amount(item, column):
            if item.distinct and column is None and table is not None:
                column = self._key(table)
            if column is not None and (item.piece is None or item.piece.cue == Cue.COLUMN):
                self._need([self._listed(column)])
            return Term(column, Aggregate.COUNT, distinct=item.distinct) if item.distinct and column else ROWS
        if column is None and table is not None:
            column = self._naming(table)
        one = self.draft.limit is not None and bool(self.draft.orders) and not item.total
        column = self._called(column) if column is not None and item.aggregate is None else column
        counted = Aggregate.SUM if item.total or (len(self.draft.select) == 1 and not one) else None
        aggregate = counted if item.aggregate == Aggregate.COUNT else item.aggregate
        return Term(column, aggregate) if column is not None else None

    def _listed(self, column: ColumnRef) -> str:
        """The table that has a row for each of what is counted: models are those of the list that cars refer to."""
        words = self.schema.column(column).words
        for own, other in self.schema.refers:
            if own == column and stem(words[-1]) in {stem(word) for word in self.schema.tables[other.table].words}:
                return other.table
        return column.table

    def _called(self, column: ColumnRef) -> ColumnRef:
        """The name of what a foreign key refers to, where it is asked who that is: the host is a person."""
        view = self.schema.column(column)
        if not any(piece.cue == Cue.ASK and piece.text == "who" for piece in self.draft.pieces):
            return column
        if not view.key or view.primary or not view.numeric or view.words[-1:] in (("id",), ("code",), ("number",)):
            return column
        for join in self.schema.joins.get(column.table, ()):
            naming = self.schema.tables[join.right.table].naming
            if join.left == column and naming is not None:
                return naming.ref
        return column

    def _amount(self, item: Item, column: ColumnRef | None) -> bool:
        """Whether a "number of" is stored in a column instead of being counted."""
        if column is None or item.distinct or item.piece is None or item.piece.cue != Cue.COLUMN:
            return False
        view = self.schema.column(column)
        return view.numeric and not view.key

    def _key(self, table: str) -> ColumnRef | None:
        view = self.schema.tables[table]
        return view.keys[0].ref if view.keys else view.columns[0].ref if view.columns else None

    def _naming(self, table: str) -> ColumnRef | None:
        naming = self.schema.tables[table].naming
        return naming.ref if naming is not None else self._key(table)

    def _group(self, select: list[Term], plain: list[ColumnRef]) -> list[ColumnRef]:
        group: list[ColumnRef] = []
        aggregated = any(term.aggregate is not None for term in select)
        for item in self.draft.groups:
            column = self.settled.of(item)
            if column is None and item.piece is not None and item.piece.tables:
                group += self._group_by_table(item.piece.tables[0], select, plain, aggregated=aggregated)
            elif column is not None:
                if aggregated or self.draft.having or any(o.aggregate for o in self.draft.orders):
                    group.append(column)
                if aggregated and column not in plain:
                    select.append(Term(column))
        if aggregated and plain and not group:
            group = self._entity(select)
        return group

    def _group_by_table(
        self, table: str, select: list[Term], plain: list[ColumnRef], *, aggregated: bool
    ) -> list[ColumnRef]:
        key = self._key(table)
        if not aggregated or key is None:
            return []
        view = self.schema.tables[table]
        named = view.naming is not None and view.naming.words == view.words
        if view.naming is not None and named and (not plain or view.naming.ref in plain):
            if not plain:
                select.append(Term(view.naming.ref))
            return [view.naming.ref]  # a type, not the things that have it
        if not plain:
            naming = self._naming(table)
            select.append(Term(naming))
        return [key]

    def _entity(self, select: Sequence[Term]) -> list[ColumnRef]:
        """What counts are made per: the selected columns, or the key of the table whose rows they describe."""
        plain = [term.column for term in select if term.aggregate is None and term.column is not None]
        counted = {t for item in (*self.draft.orders, *self.draft.select) if item.aggregate == Aggregate.COUNT
                   and item.piece is not None for t in item.piece.tables[:1]}  # fmt: skip
        counted |= {t for part in self.draft.having if part.piece is not None for t in part.piece.tables[:1]}
        items = [*self.draft.orders, *(p.item for p in self.draft.having if p.item is not None)]
        summed = [self.settled.of(item) for item in items if item.aggregate not in (None, Aggregate.COUNT)]
        counted |= {column.table for column in summed if column is not None}
        if not plain:
            return []
        table = plain[0].table
        key = self._key(table)
        said = any(table in piece.tables for piece in self.draft.mentions)
        if key is None or table in counted or not counted - {table} or not said:
            return plain
        return [key]

    def _orders(self, select: Sequence[Term]) -> list[Order]:
        orders = []
        plainly = [term.column for term in select]
        descending = bool(self.draft.descending)
        for item in self.draft.orders:
            column = self.settled.of(item)
            if item.aggregate == Aggregate.COUNT and not self._amount(item, column):
                orders.append(Order(ROWS, descending))
                if item.piece is not None and item.piece.tables:
                    self._need([self._near(item.piece, select)])
                continue
            if column is None and item.piece is not None and item.piece.tables:
                column = self._naming(item.piece.tables[0])
            if column is not None:
                flipped = id(item) in self.settled.flipped
                aggregates = [t.aggregate for t in select if t.column == column and t.aggregate is not None]
                self._need([column.table])
                view = self.schema.column(column)
                if item.many and item.aggregate is None and view.text and not view.temporal and column not in plainly:
                    orders.append(Order(ROWS, descending))
                    continue
                own = None if item.aggregate == Aggregate.COUNT else item.aggregate
                aggregate = own or (aggregates[0] if aggregates else None)
                orders.append(Order(Term(column, aggregate), descending != flipped))
        if not orders and self.draft.directed and select:
            orders = [Order(select[0], descending)]
        return list(dict.fromkeys(orders))

    def _having(self) -> list[Condition]:
        found = []
        for part in self.draft.having:
            if part.piece is not None:
                self._need(part.piece.tables[:1])
            if part.item is not None and (column := self.settled.of(part.item)) is not None:
                self._need([column.table])
                found.append(Condition(Term(column, part.item.aggregate), part.operator, (_number(part.number),)))
            elif not (part.operator == Operator.GE and part.number == 1):
                found.append(Condition(ROWS, part.operator, (_number(part.number),)))
        return found

    def _mentioned(self, absent: dict[str, list[Condition]]) -> None:
        gone = {piece.start for piece, _ in self.draft.absent}
        for piece in self.draft.mentions:
            options = [t for t in piece.tables if t in self.needed] or piece.tables[:1]
            if piece.start in gone or options[0] in absent or self._beyond(options[0], absent):
                continue
            if self.draft.filters and (piece.text.lower().endswith(("ing", "ed")) or lemma(piece.text) in VERBS):
                continue  # "students living in Boston"
            sure = max(link.score for link in piece.links) > 0.9
            if sure or any(j.right.table in self.needed for j in self.schema.joins.get(options[0], ())):
                self._need(options[:1])

    def _beyond(self, table: str, absent: dict[str, list[Condition]]) -> bool:
        """Whether a table is reached only through one whose rows must not exist."""
        path = self.schema.path(self.needed[:1], table) if self.needed else None
        return any(join.right.table in absent for join in path or ())

    def _where(self, entity: str) -> tuple[list[tuple[Condition, ...]], dict[str, list[Condition]]]:
        """Conditions on the joined rows, and on rows of other tables that must not exist."""
        where: list[tuple[Condition, ...]] = []
        absent: dict[str, list[Condition]] = {}
        for piece, _ in self.draft.absent[:1]:
            own = next((link.column for link in piece.columns if link.table == entity and link.score > 0.9), None)
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
                self._need([table])
                number = part.value.number if part.value is not None else None
                self.counts.append(Condition(ROWS, part.operator, (_number(number or 0.0),)))
                continue
            elsewhere = part.negated and table not in (entity, self._spoken()) and self._many(entity, table)
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
            else:
                where.append((condition,))
        return where, absent

    def _nearest(self, entity: str, piece: Piece) -> str:
        """The table of a mention, of a column the one that the entity is nearest to."""
        if piece.cue != Cue.COLUMN:
            return piece.tables[0]
        tables = dict.fromkeys(link.table for link in piece.columns if link.score > 0.9)
        return min(tables, key=lambda table: len(self.schema.path([entity], table) or range(99)))

    def _counts(self, part: Filter, condition: Condition) -> bool:
        """ "More than one friend", where friends are names: how many there are is compared."""
        if part.value is None or part.subject is None or part.value.cue != Cue.NUMBER or condition.term.column is None:
            return False
        view = self.schema.column(condition.term.column)
        return part.subject.start == part.value.end and view.text and not view.temporal and not view.primary

    def _start(self, part: Filter) -> int:
        return max((p.start for p in (part.subject, part.value) if p is not None), default=0)

    def _together(self, condition: Condition) -> bool:
        """Whether two values joined by "and" must both be met by what is selected, each by a row of its own."""
        counted = any(item.aggregate is not None for item in self.draft.select)
        selected = {self.settled.of(item) for item in self.draft.select}
        return self.draft.both or not (counted or condition.term.column in selected)

    def _many(self, entity: str, table: str) -> bool:
        """Whether an entity may have several rows of a table."""
        path = self.schema.path([entity], table) or ()
        return any(not self.schema.column(join.right).primary or len(self.schema.tables[join.right.table].keys) > 1
                   for join in path)  # fmt: skip

    def _condition(self, part: Filter) -> Condition | None:
        column = self.settled.of(part)
        if column is None:
            return None
        operator = part.operator
        if id(part) in self.settled.flipped:
            mirrored = {Operator.GT: Operator.LT, Operator.LT: Operator.GT, Operator.GE: Operator.LE}
            operator = mirrored.get(operator, operator)
        if part.average is not None:
            inner = [c for other in self.draft.filters if other.inside and (c := self._condition(other)) is not None]
            tables = [column.table, *(c.term.column.table for c in inner if c.term.column is not None)]
            reached = self.schema.connect(tables)
            where = tuple((c,) for c in inner) if reached is not None else ()
            query = Plan(column.table, (Term(column, part.average),), reached[1] if reached is not None else (), where)
            return Condition(Term(column), operator, query=query)
        other = self._compared_row(part, column)
        if other is not None:
            return Condition(Term(column), operator, query=other)
        values = tuple(self._value(piece, column, operator) for piece in (part.value, part.second) if piece is not None)
        return Condition(Term(column), operator, values)

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
            return _number(piece.number) if self.schema.column(column).numeric else piece.text.replace(",", "")
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


def _number(number: float) -> int | float:
    return int(number) if number.is_integer() else number


def _contrary(
    where: list[tuple[Condition, ...]],
) -> tuple[tuple[tuple[Condition, ...], ...], tuple[Condition, ...] | None]:  # fmt: skip
    """Two conditions on one column that no row can meet at once: the second becomes a plan of its own."""
    for i, first in enumerate(where):
        for second in where[i + 1 :]:
            if len(first) > 1 or len(second) > 1 or first[0].term != second[0].term:
                continue
            operators = {first[0].operator, second[0].operator}
            if operators == {Operator.EQ} or (
                operators == {Operator.LT, Operator.GT} and not _overlap(first[0], second[0])
            ):
                rest = tuple(c for c in where if c is not first and c is not second)
                return (*rest, first), second
    return tuple(where), None


def _overlap(first: Condition, second: Condition) -> bool:
    low, high = (first, second) if first.operator == Operator.GT else (second, first)
    if not low.values or not high.values:
        return True
    left, right = low.values[0], high.values[0]
    return isinstance(left, int | float) and isinstance(right, int | float) and left < right
