"""A new codebook for an index that has outgrown its own, and all nodes encoded again under it.

The scale of a vector's residual is stored as one of 256 levels, which are quantiles of those that the codebook was
fitted to: one vector in twenty lies at OUTLYING or above. Where many more do, the codebook knows too little of the
corpus.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from helios.config import Config
from helios.corpus import CorpusStore
from helios.index.manifest import CODEBOOKS_FOLDER, Codebook
from helios.index.quantiser import Quantiser
from helios.index.reader import IndexReader, PartFiles
from helios.index.snapshot import Snapshot
from helios.models.encoder import MiniLMEncoder
from indexing.encoding import encode_texts, fit_codebook, node_count, node_texts, sample_nodes
from indexing.living.compaction import Merged
from indexing.living.draft import Draft, free_name, place_piece
from indexing.living.merging import merge_corpus
from indexing.living.parts import Codec, write_part
from indexing.living.syncing import known_files, write_files
from indexing.progress import Progress
from indexing.stage import file_entries
from indexing.stages.encode import SEED

OUTLYING = 243
"""Levels of residuals from here on hold a twentieth of the vectors that a codebook was fitted to."""


def outliers(parts: Sequence[PartFiles]) -> float:
    """The share of stored vectors that lie far from the codebook."""
    counts = [(int((part.tokens.scales >= OUTLYING).sum()), part.tokens.token_count) for part in parts]
    return sum(own for own, _ in counts) / max(1, sum(count for _, count in counts))


def refitted(
    snapshot: Snapshot, work: Path, encoder: MiniLMEncoder, config: Config, progress: Progress
) -> tuple[Merged, Path]:
    """Write all that is left of a snapshot as one part under a new codebook; the part, and the codebook's folder."""
    reader, folder = IndexReader.of(snapshot), work / "part"
    with progress.stage("texts") as meter:
        moved = merge_corpus(reader.parts, folder / "corpus", encoder, meter)
    store = CorpusStore.open(folder / "corpus")
    if known := known_files(snapshot.directory, snapshot.parts):
        write_files(folder, known)
    with progress.stage("codebook"):
        quantiser = _fitted(store, encoder, config)
    (work / "codebook").mkdir()
    quantiser.save(work / "codebook")
    codec = replace(Codec.of(snapshot, reader, encoder), encoder=encoder, quantiser=quantiser)
    tokens = write_part(folder, work, codec, chunk=config.advanced.encoder.chunk, progress=progress)
    parts = tuple(view.part for view in snapshot.parts)
    return Merged(parts, tuple(moved), folder, tokens, node_count(store)), work / "codebook"


def placed_codebook(draft: Draft, folder: Path) -> tuple[Draft, Codebook]:
    """The draft with a finished folder as one more codebook."""
    name, files = free_name(draft, CODEBOOKS_FOLDER), file_entries(folder)
    place_piece(draft.index, CODEBOOKS_FOLDER, name, folder)
    codebook = Codebook(name=name, folder=f"{CODEBOOKS_FOLDER}/{name}", files=files)
    return replace(draft, codebooks=(*draft.codebooks, codebook)), codebook


def _fitted(store: CorpusStore, encoder: MiniLMEncoder, config: Config) -> Quantiser:
    """A codebook as a build fits it, to a sample of the nodes."""
    random = np.random.default_rng(SEED)
    chosen, size = sample_nodes(store, random), config.advanced.encoder.chunk
    vectors = [np.zeros((0, encoder.dimension), np.float32)]
    for start in range(0, len(chosen), size):
        nodes = chosen[start : start + size].tolist()
        texts = [text for node in nodes for text in node_texts(store, node, node + 1)]
        vectors.append(encode_texts(texts, encoder).vectors_TD)
    return fit_codebook(
        np.concatenate(vectors), random, growth=node_count(store) / max(1, len(chosen)), bits=config.tokens.bits,
        centroids=config.advanced.encoder.centroids, seed=SEED,
    )  # fmt: skip
