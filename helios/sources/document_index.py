"""Search over documents: BM25 finds, the token encoder's late interaction puts the best of them in order.

Files of an index folder (N documents): `documents.arrow` (id, title, text; memory-mapped), `postings/` (BM25), and,
once `add_vectors` was asked for, `vectors/` (quantised token vectors, `helios.index.tokens`). Without `vectors/` the
documents that are read again are encoded on the spot, and the last ones kept in memory.
"""

import logging
import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.errors import IndexFormatError
from helios.index.languages import SAMPLE, Analysis
from helios.index.lexical import Postings, Statistics, VisibleNodes, write_postings
from helios.index.quantiser import Quantiser, centroid_count
from helios.index.tokens import TokenStore, write_tokens
from helios.index.visible import Numbering, VisiblePostings, VisibleTokens
from helios.models.encoder import MiniLMEncoder, TokenVectors
from helios.sources.documents import Document

log = logging.getLogger(__name__)

K1, B = 1.2, 0.75
BM25_WEIGHT = 0.25
"""How much BM25 counts beside late interaction, both from 0 to 1 over the documents that are read again."""
BATCH = 64
LANES = 8
"""Documents encoded on the spot between two looks at the clock."""
CHUNK_DOCUMENTS = 2000
FIT_TOKENS = 200_000
"""Tokens that the quantiser is fitted to."""
KEPT_VECTORS = 2000
"""Documents whose vectors stay in memory, where they are not stored."""

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document with its score for one question; scores of two questions do not compare."""

    document: Document
    score: float


class DocumentIndex:
    """An open index folder; threads may share it, they take turns at the encoder."""

    def __init__(self, folder: Path, encoder: Callable[[], MiniLMEncoder]) -> None:
        import pyarrow as pa

        self.folder = folder
        self._encoder = encoder
        try:
            self._table = pa.ipc.open_file(pa.memory_map(str(folder / "documents.arrow"))).read_all()
        except (OSError, pa.ArrowInvalid) as error:
            raise IndexFormatError(f"{folder}: no readable documents ({error}); delete the folder") from None
        postings = Postings(folder / "postings")
        numbering = Numbering.of(
            [np.zeros(0, np.int64)], [np.arange(postings.node_count)], [0], [postings.node_count], whole=True
        )
        self._postings = VisiblePostings([postings], numbering, Statistics([VisibleNodes.all(postings)]))
        self._store = TokenStore(folder / "vectors") if (folder / "vectors").is_dir() else None
        self._vectors = (
            None
            if self._store is None
            else VisibleTokens(
                [self._store], numbering, self._store.frequencies.astype(np.int64), counted=postings.node_count
            )
        )
        self._recent: OrderedDict[int, FloatArray] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __getitem__(self, number: int) -> Document:
        return Document(*(str(self._table.column(name)[number]) for name in ("id", "title", "text")))

    @property
    def has_vectors(self) -> bool:
        """Whether token vectors are stored."""
        return self._store is not None

    def search(self, question: str, *, k: int, rerank: int, timeout: float) -> list[FoundDocument]:
        """The best `k` documents; of BM25's, the first `rerank` in the order of both scores.

        Encoding stops when half of `timeout` (seconds) is over; what was not encoded by then keeps BM25's order.
        """
        deadline = monotonic() + timeout / 2
        bm25 = self._bm25(question)
        order = np.argsort(-bm25, kind="stable")[: max(k, rerank)]
        order = order[bm25[order] > 0]
        late = self._late_interaction(question, order[:rerank], deadline) if rerank and len(order) else []
        if not len(late):
            return [FoundDocument(self[int(i)], float(bm25[i])) for i in order[:k]]
        return [FoundDocument(self[int(order[at])], score) for at, score in in_both_orders(late, bm25[order])[:k]]

    def _bm25(self, question: str) -> FloatArray:
        most = max(16, self._postings.numbering.passage_count // 2)
        return self._postings.passage_bm25(self._postings.terms(question), k1=K1, b=B, most=most)

    def _late_interaction(self, question: str, numbers: NDArray[np.int64], deadline: float) -> list[float]:
        """Sum over the question's tokens of their best match in each document, for as many as time allows."""
        with self._lock:
            self._forget_foreign_vectors()
            tokens = self._encoder().encode_question(question)
            if self._store is not None and self._vectors is not None:
                weights = self._vectors.token_weights(tokens.ids)
                return self._stored_scores(self._store, tokens, weights, numbers)
            return [
                float((vectors @ tokens.vectors.T).max(axis=0).sum())
                for vectors in self._encoded([int(number) for number in numbers], deadline)
            ]

    def _stored_scores(
        self, store: TokenStore, tokens: TokenVectors, weights: FloatArray, numbers: NDArray[np.int64]
    ) -> list[float]:
        """The same from stored vectors: the question is rotated as they are, and rare tokens count more."""
        asked_DQ = store.quantiser.rotation_DD @ tokens.vectors.T
        spans = [(int(store.offsets[number]), int(store.offsets[number + 1])) for number in numbers]
        return [
            float(weights @ (store.quantiser.decode_rotated(store.quantised(*span)) @ asked_DQ).max(axis=0))
            for span in spans
        ]

    def _forget_foreign_vectors(self) -> None:
        """Stored vectors of another encoder than ours are of no use."""
        if self._store is not None and self._store.encoder["fingerprint"] != self._encoder().fingerprint:
            log.warning("%s: its vectors are another encoder's; store them again (refresh)", self.folder)
            self._store = None

    def _encoded(self, numbers: Sequence[int], deadline: float) -> Iterator[FloatArray]:
        for start in range(0, len(numbers), LANES):
            batch = numbers[start : start + LANES]
            missing = [number for number in batch if number not in self._recent]
            if missing and monotonic() > deadline:
                log.warning("%s: time for %d of %d documents; store their vectors", self.folder, start, len(numbers))
                break
            encoded = self._encoder().encode_documents([whole_text(self[number]) for number in missing])
            for number, tokens in zip(missing, encoded, strict=True):
                self._recent[number] = tokens.vectors
            for number in batch:
                self._recent.move_to_end(number)
                yield self._recent[number]
        while len(self._recent) > KEPT_VECTORS:
            self._recent.popitem(last=False)


