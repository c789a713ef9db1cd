"""Encode: a codebook fitted to this corpus, then every node's token vectors quantised against it."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from helios.corpus import CorpusStore
from helios.index.durable import sha256_file
from helios.index.manifest import ModelEntry
from helios.index.quantiser import Quantiser
from helios.index.tokens import write_tokens
from helios.models.encoder import MiniLMEncoder
from indexing.encoding import EncodedNodes, encode_nodes, fit_codebook, node_count, quantise_nodes
from indexing.stage import BuildRequest, Chunks, StageContext, StageResult

ENCODING = ("encoder", "advanced.encoder.max_tokens", "advanced.encoder.windows")
"""Settings that token vectors depend on."""


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
        return {"encoder": load_encoder(request).fingerprint}

    def run(self, context: StageContext) -> StageResult:
        """Fit centroids and scales."""
        store = CorpusStore.open(context.inputs["ingest"])
        settings = context.config
        context.meter.start(1, "codebook")
        encoder = load_encoder(context.request)
        fitted = fit_codebook(store, encoder, bits=settings.tokens.bits, centroids=settings.advanced.encoder.centroids)
        fitted.save(context.out)
        context.meter.advance(1)
        return StageResult(counts={"centroids": len(fitted.centroids_KD)})


@dataclass(frozen=True)
class EncodeStage:
    """Corpus store and codebook → token store; every finished chunk survives a crash."""

    name: str = "encode"
    version: int = 2
    component: str | None = "tokens"
    inputs: tuple[str, ...] = ("ingest", "codebook")
    settings: tuple[str, ...] = (*ENCODING, "tokens", "advanced.encoder.chunk")

    def fingerprint(self, request: BuildRequest) -> dict[str, Any]:
        """The encoder's weights."""
        return {"encoder": load_encoder(request).fingerprint}

    def run(self, context: StageContext) -> StageResult:
        """Fit the codebook, encode what is missing, join the chunks."""
        store = CorpusStore.open(context.inputs["ingest"])
        encoder = load_encoder(context.request)
        nodes, size = node_count(store), context.config.advanced.encoder.chunk
        chunks = context.chunks(f"nodes-{size}", -(-nodes // size))
        pending = chunks.pending()
        context.meter.start(nodes, "nodes", done=(chunks.total - len(pending)) * size)
        quantiser = Quantiser.open(context.inputs["codebook"], bits=context.config.tokens.bits)
        with ThreadPoolExecutor(1) as behind:
            saving: Future[None] | None = None
            for number in pending:
                stop = min((number + 1) * size, nodes)
                encoded = encode_nodes(store, encoder, number * size, stop)
                if saving is not None:
                    saving.result()
                saving = behind.submit(_save, chunks, number, encoded, quantiser, encoder)
                context.meter.advance(stop - number * size)
            if saving is not None:
                saving.result()
        described = {"name": encoder.name, "fingerprint": encoder.fingerprint}
        tokens = write_tokens(
            [chunks.path(number) for number in range(chunks.total)], quantiser, context.out, encoder=described
        )
        models = {"encoder": ModelEntry(name=encoder.name, sha256=encoder.base.sha256)}
        if encoder.adapter is not None:
            models["adapter"] = ModelEntry(name=encoder.adapter.stem, sha256=sha256_file(encoder.adapter))
        return StageResult(counts={"tokens": tokens, **_cut(chunks)}, models=models)


def _save(chunks: Chunks, number: int, encoded: EncodedNodes, quantiser: Quantiser, encoder: MiniLMEncoder) -> None:
    """Quantise and save one chunk; runs beside the encoding of the next, so two chunks are in memory."""
    chunks.save(number, quantise_nodes(encoded, quantiser, vocabulary_size=encoder.vocabulary_size))


def _cut(chunks: Chunks) -> dict[str, int]:
    """How many nodes were longer than the encoder reads, and how many tokens were left out; nothing where none was."""
    cut = np.concatenate([np.zeros(0, np.int64), *(chunks.load(number)["cut"] for number in range(chunks.total))])
    return {"nodes_cut": int((cut > 0).sum()), "tokens_cut": int(cut.sum())} if cut.any() else {}


def load_encoder(request: BuildRequest) -> MiniLMEncoder:
    """The encoder that the settings name."""
    settings, more = request.config.encoder, request.config.advanced.encoder
    return MiniLMEncoder.load(
        settings.model, adapter=settings.adapter, runtime=settings.runtime, max_tokens=more.max_tokens,
        windows=more.windows, batch_tokens=more.batch_tokens, threads=request.workers,
    )  # fmt: skip
