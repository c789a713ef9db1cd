"""Questions over a graph whose relationships hold amounts, and whose labels begin as relationships are called."""

from collections.abc import Callable

import pytest

from helios.executors.values import GraphNode
from helios.routing.formulation.cypher_generator import CypherGenerator
from helios.sources.property_graph import PropertyGraphSource

NODES = [
    ("a", "Rider", {"name": "Asha", "licensed": True}),
    ("b", "Rider", {"name": "Bram", "licensed": False}),
    ("x", "Route", {"name": "Coast Loop", "length_km": 80.5, "surface": "tarmac", "air_temp_c": 14.0}),
    ("y", "Route", {"name": "Moor Path", "length_km": 33.0, "surface": "gravel", "air_temp_c": 9.0}),
    ("z", "Route", {"name": "Pine Track", "length_km": 21.5, "surface": "gravel", "air_temp_c": 11.0}),
]
EDGES = [("a", "x", 4.5), ("a", "y", 2.0), ("b", "y", 2.5), ("b", "z", 1.5)]


@pytest.fixture(scope="module")
def rides(imported: Callable[..., PropertyGraphSource]) -> PropertyGraphSource:
    return imported(NODES, [(a, "RODE", b, {"hours": hours}) for a, b, hours in EDGES])


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("Which routes did Asha ride?", [("Coast Loop",), ("Moor Path",)]),
        ("How many hours did Asha ride?", [(6.5,)]),
        ("How many route hours has Bram ridden in total?", [(4.0,)]),
        ("What is the average air temperature for each route surface?", [("gravel", 10.0), ("tarmac", 14.0)]),
        ("Which riders are non-licensed?", [("Bram",)]),
        ("Which riders rode Moor Path? Give the rider and the route.", [("Asha", "Moor Path"), ("Bram", "Moor Path")]),
        ("What is the length of Coast Loop?", [(80.5,)]),
    ],
)
def test_answers(rides: PropertyGraphSource, question: str, rows: list[tuple[object, ...]]) -> None:
    (candidate,) = CypherGenerator().formulate(question, rides)
    result = rides.execute(candidate.query)
    found = [tuple(v.properties["name"] if isinstance(v, GraphNode) else v for v in row) for row in result.rows]
    assert sorted(found) == rows, candidate.query.text
