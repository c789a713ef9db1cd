"""Programs of the reader of tables as SQL, on a real SQLite database."""

import sqlite3
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.config import Config
from helios.errors import QueryFailed
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.reading.tables.matching import Match
from helios.reading.tables.programs import Op, Program, Result, execute
from helios.reading.tables.reader import Sheets
from helios.routing.formulation.base import Candidate
from helios.routing.formulation.generator import SqlGenerator
from helios.routing.formulation.sql import render
from helios.routing.omni import OmniEngine
from helios.routing.programs import stored as stored_module
from helios.routing.programs.compiling import Inexpressible, plan_of
from helios.routing.programs.formulator import ProgramFormulator, says
from helios.routing.programs.stored import StoredTables
from helios.routing.programs.together import SURE, Together, of_programs, weighed
from helios.sources.registry import Registry

YARD = """
    CREATE TABLE skipper (skp_id INTEGER PRIMARY KEY, skp_nm TEXT, home_port TEXT);
    CREATE TABLE landing (ld_id INTEGER PRIMARY KEY, skp_id INTEGER REFERENCES skipper (skp_id), landed TEXT,
                          species TEXT, gross_kg REAL, net_kg REAL, price INTEGER);
    INSERT INTO skipper VALUES (1, 'Ines Prado', 'Vigo'), (2, 'Bo Lind', 'Skagen'), (3, 'Una Holt', 'Skagen');
    INSERT INTO landing VALUES
        (1, 1, '2024-03-02', 'hake', 120.0, 110.5, 410), (2, 1, '2024-03-09', 'mackerel', 90.0, 88.0, 150),
        (3, 2, '2024-03-21', 'herring', 300.0, 296.0, 240), (4, 3, '2024-04-03', 'hake', 60.0, 55.0, NULL),
        (5, 2, '2024-04-11', 'plaice', 45.0, 41.0, 205);
"""


@contextmanager
def opened(folder, script):
    with sqlite3.connect(folder / "small.sqlite") as database:
        database.executescript(script)
    database.close()
    (folder / "sources.yaml").write_text("sources:\n  small:\n    kind: sqlite\n    path: small.sqlite\n")
    with Registry.open(folder / "sources.yaml") as registry:
        yield registry.source("small")


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("yard"), YARD) as source:
        yield source


@pytest.fixture(scope="module")
def tables(yard, encoder):
    stored = StoredTables.of(yard, yard.descriptor().schema)
    return stored, Sheets(stored, encoder)


def where(sheet, column, holds, operator="=", text="", word=0):
    at = [one.header for one in sheet.columns].index(column)
    rows = np.array([holds(cell) for cell in sheet.columns[at].cells], bool)
    return Match(at, rows, frozenset((word,)), 1.0, 1, operator, text)


def sql_of(program, tables):
    stored, sheets = tables
    plan = plan_of(program, stored, sheets.joins.references(program.sheet.table.table_id))
    return render(plan)