def in_both_orders(late: Sequence[float], bm25: FloatArray) -> list[tuple[int, float]]:
    """(number, score) of BM25's best, those first that late interaction has read, in the order of both scores.

    `bm25` are the scores of all, best first; `late` those of the first ones.
    """
    fused = _unit(np.array(late, np.float32)) + BM25_WEIGHT * _unit(bm25[: len(late)])
    ranked = [(int(at), float(fused[at])) for at in np.argsort(-fused, kind="stable")]
    return ranked + [(at, -1.0 - place) for place, at in enumerate(range(len(late), len(bm25)))]


def build_documents(documents: Iterable[Document], folder: Path) -> int:
    """Write documents and their postings as an index folder, in one step; returns how many there are."""
    import pyarrow as pa

    with _scratch(folder) as scratch:
        schema = pa.schema([(name, pa.string()) for name in ("id", "title", "text")])
        count = 0
        with pa.ipc.new_file(str(scratch / "documents.arrow"), schema) as writer:
            for batch in _batches(documents, CHUNK_DOCUMENTS):
                columns = [[d.document_id for d in batch], [d.title for d in batch], [d.text for d in batch]]
                writer.write_batch(pa.record_batch([pa.array(column, pa.string()) for column in columns], schema))
                count += len(batch)
        table = pa.ipc.open_file(pa.memory_map(str(scratch / "documents.arrow"))).read_all()

        def texts(step: int = 1) -> Iterator[str]:
            return (f"{table.column('title')[i]} {table.column('text')[i]}" for i in range(0, count, step))

        analysis = Analysis.of_texts(texts(1 + count // SAMPLE))
        write_postings(texts(), scratch / "postings", segment_count=0, analysis=analysis)
    return count


def add_vectors(index: DocumentIndex, encoder: MiniLMEncoder, *, progress: Callable[[int], None] | None = None) -> int:
    """Encode all documents and store their token vectors in the index folder; returns the number of tokens."""
    folder = index.folder / "vectors"
    with _scratch(folder) as scratch:
        quantiser = _fitted(index, encoder)
        chunks = []
        for start in range(0, len(index), CHUNK_DOCUMENTS):
            chunk = scratch / f"chunk-{start:09d}.npz"
            _write_chunk(
                index, encoder, quantiser, range(start, min(len(index), start + CHUNK_DOCUMENTS)), chunk, progress
            )
            chunks.append(chunk)
        about = {"name": encoder.name, "fingerprint": encoder.fingerprint}
        tokens = write_tokens(chunks, quantiser, scratch, encoder=about)
        quantiser.save(scratch)
        for chunk in chunks:
            chunk.unlink()
    return tokens


def _fitted(index: DocumentIndex, encoder: MiniLMEncoder) -> Quantiser:
    """A quantiser for this corpus, fitted to a sample of its documents."""
    generator = np.random.default_rng(0)
    sample, total, read = [], 0, 0
    for numbers in _batches((int(i) for i in generator.permutation(len(index))), BATCH):
        for tokens in encoder.encode_documents([whole_text(index[number]) for number in numbers]):
            sample.append(tokens.vectors)
            total += len(tokens.vectors)
            read += 1
        if total >= FIT_TOKENS:
            break
    expected = total * len(index) // max(1, read)
    return Quantiser.fit(np.concatenate(sample), centroids=min(1024, centroid_count(expected)), bits=2)


def _write_chunk(
    index: DocumentIndex, encoder: MiniLMEncoder, quantiser: Quantiser, numbers: range, chunk: Path,
    progress: Callable[[int], None] | None,
) -> None:  # fmt: skip
    counts: list[int] = []
    codes, scales, residuals = [], [], []
    frequencies = np.zeros(encoder.vocabulary_size, np.int64)
    for batch in _batches(numbers, BATCH):
        for tokens in encoder.encode_documents([whole_text(index[number]) for number in batch]):
            quantised = quantiser.encode(tokens.vectors)
            counts.append(len(tokens.vectors))
            codes.append(quantised.codes)
            scales.append(quantised.scales)
            residuals.append(quantised.residuals)
            frequencies[np.unique(tokens.ids)] += 1
        if progress is not None:
            progress(len(batch))
    with chunk.open("wb") as file:
        np.savez(
            file, counts=np.array(counts, np.int64), frequencies=frequencies, codes=np.concatenate(codes),
            scales=np.concatenate(scales), residuals=np.concatenate(residuals),
        )  # fmt: skip


def whole_text(document: Document) -> str:
    """What is read of a document."""
    return f"{document.title}. {document.text}" if document.title else document.text


def _unit(scores: FloatArray) -> FloatArray:
    """Scores moved and stretched to [0, 1]."""
    low, high = float(scores.min()), float(scores.max())
    return (scores - np.float32(low)) / np.float32(max(high - low, 1e-6))


def _batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


class _scratch:
    """A folder to write in, which takes the place of `folder` when all is written, and vanishes after an error."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> Path:
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self._path = Path(tempfile.mkdtemp(prefix=f".{self.folder.name}.", dir=self.folder.parent))
        return self._path

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            os.replace(self._path, self.folder)
        else:
            shutil.rmtree(self._path, ignore_errors=True)
