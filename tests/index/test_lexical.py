"""Node postings: terms of texts, what is written and read back, how rare words are."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.errors import IndexFormatError
from helios.index import lexical
from helios.index.lexical import Postings, Statistics, VisibleNodes, term_hash, terms_of, write_postings
from helios.index.visible import Numbering, VisiblePostings

WORDS = st.sampled_from(["rhine", "river", "rivers", "Basel", "basel's", "42", "Łódź", "café", "x"])
TEXTS = st.lists(st.lists(WORDS, max_size=8).map(" ".join), min_size=1, max_size=8)


def postings_of(texts, directory, *, segments) -> Postings:
    write_postings(texts, directory, segment_count=segments)
    return Postings(directory)


def hashes(*terms: str) -> np.ndarray:
    return np.array([term_hash(term) for term in terms], np.uint64)


@given(texts=TEXTS)
@settings(max_examples=30, deadline=None)
def test_postings_say_how_often_each_term_stands_where(tmp_path_factory, texts):
    postings = postings_of(texts, tmp_path_factory.mktemp("lexical"), segments=1)
    terms = {term for text in texts for term in terms_of(text)}
    assert len(postings.terms) == len(terms)
    for term in terms:
        (number,) = postings.numbers(hashes(term))
        span = slice(postings.offsets[number], postings.offsets[number + 1])
        counts = [terms_of(text).count(term) for text in texts]
        assert dict(zip(postings.nodes[span].tolist(), postings.counts[span].tolist(), strict=True)) == {
            node: count for node, count in enumerate(counts) if count
        }
    assert postings.lengths.tolist() == [len(terms_of(text)) for text in texts]


@given(texts=TEXTS, size=st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_chunks_do_not_change_a_byte(tmp_path_factory, texts, size):
    whole, chunked = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("chunked")
    count = write_postings(texts, whole, segment_count=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexical, "CHUNK_NODES", size)
        assert write_postings(texts, chunked, segment_count=1) == count
    names = sorted(path.name for path in whole.iterdir())
    assert names == sorted(path.name for path in chunked.iterdir())
    for name in names:
        assert (whole / name).read_bytes() == (chunked / name).read_bytes(), name


def test_progress_counts_every_node(tmp_path, monkeypatch):
    monkeypatch.setattr(lexical, "CHUNK_NODES", 2)
    seen = []
    write_postings(["a", "b", "c"], tmp_path, segment_count=3, progress=seen.append)
    assert seen == [2, 1]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Rivers of the Netherlands", ["river", "of", "the", "netherland"]),
        ("Cities and countries", ["city", "and", "country"]),
        ("glass, bus, his, gas", ["glass", "bus", "his", "gas"]),
        ("Müller's café; ŁÓDŹ", ["muller", "s", "cafe", "łodz"]),
        ("1998–99", ["1998", "99"]),
        ("!?… ", []),
    ],
)
def test_terms(text, terms):
    assert terms_of(text) == terms


def test_counts_stop_at_255_but_lengths_do_not(tmp_path):
    postings = postings_of(["ox " * 300, "cow"], tmp_path, segments=1)
    assert postings.counts.max() == 255
    assert postings.lengths.tolist() == [300, 1]


def test_no_nodes(tmp_path):
    postings = postings_of([], tmp_path, segments=0)
    assert postings.node_count == 0
    assert postings.numbers(hashes("rhine")).tolist() == [-1]


def test_a_damaged_index_is_named(tmp_path):
    write_postings(["rhine"], tmp_path, segment_count=1)
    (tmp_path / "statistics.json").write_text("{")
    with pytest.raises(IndexFormatError, match=rf"{tmp_path}/statistics\.json: damaged: not JSON"):
        Postings(tmp_path)


@pytest.mark.parametrize("node", [2, 2**31 - 1])
def test_postings_of_a_node_that_is_not_there_are_refused(tmp_path, node):
    write_postings(["rhine river", "rhine"], tmp_path, segment_count=1)
    nodes = np.load(tmp_path / "nodes.npy")
    nodes[-1] = node
    np.save(tmp_path / "nodes.npy", nodes)
    postings = Postings(tmp_path)
    nodes_of = VisibleNodes.all(postings)
    numbering = Numbering.of([nodes_of.segments], [nodes_of.passages], [1], [2], whole=True)
    visible = VisiblePostings([postings], numbering, Statistics([nodes_of]))
    with pytest.raises(IndexFormatError, match=r"nodes\.npy: damaged: nodes must be from [01] to 1"):
        visible.node_bm25(visible.terms("rhine river"), k1=0.9, b=0.4)
    with pytest.raises(IndexFormatError, match=r"nodes\.npy: damaged: nodes must be from [01] to 1"):
        visible.passage_bm25(visible.terms("rhine river"), k1=0.9, b=0.4, most=10)


def test_idf_of_hashes(tmp_path):
    postings = postings_of(["rhine river", "rhine"], tmp_path, segments=1)
    common, rare, unknown = postings.idf(hashes("rhine", "river", "nowhere"))
    assert common < rare == unknown
    assert rare == pytest.approx(math.log1p((2 - 1 + 0.5) / (1 + 0.5)))


def test_statistics_are_of_the_visible_nodes_of_all_parts(tmp_path):
    texts = [["rhine river", "rhine", "basel x x"], ["rhine", "rhine rhine river"]]
    postings = [postings_of(own, tmp_path / f"{number}", segments=1) for number, own in enumerate(texts)]
    whole = Statistics([VisibleNodes.all(own) for own in postings])
    assert (whole.node_count, whole.segment_count, whole.passage_count) == (5, 2, 3)
    assert whole.holders(hashes("rhine", "river", "x", "nowhere")).tolist() == [4, 2, 1, 0]
    assert whole.mean_passage_length == (1 + 3 + 3) / 3
    assert whole.mean_edge_length == (2 + 1) / 2 + 7 / 3
    none, first, second = np.zeros(0, np.int64), np.array([0]), np.array([1])
    visible = Statistics(
        [VisibleNodes(postings[0], none, second, False), VisibleNodes(postings[1], first, first, False)]
    )
    assert (visible.node_count, visible.segment_count, visible.passage_count) == (3, 1, 2)
    assert visible.holders(hashes("rhine", "river", "x", "nowhere")).tolist() == [2, 1, 1, 0]
    assert visible.mean_passage_length == 3
    assert visible.mean_edge_length == 4
    assert visible.idf(hashes("nowhere")) == visible.idf(hashes("river"))
