"""Walks over a real graph: bounded, fair to every node of a step, and honest about what they leave out."""

import pytest

from helios.graph.data import DataGraph
from serving.ego import ROW, TEXT, Found, _edges, _left_out, _walk


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Row 0 names texts 0 and 1; rows 1 to 299 name text 0, rows 300 to 309 text 1; row 310 names nothing."""
    segments = [0, 0, *range(1, 300), *range(300, 310)]
    passages = [0, 1, *[0] * 299, *[1] * 10]
    zeros = [0] * len(segments)
    return DataGraph.write(
        tmp_path_factory.mktemp("ego") / "graph", segments, passages, zeros, zeros, [1] * len(segments),
        [1.0] * len(segments), segment_count=311, passage_count=2,
    )  # fmt: skip


def test_a_hub_does_not_take_all_places(graph):
    found = _walk(graph, (ROW, 0), 2, 50)
    assert 48 <= len(found.steps) <= 50
    assert list(found.steps)[:3] == [(ROW, 0), (TEXT, 0), (TEXT, 1)]
    assert sum(number >= 300 for kind, number in found.steps if kind == ROW) == 10
    assert _left_out(graph, found) == 310 - (len(found.steps) - 2)


def test_whatever_is_near_is_shown_where_there_is_room(graph):
    found = _walk(graph, (TEXT, 1), 1, 200)
    assert list(found.steps) == [(TEXT, 1), (ROW, 0), *((ROW, number) for number in range(300, 310))]
    assert _left_out(graph, found) == 0
    assert _walk(graph, (ROW, 310), 3, 200) == Found({(ROW, 310): 0}, [(ROW, 310)])


def test_edges_are_those_between_nodes_that_are_shown(graph):
    found = _walk(graph, (ROW, 0), 2, 5)
    numbers = {node: number for number, node in enumerate(found.steps)}
    assert sorted(_edges(graph, found, numbers)) == [(0, 1), (0, 2), (1, 3), (2, 4)]
