"""Codes that are an answer come with what they stand for, where another table says so for certain."""

from dataclasses import replace

import pytest

from helios.engine import Engine
from helios.reading.base import Answer, Citation, Support
from helios.reading.citations import checked, parts_of
from helios.reading.tables.joins import Joins
from helios.reading.tables.naming import is_code, with_names
from helios.reading.tables.programs import Op, Program, execute
from helios.reading.tables.sheet import Sheet
from helios.types import SegmentId, Table

JOBS = Table(
    "jobs", "Jobs", ("Job", "By", "Hours"), (("1", "KV", "5"), ("2", "MB", "2"), ("3", "FH", "3"), ("4", "KV", "1"))
)  # fmt: skip
STAFF = (("KV", "Kasia Venn"), ("MB", "Marta Brand"), ("FH", "Farah Hobday"))
ORDERS = Table(
    "orders", "Orders", ("Order", "SKU", "Pieces"),
    (("9001", "B14", "4"), ("9002", "B15", "10"), ("9003", "B14", "7"), ("9004", "C02", "1")),
)  # fmt: skip


def beside(table: Table, header: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> Sheet:
    tables = {table.table_id: table, "other": Table("other", "Other", header, rows)}

    class Tables(dict):  # type: ignore[type-arg]
        def ids(self):
            return iter(self)

    class Corpus:
        segment_count = 10

        def __init__(self):
            self.tables = Tables(tables)

    sheet = Sheet.of(table)
    return sheet.joining(Joins(Corpus(), lambda table_id: Sheet.of(tables[table_id])).of(sheet))


def most(sheet: Sheet, column: int, order: int) -> Program:
    return Program(sheet, Op.EXTREME, (), column, order, descending=True)


def said(program: Program) -> str | None:
    result = execute(program)
    assert result is not None
    named = with_names(program, result)
    return None if named is None else named.text


def test_initials_are_said_with_the_name_and_its_cell():
    program = most(beside(JOBS, ("Short", "Name"), STAFF), 1, 2)
    named = with_names(program, execute(program))
    assert named.text == "Kasia Venn (KV)"
    assert [(at.table.table_id, at.row, at.text) for at in named.places] == [("other", 0, "Kasia Venn")]


def test_people_in_two_columns_are_said_by_their_whole_names():
    rows = tuple((short, *name.split()) for short, name in STAFF)
    assert said(most(beside(JOBS, ("Short", "First name", "Last name"), rows), 1, 2)) == "Kasia Venn (KV)"


@pytest.mark.parametrize(
    ("header", "cells", "name"),
    [
        (("SKU", "Category", "Product name"), ("Bread", "Spelt", "Bread", "Rye", "Cake", "Plum"), "Rye (B15)"),
        (("SKU", "Product"), ("Spelt loaf", "Rye loaf", "Plum cake"), "Rye loaf (B15)"),
        (("SKU", "Category"), ("Bread", "Bread", "Cake"), None),  # of several the same
        (("SKU", "Product", "Baker"), ("Spelt", "Ann", "Rye", "Bob", "Plum", "Cy"), None),  # which?
        (("SKU", "Price"), ("3.20", "2.90", "4.00"), None),
    ],
)
def test_only_what_tells_the_rows_apart_is_a_name(header, cells, name):
    size = len(header) - 1
    rows = tuple((sku, *cells[at * size : (at + 1) * size]) for at, sku in enumerate(("B14", "B15", "C02")))
    assert said(most(beside(ORDERS, header, rows), 1, 2)) == name


def test_what_is_computed_has_no_name():
    customers = tuple((str(number), name) for number, name in enumerate(("Ann Marsh", "Bob Dean", "Cy Holt"), 101))
    orders = Table("orders", "Orders", ("Order", "Customer"), (("1", "101"), ("2", "102"), ("3", "103"), ("4", "101")))
    sheet = beside(orders, ("Customer", "Name"), customers)
    assert said(Program(sheet, Op.DISTINCT, (), 1)) is None
    assert said(Program(sheet, Op.MODE, (), 1, descending=True)) == "Ann Marsh (101)"


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        *((code, True) for code in ("KV", "B14", "1042", "T-9")),
        *((word, False) for word in ("2022", "Ravi", "李娜", "NORTHERN", "Unit 4")),
    ],
)
def test_what_a_code_is(cell, code):
    assert is_code(cell) is code


def test_an_answer_of_code_and_name_is_checked_against_both_cells(sample_index):
    with Engine.open(sample_index) as engine:
        tables = map(engine.corpus.tables.get, engine.corpus.tables.ids())
        table = next(table for table in tables if len(table.header) > 1)
        cells = table.rows[0][:2]
        cited = tuple(
            Citation(cell, SegmentId(table.table_id, 0), column, end=len(cell)) for column, cell in enumerate(cells)
        )
        text = f"{cells[1]} ({cells[0].replace(' ', '-')})"
        answer = Answer("who?", text, cited, 0.8)
        assert checked(answer, engine.corpus).support is Support.CHECKED
        assert checked(replace(answer, citations=cited[:1]), engine.corpus).support is Support.CITED


def test_names_and_codes_are_told_apart():
    assert parts_of("Kasia Venn (KV), Marta Brand (MB)") == ["Kasia Venn", "KV", "Marta Brand", "MB"]
    assert parts_of("Paris, Texas") == parts_of("Apollo 11 (first landing)") == []
