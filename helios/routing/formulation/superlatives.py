"""Reading superlatives: which column they order or compute an extreme of, and how many rows they leave."""

from abc import ABC, abstractmethod

from helios.routing.formulation.conditions import ConditionReader, Mode
from helios.routing.formulation.cues import Cue, Grade
from helios.routing.formulation.draft import Filter, Item
from helios.routing.formulation.pieces import Piece
from helios.routing.formulation.plan import Aggregate, Computed, Operator

MANY = ("most", "least", "fewest")
"""Superlatives of how many there are."""
SIZES = {
    **dict.fromkeys(("highest", "lowest"), ("height", "elevation", "altitude")),
    **dict.fromkeys(("largest", "biggest", "smallest"), ("size", "area", "population", "capacity")),
}
"""What a thing itself is measured by, where no column is named: "the highest mountain"."""
ADJECTIVES = ("able", "ible", "ous", "ful", "ive")
"""What adjectives end with."""


class SuperlativeReader(ConditionReader, ABC):
    """A reader of conditions that also knows what "the oldest", "the most" and "from large to small" say."""

    def _superlative(self, piece: Piece) -> None:
        grade = piece.payload if isinstance(piece.payload, Grade) else Grade(True)
        if piece.text == "last" and self.ahead(Cue.COMPARE, skip=()) is not None:
            return  # "films that last longer than"
        if (
            self._than_an_extreme(grade)
            or self._span_of_order(grade, piece)
            or self._comes_first(grade, piece)
            or self._extreme_beside(grade)
        ):
            return
        if self.ahead(Cue.AGGREGATE, skip=()) is not None and self._most_in_all(grade):
            return
        skip = (Cue.WORD, Cue.PREPOSITION, Cue.DISTINCT)
        number = self.ahead(Cue.NUMBER) or self._number_before()
        if number is not None and number.number is not None:
            self.draft.limit = int(number.number)
            if number in self.pieces[self.i :]:
                self.i = self.pieces.index(number) + 1
        self.draft.limit = self.draft.limit or self.amount or 1
        self.draft.descending = grade.more
        target = self.ahead(Cue.COLUMN, Cue.TABLE, Cue.COUNT, Cue.TIMES, skip=skip)
        if self._most_of_a_verb(piece):
            return
        if target is not None and target.cue == Cue.TIMES:
            self.draft.orders.append(Item(None, Aggregate.COUNT))
            return
        if target is not None and target.cue == Cue.COUNT:
            self.consume(target)
            self.superlative = grade
            self._count(target)
            return
        named = "rating" in grade.attributes and self.ahead(Cue.COLUMN, skip=()) is not None  # "the best mark"
        if grade.attributes and not named and not (
            target is not None and target.cue == Cue.COLUMN and self._graded(target, grade)
        ):  # fmt: skip
            self.draft.orders.append(Item(None, grade=grade, near=piece))
        elif target is not None and target.cue == Cue.COLUMN and target.text.endswith(ADJECTIVES):
            self.consume(target)
            self.draft.orders.append(Item(target))  # "the most valuable coins"
        elif target is not None and target.cue == Cue.COLUMN and number is not None and self._another(target):
            self.consume(target)
            self._select(target)  # "the top 3 days with the highest temperature"
        elif target is not None and target.cue == Cue.COLUMN:
            self._superlative_of(target, grade, many=piece.text.split()[-1] in MANY or "number" in piece.text)
        elif target is not None:
            self.consume(target)
            sizes = SIZES.get(piece.text) if self.ahead(Cue.COLUMN, skip=()) is None else None
            own = Grade(grade.more, sizes) if sizes is not None else None
            self.draft.orders.append(Item(target, Aggregate.COUNT, grade=own, near=piece))
        else:
            self.draft.orders.append(Item(self.last_column, grade=None if self.last_column else grade, near=piece))

    def _than_an_extreme(self, grade: Grade) -> bool:
        """ "More than the lowest price", "that do not have the highest price": compared with the extreme of all."""
        column = self.ahead(Cue.COLUMN, skip=(Cue.WORD,))
        before = [p.cue for p in self.pieces[: self.i - 1] if p.cue not in (Cue.WORD, Cue.RELATIVE)][-1:]
        pending = self.compare is not None and before == [Cue.COMPARE]
        lacking = self.negated and before == [Cue.NOT] and self.mode == Mode.FILTER
        if column is None or grade.attributes or not (pending or lacking):
            return False
        self.consume(column)
        self.negated = False
        extreme = Aggregate.MAX if grade.more else Aggregate.MIN
        self._add(Filter(column, self.compare or Operator.NE, None, average=extreme))
        return True

    def _extreme_beside(self, grade: Grade) -> bool:
        """ "The average, lowest and highest salary": an extreme that is computed beside other aggregates."""
        rest = [p.cue for p in self.pieces[self.i : self.i + 8] if p.cue not in (Cue.WORD, Cue.COMMA)]
        while rest[:1] in ([Cue.SUPERLATIVE], [Cue.AGGREGATE]) and Cue.AND in rest[:3]:
            rest = rest[1:]
        both = rest[:3] in ([Cue.AND, Cue.SUPERLATIVE, Cue.COLUMN], [Cue.AND, Cue.AGGREGATE, Cue.COLUMN])
        if both and self.mode == Mode.SELECT and not self.draft.select:
            self.aggregates.append(Aggregate.MAX if grade.more else Aggregate.MIN)
            return True
        done = [item for item in self.draft.select if item.aggregate not in (None, Aggregate.COUNT)]
        if self.mode != Mode.SELECT or not (self.aggregates or done):
            return False
        column = self.ahead(Cue.COLUMN)
        listed = self.aggregates and self.ahead(Cue.COMMA, Cue.AND, Cue.AGGREGATE, Cue.SUPERLATIVE, skip=()) is not None
        if column is None and not listed:
            return False
        if column is not None and not self.aggregates and not self.behind(Cue.AND, Cue.COMMA):
            return False
        self.aggregates.append(Aggregate.MAX if grade.more else Aggregate.MIN)
        return True

    def _comes_first(self, grade: Grade, piece: Piece) -> bool:
        """ "With the largest lake first" orders all rows; of an unknown adjective by the amounts that are selected."""
        before = [p for p in self.pieces[: self.i - 1] if p.text != "the"][-3:]
        opens = [p.cue for p in before[:2]] in ([Cue.RELATIVE, Cue.WORD], [Cue.COMMA, Cue.WORD])
        named = [p.cue for p in before[2:]] in ([Cue.TABLE], [Cue.COLUMN])
        if piece.text in ("first", "last") and opens and named:
            self.draft.descending = piece.text == "first"
            self._ordered_by(Grade(True), piece)
            return before[1].text.endswith("est")
        rest = self.pieces[self.i : self.i + 5]
        place = next((i for i, p in enumerate(rest) if p.cue == Cue.SUPERLATIVE and p.text in ("first", "last")), None)
        if place is None or not self.behind(Cue.RELATIVE, Cue.COMMA):
            return False
        after = rest[place + 1 : place + 2]
        if any(p.cue not in (Cue.WORD, Cue.TABLE, Cue.COLUMN) for p in rest[:place]) or (
            after and after[0].cue not in (Cue.END, Cue.COMMA)
        ):
            return False
        self.draft.descending = grade.more == (rest[place].text == "first")
        column = next((p for p in rest[:place] if p.cue == Cue.COLUMN), None)
        if column is not None and not self.draft.orders:
            self.draft.orders.append(Item(column))
        else:
            self._ordered_by(grade, piece)
        self.i += place + 1
        return True

    def _like(self, piece: Piece) -> None:
        """ "Starting with the largest total" orders all rows; what names begin with is a condition."""
        superlative = self.ahead(Cue.SUPERLATIVE)
        if superlative is None or not isinstance(superlative.payload, Grade) or not piece.text.endswith(" with"):
            super()._like(piece)
            return
        self.consume(superlative)
        self.draft.descending = superlative.payload.more
        column = self.ahead(Cue.COLUMN, skip=(Cue.WORD, Cue.AGGREGATE))
        if column is not None and not self.draft.orders:
            self.consume(column)
            self.draft.orders.append(Item(column))
        else:
            self._ordered_by(superlative.payload, superlative)
        self.mode = Mode.ORDER

    def _ordered_by(self, grade: Grade, piece: Piece) -> None:
        """An order of all rows by what an adjective grades, or by the amounts that are selected."""
        if grade.attributes and not self.draft.orders:
            self.draft.orders.append(Item(None, grade=grade, near=piece))
        self.draft.directed = self.draft.measured = True

    def _span_of_order(self, grade: Grade, piece: Piece) -> bool:
        """ "From the most expensive to the cheapest" orders all rows."""
        to = self.ahead(Cue.PREPOSITION)
        if to is None or to.text != "to" or not self.behind(Cue.PREPOSITION):
            return False
        self.consume(to)
        other = self.ahead(Cue.SUPERLATIVE)
        if other is not None:
            self.consume(other)
        self.draft.descending = grade.more
        self._ordered_by(grade, piece)
        return True

    def _most_of_a_verb(self, piece: Piece) -> bool:
        """ "Who spent the most on tickets": the amount is what a verb names."""
        verb = self.last_column
        ends = self.ahead(Cue.PREPOSITION, Cue.END, Cue.COMMA, Cue.AGGREGATE, skip=()) is not None
        if piece.text.split()[-1] not in MANY or verb is None or not self.behind(Cue.COLUMN) or not ends:
            return False
        if verb is not self.subject or not any(isinstance(link.column, Computed) for link in verb.columns):
            return False
        self.subject = None
        self.draft.orders.append(Item(verb, many=True))
        return True

    def _another(self, piece: Piece) -> bool:
        """Whether another superlative or an order follows."""
        return any(p.cue in (Cue.SUPERLATIVE, Cue.ORDER) for p in self.pieces if p.start > piece.start)

    def _most_in_all(self, grade: Grade) -> bool:
        """ "The highest total fee" orders by an aggregate of each entity's rows."""
        aggregate = self.pieces[self.i].payload
        self.i += 1
        column = self.ahead(Cue.COLUMN, skip=(Cue.WORD, Cue.PREPOSITION, Cue.COUNT))
        if (
            column is None
            or not isinstance(aggregate, Aggregate)
            or (self.mode == Mode.SELECT and not self.draft.select)
        ):
            self.i -= 1
            return False
        self.consume(column)
        self.draft.descending, self.draft.limit = grade.more, self.draft.limit or self.amount or 1
        self.draft.orders.append(Item(column, aggregate))
        return True

    def _entity_of_a_measure(self) -> None:
        """ "Which three outings cost us the most, and what did each cost": the outings are wanted too."""
        chosen = [item for item in self.draft.select if not item.provisional]
        items = [*self.draft.orders, *(part.item for part in self.draft.having if part.item is not None)]
        last = items[-1].piece if items else None
        if last is None or last.payload is not Aggregate.SUM or not chosen:
            return
        if all(item.piece is not None and item.piece.text == last.text for item in chosen):
            for item in self.draft.select[:1]:
                item.provisional = False

    def _ranked_by(self, piece: Piece) -> bool:
        """ "The top three drivers by total miles", "by number of units": the order goes by what follows."""
        last = self.draft.orders[-1] if self.draft.orders else None
        if piece.text != "by" or last is None or last.aggregate is not Aggregate.COUNT or last.grade is not None:
            return False
        column = self.ahead(Cue.COLUMN, skip=(Cue.WORD, Cue.AGGREGATE, Cue.COUNT))
        if column is None or self.draft.limit is None:
            return False
        said = self.ahead(Cue.AGGREGATE)
        self.consume(column)
        average = said is not None and said.payload is Aggregate.AVG
        own = Aggregate.AVG if average else Aggregate.SUM if said is not None else None
        self.draft.orders[-1] = Item(column, own, many=own is None)
        return True

    def _superlative_of(self, column: Piece, grade: Grade, *, many: bool = False) -> None:
        self.consume(column)
        if self.mode == Mode.SELECT and not self.draft.select and not self.draft.mentions and not self.who:
            self.draft.limit = None
            if self.aggregates:
                self._select(column)
            self.extreme = Item(column, Aggregate.MAX if grade.more else Aggregate.MIN)
            self.draft.select.append(self.extreme)
        else:
            self.draft.orders.append(Item(column, many=many))

    def _number_before(self) -> Piece | None:
        before = self.pieces[self.i - 2] if self.i >= 2 else None
        return before if before is not None and before.cue == Cue.NUMBER else None

    def _graded(self, column: Piece, grade: Grade) -> bool:
        words = set(column.text.lower().split())
        return bool(words & {*grade.attributes, *grade.inverse})

    @abstractmethod
    def _count(self, piece: Piece) -> None:
        """Read what is counted."""

    @abstractmethod
    def _select(self, piece: Piece) -> None:
        """Take a column among what is asked for."""
