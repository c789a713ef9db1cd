"""From pieces to a draft: what is selected, filtered, grouped, ordered and excluded, before tables are settled.

A question is read from left to right in one of three modes. Words such as "whose" and "with" open a filter, "ordered
by" an order, "what" after a comma the selection again; what a column or a table mention means depends on the mode and
on the cues that wait for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from helios.routing.formulation.aggregates import AggregateReader
from helios.routing.formulation.conditions import REQUESTS, Mode
from helios.routing.formulation.cues import OWNERS, Cue, Grade
from helios.routing.formulation.draft import Draft, Filter, Item
from helios.routing.formulation.linking import FLAG, STILL, undone
from helios.routing.formulation.pieces import Piece
from helios.routing.formulation.plan import Aggregate, Operator
from helios.routing.formulation.words import IRREGULAR, lemma

BESIDE = ("corresponding", "respective")
"""Words that set one selection beside another."""
NAMED = ("named", "called", "titled")
"""Words that say what follows is a name, and ask for none."""
MEASURED = frozenset((
    "high", "highest", "large", "least", "most", "low", "lowest", "small", "big", "early", "earliest", "late",
    "latest",
))  # fmt: skip
"""Words of directions of numbers and times."""
AGGREGATES = (
    ("total", Aggregate.SUM),
    ("average", Aggregate.AVG),
    ("maximum", Aggregate.MAX),
    ("minimum", Aggregate.MIN),
)


def read(pieces: Sequence[Piece]) -> Draft:
    """Read a question's pieces."""
    return _Reader(pieces).run()


