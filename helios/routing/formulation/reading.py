"""From pieces to a draft: what is selected, filtered, grouped, ordered and excluded, before tables are settled.

A question is read from left to right in one of four modes. Words such as "whose" and "with" open a filter, "ordered
by" an order, "what" after a comma the selection again; what a column or a table mention means depends on the mode and
on the cues that wait for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from helios.routing.formulation.cues import Cue, Grade
from helios.routing.formulation.pieces import Piece
from helios.routing.formulation.plan import Aggregate, Operator
from helios.routing.formulation.words import lemma

NEGATED = {
    Operator.EQ: Operator.NE, Operator.GT: Operator.LE, Operator.LT: Operator.GE, Operator.GE: Operator.LT,
    Operator.LE: Operator.GT, Operator.CONTAINS: Operator.NOT_CONTAINS, Operator.BETWEEN: Operator.BETWEEN,
    Operator.STARTS: Operator.STARTS, Operator.ENDS: Operator.ENDS,
}  # fmt: skip


BESIDE = ("corresponding", "corresonding", "respective")
"""Words that set one selection beside another."""


QUOTING = ("letter", "word", "phrase", "substring", "string", "prefix", "suffix")
"""What is named by them is meant literally."""


AGGREGATES = (("total", Aggregate.SUM), ("average", Aggregate.AVG), ("maximum", Aggregate.MAX), ("minimum", Aggregate.MIN))


class Mode(StrEnum):
    """What a mention of a column is for."""

    SELECT = "select"
    FILTER = "filter"
    ORDER = "order"


@dataclass(slots=True)
class Item:
    """A column or a table that is selected, grouped or ordered by."""

    piece: Piece | None
    aggregate: Aggregate | None = None
    distinct: bool = False
    grade: Grade | None = None
    """An attribute to look for, where no column is named."""
    total: bool = False
    """A count that is a sum where the column holds amounts."""
    near: Piece | None = None
    """Where the attribute is spoken of."""
    provisional: bool = False
    """A table that is selected only if nothing else is."""


@dataclass(slots=True)
class Filter:
    """A comparison whose column may still be open."""

    subject: Piece | None
    operator: Operator
    value: Piece | None
    second: Piece | None = None
    grade: Grade | None = None
    negated: bool = False
    alternative: bool = False
    """Joined to the filter before by "or"."""
    average: Aggregate | None = None
    """Compared with an aggregate of the column itself."""
    at: int = 0


@dataclass(slots=True)
class Counted:
    """A condition on how many rows of a table belong to each entity."""

    operator: Operator
    number: float
    piece: Piece | None
    item: Item | None = None
    """An aggregated column that is compared instead of the count."""


@dataclass(slots=True)
class Draft:
    """A question's parts, with mentions not yet settled."""

    pieces: Sequence[Piece]
    select: list[Item] = field(default_factory=list)
    filters: list[Filter] = field(default_factory=list)
    groups: list[Item] = field(default_factory=list)
    orders: list[Item] = field(default_factory=list)
    descending: bool | None = None
    limit: int | None = None
    having: list[Counted] = field(default_factory=list)
    absent: list[tuple[Piece, list[Filter]]] = field(default_factory=list)
    distinct: bool = False
    both: bool = False
    directed: bool = False
    """A direction of order is said."""
    mentions: list[Piece] = field(default_factory=list)


def read(pieces: Sequence[Piece]) -> Draft:
    """Read a question's pieces."""
    return _Reader(pieces).run()


