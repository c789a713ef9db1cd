"""How much was spent, paid or taken: which table's money a question speaks of that names no column of it."""

import re
from collections.abc import Sequence, Set

from helios.routing.formulation.draft import Draft
from helios.routing.formulation.plan import ColumnRef, Computed
from helios.routing.formulation.schema import PRICES, SUMS, SchemaView, TableView
from helios.routing.formulation.settling import Settled, lasts
from helios.routing.formulation.words import lemma, stem

OUT = frozenset(
    map(stem, ("spend", "spent", "spending", "cost", "expense", "expenditure", "purchase", "bill", "buy", "bought"))
)
IN = frozenset(
    map(stem, ("take", "took", "taken", "bring", "brought", "earn", "raise", "receive", "income", "sale", "donation",
               "receipt", "revenue", "payment", "taking"))
)  # fmt: skip
"""What people do with money, and what tables are called that hold what came of it."""
PAID = frozenset(
    map(stem, ("pay", "paid", "payment", "charge", "owe", "give", "gave", "given", "donate", "invoice", "get",
               "unpaid", "outstanding", "owing"))
)  # fmt: skip
ASKED = re.compile(
    r"^\W*(?:list )?(?:and |so )?(?:how much(?: money)?|what (?:did|do|have|has) (?:we|i|you|they)|"
    r"what (?:did|do|have|has) (?=.*\b(?:in total|altogether|overall)\b)|"
    r"(?:the )?total (?:amount )?(?:given|paid|spent|taken|raised|earned|received))\b",
    re.IGNORECASE,
)
RECEIVED = ("pay", "paid", "payment", "received", "receive", "taken")
"""What columns are called that hold what was taken, beside what was asked for."""
COSTS = frozenset(("cost", "expense", "postage"))
"""What columns are called that hold what was spent, whatever was taken."""
DIRECT, NAMED, SPOKEN, NEAR = 4, 3, 2, 1
"""What speaks for a table: a condition on it, a verb that it is called by, a mention, a key to or from one of these."""


def money_asked(draft: Draft, settled: Settled, schema: SchemaView) -> ColumnRef | None:
    """The amount that "how much" asks for; None where it does not, or tables stand equal."""
    said = {stem(lemma(word)) for piece in draft.pieces for word in piece.text.lower().split()}
    if not ASKED.match(" ".join(piece.text for piece in draft.pieces)) or not said & (OUT | IN | PAID):
        return None
    direct = {column.table for part in draft.filters if (column := settled.of(part)) is not None}
    groups = (settled.of(item) for item in draft.groups)
    direct |= {column.table for column in groups if column is not None and not schema.column(column).temporal}
    spoken = [table for piece in draft.mentions for table in piece.tables[:1]]
    return likeliest_amount(schema, said, direct, spoken)


def likeliest_amount(
    schema: SchemaView, said: Set[str], direct: Set[str], mentioned: Sequence[str]
) -> ColumnRef | None:
    """The amount of money that a question speaks of by the stems of its words; None where tables stand equal.

    `direct` are tables that conditions are about, `mentioned` those that are named.
    """
    spoken = set(mentioned)
    near = {join.right.table for table in direct | spoken for join in schema.joins.get(table, ())}
    ways = [way for way in (OUT, IN, PAID) if said & way]
    marks: dict[ColumnRef, int] = {}
    for table in schema.tables.values():
        if (amount := amount_of(table, taken=bool(said & IN) and not said & OUT)) is None:
            continue
        if ways == [IN] and set(schema.column(amount).words) & COSTS and not isinstance(amount, Computed):
            continue
        called = {stem(word) for word in table.words}
        dates = {stem(word) for column in table.columns if column.temporal for word in column.words}
        named = bool(called & said) or any((called if way is IN else called | dates) & way for way in ways)
        places = DIRECT * (table.name in direct) + SPOKEN * (table.name in spoken) + NEAR * (table.name in near)
        spent = bool(said & OUT) and not isinstance(amount, Computed) and bool(set(schema.column(amount).words) & COSTS)
        marks[amount] = NAMED * named + places + NEAR * spent
    best = sorted(marks, key=lambda column: -marks[column])[:2]
    if not best or marks[best[0]] < SPOKEN or (len(best) > 1 and marks[best[0]] == marks[best[1]]):
        return None
    return best[0]


def amount_of(table: TableView, *, taken: bool = False) -> ColumnRef | None:
    """The only column of a table that holds money, or the only one that is called a sum; a price times how many.

    Of several the one that says what was `taken`: paid_amount beside net_amount.
    """
    products = [column.ref for column in table.computed if isinstance(column.ref, Computed)]
    if products:
        return products[0]
    happens = any(column.temporal and not lasts(column) for column in table.columns)
    for names in (SUMS, (*SUMS, *PRICES, "charge", "paid")) if happens else (SUMS,):
        found = [column for column in table.amounts if set(column.words) & set(names)]
        paid = [column for column in found if set(column.words) & set(RECEIVED)] if taken else []
        for some in (found, paid):
            if len(some) == 1:
                return some[0].ref
    return None
