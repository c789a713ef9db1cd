"""Encode: a codebook fitted to this corpus, then every node's token vectors quantised against it."""

import multiprocessing
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.corpus import CorpusStore
from helios.errors import HeliosError
from helios.index.durable import sha256_file
from helios.index.manifest import ModelEntry
from helios.index.quantiser import Quantiser
from helios.index.tokens import write_tokens
from helios.models.encoder import FloatArray, MiniLMEncoder
from helios.models.glossary import glossaries_digest
from helios.models.routes import gpu_room, uses_gpu
from indexing.encoding import (
    EncodedNodes,
    encode_nodes,
    encode_texts,
    fit_codebook,
    node_count,
    node_texts,
    quantise_nodes,
    sample_nodes,
)
from indexing.stage import BuildRequest, Chunks, StageContext, StageResult
from indexing.workers import exit_with_parent, kill_processes, one_thread_each

ENCODING = (
    "encoder.model", "encoder.adapter", "encoder.runtime", "advanced.encoder.max_tokens", "advanced.encoder.windows",
)  # fmt: skip
"""Settings that token vectors depend on; a build may go on on another device."""
SEED = 0
GPU_FROM = 20_000
"""Rows and passages from which a GPU is used that nobody asked for."""
VECTORS = "vectors"
"""Where the codebook stage keeps the token vectors of its sample, if that is the whole corpus."""


@dataclass(frozen=True)
class CodebookStage:
    """Corpus store → codebook, from the token vectors of a sample of nodes."""

    name: str = "codebook"
    version: int = 1
    component: str | None = "codebook"
    inputs: tuple[str, ...] = ("ingest",)
    settings: tuple[str, ...] = (*ENCODING, "tokens", "advanced.encoder.centroids")

    def fingerprint(self, request: BuildRequest) -> dict[str, Any]:
        """The encoder's weights."""
        return {"encoder": load_encoder(request).record}

    def run(self, context: StageContext) -> StageResult:
        """Fit centroids and scales; the vectors of a corpus that is its own sample are kept for encoding."""
        store = CorpusStore.open(context.inputs["ingest"])
        settings = context.config
        random = np.random.default_rng(SEED)
        chosen, nodes = sample_nodes(store, random), node_count(store)
        chunks = encoded_sample(context, store, chosen)
        fitted = fit_codebook(
            _vectors(chunks), random, growth=nodes / max(1, len(chosen)), bits=settings.tokens.bits,
            centroids=settings.advanced.encoder.centroids, seed=SEED,
        )  # fmt: skip
        fitted.save(context.out)
        kept = context.keep / VECTORS
        shutil.rmtree(kept, ignore_errors=True)
        if len(chosen) == nodes:
            kept.mkdir()
            chunks.directory.replace(kept / chunks.directory.name)
        return StageResult(counts={"centroids": len(fitted.centroids_KD)})