class _Reader(AggregateReader):
    def run(self) -> Draft:
        steps: dict[Cue, Callable[[Piece], None]] = {
            Cue.ASK: self._ask, Cue.COUNT: self._count, Cue.AGGREGATE: self._aggregate, Cue.EACH: self._each,
            Cue.SUPERLATIVE: self._superlative, Cue.COMPARE: self._compare, Cue.NOT: self._not, Cue.ORDER: self._order,
            Cue.DIRECTION: self._direction, Cue.DISTINCT: self._distinct, Cue.BOTH: self._both, Cue.AND: self._and,
            Cue.OR: self._or, Cue.COMMA: self._comma, Cue.RELATIVE: self._relative, Cue.LIKE: self._like,
            Cue.PREPOSITION: self._preposition, Cue.COMMON: self._common, Cue.TABLE: self._table,
            Cue.COLUMN: self._column, Cue.VALUE: self._value, Cue.NUMBER: self._number, Cue.STATE: self._state,
        }  # fmt: skip
        while self.i < len(self.pieces):
            piece = self.pieces[self.i]
            self.i += 1
            self.inside = self.inside and piece.cue not in (Cue.AND, Cue.OR, Cue.COMMA, Cue.END)
            step = steps.get(piece.cue)
            if step is not None:
                step(piece)
        self._finish()
        return self.draft

    def _ask(self, piece: Piece) -> None:
        if isinstance(piece.payload, Grade):
            self._ask_attribute(piece, piece.payload)
            return
        seen = bool(self.draft.select or self.draft.mentions)
        self._beside(piece)
        self._told(piece)
        self.after_of = False
        self.who = self.who or (piece.text == "who" and not seen)
        if piece.text in ("who", "whom", "which") and seen and not self.behind(Cue.COMMA, Cue.AND):
            self.mode = Mode.FILTER
        elif not seen or self._asked_beside() or self.mode != Mode.FILTER:
            self.mode = Mode.SELECT
            self.subject = None

    def _asked_beside(self) -> bool:
        """Whether what is asked stands beside something else: ", and what", "and on what"."""
        before = [p.cue for p in self.pieces[: self.i - 1] if p.cue != Cue.WORD]
        if before[-1:] == [Cue.PREPOSITION]:
            before.pop()
        return before[-1:] in ([Cue.COMMA], [Cue.AND], [Cue.END])

    def _beside(self, piece: Piece) -> None:
        """ "Which shops sell it, and at what price": what was asked for before is selected as well."""
        done = self.pieces[: self.i - 1]
        before = [p.cue for p in done if p.cue not in (Cue.WORD, Cue.PREPOSITION)]
        asks = [place for place, p in enumerate(done) if p.cue == Cue.ASK]
        passed = (Cue.WORD, Cue.SUPERLATIVE, Cue.NUMBER, Cue.DISTINCT, Cue.VALUE)
        first = [p for p in done[asks[-1] :] if p.cue not in passed][:2] if asks else []
        asked = [p.cue for p in first] == [Cue.ASK, Cue.TABLE] and first[0].text.split()[0] in ("which", "what", "who")
        anew = piece.text.startswith(("what", "which", "how")) or piece.text in ("when", "where", "who")
        if not (asked and before[-1:] == [Cue.AND] and anew):
            return
        for item in self.draft.select[:1]:
            item.provisional = False
        if not self.draft.select and self.draft.orders and first[0].text != "who":
            self.draft.select.append(Item(first[1]))

    def _told(self, piece: Piece) -> None:
        """ "Who was hired last year? Give the first name and the job": a request of its own says what is wanted."""
        request = piece.text in REQUESTS and self.behind(Cue.END)
        self.draft.listed |= request
        if request:
            self._leave_undone()
        if request and self.ahead(Cue.COLUMN, skip=(Cue.WORD, Cue.DISTINCT, Cue.TABLE)) is not None:
            for item in self.draft.select:
                item.provisional = item.provisional or item.aggregate is None

    def _ask_attribute(self, piece: Piece, grade: Grade) -> None:
        """ "How old", "when" and "where" ask for an attribute; in the middle the last two open a filter."""
        self._beside(piece)
        if grade.any_type and (self.draft.select or self.draft.mentions) and not self.behind(Cue.AND, Cue.COMMA):
            self.mode = Mode.FILTER
            return
        self.mode = Mode.SELECT
        done = self.last_filter
        if piece.text == "when" and done is not None and done.operator is Operator.NOT_NULL:
            self.draft.select.append(Item(done.subject))  # "which were closed, and when"
            return
        self.draft.select.append(Item(None, grade=grade, near=piece))

    def _count(self, piece: Piece) -> None:
        self._beside(piece)
        self._counted_beside(piece)
        before = self.pieces[self.i - 2] if self.i >= 2 else None
        if before is not None and before.cue == Cue.COLUMN and piece.text.startswith("number"):
            return  # "the phone number of"
        if isinstance(piece.payload, int):
            self.draft.share = piece.payload
        skip = (Cue.WORD, Cue.DISTINCT, Cue.PREPOSITION)
        between = self.pieces[self.i : self.i + 3]
        distinct = any(p.cue == Cue.DISTINCT for p in between)
        target = self.ahead(Cue.TABLE, Cue.COLUMN, Cue.VALUE, skip=skip)
        if target is not None and target.cue == Cue.VALUE:
            target = None
        if target is not None and target.cue == Cue.TABLE and lemma(target.text) == target.text.lower():
            after = self.pieces[self.pieces.index(target) + 1 :][:1]
            target = after[0] if after and after[0].cue == Cue.COLUMN else target  # "how many different song titles"
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

    def _counted_beside(self, piece: Piece) -> None:
        """ "The members, with the number of loans", "who placed the most orders, and how many": names and counts."""
        chosen = self.draft.select
        listed = piece.text.endswith("number of") and self.behind(Cue.RELATIVE)
        after = piece.text == "how many" and self.behind(Cue.AND) and bool(self.draft.orders)
        if (listed or after) and len(chosen) == 1 and chosen[0].aggregate is None:
            chosen[0].provisional = False

    def _each(self, piece: Piece) -> None:
        following = self.pieces[self.i] if self.i < len(self.pieces) else None
        if piece.text == "per" and following is not None and following.cue == Cue.WORD:
            return  # "paid more per hour"
        if following is not None and following.text in ("them", "these", "those"):
            return  # "and how many days each of them keeps"
        self.beside = bool(piece.text in BESIDE and self.mode == Mode.SELECT and self.draft.select)
        self.each = not self.beside

    def _order(self, piece: Piece) -> None:
        self.each = False
        self.mode = Mode.ORDER

    def _direction(self, piece: Piece) -> None:
        self.draft.descending = bool(piece.payload)
        self.draft.directed = True
        self.draft.measured = bool(MEASURED & set(piece.text.split()))
        if self.mode != Mode.ORDER:
            self.mode = Mode.ORDER

    def _distinct(self, piece: Piece) -> None:
        if piece.payload == "once":
            self.draft.distinct = True
        elif self.mode == Mode.SELECT:
            self.distinct = True

    def _both(self, piece: Piece) -> None:
        self.draft.both = True

    def _and(self, piece: Piece) -> None:
        self.connective = Cue.AND
        if self.mode == Mode.FILTER and self.ahead(Cue.AGGREGATE, Cue.COUNT, skip=()):
            self.mode = Mode.SELECT

    def _or(self, piece: Piece) -> None:
        self.negated = self.negated and not self.behind(Cue.COLUMN)
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
        following = self.pieces[self.i] if self.i < len(self.pieces) else None
        listed = following is not None and following.text == "the" and self.behind(Cue.COMMA)
        if piece.text == "with" and following is not None and (following.text in ("their", "its") or listed):
            column = self.ahead(Cue.COLUMN)
            behind = self.pieces[self.pieces.index(column) + 1 :] if column is not None else []
            ends = column is not None and (not behind or behind[0].cue in (Cue.AND, Cue.COMMA, Cue.END))
            if ends:
                self.mode = Mode.SELECT  # "songs with their lengths and titles"
                for item in self.draft.select[:1]:
                    item.provisional = item.provisional and len(self.draft.select) > 1
        elif piece.text == "with" and self._listed_behind():
            self.mode = Mode.SELECT
            for item in self.draft.select[:1]:
                item.provisional = False

    def _preposition(self, piece: Piece) -> None:
        self.after_of = not self._ranked_by(piece)

    def _common(self, piece: Piece) -> None:
        self.common = bool(piece.payload)
        self.draft.limit = self.draft.limit or 1
        self.draft.descending = self.common
        target = self.ahead(Cue.COLUMN, skip=(Cue.WORD, Cue.PREPOSITION, Cue.TABLE))
        if self.last_column is not None and self.ahead(Cue.PREPOSITION, skip=()) is not None:
            target = target or self.last_column  # "which colour is the most common among cars"
        target = target or self.ahead(Cue.TABLE, skip=(Cue.WORD, Cue.PREPOSITION)) or self.last_column
        last = self.draft.mentions[-1] if self.draft.mentions else None
        if target is None and last is not None and any(link.whole for link in last.columns):
            target = replace(last, cue=Cue.COLUMN)  # a table that is called like a column: "which allergy type"
            self.draft.select = [item for item in self.draft.select if item.piece is not last]
            self.draft.select.append(Item(target))
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
        coordinated = self.behind(Cue.AND, Cue.COMMA) or self.beside or self._asked_anew()
        self.beside = False
        self.draft.mentions.append(piece)
        if self.each and piece.possessive and not self._aggregates_said():
            self.each, self.mode = False, Mode.SELECT  # "each owner's name" is the name of an owner
        if self.each or self._by_kind(piece):
            self.draft.groups.append(Item(piece))
            self.each = False
            if self.mode == Mode.SELECT:
                self.draft.select.append(Item(piece, provisional=True))
        elif self.aggregates and self.mode == Mode.SELECT and self.ahead(Cue.COLUMN, skip=()) is None:
            self.measured = self.measured or piece
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

    def _by_kind(self, piece: Piece) -> bool:
        """Whether an aggregate is computed "by" what a table holds: "the average donation by payment method"."""
        before = self.pieces[max(0, self.i - 3) : self.i - 1]
        noun = len(before) == 2 and before[0].cue in (Cue.TABLE, Cue.COLUMN) and not before[0].text.endswith("ed")
        ends = self.ahead(Cue.END, Cue.COMMA, skip=()) is not None or self.i == len(self.pieces)
        said = bool(self.aggregates) or any(item.aggregate is not None for item in self.draft.select)
        singular = lemma(piece.text.split()[-1]) == piece.text.split()[-1].lower()
        return noun and ends and said and singular and before[1].text == "by"

    def _aggregates_said(self) -> bool:
        """Whether anything in the question is counted or summed up."""
        if [p.text for p in self.pieces[:2]] == ["how", "much"]:
            return True
        return any(p.cue in (Cue.COUNT, Cue.AGGREGATE, Cue.SUPERLATIVE, Cue.COMMON) for p in self.pieces)

    def _absent(self, piece: Piece) -> None:
        following = self.pieces[self.i] if self.i < len(self.pieces) else None
        if piece.cue == Cue.TABLE and following is not None and following.cue == Cue.TABLE and not piece.possessive:
            self.i += 1
            piece = following  # "no aircraft certificate"
        self.draft.absent.append((piece, []))
        self.negated = False

    def _column(self, piece: Piece) -> None:
        following = self.pieces[self.i].text.split()[:1] if self.i < len(self.pieces) else []
        grouped = self.ahead(Cue.EACH, skip=()) is not None and not any(link.whole for link in piece.links)
        if (following == ["by"] or grouped) and piece.text.endswith("ed") and " " not in piece.text:
            return  # a verb: "the houses registered by each owner", "registered in each year"
        if self._asked_of_a_doer(piece) or self._than_a_column(piece):
            return
        if (undone(piece.text) or piece.text.lower() == STILL) and any(k.score == FLAG for k in piece.columns):
            self._add(Filter(piece, Operator.IS_NULL, None))
            return
        if self._done(piece):
            self._add(Filter(piece, Operator.NOT_NULL, None))
            return  # "which have been discontinued"
        if piece.text.lower() in NAMED and self.ahead(Cue.VALUE, skip=()) is not None:
            self.mode, self.subject = Mode.FILTER, None
            return
        word = self.pieces[self.i] if self.i < len(self.pieces) else None
        if piece.text.split()[-1].lower() in NAMED and word is not None and word.cue == Cue.WORD and len(word.text) < 3:
            self.i += 1
            value = Piece(Cue.VALUE, word.start, word.end, word.text)
            self._add(Filter(piece, Operator.EQ, value))  # "the section named h"
            return
        said = self.last_column
        if lemma(piece.text) == "name" and said is not None and self._of_it(said):
            self.mode, self.subject = Mode.FILTER, said  # "a state whose name contains"
            before = [p for p in self.pieces if p.end <= said.start and p.text not in ("the", "a", "an")]
            if before and before[-1].cue == Cue.PREPOSITION and before[-1].text in ("in", "at", "from"):
                self.draft.select = [item for item in self.draft.select if item.piece is not said]
            return
        if piece.tables and self.draft.select and self.behind(Cue.PREPOSITION) and self._described():
            self.draft.mentions.append(piece)  # "by the maker with the full name"
            return
        if self._rows_of(piece):
            self._table(replace(piece, cue=Cue.TABLE))
            return
        if self._hints(piece):
            self.subject = piece if self.ahead(Cue.VALUE, skip=(Cue.WORD, Cue.PREPOSITION)) else self.subject
            return
        if self._names_only(piece):
            return
        if lemma(piece.text) == "number" and self._counts() and self.mode == Mode.SELECT and not piece.tables:
            return  # "give the region's name and the number", where rows are counted
        done = next((f.subject for f in self.draft.filters if f.operator is Operator.NOT_NULL), None)
        if done is not None and lemma(piece.text) in ("date", "day", "time") and self.mode == Mode.SELECT:
            piece = done  # "which were closed, and when? Name and date"
        if self._kind_of_one(piece):
            return
        self.last_column = piece
        if self.each and not self._aggregates_said() and not self.draft.select:
            self.each, self.mode = False, Mode.SELECT
        if self.each:
            self.draft.groups.append(Item(piece))
            self.each = False
            self.after_of = False
            return
        either = self.ahead(Cue.OR, skip=()) is not None
        if self._lacking(piece) and not either:
            self._absent(piece)
        elif self._none_of(piece):
            self._add(Filter(piece, Operator.IS_NULL, None))
        elif self.mode == Mode.ORDER and piece.text.lower() in ("number", "count") and self._counts():
            self.draft.orders.append(Item(None, Aggregate.COUNT))
        elif self.mode == Mode.ORDER:
            aggregate = self.aggregates.pop() if self.aggregates else None
            self.draft.orders.append(Item(piece, aggregate))
        elif self.mode == Mode.FILTER or self._is_subject(piece) or self._predicate():
            self.subject = piece
            if self.behind(Cue.AND, Cue.COMMA):
                self.trailing.append(piece)
            if self.like is not None and self.ahead(Cue.VALUE, skip=()) is not None:
                self.like = None
            if self.mode == Mode.FILTER and self.aggregates:
                if self.ahead(Cue.COMPARE, skip=(Cue.WORD, Cue.PREPOSITION)) is not None and self.draft.select:
                    self.compared = Item(piece, self.aggregates.pop())
                    return
                self._select(piece)
        else:
            self._named_beside()
            self._select(piece)
        self.after_of = False

    def _kind_of_one(self, piece: Piece) -> bool:
        """Whether a word only says of what an aggregate is: "what do we charge on average for a move to Leeds"."""
        before = [p.text for p in self.pieces[: self.i - 1]][-2:]
        following = [p.cue for p in self.pieces[self.i : self.i + 2]]
        if following != [Cue.PREPOSITION, Cue.VALUE]:
            return False  # "the average salary for a job"
        made = bool(self.draft.select) and self.draft.select[-1].aggregate not in (None, Aggregate.COUNT)
        partial = not any(link.whole for link in piece.links)
        return self.mode == Mode.SELECT and made and partial and before[:1] == ["for"] and before[1:] in (["a"], ["an"])

    def _asked_of_a_doer(self, piece: Piece) -> bool:
        """Whether a verb only says what somebody did of what is counted: "how many deliveries did Ann drive"."""
        verb = " " not in piece.text and not any(link.whole for link in piece.links) and self.behind(Cue.VALUE)
        done = any(p.cue == Cue.WORD and p.text == "do" for p in self.pieces[: self.i - 1])
        return verb and done and self._counts()

    def _rows_of(self, piece: Piece) -> bool:
        """Whether a name of a column means rows of its table: "the names and ids of all makers"."""
        several = lemma(piece.text.split()[-1]) != piece.text.split()[-1].lower()
        owned = {link.table for link in piece.columns[:1]} & set(piece.tables[:1])
        asked = [item for item in self.draft.select if item.piece is not None and item.piece.cue == Cue.COLUMN]
        return bool(self.mode == Mode.SELECT and self.after_of and self.behind(Cue.PREPOSITION) and several and owned
                    and asked and not self._aggregates_said())  # fmt: skip

    def _named_beside(self) -> None:
        """ "The cheapest plant and its price": the plant is wanted too."""
        before = self.pieces[: self.i - 1][-3:]
        chosen = self.draft.select
        owned = bool(before) and before[-1].text in OWNERS and any(p.cue == Cue.AND for p in before)
        if owned and not chosen and self.draft.orders and self.draft.mentions:
            chosen.append(Item(self.draft.mentions[-1]))  # "the three largest enclosures and their areas"
        elif owned and len(chosen) == 1 and chosen[0].piece is not None and chosen[0].piece.cue == Cue.TABLE:
            chosen[0].provisional = False

    def _names_only(self, piece: Piece) -> bool:
        """Whether "name" asks for no column of its own: "the names of the towns", where a town is a column."""
        following = [p for p in self.pieces[self.i : self.i + 4] if p.cue != Cue.WORD][:2]
        if lemma(piece.text) != "name" or [p.cue for p in following] != [Cue.PREPOSITION, Cue.COLUMN]:
            return False
        whole = any(link.whole and link.column is not None for link in following[1].links)
        return following[0].text == "of" and whole and not following[1].tables

    def _of_it(self, column: Piece) -> bool:
        """Whether "whose" stands between a column and the piece that is read."""
        between = [p for p in self.pieces[: self.i - 1] if p.start >= column.end]
        return [p.text for p in between] == ["whose"]

    def _described(self) -> bool:
        """Whether "with" or "whose" and a column follow at once."""
        following = self.pieces[self.i : self.i + 2]
        return [p.cue for p in following] == [Cue.RELATIVE, Cue.COLUMN] and following[0].text in ("with", "whose")

    def _hints(self, piece: Piece) -> bool:
        """Whether a column is only hinted at by a verb after what is asked for: "trips started from the station"."""
        partial = " " not in piece.text and not any(link.whole for link in piece.links)
        verb = partial and piece.text.endswith("ed")
        if partial and self.behind(Cue.TABLE) and self.ahead(Cue.SUPERLATIVE, skip=(Cue.WORD,)) is not None:
            return verb or IRREGULAR.get(piece.text, piece.text) != piece.text  # "which shop sold the most books"
        return (
            verb
            and self.behind(Cue.TABLE, Cue.VALUE, Cue.RELATIVE, Cue.AND)
            and self.ahead(Cue.PREPOSITION) is not None
        )

    def _counts(self) -> bool:
        """Whether a count is selected."""
        return any(item.aggregate is Aggregate.COUNT for item in self.draft.select)

    def _asked_anew(self) -> bool:
        """Whether "what", "which" or "and who" stands before a table, after something else was asked for."""
        before = self.pieces[self.i - 2] if self.i >= 2 else None
        if before is not None and before.cue == Cue.ASK and before.payload is None:
            return True
        said = [p for p in self.pieces[: self.i - 1] if p.cue != Cue.WORD][-2:]
        return [p.cue for p in said] == [Cue.AND, Cue.ASK] and said[1].text in ("who", "what was", "what be")

    def _predicate(self) -> bool:
        """Whether a column follows another one, or a table and a verb, so that it says something about them."""
        if not self.draft.select:
            return False
        before = self.pieces[self.i - 2] if self.i >= 2 else None
        verb = before is not None and before.cue == Cue.WORD and before.text not in ("the", "a", "an", "their", "its")
        return self.behind(Cue.COLUMN) or (verb and self.behind(Cue.TABLE))

    def _is_subject(self, piece: Piece) -> bool:
        """Whether a value or a comparison follows at once, so that the column filters instead of being selected."""
        stored = self.ahead(Cue.VALUE, skip=(Cue.WORD, Cue.PREPOSITION))
        following = self.ahead(Cue.VALUE, Cue.NUMBER, Cue.COMPARE, Cue.NOT, Cue.LIKE)
        if stored is not None and (self.draft.mentions or self.draft.select):
            following = following or (stored if stored.values else None)
        if following is None or not (self.draft.select or self.draft.mentions):
            return False
        if following.cue == Cue.VALUE and following.values:
            return bool({k.column for k in following.values} & {k.column for k in piece.columns})
        if following.cue == Cue.COMPARE:
            return not isinstance(following.payload, tuple)
        return True

    def _select(self, piece: Piece) -> None:
        for aggregate in self.aggregates or (None,):
            self.draft.select.append(Item(piece, aggregate, distinct=self.distinct))
        self.aggregates = []
        if self.distinct:
            self.draft.distinct, self.distinct = True, False

    def _finish(self) -> None:
        draft = self.draft
        self._leave_undone()
        compared = [part.item for part in draft.having if part.item is not None]
        if self.aggregates and compared and not any(item.aggregate for item in draft.select):
            draft.select.append(Item(compared[0].piece, self.aggregates.pop()))  # "show the topic and the average"
        if self.measured is not None and self.aggregates and not any(item.aggregate for item in draft.select):
            chosen = [item for item in draft.select if not item.provisional]
            draft.select = [*chosen, Item(self.measured, self.aggregates[-1])]
        used = {id(f.subject) for f in draft.filters} | {id(item.piece) for item in draft.orders}
        draft.select += [Item(piece) for piece in self.trailing if id(piece) not in used]
        if draft.groups and not any(item.aggregate for item in draft.select):
            for item in draft.select:
                if item.piece is not None and item.piece.payload is Aggregate.SUM:
                    item.aggregate = Aggregate.SUM  # "takings for each month"
                    continue
                said = (
                    item.piece.text.lower().split() if item.piece is not None and item.piece.cue == Cue.COLUMN else ()
                )
                item.aggregate = next((a for word, a in AGGREGATES if word in said), None)
        if any(item.aggregate for item in draft.select) and not draft.groups:
            draft.select = [item for item in draft.select if not self._qualifies(item)]
        if sum(not item.provisional for item in draft.select) > 1:
            draft.select = [item for item in draft.select if not self._only_opens(item)]
        self._entity_of_a_measure()
        chosen = [item for item in draft.select if not item.provisional]
        if chosen:
            draft.select = chosen
        else:
            draft.select = draft.select[:1]
        if not draft.select and draft.mentions:
            draft.select = [Item(draft.mentions[0], provisional=True)]
        alone = all(item.aggregate is None or item is self.extreme for item in draft.select)
        if self.extreme is not None and not draft.groups and len(draft.select) > 1 and alone:
            self.extreme.aggregate = None
            draft.orders.append(Item(self.extreme.piece))
            draft.limit = 1
        if self.compare is not None and self.last_column is not None and self.aggregates:
            draft.filters.append(Filter(self.last_column, self.compare, None, average=self.aggregates[-1]))

    def _leave_undone(self) -> None:
        """What a negation is said of that nothing took, up to here: "have never been used"."""
        draft = self.draft
        if self.negated and not draft.absent and not any(f.negated for f in draft.filters):
            place = max(i for i, p in enumerate(self.pieces[: self.i]) if p.cue == Cue.NOT)
            said = (p for p in self.pieces[place + 1 : self.i] if p.cue in (Cue.WORD, Cue.COLUMN, Cue.TABLE))
            draft.never, self.negated = tuple(said), False

    def _only_opens(self, item: Item) -> bool:
        """Whether "when" or "where" asks for what is named later: "when was the date of"; not "when, and by whom"."""
        if item.grade is None or not item.grade.any_type or item.near is None:
            return False
        later = [p.cue for p in self.pieces if p.start > item.near.start]
        own = later[: later.index(Cue.ASK)] if Cue.ASK in later else later
        before = [p.cue for p in self.pieces if p.end <= item.near.start]
        beside = before[-1:] == [Cue.AND] or own[-1:] == [Cue.AND]
        return Cue.COLUMN in own or not beside

    def _qualifies(self, item: Item) -> bool:
        """Whether a word only says what is measured, and names a column in part: "the total weight of honey"."""
        piece = item.piece
        if piece is None or item.aggregate is not None or piece.cue != Cue.COLUMN or any(k.whole for k in piece.links):
            return False
        place = next((i for i, other in enumerate(self.pieces) if other is piece), 0)
        before = [p for p in self.pieces[:place] if p.cue != Cue.WORD][-2:]
        return [p.cue for p in before] == [Cue.COLUMN, Cue.PREPOSITION] and before[1].text == "of"
