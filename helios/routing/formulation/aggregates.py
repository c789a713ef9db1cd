"""Reading words that add up: "total", "on average" and "in all", before or behind what they add up."""

from abc import ABC

from helios.routing.formulation.conditions import Mode
from helios.routing.formulation.cues import Cue, Grade
from helios.routing.formulation.draft import Counted, Item
from helios.routing.formulation.pieces import Piece
from helios.routing.formulation.plan import Aggregate, Operator
from helios.routing.formulation.superlatives import SuperlativeReader


class AggregateReader(SuperlativeReader, ABC):
    """The part of the reader that knows aggregates."""

    def _aggregate(self, piece: Piece) -> None:
        assert isinstance(piece.payload, Aggregate)
        selected = self.draft.select[-1] if self.draft.select else None
        if (
            piece.text in ("in total", "overall", "altogether")
            and selected is not None
            and selected.aggregate == "count"
        ):
            selected.total = True
            return
        if piece.text in ("in total", "overall", "altogether") and (self._more_in_all() or self._summed()):
            return
        if piece.text.startswith("on ") and selected is not None and self.ahead(Cue.COLUMN) is None:
            if selected.aggregate is None and selected.piece is not None:
                selected.aggregate = piece.payload
        elif selected is not None and self._said_before(piece):
            selected.aggregate = piece.payload
        elif self.compare is not None or self.grade is not None:
            self._compared_with(piece.payload)
        elif self.mode == Mode.FILTER and piece.payload in (Aggregate.MAX, Aggregate.MIN):
            self._superlative(
                Piece(Cue.SUPERLATIVE, piece.start, piece.end, piece.text, Grade(piece.payload is Aggregate.MAX))
            )
        else:
            self.aggregates.append(piece.payload)

    def _said_before(self, piece: Piece) -> bool:
        """Whether an amount stands before what is made of it: "the VAT total on invoices", "sales average in May"."""
        last = self.draft.select[-1] if self.draft.select else None
        if self.mode != Mode.SELECT or last is None or last.piece is None or last.aggregate is not None:
            return False
        after = self.ahead(Cue.PREPOSITION, Cue.EACH, Cue.END, skip=())
        plain = after is not None and after.text != "by"
        return last.piece.cue == Cue.COLUMN and last.piece.end == piece.start and plain

    def _more_in_all(self) -> bool:
        """ "More than 8 hectares in total": the sum of an amount is compared, not the amount of each row."""
        last = self.last_filter
        if last is None or self.draft.filters[-1:] != [last] or last.subject is None or last.subject.cue != Cue.COLUMN:
            return False
        compared = last.operator in (Operator.GT, Operator.GE, Operator.LT, Operator.LE)
        if not compared or last.value is None or last.value.number is None or last.second is not None:
            return False
        self.draft.filters.pop()
        self.last_filter = self.draft.filters[-1] if self.draft.filters else None
        item = Item(last.subject, Aggregate.SUM)
        self.draft.having.append(Counted(last.operator, last.value.number, None, item))
        return True

    def _summed(self) -> bool:
        """Whether "in total" sums what stands before it: the amount that is ordered by or asked for."""
        items = self.draft.orders[-1:] or (self.draft.select[-1:] if self.mode == Mode.SELECT else [])
        for item in items[:1]:
            if item.aggregate is None and item.piece is not None and item.piece.cue == Cue.COLUMN:
                if item.many and item.piece.payload is not Aggregate.SUM:
                    continue  # "the most books in total"
                item.aggregate = Aggregate.SUM
                return True
        return False
