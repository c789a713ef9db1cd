"""Encode: every node's token vectors, quantised against a codebook fitted to this corpus."""

from dataclasses import dataclass
from typing import Any

from helios.corpus import CorpusStore
from helios.index.manifest import ModelEntry
from helios.index.quantiser import Quantiser
from helios.index.tokens import write_tokens
from helios.models.encoder import MiniLMEncoder
from indexing.encoding import encode_chunk, fit_codebook, node_count
from indexing.stage import BuildRequest, StageContext, StageResult


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
        for number in pending:
            stop = min((number + 1) * size, nodes)
            chunks.save(number, encode_chunk(store, encoder, quantiser, number * size, stop))
            context.meter.advance(stop - number * size)
        described = {"name": encoder.name, "fingerprint": encoder.fingerprint}
        tokens = write_tokens(
            [chunks.path(number) for number in range(chunks.total)], quantiser, context.out, encoder=described
        )
        model = ModelEntry(name=encoder.name, sha256=encoder.base.sha256)
        return StageResult(counts={"tokens": tokens}, models={"encoder": model})

    def _codebook(self, context: StageContext, store: CorpusStore, encoder: MiniLMEncoder) -> Quantiser:
        settings = context.config.tokens
        saved = context.chunks("codebook", 1)
        if saved.pending():
            fitted = fit_codebook(store, encoder, bits=settings.bits, centroids=settings.centroids)
            saved.save(0, fitted.arrays())
        arrays = saved.load(0)
        return Quantiser(arrays["rotation"], arrays["centroids"], arrays["scale_levels"], settings.bits)


def load_encoder(request: BuildRequest) -> MiniLMEncoder:
    """The encoder that the settings name."""
    settings = request.config.encoder
    return MiniLMEncoder.load(
        settings.model, runtime=settings.runtime, max_tokens=settings.max_tokens, batch_tokens=settings.batch_tokens,
        threads=request.workers,
    )  # fmt: skip
