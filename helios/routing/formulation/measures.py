"""What a question measures without naming a column: kilos and miles, money that is spent or taken, how many of a thing.

Works on pieces, before they are read: a unit becomes a mention of the columns that are measured in it, "spent the
most" one of the amounts that are spent, and "how many rotary hooks" one of the quantities that rows of hooks have.
"""

from collections.abc import Sequence
from dataclasses import replace

from helios.routing.formulation.cues import Cue
from helios.routing.formulation.linking import Link
from helios.routing.formulation.pieces import Piece, text_before
from helios.routing.formulation.plan import Aggregate, ColumnRef
from helios.routing.formulation.schema import JOINED, MANY, UNIT_SHORT, SchemaView, units_of
from helios.routing.formulation.superlatives import MANY as MOST
from helios.routing.formulation.takings import IN, OUT, PAID, likeliest_amount
from helios.routing.formulation.words import lemma, stem

A_UNIT = ("per", "a", "an", "each")
"""Words before a unit that something costs: a price per kilo."""
SPENDING = ("spending", "spend", "taking", "takings", "earnings", "outgoings", "expenditure", "money", "income")
"""What people call money that was spent or taken, where a total of it is asked for."""
ALTOGETHER = ("in total", "altogether", "overall")
VERB = 5
"""Letters that a noun shares with the verb that it comes from, at least."""
UNIT, MONEY, QUANTITY = 0.75, 0.8, 0.8
"""What a mention by a unit, by what is done with money, or by a thing that is counted is worth."""


def measured(pieces: Sequence[Piece], schema: SchemaView) -> list[Piece]:
    """The pieces with measures that no column is named for as mentions of the columns that hold them."""
    found = [piece if text_before(pieces, piece) in A_UNIT else _unit(piece, schema) for piece in pieces]
    return _how_many_of(_money(found, schema), schema)


def _unit(piece: Piece, schema: SchemaView) -> Piece:
    """A word that is a unit of measurement as a mention of the amounts that are measured in it."""
    if piece.cue != Cue.WORD or not (piece.text in UNIT_SHORT or piece.text in JOINED):
        return piece
    columns = units_of(piece.text, (c for table in schema.tables.values() for c in table.amounts if "per" not in c.words))
    return _mention(piece, [c.ref for c in columns], UNIT) if columns else piece


def _mention(piece: Piece, columns: Sequence[ColumnRef], score: float) -> Piece:
    """A mention of columns whose sum is meant wherever there are several rows."""
    links = tuple(Link(piece.start, piece.end, score, column.table, column, whole=False) for column in columns)
    return replace(piece, cue=Cue.COLUMN, payload=Aggregate.SUM, links=links)


def _money(pieces: list[Piece], schema: SchemaView) -> list[Piece]:
    """ "Spent the most", "brought in more than £500 in all", "total spending": the amount that is spent or taken."""
    said = {stem(lemma(word)) for piece in pieces for word in piece.text.lower().split()}
    if not said & (OUT | IN | PAID):
        return pieces
    tables = [table for piece in pieces for table in piece.tables[:1]]
    direct = {link.table for piece in pieces for link in piece.values[:1]}
    for place, piece in enumerate(pieces):
        after = [p for p in pieces[place + 1 :] if p.cue != Cue.WORD or p.text not in ("in", "us", "out", "me", "for")]
        after = [p for p in after if p.cue != Cue.PREPOSITION or p.text != "in"]
        if _spends(piece) and after[:1] and after[0].cue == Cue.SUPERLATIVE and after[0].text.split()[-1] in MOST:
            at, gone = pieces.index(after[0]) + 1, [p for p in after[1:2] if p.text == "money"]
            ends = next((p.cue for p in after[1 + len(gone) :] if p.cue != Cue.WORD), Cue.END)
            if ends not in (Cue.COLUMN, Cue.TABLE) and (column := likeliest_amount(schema, said, direct, tables)):
                mention = _mention(replace(piece, start=after[0].end, end=after[0].end), [column], MONEY)
                rest = [p for p in pieces[at:] if p not in gone]
                return [*pieces[:place], *pieces[place + 1 : at], mention, *_told(rest, mention)]
        if _spends(piece) and [p.cue for p in after[:2]] == [Cue.COMPARE, Cue.NUMBER]:
            at = pieces.index(after[1]) + 1
            total = any(p.text in ALTOGETHER for p in pieces[at:])
            named, gone = _named_amount(pieces[at : at + 2], schema)
            column = named or likeliest_amount(schema, said, direct, tables)
            if column is not None and (total or _of_many(column, tables, schema)):
                mention = _mention(replace(piece, start=after[1].end, end=after[1].end), [column], MONEY)
                summed = Piece(Cue.AGGREGATE, mention.end, mention.end, ALTOGETHER[0], Aggregate.SUM)
                rest = [p for p in pieces[at + gone :] if p.text not in ALTOGETHER]
                return [*pieces[:place], *pieces[place + 1 : at], mention, summed, *_told(rest, mention)]
        if piece.cue == Cue.WORD and piece.text in SPENDING and (
            place == 0 or pieces[place - 1].cue in (Cue.AGGREGATE, Cue.ASK)
        ):
            if column := likeliest_amount(schema, said, direct, tables):
                return [*pieces[:place], _mention(piece, [column], MONEY), *pieces[place + 1 :]]
    return pieces


