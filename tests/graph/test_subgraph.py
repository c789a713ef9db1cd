"""Subgraph: merging, stars and conversion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.graph import Subgraph
from helios.types import Edge, Origin, ScoredEdge, Star


def scored(segment, passage, score, origin=Origin.LINKED) -> ScoredEdge:
    return ScoredEdge(Edge(segment, passage), score, origin)


EDGES = (scored(1, 7, 0.5), scored(2, None, 0.7), scored(1, 8, 0.9), scored(None, 9, 0.1), scored(3, 7, 0.5))


def test_edges_come_best_first_and_once():
    subgraph = Subgraph.from_edges((*EDGES, scored(1, 7, 0.6, Origin.EXPANDED), scored(1, 8, 0.2)))
    assert [(e.edge.segment, e.edge.passage, e.score) for e in subgraph.edges] == [
        (1, 8, 0.9),
        (2, None, 0.7),
        (1, 7, 0.6),
        (3, 7, 0.5),
        (None, 9, 0.1),
    ]
    assert subgraph.edges[2].origin is Origin.EXPANDED
    assert len(subgraph.top(2)) == 2


def test_stars_lone_passages_and_nodes():
    subgraph = Subgraph.from_edges(EDGES)
    assert subgraph.stars() == (Star(1, (8, 7), (0.9, 0.5)), Star(2, (), ()), Star(3, (7,), (0.5,)))
    assert subgraph.lone_passages() == (scored(None, 9, 0.1),)
    assert subgraph.nodes() == ((1, 2, 3), (7, 8, 9))


def test_a_tie_keeps_the_first_origin():
    expanded, linked = scored(1, 1, 0.5, Origin.EXPANDED), scored(1, 1, 0.5)
    assert Subgraph.from_edges([expanded, linked]).edges == (linked,)


def test_wrong_edges_are_refused():
    with pytest.raises(ValueError, match="not a number"):
        Subgraph.from_edges([scored(1, 1, float("nan"))])
    with pytest.raises(ValueError, match="needs a segment or a passage"):
        Subgraph.from_edges([scored(None, None, 1.0)])
    with pytest.raises(ValueError, match="k must be"):
        Subgraph().top(-1)


def test_networkx():
    graph = Subgraph.from_edges(EDGES).to_networkx()
    assert graph.number_of_nodes() == 6
    assert graph.number_of_edges() == 3
    assert graph.edges[("segment", 1), ("passage", 8)] == {"score": 0.9, "origin": Origin.LINKED}
    assert graph.nodes[("segment", 2)] == {"bipartite": 0, "score": 0.7, "origin": Origin.LINKED}
    assert graph.nodes[("passage", 7)] == {"bipartite": 1}


NODE = st.one_of(st.none(), st.integers(0, 4))
EDGE = st.tuples(NODE, NODE).filter(lambda pair: pair != (None, None))
SCORED = st.builds(lambda pair, score, origin: scored(*pair, score, origin), EDGE,
                   st.floats(-2, 2), st.sampled_from(Origin))  # fmt: skip
EDGE_LISTS = st.lists(SCORED, max_size=12)


@given(first=EDGE_LISTS, second=EDGE_LISTS)
def test_merge_is_idempotent_commutative_and_keeps_the_best(first, second):
    one, two = Subgraph.from_edges(first), Subgraph.from_edges(second)
    merged = one.merge(second)
    assert merged.merge(second) == merged == merged.merge(merged)
    assert merged == two.merge(one)
    best: dict[Edge, float] = {}
    for edge in first + second:
        best[edge.edge] = max(best.get(edge.edge, edge.score), edge.score)
    assert {edge.edge: edge.score for edge in merged.edges} == best
    assert set(merged.edges) <= set(first + second)


@given(edges=EDGE_LISTS)
def test_stars_and_lone_passages_cover_every_edge(edges):
    subgraph = Subgraph.from_edges(edges)
    spokes = {(star.segment, passage) for star in subgraph.stars() for passage in star.passages}
    both = {(e.edge.segment, e.edge.passage) for e in subgraph.edges}
    assert spokes == {pair for pair in both if None not in pair}
    assert {star.segment for star in subgraph.stars()} == set(subgraph.nodes().segments)
