"""A part from a corpus store: token vectors under the index's codebook, postings by its analysis, terms of titles."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from helios.corpus import CorpusStore
from helios.errors import HeliosError, IndexFormatError
from helios.index.languages import Analysis
from helios.index.lexical import Postings, write_postings
from helios.index.manifest import PARTS_FOLDER, Codebook, Counts, Part
from helios.index.quantiser import Quantiser
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot
from helios.index.titles import TitleTerms
from helios.index.tokens import write_tokens
from helios.index.tombstones import Tombstones
from helios.models.encoder import MiniLMEncoder
from indexing.commit import corpus_sha256, write_tombstones
from indexing.encoding import as_read, encode_nodes, node_count, node_texts, quantise_nodes
from indexing.living.draft import Draft, free_name, place_piece
from indexing.progress import Progress
from indexing.stage import file_entries

COMPONENTS = ("corpus", "tokens", "lexical")


@dataclass(frozen=True, slots=True)
class Codec:
    """What all parts of an index share: the encoder, the codebook of new parts, and how texts become terms."""

    encoder: MiniLMEncoder
    codebook: Codebook
    quantiser: Quantiser
    analysis: Analysis

    @classmethod
    def of(cls, snapshot: Snapshot, reader: IndexReader, encoder: MiniLMEncoder) -> "Codec":
        """Those of the newest part; IndexFormatError where the index lacks a component, or has another encoder."""
        view = snapshot.parts[-1]
        lacking = [name for name in COMPONENTS if name not in view.part.components]
        if lacking or view.codebook is None or not snapshot.links:
            what = lacking[0] if lacking else "codebook" if view.codebook is None else "links"
            raise IndexFormatError(
                f"{snapshot.directory}: has no {what}, so it cannot change; build it with all stages"
            )
        stored = reader.parts[-1].tokens.encoder
        if stored["fingerprint"] != encoder.fingerprint:
            raise HeliosError(
                f"{snapshot.directory}: its vectors come from {stored['name']} ({stored['fingerprint'][:12]}), the "
                f"configured encoder is another ({encoder.fingerprint[:12]}): set encoder.model and encoder.adapter to "
                "those that it was built with"
            )
        own = as_read(encoder, reader.parts[-1])
        return cls(own, view.codebook, reader.parts[-1].tokens.quantiser, reader.parts[0].postings.analysis)


def write_part(folder: Path, scratch: Path, codec: Codec, *, chunk: int, progress: Progress) -> int:
    """Write the tokens and the postings of the corpus store in `folder`/corpus beside it; returns the tokens."""
    store, encoder = CorpusStore.open(folder / "corpus"), codec.encoder
    nodes = node_count(store)
    chunks: list[Path] = []
    with progress.stage("encode") as meter:
        meter.start(nodes, "nodes")
        for start in range(0, nodes, chunk):
            stop = min(start + chunk, nodes)
            segments = min(max(store.segment_count - start, 0), stop - start)
            quantised = quantise_nodes(
                encode_nodes(store, encoder, start, stop), codec.quantiser,
                vocabulary_size=encoder.vocabulary_size, segments=segments,
            )  # fmt: skip
            chunks.append(scratch / f"tokens-{len(chunks):06d}.npz")
            np.savez(chunks[-1], allow_pickle=False, **quantised)
            meter.advance(stop - start)
        tokens = write_tokens(chunks, codec.quantiser, folder / "tokens", encoder=encoder.record)
        for path in chunks:
            path.unlink()
    with progress.stage("lexical") as meter:
        meter.start(nodes, "nodes")
        write_postings(
            node_texts(store, 0, nodes), folder / "lexical", segment_count=store.segment_count,
            analysis=codec.analysis, progress=meter.advance,
        )  # fmt: skip
        titles = TitleTerms.of(store.passages.titles(), Postings(folder / "lexical").idf, codec.analysis)
        titles.write(folder / "lexical")
    return tokens


def placed_part(draft: Draft, folder: Path, *, codebook: str, tokens: int, inputs_sha256: str = "") -> Part:
    """Make a finished folder of corpus, tokens and postings a part of the index that nothing names yet."""
    name, store = free_name(draft, PARTS_FOLDER), CorpusStore.open(folder / "corpus")
    counts = Counts(tables=len(store.tables), segments=store.segment_count, passages=len(store.passages), tokens=tokens)
    files = file_entries(folder)
    place_piece(draft.index, PARTS_FOLDER, name, folder)
    return Part(
        name=name,
        folder=f"{PARTS_FOLDER}/{name}",
        counts=counts,
        corpus_sha256=corpus_sha256(files),
        inputs_sha256=inputs_sha256,
        files=files,
        tombstones=write_tombstones(draft.index, name, Tombstones.none()),
        codebook=codebook,
    )
