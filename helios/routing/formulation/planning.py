"""From a draft whose columns are settled to a plan: joins, groups, exclusions and set operations."""

from collections.abc import Sequence
from dataclasses import replace

from helios.routing.formulation.cues import Cue
from helios.routing.formulation.draft import Draft, Item
from helios.routing.formulation.grouping import Groups
from helios.routing.formulation.names import whole_names
from helios.routing.formulation.pieces import Piece, text_before
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
from helios.routing.formulation.restrictions import USED, contrary_of, plain_number
from helios.routing.formulation.schema import KEY_WORDS, WAYS, SchemaView
from helios.routing.formulation.self_references import through_itself
from helios.routing.formulation.settling import Settled
from helios.routing.formulation.words import lemma, stem


def make_plan(draft: Draft, settled: Settled, schema: SchemaView) -> Plan | None:
    """The plan of a draft, or None where its tables do not connect, nothing is selected or no query can say it."""
    try:
        plan = _Planner(draft, settled, schema).plan()
        return None if plan is None else whole_names(through_itself(plan, draft, schema), draft, schema)
    except PlanError:
        return None


WHOLE = 0.9
"""A score from which a name is said in full."""
SHARED = {stem(word) for word in ("shared", "common", "same")}
"""Words of values that stand in two tables."""
DAYS = ("date", "day", "month", "week", "year", "night")
"""What asks for a time when something was most."""
VERBS = ("live", "have", "own")
"""Verbs that tables of links are called by."""


