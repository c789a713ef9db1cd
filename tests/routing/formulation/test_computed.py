"""Two columns of a row together, the days between dates, and percentages, as every dialect writes them."""

import duckdb
import pytest

from helios.routing.formulation.plan import (
    Aggregate,
    ColumnRef,
    Computed,
    Condition,
    Operator,
    Plan,
    PlanError,
    Sign,
    Term,
)
from helios.routing.formulation.sql import render

STAY = Computed("stays", "arrived", Sign.DAYS, "left")
LONG = Condition(Term(ColumnRef("stays", "nights")), Operator.GT, (2,))


def test_days_in_duckdb():
    connection = duckdb.connect()
    connection.execute('CREATE TABLE stays (arrived DATE, "left" DATE, nights INTEGER, price DECIMAL(6, 2))')
    connection.execute(
        "INSERT INTO stays VALUES ('2024-02-27', '2024-03-02', 4, 50), ('2024-05-01', '2024-05-03', 2, 40)"
    )

    def rows(*select: Term) -> list[tuple]:
        return connection.execute(render(Plan("stays", select), "duckdb")).fetchall()

    assert rows(Term(STAY)) == [(4,), (2,)]
    assert rows(Term(STAY, Aggregate.AVG)) == [(3.0,)]
    assert rows(Term(Computed("stays", "nights", Sign.TIMES, "price"), Aggregate.SUM)) == [(280,)]
    assert rows(Term(Computed("stays", "price", Sign.MINUS, "nights"))) == [(46,), (38,)]
    assert rows(Term(None, Aggregate.SHARE, share=((LONG,),))) == [(50.0,)]


def test_days_elsewhere():
    plan = Plan("stays", (Term(STAY),))
    assert render(plan, "sqlite") == 'SELECT (JULIANDAY("left") - JULIANDAY("arrived")) FROM "stays"'
    assert render(plan, "postgres") == 'SELECT (CAST("left" AS DATE) - CAST("arrived" AS DATE)) FROM "stays"'
    with pytest.raises(PlanError, match="days between two dates"):
        render(plan, "oracle")


@pytest.mark.parametrize(
    "wrong",
    [
        dict(column=None, aggregate=Aggregate.SHARE),
        dict(column=None, aggregate=Aggregate.COUNT, share=((LONG,),)),
        dict(column=ColumnRef("stays", "nights"), aggregate=Aggregate.SHARE, share=((LONG,),)),
    ],
)
def test_a_percentage_is_of_rows(wrong):
    with pytest.raises(PlanError, match="percentage"):
        Term(**wrong)


def test_a_plan_says_what_it_computes():
    assert str(Term(STAY)) == "stays.arrived days to stays.left"
    assert str(Term(None, Aggregate.SHARE, share=((LONG,),))) == "percentage of rows with stays.nights > 2"
