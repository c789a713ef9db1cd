"""What has been done, has not been, or has ended, where a column says when: "still not reimbursed", "current members".

Works on pieces, before they are read: such words become conditions that the column is empty, or that it is not.
"""

from collections.abc import Sequence
from dataclasses import replace

from helios.routing.formulation.cues import Cue
from helios.routing.formulation.linking import WHEN, Link, says_an_end
from helios.routing.formulation.pieces import Piece
from helios.routing.formulation.plan import Operator
from helios.routing.formulation.schema import PRICES, ColumnView, SchemaView
from helios.routing.formulation.words import lemma, stem

SMALL = frozenset(("be", "been", "yet", "we", "still", "also", "already", "since", "now", "the", "our", "all", "any"))
"""Words that may stand between a negation or a verb and what is said of something."""
GONE = frozenset(("left", "leave", "retired", "resigned", "stopped"))
"""Words for what has come to an end."""
ONGOING = frozenset(("open", "ongoing", "running", "unfinished"))
"""Words for what goes on."""
CURRENT = frozenset(("current", "currently", "present", "existing"))
"""Words for what has not."""
LIGHT = frozenset(("made", "done", "given", "got"))
"""Verbs that say nothing by themselves."""
STATED = 0.9
"""What such a mention is worth."""
BEHIND = (Cue.END, Cue.COMMA, Cue.AND, Cue.OR, Cue.PREPOSITION, Cue.RELATIVE)
"""What may stand behind a state; a date there would say when it came about."""


def with_states(pieces: Sequence[Piece], schema: SchemaView) -> list[Piece]:
    """The pieces with states of the tables that are spoken of as conditions."""
    tables = list(dict.fromkeys(table for piece in pieces for table in piece.tables[:1] if piece.cue == Cue.TABLE))
    found: list[Piece] = []
    left = [_without_light_verb(pieces[place - 1] if place else None, piece) for place, piece in enumerate(pieces)]
    while left:
        piece = left.pop(0)
        following = left[0] if left else None
        if piece.text == "free" and found and (gone := _free(piece, tables, schema)):
            found += gone
            while left and left[0].text in ("of", "charge"):
                del left[0]
            continue
        if piece.text == "out" and left[:1] and left[0].text == "of" and (gone := _out_of(left[1:2], tables, schema)):
            found += gone
            del left[:2]
            continue
        if piece.cue == Cue.NOT and (state := _not_done(left, tables, schema)) is not None:
            place, mention = state
            found += [p for p in left[:place] if p.cue == Cue.TABLE]
            found.append(mention)
            del left[: place + 1]
        elif following is not None and following.cue == Cue.TABLE and (own := following.tables[:1]):
            partly = piece.cue == Cue.COLUMN and not any(link.whole for link in piece.links)
            columns = _when(piece, own, schema) if partly or piece.cue in (Cue.WORD, Cue.VALUE) else []
            here = piece.cue == Cue.VALUE and any(link.table in own for link in piece.links)
            lasting = piece.cue == Cue.WORD and piece.text in CURRENT
            ends = [column for column in schema.tables[own[0]].columns if says_an_end(column)] if lasting else []
            if columns and not here:
                found.append(_state(piece, columns, Operator.NOT_NULL))  # "cancelled bookings"
            elif len(ends) == 1:
                found.append(_state(piece, ends, Operator.IS_NULL))
            else:
                found.append(piece)
        elif _said_of(found, piece, left) and (columns := _when(piece, tables[:1], schema)):
            found.append(_state(piece, columns, Operator.NOT_NULL))  # "which bookings were cancelled"
        elif piece.text in ONGOING and (ends := _lasting(found, piece, left, tables, schema)):
            found.append(_state(piece, ends, Operator.IS_NULL))  # "which jobs are open"
        elif piece.text in GONE and _had(found) and (ends := _endings(piece, tables, schema)) and _stands_alone(left):
            found.append(_state(piece, ends[:1], Operator.NOT_NULL))
        else:
            found.append(piece)
    return found


def _out_of(following: Sequence[Piece], tables: Sequence[str], schema: SchemaView) -> list[Piece]:
    """ "Out of stock" as a column of amounts that is 0, "out of service" as one of yes and no; nothing for others."""
    if [p.cue for p in following] not in ([Cue.COLUMN], [Cue.WORD], [Cue.TABLE]):
        return []
    (piece,) = following
    word = lemma(piece.text.lower().split()[-1])
    own = [c for table in tables[:1] for c in schema.tables[table].columns if word in c.words and (c.amount or c.flag)]
    if len(own) != 1:
        return []
    (column,) = own
    if column.flag is not None:
        link = Link(piece.start, piece.end, STATED, column.ref.table, column.ref, column.flag[1])
        return [replace(piece, cue=Cue.VALUE, links=(link,))]
    link = Link(piece.start, piece.end, STATED, column.ref.table, column.ref)
    return _nothing_of(piece, link)


def _free(piece: Piece, tables: Sequence[str], schema: SchemaView) -> list[Piece]:
    """ "Free of charge" as the only price of what is spoken of that is 0."""
    own = [c for table in tables[:1] for c in schema.tables[table].columns if c.amount and set(c.words) & set(PRICES)]
    elsewhere = piece.cue == Cue.COLUMN and not any(link.table in tables[:1] for link in piece.links)
    if len(own) != 1 or not (piece.cue == Cue.WORD or elsewhere):
        return []
    link = Link(piece.start, piece.end, STATED, own[0].ref.table, own[0].ref)
    return _nothing_of(piece, link)


