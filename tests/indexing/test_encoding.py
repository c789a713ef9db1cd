"""Encoding nodes for the index: order, chunks, and what is stored of each node."""

import shutil

import numpy as np
import pytest

from helios.config import load_config
from helios.corpus import CorpusStore, CorpusWriter, read_corpus
from helios.corpus.sample import sample_path
from helios.models.encoder import MiniLMEncoder
from helios.models.text import passage_text, segment_text
from helios.types import Passage
from indexing.encoding import encode_nodes, fit_codebook, node_count, node_texts, quantise_nodes
from indexing.pipeline import build_index
from indexing.stages import CodebookStage, EncodeStage, IngestStage


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> CorpusStore:
    directory = tmp_path_factory.mktemp("encoding")
    with CorpusWriter(directory) as writer:
        for record in read_corpus(sample_path()):
            writer.add(record)
    return CorpusStore.open(directory)


@pytest.fixture(scope="module")
def sample_TD(store, encoder):
    return encode_nodes(store, encoder, 0, node_count(store)).vectors_TD


def fit(sample_TD, *, bits=2, centroids=None):
    return fit_codebook(sample_TD, np.random.default_rng(0), bits=bits, centroids=centroids)


@pytest.fixture(scope="module")
def quantiser(sample_TD):
    return fit(sample_TD)


def test_segments_come_before_passages(store):
    nodes = node_count(store)
    texts = list(node_texts(store, 0, nodes))
    assert len(texts) == nodes == store.segment_count + len(store.passages)
    assert texts[0] == segment_text(store.segment(0)).text
    assert texts[-1] == passage_text(store.passages[len(store.passages) - 1]).text
    border = store.segment_count
    assert list(node_texts(store, border - 2, border + 2)) == texts[border - 2 : border + 2]
    assert list(node_texts(store, border + 1, border + 1)) == []


def test_the_codebook_is_the_same_for_the_same_corpus(sample_TD, quantiser):
    again = fit(sample_TD)
    for name, array in quantiser.arrays().items():
        np.testing.assert_array_equal(array, again.arrays()[name])


def test_as_many_centroids_as_asked_at_most(sample_TD):
    fitted = fit(sample_TD, bits=1, centroids=25)
    assert 1 <= len(fitted.centroids_KD) <= 25
    assert fitted.bits == 1


def test_chunks_hold_what_the_encoder_gives(store, encoder, quantiser):
    start, stop = store.segment_count - 3, store.segment_count + 3
    nodes = encode_nodes(store, encoder, start, stop)
    found = list(encoder.encode_documents(list(node_texts(store, start, stop))))
    np.testing.assert_array_equal(nodes.vectors_TD, np.concatenate([node.vectors for node in found]))
    chunk = quantise_nodes(nodes, quantiser, vocabulary_size=encoder.vocabulary_size, segments=3)
    assert chunk["pooled"].shape == (3, encoder.dimension)  # of the passages alone
    assert chunk["counts"].tolist() == [len(node.ids) for node in found]
    assert chunk["cut"].tolist() == nodes.cut.tolist() == [0] * 6
    assert len(chunk["codes"]) == len(chunk["scales"]) == len(chunk["residuals"]) == chunk["counts"].sum()
    held = np.zeros(encoder.vocabulary_size, int)
    for node in found:
        held[list(set(node.ids.tolist()))] += 1
    np.testing.assert_array_equal(chunk["frequencies"], held)


def test_stored_vectors_are_close_and_spans_fit_them(store, encoder, engine):
    """What the index of the sample holds (one bit a dimension) against the encoder's own vectors."""
    texts = list(node_texts(store, 0, 40))
    for node, tokens in enumerate(encoder.encode_documents(texts)):
        stored = engine.index.tokens.vectors(node)
        assert len(stored) == len(encoder.token_spans(texts[node]))
        cosines = np.einsum("td,td->t", stored, tokens.vectors) / np.linalg.norm(stored, axis=1)
        assert cosines.mean() > 0.8


def test_tokens_that_no_window_reads_are_counted(store, encoder, quantiser, tmp_path):
    """Of a passage of 2,000 words in windows of 64 tokens; shorter nodes lose nothing."""
    with CorpusWriter(tmp_path) as writer:
        writer.add(Passage("short", "Rhine", "A river."))
        writer.add(Passage("long", "Rhine", "river " * 2000))
    short = MiniLMEncoder.load(runtime="torch", max_tokens=64, windows=2)
    nodes = encode_nodes(CorpusStore.open(tmp_path), short, 0, 2)
    kept = nodes.counts
    assert nodes.cut[0] == 0
    assert kept[1] < 2 * 64
    assert nodes.cut[1] + kept[1] == pytest.approx(2002, abs=3)  # the full stop is read, and not kept
    chunk = quantise_nodes(nodes, quantiser, vocabulary_size=short.vocabulary_size, segments=0)
    assert chunk["cut"].tolist() == nodes.cut.tolist()


def test_a_small_corpus_is_encoded_once(tmp_path, monkeypatch):
    """Half of the build's time; the index is the same as one whose encode stage has nothing to go by."""
    texts: list[str] = []
    encode = MiniLMEncoder.encode_documents
    monkeypatch.setattr(MiniLMEncoder, "encode_documents", lambda own, of: (texts.extend(of), encode(own, of))[1])
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(f'{{"id": "p{n}", "title": "Thing {n}", "text": "Number {n}."}}\n' for n in range(20)))
    config = load_config(None, ["advanced.encoder.chunk=8", "encoder.runtime=torch"])
    stages = (IngestStage(), CodebookStage(), EncodeStage())
    once = build_index(corpus, tmp_path / "once", config=config, stages=stages)
    assert len(texts) == 20
    assert not list((tmp_path / "once").glob(".build/*/vectors"))
    build_index(corpus, tmp_path / "twice", config=config, stages=stages[:2])
    shutil.rmtree(tmp_path / "twice" / ".build" / "codebook" / "vectors")
    twice = build_index(corpus, tmp_path / "twice", config=config, stages=stages)
    assert len(texts) == 60
    first, second = (
        {entry.path: entry.sha256 for piece in report.manifest.pieces for entry in piece.files}
        for report in (once, twice)
    )
    assert first == second
    assert "tokens/residuals.npy" in first
