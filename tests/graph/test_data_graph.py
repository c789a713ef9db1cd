"""DataGraph: what is written is what is read, and damage is refused by name."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.errors import IndexFormatError
from helios.graph import DataGraph
from helios.types import Edge, Link

# (segment, passage, column, start, end, score)
LINKS = [(2, 1, 0, 0, 4, 0.5), (0, 3, 1, 2, 6, 0.25), (0, 1, 2, 0, 3, 1.0), (2, 1, 3, 5, 9, 0.75)]


def write(directory: Path, links: list[tuple], *, segments: int = 4, passages: int = 5) -> DataGraph:
    columns = [np.array([link[i] for link in links], dtype=kind) for i, kind in enumerate("qqqqqf")]
    return DataGraph.write(directory, *columns, segment_count=segments, passage_count=passages)


def test_both_directions_and_provenance(tmp_path):
    graph = write(tmp_path / "graph", LINKS)
    assert (graph.segment_count, graph.passage_count, graph.edge_count, graph.link_count) == (4, 5, 3, 4)
    assert graph.segment_offsets.tolist() == [0, 2, 2, 3, 3]
    assert graph.edge_passages.tolist() == [1, 3, 1]
    assert graph.edge_segments.tolist() == [0, 0, 2]
    assert graph.passage_offsets.tolist() == [0, 0, 2, 2, 3, 3]
    assert graph.passage_edges.tolist() == [0, 2, 1]
    assert graph.links(2) == (Link(0, 0, 4, 0.5), Link(3, 5, 9, 0.75))
    assert graph.edge(1) == Edge(0, 3)
    assert graph.edge_number(2, 1) == 2
    assert graph.edge_number(1, 1) is None
    assert graph.edges_of_segment(0) == range(2)
    assert graph.passages_of(0).tolist() == [1, 3]
    assert graph.segments_of(1).tolist() == [0, 2]
    graph.verify()


def test_arrays_are_mapped_and_read_only(tmp_path):
    graph = write(tmp_path / "graph", LINKS)
    assert isinstance(graph.edge_passages.base, np.memmap)
    assert not graph.edge_passages.flags.writeable


def test_empty_graph(tmp_path):
    graph = write(tmp_path / "graph", [], segments=0, passages=0)
    assert (graph.edge_count, graph.segment_count) == (0, 0)
    graph.verify()
    graph = write(tmp_path / "graph", [], segments=3, passages=2)
    assert graph.passages_of(2).tolist() == []


def test_numbers_out_of_range_are_refused(tmp_path):
    graph = write(tmp_path / "graph", LINKS)
    with pytest.raises(IndexError, match="edge 3 is out of range"):
        graph.links(3)
    with pytest.raises(IndexError, match="segment -1"):
        graph.passages_of(-1)


def links_strategy() -> st.SearchStrategy[list[tuple]]:
    spans = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted).map(tuple)
    link = st.tuples(st.integers(0, 6), st.integers(0, 5), st.integers(0, 3), spans, st.floats(-1, 1, width=32))
    return st.lists(link.map(lambda item: (*item[:3], *item[3], item[4])), max_size=30)


@settings(max_examples=40, deadline=None)
@given(links=links_strategy(), data=st.data())
def test_round_trip(tmp_path_factory, links, data):
    directory = tmp_path_factory.mktemp("graph")
    graph = write(directory / "a", links, segments=7, passages=6)
    graph.verify()
    pairs = sorted({link[:2] for link in links})
    edges = [graph.edge(e) for e in range(graph.edge_count)]
    assert [(edge.segment, edge.passage) for edge in edges] == pairs
    for number, pair in enumerate(pairs):
        assert graph.edge_number(*pair) == number
        expected = sorted(link[2:] for link in links if link[:2] == pair)
        assert [(k.column, k.start, k.end, k.score) for k in graph.links(number)] == expected
    for passage in range(6):
        assert graph.segments_of(passage).tolist() == [s for s, p in pairs if p == passage]
    write(directory / "b", data.draw(st.permutations(links)), segments=7, passages=6)
    for file in (directory / "a").iterdir():
        assert file.read_bytes() == (directory / "b" / file.name).read_bytes(), file.name


def test_rewriting_replaces_and_leaves_nothing_behind(tmp_path):
    (tmp_path / "graph.partial").mkdir()
    (tmp_path / "graph.partial" / "rubbish").write_text("from a killed run")
    write(tmp_path / "graph", LINKS)
    assert write(tmp_path / "graph", LINKS[:1]).edge_count == 1
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ((4, 0, 0, 0, 1, 1.0), "segments must be whole numbers in 0..3"),
        ((0, -1, 0, 0, 1, 1.0), "passages must be"),
        ((0, 0, 40_000, 0, 1, 1.0), "columns must be"),
        ((0, 0, 0, 2, 1, 1.0), "ends before it starts"),
        ((0, 0, 0, 0, 1, float("nan")), "finite"),
    ],
)
def test_bad_links_are_refused(tmp_path, link, message):
    with pytest.raises(IndexFormatError, match=message):
        write(tmp_path / "graph", [link])
    assert not (tmp_path / "graph").exists()


def test_unequal_lengths_are_refused(tmp_path):
    with pytest.raises(IndexFormatError, match="equal length"):
        DataGraph.write(tmp_path / "g", [0], [0, 1], [0], [0], [0], [0.0], segment_count=1, passage_count=2)


def test_damage_is_refused_with_the_file_named(tmp_path):
    directory = tmp_path / "graph"
    write(directory, LINKS)
    header = json.loads((directory / "graph.json").read_text())

    with pytest.raises(IndexFormatError, match="holds no graph"):
        DataGraph.open(tmp_path / "nowhere")
    (directory / "graph.json").write_text(json.dumps(header | {"version": 2}))
    with pytest.raises(IndexFormatError, match="format version 2"):
        DataGraph.open(directory)
    (directory / "graph.json").write_text(json.dumps(header | {"edge_count": 4}))
    with pytest.raises(IndexFormatError, match=r"edge_passages.npy: damaged: holds int32\[3\], expected int32\[4\]"):
        DataGraph.open(directory)
    (directory / "graph.json").write_text("{")
    with pytest.raises(IndexFormatError, match=r"graph.json: damaged"):
        DataGraph.open(directory)
    (directory / "graph.json").write_text(json.dumps({"format": "other"}))
    with pytest.raises(IndexFormatError, match="not a helios-graph"):
        DataGraph.open(directory)


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_array_is_refused(tmp_path, damage):
    write(tmp_path / "graph", LINKS)
    path = tmp_path / "graph" / "passage_edges.npy"
    path.write_bytes(path.read_bytes()[:-4] if damage is None else damage)
    with pytest.raises(IndexFormatError, match=r"passage_edges.npy: damaged"):
        DataGraph.open(tmp_path / "graph")


def test_verify_finds_what_opening_cannot(tmp_path):
    write(tmp_path / "graph", LINKS)
    np.save(tmp_path / "graph" / "passage_edges.npy", np.array([2, 0, 1], dtype=np.int32))
    graph = DataGraph.open(tmp_path / "graph")
    with pytest.raises(IndexFormatError, match="passage_edges"):
        graph.verify()
