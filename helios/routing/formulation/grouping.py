"""What rows are added up, what they are grouped by, and which part of them a percentage is of."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from helios.routing.formulation.draft import Filter, Item
from helios.routing.formulation.names import Names
from helios.routing.formulation.plan import Aggregate, Beginning, ColumnRef, Condition, Operator, Plan, PlanError, Term
from helios.routing.formulation.pruning import pruned
from helios.routing.formulation.takings import money_asked
from helios.routing.formulation.words import lemma, stem


class Groups(Names):
    """The sums, groups and shares of a settled draft."""

    def _money(self, select: list[Term]) -> list[Term]:
        """ "How much did we spend on fuel": the total of an amount that the question does not name.

        PlanError where days would be added up, or the years of other rows told apart.
        """
        select = [
            term for term in select if not isinstance(term.column, Beginning) or term.aggregate is not Aggregate.SUM
        ]
        shown = [(term, self.schema.column(term.column)) for term in select if term.column is not None]
        counted = any(term.aggregate is Aggregate.COUNT for term in select)
        if not counted and not any(view.amount for _, view in shown):
            self.money = money_asked(self.draft, self.settled, self.schema)
        if self.money is not None:
            groups = [column for item in self.draft.groups if (column := self._grouped_by(item)) is not None]
            if any(self.schema.column(group).temporal and group.table != self.money.table for group in groups):
                raise PlanError("the years of other rows are not those of the money")
            return [Term(self.money, Aggregate.SUM)]
        summed = [(term, view) for term, view in shown if term.aggregate in (Aggregate.SUM, Aggregate.AVG)]
        days = any(view.temporal and not view.numeric and term.aggregate is Aggregate.SUM for term, view in summed)
        if days or any(view.text and not view.numeric and not view.temporal for _, view in summed):
            raise PlanError("days and words are not added up")
        return select

    def _grouped_by(self, item: Item) -> ColumnRef | None:
        """What is grouped by; the months or years of money are those of its own only date."""
        column = self.settled.of(item)
        sums = [one for one in self.draft.select if one.piece is not None and one.piece.payload is Aggregate.SUM]
        money = self.money or (self.settled.of(sums[0]) if sums else None)
        if money is None or not isinstance(column, Beginning) or column.table == money.table:
            return column
        own = [c.ref for c in self.schema.tables[money.table].computed if isinstance(c.ref, Beginning)]
        spans = [ref for ref in own if ref.length == column.length]
        return spans[0] if len(spans) == 1 else column

    def _referred(self, column: ColumnRef) -> ColumnRef | None:
        """The name of what a column refers to, where it is spoken of: "each driver drove", of lead_driver_id."""
        spoken = {table for piece in self.draft.mentions for table in piece.tables[:1]}
        said = {stem(lemma(word)) for item in self.draft.groups if item.piece for word in item.piece.text.split()}
        spoken |= {name for name, view in self.schema.tables.items() if {stem(word) for word in view.words} <= said}
        for own, key in self.schema.refers:
            if own == column and key.table in spoken - {own.table} and not self.schema.column(own).text:
                naming = self.schema.tables[key.table].naming
                return None if naming is None else naming.ref
        return None

    def _group(self, select: list[Term], plain: list[ColumnRef]) -> list[ColumnRef]:
        group: list[ColumnRef] = []
        aggregated = any(term.aggregate is not None for term in select)
        measured = {
            t.column.table for t in select if t.column is not None and t.aggregate not in (None, Aggregate.COUNT)
        }
        for item in self.draft.groups:
            column = self._grouped_by(item)
            if len(self.draft.groups) > 1 and item.piece is not None and measured & set(item.piece.tables[:1]):
                continue  # "the average price per book of each author" is not one for each book
            if column is None and item.piece is not None and item.piece.tables:
                group += self._group_by_table(item.piece.tables[0], select, plain, aggregated=aggregated)
            elif column is not None and aggregated and (named := self._referred(column)) is not None:
                group.append(column)
                if named not in plain:
                    select.append(Term(named))
            elif column is not None:
                if aggregated or self.draft.having or any(o.aggregate for o in self.draft.orders):
                    group.append(column)
                told = bool(plain) and self.draft.listed and self.schema.column(column).key
                if aggregated and column not in plain and not told:
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
        named = [piece for piece in self.draft.mentions if not piece.text.endswith("ed")]
        said = any(table in piece.tables for piece in named)
        if key is None or table in counted or not counted - {table} or not said:
            return plain
        return [key]

    def _part(self, entity: str) -> tuple[tuple[Condition, ...], ...]:
        """What a percentage is of, which the other rows need not meet; PlanError where rows would count twice."""
        filters, absent = self.draft.filters, self.draft.absent
        said = [part for part in filters if self._starts(part) >= (self.draft.share or 0)]
        self.draft = replace(self.draft, filters=said)
        conditions, without = self._where(entity)
        exclusions = [self._exclusion(entity, table, some) for table, some in without.items()]
        self.draft = replace(self.draft, filters=[part for part in filters if part not in said], absent=[])
        tables = {c.term.column.table for some in conditions for c in some if c.term.column is not None}
        if self.counts or self.draft.groups or (absent and not without):
            raise PlanError("what the percentage is of is not said")
        if tables - {entity}:
            conditions = [(self._among(entity, tables, conditions),)]
        found = (*conditions, *((one,) for one in exclusions if one is not None))
        if not found:
            raise PlanError("what the percentage is of is not said")
        return found

    def _among(
        self, entity: str, tables: Iterable[str], conditions: Sequence[tuple[Condition, ...]]
    ) -> Condition:  # fmt: skip
        """Rows that are among those which other tables' rows belong to; each counts once, with or without any."""
        key, reached = self._key(entity), self.schema.connect(dict.fromkeys([entity, *sorted(tables)]), self.said)
        if key is None or reached is None:
            raise PlanError("rows of another table are no percentage of these")
        query = Plan(entity, (Term(key),), reached[1], tuple(conditions))
        return Condition(Term(key), Operator.IN, query=pruned(query, self.schema))

    def _starts(self, part: Filter) -> int:
        return min(piece.start for piece in (part.value, part.subject) if piece is not None)
