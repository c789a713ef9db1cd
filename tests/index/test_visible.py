"""Nodes of several parts under one numbering: what is hidden is in nothing, the rest counts as if it were one part."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.index.function_words import telling_terms
from helios.index.lexical import (
    MAX_TERMS,
    Postings,
    Statistics,
    VisibleNodes,
    pair_bm25,
    term_hash,
    terms_of,
    write_postings,
)
from helios.index.search import places_in
from helios.index.visible import MIN_WEIGHT, Numbering, VisiblePostings, VisibleTokens

WORDS = ["rhine", "river", "rivers", "Basel", "basel's", "42", "Łódź", "café", "x"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), max_size=5)


@st.composite
def parts_with_hidden_nodes(draw):
    """Parts as lists of (text, visible) of rows and of passages; at least one node is visible."""
    texts = draw(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3).filter(lambda parts: any(map(any, parts))))
    flags = draw(st.sampled_from([st.just(True), st.booleans()]))
    parts = [tuple([(text, draw(flags)) for text in side] for side in part) for part in texts]
    return parts if any(shown for part in parts for side in part for _, shown in side) else [
        tuple([(text, True) for text, _ in side] for side in part) for part in parts
    ]  # fmt: skip


def visible_postings(parts, folder) -> VisiblePostings:
    postings, segments, passages = [], [], []
    for number, (rows, others) in enumerate(parts):
        write_postings([text for text, _ in (*rows, *others)], folder / f"{number}", segment_count=len(rows))
        postings.append(Postings(folder / f"{number}"))
        segments.append(np.array([n for n, (_, shown) in enumerate(rows) if shown], np.int64))
        passages.append(np.array([n for n, (_, shown) in enumerate(others) if shown], np.int64))
    whole = all(shown for part in parts for side in part for _, shown in side)
    sizes = [len(rows) for rows, _ in parts], [len(rows) + len(others) for rows, others in parts]
    numbering = Numbering.of(segments, passages, *sizes, whole=whole)
    nodes = [VisibleNodes(*one, whole) for one in zip(postings, segments, passages, strict=True)]
    return VisiblePostings(postings, numbering, Statistics(nodes))


def visible_texts(parts) -> tuple[list[list[str]], int]:
    """Terms of visible nodes in the order of their numbers, and how many of them are rows."""
    sides = [[terms_of(text) for part in parts for text, shown in part[side] if shown] for side in (0, 1)]
    return [*sides[0], *sides[1]], len(sides[0])


def idf(terms, term):
    holders = sum(term in words for words in terms)
    return math.log(1 + (len(terms) - holders + 0.5) / (holders + 0.5))


def known_terms(terms, question):
    return [term for term in telling_terms(question) if any(term in words for words in terms)]


PARAMETERS = {"k1": st.sampled_from([0.0, 0.9, 2.0]), "b": st.sampled_from([0.0, 0.4, 1.0])}
QUESTIONS = st.lists(st.sampled_from([*WORDS, "nowhere"]), max_size=5).map(" ".join)


@given(parts=parts_with_hidden_nodes(), question=QUESTIONS, data=st.data(), **PARAMETERS)
@settings(max_examples=80, deadline=None)
def test_bm25_of_edges_is_bm25_of_their_words(tmp_path_factory, parts, question, data, k1, b):
    """Node frequencies for idf, concatenated words for counts and lengths, in plain Python over what is visible."""
    visible = visible_postings(parts, tmp_path_factory.mktemp("lexical"))
    terms, segments = visible_texts(parts)
    nodes = st.integers(0, len(terms))
    pairs = data.draw(st.lists(st.tuples(nodes, nodes).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=6))
    looked_up = visible.terms(question)
    assert list(looked_up.terms) == known_terms(terms, question)
    all_nodes = np.arange(len(terms))
    counts = visible.counts(looked_up, all_nodes)
    assert counts.tolist() == [[words.count(term) for term in looked_up.terms] for words in terms]
    assert visible.lengths(all_nodes).tolist() == list(map(len, terms))
    left, right = (places_in(all_nodes, np.array(side)) for side in zip(*pairs, strict=True))
    found = np.full(len(pairs), np.nan, np.float32)
    mean = np.float32(visible.statistics.mean_edge_length)
    pair_bm25(
        left, right, visible.lengths(all_nodes), counts, looked_up.idf_T, np.float32(k1), np.float32(b), mean, found
    )
    sides = [[len(words) for words in side] for side in (terms[:segments], terms[segments:])]
    expected_mean = max(1.0, sum(np.mean(side) for side in sides if side))
    expected = []
    for pair in pairs:
        document = [word for node in pair if node < len(terms) for word in terms[node]]
        words, score = Counter(document), 0.0
        for term in looked_up.terms:
            norm = max(k1 * (1 - b + b * len(document) / expected_mean), 1e-6)
            score += idf(terms, term) * words[term] * (k1 + 1) / (words[term] + norm)
        expected.append(score)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@given(parts=parts_with_hidden_nodes(), question=QUESTIONS, most=st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_passages_with_a_term(tmp_path_factory, parts, question, most):
    visible = visible_postings(parts, tmp_path_factory.mktemp("lexical"))
    terms, segments = visible_texts(parts)
    looked_up = visible.terms(question)
    spans = visible.passages_with(looked_up.hashes, most=most)
    stored = Counter(
        term for part in parts for text, _ in part[1] for term in set(terms_of(text))
    )  # how common a term is counts hidden passages too
    for t, term in enumerate(looked_up.terms):
        span = slice(int(spans.first[t]), int(spans.last[t]))
        found = dict(zip((spans.passages[span] - spans.shift).tolist(), spans.counts[span].tolist(), strict=True))
        held = {n: words.count(term) for n, words in enumerate(terms[segments:]) if term in words}
        assert found == (held if stored[term] <= most else {})
        assert list(found) == sorted(found)


@given(parts=parts_with_hidden_nodes(), question=QUESTIONS, **PARAMETERS)
@settings(max_examples=60, deadline=None)
def test_bm25_of_nodes_alone(tmp_path_factory, parts, question, k1, b):
    visible = visible_postings(parts, tmp_path_factory.mktemp("lexical"))
    terms, segments = visible_texts(parts)
    looked_up, statistics = visible.terms(question), visible.statistics
    mean_passage = statistics.mean_passage_length

    def bm25(words, length, mean):
        norm = k1 * (1 - b + b * length / mean)
        counts = [words.count(term) for term in looked_up.terms]
        return sum(
            idf(terms, term) * count * (k1 + 1) / (count + max(norm, 1e-6))
            for term, count in zip(looked_up.terms, counts, strict=True)
            if count
        )

    found = visible.passage_bm25(looked_up, k1=k1, b=b, most=100)
    expected = [bm25(words, len(words), max(1.0, mean_passage)) for words in terms[segments:]]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    rough = visible.node_bm25(looked_up, k1=k1, b=b)
    partner = [mean_passage] * segments + [statistics.mean_edge_length - mean_passage] * (len(terms) - segments)
    expected = [
        bm25(words, len(words) + other, statistics.mean_edge_length)
        for words, other in zip(terms, partner, strict=True)
    ]
    np.testing.assert_allclose(rough, [*expected, 0.0], rtol=1e-4, atol=1e-5)


@given(parts=parts_with_hidden_nodes(), data=st.data())
@settings(max_examples=60, deadline=None)
def test_numbers_of_nodes(tmp_path_factory, parts, data):
    numbering = visible_postings(parts, tmp_path_factory.mktemp("lexical")).numbering
    names = [
        [(part, "row" if side == 0 else "passage", own) for part, sides in enumerate(parts)
         for own, (_, shown) in enumerate(sides[side]) if shown]
        for side in (0, 1)
    ]  # fmt: skip
    expected = [*names[0], *names[1]]
    assert (numbering.segment_count, numbering.node_count) == (len(names[0]), len(expected))

    def name(part, own):
        rows = len(parts[part][0])
        return (part, "row", own) if own < rows else (part, "passage", own - rows)

    spans = {}
    for part in range(len(parts)):
        for nodes, first in numbering.spans(part):
            spans |= {first + n: name(part, own) for n, own in enumerate(nodes.tolist())}
        for own, number in enumerate(numbering.node_numbers(part).tolist()):
            assert (expected[number] == name(part, own)) if number >= 0 else (name(part, own) not in expected)
    assert spans == dict(enumerate(expected))
    wanted = data.draw(st.lists(st.sampled_from(range(len(expected))), unique=True))
    for part, places, own in numbering.by_part(np.array(wanted, np.int64)):
        assert [expected[wanted[place]] for place in places] == [name(part, number) for number in own.tolist()]
    counted = sum(len(places) for _, places, _ in numbering.by_part(np.array(wanted, np.int64)))
    assert counted == len(wanted)


def one_part(texts, folder, *, segments) -> VisiblePostings:
    sides = texts[:segments], texts[segments:]
    return visible_postings([tuple([(text, True) for text in side] for side in sides)], folder)


@pytest.mark.parametrize("question", ["", "?!", "unheard of"])
def test_questions_without_a_known_word_have_no_terms(tmp_path, question):
    visible = one_part(["rhine river", "danube"], tmp_path, segments=1)
    looked_up = visible.terms(question)
    assert (looked_up.terms, len(looked_up.idf_T), len(looked_up.hashes)) == ((), 0, 0)
    assert visible.counts(looked_up, np.arange(2)).shape == (2, 0)
    assert not visible.node_bm25(looked_up, k1=0.9, b=0.4).any()


def test_of_many_words_the_rarest_count(tmp_path):
    common = [f"common{number}" for number in range(MAX_TERMS)]
    visible = one_part([" ".join(common)] * 5 + ["needle"], tmp_path, segments=3)
    looked_up = visible.terms(" ".join([*common, "needle"]))
    assert len(looked_up.terms) == MAX_TERMS
    assert looked_up.terms[-1] == "needle"
    assert looked_up.idf_T[-1] == looked_up.idf_T.max()


def test_numbers_are_told_from_words(tmp_path):
    visible = one_part(["rhine 1998 a4", "x"], tmp_path, segments=1)
    assert visible.terms("1998 rhine A4").is_number_T.tolist() == [True, False, True]


def test_nodes_without_words(tmp_path):
    visible = one_part(["", "…"], tmp_path, segments=1)
    assert visible.lengths(np.arange(2)).tolist() == [0, 0]
    assert visible.statistics.mean_edge_length == 1.0
    assert not visible.node_bm25(visible.terms("rhine"), k1=0.9, b=0.4).any()


def tokens_of(*stores, frequencies=None) -> VisibleTokens:
    """Every node of the stores, the first two of each as segments."""
    sizes = [store.node_count for store in stores]
    segments = [np.arange(min(2, size)) for size in sizes]
    passages = [np.arange(size - min(2, size)) for size in sizes]
    numbering = Numbering.of(segments, passages, [len(own) for own in segments], sizes, whole=True)
    counted = sum(store.frequencies for store in stores) if frequencies is None else frequencies
    return VisibleTokens(stores, numbering, counted, counted=sum(sizes))


def test_rare_tokens_weigh_more_and_the_mean_is_one(make_store):
    visible = tokens_of(make_store([4] * 40), make_store([4] * 40, seed=1))
    ids = np.argsort(visible.frequencies)[[0, 20, -1]].astype(np.int32)
    weights = visible.token_weights(ids)
    assert weights.dtype == np.float32
    assert weights.mean() == pytest.approx(1.0)
    assert weights[0] > weights[1] > weights[2] > 0


def test_a_token_of_every_node_still_counts(make_store):
    visible = tokens_of(make_store([1]))
    held = np.flatnonzero(visible.frequencies).astype(np.int32)
    never = np.flatnonzero(visible.frequencies == 0)[:1].astype(np.int32)
    rarity = np.array([MIN_WEIGHT, np.log(2.0) + MIN_WEIGHT])
    weights = visible.token_weights(np.concatenate([held, never]))
    np.testing.assert_allclose(weights, rarity / rarity.mean(), rtol=1e-5)


def test_without_nodes_all_tokens_count_alike(make_store):
    visible = tokens_of(make_store([]), frequencies=np.zeros(50, np.int64))
    assert visible.token_weights(np.array([3, 4], np.int32)).tolist() == [1.0, 1.0]


def test_vectors_and_lengths_by_number(make_store):
    one, other = make_store([3, 1, 2]), make_store([2, 5, 1, 4], seed=1)
    visible = tokens_of(one, other)
    expected = [(one, 0), (one, 1), (other, 0), (other, 1), (one, 2), (other, 2), (other, 3)]
    assert visible.lengths_of(np.array([6, 0, 3, 4])).tolist() == [4, 3, 5, 2]
    for number, (store, node) in enumerate(expected):
        np.testing.assert_array_equal(visible.vectors(number), store.vectors(node))


def test_term_hashes_are_those_of_the_files(tmp_path):
    visible = one_part(["rhine", "river"], tmp_path, segments=1)
    assert visible.terms("river rhine").hashes.tolist() == [term_hash("river"), term_hash("rhine")]
