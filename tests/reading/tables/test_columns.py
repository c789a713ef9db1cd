"""The reader of columns: what a question asks of a table, with the packaged weights."""

import numpy as np
import pytest

from helios.errors import ModelError
from helios.models.base import find_base_model
from helios.reading.tables.columns import (
    FEATURES,
    FILE,
    MAX_TOKENS,
    ColumnReader,
    TableText,
    TableTokeniser,
    column_features,
)
from helios.reading.tables.programs import OPS, Op
from helios.reading.tables.reader import WEIGHTS, Sheets, plain_programs, table_facts, table_question

SUPPLIERS = TableText(
    "suppliers", ("Supplier", "Contact", "Lead time", "Min. order"),
    ("Ostby Friluft , Korrel Tents", "Kari Ostby , Jan de Wit", "7 wks , 3 wks", "£2,000 , £1,500"), frozenset([0]),
)  # fmt: skip
RIVERS = TableText("Rivers", ("River", "Length", "Mouth"), ("Rhine", "1,230", "North Sea"), frozenset())


@pytest.fixture(scope="module")
def reader():
    return ColumnReader(find_base_model(), WEIGHTS / FILE)


def test_columns_are_found_that_share_no_word_with_the_question(reader):
    """Most of them: it is a small model."""
    staff = TableText(
        "staff list", ("Name", "D.O.B.", "Ext.", "Town", "Salary"),
        ("Marta Brannoch , Ola Lind", "1971-03-04 , 1988-11-30", "41 , 17", "Kilsta , Ravn", "£31,000 , £28,500"),
        frozenset([0]),
    )  # fmt: skip
    asked = {
        "when was Marta born?": "D.O.B.", "which number do I dial for Marta": "Ext.",
        "Where does Marta live?": "Town", "how much does Marta earn?": "Salary",
    }  # fmt: skip
    found = 0
    for question, column in asked.items():
        own, rivers = reader.read(question, [staff, RIVERS])
        found += staff.headers[int(np.argmax(own.asked))] == column
        assert OPS[int(np.argmax(own.op))] is Op.LOOKUP
        assert own.table > rivers.table
    assert found >= 3


def test_readings_are_log_probabilities(reader):
    (one,) = reader.read("How many rivers are there?", [RIVERS])
    for values in (one.op, one.asked, one.ordered, np.array(one.descending)):
        assert np.exp(values).sum() == pytest.approx(1.0, abs=1e-5)
    assert np.exp(one.selected).sum(axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    assert OPS[int(np.argmax(one.op))] in (Op.COUNT, Op.DISTINCT)  # each river stands once: both say how many


def test_a_table_is_read_the_same_alone_and_among_others(reader):
    question = "Where does the Rhine end?"
    (alone,) = reader.read(question, [RIVERS])
    among = reader.read(question, [SUPPLIERS, RIVERS, SUPPLIERS])[1]
    assert np.array_equal(alone.asked, among.asked)


def test_what_does_not_fit_is_left_out():
    wide = TableText("w" * 400, tuple(f"column number {n}" for n in range(60)), ("a value " * 9,) * 60, frozenset())
    found = TableTokeniser(find_base_model()).of("question " * 200, wide)
    assert len(found.ids) <= MAX_TOKENS
    assert 0 < len(found.columns) < 60
    assert found.columns[-1][2] == len(found.ids) - 1


def test_features_follow_the_programs(reader, engine):
    question = "What is the length of the Rhine?"
    asked = table_question(question, engine.encoder.encode_question(question))
    found = plain_programs(asked, table_facts(engine.search(question)), Sheets(engine.corpus, engine.encoder))
    readings = reader.read(question, [TableText.of(one.sheet, one.sets) for one in found])
    for one, reading, features in zip(found, readings, column_features(found, readings), strict=True):
        assert features.shape == (len(one.parts), len(FEATURES))
        for number in range(0, len(one.parts), 17):
            op, _, column, _, _, _ = one.parts[number]
            row = dict(zip(FEATURES, features[number], strict=True))
            assert row["read_op"] == pytest.approx(reading.op[op])
            if 0 <= column < len(reading.asked):
                assert row["read_column"] == pytest.approx(reading.asked[column])
            assert row["read_total"] == pytest.approx(
                row["read_op"] + row["read_column"] + row["read_order"] + row["read_where"], abs=1e-4
            )


def test_a_file_without_heads_is_refused(tmp_path):
    from safetensors.numpy import save_file

    save_file({"other": np.zeros(2, np.float32)}, tmp_path / FILE, {"scale": "2.0"})
    with pytest.raises(ModelError, match=r"head\.column"):
        ColumnReader(find_base_model(), tmp_path / FILE).read("what?", [RIVERS])
