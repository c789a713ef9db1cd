"""Plans as SQL, and plans without the tables that they do not need."""

import duckdb
import pytest

from helios.routing.formulation.plan import (
    ROWS,
    Aggregate,
    Beginning,
    ColumnRef,
    Condition,
    Join,
    Operator,
    Order,
    Plan,
    PlanError,
    SetOperation,
    Term,
)
from helios.routing.formulation.pruning import pruned
from helios.routing.formulation.schema import SchemaView
from helios.routing.formulation.sql import literal, quoted, render
from helios.sources.descriptor import Column, ForeignKey, RelationalSchema, TableSchema

NAME, CLUB, ID = ColumnRef("player", "name"), ColumnRef("player", "club id"), ColumnRef("club", "id")
TITLE, WAGE = ColumnRef("club", "title"), ColumnRef("player", "wage")
SCHEMA = RelationalSchema(
    "sqlite",
    (
        TableSchema("club", (Column("id", "INTEGER", primary_key=True), Column("title", "TEXT"))),
        TableSchema(
            "player", (Column("name", "TEXT"), Column("club id", "INTEGER"), Column("wage", "REAL")),
            (ForeignKey(("club id",), "club", ("id",)),),
        ),
    ),
)  # fmt: skip
JOIN = Join(CLUB, ID)
MONTH = Beginning("player", "joined", 7)
BY_MONTH = Plan("player", (ROWS, Term(MONTH)), group=(MONTH,))
PLANS = [
    (Plan("player", (Term(NAME),)), 'SELECT "name" FROM "player"'),
    (
        BY_MONTH,
        'SELECT COUNT(*), SUBSTR(CAST("joined" AS TEXT), 1, 7) FROM "player" '
        'GROUP BY SUBSTR(CAST("joined" AS TEXT), 1, 7) ORDER BY SUBSTR(CAST("joined" AS TEXT), 1, 7)',
    ),
    (
        BY_MONTH.with_(order=(Order(ROWS, True),), limit=1),
        'SELECT COUNT(*), SUBSTR(CAST("joined" AS TEXT), 1, 7) FROM "player" '
        'GROUP BY SUBSTR(CAST("joined" AS TEXT), 1, 7) ORDER BY COUNT(*) DESC LIMIT 1',
    ),
    (Plan("player", (ROWS,)), 'SELECT COUNT(*) FROM "player"'),
    (
        Plan("player", (Term(NAME, Aggregate.COUNT, distinct=True),)),
        'SELECT COUNT(DISTINCT "name") FROM "player"',
    ),
    (
        Plan("player", (Term(NAME),), where=((Condition(Term(NAME), Operator.CONTAINS, ("O'x",)),),)),
        """SELECT "name" FROM "player" WHERE "name" LIKE '%O''x%'""",
    ),
    (
        Plan("player", (Term(TITLE), Term(WAGE, Aggregate.AVG)), (JOIN,), group=(TITLE,),
             having=(Condition(ROWS, Operator.GE, (2,)),), order=(Order(Term(WAGE, Aggregate.AVG), True),), limit=3),
        'SELECT "club"."title", AVG("player"."wage") FROM "player" JOIN "club" ON "player"."club id" = "club"."id" '
        'GROUP BY "club"."title" HAVING COUNT(*) >= 2 ORDER BY AVG("player"."wage") DESC LIMIT 3',
    ),
    (
        Plan("club", (Term(TITLE),), where=(
            (Condition(Term(ID), Operator.NOT_IN, query=Plan("player", (Term(CLUB),))),),
            (Condition(Term(TITLE), Operator.EQ, ("a",)), Condition(Term(TITLE), Operator.EQ, ("b",))),
        )),
        'SELECT "title" FROM "club" WHERE "id" NOT IN (SELECT "club id" FROM "player") '
        """AND ("title" = 'a' OR "title" = 'b')""",
    ),
    (
        Plan("player", (Term(NAME),), where=((Condition(Term(WAGE), Operator.BETWEEN, (1, 2.5)),),),
             combined=(SetOperation.INTERSECT, Plan("player", (Term(NAME),), distinct=True))),
        'SELECT "name" FROM "player" WHERE "wage" BETWEEN 1 AND 2.5 INTERSECT SELECT DISTINCT "name" FROM "player"',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("plan", "sql"), PLANS)
def test_render(plan, sql):
    assert render(plan) == sql


@pytest.mark.parametrize("plan", [plan for plan, _ in PLANS])
def test_duckdb_reads_its_rendering(plan):
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE club (id INT, title TEXT);"
            'CREATE TABLE player (name TEXT, "club id" INT, wage INT, joined DATE)'
        )
        connection.execute(render(plan, "duckdb")).fetchall()


