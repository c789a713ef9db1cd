"""The reader of rivals: which of the answers of all readers is right, with the packaged weights."""

import numpy as np
import pytest

from helios.errors import ModelError
from helios.models.base import find_base_model
from helios.reading.choice import WEIGHTS
from helios.reading.rivals import FILE, MAX_TOKENS, Rival, RivalReader, RivalTokeniser
from helios.reading.tables.beside import rival_of
from helios.reading.tables.matching import matches_of, question_words
from helios.reading.tables.programs import Op, Program, execute
from helios.reading.tables.sheet import Sheet
from helios.reading.tables.wording import wording_of
from helios.types import Table

STAFF = Table(
    "staff", "Staff", ("Name", "D.O.B.", "Town", "Salary"),
    (("Marta Brannoch", "1971-03-04", "Kilsta", "31000"), ("Ola Lind", "1988-11-30", "Ravn", "28500")),
    source="office/staff_list.csv",
)  # fmt: skip
MARTA = (
    Rival("1971-03-04", "D.O.B.", "Name Marta Brannoch", "staff list"),
    Rival("Kilsta", "Town", "Name Marta Brannoch", "staff list"),
    Rival("31000", "Salary", "Name Marta Brannoch", "staff list"),
    Rival("2", "number of rows", "", "staff list"),
)


@pytest.fixture(scope="module")
def reader():
    return RivalReader(find_base_model(), WEIGHTS / FILE)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("when was Marta Brannoch born?", "1971-03-04"),
        ("where does Marta Brannoch live?", "Kilsta"),
        ("how many people work here?", "2"),
    ],
)
def test_the_answer_that_fits_the_question_is_the_likeliest(reader, question, answer):
    odds = reader.read(question, MARTA)
    assert MARTA[int(np.argmax(odds))].answer == answer


def test_a_question_about_something_else_is_less_likely_answered(reader):
    own, other = (
        reader.read(question, MARTA) for question in ("where does Marta live?", "what is the Wi-Fi password?")
    )
    assert np.logaddexp.reduce(own) > np.logaddexp.reduce(other)


def test_rivals_say_how_an_answer_comes_about():
    sheet = Sheet.of(STAFF)
    question = "what does Marta earn?"
    words = question_words(question)
    matches = matches_of(question, words, wording_of(question), sheet, [1])
    marta = next(match for match in matches if match.text == "marta")
    program = Program(sheet, Op.LOOKUP, (marta,), column=3)
    assert rival_of(program, execute(program)) == Rival("31000", "Salary", "Name Marta Brannoch", "staff_list Staff")
    (row,) = (match for match in matches if match.column < 0)
    program = Program(sheet, Op.LOOKUP, (row,), column=3)
    assert rival_of(program, execute(program)).where == "Name Ola Lind D.O.B. 1988-11-30"
    program = Program(sheet, Op.EXTREME, (), column=0, order=3, descending=True)
    assert rival_of(program, execute(program)).done == "Name of largest Salary"
    program = Program(sheet, Op.DIFFERENCE, (marta,), column=3, order=1)
    assert rival_of(program, execute(Program(sheet, Op.COUNT, (marta,)))).done == "difference of Salary and D.O.B."


def test_words_of_a_text_are_shown_with_those_around_them():
    text = "Bikes that nobody fetches within 21 days of our message cost two pounds a day to store in the back yard."
    start = text.index("two pounds")
    rival = Rival.in_text(text, start, start + len("two pounds"), title="Workshop")
    assert (rival.answer, rival.done, rival.title) == ("two pounds", "text", "Workshop")
    assert (
        rival.where == "nobody fetches within 21 days of our message cost two pounds a day to store in the back yard."
    )


def test_less_is_shown_where_words_are_not_parted():
    before, after = "客人早到时先请他们在吧台坐下。" * 20, "打烊前检查门窗。" * 20
    text = f"前厅规定：{before}蛋糕切分费每位八元，自带酒水不收开瓶费。{after}"
    start = text.index("八元")
    rival = Rival.in_text(text, start, start + 2, title="")
    assert "蛋糕切分费每位八元，自带酒水不收开瓶费" in rival.where and len(rival.where) < 60


def test_what_does_not_fit_is_left_out(reader):
    long = Rival("a value " * 9, "column " * 20, "somewhere " * 30, "title " * 20)
    ids, places = RivalTokeniser(find_base_model()).of("question " * 200, [long] * 40)
    assert len(ids) <= MAX_TOKENS
    assert 0 < len(places) < 40
    assert len(reader.read("question " * 200, [long] * 40)) == len(places)
    assert not len(reader.read("what?", []))


def test_a_file_without_a_head_is_refused(tmp_path):
    from safetensors.numpy import save_file

    save_file({"other": np.zeros(2, np.float32)}, tmp_path / FILE, {"scale": "2.0"})
    with pytest.raises(ModelError, match=r"head\.rival"):
        RivalReader(find_base_model(), tmp_path / FILE).read("what?", MARTA)
