"""What is computed of a table's rows, each result computed by hand here."""

from dataclasses import replace

import numpy as np
import pytest

from helios.reading.tables.candidates import TableFacts, asked_table, programs_of
from helios.reading.tables.matching import Match, few_values, matches_of, near_matches, question_words
from helios.reading.tables.programs import Op, Program, average_text, execute, number_text
from helios.reading.tables.reader import table_question
from helios.reading.tables.sheet import Sheet
from helios.reading.tables.wording import wording_of
from helios.types import Table

SHEET = Sheet.of(
    Table(
        "orders", "Orders", ("Order", "Customer", "Town", "Units", "Paid", "Due"),
        (
            ("A1", "Linden Ltd", "Ashby", "4", "yes", "2024-01-05"),
            ("A2", "Marsh & Co", "Corby", "10", "no", "2024-02-11"),
            ("A3", "Linden Ltd", "Corby", "7", "yes", "2024-02-20"),
            ("A4", "Otter", "Ashby", "1", "no", "2024-03-02"),
            ("Total", "", "", "22", "", ""),
        ),
    )
)  # fmt: skip
TIED = Sheet.of(Table("tied", "Tied", ("Who", "Points"), (("Ann", "9"), ("Bo", "7"), ("Cy", "7"))))
MANY = Sheet.of(Table("many", "Many", ("Who", "Points"), tuple((f"P{n}", f"{n}") for n in range(31))))
ORDER, CUSTOMER, TOWN, UNITS, PAID, DUE = range(6)


def rows(*numbers: int, column: int = CUSTOMER) -> Match:
    chosen = np.zeros(5, bool)
    chosen[list(numbers)] = True
    return Match(column, chosen, frozenset((0,)), 1.0, 1, text="x")


def said(match: Match) -> Match:
    """A match that the question says after the others."""
    return replace(match, words=frozenset((5,)))


@pytest.mark.parametrize(
    ("program", "items"),
    [
        (Program(SHEET, Op.LOOKUP, (rows(1),), TOWN), ("Corby",)),
        (Program(SHEET, Op.LOOKUP, (rows(0, 2),), TOWN), ("Ashby", "Corby")),
        (Program(SHEET, Op.COUNT, (rows(0, 2),)), ("2",)),
        (Program(SHEET, Op.COUNT), ("4",)),
        (Program(SHEET, Op.DISTINCT, (), TOWN), ("2",)),
        (Program(SHEET, Op.SUM, (), UNITS), ("22",)),
        (Program(SHEET, Op.AVERAGE, (rows(0, 2),), UNITS), ("5.5",)),
        (Program(SHEET, Op.EXTREME, (), CUSTOMER, UNITS, True), ("Marsh & Co",)),
        (Program(SHEET, Op.EXTREME, (), ORDER, UNITS, True, 2), ("A3",)),
        (Program(SHEET, Op.EXTREME, (), ORDER, DUE), ("A1",)),
        (Program(SHEET, Op.EXTREME, (), ORDER, UNITS, True, -3), ("A2", "A3", "A1")),
        (Program(SHEET, Op.EXTREME, (), CUSTOMER, DUE, False, -9), ("Linden Ltd", "Marsh & Co", "Otter")),
        (Program(SHEET, Op.MODE, (), CUSTOMER, descending=True), ("Linden Ltd",)),
        (Program(SHEET, Op.TOP_SUM, (), TOWN, UNITS, True), ("Corby",)),
        (Program(SHEET, Op.DIFFERENCE, (rows(1), rows(3)), UNITS), ("9",)),
        (Program(SHEET, Op.DIFFERENCE, (rows(1), rows(2)), DUE), ("9 days",)),
        (Program(SHEET, Op.WHETHER, (rows(1),)), ("yes",)),
        (Program(SHEET, Op.WHETHER, (rows(1), rows(2, column=TOWN))), ("no",)),
        (Program(SHEET, Op.WHETHER, (rows(0, 2), said(rows(1)))), ("yes",)),
        (Program(SHEET, Op.WHETHER, (said(rows(1)), rows(0, 2))), ("yes",)),
        (Program(SHEET, Op.WHETHER, (rows(0, 2), said(rows(1))), descending=True), ("no",)),
        (Program(SHEET, Op.WHETHER, (rows(3), said(rows(1))), UNITS), ("no",)),
        (Program(SHEET, Op.DIFFERENCE, (rows(0, 2), rows(1)), UNITS), ("1",)),
        (Program(SHEET, Op.DIFFERENCE, (rows(0, 2), rows(1))), ("1",)),
        (Program(SHEET, Op.DIFFERENCE, (), UNITS, UNITS), ("9",)),
    ],
)
def test_a_program_gives(program, items):
    result = execute(program)
    assert result is not None
    assert result.items == items
    assert result.cells or items == ("no",)


