"""Contexts from real databases: keys in both directions, times, caps, hidden columns, bad schemas."""

import json
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.augment.augmenter import Augmenter
from helios.augment.context import Context
from helios.augment.settings import AugmentSettings, read_settings
from helios.cli import build_app
from helios.errors import ConfigError, ContextError
from helios.sources.registry import Registry

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT, phone TEXT, vip BOOLEAN);
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, price REAL);
CREATE TABLE owned (customer_id INTEGER REFERENCES customers(id), product_id INTEGER REFERENCES products(id),
                    PRIMARY KEY (customer_id, product_id));
CREATE TABLE tickets (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id),
                      duplicate_of INTEGER REFERENCES tickets(id), opened TEXT, title TEXT, status TEXT);
CREATE TABLE replies (id INTEGER PRIMARY KEY, ticket_id INTEGER REFERENCES tickets(id), sent TEXT, text TEXT);
INSERT INTO customers VALUES (1, 'Ada', 'Leeds', '0123', 1), (2, 'Bo', NULL, '0999', 0);
INSERT INTO products VALUES (1, 'Kettle K2', 39.5), (2, 'Lamp L7', 20);
INSERT INTO owned VALUES (1, 1), (2, 2);
INSERT INTO tickets VALUES (1, 1, NULL, '2024-01-05T10:00:00', 'The lid is loose', 'closed'),
  (2, 1, 1, '2024-03-01T09:00:00', 'It does not switch on', 'open'),
  (3, 1, NULL, '2024-05-01T09:00:00', 'Written later', 'open');
INSERT INTO replies VALUES (1, 1, '2024-01-06T10:00:00', 'Please send a photo of the lid, which we need to see first.'),
  (2, 2, '2024-03-02T10:00:00', 'An answer to the question, which is what is asked for.');
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Registry]:
    with registered(tmp_path, SHOP) as registry:
        yield registry


def registered(folder: Path, script: str, **settings: object) -> Registry:
    connection = sqlite3.connect(folder / "shop.sqlite")
    connection.executescript(script)
    connection.close()
    registry = Registry.open(folder / "sources.yaml", create=True)
    registry.add("shop", {"kind": "sqlite", "path": "shop.sqlite", **settings})
    return registry


def execute(folder: Path, script: str) -> None:
    connection = sqlite3.connect(folder / "shop.sqlite")
    connection.executescript(script)
    connection.close()


def given(context: Context) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for column in context.columns:
        found[column.name] = (*found.get(column.name, ()), *column.texts())
    return found


def context_of(registry: Registry, row: str, **settings: object) -> Context:
    return Augmenter(registry.source("shop"), AugmentSettings.model_validate({"seconds": 60.0} | settings)).of(row)


def test_keys_are_followed_in_both_directions_and_through_a_joining_table(shop: Registry) -> None:
    context = context_of(shop, "tickets:2")
    found = given(context)
    assert found["products.name"] == ("Kettle K2",) and found["products.price"] == ("price: 39.5",)
    assert set(found["tickets.title"]) == {"It does not switch on", "The lid is loose"}
    assert found["customers.name"] == ("Ada",) and found["customers.vip"] == ("vip: yes",)
    assert found["customers.city"] == ("city: Leeds",)
    assert found["tickets.opened"][0] == "opened: 1 March 2024"
    assert not any("customer_id" in name or name.endswith(".id") for name in found)
    assert not context.truncated and not context.notes and context.row == "tickets:2"
    product = next(column for column in context.columns if column.name == "products.name")
    assert product.path[-1] == "owned.product_id > products.id"


def test_nothing_that_was_written_later_is_given(shop: Registry, tmp_path: Path) -> None:
    before = context_of(shop, "tickets:2")
    assert "Written later" not in before.texts() and not any("An answer" in text for text in before.texts())
    earlier = next(a for a in before.attributes() if a.text == "The lid is loose")
    assert earlier.seconds_before == datetime(2024, 3, 1, 9).timestamp() - datetime(2024, 1, 5, 10).timestamp()
    execute(
        tmp_path,
        "INSERT INTO tickets VALUES (4, 1, 2, '2024-03-01T09:00:01', 'The leaked answer', 'open');"
        "INSERT INTO replies VALUES (9, 2, '2024-03-01T09:00:00.001', 'The leaked reply, as long as a text is.');",
    )
    shop.refresh("shop")
    after = context_of(shop, "tickets:2")
    assert [(c.role, c.attributes, c.found) for c in after.columns] == [
        (c.role, c.attributes, c.found) for c in before.columns
    ]


