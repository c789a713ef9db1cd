"""Reading conditions: comparisons, values and numbers, and the columns or tables that they are about."""

from collections.abc import Sequence
from enum import StrEnum

from helios.routing.formulation.cues import OWNERS, Cue, Grade
from helios.routing.formulation.dates import DATE
from helios.routing.formulation.draft import Counted, Draft, Filter, Item
from helios.routing.formulation.linking import says_when
from helios.routing.formulation.pieces import Piece
from helios.routing.formulation.plan import Aggregate, Operator
from helios.routing.formulation.self_references import UNDER, works_under
from helios.routing.formulation.words import IRREGULAR, lemma

NEGATED = {
    Operator.EQ: Operator.NE, Operator.GT: Operator.LE, Operator.LT: Operator.GE, Operator.GE: Operator.LT,
    Operator.LE: Operator.GT, Operator.CONTAINS: Operator.NOT_CONTAINS, Operator.BETWEEN: Operator.BETWEEN,
    Operator.STARTS: Operator.STARTS, Operator.ENDS: Operator.ENDS,
}  # fmt: skip
REQUESTS = ("give", "show", "list", "return", "display", "report", "provide", "tell")
"""Words that say what is wanted after a question."""
NAMES = ("name", "title", "description", "note", "subject", "comment")
"""Columns that a word may stand in."""
QUOTING = ("letter", "word", "phrase", "substring", "string", "prefix", "suffix")
"""What is named by them is meant literally."""


class Mode(StrEnum):
    """What a mention of a column is for."""

    SELECT = "select"
    FILTER = "filter"
    ORDER = "order"


