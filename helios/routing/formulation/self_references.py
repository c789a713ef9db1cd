"""Rows that refer to other rows of their own table: whose manager somebody is, and whom somebody mentors."""

from collections.abc import Sequence

from helios.routing.formulation.cues import Cue
from helios.routing.formulation.draft import Draft
from helios.routing.formulation.pieces import Piece
from helios.routing.formulation.plan import ColumnRef, Condition, Operator, Plan, Term
from helios.routing.formulation.schema import KEY_WORDS, SchemaView
from helios.routing.formulation.words import lemma, stem

UNDER = "under"
"""Where somebody works whom another leads."""
WORKING = ("work", "be", "serve", "report", "come", "sit")
"""What is done under somebody."""


def through_itself(plan: Plan, draft: Draft, schema: SchemaView) -> Plan:
    """The manager of Ann, or those whom Ann manages, in place of Ann, where the question speaks of that role.

    A row names its manager by a column that refers to the table's own key. Other plans come back as they are.
    """
    if plan.joins or plan.group or plan.having or plan.order or plan.each or plan.combined is not None:
        return plan
    named = [some for some in plan.where if _names(some, plan.table, schema)]
    for own, key in sorted(schema.refers, key=str):
        role = _role(draft.pieces, own, schema) if own.table == key.table == plan.table and named else None
        if role is None or any(term.column == own for term in plan.select):
            continue
        wanted, given = (own, key) if _done_to(draft.pieces, role) else (key, own)
        others = Plan(plan.table, (Term(given),), where=tuple(named))
        rest = tuple(some for some in plan.where if some not in named)
        return plan.with_(where=(*rest, (Condition(Term(wanted), Operator.IN, query=others),)))
    return plan


def _names(some: tuple[Condition, ...], table: str, schema: SchemaView) -> bool:
    """Whether a condition says which row is meant, by its name."""
    view = schema.tables[table]
    naming = {column.ref for column in (view.naming, view.surname) if column is not None}
    (first, *others) = some
    return not others and first.operator is Operator.EQ and first.query is None and first.term.column in naming


def _role(pieces: Sequence[Piece], own: ColumnRef, schema: SchemaView) -> Piece | None:
    """Where the question says what a column calls the rows that it refers to: a manager, managed, manages."""
    words = {stem(word) for word in schema.column(own).words if word not in KEY_WORDS}
    words |= {stem(word) for word in words}
    told = (p for p in pieces if p.cue is not Cue.VALUE and {stem(stem(word)) for word in p.text.split()} & words)
    under = (p for p in pieces if works_under(pieces, p))
    return next(told, None) or next(under, None)


def works_under(pieces: Sequence[Piece], under: Piece) -> bool:
    """Whether somebody works under somebody: "who works under Ann", not "who earns under Ann's salary"."""
    place = next(i for i, piece in enumerate(pieces) if piece is under)
    value = pieces[place + 1] if place + 1 < len(pieces) else None
    verb = lemma(pieces[place - 1].text) if place else ""
    named = value is not None and value.cue is Cue.VALUE and not value.possessive and not value.quoted
    return under.text.lower() == UNDER and named and verb in WORKING


def _done_to(pieces: Sequence[Piece], role: Piece) -> bool:
    """Whether the named one has the role: "mentored by Ann", "who reports to Ann", "whom does Ann manage"."""
    place = next(i for i, piece in enumerate(pieces) if piece is role)
    before, after = pieces[:place], pieces[place + 1 : place + 2]
    if role.text.lower() == UNDER or (after and after[0].text in ("by", "to", UNDER)):
        return True
    verb = bool(after) and after[0].cue is Cue.END and any(p.cue is Cue.WORD and p.text == "do" for p in before)
    return verb and any(p.cue is Cue.VALUE for p in before)
