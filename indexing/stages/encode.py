"""Encode: every node's token vectors, quantised against a codebook fitted to this corpus."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from helios.corpus import CorpusStore
from helios.index.durable import sha256_file
from helios.index.manifest import ModelEntry
from helios.index.quantiser import Quantiser
from helios.index.tokens import write_tokens
from helios.models.encoder import MiniLMEncoder, TokenVectors
from indexing.encoding import encode_nodes, fit_codebook, node_count, quantise_nodes
from indexing.stage import BuildRequest, Chunks, StageContext, StageResult


@dataclass(frozen=True)
class EncodeStage:
    """Corpus store → token store; the codebook and every finished chunk survive a crash."""

    name: str = "encode"
    version: int = 1
    component: str | None = "tokens"
    inputs: tuple[str, ...] = ("ingest",)
    settings: tuple[str, ...] = ("encoder", "tokens", "pipeline.encode_chunk")

    def fingerprint(self, request: BuildRequest) -> dict[str, Any]:
        """The encoder's weights."""
        return {"encoder": load_encoder(request).fingerprint}

    def run(self, context: StageContext) -> StageResult:
        """Fit the codebook, encode what is missing, join the chunks."""
        store = CorpusStore.open(context.inputs["ingest"])
        encoder = load_encoder(context.request)
        nodes, size = node_count(store), context.config.pipeline.encode_chunk
        chunks = context.chunks(f"nodes-{size}", -(-nodes // size))
        pending = chunks.pending()
        context.meter.start(nodes, "nodes", done=(chunks.total - len(pending)) * size)
        quantiser = self._codebook(context, store, encoder)
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
        return StageResult(counts={"tokens": tokens}, models=models)

    def _codebook(self, context: StageContext, store: CorpusStore, encoder: MiniLMEncoder) -> Quantiser:
        settings = context.config.tokens
        saved = context.chunks("codebook", 1)
        if saved.pending():
            fitted = fit_codebook(store, encoder, bits=settings.bits, centroids=settings.centroids)
            saved.save(0, fitted.arrays())
        return Quantiser.of_arrays(saved.load(0), bits=settings.bits)


def _save(
    chunks: Chunks, number: int, encoded: list[TokenVectors], quantiser: Quantiser, encoder: MiniLMEncoder
) -> None:
    """Quantise and save one chunk; runs beside the encoding of the next, so two chunks are in memory."""
    chunks.save(number, quantise_nodes(encoded, quantiser, vocabulary_size=encoder.vocabulary_size))


def load_encoder(request: BuildRequest) -> MiniLMEncoder:
    """The encoder that the settings name."""
    settings = request.config.encoder
    return MiniLMEncoder.load(
        settings.model, adapter=settings.adapter, runtime=settings.runtime, max_tokens=settings.max_tokens,
        batch_tokens=settings.batch_tokens, threads=request.workers,
    )  # fmt: skip
