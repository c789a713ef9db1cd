"""What asks for something, and what only names rows."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from helios.routing.formulation.asking import asks_nothing, requested
from helios.routing.formulation.generator import THRESHOLD, SqlGenerator
from helios.sources.registry import Registry

CALLED = frozenset(["customer", "repair", "trip", "vehicle"])


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        ("Customers in Leeds, in alphabetical order", "List customers in Leeds, in alphabetical order"),
        ("Volmar vehicles that have no driver", "List Volmar vehicles that have no driver"),
        ("Trips per month", "Trips per month"),
        ("How many trips are there?", "How many trips are there?"),
    ],
)
def test_names_of_rows_ask_for_them(words, request_):
    assert requested(words, CALLED) == request_


@pytest.mark.parametrize(
    "words",
    [
        "Customers in Leeds are unhappy.", "Cells divide", "Vehicles may overheat", "The trip to Rome was long.",
        "Customer service", "",
    ],
)  # fmt: skip
def test_claims_and_topics_ask_nothing(words):
    assert asks_nothing(words) == bool(words)
    assert requested(words, CALLED) is None or not words


UNSURE = [
    "Jobs by title",
    "Customers per town",
    "Papers cost money",
    "Printers print jobs in Whitby",
    "Papers with a price",
    "Jobs ordered in 2024",
    "How many jobs do printers take a month?",
    "What percentage of jobs cancelled?",
    "What percentage of hours worked are on menus?",
    "Which customers have gone for Whitby?",
]


@pytest.mark.parametrize("words", UNSURE)
def test_what_is_not_sure(print_shop, words):
    """Fragments that divide, claims, and words that only resemble a rate, a share or an end."""
    best = SqlGenerator().formulate(words, print_shop)[:1]
    assert not best or best[0].confidence < THRESHOLD, best[0].query.text


@pytest.fixture(scope="module")
def print_shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("print_shop")
    script = Path(__file__).parent / "databases" / "print_shop.sql"
    with closing(sqlite3.connect(folder / "print_shop.sqlite")) as connection:
        connection.executescript(script.read_text(encoding="utf-8"))
    (folder / "sources.yaml").write_text("sources:\n  print_shop:\n    kind: sqlite\n    path: print_shop.sqlite\n")
    with Registry.open(folder / "sources.yaml") as registry:
        yield registry.source("print_shop")


def test_names_that_hold_a_word_are_listed(print_shop):
    """A condition on a name leaves more than one of them, so the name is what is asked for."""
    (best, *_) = SqlGenerator().formulate("customers with Cafe in the name", print_shop)
    assert best.query.text.endswith("LIKE '%Cafe%'")
    assert best.confidence >= THRESHOLD
