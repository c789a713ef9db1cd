"""What a part ranks: every edge, every node without one, and nothing that is deleted."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.engine import Engine
from helios.graph import DataGraph
from helios.index.snapshot import Snapshot
from helios.index.titles import TitleTerms
from helios.models.encoder import MiniLMEncoder
from helios.retrieval.part import SearchPart, edge_units, node_units
from helios.types import Edge

SEGMENTS, PASSAGES = 4, 5
NODES = SEGMENTS + PASSAGES
NOTHING = np.zeros(0, np.int64)


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> DataGraph:
    """Segments 0-3, passages 0-4; segment 3 and passages 3 and 4 have no link."""
    segments, passages = [0, 0, 1, 2, 2], [0, 1, 1, 1, 2]
    zeros = np.zeros(5, np.int64)
    return DataGraph.write(
        tmp_path_factory.mktemp("graph") / "graph", segments, passages, zeros, zeros, zeros + 1, np.ones(5),
        segment_count=SEGMENTS, passage_count=PASSAGES,
    )  # fmt: skip


def pairs(units) -> list[tuple[int, int]]:
    return list(zip(units.left.tolist(), units.right.tolist(), strict=True))


def test_edges_come_first_then_lone_nodes(graph):
    assert pairs(edge_units(graph, NOTHING)) == [
        (0, 4), (0, 5), (1, 5), (2, 5), (2, 6),
        (3, NODES), (NODES, 7), (NODES, 8),
    ]  # fmt: skip


def test_a_deleted_node_leaves_its_neighbours(graph):
    assert pairs(edge_units(graph, np.array([5]))) == [
        (0, 4), (2, 6), (1, NODES), (3, NODES), (NODES, 7), (NODES, 8),
    ]  # fmt: skip


@given(deleted=st.sets(st.integers(0, NODES - 1)))
def test_whatever_is_deleted_all_else_is_found(graph, deleted):
    units = pairs(edge_units(graph, np.array(sorted(deleted), np.int64)))
    found = {node for pair in units for node in pair} - {NODES}
    assert found == set(range(NODES)) - deleted
    assert len(set(units)) == len(units)
    lone = [node for pair in units if NODES in pair for node in pair if node != NODES]
    linked = {node for pair in units if NODES not in pair for node in pair}
    assert linked.isdisjoint(lone)


def test_every_node_on_its_own(graph):
    assert pairs(node_units(graph)) == [(n, NODES) for n in range(4)] + [(NODES, n) for n in range(4, 9)]


def test_units_are_edges_of_the_part(engine: Engine):
    part = engine.part
    units = part.search.units
    edges = [part.edge(unit) for unit in range(len(units))]
    assert edges[: part.graph.edge_count] == [part.graph.edge(number) for number in range(part.graph.edge_count)]
    for edge in edges[part.graph.edge_count :]:
        assert (edge.segment is None) != (edge.passage is None)
    assert {edge.segment for edge in edges} - {None} == set(range(part.graph.segment_count))
    assert {edge.passage for edge in edges} - {None} == set(range(part.graph.passage_count))


def test_links_of_edges(engine: Engine):
    part = engine.part
    assert part.links(part.graph.edge(0)) == part.graph.links(0) != ()
    assert part.links(Edge(0, None)) == part.links(Edge(None, 0)) == ()
    unlinked = next(p for p in range(part.graph.passage_count) if part.graph.edge_number(0, p) is None)
    assert part.links(Edge(0, unlinked)) == ()


def test_pooled_nodes_are_means(engine: Engine, monkeypatch):
    segments, passages = engine.pooled_nodes()
    assert (len(segments), len(passages)) == (engine.graph.segment_count, engine.graph.passage_count)
    for vectors, node in ((segments[3], 3), (passages[2], engine.graph.segment_count + 2)):
        mean = engine.part.tokens.vectors(node).mean(axis=0)
        np.testing.assert_allclose(vectors, mean / np.linalg.norm(mean), atol=1e-5)
    monkeypatch.setattr("helios.retrieval.part.POOL_BLOCK", 7)
    np.testing.assert_allclose(np.concatenate(engine.pooled_nodes()), np.concatenate([segments, passages]), atol=1e-6)


def test_threads_open_a_part_once(sample_index):
    with Snapshot.open(sample_index) as snapshot:
        part = SearchPart(snapshot.parts[0], threads=2, k1=0.9, b=0.4)
        with ThreadPoolExecutor(8) as pool:
            found = {id(search) for search in pool.map(lambda _: part.search, range(32))}
        assert len(found) == 1
        part.close()


def test_closing_an_unused_part_opens_nothing(sample_index):
    with Snapshot.open(sample_index) as snapshot:
        part = SearchPart(snapshot.parts[0], threads=2, k1=0.9, b=0.4)
        part.close()
        assert "search" not in part.__dict__


def test_titles_of_an_older_build_are_read_from_the_corpus(engine, sample_index, tmp_path):
    shutil.copytree(sample_index, tmp_path / "index")
    with Engine.open(tmp_path / "index", threads=1) as older:
        for path in older.part.view.path("lexical").glob("title-*.npy"):
            path.unlink()
        for name in (field.name for field in fields(TitleTerms)):
            np.testing.assert_array_equal(getattr(older.part.titles, name), getattr(engine.part.titles, name))


def test_stages_share_a_question(engine):
    part, other = engine.part, MiniLMEncoder.load()
    assert part.query(engine.encoder, "river") is part.query(engine.encoder, "river")
    assert part.query(other, "river") is not part.query(engine.encoder, "river")
