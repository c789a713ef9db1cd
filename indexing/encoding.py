"""Encode every node once: texts → token vectors → codes and residuals, chunk by chunk.

The codebook is fitted to the token vectors of a sample of nodes; then each chunk of nodes is encoded and
quantised on its own, so a chunk is a save point and its bytes do not depend on when it was made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helios.corpus import CorpusStore
from helios.index.quantiser import Quantiser, centroid_count
from helios.models.encoder import MiniLMEncoder, TokenEncoder, TokenVectors
from helios.models.text import passage_text, segment_text
from indexing.stage import Arrays

SAMPLE_TOKENS_PER_CENTROID = 48
"""Token vectors that the codebook is fitted to, per centroid."""
MAX_SAMPLE_NODES = 8000


def node_texts(store: CorpusStore, start: int, stop: int) -> Iterator[str]:
    """Texts of nodes [start, stop): segments in their order, then passages in theirs."""
    segments = store.segment_count
    for node in range(start, min(stop, segments)):
        yield segment_text(store.segment(node)).text
    for node in range(max(start, segments), stop):
        yield passage_text(store.passages[node - segments]).text


def node_count(store: CorpusStore) -> int:
    """Segments and passages."""
    return store.segment_count + len(store.passages)


def fit_codebook(
    store: CorpusStore, encoder: TokenEncoder, *, bits: int, centroids: int | None, seed: int = 0
) -> Quantiser:
    """Fit centroids and scales to the tokens of evenly random nodes, the same nodes for the same corpus."""
    nodes = node_count(store)
    random = np.random.default_rng(seed)
    chosen = np.sort(random.permutation(nodes)[:MAX_SAMPLE_NODES])
    texts = [next(node_texts(store, int(node), int(node) + 1)) for node in chosen]
    vectors = [tokens.vectors for tokens in encoder.encode_documents(texts)]
    sample = np.concatenate(vectors) if vectors else np.zeros((1, encoder.dimension), np.float32)
    del vectors  # a sample of a large corpus is a gigabyte: hold it once
    expected_tokens = int(len(sample) * max(1.0, nodes / max(1, len(chosen))))
    count = centroids or centroid_count(expected_tokens)
    wanted = min(len(sample), SAMPLE_TOKENS_PER_CENTROID * count)
    if wanted < len(sample):
        sample = sample[np.sort(random.permutation(len(sample))[:wanted])]
    return Quantiser.fit(sample, centroids=count, bits=bits, seed=seed)


@dataclass(frozen=True, slots=True)
class EncodedNodes:
    """Token vectors of some nodes, and of each how many of its tokens the encoder left out."""

    vectors: list[TokenVectors]
    cut: list[int]


def encode_nodes(store: CorpusStore, encoder: MiniLMEncoder, start: int, stop: int) -> EncodedNodes:
    """Token vectors of nodes [start, stop)."""
    texts = list(node_texts(store, start, stop))
    return EncodedNodes(list(encoder.encode_documents(texts)), encoder.cut_tokens(texts))


def token_frequencies(texts: Sequence[str], encoder: MiniLMEncoder) -> NDArray[np.int32]:
    """How many of the texts hold each token of the encoder's vocabulary, as `quantise_nodes` counts: (V)."""
    found = np.zeros(encoder.vocabulary_size, np.int32)
    for ids in encoder.token_ids(texts):
        found[np.unique(ids)] += 1
    return found


def quantise_nodes(nodes: EncodedNodes, quantiser: Quantiser, *, vocabulary_size: int) -> Arrays:
    """A chunk of a token store: quantised vectors, tokens of nodes, how many nodes hold each token, what was cut."""
    quantised = quantiser.encode(np.concatenate([tokens.vectors for tokens in nodes.vectors]))
    held = np.concatenate([np.unique(tokens.ids) for tokens in nodes.vectors])
    return {
        "cut": np.array(nodes.cut, np.int64),
        "counts": np.array([len(tokens.ids) for tokens in nodes.vectors], np.int64),
        "frequencies": np.bincount(held, minlength=vocabulary_size).astype(np.int32),
        "codes": quantised.codes,
        "scales": quantised.scales,
        "residuals": quantised.residuals,
    }
