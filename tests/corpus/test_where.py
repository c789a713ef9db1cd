"""The language of filters: what is read is printed, what is wrong is said, records pass as a plain reading has it."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.corpus import CorpusStore, CorpusWriter
from helios.corpus.where import BUILT_IN, MAX_CHARACTERS, MAX_DEPTH, Combined, Condition, Field, Where
from helios.errors import WhereError
from helios.types import Passage, Table, TableKind

OWN = ("year", "region", "draft", "next year", "in", 'quo"ted', "a.b")
TEXTS = st.sampled_from(["north", "South", "it's", "", "[x]", "a*b", "1990", "true", "Łódź"])
NUMBERS = (
    st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([1990, 1990.0, 0.1, 0.1 + 0.2, 2**53 + 1, 5])
)
SCALARS = TEXTS | NUMBERS | st.booleans()
FIELDS = st.builds(Field, st.sampled_from([*BUILT_IN, *OWN]), st.sampled_from(["", "", "table", "passage"]))


def conditions(fields=FIELDS, values=SCALARS):
    one = st.tuples(values)
    return st.one_of(
        st.builds(Condition, fields, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), one),
        st.builds(Condition, fields, st.just("~"), st.tuples(TEXTS)),
        st.builds(Condition, fields, st.just("in"), st.lists(values, min_size=1, max_size=3).map(tuple)),
        st.builds(Condition, fields, st.just("exists")),
    )


def expressions(leaves):
    def combined(parts):
        several = st.lists(parts, min_size=2, max_size=3).map(tuple)
        return st.one_of(
            st.builds(Combined, st.sampled_from(["and", "or"]), several),
            st.builds(Combined, st.just("not"), st.tuples(parts)),
        )

    return st.recursive(leaves, combined, max_leaves=6)


@given(expression=expressions(conditions()))
@settings(max_examples=300, deadline=None)
def test_what_is_printed_is_read_as_the_same(expression):
    text = str(Where(expression))
    assert Where.parse(text).expression == expression
    assert str(Where.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("year>=1990", "year >= 1990"),
        ("  year = 1990.0 ", "year = 1990"),
        ("a = 1 and b = 2 or c = 3", "(a = 1 and b = 2) or c = 3"),
        ("a = 1 and (b = 2 or c = 3)", "a = 1 and (b = 2 or c = 3)"),
        ("NOT a EXISTS", "not (a exists)"),
        ("not a = 1 and b = 2", "(not (a = 1)) and b = 2"),
        ("a in ('x' ,2,TRUE)", "a in ('x', 2, true)"),
        ("title ~ '*it''s*'", "title ~ '*it''s*'"),
        ('"next year" = -1.5e-3', '"next year" = -0.0015'),
        ("table.year < +5", "table.year < 5"),
        ('passage."a.b" = false', 'passage."a.b" = false'),
        ("table.a.b = 1", 'table."a.b" = 1'),
        ("a.b-c = 'x'", "\"a.b-c\" = 'x'"),
        ('"table.x" = 1', '"table.x" = 1'),
        ("n = 9007199254740993", "n = 9007199254740993"),
        ("n = .5", "n = 0.5"),
    ],
)
def test_forms(text, printed):
    assert str(Where.parse(text)) == printed


def test_numbers_that_differ_in_the_last_digit_are_two_filters():
    assert str(Where.parse("x = 0.3")) != str(Where.parse("x = 0.30000000000000004"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the filter is empty; expected something like"),
        ("  \n", "the filter is empty"),
        ("year", "the filter 'year' ends too early: expected one of = != < <= > >= ~, `in` or `exists`"),
        ("year =", "ends too early: expected a value: 'text', a number, true or false"),
        ("year = nineteen", "character 8: expected a value: 'text', a number, true or false, found 'nineteen'"),
        ("year = 1990 1991", "character 13: expected `and`, `or` or the end, found '1991'"),
        ("= 3", "character 1: expected the name of a field, found '='"),
        ("and = 3", "character 1: expected the name of a field, found 'and'"),
        ("(year = 3", "ends too early: expected `)`"),
        ("year in 3", "character 9: expected `(`, found '3'"),
        ("year in ()", "character 10: expected a value"),
        ("year in (3, 4", "ends too early: expected `)`"),
        ("year ~ 3", "character 8: expected a pattern in single quotes, found '3'"),
        ("year == 3", "character 7: expected a value: 'text', a number, true or false, found '='"),
        ("year = 'open", 'character 7: cannot read "\'open"'),
        ("year = 3; drop", "character 9: cannot read '; drop'"),
        ("a = 1 and", "ends too early: expected the name of a field"),
        ("a = 1e400", "character 5: expected a number below 1e308, found '1e400'"),
        ("a = " + "9" * 5000, "character 5: expected a number below 1e308, found '99999"),
        ("(" * (MAX_DEPTH + 1), f"nested more than {MAX_DEPTH} deep"),
        ("not " * (MAX_DEPTH + 1) + "a = 1", f"nested more than {MAX_DEPTH} deep"),
        ("a" * (MAX_CHARACTERS + 1), f"has {MAX_CHARACTERS + 1} characters, at most {MAX_CHARACTERS} are read"),
    ],
)
def test_errors_say_what_and_where(text, message):
    with pytest.raises(WhereError, match=re.escape(message)) as caught:
        Where.parse(text)
    assert len(str(caught.value)) < 400


@given(text=st.text(st.sampled_from("ab.'\"=<>~()!,-+1e0\n notandrx"), max_size=30))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text):
    try:
        found = Where.parse(text)
    except WhereError:
        return
    assert Where.parse(str(found)) == found


# What passes.

KINDS = st.sampled_from(TableKind)
METADATA = st.dictionaries(st.sampled_from(OWN), SCALARS, max_size=4).map(lambda own: tuple(sorted(own.items())))


@st.composite
def corpora(draw):
    rows = st.integers(0, 3)
    tables = [
        Table(
            f"t{number}", draw(TEXTS), ("a",), tuple((str(row),) for row in range(draw(rows))), draw(TEXTS), "",
            draw(TEXTS), draw(KINDS), source=draw(st.sampled_from(["", "a.csv", "b.csv"])), metadata=draw(METADATA),
        )
        for number in range(draw(st.integers(0, 4)))
    ]  # fmt: skip
    passages = [
        Passage(f"p{number}", draw(TEXTS), "", draw(TEXTS), draw(st.sampled_from(["", "c.md"])), draw(METADATA))
        for number in range(draw(st.integers(0, 4)))
    ]
    return tables, passages


def stored(folder: Path, tables, passages) -> CorpusStore:
    with CorpusWriter(folder) as writer:
        for record in (*tables, *passages):
            writer.add(record)
    return CorpusStore.open(folder)


def fields_of(record) -> Mapping[str, object]:
    """Everything that a filter can ask of a record."""
    if isinstance(record, Table):
        own = {"id": record.table_id, "section": record.section, "kind": record.kind.value}
    else:
        own = {"id": record.passage_id, "kind": "passage"}
    own |= {"title": record.title, "source": record.source, "url": record.url}
    return dict(record.metadata) | {name: value for name, value in own.items() if value}


def passes(expression, record) -> bool | None:
    """Whether a record meets an expression, None where nothing in it is asked of such a record."""
    if isinstance(expression, Combined):
        known = [found for part in expression.parts if (found := passes(part, record)) is not None]
        if not known:
            return None
        return not known[0] if expression.operator == "not" else (all if expression.operator == "and" else any)(known)
    if expression.field.of not in ("", "table" if isinstance(record, Table) else "passage"):
        return None
    value = fields_of(record).get(expression.field.name)
    return value is not None and meets(value, expression.operator, expression.values)


def meets(value, operator, values) -> bool:
    same = [type_of(value) == type_of(one) and value == one for one in values]
    match operator:
        case "exists":
            return True
        case "=" | "in":
            return any(same)
        case "!=":
            return not same[0]
        case "~":
            pattern = values[0].replace("[", "[[]").casefold()
            return isinstance(value, str) and fnmatchcase(value.casefold(), pattern)
    if type_of(value) != type_of(values[0]) or type_of(value) is bool:
        return False
    return {"<": value < values[0], "<=": value <= values[0], ">": value > values[0], ">=": value >= values[0]}[
        operator
    ]


def type_of(value) -> type:
    return bool if isinstance(value, bool) else str if isinstance(value, str) else float


def known_fields(tables, passages) -> set[tuple[str, str]]:
    """(side, name) of the fields that some record has, with an empty side for those of either."""
    found = set()
    for side, records in (("table", tables), ("passage", passages)):
        for record in records:
            found |= {(of, name) for name, _ in record.metadata for of in ("", side)}
    return found


@given(corpus=corpora(), data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_node_passes_where_its_record_does(tmp_path_factory, corpus, data):
    tables, passages = corpus
    own = sorted(known_fields(tables, passages))
    choices = [
        conditions(st.builds(Field, st.sampled_from(BUILT_IN), st.sampled_from(["", "table", "passage"])), TEXTS)
    ]
    if own:
        choices.append(conditions(st.sampled_from([Field(name, of) for of, name in own])))
    store = stored(tmp_path_factory.mktemp("where"), tables, passages)
    for expression in data.draw(st.lists(expressions(st.one_of(choices)), min_size=1, max_size=6)):
        expected = [passes(expression, table) is not False for table in tables for _ in table.rows]
        expected += [passes(expression, passage) is not False for passage in passages]
        assert Where(expression).nodes(store).tolist() == expected


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> CorpusStore:
    table = Table("t", "Rivers", ("a",), (("x",), ("y",)), metadata=(("year", 1990),), source="rivers.csv")
    passages = [
        Passage("p", "Rhine", "", metadata=(("year", 1991), ("owner", "me"))),
        Passage("q", "Po [river]", "", url="https://example.org"),
    ]
    return stored(tmp_path_factory.mktemp("store"), [table], passages)


def found(store: CorpusStore, text: str) -> list[bool]:
    return Where.parse(text).nodes(store).tolist()


def test_examples(store):
    assert found(store, "year >= 1991") == [False, False, True, False]
    assert found(store, "not year >= 1991") == [True, True, False, True]
    assert found(store, "year != 1990") == [False, False, True, False]  # who has no year is not asked
    assert found(store, "table.year = 1990") == [True, True, True, True]
    assert found(store, "table.year = 1 or passage.year = 1991") == [False, False, True, False]
    assert found(store, "not passage.owner exists") == [True, True, False, True]
    assert found(store, "title ~ 'r*'") == [True, True, True, False]
    assert found(store, "title ~ '*[river]'") == [False, False, False, True]
    assert found(store, "kind = 'table' or url exists") == [True, True, False, True]
    assert found(store, "source = 'rivers.csv'") == [True, True, False, False]
    assert found(store, "year = '1990'") == [False, False, False, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("yaer = 1990", "no record has the field 'yaer'; did you mean year?"),
        ("table.owner = 'me'", "no record has the field 'owner'; fields: id, kind, section, source, title, url, year"),
        ("title = 3", "title is text, but is compared with 3: put the value in single quotes"),
        ("kind in ('table', true)", "kind is text, but is compared with true"),
    ],
)
def test_fields_that_nothing_has(store, text, message):
    with pytest.raises(WhereError, match=re.escape(message)):
        found(store, text)


def test_an_empty_corpus(tmp_path):
    nothing = stored(tmp_path, [], [])
    assert Where.parse("title = 'x'").nodes(nothing).dtype == np.bool_
    assert len(Where.parse("not kind = 'table'").nodes(nothing)) == 0
