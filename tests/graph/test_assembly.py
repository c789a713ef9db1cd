"""Layers of edges under one numbering: the graph that all visible links together would have been written as."""

from dataclasses import fields
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.graph import DataGraph
from helios.graph.assembly import Layer, assembled


def write(folder: Path, links, *, segments: int, passages: int) -> DataGraph:
    columns = [np.array(column) for column in zip(*links, strict=True)] or [np.zeros(0, np.int64)] * 6
    return DataGraph.write(folder, *columns, segment_count=segments, passage_count=passages)


@st.composite
def layered(draw):
    """Nodes with flags of who is visible, and layers: lists of their nodes, and links between these."""
    sides = [draw(st.lists(st.booleans(), min_size=1, max_size=6)) for _ in range(2)]
    layers = []
    for _ in range(draw(st.integers(1, 3))):
        held = [
            sorted(draw(st.sets(st.sampled_from(range(len(side))), min_size=1, max_size=len(side)))) for side in sides
        ]
        link = st.tuples(
            st.sampled_from(held[0]), st.sampled_from(held[1]), st.integers(0, 2), st.integers(0, 3), st.just(4),
            st.sampled_from([0.25, 0.5, 1.0]),
        )  # fmt: skip
        layers.append((held, draw(st.lists(link, max_size=8))))
    return sides, layers


def numbers(visible: list[bool], own: list[int]) -> np.ndarray:
    """The number of each of a layer's nodes among the visible ones, -1 if hidden."""
    before = np.cumsum([0, *visible[:-1]])
    return np.array([int(before[node]) if visible[node] else -1 for node in own], np.int64)


@given(case=layered())
@settings(max_examples=50, deadline=None)
def test_layers_are_one_graph(tmp_path_factory, case):
    folder = tmp_path_factory.mktemp("layers")
    (segments, passages), layers = case
    made, together = [], []
    for number, (held, links) in enumerate(layers):
        places = [{node: place for place, node in enumerate(own)} for own in held]
        own = [(places[0][link[0]], places[1][link[1]], *link[2:]) for link in links]
        graph = write(folder / f"{number}", own, segments=len(held[0]), passages=len(held[1]))
        made.append(Layer(graph, numbers(segments, held[0]), numbers(passages, held[1])))
        # within an edge, links of an earlier layer come first
        together += [(*link, number) for link in sorted(links) if segments[link[0]] and passages[link[1]]]
    counts = {"segment_count": sum(segments), "passage_count": sum(passages)}
    found = assembled(made, **counts)
    found.verify()
    everywhere = numbers(segments, list(range(len(segments)))), numbers(passages, list(range(len(passages))))
    edges: dict[tuple[int, int], list] = {}
    for segment, passage, column, start, end, score, number in together:
        key = int(everywhere[0][segment]), int(everywhere[1][passage])
        edges.setdefault(key, []).append((number, column, start, end, score))
    assert list(zip(found.edge_segments.tolist(), found.edge_passages.tolist(), strict=True)) == sorted(edges)
    for number, (_, own) in enumerate(sorted(edges.items())):
        links = [(link.column, link.start, link.end, link.score) for link in found.links(number)]
        assert links == [link[1:] for link in sorted(own, key=lambda link: link[0])]
    assert (found.edge_count, found.link_count) == (len(edges), sum(map(len, edges.values())))


def test_a_layer_of_everything_is_itself(tmp_path):
    graph = write(tmp_path / "graph", [(0, 1, 0, 0, 1, 0.5)], segments=2, passages=2)
    every = np.arange(2)
    assert assembled([Layer(graph, every, every)], segment_count=2, passage_count=2) is graph
    more = assembled([Layer(graph, every, every)], segment_count=3, passage_count=2)
    assert (more.segment_count, more.edge_count, len(more.segment_offsets)) == (3, 1, 4)


def test_types_are_those_of_the_files(tmp_path):
    links = [(0, 1, 0, 0, 1, 0.5), (1, 0, 2, 3, 4, 1.0)]
    graph = write(tmp_path / "graph", links, segments=2, passages=2)
    layers = [Layer(graph, np.array([1, 0]), np.arange(2)), Layer(graph, np.array([-1, -1]), np.arange(2))]
    found = assembled(layers, segment_count=2, passage_count=2)
    for field in fields(DataGraph):
        expected = getattr(graph, field.name)
        if isinstance(expected, np.ndarray):
            assert getattr(found, field.name).dtype == expected.dtype, field.name
    assert found.edge_segments.tolist() == [0, 1]
    assert [link.column for link in found.links(0)] == [2]


def test_no_edge_at_all(tmp_path):
    graph = write(tmp_path / "graph", [], segments=1, passages=1)
    found = assembled([Layer(graph, np.array([-1]), np.array([0]))] * 2, segment_count=0, passage_count=1)
    assert (found.edge_count, found.link_count, found.passage_offsets.tolist()) == (0, 0, [0, 0])
    found.verify()


def test_a_later_layer_decides_rows_anew(tmp_path: Path):
    """What earlier layers say of its rows does not count, what they say of others does, and its own links do."""
    one = write(tmp_path / "one", [(0, 0, 0, 0, 1, 0.5), (1, 0, 0, 0, 1, 0.5)], segments=2, passages=2)
    two = write(tmp_path / "two", [(0, 1, 0, 0, 1, 0.5)], segments=2, passages=2)
    both = np.arange(2)
    layers = [Layer(one, both, both), Layer(two, both, both, np.array([0]))]
    graph = assembled(layers, segment_count=2, passage_count=2)
    assert list(zip(graph.edge_segments.tolist(), graph.edge_passages.tolist(), strict=True)) == [(0, 1), (1, 0)]
    graph = assembled(layers[::-1], segment_count=2, passage_count=2)
    assert graph.edge_count == 3
