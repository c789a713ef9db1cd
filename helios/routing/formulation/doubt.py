"""What speaks against a plan: parts of the question that it leaves out."""

from helios.routing.formulation.cues import Cue
from helios.routing.formulation.dates import DATE, IN_A_YEAR, YEARS
from helios.routing.formulation.draft import Draft
from helios.routing.formulation.pieces import Piece, text_before
from helios.routing.formulation.plan import Aggregate, Operator, Plan
from helios.routing.formulation.settling import Settled

NEGATIVE = (Operator.NE, Operator.NOT_IN, Operator.NOT_CONTAINS, Operator.LE, Operator.GE, Operator.IS_NULL)


def unplaced(draft: Draft, settled: Settled) -> list[Piece]:
    """Values, numbers and filtered columns that the plan says nothing of."""
    placed = {id(p) for f in draft.filters if settled.of(f) for p in (f.subject, f.value, f.second) if p is not None}
    placed |= {id(i.piece) for i in (*draft.select, *draft.groups, *draft.orders) if i.piece is not None}
    placed |= {id(c.piece) for c in draft.having if c.piece is not None}
    placed |= {id(piece) for piece, _ in draft.absent}
    used = {*settled.columns.values()}
    loose = [
        p for p in draft.pieces
        if p.cue in (Cue.VALUE, Cue.COLUMN, Cue.NUMBER) and id(p) not in placed
        and not (p.cue == Cue.COLUMN and any(link.column in used for link in p.columns))
    ]  # fmt: skip
    numbers = len(draft.having) + (draft.limit is not None and draft.limit > 1)
    counted = [p for p in loose if p.cue == Cue.NUMBER][:numbers]
    return [p for p in loose if p not in counted]


def undated(draft: Draft, plan: Plan) -> bool:
    """Whether a day, a month or a year of the question is in no condition: another question is answered then."""
    days = [p.text for p in draft.pieces if p.cue in (Cue.VALUE, Cue.NUMBER) and DATE.fullmatch(p.text)]
    numbers = [p for p in draft.pieces if p.cue == Cue.NUMBER and text_before(draft.pieces, p) in IN_A_YEAR]
    years = [f"{p.number:.0f}" for p in numbers if p.number is not None and p.number in YEARS]
    return any(text not in str(plan) for text in (*days, *years))


def far_values(draft: Draft, settled: Settled) -> int:
    """How many ordinary words are taken for values of tables that no other mention leads to."""
    named = {table for piece in draft.mentions for table in piece.tables}
    named |= {column.table for item in draft.select if (column := settled.of(item)) is not None}
    count = 0
    for part in draft.filters:
        column, piece = settled.of(part), part.value
        if column is None or piece is None or piece.cue != Cue.VALUE or piece.quoted or part.subject is not None:
            continue
        count += piece.text.islower() and column.table not in named
    return count


def unmet_cues(draft: Draft, plan: Plan) -> list[str]:
    """Cues of the question whose operation the plan does not hold."""
    terms = [*plan.select, *(o.term for o in plan.order), *(c.term for c in plan.having)]
    conditions = [*plan.having, *(condition for some in plan.where for condition in some)]
    queries = [condition.query for condition in conditions if condition.query is not None]
    aggregates = {term.aggregate for term in [*terms, *(term for query in queries for term in query.select)]}
    extreme = plan.limit is not None or bool(aggregates & {Aggregate.MAX, Aggregate.MIN})
    held = {
        Cue.NOT: any(condition.operator in NEGATIVE for condition in conditions),
        Cue.SUPERLATIVE: extreme or bool(plan.order),
        Cue.COMMON: extreme,
        Cue.COMPARE: bool(conditions),
        Cue.AGGREGATE: bool(aggregates) or extreme,
        Cue.DIRECTION: bool(plan.order),
        Cue.ORDER: bool(plan.order),
        Cue.LIKE: bool(conditions),
    }
    averaged = Aggregate.AVG in aggregates
    return [
        piece.text for piece in draft.pieces
        if not held.get(piece.cue, True) or (piece.payload is Aggregate.AVG and not averaged)
    ]  # fmt: skip


def unsaid(draft: Draft) -> list[str]:
    """Small words that say what things are, at the end of a question: "which books are out"."""
    said = [piece for piece in draft.pieces if piece.cue != Cue.END]
    last = said[-1] if said else None
    told = (
        last is not None and last.cue == Cue.WORD and last.text in ("out", "off", "up", "down", "away", "back", "over")
    )
    return [last.text] if last is not None and told and any(p.text in ("be", "have") for p in said[-3:-1]) else []
