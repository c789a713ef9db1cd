"""Two columns of a row taken together: cash plus card, price less cost, the days between booking and visit.

Works on pieces, before they are read: what is said of the two becomes one mention of what they make.
"""

from collections.abc import Sequence
from dataclasses import replace

from helios.routing.formulation.cues import Cue
from helios.routing.formulation.dates import written
from helios.routing.formulation.linking import Link
from helios.routing.formulation.pieces import Piece
from helios.routing.formulation.plan import Aggregate, Computed, Sign
from helios.routing.formulation.schema import PRICES, ColumnView, SchemaView
from helios.routing.formulation.superlatives import MANY
from helios.routing.formulation.words import FUNCTION_WORDS, lemma, similarity

SIGNS = {
    "plus": Sign.PLUS, "less": Sign.MINUS, "minus": Sign.MINUS, "times": Sign.TIMES, "time": Sign.TIMES,
    "multiplied by": Sign.TIMES,
}  # fmt: skip
"""What people say between two numbers."""
TOGETHER = ("together", "combined", "added", "summed")
"""What people say behind two numbers that are added."""
LIMITS = ("reorder", "minimum", "maximum", "target", "limit", "threshold")
"""What names of columns say of how much there is to be."""
HOLDINGS = ("stock", "quantity", "hand", "level", "balance")
"""What names of columns say of how much there is."""
ALIKE = 0.6
"""How much a word must say of a date's name."""
WORTH = 0.9
"""What a mention of two columns is worth."""


def computed(pieces: Sequence[Piece], schema: SchemaView) -> list[Piece]:
    """The pieces with two columns that are added, taken from one another or multiplied as one mention."""
    return _stock_worth(_against_limits(_days(_signed(list(pieces), schema), schema), schema), schema)


def _signed(pieces: list[Piece], schema: SchemaView) -> list[Piece]:
    for place, piece in enumerate(pieces):
        between = [p for p in pieces[place + 1 : place + 4] if p.text not in ("the", "its", "their")][:2]
        if piece.cue != Cue.COLUMN or len(between) < 2 or between[1].cue != Cue.COLUMN:
            continue
        first, second = between
        end = pieces.index(second) + 1
        said = {p.text for p in pieces[end : end + 2]} & set(TOGETHER)
        sign = SIGNS.get(first.text) or (Sign.PLUS if first.text == "and" and said else None)
        pair = _pair(piece, second, schema) if sign is not None else None
        if sign is None or pair is None:
            continue
        rest = [p for p in pieces[end:] if not (p.text in TOGETHER or (said and p.text == "up"))]
        mention = _mention(piece, second, *pair, sign)
        return _explained(pieces[:place], mention, rest) or [*pieces[:place], mention, *rest]
    return pieces


def _explained(before: list[Piece], mention: Piece, rest: list[Piece]) -> list[Piece] | None:
    """ "The total takings, cash and card together": what stands between commas says what is added up before."""
    if not before or before[-1].cue != Cue.COMMA or (rest and rest[0].cue not in (Cue.COMMA, Cue.END, Cue.AND)):
        return None
    summed = replace(mention, payload=Aggregate.SUM)
    rest = rest[1:] if rest[:1] and rest[0].cue == Cue.COMMA and rest[1:2] and rest[1].cue != Cue.AND else rest
    for place in range(len(before) - 2, -1, -1):
        piece = before[place]
        if piece.cue == Cue.COLUMN and not any(link.score > WORTH for link in piece.links):
            return [*before[:place], replace(summed, start=piece.start, end=piece.end), *before[place + 1 : -1], *rest]
        if piece.cue == Cue.SUPERLATIVE and piece.text.split()[-1] in MANY:
            at = replace(summed, start=piece.end, end=piece.end)
            later = [p for p in before[place + 1 : -1] if p.text != "money"]
            return [*before[: place + 1], at, *later, *rest]
    return None


def _pair(left: Piece, right: Piece, schema: SchemaView) -> tuple[ColumnView, ColumnView] | None:
    """The best two amounts of one table that two mentions may mean."""
    named = [
        [(link.score, schema.column(link.column)) for link in piece.columns if link.column is not None]
        for piece in (left, right)
    ]
    pairs = [
        (said + also, one, other)
        for said, one in named[0] for also, other in named[1]
        if one.amount and other.amount and one.ref.table == other.ref.table and one != other
    ]  # fmt: skip
    best = max(pairs, key=lambda pair: pair[0], default=None)
    return None if best is None else best[1:]


def _mention(first: Piece, last: Piece, one: ColumnView, other: ColumnView, sign: Sign) -> Piece:
    column = Computed(one.ref.table, one.ref.column, sign, other.ref.column)
    link = Link(first.start, last.end, WORTH, column.table, column)
    text = f"{first.text} {sign} {last.text}"
    return replace(first, cue=Cue.COLUMN, end=last.end, text=text, payload=None, links=(link,))


