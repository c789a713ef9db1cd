"""An index as every stage reads it: what is ranked, links, pooled vectors, and that each file is opened once."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.engine import Engine
from helios.index.manifest import read_manifest, write_manifest
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot
from helios.index.titles import TitleTerms
from helios.types import Edge


def test_units_are_the_edges_of_the_graph_and_then_lone_nodes(engine: Engine):
    index = engine.index
    edges = [index.units.edge(unit) for unit in range(len(index.units))]
    assert edges[: index.graph.edge_count] == [index.graph.edge(number) for number in range(index.graph.edge_count)]
    for edge in edges[index.graph.edge_count :]:
        assert (edge.segment is None) != (edge.passage is None)
    assert {edge.segment for edge in edges} - {None} == set(range(index.segment_count))
    assert {edge.passage for edge in edges} - {None} == set(range(index.passage_count))


@settings(max_examples=25)
@given(data=st.data())
def test_whatever_is_hidden_all_else_is_found(engine: Engine, data: st.DataObject):
    index = engine.index
    hidden = data.draw(st.sets(st.integers(0, index.node_count - 1)))
    shown = np.array([node not in hidden for node in range(index.node_count)])
    view = index.narrowed(shown)
    numbers = np.cumsum(shown) - 1
    segments, passages = int(shown[: index.segment_count].sum()), int(shown[index.segment_count :].sum())
    assert (view.segment_count, view.passage_count) == (segments, passages)
    whole, other = index.graph, view.graph
    expected = {
        (int(numbers[row]), int(numbers[passage + index.segment_count]) - segments)
        for row, passage in zip(whole.edge_segments.tolist(), whole.edge_passages.tolist(), strict=True)
        if shown[row] and shown[passage + index.segment_count]
    }
    assert set(zip(other.edge_segments.tolist(), other.edge_passages.tolist(), strict=True)) == expected
    units = [view.units.edge(unit) for unit in range(len(view.units))]
    assert len(set(units)) == len(units)
    assert {unit.segment for unit in units} - {None} == set(range(segments))
    assert {unit.passage for unit in units} - {None} == set(range(passages))
    lone = [unit for unit in units if None in (unit.segment, unit.passage)]
    linked = {unit.segment for unit in units if unit not in lone}
    assert linked.isdisjoint(unit.segment for unit in lone)


def test_links_of_edges(engine: Engine):
    index = engine.index
    assert index.edge_links(index.graph.edge(0)) == index.graph.links(0) != ()
    assert index.edge_links(Edge(0, None)) == index.edge_links(Edge(None, 0)) == ()
    unlinked = next(p for p in range(index.passage_count) if index.graph.edge_number(0, p) is None)
    assert index.edge_links(Edge(0, unlinked)) == ()


def test_pooled_nodes_are_means(engine: Engine, monkeypatch):
    index = engine.index
    segments, passages = index.pooled_nodes()
    assert (len(segments), len(passages)) == (index.segment_count, index.passage_count)
    for vectors, node in ((segments[3], 3), (passages[2], index.segment_count + 2)):
        mean = index.tokens.vectors(node).mean(axis=0)
        np.testing.assert_allclose(vectors, mean / np.linalg.norm(mean), atol=1e-5)
    monkeypatch.setattr("helios.index.reader.POOL_BLOCK", 7)
    np.testing.assert_allclose(np.concatenate(index.pooled_nodes()), np.concatenate([segments, passages]), atol=1e-6)


def test_threads_open_everything_once(sample_index):
    with Snapshot.open(sample_index) as snapshot:
        index = IndexReader.of(snapshot)

        def opened(_: int) -> tuple[int, ...]:
            return tuple(
                id(getattr(index, name)) for name in ("corpus", "graph", "tokens", "postings", "titles", "units")
            )

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(opened, range(32)))) == 1


def test_closing_an_unused_engine_opens_nothing(sample_index):
    engine = Engine.open(sample_index, threads=2)
    engine.close()
    assert not {"pipeline", "reader"} & set(engine.opened.__dict__)
    assert not {"corpus", "graph", "tokens", "postings"} & set(engine.index.__dict__)


def test_titles_of_an_older_build_are_read_from_the_corpus(engine: Engine, sample_index, tmp_path):
    index = Path(shutil.copytree(sample_index, tmp_path / "index"))
    (part,) = (manifest := read_manifest(index)).parts
    files = tuple(entry for entry in part.files if "title-" not in entry.path)
    write_manifest(index, manifest.model_copy(update={"parts": (part.model_copy(update={"files": files}),)}))
    for path in (index / part.folder).glob("lexical/title-*.npy"):
        path.unlink()
    with Engine.open(index, threads=1) as older:
        for name in (field.name for field in fields(TitleTerms)):
            np.testing.assert_array_equal(getattr(older.index.titles, name), getattr(engine.index.titles, name))


def test_what_is_remembered_is_made_once(engine: Engine):
    index = engine.index.narrowed(np.ones(engine.index.node_count, bool))
    made: list[int] = []

    def ask(key: int) -> int:
        return index.remembered("squares", key, lambda: made.append(key) or key * key)

    assert [ask(3), ask(3), index.remembered("cubes", 3, lambda: 27)] == [9, 9, 27]
    assert made == [3]