STOCK = Sheet.of(
    Table(
        "stock", "Stock", ("Item", "On hand", "Order paid on"),
        (
            ("Inverter", "3", "2024-01-05"),
            ("Battery", "9", ""),
            ("Cable", "6", "2024-02-20"),
            ("Fuse", "", ""),
        ),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("question", "wanted", "at"),
    [
        ("which orders are unpaid", "Order paid on is empty", [1, 3]),
        ("orders not paying yet", "Order paid on is empty", [1, 3]),
        ("orders paid", "Order paid on is given", [0, 2]),
        ("which orders are still owing", "Order paid on is empty", [1, 3]),
        ("orders that have not been settled", "Order paid on is empty", [1, 3]),
    ],
)
def test_what_is_undone(question, wanted, at):
    found = matches_of(question, question_words(question), wording_of(question), STOCK, [])
    assert [np.flatnonzero(m.rows).tolist() for m in found if m.text == wanted] == [at]


def test_an_ordinal_may_name_a_thing_and_no_place(engine):
    """The dearest of the third term is the first of an order."""
    table = Table("t", "Third term", ("What", "Price"), (("Tea", "3"), ("Cake", "9"), ("Bun", "5"), ("Ale", "4")))
    sheet, question = Sheet.of(table), "the dearest of the third term, which costs most"
    vectors = engine.encoder.encode_question(question)
    headers = list(engine.encoder.encode_documents(["What", "Price", "Third term"]))
    found = programs_of(
        asked_table(table_question(question, vectors), sheet, TableFacts(0, 1.0, 0.9, 0.9, ()), headers)
    )
    given = {result.text for n in range(len(found.parts)) if (result := execute(found.program(n)))}
    assert {"Cake", "Ale"} <= given


def test_a_total_is_no_row_that_a_comparison_selects_but_can_be_named_or_found():
    large = Match(UNITS, SHEET.columns[UNITS].values > 6, frozenset((0,)), 1.0, 3, ">", text="Units > 6")
    named = replace(rows(4, column=ORDER), text="Total")
    best = replace(rows(4, column=-1), operator="row")
    asked = ((large, ORDER), (named, UNITS), (best, UNITS))
    listed, total, found = (execute(Program(SHEET, Op.LOOKUP, (match,), at)) for match, at in asked)
    assert listed is not None and listed.items == ("A2", "A3")
    assert total is not None and total.items == ("22",)
    assert found is not None and found.items == ("22",), "a total that is the best evidence may be what is asked for"


def test_a_total_is_not_listed_beside_the_rows_that_it_sums_up():
    both = Program(SHEET, Op.LOOKUP, (rows(1, 3, 4),), ORDER)
    found = execute(both)
    assert found is not None and found.items == ("A2", "A4")


@pytest.mark.parametrize(("question", "said"), [("Who paid 5,150 net?", "5 150"), ("who paid 1.500,50", "1 500 50")])
def test_a_number_with_marks_is_one_number(question, said):
    """5,150 selects neither the rows of 5 nor those of 150."""
    sheet = Sheet.of(
        Table("paid", "Paid", ("Who", "Box", "Net"),
              (("Ann", "5", "80.00"), ("Bo", "150", "5,150.00"), ("Cy", "1", "1.500,50"), ("Di", "500", "50")))
    )  # fmt: skip
    words = question_words(question)
    found = matches_of(question, words, wording_of(question), sheet, (), ())
    named = {" ".join(words[at].text for at in sorted(match.words)) for match in found if match.operator in ("=", "~")}
    assert said in named
    assert not named & {"5", "150", "1", "500", "50"}


def test_an_average_is_said_as_a_person_says_it_and_kept_as_it_is():
    result = execute(Program(SHEET, Op.AVERAGE, (rows(1, 2),), UNITS))
    units = replace(SHEET.columns[UNITS], values=np.array([4.0, 10.0, 6.0, 1.0, 22.0]))
    sheet = replace(SHEET, columns=(*SHEET.columns[:UNITS], units, *SHEET.columns[UNITS + 1 :]))
    thirds = execute(Program(sheet, Op.AVERAGE, (rows(0, 1, 2),), UNITS))
    assert result is not None and (result.text, result.value) == ("8.5", 8.5)
    assert thirds is not None and (thirds.text, thirds.value) == ("6.67", pytest.approx(20 / 3))
    assert [average_text(value) for value in (91.3603604, 0.0123456, 12.5, 0.0, -3.14159)] == [
        "91.36", "0.0123", "12.5", "0", "-3.14",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "program",
    [
        Program(SHEET, Op.LOOKUP, (rows(1), rows(2)), TOWN),  # no row
        Program(SHEET, Op.MODE, (), ORDER, descending=True),  # all as frequent
        Program(SHEET, Op.SUM, (), TOWN),  # no numbers
        Program(SHEET, Op.EXTREME, (), ORDER, UNITS, True, 9),  # no ninth
        Program(TIED, Op.EXTREME, (), 0, 1, True, -2),  # the second and the third are level
        Program(MANY, Op.EXTREME, (), 0, 1, True, -30),  # more than an answer lists
        Program(SHEET, Op.DIFFERENCE, (rows(0, 2), rows(1)), DUE),  # of three days
        Program(SHEET, Op.WHETHER, (rows(0), said(rows(1)))),  # as many
        Program(SHEET, Op.WHETHER, (rows(0), said(rows(1))), TOWN),  # no numbers
    ],
)
def test_a_program_without_a_result(program):
    assert execute(program) is None


STAYS = Sheet.of(
    Table(
        "stays", "Stays", ("Guest", "In", "Out", "Quoted", "Charged"),
        (
            ("Ada", "2024-07-01", "2024-07-10", "90.00", "101.50"),
            ("Bo", "2024-07-02", "2024-07-04", "40.00", "40.00"),
            ("Cy", "2024-07-05", "", "70.00", "65.00"),
        ),
    )
)  # fmt: skip
GUEST, IN, OUT, QUOTED, CHARGED = range(5)


def guests(*numbers: int) -> Match:
    return Match(GUEST, np.isin(np.arange(3), numbers), frozenset((0,)), 1.0, 1, text="x")


@pytest.mark.parametrize(
    ("program", "said", "text"),
    [
        (
            Program(STAYS, Op.DIFFERENCE, (guests(0),), QUOTED, CHARGED), ("11.5",),
            'difference of "Quoted" and "Charged" where Guest has "x"',
        ),
        (
            Program(STAYS, Op.DIFFERENCE, (guests(1),), IN, OUT), ("2 days",),
            'difference of "In" and "Out" where Guest has "x"',
        ),
    ],
)  # fmt: skip
def test_two_columns_of_a_row_are_compared(program, said, text):
    result = execute(program)
    assert result is not None
    assert (result.items, str(program)) == (said, text)
    assert len(result.cells) == 2


def test_columns_of_several_rows_or_of_an_empty_cell_are_not_compared():
    assert execute(Program(STAYS, Op.DIFFERENCE, (guests(0, 1),), QUOTED, CHARGED)) is None
    assert execute(Program(STAYS, Op.DIFFERENCE, (guests(2),), IN, OUT)) is None


@pytest.mark.parametrize(
    ("question", "pairs"),
    [
        ("How much more was Ada charged than she was quoted?", {(QUOTED, CHARGED), (IN, OUT)}),
        ("How many nights did Ada stay?", {(IN, OUT)}),
        ("What was Ada charged?", set()),
    ],
)
def test_columns_are_compared_where_a_question_speaks_of_it(question, pairs, engine):
    vectors = engine.encoder.encode_question(question)
    headers = list(engine.encoder.encode_documents([column.header for column in STAYS.columns] + ["Stays"]))
    facts = TableFacts(0, 1.0, 0.9, 0.9, ((1, 0, 0.9),))
    found = programs_of(asked_table(table_question(question, vectors), STAYS, facts, headers))
    programs = [found.program(number) for number in range(len(found.parts))]
    assert {(p.column, p.order) for p in programs if p.op is Op.DIFFERENCE} == pairs


def matched(question: str) -> dict[str, list[int]]:
    """Rows by what selects them."""
    words = question_words(question)
    return {
        m.text: np.flatnonzero(m.rows).tolist() for m in matches_of(question, words, wording_of(question), SHEET, ())
    }


@pytest.mark.parametrize(
    ("question", "text", "found"),
    [
        ("What did Linden Ltd order?", "linden ltd", [0, 2]),
        ("orders of otter", "otter", [3]),
        ("Which orders have more than 5 units?", "Units > 5", [1, 2, 4]),
        ("orders of at least 7 units", "Units >= 7", [1, 2, 4]),
        ("units between 2 and 8", "Units between 2", [0, 2]),
        ("Which orders are due in February 2024?", "Due = February 2024", [1, 2]),
        ("due after 11 February 2024", "Due > 11 February 2024", [2, 3]),
        ("fällig vor dem 20.02.2024", "Due < 20.02.2024", [0, 1]),
        ("Which orders are paid?", "Paid is yes", [0, 2]),
        ("Which orders have not been paid?", "Paid is no", [1, 3, 4]),
        ("whose money has come in?", "Paid is yes", [0, 2]),
        ("units over seven", "Units > 7", [1, 4]),
        ("no more than four units", "Units <= 4", [0, 3]),
        ("due before 20 February", "Due < 20 February", [0, 1]),
        ("due from the first of March", "Due >= first of March", [3]),
        ("due between January and February", "Due in January and February", [0, 1, 2]),
        ("due in January or March", "Due in January or March", [0, 3]),
        ("What did Linden Ltd and Otter order?", "linden ltd or otter", [0, 2, 3]),
        ("orders of Lindne Ltd", "linden ltd", [0, 2]),
    ],
)
def test_a_question_selects(question, text, found):
    assert matched(question)[text] == found


def test_evidence_selects_a_row():
    words = question_words("who?")
    match = matches_of("who?", words, wording_of("who?"), SHEET, (2,))[-1]
    assert (match.column, np.flatnonzero(match.rows).tolist()) == (-1, [2])


PEOPLE = Sheet.of(
    Table(
        "staff", "Staff", ("No.", "First name", "Surname", "Day", "Contract"),
        (
            ("1", "Ada", "Moss", "Fri", "permanent"),
            ("2", "Ben", "Moss", "Mon", "fixed term"),
            ("3", "Ada", "Reed", "Fri", "permanent"),
        ),
    )
)  # fmt: skip


def test_people_in_two_columns_have_whole_names():
    whole = len(PEOPLE.columns) - 1
    assert PEOPLE.columns[whole].cells == ("Ada Moss", "Ben Moss", "Ada Reed")
    assert [(at.row, at.column) for at in PEOPLE.places(1, whole)] == [(1, 1), (1, 2)]
    found = matches_of("When is Ada Reed in?", question_words("When is Ada Reed in?"), wording_of(""), PEOPLE, ())
    assert [np.flatnonzero(match.rows).tolist() for match in found if match.column == whole][:1] == [[2]]


def test_a_day_in_full_is_found_in_short():
    question = "who is in on Friday?"
    found = matches_of(question, question_words(question), wording_of(question), PEOPLE, ())
    assert np.flatnonzero(found[0].rows).tolist() == [0, 2]


def test_a_value_of_like_meaning_selects(engine):
    rows = (("1", "declined"), ("2", "solicitors"), ("3", "paid"), ("4", "solicitors"))
    cases, question = Sheet.of(Table("claims", "Claims", ("Claim", "Stage"), rows)), "which have gone to lawyers?"
    few = few_values(cases)
    assert [cases.columns[column].cells[row] for column, _, row in few] == ["declined", "solicitors", "paid"]
    vectors = engine.encoder.encode_documents([cases.columns[column].cells[row] for column, _, row in few])
    values = [(column, key, found) for (column, key, _), found in zip(few, vectors, strict=True)]
    (near,) = near_matches(question_words(question), engine.encoder.encode_question(question), cases, values)
    assert (near.text, np.flatnonzero(near.rows).tolist()) == ("Stage is like solicitors", [1, 3])


@pytest.mark.parametrize(
    ("question", "content"),
    [
        ("Was kostet bei uns die Jahreskarte?", ["kostet", "jahreskarte"]),
        ("¿Cuántas cajas de la finca se vendieron?", ["caja", "finca", "vendieron"]),
        ("Which of the tents are sold?", ["tent", "sold"]),
    ],
)
def test_common_words_of_the_question_s_language_say_nothing(question, content):
    assert [word.text for word in question_words(question) if not word.stop] == content


ROTA = Sheet.of(
    Table(
        "rota", "Rota", ("Name", "Starts", "Day", "Phone", "Fee"),
        (
            ("Ada", "09:10", "3 Sep 24", "0151", "10"),
            ("Bo", "18:45", "9 Sep 24", "", "0"),
            ("Cy", "19:30", "10 Sep 24", "0161", "25"),
            ("Di", "06:30", "16 Sep 24", "0114", "5"),
        ),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("who is in after 18:00", ["Bo", "Cy"]),
        ("who is in after six in the evening", ["Bo", "Cy"]),
        ("who starts at ten past nine", ["Ada"]),
        ("who is in between 9 and 10", ["Ada"]),
        ("who was here on the 9th", ["Bo"]),
        ("who was here on Tuesdays", ["Ada", "Cy"]),
        ("who was here after 09/09/24", ["Cy", "Di"]),
        ("who has no phone", ["Bo"]),
        ("who gave us a phone", ["Ada", "Cy", "Di"]),
        ("who pays no fee", ["Bo"]),
    ],
)
def test_times_days_and_empty_cells_select_rows(question, names):
    found = matches_of(question, question_words(question), wording_of(question), ROTA, ())
    chosen = [[ROTA.columns[0].cells[row] for row in np.flatnonzero(match.rows)] for match in found]
    assert names in chosen


def test_the_only_two_rows_that_are_selected_are_compared():
    both = Match(0, np.array([True, False, True, False]), frozenset((0,)), 1.0, 2, "~", text="x")
    gap = execute(Program(ROTA, Op.DIFFERENCE, (both,), 2))
    late = execute(Program(ROTA, Op.DIFFERENCE, (both,), 1))
    assert gap is not None and gap.items == ("7 days",)
    assert late is not None and late.items == ("620 minutes",)


def test_two_rows_of_which_one_is_a_total_are_not_compared():
    both = Match(ORDER, np.array([True, False, False, False, True]), frozenset((0,)), 1.0, 2, "~", text="x")
    assert execute(Program(SHEET, Op.DIFFERENCE, (both,), UNITS)) is None


SHIFTS = Sheet.of(
    Table(
        "shifts",
        "Shifts",
        ("Who", "Start", "End", "Lap"),
        (("Ann", "22:00", "06:00", "4:30"), ("Bo", "09:00", "17:30", "3:45")),
    ),
)


def test_a_shift_over_midnight_and_a_length_that_is_no_time_of_day():
    ann, both = (Match(0, np.array(rows), frozenset((0,)), 1.0, 1, text="x") for rows in ([True, False], [True, True]))
    shift = execute(Program(SHIFTS, Op.DIFFERENCE, (ann,), 1, 2))
    lap = execute(Program(SHIFTS, Op.DIFFERENCE, (both,), 3))
    assert shift is not None and shift.items == ("480 minutes",)
    assert lap is not None and lap.items == ("0:45",)
    found = matches_of("who is in between 21:00 and 2:00", question_words("who is in between 21:00 and 2:00"),
                       wording_of("who is in between 21:00 and 2:00"), SHIFTS, ())  # fmt: skip
    assert [True, False] in [match.rows.tolist() for match in found if match.column == 1]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567891.0, "1234567891"),
        (123456789.55, "123456789.55"),
        (0.1 + 0.2, "0.3"),
        (float("inf"), "inf"),
        (1e15, "1e+15"),
    ],
)
def test_numbers_keep_their_digits(value, text):
    assert number_text(value) == text