class _Planner(Groups):
    def plan(self) -> Plan | None:
        across = self._across()
        if across is not None:
            return across
        select, plain = self._select()
        select = self._money(select)
        group = self._group(select, plain)
        orders = self._orders(select)
        select = self._counted_alike(select, orders)
        select, orders, group = self._day_of_the_most(select, orders, group)
        if self._how_much() and len(orders) == 1 and orders[0].term not in select:
            select.append(orders[0].term)
        having = self._having()
        select, orders = self._as_compared(select, orders, having)
        counted = bool(having) or any(order.term.aggregate is not None for order in orders)
        if counted and not group:
            group = self._entity(select)
        if (who := self._who()) is not None:
            items = self.draft.select
            told = any(item.aggregate or (item.piece and item.piece.payload is Aggregate.SUM) for item in items)
            states = [item for item in items if item.piece is not None and item.piece.cue == Cue.STATE]
            asked = [self.settled.of(item) for item in items if item.grade is not None or item in states]
            beside = [term for term in select if (told and term.aggregate is not None) or term.column in asked]
            select = [Term(who), *beside]
            group = group or (self._entity(select) if told else [])
        elif self._asks_who() and having and select and all(term.aggregate is not None for term in select):
            raise PlanError("who it is stands in no column")
        if not select and (main := self._main()) is not None and (naming := self._naming(main)) is not None:
            select = [Term(naming)]
        if not select:
            return None
        select = self._amount_itself(select, orders)
        if (kind := self._kind_named(select)) is not None:
            select.insert(0, Term(kind))
        entity = select[0].column.table if select[0].column is not None else self._main()
        if entity is None:
            return None
        each = self._best_of_each(select, orders, having)
        part = self._part(entity) if self.draft.share is not None else ()
        if part:
            select, group = [Term(None, Aggregate.SHARE, share=part)], []
        where, absent = self._where(entity)
        if self.draft.never is not None and not absent and (unused := self._unused(entity)) is not None:
            absent[unused] = []
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
        conditions, contrary = contrary_of(where)
        if contrary is None and len(where) == 2 and self._two_rows(where):
            conditions, contrary = (where[0],), where[1]
        exclusions = [self._exclusion(entity, table, filters) for table, filters in absent.items()]
        if any(exclusion is None for exclusion in exclusions):
            return None
        plan = Plan(
            joined[0], tuple(select), joined[1], (*conditions, *((e,) for e in exclusions if e is not None)),
            () if each else tuple(dict.fromkeys(group)), tuple(having), tuple(orders),
            self.draft.limit if orders and not each else None,
            self.draft.distinct and not any(term.aggregate for term in select), each=each,
        )  # fmt: skip
        if plan.select == (ROWS,) and not group and self._exists(plan.with_(select=(Term(self._key(entity)),))):
            plan = plan.with_(select=(Term(self._key(entity), Aggregate.COUNT, distinct=True),))
        if self.draft.either and plan.having and plan.where and not plan.order:
            other = self._without_count(plan, entity, where)
            return pruned(plan.with_(where=(), combined=(SetOperation.UNION, other)), self.schema)
        plan = self._each_once(self._with_many(plan, entity))
        if self._exists(plan) or self._once(plan) or any(e is not None and e.term in select for e in exclusions):
            plan = plan.with_(distinct=True)
        if contrary is not None:
            other = plan.with_(where=(*conditions[:-1], contrary), order=(), limit=None, each=())
            combined = (SetOperation.INTERSECT, pruned(other, self.schema))
            plan = plan.with_(combined=combined, order=(), limit=None, each=())
        return pruned(plan, self.schema)

    def _day_of_the_most(
        self, select: list[Term], orders: list[Order], group: list[ColumnRef]
    ) -> tuple[list[Term], list[Order], list[ColumnRef]]:
        """ "On which day did we take the most": what was taken that day, not what was taken at once."""
        items, dates = self.draft.orders, [term.column for term in select if term.column and term.aggregate is None]
        if group or self.draft.limit != 1 or len(orders) != 1 or len(items) != 1 or not items[0].many or not dates:
            return select, orders, group
        asked = next((n for n, p in enumerate(self.draft.pieces) if p.cue == Cue.ASK), None)
        said = self.draft.pieces[asked : asked + 2] if asked is not None else []
        if [p.text.split()[0] for p in said[:1]] not in (["which"], ["what"]) or lemma(said[-1].text) not in DAYS:
            return select, orders, group
        pieces = self.draft.pieces
        if any(p.cue == Cue.SUPERLATIVE and text_before(pieces, p) in ("with", "of", "that", "which") for p in pieces):
            return select, orders, group  # "on which day was the account with the most balance opened"
        order, day = orders[0], self.schema.column(dates[0])
        amount = order.term.column
        if not day.temporal or day.key or amount is None or order.term.aggregate is not None:
            return select, orders, group
        if not self.schema.column(amount).amount or amount.table != day.ref.table:
            return select, orders, group
        summed = Term(amount, Aggregate.SUM)
        select = [summed if term.column == amount else term for term in select]
        return select, [replace(order, term=summed)], [day.ref]

    def _counted_alike(self, select: list[Term], orders: Sequence[Order]) -> list[Term]:
        """ "Who sold the most kilos, and how many": what is counted is what the order goes by."""
        bare = [item for item in self.draft.select if item.aggregate == Aggregate.COUNT and item.piece is None]
        last = max((p.start for p in self.draft.pieces if p.cue == Cue.SUPERLATIVE), default=-1)
        asked = any(p.cue == Cue.COUNT and p.start > last >= 0 for p in self.draft.pieces)
        if not bare or not asked or len(orders) != 1 or orders[0].term.column is None or ROWS not in select:
            return select
        return [orders[0].term if term == ROWS else term for term in select]

    def _as_compared(
        self, select: list[Term], orders: list[Order], having: Sequence[Condition]
    ) -> tuple[list[Term], list[Order]]:  # fmt: skip
        """ "That took more than 1,000 in total: title and takings": the sum that is compared is meant."""
        sums = {order.term.column: order.term for order in orders if order.term.aggregate is Aggregate.SUM}
        sums |= {one.term.column: one.term for one in having if one.term.column is not None}

        def meant(term: Term) -> Term:
            return sums.get(term.column, term) if term.aggregate is None and term.column is not None else term

        return list(map(meant, select)), [replace(order, term=meant(order.term)) for order in orders]

    def _asks_who(self) -> bool:
        return any(piece.cue == Cue.ASK and piece.text == "who" for piece in self.draft.pieces[:1])

    def _how_much(self) -> bool:
        """Whether a question ends with "and how much": what it is ordered by is wanted too."""
        said = [p.text for p in self.draft.pieces if p.cue not in (Cue.END, Cue.COMMA)]
        return said[-3:] == ["and", "how", "much"]

    def _best_of_each(
        self, select: list[Term], orders: Sequence[Order], having: Sequence[Condition]
    ) -> tuple[ColumnRef, ...]:
        """What "for each" divides things into, where the first of each is asked for; it is selected too.

        "For each species, which pet is the heaviest?"
        """
        draft = self.draft
        plain = all(term.aggregate is None for term in (*select, *(order.term for order in orders)))
        if not draft.groups or draft.limit != 1 or len(orders) != 1 or not plain or having or self.counts:
            return ()
        each: list[ColumnRef] = []
        names: list[Term] = []
        for item in draft.groups:
            column = self.settled.of(item)
            shown = column
            if column is None and item.piece is not None and item.piece.tables:
                column, shown = self._key(item.piece.tables[0]), self._naming(item.piece.tables[0])
            if column is not None and shown is not None:
                each.append(column)
                names.append(Term(shown))
        self._need(column.table for column in each)
        if not set(select) - set(names):
            if any(p.cue == Cue.ASK and p.text == "who" for p in draft.pieces):
                raise PlanError("who it is stands in no column")
            select.append(orders[0].term)  # "for each customer, the most recent order date"
        select[:0] = [name for name in names if name not in select]
        return tuple(each)

    def _amount_itself(self, select: list[Term], orders: Sequence[Order]) -> list[Term]:
        """ "What is the largest donation": of things without a name their amount."""
        first = next((p for p in self.draft.pieces if p.cue != Cue.WORD), None)
        item = self.draft.select[0] if len(self.draft.select) == 1 else None
        if first is None or not first.text.startswith("what") or item is None or item.piece is None:
            return select
        if not orders or not self.draft.orders:
            return select
        term = orders[0].term
        own = item.provisional and item.piece.cue == Cue.TABLE and term.column is not None and term.aggregate is None
        if own and term.column == self._own_measure(self.draft.orders[0]) and self.draft.limit == 1:
            named = self.schema.tables[item.piece.tables[0]].naming
            return [Term(term.column)] if named is None else select
        return select

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
        ways = {way for way, words in WAYS.items() if said & {stem(word) for word in words[1:]}}
        ways = ways or {way for way in WAYS if stem(way) in said}
        said = said - {stem(way) for way in WAYS} | {stem(word) for way in ways for word in WAYS[way]}

        by_each = [item.piece.text.lower() for item in self.draft.groups if item.piece is not None]
        divided = {stem(lemma(word)) for text in by_each for word in text.split()}
        named = {w for table in (join.left.table, join.right.table) for w in self.schema.tables[table].words}

        def heard(one: Join) -> int:
            words = {*self.schema.column(one.left).words, *self.schema.column(one.right).words} - named
            return sum(1 + (stem(word) in divided) for word in words if stem(word) in said)

        return max([join, *others], key=heard)

    def _once(self, plan: Plan) -> bool:
        """Whether things are asked for that a condition on other rows may meet several times: each is one answer."""
        if plan.group or plan.order or any(term.aggregate is not None for term in plan.select):
            return False
        named = all(item.provisional for item in self.draft.select) or plan.select == (Term(self._naming(plan.table)),)
        return (named or self._which(plan)) and any(
            self._many(plan.select[0].column.table, t) for t in plan.tables if plan.select[0].column
        )

    def _which(self, plan: Plan) -> bool:
        """Whether it is asked which things they are, so that all columns are of what stands behind "which"."""
        first = [p for p in self.draft.pieces if p.cue not in (Cue.WORD, Cue.DISTINCT)][:2]
        said = [p.cue for p in first]
        if said == [Cue.ASK, Cue.COLUMN] and first[0].text in ("which", "what") and len(plan.select) == 1:
            view = self.schema.column(plan.select[0].column) if plan.select[0].column is not None else None
            return view is not None and view.text and not view.key
        asked = said == [Cue.ASK, Cue.TABLE] and first[0].text.split()[0] in ("which", "who")
        return asked and {term.column.table for term in plan.select if term.column is not None} == {first[1].tables[0]}

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

    def _select(self) -> tuple[list[Term], list[ColumnRef]]:
        items = [item for item in self.draft.select if not self._nameless(item)] or self.draft.select
        terms = [term for item in items if (term := self._term(item)) is not None]
        terms = self._shared(self._without_keys(list(dict.fromkeys(terms))))
        if not self.draft.groups:
            summed = {term.column for term in terms if term.aggregate is not None}
            terms = [term for term in terms if term.aggregate is not None or term.column not in summed]
        return terms, [term.column for term in terms if term.aggregate is None and term.column is not None]

    def _without_keys(self, terms: list[Term]) -> list[Term]:
        """The terms without keys that only say of what something is added up: "total hours on repairs"."""
        if self.draft.groups or self.draft.orders or all(term.aggregate is None for term in terms):
            return terms
        said = {stem(word) for item in self.draft.select if item.piece is not None for word in item.piece.text.split()}
        if said & {stem(word) for word in KEY_WORDS}:
            return terms
        told = {self.settled.of(part) for part in self.draft.filters}
        keys = [
            t for t in terms
            if t.aggregate is None and t.column is not None
            and (self.schema.column(t.column).key or (t.column in told and self.schema.column(t.column).temporal))
        ]  # fmt: skip
        return [term for term in terms if term not in keys] if len(keys) < len(terms) else terms

    def _nameless(self, item: Item) -> bool:
        """Whether things without a name are asked for beside what is said of them: their keys say nothing."""
        if item.piece is None or item.piece.cue != Cue.TABLE or item.aggregate is not None or self.draft.groups:
            return False
        table = item.piece.tables[0]
        said = any(c.table == table for one in self.draft.select if (c := self.settled.of(one)) is not None)
        return said and self.schema.tables[table].naming is None

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
        if column is None and table is not None and item.aggregate not in (None, Aggregate.COUNT):
            measure = self.schema.tables[table].only_amount
            return Term(measure, item.aggregate) if measure is not None else None
        if column is None and table is not None:
            column = self._naming(table)
        one = self.draft.limit is not None and bool(self.draft.orders) and not item.total
        column = self._called(column) if column is not None and item.aggregate is None else column
        summed = item.total or (item.piece is not None and item.piece.payload is Aggregate.SUM)
        counted = Aggregate.SUM if summed or (len(self.draft.select) == 1 and not one) else None
        aggregate = counted if item.aggregate == Aggregate.COUNT else item.aggregate
        if column is not None and aggregate in (Aggregate.SUM, Aggregate.AVG) and len(self.draft.select) > 1:
            aggregate = aggregate if self.schema.column(column).numeric else None  # of names there is no sum
        if item.provisional and column is not None and table is not None:
            described = self.schema.tables[table].described if len(self.draft.select) == 1 else None
            column = self._doer(table) or (described.ref if described is not None else column)
        return Term(column, aggregate) if column is not None else None

    def _amount(self, item: Item, column: ColumnRef | None) -> bool:
        """Whether a "number of" is stored in a column instead of being counted."""
        if column is None or item.distinct or item.piece is None or item.piece.cue != Cue.COLUMN:
            return False
        view = self.schema.column(column)
        return view.numeric and not view.key

    def _orders(self, select: Sequence[Term]) -> list[Order]:
        orders = []
        plainly = [term.column for term in select]
        descending = bool(self.draft.descending)
        for item in self.draft.orders:
            column = self.settled.of(item)
            if item.aggregate == Aggregate.COUNT and (measure := self._own_measure(item)) is not None:
                orders.append(Order(Term(measure), descending))
                continue
            if item.aggregate == Aggregate.COUNT and item.grade is not None and column is not None:
                self._need([column.table])
                orders.append(Order(Term(column), descending))  # "the highest mountain"
                continue
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
                spoken = self._spoken()
                if item.many and item.aggregate is None and view.numeric and not view.key and not aggregates and (
                    spoken is not None and spoken != column.table and self._many(spoken, column.table)
                ):  # fmt: skip
                    orders.append(Order(Term(column, Aggregate.SUM), descending))
                    continue
                counted = view.text and not view.temporal
                if item.many and item.aggregate is None and (counted or view.key) and column not in plainly:
                    orders.append(Order(ROWS, descending))
                    continue
                own = None if item.aggregate == Aggregate.COUNT else item.aggregate
                aggregate = own or (aggregates[0] if aggregates else None)
                orders.append(Order(Term(column, aggregate), descending != flipped))
        if not orders and self.draft.directed and select:
            orders = [Order(self._measure(select) if self.draft.measured else select[0], descending)]
            compared = self._compared_amount() if self.draft.measured and orders[0].term == select[0] else None
            if compared is not None and self._measure([*select, Term(compared)]).column == compared:
                orders = [Order(Term(compared), descending)]  # "huts above 600 metres, highest first"
        return list(dict.fromkeys(orders))

    def _own_measure(self, item: Item) -> ColumnRef | None:
        """The only amount of what is asked for itself: "the largest donation" is that of the largest amount."""
        piece = item.piece
        if piece is None or not piece.tables or not all(chosen.piece is piece for chosen in self.draft.select):
            return None
        return self.schema.tables[piece.tables[0]].only_amount if lemma(piece.text) == piece.text.lower() else None

    def _compared_amount(self) -> ColumnRef | None:
        """The only column that is compared with a number."""
        beyond = (Operator.GT, Operator.GE, Operator.LT, Operator.LE)
        columns = {self.settled.of(part) for part in self.draft.filters if part.operator in beyond}
        return columns.pop() if len(columns) == 1 else None

    def _measure(self, select: Sequence[Term]) -> Term:
        """What is selected that has more or less: an aggregate, or the last number that is no key."""
        for term in reversed(select):
            view = self.schema.column(term.column) if term.column is not None else None
            if term.aggregate is not None or view is None or ((view.numeric or view.temporal) and not view.key):
                return term
        return select[0]

    def _having(self) -> list[Condition]:
        found = []
        for part in self.draft.having:
            if part.piece is not None:
                self._need(part.piece.tables[:1])
            if part.item is not None and (column := self.settled.of(part.item)) is not None:
                self._need([column.table])
                found.append(Condition(Term(column, part.item.aggregate), part.operator, (plain_number(part.number),)))
            elif not (part.operator == Operator.GE and part.number == 1):
                key = self._key(part.piece.tables[0]) if part.different and part.piece is not None else None
                counted = ROWS if key is None else Term(key, Aggregate.COUNT, distinct=True)
                found.append(Condition(counted, part.operator, (plain_number(part.number),)))
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
