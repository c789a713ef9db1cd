"""What a question measures without naming a column: kilos and miles, money that is spent or taken, how many of a thing.

Works on pieces, before they are read: a unit becomes a mention of the columns that are measured in it, "spent the
most" one of the amounts that are spent, and "how many lamps" one of the quantities that rows of lamps have.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from helios.routing.formulation.cues import Cue
from helios.routing.formulation.linking import Link
from helios.routing.formulation.pieces import Piece, text_before
from helios.routing.formulation.plan import Aggregate, ColumnRef, Computed
from helios.routing.formulation.schema import JOINED, MANY, UNIT_SHORT, SchemaView, units_of
from helios.routing.formulation.superlatives import MANY as MOST
from helios.routing.formulation.takings import IN, OUT, PAID, likeliest_amount
from helios.routing.formulation.words import FUNCTION_WORDS, lemma, stem

A_UNIT = ("per", "a", "an", "each")
"""Words before a unit that something costs: a price per kilo."""
MONEY_VERBS = ("take", "bring", "spend", "earn", "raise", "pay", "make", "taking", "earned", "raised")
"""Verbs of money, as lemmas."""
TAKINGS = ("takings", "taking", "turnover", "revenue", "proceeds")
"""What people call all that was taken."""
SPENDING = ("spending", "spend", "taking", "takings", "earnings", "outgoings", "expenditure", "money", "income")
"""What people call money that was spent or taken, where a total of it is asked for."""
IN_STOCK = frozenset(("do", "we", "have", "be", "there", "left", "in", "stock", "on", "hand", "still", "now", "got"))
"""All that is said of how many of a thing there are."""
MOVES = ("sell", "use", "order", "buy", "deliver", "ship", "supply", "fit", "need")
"""Verbs that say that some of a thing went somewhere."""
ALTOGETHER = ("in total", "altogether", "overall")
BETWEEN = ("in", "us", "out", "me", "for", "with")
"""Words between a verb of money and how much it was."""
VERB = 5
"""Letters that a noun shares with the verb that it comes from, at least."""
UNIT, MONEY, QUANTITY = 0.75, 0.8, 0.8
"""What a mention by a unit, by what is done with money, or by a thing that is counted is worth."""


def measured(pieces: Sequence[Piece], schema: SchemaView) -> list[Piece]:
    """The pieces with measures that no column is named for as mentions of the columns that hold them."""
    found = [piece if text_before(pieces, piece) in A_UNIT else _unit(piece, schema) for piece in pieces]
    if [piece.text.lower() for piece in found[:2]] == ["how", "much"]:
        found = [_of_money(piece) for piece in found]
    found = _by_kind(_how_many_of(_money(_taken_in(found, schema), schema), schema), schema)
    return _takings(found, schema)


def _of_money(piece: Piece) -> Piece:
    """A verb of money as a word, where it names people by what they do too: "how much have we taken", of taken_by."""
    verb = piece.cue == Cue.TABLE and lemma(piece.text) in MONEY_VERBS
    return replace(piece, cue=Cue.WORD, text=lemma(piece.text), links=()) if verb else piece


def _unit(piece: Piece, schema: SchemaView) -> Piece:
    """A word that is a unit of measurement as a mention of the amounts that are measured in it."""
    if piece.cue != Cue.WORD or not (piece.text in UNIT_SHORT or piece.text in JOINED):
        return piece
    columns = units_of(
        piece.text, (c for table in schema.tables.values() for c in table.amounts if "per" not in c.words)
    )
    return _mention(piece, [c.ref for c in columns], UNIT) if columns else piece


def _mention(piece: Piece, columns: Sequence[ColumnRef], score: float) -> Piece:
    """A mention of columns whose sum is meant wherever there are several rows."""
    links = tuple(Link(piece.start, piece.end, score, column.table, column, whole=False) for column in columns)
    return replace(piece, cue=Cue.COLUMN, payload=Aggregate.SUM, links=links)


def _taken_in(pieces: list[Piece], schema: SchemaView) -> list[Piece]:
    """ "How much did we take in day fees": the amount that is named, not all that was taken."""
    for place, piece in enumerate(pieces):
        made = piece.cue == Cue.COLUMN and any(isinstance(link.column, Computed) for link in piece.links)
        rest = [n for n in range(place + 1, len(pieces)) if pieces[n].text not in ("of", "we", "in", "you", "they")]
        named = pieces[rest[0]] if rest else None
        taken = rest and {"we", "in", "you", "they"} & {p.text for p in pieces[place + 1 : rest[0]]}
        if not made or not taken or named is None or named.cue != Cue.COLUMN:
            continue
        if any(link.whole and link.column and schema.column(link.column).amount for link in named.columns):
            return [*pieces[:place], replace(named, payload=Aggregate.SUM), *pieces[rest[0] + 1 :]]
    return pieces


def _by_kind(pieces: list[Piece], schema: SchemaView) -> list[Piece]:
    """ "Shop takings by payment method": an amount that a question begins with, by what is no amount."""
    at = next((n for n, p in enumerate(pieces) if p.cue not in (Cue.ASK, Cue.WORD)), None)
    if at is None or [p.cue for p in pieces[at : at + 3]] != [Cue.COLUMN, Cue.PREPOSITION, Cue.COLUMN]:
        return pieces
    amount, by, kind = pieces[at : at + 3]
    said, other = (piece.columns[0].column for piece in (amount, kind))
    if (
        by.text != "by"
        or said is None
        or other is None
        or not schema.column(said).amount
        or schema.column(other).amount
    ):
        return pieces
    summed = replace(amount, payload=Aggregate.SUM)
    return [*pieces[:at], summed, replace(by, cue=Cue.EACH, text="per"), *pieces[at + 2 :]]


def _takings(pieces: list[Piece], schema: SchemaView) -> list[Piece]:
    """ "Taproom takings for 3 May": all that was taken, where a table has what was taken at once."""
    for place, piece in enumerate(pieces):
        if piece.cue != Cue.COLUMN or piece.text.lower().split()[-1] not in TAKINGS or not piece.columns:
            continue
        column, before = piece.columns[0].column, pieces[place - 1].cue if place else Cue.END
        made = [c.ref for c in schema.tables[piece.columns[0].table].computed] if column is not None else []
        if column in made and before not in (Cue.AGGREGATE, Cue.COMPARE, Cue.SUPERLATIVE):
            total = Piece(Cue.AGGREGATE, piece.start, piece.start, "total", Aggregate.SUM)
            return [*pieces[:place], total, *pieces[place:]]
    return pieces


def _money(pieces: list[Piece], schema: SchemaView) -> list[Piece]:
    """ "Spent the most", "brought in more than £500 in all", "total spending": the amount that is spent or taken."""
    said = {stem(lemma(word)) for piece in pieces for word in piece.text.lower().split()}
    if not said & (OUT | IN | PAID):
        return pieces
    tables = [table for piece in pieces for table in piece.tables[:1]]
    likely = likeliest_amount(schema, said, {link.table for piece in pieces for link in piece.values[:1]}, tables)
    for place, piece in enumerate(pieces):
        before, rest = pieces[:place], pieces[place + 1 :]
        after = [p for p in rest if p.text not in BETWEEN][:3]
        said_most = after[:1] and after[0].cue == Cue.SUPERLATIVE and after[0].text.split()[-1] in MOST
        if _spends(piece) and said_most and likely is not None and (found := _most(piece, after, rest, likely)):
            return [*before, *found]
        if _spends(piece) and [p.cue for p in after[:2]] == [Cue.COMPARE, Cue.NUMBER]:
            found = _more_than(piece, after[1], rest, likely, tables, schema)
            if found:
                return [*before, *found]
        opens = not before or before[-1].cue in (Cue.AGGREGATE, Cue.ASK)
        if piece.cue == Cue.WORD and piece.text in SPENDING and opens and likely is not None:
            return [*before, _mention(piece, [likely], MONEY), *rest]
    return pieces


def _most(piece: Piece, after: Sequence[Piece], rest: Sequence[Piece], amount: ColumnRef) -> list[Piece]:
    """ "(spent) the most (money) on fuel, and how much": nothing where something else is most."""
    gone = [p for p in after[1:2] if p.text == "money"]
    at = rest.index(after[0]) + 1
    ends = next((p.cue for p in rest[at:] if p.cue != Cue.WORD and p not in gone), Cue.END)
    if ends in (Cue.COLUMN, Cue.TABLE):
        return []
    mention = _mention(replace(piece, start=after[0].end, end=after[0].end), [amount], MONEY)
    return [*rest[:at], mention, *_told([p for p in rest[at:] if p not in gone], mention)]


def _more_than(
    piece: Piece, number: Piece, rest: Sequence[Piece], likely: ColumnRef | None, tables: Sequence[str],
    schema: SchemaView,
) -> list[Piece]:  # fmt: skip
    """ "(brought in) more than £500 in fares", "(spent) over £90 in all": the sum of an amount is compared."""
    at = rest.index(number) + 1
    total = any(p.text in ALTOGETHER for p in rest[at:])
    named = _named_amount(rest[at : at + 3], schema)
    taken = next((n for n in range(at, at + 3) if n < len(rest) and rest[n].cue == Cue.COLUMN), at) + 1 - at
    column = named or likely
    if column is None or not (total or _of_many(column, tables, schema)):
        return []
    mention = _mention(replace(piece, start=number.end, end=number.end), [column], MONEY)
    summed = Piece(Cue.AGGREGATE, mention.end, mention.end, ALTOGETHER[0], Aggregate.SUM)
    later = [p for p in rest[at + (taken if named else 0) :] if p.text not in ALTOGETHER]
    return [*rest[:at], mention, summed, *_told(later, mention)]


def _named_amount(following: Sequence[Piece], schema: SchemaView) -> ColumnRef | None:
    """The amount that "in fares" names."""
    named = [p for p in following[1:] if p.cue != Cue.TABLE][:1]
    if following[:1] and following[0].text == "in" and named and named[0].cue == Cue.COLUMN:
        amounts = [link.column for link in named[0].columns if link.column and schema.column(link.column).amount]
        whole = any(link.whole for link in named[0].columns)
        return amounts[0] if amounts and (whole or len(amounts) == 1) else None
    return None


def _of_many(column: ColumnRef, tables: Sequence[str], schema: SchemaView) -> bool:
    """Whether several rows of an amount belong to each of the things that are asked for."""
    if not tables or tables[0] == column.table:
        return False
    path = schema.path(tables[:1], column.table)
    return bool(path) and any((join.right, join.left) in schema.refers for join in path or ())


def _spends(piece: Piece) -> bool:
    """Whether a word says that money is spent or taken, and names no column in full."""
    own = [link for link in piece.links if not isinstance(link.column, Computed)]
    named = piece.cue in (Cue.COLUMN, Cue.TABLE) and not any(link.score > 0.9 for link in own)
    known = piece.cue == Cue.WORD or named
    return known and " " not in piece.text and stem(lemma(piece.text)) in OUT | IN | PAID


def _told(rest: list[Piece], mention: Piece) -> list[Piece]:
    """ "... and how much it spent", ", and what did each cost", "name and amount": it is asked for as well."""
    for place, piece in enumerate(rest):
        listed = place > 0 and rest[place - 1].cue in (Cue.AND, Cue.COMMA) and piece.text in ("amount", "total", "sum")
        if listed and piece.cue in (Cue.COLUMN, Cue.AGGREGATE, Cue.WORD):
            again = replace(mention, start=piece.start, end=piece.end)
            return [*rest[:place], again, *rest[place + 1 :]]
        tail = [p.text for p in rest[place + 1 :] if p.cue not in (Cue.END, Cue.COMMA)]
        asks = tail[:2] == ["how", "much"] or (tail[:1] == ["what"] and "each" in tail)
        if piece.cue in (Cue.AND, Cue.COMMA) and asks and len(tail) <= 6:
            again = replace(mention, start=piece.end, end=piece.end)
            return [*rest[:place], replace(piece, cue=Cue.AND, text="and"), again]
    return rest


def _how_many_of(pieces: list[Piece], schema: SchemaView) -> list[Piece]:
    """ "How many lamps did we sell", "how many boxes of nails were used": the sum of a quantity beside them."""
    for place, piece in enumerate(pieces):
        if piece.cue != Cue.COUNT or piece.text != "how many":
            continue
        following = pieces[place + 1 : place + 4]
        boxed = [p.cue for p in following[1:3]] == [Cue.PREPOSITION, Cue.VALUE] and following[1].text == "of"
        unit = following[0] if boxed else None  # "boxes of nails"
        thing = following[2] if boxed else next(iter(following), None)
        if thing is None or thing.cue != Cue.VALUE or not _is_done(pieces, thing):
            continue
        later = pieces[pieces.index(thing) + 1 :]
        if unit is None and (held := _held(thing, later, schema)) is not None:
            mention = _mention(replace(thing, start=piece.end, end=piece.end), [held], QUANTITY)
            return [*pieces[: place + 1], mention, thing, *(p for p in later if p.cue == Cue.END)]
        column = _quantity(thing, pieces, schema)
        if column is None or (unit is not None and not _measures(unit, column)):
            continue
        if not _happens(later, column, schema):
            continue
        mention = _mention(replace(thing, start=piece.end, end=piece.end), [column], QUANTITY)
        return [*pieces[: place + 1], mention, thing, *_without_verb(pieces[pieces.index(thing) + 1 :])]
    return pieces


def _is_done(pieces: Sequence[Piece], thing: Piece) -> bool:
    """Whether what follows a thing says what was done with it."""
    return next((p.text for p in pieces if p.start >= thing.end), "") in ("do", "did", "have", "has", "be")


def _held(thing: Piece, later: Sequence[Piece], schema: SchemaView) -> ColumnRef | None:
    """ "How many lamps do we have", "are in stock", "are left": how many of a thing its own row says there are."""
    words = {word for p in later if p.cue not in (Cue.END, Cue.COMMA) for word in p.text.lower().split()}
    tables = {link.table for link in thing.values}
    if len(tables) != 1 or not words <= IN_STOCK:
        return None
    held = [
        column for column in schema.tables[tables.pop()].amounts if set(column.words) & {"stock", "quantity", "hand"}
    ]
    return held[0].ref if len(held) == 1 else None


def _happens(later: Sequence[Piece], column: ColumnRef, schema: SchemaView) -> bool:
    """Whether it is said what rows of quantities are made by: sold, used, or what their table is called by."""
    clause = list(takewhile(lambda p: p.cue not in (Cue.PREPOSITION, Cue.END, Cue.COMMA), later))
    verbs = [lemma(word) for p in clause for word in p.text.lower().split() if word not in FUNCTION_WORDS]
    table = schema.tables[column.table]
    own = {*table.words, *schema.column(column).words, *(w for c in table.columns if c.temporal for w in c.words)}
    near = {word for j in schema.joins.get(column.table, ()) for word in schema.tables[j.right.table].words}
    return any(verb in MOVES or any(_alike(word, verb) for word in own | near) for verb in verbs)


def _measures(unit: Piece, column: ColumnRef) -> bool:
    """Whether "boxes" only says in what things are counted."""
    return unit.cue in (Cue.WORD, Cue.VALUE) or (unit.cue == Cue.TABLE and column.table in unit.tables)


def _without_verb(rest: list[Piece]) -> list[Piece]:
    """What follows a thing, without the verb at its end that resembles a column: "did we sell in May"."""
    for place, piece in enumerate(rest):
        if piece.cue != Cue.WORD:
            ends = rest[place + 1].cue in (Cue.PREPOSITION, Cue.END) if rest[place + 1 :] else True
            verb = place > 0 and piece.cue in (Cue.COLUMN, Cue.TABLE) and " " not in piece.text and ends
            return [*rest[:place], *rest[place + 1 :]] if verb else rest
    return rest


def _quantity(thing: Piece, pieces: Sequence[Piece], schema: SchemaView) -> ColumnRef | None:
    """How many of a thing the rows say that refer to it: the only such column, or that of what is spoken of."""
    owner = next((schema.tables[link.table] for link in thing.values), None)
    if owner is None or owner.naming is None or all(link.column != owner.naming.ref for link in thing.values):
        return None
    spoken = [piece for piece in pieces if piece is not thing and piece.cue in (Cue.WORD, Cue.COLUMN, Cue.TABLE)]
    said = {lemma(word) for piece in spoken for word in piece.text.lower().split()}
    marks: dict[ColumnRef, int] = {}
    for join in schema.joins.get(owner.name, ()):
        if (join.right, join.left) not in schema.refers:
            continue
        table = schema.tables[join.right.table]
        many = [column for column in table.amounts if set(column.words) & set(MANY)]
        told = [column for column in many if any(_alike(word, other) for word in column.words for other in said)]
        if len(told or many) == 1:
            own = {*table.words, *(word for column in table.columns if column.temporal for word in column.words)}
            marks[(told or many)[0].ref] = sum(_alike(word, other) for word in own for other in said) + bool(told)
    best = sorted(marks, key=lambda column: -marks[column])[:2]
    return None if not best or (len(best) > 1 and marks[best[0]] == marks[best[1]]) else best[0]


def _alike(word: str, other: str) -> bool:
    """Whether a word of a name says what a verb does: delivery and deliver, sold and sell."""
    if stem(word) == stem(other):
        return True
    shared = next((i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other)))
    return shared >= VERB and shared >= min(len(word), len(other)) - 1
