"""JSON, JSON lines, YAML and XML of any shape as tables, attributes and passages."""

import json

import pytest

from helios.corpus import RejectsWriter, read_corpus
from helios.errors import RecordError
from helios.types import Passage, TableKind

LONG = "This is a sentence of the article. " * 12


def read(path, text):
    path.write_text(text, encoding="utf-8")
    return list(read_corpus(path))


def cells(table):
    return [table.header, *table.rows]


def test_records_wrapped_in_an_object_with_nested_fields_and_lists(tmp_path):
    about, orders, items = read(
        tmp_path / "shop.json",
        json.dumps(
            {
                "made": "2024-01-01",
                "shop": {"city": "Oslo"},
                "orders": [
                    {
                        "id": 1,
                        "customer": {"name": "Ann", "vip": True},
                        "items": [{"sku": "A", "qty": 2}, {"sku": "B"}],
                    },
                    {"id": 2, "customer": {"name": "Bob"}, "tags": ["x", "y"], "items": []},
                ],
            }
        ),
    )
    assert (about.kind, about.rows) == (TableKind.INFOBOX, (("made", "2024-01-01"), ("shop / city", "Oslo")))
    assert (orders.table_id, orders.title, orders.section) == ("shop.json#table-2", "shop", "orders")
    assert cells(orders) == [
        ("id", "customer.name", "customer.vip", "tags"),
        ("1", "Ann", "true", ""),
        ("2", "Bob", "", "x; y"),
    ]
    assert items.section == "orders -- items"
    assert cells(items) == [("id", "customer.name", "sku", "qty"), ("1", "Ann", "A", "2"), ("1", "Ann", "B", "")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"NO": {"pop": 5.4}, "SE": {"pop": 10.5}}, [("key", "pop"), ("NO", "5.4"), ("SE", "10.5")]),
        ({"year": [2023, 2024], "sales": [5, 7]}, [("year", "sales"), ("2023", "5"), ("2024", "7")]),
        ([["name", "age"], ["Ann", 3], ["Bob", 4]], [("name", "age"), ("Ann", "3"), ("Bob", "4")]),
        (["red", "green"], [("value",), ("red",), ("green",)]),
        ([{"question": "Where?", "answer": "Oslo"}] * 2, [("question", "answer"), *[("Where?", "Oslo")] * 2]),
        ({"title": "T", "n": None, "b": False}, [("attribute", "value"), ("title", "T"), ("n", ""), ("b", "false")]),
        ([{"a": "\ud800", "b": "\0"}, {"a": "x"}], [("a", "b"), ("\ufffd", "\ufffd"), ("x", "")]),
    ],
)
def test_shapes(tmp_path, value, expected):
    (table,) = read(tmp_path / "v.json", json.dumps(value))
    assert cells(table) == expected


def test_long_texts_are_passages_with_the_title_and_the_fields_of_their_record(tmp_path):
    lines = [json.dumps({"headline": f"News {n}", "date": f"2024-01-0{n}", "body": LONG}) for n in (1, 2)]
    table, first, *_, last = read(tmp_path / "news.jsonl", "\n".join(lines))
    assert cells(table) == [("headline", "date"), ("News 1", "2024-01-01"), ("News 2", "2024-01-02")]
    assert (first.title, last.title) == ("News 1", "News 2")
    assert dict(last.metadata) == {"headline": "News 2", "date": "2024-01-02"}
    assert isinstance(first, Passage) and first.text.startswith("This is a sentence")


def test_a_broken_line_of_other_json_lines_is_rejected_alone(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"name": "Ann"}\n{"name": \n{"name": "Bob"}\n')
    with RejectsWriter(tmp_path / "rejects") as rejects:
        (table,) = read_corpus(path, on_error="skip", rejects=rejects)
    assert table.rows == (("Ann",), ("Bob",))
    assert json.loads((tmp_path / "rejects").read_text())["line"] == 2


def test_yaml_is_read_as_it_is_written(tmp_path):
    about, plants = read(
        tmp_path / "plants.yaml",
        "owner: ~\nopen: 09:30\nplants:\n- {name: Rose, native: no, code: 010}\n- {name: Tulip, planted: 2020-01-02}\n",
    )
    assert about.rows == (("owner", ""), ("open", "09:30"))
    assert cells(plants) == [
        ("name", "native", "code", "planted"),
        ("Rose", "no", "010", ""),
        ("Tulip", "", "", "2020-01-02"),
    ]


def test_xml(tmp_path):
    about, books = read(
        tmp_path / "cat.xml",
        '<?xml version="1.0"?><c:catalog xmlns:c="u" year="2024"><book id="1"><title>Dune</title>'
        '<price cur="USD">9</price><by>Herbert</by></book><book id="2"><title>Emma</title><by>Austen</by><by>X</by>'
        "<note>A <b>mixed</b> text</note></book></c:catalog>",
    )
    assert about.rows == (("year", "2024"),)
    assert cells(books) == [
        ("id", "title", "price.cur", "price.value", "by", "note"),
        ("1", "Dune", "USD", "9", "Herbert", ""),
        ("2", "Emma", "", "", "Austen; X", "A mixed text"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.json", '{"a": [1, 2', "not valid JSON: Expecting ',' delimiter at line 1"),
        ("a.yaml", "a: [1\nb: 2", "not valid YAML"),
        ("a.xml", "<a><b></a>", "not valid XML"),
        ("a.yaml", "a: &x [*x]", "YAML"),
    ],
)
def test_damaged_files_say_what_is_wrong(tmp_path, name, text, reason):
    with pytest.raises(RecordError, match=reason):
        read(tmp_path / name, text)