def test_a_leaked_row_does_not_change_which_rows_are_sampled(tmp_path: Path) -> None:
    rows = ", ".join(
        f"({n}, 2, '2024-02-01T00:00:{n % 60:02}', 'reply number {n} of very many')" for n in range(10, 500)
    )
    with registered(tmp_path, SHOP + f"INSERT INTO replies VALUES {rows};") as registry:
        before = context_of(registry, "tickets:2", per_column=7)
        future = ", ".join(f"({n}, 2, '2025-01-01T00:00:00', 'from the future {n}')" for n in range(1000, 1500))
        execute(tmp_path, f"INSERT INTO replies VALUES {future};")
        registry.refresh("shop")
        after = context_of(registry, "tickets:2", per_column=7)
        other = context_of(registry, "tickets:2", per_column=7, seed=1)
    texts = [column for column in before.columns if column.name == "replies.text"]
    assert texts[0].kept == 7 and texts[0].found == 490 and before.truncated
    assert before.texts() == after.texts() and set(other.texts()) != set(before.texts())


def test_columns_are_left_out_and_masked(shop: Registry) -> None:
    context = context_of(shop, "tickets:2", exclude=["customers.phone", "replies"], mask=["customers.name"])
    found = given(context)
    assert "customers.phone" not in found and found["customers.name"] == ()
    name = next(column for column in context.columns if column.name == "customers.name")
    assert (name.found, name.kept) == (1, 0)
    assert set(given(context_of(shop, "tickets:2", include=["products.name"]))) == {"products.name"}
    assert "products.name" not in given(context_of(shop, "tickets:2", exclude=["tickets.customer_id"]))


def test_what_the_source_hides_stays_hidden(tmp_path: Path) -> None:
    access = {"exclude": ["customers.phone"], "mask": ["customers.name"], "rows": {"tickets": "status <> 'closed'"}}
    with registered(tmp_path, SHOP, access=access) as registry:
        texts = " ".join(context_of(registry, "tickets:2").texts())
        assert "Leeds" in texts and "Kettle" in texts
        assert not any(word in texts for word in ("0123", "Ada", "The lid is loose"))
        with pytest.raises(ContextError, match="not to be seen"):
            context_of(registry, "tickets:1")


def test_values_name_rows_too(shop: Registry) -> None:
    augmenter = Augmenter(shop.source("shop"))
    found = given(augmenter.of_values({"customer_id": "2"}))
    assert found["customers.name"] == ("Bo",) and found["products.name"] == ("Lamp L7",)
    early = augmenter.of_values({"customers.id": 1}, at=datetime(2024, 2, 1))
    assert given(early)["tickets.title"] == ("The lid is loose",)
    with pytest.raises(ContextError, match="no table of 'shop' has this column"):
        augmenter.of_values({"basket": 1})
    with pytest.raises(ContextError, match=r"could be any of customers.name, products.name"):
        augmenter.of_values({"name": "Ada"})


def test_settings_name_keys_that_are_not_declared_and_composite_ones(tmp_path: Path) -> None:
    script = """
    CREATE TABLE orders (shop TEXT, no INTEGER, note TEXT);
    CREATE TABLE lines (shop TEXT, no INTEGER, item TEXT);
    INSERT INTO orders VALUES ('north', 1, 'leave it at the door'), ('south', 1, 'ring twice');
    INSERT INTO lines VALUES ('north', 1, 'a blue chair'), ('south', 1, 'a red table'), ('north', NULL, 'lost');
    """
    with registered(tmp_path, script) as registry:
        with pytest.raises(ContextError, match="has no primary key"):
            context_of(registry, "orders:1")
        settings = {"keys": ["lines(shop, no) -> orders(shop, no)"], "primary": {"orders": ["shop", "no"]}}
        context = context_of(registry, "orders:north,1", **settings)
        assert "a blue chair" in " ".join(context.texts()) and "red" not in " ".join(context.texts())
        with pytest.raises(ContextError, match="expected 2 values, got 1"):
            context_of(registry, "orders:north", **settings)
        with pytest.raises(ContextError, match="expected a whole number"):
            context_of(registry, "orders:north,one", **settings)


def test_very_many_rows_behind_one_key_are_capped_in_the_database(tmp_path: Path) -> None:
    script = """
    CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE events (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES users(id), what TEXT);
    INSERT INTO users VALUES (1, 'Ada');
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
    INSERT INTO events SELECT i, 1, 'event number ' || i || ' of this one user' FROM n;
    """
    with registered(tmp_path, script) as registry:
        context_of(registry, "users:1")
        context = context_of(registry, "users:1")
    events = next(column for column in context.columns if column.name == "events.what")
    assert events.kept == 30 and events.found > 10_000
    assert context.truncated and any("more than 10,000 rows" in note for note in context.notes)
    assert context.seconds < 20.0


