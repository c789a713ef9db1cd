"""Programs of what the reader of columns hears where no word of a list says it."""

import numpy as np
import pytest

from helios.reading.tables.candidates import TableFacts, asked_table, programs_of
from helios.reading.tables.columns import ColumnReading
from helios.reading.tables.heard import NOTHING, Heard, heard_in
from helios.reading.tables.programs import OPS, Op, execute
from helios.reading.tables.reader import table_question
from helios.reading.tables.sheet import Sheet
from helios.types import Table

JOBS = Sheet.of(Table(
    "jobs", "", ("Client", "Fee", "Received", "Begun", "Done", "Kiln"),
    (
        ("Corfe hospice", "£5,400", "£2,000", "2024-03-01", "", "small"),
        ("Bere chapel", "£900", "£900", "2024-05-14", "2024-06-02", "large"),
        ("Wool mill", "£1,250", "£0", "2024-04-20", "2024-05-30", "small"),
    ),
))  # fmt: skip


def results(engine, question, heard):
    """The texts of what all programs give, by their operation."""
    asked = table_question(question, engine.encoder.encode_question(question))
    headers = list(engine.encoder.encode_documents([*(column.header for column in JOBS.columns), "jobs"]))
    sizes = [(5, key, vectors) for key, vectors in enumerate(engine.encoder.encode_documents(["small", "large"]))]
    table = asked_table(asked, JOBS, TableFacts(0, 1.0, 0.9, 0.9, ()), headers, sizes)
    found = programs_of(table, heard)
    given = [(found.program(number), execute(found.program(number))) for number in range(len(found.parts))]
    assert np.isfinite(found.features).all()
    return {(program.op, result.text) for program, result in given if result is not None}


@pytest.mark.parametrize(
    ("question", "heard", "expected"),
    [
        ("what does the hospice still have to pay", Heard(frozenset([Op.DIFFERENCE])), (Op.DIFFERENCE, "3400")),
        ("clients whose work is still going on", Heard(selecting=(4,)), (Op.LOOKUP, "Corfe hospice")),
        ("jobs that are through, number", Heard(frozenset([Op.COUNT]), (4,)), (Op.COUNT, "2")),
        ("customers who owe us something", Heard(selecting=(1, 2)), (Op.LOOKUP, "Corfe hospice, Wool mill")),
        ("Wool mill dearer, or Bere chapel?", Heard(frozenset([Op.WHETHER])), (Op.WHETHER, "yes")),
    ],
)
def test_what_is_heard_makes_programs(engine, question, heard, expected):
    assert expected in results(engine, question, heard)
    assert expected not in results(engine, question, NOTHING)


def test_days_are_compared_as_earlier_and_later(engine):
    assert (Op.WHETHER, "no") in results(engine, "was the Wool mill begun before Corfe hospice?", NOTHING)
    assert (Op.WHETHER, "yes") in results(engine, "was the Wool mill begun after Corfe hospice?", NOTHING)


def reading(*, table, ops=(Op.LOOKUP,), selected=()):
    op = np.full(len(OPS), -9.0, np.float32)
    op[[OPS.index(one) for one in ops]] = np.log(1 / len(ops))
    chances = np.array(selected, np.float32)
    return ColumnReading(
        table, op, np.zeros(3, np.float32), np.zeros(3, np.float32), (-0.7, -0.7),
        np.log(np.stack([1 - chances, chances], axis=1)) if selected else np.zeros((0, 2), np.float32),
    )  # fmt: skip


def test_what_is_likely_is_heard_and_only_of_the_table_that_is_meant():
    said = reading(table=1.0, ops=(Op.SUM, Op.COUNT), selected=(0.4, 0.1, 0.9))
    assert heard_in(said) == Heard(frozenset([Op.SUM, Op.COUNT]), (2, 0))
    assert heard_in(reading(table=-6.0, ops=(Op.SUM,), selected=(0.9,))) == NOTHING
    assert heard_in(reading(table=1.0, ops=(Op.SUM,))) == Heard(frozenset([Op.SUM]))