def _nothing_of(piece: Piece, link: Link) -> list[Piece]:
    """ "Whose stock is 0", as pieces."""
    whose = Piece(Cue.RELATIVE, piece.start, piece.start, "whose")
    none = Piece(Cue.NUMBER, piece.end, piece.end, "0", number=0.0)
    return [whose, replace(piece, cue=Cue.COLUMN, links=(link,)), none]


def _not_done(left: Sequence[Piece], tables: Sequence[str], schema: SchemaView) -> tuple[int, Piece] | None:
    """Where behind a negation something is said to have been done, and that it was not."""
    for place, piece in enumerate(left):
        if piece.cue == Cue.WORD and piece.text in SMALL:
            continue
        verb = piece.cue in (Cue.WORD, Cue.COLUMN) and " " not in piece.text and _past(piece.text)
        columns = _when(piece, tables, schema) if verb else []
        behind = BEHIND if place else BEHIND[:4]
        later = [p for p in left[place + 1 :] if not (p.cue == Cue.WORD and p.text in SMALL)]
        ends = not later or later[0].cue in behind
        dated = any(p.cue in (Cue.VALUE, Cue.NUMBER, Cue.COMPARE) for p in left[place + 1 : place + 3])
        return (place, _state(piece, columns, Operator.IS_NULL)) if columns and ends and not dated else None
    return None


def _without_light_verb(before: Piece | None, piece: Piece) -> Piece:
    """ "Were made", "was given": the verb names no column."""
    light = before is not None and before.text in ("be", "been") and piece.text in LIGHT and piece.cue == Cue.COLUMN
    return replace(piece, cue=Cue.WORD, text=lemma(piece.text), links=()) if light else piece


def _past(word: str) -> bool:
    return word.endswith("ed") or lemma(word) != word


def _when(piece: Piece, tables: Sequence[str], schema: SchemaView) -> list[ColumnView]:
    """The column of the tables that says when what a past form names was done; none where there are several."""
    verb = stem(lemma(piece.text.lower()))
    columns = [column for table in tables for column in schema.tables[table].columns]
    found = [c for c in columns if len(c.words) == 2 and c.words[1] in WHEN and c.temporal and stem(c.words[0]) == verb]
    return found if len(found) == 1 else []


def _endings(piece: Piece, tables: Sequence[str], schema: SchemaView) -> list[ColumnView]:
    """The columns of ends of what is spoken of; where nothing is, the only one that is called so."""
    columns = [column for table in tables[:1] for column in schema.tables[table].columns]
    found = [column for column in (columns if tables else schema.columns()) if says_an_end(column)]
    called = [column for column in found if stem(column.words[0]) == stem(lemma(piece.text))]
    return found if tables else called if len(called) == 1 else []  # "who has left"


def _lasting(
    before: Sequence[Piece], piece: Piece, left: Sequence[Piece], tables: Sequence[str], schema: SchemaView
) -> list[ColumnView]:  # fmt: skip
    """The only column of an end of what is said to be open, where nothing else is said of it."""
    said = [p.text for p in before if p.text not in SMALL - {"be"}]
    own = [column for table in tables[:1] for column in schema.tables[table].columns]
    stored = any(link.table in tables[:1] and (link.is_value or link.whole) for link in piece.links)
    ends = [column for column in own if says_an_end(column)]
    alone = said[-1:] == ["be"] and (not left or left[0].cue in BEHIND[:4])
    return ends if alone and not stored and len(ends) == 1 else []


def _had(before: Sequence[Piece]) -> bool:
    """Whether "have" stands before, past small words."""
    said = [p for p in before if p.text not in SMALL]
    return (
        bool(said)
        and said[-1].text in ("have", "has", "who", "that")
        or said[-1:] != []
        and said[-1].cue == Cue.RELATIVE
    )


def _said_of(before: Sequence[Piece], piece: Piece, left: Sequence[Piece]) -> bool:
    """Whether "were" stands before a past form and nothing behind it says when, or by whom."""
    known = piece.cue in (Cue.WORD, Cue.VALUE, Cue.COLUMN) and " " not in piece.text and _past(piece.text)
    been = bool(before) and before[-1].text in ("be", "been") and not any(p.cue == Cue.NOT for p in before[-3:])
    return known and been and (not left or left[0].cue in BEHIND[:4] or left[0].cue == Cue.EACH)


def _stands_alone(left: Sequence[Piece]) -> bool:
    """Whether nothing but what was left follows: "left the company, and when"."""
    small = (*SMALL, "us", "company", "firm", "club", "team")
    rest = [p for p in left if not (p.text.endswith("ing") or (p.cue == Cue.WORD and p.text in small))]
    return not rest or rest[0].cue in BEHIND[:4]


def _state(piece: Piece, columns: Sequence[ColumnView], operator: Operator) -> Piece:
    links = tuple(Link(piece.start, piece.end, STATED, c.ref.table, c.ref) for c in columns)
    return replace(piece, cue=Cue.STATE, payload=operator, links=links)
