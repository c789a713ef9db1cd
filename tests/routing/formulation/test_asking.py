"""What asks for something, and what only names rows."""

import pytest

from helios.routing.formulation.asking import asks_nothing, requested

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