def test_the_first_of_the_day_is_found_by_its_time():
    first = execute(Program(ROTA, Op.EXTREME, (), 0, 1))
    assert first is not None and first.items == ("Di",)


def test_two_orders_of_the_same_rows_are_two_answers():
    up, down = (execute(Program(TIED, Op.EXTREME, (), 0, 1, way, -30)) for way in (False, True))
    assert up.items == ("Bo", "Cy", "Ann")
    assert down.items == ("Ann", "Bo", "Cy")
    assert up.key != down.key


@pytest.mark.parametrize(
    ("question", "column", "wanted"),
    [
        ("which suppliers deliver on Tuesdays", 1, [True, True, False]),
        ("who helps on the turnstile", 2, [True, True, False]),
        ("who does tea", 2, [False, False, True]),
    ],
)
def test_a_cell_that_lists_a_value_is_as_good_as_one_that_is_the_value(question, column, wanted):
    sheet = Sheet.of(
        Table(
            "s", "Suppliers", ("Name", "Days", "Helps with"),
            (("Dun", "Tue; Thu", "bar, turnstile"), ("Cold", "Tue", "turnstile"), ("Whin", "Mon", "tea; bar")),
        )
    )  # fmt: skip
    (match,) = [
        one
        for one in matches_of(question, question_words(question), wording_of(question), sheet, [])
        if one.column == column
    ]
    assert (match.rows.tolist(), match.operator, match.share) == (wanted, "=", 1.0)


