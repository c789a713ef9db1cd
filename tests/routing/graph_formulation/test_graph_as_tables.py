"""A property graph read as tables: plans over it in Cypher beside the same plans in SQL, and questions."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.executors.base import Language
from helios.executors.values import GraphNode, Value
from helios.routing.formulation.cypher import render_cypher
from helios.routing.formulation.generators import open_generators
from helios.routing.formulation.graph_tables import END, KEY, START, GraphTables
from helios.routing.formulation.plan import (
    ROWS,
    Aggregate,
    ColumnRef,
    Computed,
    Condition,
    Day,
    Join,
    Operator,
    Order,
    Plan,
    PlanError,
    SetOperation,
    Sign,
    Term,
)
from helios.routing.formulation.schema import SchemaView
from helios.routing.formulation.sql import render
from helios.routing.formulation.table_cypher import TableCypherGenerator
from helios.routing.programs.formulator import ProgramFormulator
from helios.routing.programs.stored import StoredTables
from helios.sources.descriptor import Column, GraphSchema, NodeLabel, RelationshipType
from helios.sources.property_graph import PropertyGraphSource

KILNS = [
    ("k1", "Kiln", {"name": "Old Bess", "fuel": "wood", "built": 1962, "litres": 900.0, "electric": False}),
    ("k2", "Kiln", {"name": "Spark", "fuel": "power", "built": 2009, "litres": 210.5, "electric": True}),
    ("k3", "Kiln", {"name": "Little Owl", "fuel": "gas", "built": 1998, "litres": 340.0, "electric": False}),
    ("p1", "Potter", {"name": "Ines Rook", "joined": "2019-03-04", "village": "Harl"}),
    ("p2", "Potter", {"name": "Tam Oduya", "joined": "2021-11-20", "village": "Harl"}),
    ("p3", "Potter", {"name": "Wil Stent", "joined": "2021-05-02", "village": "Dunn"}),
    ("p4", "Potter", {"name": "Ada Quill", "joined": "2023-01-15", "village": "Dunn"}),
    ("w1", "Pot", {"title": "Moon jar", "price": 120, "weight": 4.5}),
    ("w2", "Pot", {"title": "Ash bowl", "price": 45, "weight": 1.2}),
    ("w3", "Pot", {"title": "Blue ewer", "price": 85, "weight": 2.0}),
    ("w4", "Pot", {"title": "Salt pig", "price": 30, "weight": 1.1}),
    ("w5", "Pot", {"title": "Owl cup", "price": 18, "weight": 0.4}),
]
LINKS = [
    ("p1", "THREW", "w1", {"hours": 6}), ("p1", "THREW", "w2", {"hours": 2}), ("p2", "THREW", "w3", {"hours": 4}),
    ("p3", "THREW", "w4", {"hours": 1}), ("p1", "THREW", "w5", {"hours": 1}),
    ("w1", "FIRED_IN", "k1", {"cone": 10, "glaze": "celadon"}),
    ("w2", "FIRED_IN", "k1", {"cone": 9, "glaze": "tenmoku"}), ("w3", "FIRED_IN", "k2", {"cone": 6, "glaze": "shino"}),
    ("w4", "FIRED_IN", "k1", {"cone": 10, "glaze": "celadon"}), ("p2", "TAUGHT", "p3", {"since": 2021}),
    ("p1", "TAUGHT", "p2", {"since": 2020}),
]  # fmt: skip
ENDS = {"THREW": ("Potter", "Pot"), "FIRED_IN": ("Pot", "Kiln"), "TAUGHT": ("Potter", "Potter")}


@pytest.fixture(scope="module")
def pottery(imported: Callable[..., PropertyGraphSource]) -> PropertyGraphSource:
    return imported(KILNS, LINKS)


@pytest.fixture(scope="module")
def tables(pottery: PropertyGraphSource) -> GraphTables:
    schema = pottery.descriptor().schema
    assert isinstance(schema, GraphSchema)
    return GraphTables.of(schema)


@pytest.fixture(scope="module")
def mirror() -> Iterator[sqlite3.Connection]:
    """The same rows in SQLite, by the same names."""
    database = sqlite3.connect(":memory:", check_same_thread=False)
    for label in ("Kiln", "Potter", "Pot"):
        rows = [(key, properties) for key, own, properties in KILNS if own == label]
        _table(database, label, [{KEY: key, **properties} for key, properties in rows])
    for type_ in ENDS:
        rows = [{START: a, END: b, **more} for a, own, b, more in LINKS if own == type_]  # type: ignore[misc]
        _table(database, type_, rows)
    yield database
    database.close()


def _table(database: sqlite3.Connection, name: str, rows: Sequence[dict[str, object]]) -> None:
    columns = ", ".join(f'"{column}"' for column in rows[0])
    database.execute(f'CREATE TABLE "{name}" ({columns})')
    places = ", ".join("?" * len(rows[0]))
    database.executemany(f'INSERT INTO "{name}" VALUES ({places})', [tuple(row.values()) for row in rows])


def column(text: str) -> ColumnRef:
    return ColumnRef(*text.split("."))


def term(text: str, aggregate: Aggregate | None = None, *, distinct: bool = False) -> Term:
    return Term(column(text), aggregate, distinct)


def joined(link: str, *ends: str) -> tuple[Join, ...]:
    """From a link to its ends, which are the tables that are named."""
    start, end = ENDS[link]
    keys = {start: ColumnRef(link, START), end: ColumnRef(link, END)}
    return tuple(Join(keys[one], ColumnRef(one, KEY)) for one in ends)


def where(text: str, operator: Operator, *values: Value, query: Plan | None = None) -> tuple[Condition, ...]:
    return (Condition(term(text), operator, values, query),)


def plan(select: str, *conditions: tuple[Condition, ...], joins: tuple[Join, ...] = (), **more: object) -> Plan:
    """A plan of columns, "#" for the number of rows; the root is the first join's table or the first column's."""
    terms = [ROWS if one == "#" else term(one) for one in select.split()]
    root = joins[0].left.table if joins else next(one.column.table for one in terms if one.column is not None)
    return Plan(root, tuple(terms), joins, conditions).with_(**more)


def number(table: str, *conditions: tuple[Condition, ...], of: Term = ROWS) -> Plan:
    return Plan(table, (of,), where=conditions)


LT, GT, EQ, IN, NOT_IN = Operator.LT, Operator.GT, Operator.EQ, Operator.IN, Operator.NOT_IN
BY_POTTER = joined("THREW", "Potter")
THREW = joined("THREW", "Potter", "Pot")
FIRED = (*THREW, Join(ColumnRef("Pot", KEY), ColumnRef("FIRED_IN", START)))
FIRED_IN_KILNS = (*FIRED, Join(ColumnRef("FIRED_IN", END), ColumnRef("Kiln", KEY)))
OF_POTTERS = (
    Join(ColumnRef("Potter", KEY), ColumnRef("THREW", START)),
    Join(ColumnRef("THREW", END), ColumnRef("Pot", KEY)),
)
POTTERS = (ColumnRef("Potter", KEY),)
HOURS, PRICE = term("THREW.hours", Aggregate.SUM), "Pot.price"
MEAN_PRICE, MEAN_HOURS = term(PRICE, Aggregate.AVG), term("THREW.hours", Aggregate.AVG)
ASH_BOWL = plan(PRICE, where("Pot.title", EQ, "Ash bowl"))
OF_TAM = plan("Potter.village", where("Potter.name", EQ, "Tam Oduya"))
EARLY = plan("Potter.village", where("Potter.joined", LT, "2020-01-01"))
SHORT = plan("Potter.village", where("THREW.hours", LT, 3), joins=BY_POTTER, distinct=True)
FIRED_POTS = Plan("FIRED_IN", (Term(ColumnRef("FIRED_IN", START)),))
BUSY = Plan("THREW", (Term(ColumnRef("THREW", START)),), group=(ColumnRef("THREW", START),),
            having=(Condition(ROWS, GT, (2,)),))  # fmt: skip
DEAR, NONE = where(PRICE, GT, 40), where(PRICE, GT, 9999)
PLANS = {
    "a property": plan("Kiln.name", where("Kiln.fuel", EQ, "gas")),
    "a flag": plan("Kiln.name", where("Kiln.electric", EQ, True)),
    "a range": plan("Pot.title Pot.price", where(PRICE, Operator.BETWEEN, 40, 90)),
    "a part": plan("Kiln.name", where("Kiln.name", Operator.CONTAINS, "owl")),
    "not a part": plan("Pot.title", where("Pot.title", Operator.NOT_CONTAINS, "OWL")),
    "a beginning": plan("Pot.title", where("Pot.title", Operator.STARTS, "moon")),
    "one of several": plan("Kiln.name", where("Kiln.fuel", IN, "gas", "wood")),
    "none of several": plan("Kiln.name", where("Kiln.fuel", NOT_IN, "gas", "wood")),
    "either": plan("Pot.title", (*where(PRICE, LT, 20), *where("Pot.weight", GT, 4.0))),
    "a path": plan("Pot.title THREW.hours", where("Potter.name", EQ, "Ines Rook"), joins=OF_POTTERS),
    "a long path": plan("Potter.name Kiln.name", joins=FIRED_IN_KILNS, distinct=True),
    "links alone": number("THREW", where("THREW.hours", Operator.GE, 2)),
    "two links at one node": plan("#", joins=(Join(ColumnRef("THREW", END), ColumnRef("FIRED_IN", START)),)),
    "a number of rows": number("Potter", where("Potter.village", EQ, "Harl")),
    "different values": number("Potter", of=term("Potter.village", Aggregate.COUNT, distinct=True)),
    "a sum": number("Pot", of=term(PRICE, Aggregate.SUM)),
    "an average": number("Pot", of=MEAN_PRICE),
    "nothing there": number("Pot", NONE),
    "groups": plan("Potter.name #", joins=BY_POTTER, group=POTTERS),
    "groups of two": plan("Potter.village", joins=BY_POTTER, group=(column("Potter.village"),),
                          having=(Condition(HOURS, GT, (1,)),)),
    "the first group": plan("Potter.name", joins=BY_POTTER, group=POTTERS, order=(Order(ROWS, True),), limit=1),
    "an order": plan("Pot.title", order=(Order(term(PRICE), True),), limit=2),
    "different ones in order": plan("Potter.village", joins=BY_POTTER, distinct=True,
                                    order=(Order(term("THREW.hours"), True),)),
    "the largest": plan("Pot.title", where(PRICE, EQ, query=number("Pot", of=term(PRICE, Aggregate.MAX)))),
    "more than the average": plan("Pot.title", where(PRICE, GT, query=number("Pot", of=MEAN_PRICE))),
    "more than that of one": plan("Pot.title", where(PRICE, GT, query=ASH_BOWL)),
    "groups beyond the average": plan("Potter.name", joins=BY_POTTER, group=POTTERS,
                                      having=(Condition(HOURS, GT, query=number("THREW", of=MEAN_HOURS)),)),
    "among others": plan("Pot.title", where(f"Pot.{KEY}", IN, query=FIRED_POTS)),
    "not among others": plan("Pot.title", where(f"Pot.{KEY}", NOT_IN, query=FIRED_POTS)),
    "by a value of others": plan("Potter.name", where("Potter.village", IN, query=OF_TAM)),
    "who did much": plan("Potter.name", where(f"Potter.{KEY}", IN, query=BUSY)),
    "both": plan("Potter.village", where("THREW.hours", GT, 3), joins=BY_POTTER, distinct=True,
                 combined=(SetOperation.INTERSECT, SHORT)),
    "all but": plan("Potter.village", distinct=True, combined=(SetOperation.EXCEPT, EARLY)),
    "either plan": plan("Potter.name", combined=(SetOperation.UNION, plan("Kiln.name"))),
    "less": number("Pot", DEAR).with_(combined=(SetOperation.LESS, number("Kiln"))),
    "apart": number("Kiln").with_(combined=(SetOperation.APART, number("Pot", NONE))),
    "apart, of links": number("Kiln").with_(
        combined=(SetOperation.APART, number("THREW", where("THREW.hours", GT, 99)))),
    "two columns": number("Pot", of=Term(Computed("Pot", "price", Sign.TIMES, "weight"), Aggregate.SUM)),
    "a column than another": plan("Pot.title", (Condition(term("Pot.weight"), LT, than=column(PRICE)),)),
    "a share": number("Pot", of=Term(None, Aggregate.SHARE, share=(DEAR,))),
    "a name that there is": plan("Potter.name", where(f"Potter.{KEY}", Operator.NOT_NULL)),
}  # fmt: skip


def rows_of(rows: Sequence[Sequence[object]]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(round(one, 6) if isinstance(one, float) else one for one in row) for row in rows)


@pytest.mark.parametrize("name", PLANS)
def test_cypher_gives_what_sql_gives(name: str, pottery: PropertyGraphSource, tables: GraphTables, mirror) -> None:
    query, text = render_cypher(PLANS[name], tables), render(PLANS[name], "sqlite")
    expected = mirror.execute(text).fetchall()
    assert expected
    assert rows_of(pottery.execute(query).rows) == rows_of(expected), (query.text, text)


NUMBERS = ["Pot.price", "Pot.weight", "THREW.hours", "FIRED_IN.cone", "Kiln.built", "Kiln.litres"]
NAMES = ["Potter.name", "Potter.village", "Pot.title", "Kiln.name", "Kiln.fuel"]
conditions = st.builds(
    lambda name, operator, value: where(name, operator, value),
    st.sampled_from(NUMBERS), st.sampled_from([Operator.LT, Operator.GE, Operator.NE]),
    st.sampled_from([1, 2, 10, 45, 300, 1990]),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True),
    tests=st.lists(conditions, max_size=2),
    measure=st.none() | st.tuples(st.sampled_from(NUMBERS), st.sampled_from(list(Aggregate)[:5])),
    distinct=st.booleans(),
)
def test_any_plan_gives_the_same(names, tests, measure, distinct, pottery, tables, mirror) -> None:
    select = [term(name) for name in names]
    group: tuple[ColumnRef, ...] = ()
    if measure is not None:
        select.append(term(measure[0], measure[1], distinct=distinct and measure[1] is Aggregate.COUNT))
        group = tuple(column(name) for name in names)
    any_plan = Plan("THREW", tuple(select), FIRED_IN_KILNS, tuple(tests), group=group, distinct=distinct and not group)
    query, text = render_cypher(any_plan, tables), render(any_plan, "sqlite")
    assert rows_of(pottery.execute(query).rows) == rows_of(mirror.execute(text).fetchall()), (query.text, text)


@pytest.mark.parametrize(
    "unsaid",
    [
        Plan("Pot", (term("Pot.title"),), order=(Order(term("Pot.price")),), each=(column("Pot.weight"),)),
        Plan("Potter", (Term(Computed("Potter", "joined", Sign.DAYS, "joined")),)),
        Plan("Pot", (term("Pot.title"),), where=(where(f"Pot.{KEY}", Operator.EQ, 3),)),
        Plan("THREW", (ROWS,), where=(where(f"THREW.{END}", Operator.EQ, 3),)),
        Plan("Potter", (term("Potter.name"),), (Join(column("Potter.name"), column("Pot.title")),)),
    ],
    ids=["the first of each", "days", "an id that no one knows", "an end of a link by its id", "a join by names"],
)  # fmt: skip
def test_what_is_not_said_is_refused(unsaid: Plan, tables: GraphTables) -> None:
    with pytest.raises(PlanError):
        render_cypher(unsaid, tables)


def test_nodes_are_given_by_what_they_are_called(pottery: PropertyGraphSource, tables: GraphTables) -> None:
    view = SchemaView.of(tables.schema)
    who = Plan("THREW", (Term(ColumnRef("THREW", START)),), where=(where("THREW.hours", Operator.GT, 5),))
    assert pottery.execute(render_cypher(tables.named(who, view), tables)).rows == (("Ines Rook",),)
    (row,) = pottery.execute(render_cypher(who, tables)).rows
    assert isinstance(row[0], GraphNode)
    (key,) = pottery.execute(render_cypher(who, tables, keys=True)).rows
    assert key[0] == row[0].node_id
    taught = Plan(  # the pupil is not the teacher, who is a potter too
        "TAUGHT", (Term(ColumnRef("TAUGHT", END)),), (Join(ColumnRef("TAUGHT", START), ColumnRef("Potter", KEY)),),
        (where("Potter.name", Operator.EQ, "Ines Rook"),),
    )  # fmt: skip
    (row,) = pottery.execute(render_cypher(tables.named(taught, view), tables)).rows
    assert isinstance(row[0], GraphNode) and row[0].properties["name"] == "Tam Oduya"


def test_names_that_differ_in_their_letters_alone_are_two_tables() -> None:
    name = (Column("name", "STRING"),)
    labels = (NodeLabel("Review", name, 3), NodeLabel("Film", name, 2))
    types = (RelationshipType("REVIEW", "Review", "Film", (), 3), RelationshipType("SEEN", "", "Film", (), 1))
    tables = GraphTables.of(GraphSchema(labels, types))
    assert len({table.name.lower() for table in tables.schema.tables}) == 3
    assert [link.name for link in tables.links.values()] == ["REVIEW"]  # the other one has an end without a label


def test_numbers_kept_as_text_lists_and_dates_are_compared_as_what_they_are() -> None:
    own = (
        Column("title", "STRING"), Column("price", "STRING", samples=("12", "7.5")), Column("tags", "LIST<STRING>"),
        Column("sold", "DATE"),
    )  # fmt: skip
    tables = GraphTables.of(GraphSchema((NodeLabel("Vase", own, 9),), ()))

    def written(text: str, operator: Operator, *values: Value) -> str:
        return render_cypher(Plan("Vase", (term("Vase.title"),), where=(where(text, operator, *values),)), tables).text

    assert "toFloat(n0.`price`) > $p0" in written("Vase.price", Operator.GT, 10)
    assert "($p0 IN n0.`tags`)" in written("Vase.tags", Operator.EQ, "blue")
    assert "NOT ($p0 IN n0.`tags`)" in written("Vase.tags", Operator.NE, "blue")
    assert "toString(n0.`sold`) >= $p0" in written("Vase.sold", Operator.GE, "2024-01-01")
    dearest = Plan("Vase", (term("Vase.title"),), order=(Order(term("Vase.price"), True),), limit=1)
    assert render_cypher(dearest, tables).text.endswith(
        "WHERE toFloat(n0.`price`) IS NOT NULL RETURN n0.`title` AS `title` ORDER BY toFloat(n0.`price`) DESC LIMIT 1"
    )
    day = Plan("Vase", (term("Vase.title"),), where=((Condition(Term(Day("Vase", "sold", ((7, 4), (4, 2), (1, 2)))),
                                                                Operator.EQ, ("2024-03-01",)),),))  # fmt: skip
    assert "(substring(toString(n0.`sold`), 6, 4) + '-' + " in render_cypher(day, tables).text


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("Which pots were fired in Old Bess?", {("Moon jar",), ("Ash bowl",), ("Salt pig",)}),
        ("How many hours has each potter thrown?", {("Ines Rook", 9), ("Tam Oduya", 4), ("Wil Stent", 1)}),
        ("Which pots cost more than the average pot?", {("Moon jar",), ("Blue ewer",)}),
        ("Which pots have not been fired?", {("Owl cup",)}),
        ("Which pots have a tenmoku glaze?", {("Ash bowl",)}),
        ("What is the average price of the pots fired in each kiln?", {("Old Bess", 65.0), ("Spark", 85.0)}),
    ],
)
def test_answers(pottery: PropertyGraphSource, question: str, rows: set[tuple[object, ...]]) -> None:
    best = TableCypherGenerator().formulate(question, pottery)[0]
    found = {tuple(sorted(row, key=str)) for row in pottery.execute(best.query).rows}
    assert found == {tuple(sorted(row, key=str)) for row in rows}, best.query.text


def test_programs_of_the_reader_of_tables_are_said_in_cypher(pottery: PropertyGraphSource, encoder) -> None:
    schema = pottery.descriptor().schema
    assert isinstance(schema, GraphSchema)
    stored = StoredTables.of(pottery, schema)
    assert stored is not None and {name: len(rows) for name, rows in stored.rows.items()} == {
        "Kiln": 3, "Potter": 4, "Pot": 5, "THREW": 5, "FIRED_IN": 4, "TAUGHT": 2,
    }  # fmt: skip
    best = ProgramFormulator(encoder).formulate("what runs Spark?", pottery)[0]
    assert best.query.language is Language.CYPHER
    assert pottery.execute(best.query).rows == (("power",),)


def test_the_layer_reads_graphs_both_ways(pottery: PropertyGraphSource, likeness) -> None:
    for tables in (True, False):
        best = open_generators(likeness, tables=tables)[Language.CYPHER].formulate(
            "What is the average price of the pots fired in each kiln?", pottery
        )[0]
        assert {frozenset(row) for row in pottery.execute(best.query).rows} == {
            frozenset(("Old Bess", 65.0)), frozenset(("Spark", 85.0)),
        }  # fmt: skip