CASES = [
    (Op.COUNT, {}, [("species", "hake")], 'SELECT COUNT(*) FROM "landing" WHERE "species" = \'hake\''),
    (Op.LOOKUP, {"column": "landed"}, [("species", "plaice")],
     'SELECT "landed" FROM "landing" WHERE "species" = \'plaice\''),
    (Op.DISTINCT, {"column": "species"}, [], 'SELECT COUNT(DISTINCT "species") FROM "landing"'),
    (Op.SUM, {"column": "gross_kg"}, [("species", "hake")],
     'SELECT SUM("gross_kg") FROM "landing" WHERE "species" = \'hake\''),
    (Op.AVERAGE, {"column": "net_kg"}, [], 'SELECT AVG("net_kg") FROM "landing"'),
    (Op.EXTREME, {"column": "species", "order": "gross_kg", "descending": True}, [],
     'SELECT "species" FROM "landing" ORDER BY "gross_kg" DESC LIMIT 1'),
    (Op.EXTREME, {"column": "species", "order": "price"}, [],
     'SELECT "species" FROM "landing" WHERE "price" IS NOT NULL ORDER BY "price" LIMIT 1'),
    (Op.MODE, {"column": "species", "descending": True}, [],
     'SELECT "species" FROM "landing" GROUP BY "species" ORDER BY COUNT(*) DESC LIMIT 1'),
    (Op.TOP_SUM, {"column": "skp_nm", "order": "net_kg", "descending": True}, [],
     'SELECT "skipper"."skp_nm" FROM "landing" JOIN "skipper" ON "landing"."skp_id" = "skipper"."skp_id" '
     'GROUP BY "skipper"."skp_nm" ORDER BY SUM("landing"."net_kg") DESC LIMIT 1'),
    (Op.COUNT, {}, [("home_port", "Skagen")],
     'SELECT COUNT(*) FROM "landing" JOIN "skipper" ON "landing"."skp_id" = "skipper"."skp_id" '
     'WHERE "skipper"."home_port" = \'Skagen\''),
    (Op.DIFFERENCE, {"column": "gross_kg", "order": "net_kg"}, [("species", "herring")],
     'SELECT "gross_kg" - "net_kg" FROM "landing" WHERE "species" = \'herring\''),
    (Op.DIFFERENCE, {"column": "gross_kg"}, [("species", "herring"), ("species", "plaice")],
     'SELECT ABS((SELECT "gross_kg" FROM "landing" WHERE "species" = \'herring\') - '
     '(SELECT "gross_kg" FROM "landing" WHERE "species" = \'plaice\'))'),
]  # fmt: skip


@pytest.mark.parametrize(("op", "what", "values", "expected"), CASES)
def test_a_program_is_said_in_sql_that_gives_its_result(op, what, values, expected, yard, tables):
    sheet = tables[1].joined("landing")
    at = {one.header: number for number, one in enumerate(sheet.columns)}
    matches = tuple(
        where(sheet, column, lambda cell, value=value: cell == value, text=value, word=number)
        for number, (column, value) in enumerate(values)
    )
    named = {name: at[value] if name != "descending" else value for name, value in what.items()}
    program = Program(sheet, op, matches, **named)
    text = sql_of(program, tables)
    assert text == expected
    assert says(yard.execute(NativeQuery(Language.SQL, text)), execute(program))


def test_comparisons_are_said_with_the_number_of_the_question_or_with_the_ends_of_what_is_meant(tables):
    sheet = tables[1].joined("landing")
    heavy = where(sheet, "gross_kg", lambda cell: float(cell) > 80, ">", "gross_kg > 80")
    march = where(sheet, "landed", lambda cell: cell < "2024-04", "between", "landed is in march")
    both = Program(sheet, Op.COUNT, (heavy, march))
    assert sql_of(both, tables).endswith('"gross_kg" > 80 AND "landed" <= \'2024-03-21\'')


def test_what_no_plan_can_say_is_left_out(tables):
    sheet = tables[1].joined("landing")
    by_row = Match(-1, np.arange(sheet.size) == 0, frozenset(), 0.0, 1, "row", "row 1")
    with pytest.raises(Inexpressible):
        sql_of(Program(sheet, Op.LOOKUP, (by_row,), column=2), tables)
    second = Program(sheet, Op.EXTREME, (), column=3, order=4, place=2)
    with pytest.raises(Inexpressible):
        sql_of(second, tables)


cells = st.sampled_from(["red", "green", "blue", "amber"])
rows = st.lists(st.tuples(cells, st.none() | st.integers(-50, 50), st.integers(0, 9)), min_size=3, max_size=12)


@settings(max_examples=40, deadline=None)
@given(rows=rows, op=st.sampled_from([Op.COUNT, Op.LOOKUP, Op.DISTINCT, Op.SUM, Op.AVERAGE, Op.EXTREME]),
       descending=st.booleans(), value=cells)  # fmt: skip
