"""Plans without tables that they need not join."""

from dataclasses import replace

from helios.routing.formulation.plan import ColumnRef, Join, Plan, Term
from helios.routing.formulation.schema import SchemaView


def pruned(plan: Plan, schema: SchemaView) -> Plan:
    """Without the tables that add nothing but a key that another table refers to."""
    while True:
        for join in _ends(plan):
            primary = schema.column(join.right).primary and len(schema.tables[join.right.table].keys) == 1
            if primary and (join.left, join.right) in schema.refers:
                smaller = _without(plan, join)
                if smaller is not None:
                    plan = smaller
                    break
        else:
            return plan


def _ends(plan: Plan) -> list[Join]:
    """Joins whose table can go: the last ones of paths, and the root turned round."""
    inner = {join.left.table for join in plan.joins}
    ends = [join for join in plan.joins if join.right.table not in inner]
    starting = [join for join in plan.joins if join.left.table == plan.table]
    if len(starting) == 1:
        ends.append(Join(starting[0].right, starting[0].left))
    return ends


def _without(plan: Plan, join: Join) -> Plan | None:
    """A plan with a table's key replaced by the column that refers to it; None where more of the table is used."""
    gone, key, kept = join.right.table, join.right, join.left

    def swap(column: ColumnRef | None) -> ColumnRef | None:
        return kept if column == key else column

    def term(old: Term) -> Term:
        share = tuple(tuple(replace(c, term=term(c.term), than=swap(c.than)) for c in some) for some in old.share)
        return replace(old, column=swap(old.column), share=share)

    smaller = replace(
        plan, table=kept.table if plan.table == gone else plan.table,
        joins=tuple(j for j in plan.joins if gone not in (j.left.table, j.right.table)),
        select=tuple(map(term, plan.select)),
        where=tuple(tuple(replace(c, term=term(c.term), than=swap(c.than)) for c in some) for some in plan.where),
        group=tuple(kept if column == key else column for column in plan.group),
        each=tuple(kept if column == key else column for column in plan.each),
        having=tuple(replace(c, term=term(c.term)) for c in plan.having),
        order=tuple(replace(o, term=term(o.term)) for o in plan.order),
    )  # fmt: skip
    return None if gone in tables_read(smaller) else smaller


def tables_read(plan: Plan) -> set[str]:
    """Tables whose columns a plan reads, apart from joins."""
    terms = [*plan.select, *(o.term for o in plan.order), *(c.term for c in plan.having)]
    parts = [*plan.where, *(some for term in terms for some in term.share)]
    conditions = [condition for some in parts for condition in some]
    columns = [*plan.group, *plan.each, *(c for one in conditions for c in (one.term.column, one.than, one.own) if c)]
    columns += [term.column for term in terms if term.column is not None]
    return {column.table for column in columns}
