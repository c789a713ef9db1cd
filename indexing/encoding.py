"""Encode every node once: texts → token vectors → codes and residuals, chunk by chunk.

The codebook is fitted to the token vectors of a sample of nodes; then each chunk of nodes is encoded and
quantised on its own, so a chunk is a save point and its bytes do not depend on when it was made. Where the sample is
the whole corpus, its vectors are kept for that, and nothing is encoded twice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.corpus import CorpusStore
from helios.index.quantiser import Quantiser, centroid_count
from helios.index.reader import PartFiles
from helios.index.tokens import pooled_codes
from helios.models.encoder import FloatArray, MiniLMEncoder
from helios.models.text import plain_segment, plain_text
from indexing.stage import Arrays

SAMPLE_TOKENS_PER_CENTROID = 48
"""Token vectors that the codebook is fitted to, per centroid."""
MAX_SAMPLE_NODES = 8000


def node_texts(store: CorpusStore, start: int, stop: int) -> Iterator[str]:
    """Texts of nodes [start, stop): segments in their order, then passages in theirs."""
    segments = store.segment_count
    if stop - start == 1 and start < segments:
        yield plain_segment(store.segment(start))  # of a table without reading a block of it
    else:
        yield from map(plain_segment, store.segments(start, stop))
    for node in range(max(start, segments), stop):
        yield plain_text(store.passages[node - segments])


def node_count(store: CorpusStore) -> int:
    """Segments and passages."""
    return store.segment_count + len(store.passages)


def sample_nodes(store: CorpusStore, random: np.random.Generator) -> NDArray[np.int64]:
    """Numbers of evenly random nodes, ascending; all nodes of a small corpus."""
    return np.sort(random.permutation(node_count(store))[:MAX_SAMPLE_NODES])


def fit_codebook(
    sample_TD: FloatArray, random: np.random.Generator, *, growth: float = 1.0, bits: int, centroids: int | None,
    seed: int = 0,
) -> Quantiser:  # fmt: skip
    """Fit centroids and scales to the token vectors of sampled nodes; all nodes are `growth` times as many."""
    if not len(sample_TD):
        sample_TD = np.zeros((1, sample_TD.shape[1]), np.float32)
    count = centroids or centroid_count(int(len(sample_TD) * growth))
    wanted = min(len(sample_TD), SAMPLE_TOKENS_PER_CENTROID * count)
    if wanted < len(sample_TD):
        sample_TD = sample_TD[np.sort(random.permutation(len(sample_TD))[:wanted])]
    return Quantiser.fit(sample_TD, centroids=count, bits=bits, seed=seed)


@dataclass(frozen=True, slots=True)
class EncodedNodes:
    """What the encoder says of N nodes with T tokens together."""

    vectors_TD: FloatArray
    ids: NDArray[np.int32]
    """Numbers of the tokens in the encoder's vocabulary: (T)."""
    counts: NDArray[np.int64]
    """Tokens of every node: (N)."""
    cut: NDArray[np.int64]
    """Of every node how many of its tokens the encoder left out: (N)."""

    def arrays(self) -> Arrays:
        """As they are saved."""
        return {"vectors_TD": self.vectors_TD, "ids": self.ids, "counts": self.counts, "cut": self.cut}


def encode_texts(texts: Sequence[str], encoder: MiniLMEncoder) -> EncodedNodes:
    """Token vectors of nodes by their texts."""
    found = list(encoder.encode_documents(texts))
    return EncodedNodes(
        np.concatenate([np.zeros((0, encoder.dimension), np.float32), *(tokens.vectors for tokens in found)]),
        np.concatenate([np.zeros(0, np.int32), *(tokens.ids for tokens in found)]),
        np.array([len(tokens.ids) for tokens in found], np.int64),
        np.array([tokens.cut for tokens in found], np.int64),
    )


def encode_nodes(store: CorpusStore, encoder: MiniLMEncoder, start: int, stop: int) -> EncodedNodes:
    """Token vectors of nodes [start, stop)."""
    return encode_texts(list(node_texts(store, start, stop)), encoder)


def as_read(encoder: MiniLMEncoder, part: PartFiles) -> MiniLMEncoder:
    """The encoder with the glossaries by which the texts of a part were read."""
    return encoder.with_glossary(part.tokens.encoder.get("glossary"))


def held_by(part: PartFiles, counts: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Counts of tokens (V) over texts of a part, no higher than the part's own: they may be read otherwise now, by
    other glossaries of the same name."""
    known = part.tokens.frequencies
    return np.minimum(counts, known if len(known) else 0).astype(np.int64)


def token_frequencies(texts: Sequence[str], encoder: MiniLMEncoder) -> NDArray[np.int32]:
    """How many of the texts hold each token of the encoder's vocabulary, as `quantise_nodes` counts: (V)."""
    return encoder.token_frequencies(texts)


def quantise_nodes(nodes: EncodedNodes, quantiser: Quantiser, *, vocabulary_size: int, segments: int) -> Arrays:
    """A chunk of a token store: quantised vectors, of passages their mean, counts of tokens, and what was cut.

    The first `segments` nodes are segments.
    """
    quantised = quantiser.encode(nodes.vectors_TD)
    bounds = np.concatenate([[0], np.cumsum(nodes.counts)])
    passages = list(pairwise(bounds))[segments:]
    held = np.concatenate([np.zeros(0, np.int32), *(np.unique(nodes.ids[a:b]) for a, b in pairwise(bounds))])
    return {
        "cut": nodes.cut,
        "counts": nodes.counts,
        "frequencies": np.bincount(held, minlength=vocabulary_size).astype(np.int32),
        "codes": quantised.codes,
        "scales": quantised.scales,
        "residuals": quantised.residuals,
        "pooled": pooled_codes([nodes.vectors_TD[a:b] for a, b in passages], quantiser.dimension),
    }