def test_what_commas_part_is_a_list_only_where_the_items_recur():
    sheet = Sheet.of(Table("t", "Items", ("Item",), (("Lamp",), ("Lamp, large",), ("Chair, oak",), ("Desk",))))
    question = "how many lamps"
    found = matches_of(question, question_words(question), wording_of(question), sheet, [])
    assert [(one.rows.tolist(), one.operator) for one in found] == [
        ([True, False, False, False], "="),
        ([False, True, False, False], "~"),
    ]


PEOPLE_TWICE = Sheet.of(
    Table(
        "hours", "Hours", ("Who", "Hours"),
        (
            ("J. Hill", "2"), ("Joan Hill", "3"), ("Ann Reed", "4"), ("A. Moss", "9"), ("Amy Moss", "1"),
            ("Abe Moss", "1"),
        ),
    )
)  # fmt: skip


@pytest.mark.parametrize("question", ["how many hours did Joan Hill do?", "hours of J. Hill"])
def test_a_person_with_an_initial_is_who_the_column_has_in_full(question):
    words = question_words(question)
    found = matches_of(question, words, wording_of(question), PEOPLE_TWICE, ())
    match = next(one for one in found if one.operator == "=" and len(one.words) == 2)
    assert np.flatnonzero(match.rows).tolist() == [0, 1]
    names = execute(Program(PEOPLE_TWICE, Op.LOOKUP, (match,), 0))
    assert names is not None and names.items == ("Joan Hill",)
    count = execute(Program(PEOPLE_TWICE, Op.DISTINCT, (), 0))
    assert count is not None and count.items == ("5",), "A. Moss may be Amy or Abe"