def encoded_sample(context: StageContext, store: CorpusStore, chosen: NDArray[np.int64]) -> Chunks:
    """The token vectors of some nodes, chunk by chunk on the disk, as the encode stage would encode them."""
    size = context.config.advanced.encoder.chunk
    chunks = context.chunks(_folder(context), max(1, -(-len(chosen) // size)))
    pending = chunks.pending()
    context.meter.start(len(chosen), "nodes", done=min(len(chosen), (chunks.total - len(pending)) * size))
    encoder = load_encoder(context.request, node_count(store))
    for number in pending:
        own = chosen[number * size : (number + 1) * size].tolist()
        texts = [text for node in own for text in node_texts(store, node, node + 1)]
        chunks.save(number, encode_texts(texts, encoder).arrays())
        context.meter.advance(len(own))
    return chunks


def _folder(context: StageContext) -> str:
    """A name for chunks of nodes: those of another size are others."""
    return f"nodes-{context.config.advanced.encoder.chunk}"


def _vectors(chunks: Chunks) -> FloatArray:
    """The vectors of all chunks in one array, without a second copy of them in memory: (T, D)."""
    counts = [int(chunks.load(number, "counts")["counts"].sum()) for number in range(chunks.total)]
    sample_TD = np.empty((sum(counts), chunks.load(0, "vectors_TD")["vectors_TD"].shape[1]), np.float32)
    start = 0
    for number, count in enumerate(counts):
        sample_TD[start : start + count] = chunks.load(number, "vectors_TD")["vectors_TD"]
        start += count
    return sample_TD


@dataclass(frozen=True)
class EncodeStage:
    """Corpus store and codebook → token store; every finished chunk survives a crash.

    On a GPU up to `workers` processes take a chunk each, as many as its memory holds: what is left to the processor
    (reading, tokenising, quantising) takes far longer than the GPU does.
    """

    name: str = "encode"
    version: int = 3
    component: str | None = "tokens"
    inputs: tuple[str, ...] = ("ingest", "codebook")
    settings: tuple[str, ...] = (*ENCODING, "tokens", "advanced.encoder.chunk")

    def fingerprint(self, request: BuildRequest) -> dict[str, Any]:
        """The encoder's weights."""
        return {"encoder": load_encoder(request).record}

    def run(self, context: StageContext) -> StageResult:
        """Encode what is missing, join the chunks."""
        store = CorpusStore.open(context.inputs["ingest"])
        nodes, size = node_count(store), context.config.advanced.encoder.chunk
        encoder = load_encoder(context.request, nodes)
        chunks = context.chunks(_folder(context), -(-nodes // size))
        pending = chunks.pending()
        context.meter.start(nodes, "nodes", done=min(nodes, (chunks.total - len(pending)) * size))
        kept = Chunks(context.kept["codebook"] / VECTORS / _folder(context), chunks.total)
        work = ChunkWork(
            context.request, context.inputs["ingest"], context.inputs["codebook"], chunks.directory, kept.directory,
            chunks.total, os.getpid(),
        )  # fmt: skip
        room = gpu_room(encoder.dimension) if uses_gpu(encoder.device) else 1
        processes = min(room, context.workers, len(pending))
        alone = processes <= 1
        done = work.encoded(pending, store, encoder) if alone else encoded_by_processes(work, pending, processes)
        for number in done:
            context.note("chunk", chunk=number)
            context.meter.advance(min((number + 1) * size, nodes) - number * size)
        quantiser = Quantiser.open(work.codebook, bits=context.config.tokens.bits)
        paths = [chunks.path(number) for number in range(chunks.total)]
        tokens = write_tokens(paths, quantiser, context.out, encoder=encoder.record)
        shutil.rmtree(kept.directory.parent, ignore_errors=True)
        models = {"encoder": ModelEntry(name=encoder.name, sha256=encoder.base.sha256)}
        if encoder.adapter is not None:
            models["adapter"] = ModelEntry(name=encoder.adapter.stem, sha256=sha256_file(encoder.adapter))
        return StageResult(counts={"tokens": tokens, **_cut(chunks)}, models=models)


@dataclass(frozen=True, slots=True)
class ChunkWork:
    """What encoding a chunk takes, in this process or in another one."""

    request: BuildRequest
    store: Path
    codebook: Path
    chunks: Path
    """Where finished chunks are saved."""
    kept: Path
    """Where the codebook's sample is kept, if it is the whole corpus."""
    total: int
    build: int
    """Process id of the build."""

    def encoded(self, numbers: Iterable[int], store: CorpusStore, encoder: MiniLMEncoder) -> Iterator[int]:
        """Encode and save chunks; the number of each as it is saved, while the next is encoded: two are in memory."""
        chunks, kept = Chunks(self.chunks, self.total), Chunks(self.kept, self.total)
        config, nodes = self.request.config, node_count(store)
        size, quantiser = config.advanced.encoder.chunk, Quantiser.open(self.codebook, bits=config.tokens.bits)
        with ThreadPoolExecutor(1) as behind:
            saving: Future[int] | None = None
            for number in numbers:
                stop = min((number + 1) * size, nodes)
                encoded = _kept(kept, number) or encode_nodes(store, encoder, number * size, stop)
                if saving is not None:
                    yield saving.result()
                segments = min(max(store.segment_count - number * size, 0), stop - number * size)
                saving = behind.submit(_save, chunks, number, encoded, quantiser, encoder, segments)
            if saving is not None:
                yield saving.result()


def encoded_by_processes(work: ChunkWork, numbers: Sequence[int], workers: int) -> Iterator[int]:
    """Encode and save chunks by `workers` processes; the number of each as it is saved.

    HeliosError if one of them is killed, as a system does that runs out of memory.
    """
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_open, initargs=(work,))
    try:
        with one_thread_each():
            waiting = [pool.submit(_encode_chunk, number) for number in numbers]
        for future in as_completed(waiting):
            yield future.result()
    except BrokenProcessPool:
        kill_processes(pool)
        raise HeliosError(
            f"one of {workers} worker processes ended while texts were encoded; if memory ran out, run the same "
            f"command with fewer (--workers {max(1, workers // 2)}): finished work is kept"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_opened: dict[str, tuple[ChunkWork, CorpusStore, MiniLMEncoder]] = {}
"""The work of this worker process, opened once by the pool's initializer."""


def _open(work: ChunkWork) -> None:
    exit_with_parent(work.build)
    store = CorpusStore.open(work.store)
    _opened["work"] = (work, store, load_encoder(work.request, node_count(store)))


def _encode_chunk(number: int) -> int:
    work, store, encoder = _opened["work"]
    (saved,) = work.encoded([number], store, encoder)
    return saved


def _kept(kept: Chunks, number: int) -> EncodedNodes | None:
    """What the codebook's sample has of a chunk, where that sample is the whole corpus in the same chunks."""
    return EncodedNodes(**kept.load(number)) if kept.path(number).exists() else None


def _save(
    chunks: Chunks, number: int, encoded: EncodedNodes, quantiser: Quantiser, encoder: MiniLMEncoder, segments: int
) -> int:
    """Quantise and save one chunk; its number."""
    vocabulary = encoder.vocabulary_size
    chunks.save(number, quantise_nodes(encoded, quantiser, vocabulary_size=vocabulary, segments=segments))
    return number


def _cut(chunks: Chunks) -> dict[str, int]:
    """How many nodes were longer than the encoder reads, and how many tokens were left out; nothing where none was."""
    cut = np.concatenate([np.zeros(0, np.int64), *(chunks.load(number)["cut"] for number in range(chunks.total))])
    return {"nodes_cut": int((cut > 0).sum()), "tokens_cut": int(cut.sum())} if cut.any() else {}


def load_encoder(request: BuildRequest, nodes: int = 0) -> MiniLMEncoder:
    """The encoder that the settings name for so many texts, with the installed glossaries.

    A GPU that nobody asked for is left alone for a few texts: it takes seconds to begin.
    """
    settings, more = request.config.encoder, request.config.advanced.encoder
    if settings.device == "cuda":
        uses_gpu("cuda")  # said before any work where there is none
    device = "cpu" if settings.device == "auto" and nodes < GPU_FROM else settings.device
    encoder = MiniLMEncoder.load(
        settings.model, adapter=settings.adapter, runtime=settings.runtime, max_tokens=more.max_tokens,
        windows=more.windows, batch_tokens=more.batch_tokens, threads=request.workers, device=device,
    )  # fmt: skip
    return encoder.with_glossary(glossaries_digest() if encoder.base.is_english else None)