def _days(pieces: list[Piece], schema: SchemaView) -> list[Piece]:
    """ "How many days pass between pickup and delivery", "how many days from booking to visit"."""
    place = next((n for n, p in enumerate(pieces) if p.text in ("day", "days")), None)
    if place is None:
        return pieces
    starts = next((n for n, p in enumerate(pieces) if n > place and p.text in ("between", "from")), None)
    if starts is None:
        return pieces
    joint = {"between": "and", "from": "to"}[pieces[starts].text]
    middle = next((n for n, p in enumerate(pieces) if n > starts and p.text == joint), None)
    if middle is None or middle - starts > 3:
        return pieces
    opening = _named(pieces[starts + 1 : middle])
    closing = next((p for p in pieces[middle + 1 :] if p.text not in FUNCTION_WORDS), None)
    if not opening or closing is None:
        return pieces
    dates = [column for column in schema.columns() if written(column.samples)]
    pairs = [
        (_says(opening, one) + _says(_named([closing]), other), one, other)
        for one in dates for other in dates
        if one.ref.table == other.ref.table and one != other
        and _says(opening, one) >= ALIKE and _says(_named([closing]), other) >= ALIKE
    ]  # fmt: skip
    if not pairs:
        return pieces
    _, one, other = max(pairs, key=lambda pair: pair[0])
    mention = _mention(pieces[place], closing, one, other, Sign.DAYS)
    mention = replace(mention, start=pieces[place].start, end=pieces[place].end)
    before = [replace(p, cue=Cue.ASK, text="what", payload=None) if p.cue == Cue.COUNT else p for p in pieces[:place]]
    said = [p for p in pieces[place:starts] if p.cue == Cue.AGGREGATE]
    before += [replace(p, text="average") for p in said if p.payload is Aggregate.AVG]  # "how many days on average"
    return [*before, mention, *pieces[pieces.index(closing) + 1 :]]


def _against_limits(pieces: list[Piece], schema: SchemaView) -> list[Piece]:
    """ "Below their reorder level", "under minimum stock": what is held is compared with its limit."""
    for place, piece in enumerate(pieces):
        at = next((n for n in range(place + 1, len(pieces)) if pieces[n].text not in ("the", "their", "its")), None)
        before = next((p for p in reversed(pieces[:place]) if p.cue != Cue.WORD), None)
        if piece.cue != Cue.COMPARE or at is None or pieces[at].cue != Cue.COLUMN or before is None:
            continue
        limit = next((schema.column(link.column) for link in pieces[at].columns if link.column is not None), None)
        if before.cue not in (Cue.TABLE, Cue.RELATIVE) or limit is None or not set(limit.words) & set(LIMITS):
            continue
        others = [column for column in schema.tables[limit.ref.table].amounts if not set(column.words) & set(LIMITS)]
        held = [column for column in others if set(column.words) & set(HOLDINGS)]
        if len(held) == 1:
            link = Link(piece.start, piece.start, WORTH, limit.ref.table, held[0].ref)
            whose = Piece(Cue.RELATIVE, piece.start, piece.start, "whose")
            column = Piece(Cue.COLUMN, piece.start, piece.start, held[0].words[0], links=(link,))
            return [*pieces[:place], whose, column, *pieces[place:]]
    return pieces


def _stock_worth(pieces: list[Piece], schema: SchemaView) -> list[Piece]:
    """ "What is the stock worth": what is held at its only price, or at cost where that is said."""
    place = next((n for n, p in enumerate(pieces) if p.cue == Cue.COLUMN and "stock" in p.text.lower().split()), None)
    worth = next((n for n, p in enumerate(pieces) if lemma(p.text) in ("worth", "value")), None)
    if place is None or worth is None:
        return pieces
    said = {word for p in pieces for word in p.text.lower().split()}
    for link in pieces[place].columns:
        held = schema.column(link.column) if link.column is not None else None
        if held is None or not held.amount or set(held.words) & set(LIMITS):
            continue
        prices = [c for c in schema.tables[link.table].amounts if set(c.words) & set(PRICES) and c != held]
        told = [column for column in prices if said & set(column.words)]
        price = told if len(told) == 1 else prices
        if len(price) == 1:
            mention = replace(_mention(pieces[place], pieces[place], held, price[0], Sign.TIMES), payload=Aggregate.SUM)
            summed = Piece(Cue.AGGREGATE, mention.start, mention.start, "total", Aggregate.SUM)
            rest = [p for n, p in enumerate(pieces) if n > place and n != worth]
            return [*pieces[:place], summed, mention, *rest]
    return pieces


def _named(pieces: Sequence[Piece]) -> list[str]:
    return [lemma(word) for piece in pieces for word in piece.text.lower().split() if word not in FUNCTION_WORDS]


def _says(words: Sequence[str], column: ColumnView) -> float:
    """How well words name a date: "pickup" for pu_date spelt out, "booking" for booked_on."""
    own = [word for word in column.words if word not in ("date", "day", "on", "at")]
    alike = [similarity(word, other) for word in words if word != "date" for other in own]
    return max(alike, default=0.0)