class _Reader:
    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = pieces
        self.draft = Draft(pieces)
        first = next((p for p in pieces if p.cue not in (Cue.WORD, Cue.COMMA)), None)
        opens = first is not None and first.cue in (Cue.PREPOSITION, Cue.RELATIVE, Cue.EACH, Cue.NOT)
        self.mode = Mode.FILTER if opens else Mode.SELECT
        self.i = 0
        self.aggregates: list[Aggregate] = []
        self.counting = False
        self.distinct = False
        self.negated = False
        self.compare: Operator | None = None
        self.grade: Grade | None = None
        self.like: Operator | None = None
        self.subject: Piece | None = None
        self.last_filter: Filter | None = None
        self.connective = Cue.AND
        self.each = False
        self.common: bool | None = None
        self.superlative: Grade | None = None
        self.last_column: Piece | None = None
        self.after_of = False
        self.extreme: Item | None = None
        self.beside = False
        self.trailing: list[Piece] = []
        self.amount: int | None = None
        self.who = False
        self.compared: Item | None = None

    def run(self) -> Draft:
        steps: dict[Cue, Callable[[Piece], None]] = {
            Cue.ASK: self._ask, Cue.COUNT: self._count, Cue.AGGREGATE: self._aggregate, Cue.EACH: self._each,
            Cue.SUPERLATIVE: self._superlative, Cue.COMPARE: self._compare, Cue.NOT: self._not, Cue.ORDER: self._order,
            Cue.DIRECTION: self._direction, Cue.DISTINCT: self._distinct, Cue.BOTH: self._both, Cue.AND: self._and,
            Cue.OR: self._or, Cue.COMMA: self._comma, Cue.RELATIVE: self._relative, Cue.LIKE: self._like,
            Cue.PREPOSITION: self._preposition, Cue.COMMON: self._common, Cue.TABLE: self._table,
            Cue.COLUMN: self._column, Cue.VALUE: self._value, Cue.NUMBER: self._number,
        }  # fmt: skip
        while self.i < len(self.pieces):
            piece = self.pieces[self.i]
            self.i += 1
            step = steps.get(piece.cue)
            if step is not None:
                step(piece)
        self._finish()
        return self.draft

    def ahead(self, *cues: Cue, skip: Sequence[Cue] = (Cue.WORD,)) -> Piece | None:
        """The next piece if it is one of these kinds, past those to skip."""
        j = self.i
        while j < len(self.pieces) and self.pieces[j].cue in skip:
            j += 1
        return self.pieces[j] if j < len(self.pieces) and self.pieces[j].cue in cues else None

    def behind(self, *cues: Cue) -> bool:
        """Whether the piece before this one, past words, is one of these kinds."""
        j = self.i - 2
        while j >= 0 and self.pieces[j].cue == Cue.WORD:
            j -= 1
        return j >= 0 and self.pieces[j].cue in cues

    def consume(self, piece: Piece) -> None:
        """Go on after a piece that was looked at ahead."""
        self.i = self.pieces.index(piece) + 1
        if piece.cue == Cue.TABLE:
            self.draft.mentions.append(piece)

    def _ask(self, piece: Piece) -> None:
        if isinstance(piece.payload, Grade):
            self._ask_attribute(piece, piece.payload)
            return
        seen = bool(self.draft.select or self.draft.mentions)
        self.who = self.who or (piece.text == "who" and not seen)
        if piece.text in ("who", "whom", "which") and seen and not self.behind(Cue.COMMA, Cue.AND):
            self.mode = Mode.FILTER
        elif not seen or self.behind(Cue.COMMA, Cue.AND, Cue.END) or self.mode != Mode.FILTER:
            self.mode = Mode.SELECT
            self.subject = None

    def _ask_attribute(self, piece: Piece, grade: Grade) -> None:
        """ "How old", "when" and "where" ask for an attribute; in the middle the last two open a filter."""
        if grade.any_type and (self.draft.select or self.draft.mentions) and not self.behind(Cue.AND, Cue.COMMA):
            self.mode = Mode.FILTER
            return
        self.mode = Mode.SELECT
        self.draft.select.append(Item(None, grade=grade, near=piece))

    def _count(self, piece: Piece) -> None:
        skip = (Cue.WORD, Cue.DISTINCT, Cue.PREPOSITION)
        between = self.pieces[self.i : self.i + 3]
        distinct = any(p.cue == Cue.DISTINCT for p in between)
        target = self.ahead(Cue.TABLE, Cue.COLUMN, Cue.VALUE, skip=skip)
        if target is not None and target.cue == Cue.VALUE:
            target = None
        if target is not None:
            self.consume(target)
        if self.aggregates and target is not None and target.cue == Cue.COLUMN:
            self._select(target)
            return
        item = Item(target, Aggregate.COUNT, distinct=distinct, total="total" in piece.text)
        if self.mode == Mode.ORDER:
            self.draft.orders.append(item)
        elif self.superlative is not None:
            self.draft.orders.append(item)
            self.superlative = None
        elif self.mode == Mode.FILTER and self.ahead(Cue.COMPARE) and self.draft.select:
            self.counting = True
        else:
            self.draft.select.append(item)
            self.each = False

    def _aggregate(self, piece: Piece) -> None:
        assert isinstance(piece.payload, Aggregate)
        selected = self.draft.select[-1] if self.draft.select else None
        if piece.text in ("in total", "overall", "altogether") and selected is not None and selected.aggregate == "count":
            selected.total = True
            return
        if piece.text.startswith("on ") and selected is not None and self.ahead(Cue.COLUMN) is None:
            if selected.aggregate is None and selected.piece is not None:
                selected.aggregate = piece.payload
        elif self.compare is not None or self.grade is not None:
            self._compared_with(piece.payload)
        elif self.mode == Mode.FILTER and piece.payload in (Aggregate.MAX, Aggregate.MIN):
            self._superlative(Piece(Cue.SUPERLATIVE, piece.start, piece.end, piece.text, Grade(piece.payload == "max")))
        else:
            self.aggregates.append(piece.payload)

    def _compared_with(self, aggregate: Aggregate) -> None:
        column = self.ahead(Cue.COLUMN)
        if column is not None:
            self.consume(column)
        subject = self.subject or column
        self._add(Filter(subject, self.compare or Operator.GT, None, grade=self.grade, average=aggregate))

    def _superlative(self, piece: Piece) -> None:
        grade = piece.payload if isinstance(piece.payload, Grade) else Grade(True)
        if self._span_of_order(grade, piece):
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
        if target is not None and target.cue == Cue.TIMES:
            self.draft.orders.append(Item(None, Aggregate.COUNT))
            return
        if target is not None and target.cue == Cue.COUNT:
            self.consume(target)
            self.superlative = grade
            self._count(target)
            return
        if grade.attributes and not (target is not None and target.cue == Cue.COLUMN and self._graded(target, grade)):
            self.draft.orders.append(Item(None, grade=grade, near=piece))
        elif target is not None and target.cue == Cue.COLUMN:
            self._superlative_of(target, grade)
        elif target is not None:
            self.consume(target)
            self.draft.orders.append(Item(target, Aggregate.COUNT))
        else:
            self.draft.orders.append(Item(self.last_column, grade=None if self.last_column else grade, near=piece))

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
        if not self.draft.orders:
            column = None if grade.attributes else self.last_column
            self.draft.orders.append(Item(column, grade=None if column else grade, near=piece))
        return True

    def _most_in_all(self, grade: Grade) -> bool:
        """ "The highest total fee" orders by an aggregate of each entity's rows."""
        aggregate = self.pieces[self.i].payload
        self.i += 1
        column = self.ahead(Cue.COLUMN, skip=(Cue.WORD, Cue.PREPOSITION, Cue.COUNT))
        if column is None or not isinstance(aggregate, Aggregate) or (self.mode == Mode.SELECT and not self.draft.select):
            self.i -= 1
            return False
        self.consume(column)
        self.draft.descending, self.draft.limit = grade.more, self.draft.limit or 1
        self.draft.orders.append(Item(column, aggregate))
        return True

    def _superlative_of(self, column: Piece, grade: Grade) -> None:
        self.consume(column)
        if self.mode == Mode.SELECT and not self.draft.select and not self.draft.mentions and not self.who:
            self.draft.limit = None
            if self.aggregates:
                self._select(column)
            self.extreme = Item(column, Aggregate.MAX if grade.more else Aggregate.MIN)
            self.draft.select.append(self.extreme)
        else:
            self.draft.orders.append(Item(column))

    def _number_before(self) -> Piece | None:
        before = self.pieces[self.i - 2] if self.i >= 2 else None
        return before if before is not None and before.cue == Cue.NUMBER else None

    def _graded(self, column: Piece, grade: Grade) -> bool:
        words = set(column.text.lower().split())
        return bool(words & {*grade.attributes, *grade.inverse})

    def _compare(self, piece: Piece) -> None:
        payload = piece.payload
        operator, grade = payload if isinstance(payload, tuple) else (payload, None)
        if len(piece.text.split()) == 1 and isinstance(payload, tuple):
            rest = self.pieces[self.i : self.i + 4]
            if not any(p.cue == Cue.WORD and p.text == "than" for p in rest):
                return
        if piece.text.startswith("or "):
            if self.draft.having and self.last_filter is None:
                self.draft.having[-1].operator = operator
            elif self.last_filter is not None:
                self.last_filter.operator = operator
            return
        if self.negated and operator in NEGATED and operator != Operator.EQ:
            operator, self.negated = NEGATED[operator], False
        self.compare, self.grade = operator, grade
        self.mode = Mode.FILTER if self.mode == Mode.SELECT else self.mode

    def _not(self, piece: Piece) -> None:
        self.negated = True
        self.mode = Mode.FILTER

    def _each(self, piece: Piece) -> None:
        self.beside = bool(piece.text in BESIDE and self.mode == Mode.SELECT and self.draft.select)
        self.each = not self.beside

    def _order(self, piece: Piece) -> None:
        self.each = False
        self.mode = Mode.ORDER

    def _direction(self, piece: Piece) -> None:
        self.draft.descending = bool(piece.payload)
        self.draft.directed = True
        if self.mode != Mode.ORDER:
            self.mode = Mode.ORDER

    def _distinct(self, piece: Piece) -> None:
        if self.mode == Mode.SELECT:
            self.distinct = True

    def _both(self, piece: Piece) -> None:
        self.draft.both = True

    def _and(self, piece: Piece) -> None:
        self.connective = Cue.AND
        if self.mode == Mode.FILTER and self.ahead(Cue.AGGREGATE, Cue.COUNT, skip=()):
            self.mode = Mode.SELECT

    def _or(self, piece: Piece) -> None:
        self.connective = Cue.OR

    def _comma(self, piece: Piece) -> None:
        self.negated = self.each = False
        if self.ahead(Cue.AND, Cue.OR) is None and self.mode == Mode.ORDER:
            self.mode = Mode.FILTER

    def _relative(self, piece: Piece) -> None:
        if not (self.draft.select or self.draft.mentions):
            return
        self.mode = Mode.FILTER
        if piece.text in ("whose", "with"):
            self.subject = None

    def _like(self, piece: Piece) -> None:
        self.like = piece.payload if isinstance(piece.payload, Operator) else None
        self.mode = Mode.FILTER
        following = self.pieces[self.i] if self.i < len(self.pieces) else None
        if following is not None and piece.text.split()[-1] in QUOTING and following.cue not in (Cue.VALUE, Cue.END):
            self.i += 1
            self._value(Piece(Cue.VALUE, following.start, following.end, following.text, quoted=True))

    def _preposition(self, piece: Piece) -> None:
        self.after_of = True

    def _common(self, piece: Piece) -> None:
        self.common = bool(piece.payload)
        self.draft.limit = self.draft.limit or 1
        self.draft.descending = self.common
        target = self.ahead(Cue.COLUMN, skip=(Cue.WORD, Cue.PREPOSITION, Cue.TABLE))
        target = target or self.ahead(Cue.TABLE, skip=(Cue.WORD, Cue.PREPOSITION)) or self.last_column
        if target is None:
            return
        if target in self.pieces[self.i :]:
            self.consume(target)
            if self.mode == Mode.SELECT or not self.draft.select:
                self.draft.select.append(Item(target))
        self.draft.groups.append(Item(target))
        self.draft.orders.append(Item(None, Aggregate.COUNT))

    def _table(self, piece: Piece) -> None:
        self.like = None
        main = self.draft.mentions[0] if self.draft.mentions else None
        coordinated = self.behind(Cue.AND, Cue.COMMA) or self.beside or self.behind(Cue.ASK)
        self.beside = False
        self.draft.mentions.append(piece)
        if self.each:
            self.draft.groups.append(Item(piece))
            self.each = False
            if self.mode == Mode.SELECT:
                self.draft.select.append(Item(piece, provisional=True))
        elif self.aggregates and self.mode == Mode.SELECT and self.ahead(Cue.COLUMN, skip=()) is None:
            pass
        elif self.negated and (self.draft.select if main is None else main.tables[:1] != piece.tables[:1]):
            self._absent(piece)
        elif self.mode == Mode.SELECT and (not self.after_of or coordinated):
            column = self.ahead(Cue.COLUMN, skip=(Cue.WORD,))
            singular = lemma(piece.text) == piece.text.lower()
            named = column is not None and (piece.possessive or (singular and self.pieces[self.i].cue == Cue.COLUMN))
            if not named:
                self.draft.select.append(Item(piece, provisional=not (coordinated and bool(self.draft.select))))
        elif self.mode == Mode.ORDER:
            self.mode = Mode.FILTER if self.draft.orders else self.mode
        self.after_of = False
        if self.distinct and self.draft.select:
            self.draft.distinct, self.distinct = True, False

    def _absent(self, piece: Piece) -> None:
        self.draft.absent.append((piece, []))
        self.negated = False

    def _column(self, piece: Piece) -> None:
        self.last_column = piece
        if self.each:
            self.draft.groups.append(Item(piece))
            self.each = False
            self.after_of = False
            return
        if self.mode == Mode.ORDER:
            aggregate = self.aggregates.pop() if self.aggregates else None
            self.draft.orders.append(Item(piece, aggregate))
        elif self.mode == Mode.FILTER or self._is_subject(piece) or self._predicate():
            self.subject = piece
            if self.behind(Cue.AND, Cue.COMMA):
                self.trailing.append(piece)
            if self.like is not None and self.ahead(Cue.VALUE, skip=()) is not None:
                self.like = None
            if self.mode == Mode.FILTER and self.aggregates:
                if self.ahead(Cue.COMPARE) is not None and self.draft.select:
                    self.compared = Item(piece, self.aggregates.pop())
                    return
                self._select(piece)
        else:
            self._select(piece)
        self.after_of = False

    def _predicate(self) -> bool:
        """Whether a column follows another one, or a table and a verb, so that it says something about them."""
        if not self.draft.select:
            return False
        before = self.pieces[self.i - 2] if self.i >= 2 else None
        verb = before is not None and before.cue == Cue.WORD and before.text not in ("the", "a", "an", "their", "its")
        return self.behind(Cue.COLUMN) or (verb and self.behind(Cue.TABLE))

    def _is_subject(self, piece: Piece) -> bool:
        """Whether a value or a comparison follows at once, so that the column filters instead of being selected."""
        following = self.ahead(Cue.VALUE, Cue.NUMBER, Cue.COMPARE, Cue.NOT, Cue.LIKE)
        if following is None or not (self.draft.select or self.draft.mentions):
            return False
        if following.cue == Cue.VALUE and following.values:
            return bool({k.column for k in following.values} & {k.column for k in piece.columns})
        if following.cue == Cue.COMPARE:
            return not isinstance(following.payload, tuple)
        return True

    def _select(self, piece: Piece) -> None:
        for aggregate in self.aggregates or [None]:
            self.draft.select.append(Item(piece, aggregate, distinct=self.distinct))
        self.aggregates = []
        if self.distinct:
            self.draft.distinct, self.distinct = True, False

    def _value(self, piece: Piece) -> None:
        operator = self.like or self.compare or Operator.EQ
        stored = {link.column for link in piece.values}
        if self.subject is None or (stored and not stored & {link.column for link in self.subject.columns}):
            self.subject = self._subject_after(piece) or self.subject
        if self.subject is None and self.like is not None and self.draft.select:
            self.subject = self.last_column
        if not piece.quoted and self.like is None and self.compare is not None and piece.values == ():
            return
        self._add(Filter(self.subject, operator, piece))

    def _subject_after(self, piece: Piece) -> Piece | None:
        """The column that is named after its value: "CD or DVD as their format", "the letter w in their name"."""
        column = self.pieces[self.i] if self.i < len(self.pieces) else None
        stored = {link.column for link in piece.values}
        if column is not None and column.cue == Cue.COLUMN and stored & {link.column for link in column.columns}:
            self.i += 1
            return column
        skip = (Cue.WORD, Cue.AND, Cue.OR, Cue.VALUE)
        between = self.ahead(Cue.PREPOSITION, skip=skip)
        if between is None or between.text not in ("as", "in", "for"):
            return None
        j = self.pieces.index(between) + 1
        while j < len(self.pieces) and self.pieces[j].cue == Cue.WORD:
            j += 1
        column = self.pieces[j] if j < len(self.pieces) else None
        if column is None or column.cue != Cue.COLUMN:
            return None
        fits = self.like is not None or not stored or bool(stored & {link.column for link in column.columns})
        return column if fits else None

    def _number(self, piece: Piece) -> None:
        if self.compared is not None:
            operator = self.compare or Operator.EQ
            self.draft.having.append(Counted(operator, piece.number or 0.0, None, self.compared))
            self.compared = self.compare = self.subject = None
            return
        if self.compare is None and (after := self.ahead(Cue.COMPARE, skip=())) and after.text.startswith("or "):
            self.consume(after)
            payload = after.payload
            self.compare = payload[0] if isinstance(payload, tuple) else payload
        second = self.ahead(Cue.NUMBER, skip=(Cue.AND, Cue.WORD, Cue.PREPOSITION))
        if second is not None and self.ahead(Cue.AND, Cue.PREPOSITION) is not None:
            link = self.pieces[self.pieces.index(second) - 1]
            if link.text == "to" or (self.compare == Operator.BETWEEN and link.cue == Cue.AND):
                self.compare = Operator.BETWEEN
                self.consume(second)
                table = self.ahead(Cue.TABLE, skip=())
                if table is not None and self.subject is None:
                    self.draft.having.append(Counted(Operator.GE, piece.number or 0.0, table))
                    self._counted(second, table, Operator.LE)
                else:
                    self._add(Filter(self.subject, Operator.BETWEEN, piece, second, grade=self.grade))
                return
        after = self.ahead(Cue.COLUMN, skip=(Cue.WORD, Cue.PREPOSITION))
        graded = self.grade is not None and self.grade.attributes
        if self.subject is None and after is not None and self.compare is not None and not graded:
            self.subject = after
            self.consume(after)
        counted = self.ahead(Cue.TABLE, Cue.TIMES, skip=())
        if counted is None and self.counting:
            counted = piece
        if counted is not None and (self.subject is None or self.counting or self.compare is not None):
            self._counted(piece, counted)
        else:
            self._add(Filter(self.subject, self.compare or Operator.EQ, piece, grade=self.grade))

    def _counted(self, piece: Piece, counted: Piece, operator: Operator | None = None) -> None:
        if self.mode == Mode.SELECT:
            self.amount = int(piece.number or 0) or None
            return
        if counted.cue == Cue.TABLE:
            self.consume(counted)
        table = counted if counted.cue == Cue.TABLE else None
        self.draft.having.append(Counted(operator or self.compare or Operator.EQ, piece.number or 0.0, table))
        self.compare, self.counting, self.negated = None, False, False

    def _add(self, condition: Filter) -> None:
        condition.negated = self.negated
        condition.at = self.i - 1
        last = self.last_filter
        if last is not None and self.connective == Cue.OR:
            condition.alternative = True
        if last is not None and condition.subject is None and condition.value is not None and self.compare is None:
            between = self.pieces[last.at + 1 : self.i - 1]
            if all(p.cue in (Cue.AND, Cue.OR, Cue.COMMA, Cue.WORD, Cue.BOTH) for p in between):
                condition.subject, condition.operator = last.subject, last.operator
        self.draft.filters.append(condition)
        self.last_filter = condition
        if condition.value is None or self.ahead(Cue.AND, Cue.OR, Cue.COMMA) is None:
            self.subject = None
        self.negated = self.negated and self.ahead(Cue.AND, Cue.OR, Cue.COMMA) is not None
        self.compare = self.grade = self.like = None
        self.connective = Cue.AND

    def _finish(self) -> None:
        draft = self.draft
        used = {id(f.subject) for f in draft.filters} | {id(item.piece) for item in draft.orders}
        draft.select += [Item(piece) for piece in self.trailing if id(piece) not in used]
        if draft.groups and not any(item.aggregate for item in draft.select):
            for item in draft.select:
                said = item.piece.text.lower().split() if item.piece is not None and item.piece.cue == Cue.COLUMN else ()
                item.aggregate = next((a for word, a in AGGREGATES if word in said), None)
        if sum(not item.provisional for item in draft.select) > 1:
            draft.select = [item for item in draft.select if not (item.grade is not None and item.grade.any_type)]
        chosen = [item for item in draft.select if not item.provisional]
        if chosen:
            draft.select = chosen
        else:
            draft.select = draft.select[:1]
        if not draft.select and draft.mentions:
            draft.select = [Item(draft.mentions[0], provisional=True)]
        if self.extreme is not None and not draft.groups and len(draft.select) > 1:
            if all(item.aggregate is None or item is self.extreme for item in draft.select):
                self.extreme.aggregate = None
                draft.orders.append(Item(self.extreme.piece))
                draft.limit = 1
        if self.compare is not None and self.last_column is not None and self.aggregates:
            draft.filters.append(Filter(self.last_column, self.compare, None, average=self.aggregates[-1]))