def test_times_that_cannot_be_read(tmp_path: Path) -> None:
    script = (
        SHOP + "UPDATE tickets SET opened = 'last Tuesday' WHERE id = 1; UPDATE tickets SET opened = NULL WHERE id = 3;"
    )
    with registered(tmp_path, script) as registry:
        settings = {"time": {"tickets": "opened"}}
        context = context_of(registry, "tickets:2", **settings)
        assert "The lid is loose" not in context.texts() and "Written later" not in context.texts()
        assert any("tickets: rows whose opened cannot be read" in note for note in context.notes)
        with pytest.raises(ContextError, match="'last Tuesday': expected a date"):
            context_of(registry, "tickets:1", **settings)


def test_a_table_that_vanishes_is_left_out_and_said(shop: Registry, tmp_path: Path) -> None:
    augmenter = Augmenter(shop.source("shop"))
    augmenter.of("tickets:2")
    execute(tmp_path, "DROP TABLE owned")
    context = augmenter.of("tickets:2")
    assert context.truncated and any("owned cannot be read" in note for note in context.notes)
    assert "The lid is loose" in context.texts()
    execute(tmp_path, "DROP TABLE tickets")
    with pytest.raises(ContextError, match="tickets: the row with id=2 cannot be read"):
        augmenter.of("tickets:2")


def test_hostile_values_stay_text(shop: Registry, tmp_path: Path) -> None:
    hostile = "'); DROP TABLE tickets; -- \x1b[2J\u202e[bold]\" and \x00 more than a few words"
    connection = sqlite3.connect(tmp_path / "shop.sqlite")
    connection.execute("UPDATE tickets SET title = ? WHERE id = 1", [hostile])
    connection.execute("INSERT INTO customers VALUES (3, ?, x'ff00', '', NULL)", [hostile])
    connection.commit()
    connection.close()
    texts = context_of(shop, "tickets:2").texts()
    found = next(text for text in texts if "DROP TABLE" in text)
    assert found.startswith("'); DROP TABLE tickets; -- [2J") and not {"\x1b", "\x00", "\u202e"} & set(found)
    with pytest.raises(ContextError, match="expected a whole number"):
        context_of(shop, "tickets:1 OR 1=1")
    assert context_of(shop, "tickets:1")
    assert Augmenter(shop.source("shop")).of_values({"customers.name": hostile})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("keys: [a.b]", "expected `table.column -> table.column`"),
        ("depth: 99", "depth"),
        ("what: 1", "what"),
        ("- a", "expected settings"),
        ("keys: [", "not YAML"),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_settings(path)


@pytest.mark.parametrize(
    "settings", [{"exclude": ["customer.phone"]}, {"time": {"tickets": "when"}}, {"keys": ["a.b -> c.d"]}]
)
def test_settings_that_name_nothing_are_refused(shop: Registry, settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="no table|no column"):
        context_of(shop, "tickets:2", **settings)


def test_wrong_rows_are_named(shop: Registry) -> None:
    with pytest.raises(ContextError, match="no table 'ticket'.*there are customers"):
        context_of(shop, "ticket:2")
    with pytest.raises(ContextError, match="no row with id=77"):
        context_of(shop, "tickets:77")
    with pytest.raises(ContextError, match="table:key"):
        context_of(shop, "tickets")


def test_show_prints_what_a_question_is_given(shop: Registry) -> None:
    where = ["--source", "shop", "--sources", str(shop.path)]
    result = CliRunner().invoke(build_app(), ["augment", "show", "tickets", "2", *where])
    assert result.exit_code == 0, result.output
    assert "products.name (1)  by tickets.customer_id > customers.id" in result.output and "Kettle K2" in result.output
    result = CliRunner().invoke(build_app(), ["augment", "show", "customer_id=2", *where, "--json"])
    document = json.loads(result.output)
    lamp = next(column for column in document["columns"] if column["name"] == "products.name")
    assert lamp["attributes"][0]["text"] == "Lamp L7" and lamp["kept"] == lamp["found"] == 1
    assert CliRunner().invoke(build_app(), ["augment", "show", "tickets", *where]).exit_code == 2


def test_settings_beside_the_sources_are_used(shop: Registry) -> None:
    kept = shop.path.with_suffix(".augment") / "shop.yaml"
    kept.parent.mkdir()
    kept.write_text("exclude: [products]")
    result = CliRunner().invoke(
        build_app(), ["augment", "show", "tickets:2", "--source", "shop", "--sources", str(shop.path)]
    )
    assert result.exit_code == 0 and "Kettle" not in result.output and "The lid is loose" in result.output