def test_sql_gives_what_the_program_gives(rows, op, descending, value, tmp_path_factory, encoder):
    folder = tmp_path_factory.mktemp("any")
    shown = ", ".join(f"({n}, '{a}', {'NULL' if b is None else b}, {c})" for n, (a, b, c) in enumerate(rows))
    script = "CREATE TABLE t (n INTEGER PRIMARY KEY, colour TEXT, score INTEGER, size INTEGER);"
    script += f"INSERT INTO t VALUES {shown};"
    with opened(folder, script) as source:
        stored = StoredTables.of(source, source.descriptor().schema)
        sheet = Sheets(stored, encoder).sheet("t")
        chosen = where(sheet, "colour", lambda cell: cell == value, text=value)
        if not chosen.rows.any():
            return
        column, order = (1, 2) if op is Op.EXTREME else (2, -1)
        program = Program(sheet, op, (chosen,), -1 if op is Op.COUNT else column, order, descending)
        result = execute(program)
        if result is not None and sheet.columns[2].kind == "number":
            query = NativeQuery(Language.SQL, render(plan_of(program, stored, [])))
            assert says(source.execute(query), result), (query.text, result)


def test_a_database_that_is_too_large_is_not_read(yard, monkeypatch):
    schema = yard.descriptor().schema
    assert len(StoredTables.of(yard, schema)) == 2
    monkeypatch.setattr(stored_module, "MOST_CELLS", 40)
    assert StoredTables.of(yard, schema) is None
    unknown = replace(schema, tables=tuple(replace(table, row_count=None) for table in schema.tables))
    assert StoredTables.of(yard, unknown) is None


def test_a_question_that_shares_no_word_with_the_columns_finds_them(yard, encoder):
    best = ProgramFormulator(encoder).formulate("what kind of fish was the heaviest catch?", yard)[0]
    assert yard.execute(best.query).rows == (("herring",),)


def test_tables_are_read_again_when_they_are_no_longer_fresh(yard, encoder, monkeypatch):
    asked = []

    class Counted:
        name, descriptor, find_values = yard.name, yard.descriptor, yard.find_values

        def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
            asked.append(query.text)
            return yard.execute(query, limits)

    formulator = ProgramFormulator(encoder)
    reading = 'SELECT "skp_id", "skp_nm", "home_port" FROM "skipper"'
    formulator.formulate("who lands in Vigo?", Counted())
    formulator.formulate("who lands in Skagen?", Counted())
    assert asked.count(reading) == 1
    monkeypatch.setattr("helios.routing.programs.formulator.FRESH", -1.0)
    formulator.formulate("who lands in Vigo?", Counted())
    assert asked.count(reading) == 2


def candidate(text, confidence, columns=1.0):
    return Candidate(NativeQuery(Language.SQL, text), confidence, "", {"columns": columns})


def test_agreement_makes_sure_and_disagreement_leaves_what_is_left():
    written, computed = [candidate("a", 0.6)], [candidate("b", 0.6)]
    (both,) = weighed(written, computed, ["[1]", "[1]"])
    assert both.query.text == "a" and both.confidence == pytest.approx(0.84)
    one, other = weighed(written, computed, ["[1]", "[2]"])
    assert one.confidence == other.confidence == pytest.approx(0.375)
    first, second = weighed([candidate("a", 0.3)], [candidate("b", 0.8)], ["[1]", "[2]"])
    assert (first.query.text, second.query.text) == ("b", "a") and first.confidence < 0.8 and second.confidence < 0.3


@given(st.lists(st.floats(0, 1), min_size=1, max_size=3), st.lists(st.floats(0, 1), min_size=1, max_size=3), st.data())
def test_chances_are_chances(written, computed, data):
    gives = data.draw(st.lists(st.sampled_from(["[1]", "[2]", ""]), min_size=6, max_size=6))
    first = [candidate(f"w{n}", chance) for n, chance in enumerate(written)]
    second = [candidate(f"c{n}", chance) for n, chance in enumerate(computed)]
    found = weighed(first, second, gives[: len(first) + len(second)])
    assert all(0.0 <= one.confidence <= 1.0 for one in found)
    assert [one.confidence for one in found] == sorted((one.confidence for one in found), reverse=True)


