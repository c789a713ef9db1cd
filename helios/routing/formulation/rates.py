"""What something costs or earns for each hour, day or night: "charge per hour", "cost more per night".

Works on pieces, before they are read: the verb becomes a mention of the column that holds the rate.
"""

from collections.abc import Sequence
from dataclasses import replace

from helios.routing.formulation.cues import Cue
from helios.routing.formulation.linking import Link
from helios.routing.formulation.pieces import Piece
from helios.routing.formulation.schema import ColumnView, SchemaView
from helios.routing.formulation.words import lemma

RATES = {
    "hour": ("hourly", "hour"), "day": ("daily", "day"), "night": ("nightly", "night"), "week": ("weekly", "week"),
    "month": ("monthly", "month"), "year": ("yearly", "annual", "year"),
}  # fmt: skip
"""How names of columns say what a time is paid for."""
VERBS = frozenset(("earn", "charge", "cost", "pay"))
"""Verbs that speak of money by themselves."""
PAID = frozenset(("rate", "wage", "pay", "price", "cost", "fee", "salary", "charge", "rent"))
"""What names of columns say of money for a time."""
FOR_EACH = ("per", "a", "an", "each", "every")
NEAR = 5
"""Pieces between a verb and the time, at most."""
WORTH = 0.95
"""What such a mention is worth: more than a verb of money by itself."""


def with_rates(pieces: Sequence[Piece], schema: SchemaView) -> list[Piece]:
    """The pieces with verbs of money and the time that it is for as mentions of a rate."""
    if any(piece.cue == Cue.COUNT for piece in pieces):
        return list(pieces)  # "how many visits a month"
    for place, piece in enumerate(pieces):
        if piece.cue not in (Cue.WORD, Cue.COLUMN) or lemma(piece.text) not in VERBS:
            continue
        for at in range(place + 1, min(len(pieces) - 1, place + NEAR)):
            time = lemma(pieces[at + 1].text)
            if pieces[at].text not in FOR_EACH or time not in RATES:
                continue
            columns = [c for table in schema.tables.values() for c in table.amounts if _is_rate(c, RATES[time])]
            if not columns:
                return list(pieces)
            spoken = {table for p in pieces for table in p.tables[:1]}
            own = [c for c in columns if c.ref.table in spoken] or columns
            links = tuple(Link(piece.start, piece.end, WORTH, c.ref.table, c.ref, whole=False) for c in own)
            mention = replace(piece, cue=Cue.COLUMN, links=links)
            return [*pieces[:place], mention, *pieces[place + 1 : at], *pieces[at + 2 :]]
    return list(pieces)


def _is_rate(column: ColumnView, times: Sequence[str]) -> bool:
    words = set(column.words)
    return bool(words & set(times)) and (times[0] in words or bool(words & PAID))