def test_a_last_row_that_adds_up_is_a_total():
    riders = (("Ann", "3", "1"), ("Bo", "4", "2"), ("Cy", "6", "2"), ("Di", "2", "2"))
    for last, counted in ((("All riders", "15", "7"), False), (("Ed", "15", "9"), True)):
        table = Table("km", "Km", ("Rider", "Jan", "Feb"), (*riders, last))
        assert Sheet.of(table).counted.tolist() == [True, True, True, True, counted]


def test_a_numbered_list_of_three_has_no_total():
    rows = (("1", "North", "10"), ("2", "Middle", "20"), ("3", "South", "30"))
    assert Sheet.of(Table("shelves", "Shelves", ("Id", "Shelf", "Boxes"), rows)).counted.all()


LENT = Sheet.of(
    Table(
        "lent", "Lent", ("Kit", "Back dt", "Done"), (("A", "2025-03-09", ""), ("B", "", "x"), ("C", "2025-03-12", ""))
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("question", "wanted", "at"),
    [
        ("what has not been returned yet", "Back dt is empty", [1]),
        ("what was returned", "Back dt is given", [0, 2]),
        ("which are not finished", "Done is empty", [0, 2]),
    ],
)
def test_what_has_not_ended(question, wanted, at):
    found = matches_of(question, question_words(question), wording_of(question), LENT, [])
    assert [np.flatnonzero(m.rows).tolist() for m in found if m.text == wanted] == [at]


CLAIMS = Sheet.of(
    Table(
        "claims", "Claims", ("Claim", "Status", "Depot"),
        (("C1", "closed", "Ryde"), ("C2", "open", "Cowes"), ("C3", "closed", "Cowes"), ("C4", "paid", "Ryde")),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("question", "wanted", "at"),
    [
        ("claims not closed yet", "Status is not closed", [1, 3]),
        ("which claims aren't in Ryde?", "Depot is not ryde", [1, 2]),
        ("all claims except those in Cowes", "Depot is not cowe", [0, 3]),
        ("which are not closed or paid?", "Status is not closed or paid", [1]),
        ("welche sind nicht in Ryde?", "Depot is not ryde", [1, 2]),
    ],
)
def test_all_but_a_value(question, wanted, at):
    found = matches_of(question, question_words(question), wording_of(question), CLAIMS, [])
    assert [np.flatnonzero(m.rows).tolist() for m in found if m.text == wanted] == [at]
    plain = matches_of("closed claims in Ryde", question_words("closed claims in Ryde"), wording_of(""), CLAIMS, [])
    assert not any(match.operator == "≠" for match in plain)
