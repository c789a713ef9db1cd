"""BM25 over edges from node postings equals BM25 over the concatenated words of both nodes."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.errors import IndexFormatError
from helios.index import lexical
from helios.index.lexical import MAX_TERMS, Postings, edge_bm25, terms_of, write_postings

WORDS = st.sampled_from(["rhine", "river", "rivers", "Basel", "basel's", "42", "Łódź", "café", "x"])
TEXTS = st.lists(st.lists(WORDS, max_size=8).map(" ".join), min_size=1, max_size=8)


def postings_of(texts, directory, *, segments) -> Postings:
    write_postings(texts, directory, segment_count=segments)
    return Postings(directory)


def scores(postings, question, left, right, *, k1=0.9, b=0.4):
    looked_up = postings.query(question)
    out = np.full(len(left), np.nan, np.float32)
    edge_bm25(
        np.array(left, np.int32), np.array(right, np.int32), postings.lengths, looked_up.counts_NQ, looked_up.idf_Q,
        k1, b, postings.mean_edge_length, out, 0, len(left),
    )  # fmt: skip
    return out


def reference(texts, segments, question, left, right, *, k1=0.9, b=0.4):
    """BM25 in plain Python: node frequencies for idf, concatenated term lists for counts and lengths."""
    terms = [terms_of(text) for text in texts]
    lengths = [len(words) for words in terms]
    mean = max(1.0, sum(np.mean(part) for part in (lengths[:segments], lengths[segments:]) if part))
    found = []
    for pair in zip(left, right, strict=True):
        document = [word for node in pair if node < len(texts) for word in terms[node]]
        counts, score = Counter(document), 0.0
        for term in dict.fromkeys(terms_of(question)):
            frequency = sum(term in words for words in terms)
            if frequency:
                idf = math.log(1 + (len(texts) - frequency + 0.5) / (frequency + 0.5))
                norm = max(k1 * (1 - b + b * len(document) / mean), 1e-6)
                score += idf * counts[term] * (k1 + 1) / (counts[term] + norm)
        found.append(score)
    return found


@given(
    texts=TEXTS, question=st.lists(WORDS, max_size=5).map(" ".join), data=st.data(),
    k1=st.sampled_from([0.0, 0.9, 2.0]), b=st.sampled_from([0.0, 0.4, 1.0]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_bm25_of_edges_is_bm25_of_their_words(tmp_path_factory, texts, question, data, k1, b):
    segments = data.draw(st.integers(0, len(texts)))
    postings = postings_of(texts, tmp_path_factory.mktemp("lexical"), segments=segments)
    nodes = st.integers(0, len(texts))
    pairs = data.draw(st.lists(st.tuples(nodes, nodes).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=6))
    left, right = zip(*pairs, strict=True)
    found = scores(postings, question, left, right, k1=k1, b=b)
    expected = reference(texts, segments, question, left, right, k1=k1, b=b)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


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


@pytest.mark.parametrize("question", ["", "?!", "unheard of"])
def test_questions_without_a_known_word_score_nothing(tmp_path, question):
    postings = postings_of(["rhine river", "danube"], tmp_path, segments=1)
    assert scores(postings, question, [0, 0], [1, 2]).tolist() == [0.0, 0.0]


def test_of_many_words_the_rarest_count(tmp_path):
    common = [f"common{number}" for number in range(MAX_TERMS)]
    postings = postings_of([" ".join(common)] * 5 + ["needle"], tmp_path, segments=3)
    looked_up = postings.query(" ".join([*common, "needle"]))
    assert len(looked_up.idf_Q) == MAX_TERMS
    assert looked_up.counts_NQ[5, 0] == 1
    assert looked_up.idf_Q[0] == looked_up.idf_Q.max()


def test_no_nodes(tmp_path):
    postings = postings_of([], tmp_path, segments=0)
    assert postings.node_count == 0
    assert postings.query("rhine").counts_NQ.shape == (1, 1)


def test_nodes_without_words(tmp_path):
    postings = postings_of(["", "…"], tmp_path, segments=1)
    assert scores(postings, "rhine", [0], [1]).tolist() == [0.0]


def test_a_damaged_index_is_named(tmp_path):
    write_postings(["rhine"], tmp_path, segment_count=1)
    (tmp_path / "statistics.json").write_text("{")
    with pytest.raises(IndexFormatError, match=f"{tmp_path}: no readable lexical index"):
        Postings(tmp_path)


def test_nodes_on_their_own(tmp_path):
    texts = ["rhine river", "basel", "rhine rhine x", "river", "x"]
    postings = postings_of(texts, tmp_path, segments=2)
    found = postings.node_scores(["rhine", "basel", "rhine", "nowhere"], 1, 5, k1=0.9, b=0.4, common=9)
    mean = np.mean([len(text.split()) for text in texts[1:]])

    def expected(count, length, holding):
        idf = math.log1p((5 - holding + 0.5) / (holding + 0.5))
        return idf * count * 1.9 / (count + 0.9 * (0.6 + 0.4 * length / mean))

    np.testing.assert_allclose(found, [expected(1, 1, 1), expected(2, 3, 2), 0.0, 0.0], rtol=1e-5)
    assert not postings.node_scores(["x"], 0, 5, k1=0.9, b=0.4, common=1).any()
    assert len(postings.node_scores(["x"], 2, 2, k1=0.9, b=0.4, common=1)) == 0


def test_spans_of_terms(tmp_path):
    postings = postings_of(["rhine", "rhine river", "x", "rhine"], tmp_path, segments=2)
    terms = ["rhine", "river", "nowhere"]
    for first, last, counts in ((0, 4, [3, 1, 0]), (1, 3, [1, 1, 0]), (2, 3, [0, 0, 0]), (3, 9, [1, 0, 0])):
        starts, stops, idf = postings.spans(terms, first, last)
        assert (stops - starts).tolist() == counts
        for start, stop in zip(starts, stops, strict=True):
            assert all(first <= node < last for node in postings.nodes[start:stop].tolist())
        assert idf.tolist() == postings.idf(np.array([lexical.term_hash(term) for term in terms], np.uint64)).tolist()
    empty = postings_of([], tmp_path / "empty", segments=0)
    assert [values.tolist() for values in empty.spans([], 0, 1)] == [[], [], []]


def test_idf_of_hashes(tmp_path):
    postings = postings_of(["rhine river", "rhine"], tmp_path, segments=1)
    hashes = np.array([lexical.term_hash(term) for term in ("rhine", "river", "nowhere")], np.uint64)
    common, rare, unknown = postings.idf(hashes)
    assert common < rare == unknown
