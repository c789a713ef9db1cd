"""Which month: its rows are taken together."""

import pytest

from helios.reading.tables.candidates import TableFacts
from helios.reading.tables.months import months_asked, with_months
from helios.reading.tables.programs import Op, execute
from helios.reading.tables.reader import Sheets, plain_programs, table_question
from helios.reading.tables.sheet import Sheet
from helios.types import Table

ROWS = (
    ("2026-05-03", "20", "Ann"), ("2026-05-21", "30", "Bo"), ("2026-05-30", "5", "Ann"), ("2026-06-11", "45", "Ann"),
    ("", "99", "Bo"),
)  # fmt: skip
FEES = Table("fees", "Fees", ("Date", "Fee", "Who"), ROWS)


class OneTable:
    """A corpus of one table."""

    def __init__(self, table: Table) -> None:
        self.tables, self.segment_count, self.table = self, len(table.rows), table

    def ids(self):
        return iter([self.table.table_id])

    def get(self, record_id: str) -> Table:
        return self.table

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Which month brought in the most?", True),
        ("best month for fees so far", True),
        ("what was the busiest month", True),
        ("in welchem Monat war am meisten los?", True),
        ("quel mois a rapporté le plus ?", True),
        ("¿En qué mes hubo más?", True),
        ("哪个月最多？", True),
        ("What was our best month?", True),
        ("fees per month", False),
        ("Last month, which customer ordered the most?", False),
        ("Which product sold this month had the highest price?", False),
        ("How much did we take in our best month?", False),
        ("In the month of May, who sold the most?", False),
        ("how many last month?", False),
        ("a three month contract", False),
    ],
)
def test_questions_that_a_month_answers(question, asked):
    assert bool(months_asked(question)) is asked


def test_months_of_several_years_are_told_apart_and_cited_by_their_dates():
    sheet = with_months(Sheet.of(FEES), "en")
    month = sheet.columns[-1]
    assert (month.header, month.cells, sheet.months) == ("month", ("May", "May", "May", "June", ""), (3,))
    assert {(at.row, at.column) for at in sheet.places(3, 3)} == {(3, 0)}
    later = Table("fees", "Fees", ("Date", "Fee", "Who"), (*ROWS, ("2025-06-02", "1", "Cy")))
    assert with_months(Sheet.of(later), "en").columns[-1].cells[3:] == ("June 2026", "", "June 2025")
    assert with_months(Sheet.of(FEES), "de").columns[-1].cells[0] == "Mai"
    assert with_months(Sheet.of(Table("t", "T", ("A", "B"), (("x", "1"),))), "en").months == ()


def test_the_best_month_is_that_of_all_its_rows(engine):
    question = "Which month brought in the most fees?"
    sheets = Sheets(OneTable(FEES), engine.encoder)
    reading = table_question(question, engine.encoder.encode_question(question))
    (found,) = plain_programs(reading, [("fees", TableFacts(0, 1.0, 0.9, 0.9, ()))], sheets)
    programs = [found.program(number) for number in range(len(found.parts))]
    assert {program.op for program in programs} == {Op.MODE, Op.TOP_SUM}
    assert {program.column for program in programs} == {3}
    (best,) = (
        execute(one)
        for one in programs
        if (one.op, one.order, one.descending, one.matches) == (Op.TOP_SUM, 1, True, ())
    )
    assert best is not None and (best.items, best.value) == (("May",), 55.0)