class ConditionReader:
    """The state of a reader that goes over pieces from left to right, and what it does about conditions."""

    def _compared_number(self, piece: Piece) -> None:
        counted = self.ahead(Cue.TABLE, Cue.TIMES, skip=())
        if counted is None and self.compare is not None:
            counted = self.ahead(Cue.TABLE, skip=(Cue.WORD, Cue.DISTINCT))  # "4 or more different high schoolers"
        if counted is None and self.counting:
            counted = piece
        if counted is not None and (self.subject is None or self.counting or self.compare is not None):
            self._counted(piece, counted)
        else:
            self._add(Filter(self.subject, self.compare or Operator.EQ, piece, grade=self.grade))

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
        self.inside = False
        self.amount: int | None = None
        self.who = False
        self.compared: Item | None = None
        self.measured: Piece | None = None

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

    def _compare(self, piece: Piece) -> None:
        payload = piece.payload
        operator, grade = payload if isinstance(payload, tuple) else (payload, None)
        if len(piece.text.split()) == 1 and isinstance(payload, tuple):
            rest = self.pieces[self.i : self.i + 4]
            number = bool(rest) and rest[0].cue == Cue.NUMBER and rest[0].text.isdigit()
            if not number and not any(p.cue == Cue.WORD and p.text == "than" for p in rest):
                return
        if piece.text.startswith("or "):
            if self.draft.having and self.last_filter is None:
                self.draft.having[-1].operator = operator
            elif self.last_filter is not None:
                self.last_filter.operator = operator
            return
        if self.negated and operator in NEGATED and operator != Operator.EQ:
            operator, self.negated = NEGATED[operator], False
        if grade is not None and grade.attributes and self.last_filter is not None:
            self.subject = None if self.last_filter.subject is self.subject else self.subject
        self.compare, self.grade = operator, grade
        self.mode = Mode.FILTER if self.mode == Mode.SELECT else self.mode

    def _not(self, piece: Piece) -> None:
        self.negated = True
        self.mode = Mode.FILTER

    def _like(self, piece: Piece) -> None:
        if piece.text == "including" and self.ahead(Cue.COLUMN) is not None:
            return  # "all the addresses including line 1 and line 2"
        if self.ahead(Cue.COMPARE, Cue.NUMBER, skip=()) is not None and piece.text in (
            "contain",
            "contains",
            "include",
        ):
            self.mode = Mode.FILTER
            return  # "lists that contain more than two songs"
        self.like = piece.payload if isinstance(piece.payload, Operator) else None
        self.mode = Mode.FILTER
        stored = self.ahead(Cue.VALUE, skip=())
        main = self.draft.mentions[-1].tables[:1] if self.draft.mentions else ()
        own = stored is not None and not stored.quoted and any(link.table in main for link in stored.values)
        if piece.text == "like" and own and self.behind(Cue.TABLE, Cue.RELATIVE):
            self.like = None  # "plants that like full shade"
        following = self.pieces[self.i] if self.i < len(self.pieces) else None
        literal = self.like in (Operator.STARTS, Operator.ENDS) and following is not None and following.cue == Cue.WORD
        literal = literal and len(following.text) == 1 if following is not None else False
        if (
            following is not None
            and (literal or piece.text.split()[-1] in QUOTING)
            and following.cue not in (Cue.VALUE, Cue.END)
        ):
            self.i += 1
            self._value(Piece(Cue.VALUE, following.start, following.end, following.text, quoted=True))

    def _value(self, piece: Piece) -> None:
        before = self.pieces[self.i - 2] if self.i >= 2 else piece
        if before.text == UNDER and piece.values and works_under(self.pieces, before):
            self.compare = None  # "who works under Ann"
        operator = self.like or self.compare or Operator.EQ
        behind = [p.text for p in self.pieces[self.i : self.i + 2]]
        if piece.quoted and operator is Operator.EQ and behind[:1] == ["in"] and behind[1:] in (["them"], ["it"]):
            operator = Operator.CONTAINS  # "songs with "Winter" in them"
            self.subject = self.subject or self.last_column
        if operator is Operator.EQ and (column := self._held_in()) is not None:
            operator, self.subject = Operator.CONTAINS, column  # "with Folk in the title"
        stored = {link.column for link in piece.values}
        if self.subject is None or (stored and not stored & {link.column for link in self.subject.columns}):
            used = self.last_filter is not None and self.last_filter.subject is self.subject and not piece.quoted
            self.subject = self._subject_after(piece) or (None if used else self.subject)
        if self.subject is None and self.like is not None and self.draft.select:
            self.subject = self.last_column
        if not piece.quoted and self.like is None and self.compare is not None and piece.values == ():
            return
        second = self.ahead(Cue.VALUE, skip=(Cue.AND,)) if operator is Operator.BETWEEN else None
        if second is not None and DATE.fullmatch(piece.text) and DATE.fullmatch(second.text):
            self.consume(second)
        else:
            second = None
        self._add(Filter(self.subject, operator, piece, second))

    def _held_in(self) -> Piece | None:
        """The name or the title that a word is "in", which is then consumed."""
        following = self.pieces[self.i : self.i + 3]
        if [p.cue for p in following] != [Cue.PREPOSITION, Cue.WORD, Cue.COLUMN] or following[0].text != "in":
            return None
        column = following[2]
        if following[1].text not in ("the", *OWNERS) or lemma(column.text.split()[-1]) not in NAMES:
            return None
        self.i += 3
        return column

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
        if self.compare is None and self._limits(piece):
            self.amount = int(piece.number or 0) or None
            return
        if self.compared is not None:
            operator = self.compare or Operator.EQ
            self.draft.having.append(Counted(operator, piece.number or 0.0, None, self.compared))
            self.compared = self.compare = self.subject = None
            return
        self._or_more()
        if not self._range(piece):
            self._subject_follows()
            if self.aggregates and self.subject is not None and self.compare is not None and self.draft.select:
                item = Item(self.subject, self.aggregates.pop())  # "an average rating of more than 4 stars"
                self.draft.having.append(Counted(self.compare, piece.number or 0.0, None, item))
                self.compare = self.subject = None
                return
            self._compared_number(piece)

    def _limits(self, piece: Piece) -> bool:
        """ "The three best players", "the three cities with the highest rainfall": how many are asked for."""
        superlative = (Cue.SUPERLATIVE, Cue.COMMON)
        if self.ahead(*superlative, skip=()) is not None and not self.behind(Cue.COMPARE):
            return True
        if self.mode != Mode.SELECT or self.draft.select or not 0 < (piece.number or 0) < 1000:
            return False
        column = self.ahead(Cue.COLUMN)
        later = any(p.cue in superlative for p in self.pieces[self.i :])
        return column is not None and later and lemma(column.text.split()[-1]) != column.text.split()[-1].lower()

    def _range(self, piece: Piece) -> bool:
        """ "1 to 2", "between 1 and 2"."""
        second = self.ahead(Cue.NUMBER, skip=(Cue.AND, Cue.WORD, Cue.PREPOSITION))
        if second is not None and self.ahead(Cue.AND, Cue.PREPOSITION) is not None:
            link = self.pieces[self.pieces.index(second) - 1]
            if link.text == "to" or (self.compare == Operator.BETWEEN and link.cue == Cue.AND):
                self.compare = Operator.BETWEEN
                self.consume(second)
                column = self.ahead(Cue.COLUMN, skip=())
                if column is not None and self.subject is None:
                    self.subject = column  # "between 50 and 100 beds"
                    self.consume(column)
                table = self.ahead(Cue.TABLE, skip=())
                if table is not None and self.subject is None:
                    self.draft.having.append(Counted(Operator.GE, piece.number or 0.0, table))
                    self._counted(second, table, Operator.LE)
                else:
                    self._add(Filter(self.subject, Operator.BETWEEN, piece, second, grade=self.grade))
                return True
        return False

    def _or_more(self) -> None:
        """ "2 or more": the comparison stands after its number."""
        after = self.ahead(Cue.COMPARE, skip=())
        if self.compare is None and after is not None and after.text.startswith("or "):
            self.consume(after)
            payload = after.payload[0] if isinstance(after.payload, tuple) else after.payload
            self.compare = payload if isinstance(payload, Operator) else None

    def _subject_follows(self) -> None:
        """ "More than 1000 feet of elevation": the column stands after its number."""
        after = self.ahead(Cue.COLUMN, skip=(Cue.WORD, Cue.PREPOSITION, Cue.DISTINCT))
        graded = self.grade is not None and self.grade.attributes
        if graded and "duration" in graded and self.ahead(Cue.COLUMN, skip=()) is not None:
            graded = ()  # "longer than four days", where days are a column
        said = self.compare is not None or (self.mode == Mode.FILTER and self.ahead(Cue.COLUMN, skip=()) is not None)
        if self.subject is None and after is not None and said and not graded:
            self.subject = after
            self.consume(after)

    def _counted(self, piece: Piece, counted: Piece, operator: Operator | None = None) -> None:
        if self.mode == Mode.SELECT:
            self.amount = int(piece.number or 0) or None
            return
        if counted.cue == Cue.TABLE:
            self.consume(counted)
        table = counted if counted.cue == Cue.TABLE else None
        between = [p.cue for p in self.pieces if piece.end <= p.start < counted.start]
        compared = Counted(operator or self.compare or Operator.EQ, piece.number or 0.0, table)
        compared.different = table is not None and Cue.DISTINCT in between
        self.draft.having.append(compared)
        self.draft.either |= self.connective == Cue.OR and bool(self.draft.filters)
        self.compare, self.counting, self.negated, self.connective = None, False, False, Cue.AND

    def _add(self, condition: Filter) -> None:
        condition.negated = self.negated
        condition.inside = self.inside
        condition.at = self.i - 1
        last = self.last_filter
        if last is not None and self.connective == Cue.OR:
            condition.alternative = True
        elif self.connective == Cue.OR:
            self.draft.either |= bool(self.draft.having)
        if last is not None and condition.subject is None and condition.value is not None and self.compare is None:
            between = self.pieces[last.at + 1 : self.i - 1]
            stored = {link.column for link in condition.value.values}
            subject = {link.column for link in last.subject.columns} if last.subject is not None else stored
            listed = all(p.cue in (Cue.AND, Cue.OR, Cue.COMMA, Cue.WORD, Cue.BOTH) for p in between)
            listed = listed and last.average is None and last.than is None
            if listed and (not stored or stored & subject):
                condition.subject, condition.operator = last.subject, last.operator
        self.draft.filters.append(condition)
        self.last_filter = condition
        if condition.value is None or self.ahead(Cue.AND, Cue.OR, Cue.COMMA) is None:
            self.subject = None
        self.negated = self.negated and self.ahead(Cue.AND, Cue.OR, Cue.COMMA) is not None
        self.compare = self.grade = self.like = None
        self.connective = Cue.AND

    def _compared_with(self, aggregate: Aggregate) -> None:
        column = self.ahead(Cue.COLUMN)
        last = self.draft.select[-1] if self.draft.select else None
        if column is None and self.ahead(Cue.TABLE) is not None and last is not None and last.aggregate is None:
            graded = self.grade is not None and bool(self.grade.attributes)
            said = last.piece is self.last_column is not None
            if said and not graded:
                column = self.last_column  # "which huts cost more than the average hut"
                self.draft.select.pop()
            elif said and last.piece is not None and not any(link.whole for link in last.piece.links):
                self.draft.select.pop()  # "which plays run longer than the average play"
        elif column is not None:
            self.consume(column)
        compared = Filter(column or self.subject, self.compare or Operator.GT, None, grade=self.grade)
        compared.average, compared.own = aggregate, self._own_kind()
        self._add(compared)
        following = (Cue.PREPOSITION,) if column is not None else (Cue.PREPOSITION, Cue.VALUE)
        self.inside = compared.own is None and self.ahead(*following, skip=()) is not None

    def _own_kind(self) -> Item | None:
        """What rows share that an average is computed over: "the average of its own category", "for their trade"."""
        place = self.i
        while place < len(self.pieces) and self.pieces[place].cue in (Cue.PREPOSITION, Cue.WORD):
            place += 1
        kind = self.pieces[place] if place < len(self.pieces) else None
        words = [piece.text for piece in self.pieces[self.i : place]]
        if kind is None or kind.cue not in (Cue.COLUMN, Cue.TABLE) or not {*OWNERS, "own", "same"} & set(words[1:]):
            return None
        self.consume(kind)
        return Item(kind)

    def _than_a_column(self, piece: Piece) -> bool:
        """ "Whose stock is below their reorder level": two columns are compared."""
        subject = self.subject or (self.last_column if self.mode == Mode.FILTER else None)
        follows = self.ahead(Cue.VALUE, Cue.NUMBER, skip=(Cue.WORD, Cue.PREPOSITION)) is not None
        if self.compare is None or subject is None or subject is piece or follows or self.aggregates:
            return False
        compare = next((p for p in reversed(self.pieces[: self.i - 1]) if p.cue != Cue.WORD), None)
        if compare is None or compare.cue != Cue.COMPARE:
            return False
        than = compare.text.endswith("than") or any(p.text == "than" for p in self.pieces[self.i - 3 : self.i - 1])
        if isinstance(compare.payload, tuple) and not than:
            return False  # "a higher rate"
        self._add(Filter(subject, self.compare, None, than=Item(piece)))
        return True

    def _state(self, piece: Piece) -> None:
        """ "Cancelled bookings", "still not reimbursed": a column that says when is filled, or is empty."""
        operator = piece.payload if isinstance(piece.payload, Operator) else Operator.NOT_NULL
        if self.negated:
            operator, self.negated = Operator.IS_NULL, False
        before, self.mode = self.mode, Mode.FILTER
        self._add(Filter(piece, operator, None))
        self.mode = before if before is Mode.SELECT and not self.draft.select else self.mode

    def _done(self, piece: Piece) -> bool:
        """Whether it is said that something was done, and a column says when: there is a date where it was."""
        before = [p.text for p in self.pieces[: self.i - 1]][-2:]
        ends = self.ahead(Cue.END, Cue.COMMA, Cue.AND, skip=()) is not None
        been = before[-1:] == ["be"] and before[-2:-1] not in (["not"], ["never"])
        tensed = been and any(p.text == "have" for p in self.pieces[max(0, self.i - 4) : self.i - 1])
        past = piece.text.endswith("ed") or (before[-1:] == ["have"] and IRREGULAR.get(piece.text, "") != "")
        done = past and " " not in piece.text and (tensed or before[-1:] == ["have"]) and ends and not self.negated
        verb = IRREGULAR.get(piece.text, piece.text)
        return done and any(link.column is not None and says_when(link, verb) for link in piece.links)

    def _lacking(self, piece: Piece) -> bool:
        """Whether nothing of a column is to be there: "who have no allergy"; a value or a comparison would follow."""
        has = ("have", "has", "having")
        passed = (Cue.WORD, Cue.DISTINCT, Cue.PREPOSITION)
        before = [p for p in self.pieces[: self.i - 1] if p.cue not in passed and p.text not in (*has, "with")]
        follows = self.ahead(Cue.VALUE, Cue.NUMBER, Cue.COMPARE, Cue.LIKE, Cue.NOT, Cue.SUPERLATIVE,
                             skip=(Cue.WORD, Cue.PREPOSITION, Cue.COLUMN, Cue.TABLE))  # fmt: skip
        between = {p.text for p in self.pieces[: self.i - 1][-3:]}
        said = bool({*has, "own", "possess", "any", "a", "an", "given"} & between) or (
            before and before[-1].text != "not"
        )
        if not (self.negated and before and before[-1].cue == Cue.NOT and follows is None and said):
            return False
        known = bool(self.draft.mentions) or self.who
        return known and any(link.score > 0.9 or says_when(link, piece.text) for link in piece.columns)

    def _none_of(self, piece: Piece) -> bool:
        """Whether "no" stands before a column and nothing of it follows: "carries no cargo or was built in 1985"."""
        before = self.pieces[self.i - 2] if self.i >= 2 else None
        following = [p.cue for p in self.pieces[self.i : self.i + 2]]
        ends = self.ahead(Cue.OR, Cue.AND, Cue.COMMA, Cue.END, skip=()) is not None
        ends = ends or following == [Cue.PREPOSITION, Cue.END]  # "took no deposit on"
        said = before is not None and before.cue == Cue.NOT and before.text == "no"
        known = self.draft.select or self.draft.mentions
        if not (self.negated and said and ends and known) or piece.tables:
            return False
        self.negated = False
        return True

    def _listed_behind(self) -> bool:
        """Whether a request lists columns: "list the courses with start date and fee, earliest first"."""
        first = self.pieces[0]
        if not (first.cue == Cue.ASK and first.text in REQUESTS) or len(self.draft.select) != 1:
            return False
        cues = [p.cue for p in self.pieces[self.i :] if p.text not in ("the", "their", "its")]
        count = 0
        while cues[:1] == [Cue.COLUMN]:
            count += 1
            cues = cues[1:]
            while cues[:1] in ([Cue.COMMA], [Cue.AND]) and cues[1:2] in ([Cue.COLUMN], [Cue.AND]):
                cues = cues[1:]
        return count > 1 and (not cues or cues[0] in (Cue.END, Cue.COMMA))