def _named_amount(following: Sequence[Piece], schema: SchemaView) -> tuple[ColumnRef | None, int]:
    """The amount that "in fares" names, and how many pieces it takes."""
    if [p.cue for p in following] == [Cue.PREPOSITION, Cue.COLUMN] and following[0].text == "in":
        link = following[1].columns[0]
        if link.column is not None and link.score > 0.9 and schema.column(link.column).amount:
            return link.column, 2
    return None, 0


def _of_many(column: ColumnRef, tables: Sequence[str], schema: SchemaView) -> bool:
    """Whether several rows of an amount belong to each of the things that are asked for."""
    if not tables or tables[0] == column.table:
        return False
    path = schema.path(tables[:1], column.table)
    return bool(path) and any((join.right, join.left) in schema.refers for join in path or ())


def _spends(piece: Piece) -> bool:
    """Whether a word says that money is spent or taken, and names no column in full."""
    named = piece.cue in (Cue.COLUMN, Cue.TABLE) and not any(link.score > 0.9 for link in piece.links)
    known = piece.cue == Cue.WORD or named
    return known and " " not in piece.text and stem(lemma(piece.text)) in OUT | IN | PAID


def _told(rest: list[Piece], mention: Piece) -> list[Piece]:
    """ "... and how much it spent", ", and what did each cost": the amount is asked for as well."""
    for place, piece in enumerate(rest):
        tail = [p.text for p in rest[place + 1 :] if p.cue not in (Cue.END, Cue.COMMA)]
        asks = tail[:2] == ["how", "much"] or (tail[:1] == ["what"] and "each" in tail)
        if piece.cue in (Cue.AND, Cue.COMMA) and asks and len(tail) <= 6:
            again = replace(mention, start=piece.end, end=piece.end)
            return [*rest[:place], replace(piece, cue=Cue.AND, text="and"), again]
    return rest


def _how_many_of(pieces: list[Piece], schema: SchemaView) -> list[Piece]:
    """ "How many rotary hooks did we fit", "how many pots of yogurt were sold": the sum of a quantity beside them."""
    for place, piece in enumerate(pieces):
        if piece.cue != Cue.COUNT or piece.text != "how many":
            continue
        following = pieces[place + 1 : place + 4]
        if [p.cue for p in following[1:3]] == [Cue.PREPOSITION, Cue.VALUE] and following[1].text == "of":
            unit, thing = following[0], following[2]  # "pots of yogurt"
        else:
            unit, thing = None, following[0] if following else None
        done = [p.text for p in pieces[place + 1 :] if thing is not None and p.start >= thing.end][:1]
        if thing is None or thing.cue != Cue.VALUE or done not in (["do"], ["have"], ["be"], ["has"], ["did"]):
            continue
        column = _quantity(thing, pieces, schema)
        if column is None or (unit is not None and unit.cue not in (Cue.WORD, Cue.VALUE)):
            continue
        mention = _mention(replace(thing, start=piece.end, end=piece.end), [column], QUANTITY)
        return [*pieces[: place + 1], mention, thing, *_without_verb(pieces[pieces.index(thing) + 1 :])]
    return pieces


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