def test_names_and_values_are_quoted():
    assert quoted('a"b') == '"a""b"'
    assert [literal(value) for value in (None, 1, 1.5, "O'x")] == ["NULL", "1", "1.5", "'O''x'"]


def test_a_table_that_adds_its_key_alone_is_not_joined():
    view = SchemaView.of(SCHEMA)
    plan = Plan("player", (Term(ID), ROWS), (JOIN,), group=(ID,))
    assert pruned(plan, view) == Plan("player", (Term(CLUB), ROWS), group=(CLUB,))


def test_a_root_that_adds_its_key_alone_is_not_joined():
    view = SchemaView.of(SCHEMA)
    plan = Plan("club", (Term(ID), Term(WAGE)), (Join(ID, CLUB),))
    assert pruned(plan, view) == Plan("player", (Term(CLUB), Term(WAGE)))


def test_a_table_whose_rows_must_exist_stays():
    view = SchemaView.of(SCHEMA)
    plan = Plan("club", (Term(TITLE),), (Join(ID, CLUB),))
    assert pruned(plan, view) == plan


def test_joins_are_found_by_names_where_no_keys_are_declared():
    bare = RelationalSchema(
        "sqlite",
        (
            TableSchema("Customer", (Column("CustomerID", "INTEGER"), Column("CustName", "TEXT"))),
            TableSchema("Orders", (Column("OrderID", "INTEGER"), Column("CustomerID", "INTEGER"))),
        ),
    )
    assert SchemaView.of(bare).connect(["Orders", "Customer"]) == (
        "Orders", (Join(ColumnRef("Orders", "CustomerID"), ColumnRef("Customer", "CustomerID")),),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        (Operator.BETWEEN, (5,)), (Operator.BETWEEN, (1, 2, 3)), (Operator.EQ, ()), (Operator.GE, (5, 10)),
        (Operator.CONTAINS, ()), (Operator.IS_NULL, (1,)), (Operator.IN, ()), (Operator.NOT_IN, ()),
    ],
)  # fmt: skip
def test_a_condition_that_no_query_can_say_cannot_be_made(operator, values):
    with pytest.raises(PlanError, match=str(operator)):
        Condition(Term(WAGE), operator, values)


@pytest.mark.parametrize("operator", [Operator.BETWEEN, Operator.CONTAINS, Operator.IS_NULL])
def test_rows_are_compared_by_comparisons_alone(operator):
    rows = Plan("player", (Term(WAGE, Aggregate.AVG),))
    with pytest.raises(PlanError, match=str(operator)):
        Condition(Term(WAGE), operator, query=rows)
    with pytest.raises(PlanError, match="1 values"):
        Condition(Term(WAGE), Operator.GT, (1,), query=rows)
    above = Condition(Term(WAGE), Operator.GT, query=rows)
    assert "> (SELECT AVG" in render(Plan("player", (ROWS,), where=((above,),)))


def test_other_parts_that_no_query_can_say():
    for aggregate in (None, Aggregate.SUM):
        with pytest.raises(PlanError, match="number of rows"):
            Term(None, aggregate)
    for parts in ({"select": ()}, {"where": ((),)}, {"limit": -1}):
        with pytest.raises(PlanError):
            Plan(**{"table": "player", "select": (ROWS,), **parts})


@pytest.mark.parametrize("operator", list(Operator))
def test_whatever_can_be_made_can_be_written(operator):
    """Every operator, with every number of values: a query that runs, or no condition."""
    made = []
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE player (name TEXT, "club id" INTEGER, wage REAL)')
        for count in range(4):
            try:
                condition = Condition(Term(NAME), operator, ("a", "b", "c")[:count])
            except PlanError:
                continue
            made.append(count)
            connection.execute(render(Plan("player", (ROWS,), where=((condition,),)), "duckdb"))
    assert made