class Fixed:
    def __init__(self, *candidates):
        self.candidates, self.asked = list(candidates), 0

    def formulate(self, question, source):
        self.asked += 1
        return self.candidates


def test_programs_are_not_asked_where_the_words_are_sure_and_give_way_to_several_columns(yard):
    computed = Fixed(candidate('SELECT "species" FROM "landing" LIMIT 1', 0.8))
    sure = candidate('SELECT "skp_nm" FROM "skipper"', SURE)
    assert Together(Fixed(sure), computed).formulate("?", yard) == [sure] and not computed.asked
    two = candidate('SELECT "skp_nm", "home_port" FROM "skipper"', 0.5, columns=1.58)
    assert Together(Fixed(two), computed).formulate("?", yard) == [two] and not computed.asked
    assert Together(Fixed(), computed).formulate("?", yard)[0].confidence == pytest.approx(of_programs(0.8))
    (first, second) = Together(Fixed(two), computed, trust=lambda chance: chance / 2, several=True).formulate("?", yard)
    assert {first.query.text, second.query.text} == {two.query.text, computed.candidates[0].query.text}


def test_what_several_readers_ask_is_run_once(yard):
    class Counting:
        name, kind, language = yard.name, yard.kind, yard.language
        descriptor, find_values = yard.descriptor, yard.find_values
        ran = []

        def execute(self, query, limits=None):
            self.ran.append(query.text)
            return yard.execute(query, limits)

    good, bad = candidate('SELECT "species" FROM "landing"', 0.5), candidate("SELECT nothing", 0.6)
    inner = Together(Fixed(good, bad), Fixed(good, bad))
    found = Together(Fixed(bad), inner, several=True).formulate("?", source := Counting())
    assert {one.query.text for one in found} == {good.query.text, bad.query.text}
    assert sorted(source.ran) == sorted((good.query.text, bad.query.text))


def test_a_table_that_cannot_be_read_costs_no_written_query(yard, encoder):
    class Closed:
        name, descriptor, find_values = yard.name, yard.descriptor, yard.find_values

        def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
            if query.text.startswith('SELECT "ld_id"'):
                raise QueryFailed("permission denied for table landing")
            return yard.execute(query, limits)

    class Broken:
        def formulate(self, question, source):
            raise ZeroDivisionError

    unsure = candidate('SELECT "skp_nm" FROM "skipper"', 0.7)
    formulator = ProgramFormulator(encoder)
    assert formulator.formulate("who lands in Vigo?", Closed()) == []
    assert Together(Fixed(unsure), formulator).formulate("who lands in Vigo?", Closed()) == [unsure]
    assert Together(Fixed(unsure), Broken()).formulate("?", yard) == [unsure]


def test_values_and_items_are_compared_as_a_person_reads_them():
    def rows(*of):
        return ResultSet(("x",), of)

    assert says(rows((12,)), Result(("12",), (), 12.0))
    assert says(rows((91.3603604,)), Result(("91.36",), (), 91.3603604))
    assert says(rows(("Ada", "Finn"), (None, None)), Result(("ada finn",), ()))
    assert not says(rows(("b",), ("a",)), Result(("a", "b"), (), ordered=True))


def test_the_layer_reads_databases_as_tables_unless_it_is_told_not_to(yard):
    config = Config.model_validate({"advanced": {"routing": {"tables": False}}})
    with OmniEngine.over(lambda: [yard], config) as plain, OmniEngine.over(lambda: [yard], Config()) as engine:
        assert isinstance(plain.interrogator.formulators[Language.SQL], SqlGenerator)
        assert isinstance(engine.interrogator.formulators[Language.SQL], Together)
