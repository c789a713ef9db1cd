"""FlagEmbedding's layer-wise reranker (bge-reranker-v2-minicpm-layerwise), which every layer from one on can score.

FlagEmbedding 1.4 is written for transformers 4. Under transformers 5 this adapter makes good, and a golden test
guards:

1. a config without rope scaling gets a `rope_scaling` of another shape, which the model cannot read;
2. `_tied_weights_keys` is a list where a mapping or nothing is expected;
3. the model's forward asks for a cache class method that is gone: here layers are run without a cache;
4. rotary tables are not in the checkpoint and stay uninitialised after loading, so that scores are silently NaN:
   they are computed again.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from helios.errors import ModelError
from helios.extras import import_library
from helios.models.runtime import supports_bf16
from helios.retrieval.reranking.library import LibraryReranker, named
from helios.retrieval.reranking.reranker import FloatArray

MODELS = "FlagEmbedding.inference.reranker.decoder_only.models"
PROMPT = (
    "Given a query A and a passage B, determine whether the passage contains an answer to the query "
    "by providing a prediction of either 'Yes' or 'No'."
)
"""What the published model was trained with; other words give other scores."""


class LayerwiseReranker(LibraryReranker):
    """The logit that the head of one layer gives; layers above are never run."""

    def __init__(
        self, model: Any, tokenizer: Any, *, layer: int, max_tokens: int = 512, batch_tokens: int = 8192
    ) -> None:
        super().__init__(tokenizer, max_tokens=max_tokens, batch_tokens=batch_tokens)
        config = model.config
        if not config.start_layer <= layer <= config.num_hidden_layers:
            raise ModelError(
                f"advanced.rerank.layer={layer}: this model scores from layer {config.start_layer} to "
                f"{config.num_hidden_layers}"
            )
        if config.head_type != "simple" or not config.head_multi:
            raise ModelError(f"a layer-wise reranker has one head a layer, this one has {config.head_type!r} heads")
        self.layer = layer
        self._model = model.eval()
        self._separator, self._prompt = self._ids(["\n", PROMPT])

    @classmethod
    def load(
        cls, model: str | None, *, layer: int = 24, max_tokens: int = 512, batch_tokens: int = 8192,
        device: str | None = None,
    ) -> "LayerwiseReranker":  # fmt: skip
        """A folder or a name on the hub; ModelError if it cannot be loaded."""
        name = named(model, "flag-layerwise")
        import torch

        transformers = import_library("transformers")
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        bf16 = torch.cuda.is_bf16_supported() if device.startswith("cuda") else supports_bf16()
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(name)
            loaded = load_layerwise(name, dtype=torch.bfloat16 if bf16 else torch.float32)
        except (OSError, ValueError) as error:
            raise ModelError(f"{name}: no layer-wise reranker could be loaded: {error}") from error
        return cls(loaded.to(device), tokenizer, layer=layer, max_tokens=max_tokens, batch_tokens=batch_tokens)

    def logits(self, question: str, texts: Sequence[str]) -> FloatArray:
        """Raises ModelError for scores that are no numbers, rather than ranking by them."""
        import torch

        rows = self._rows(question, texts)
        length = max(map(len, rows))
        ids = torch.zeros(len(rows), length, dtype=torch.long)
        mask = torch.zeros(len(rows), length, dtype=torch.bool)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = torch.tensor(row)
            mask[number, : len(row)] = True
        device = next(self._model.parameters()).device
        with torch.inference_mode():
            scores = _forward(self._model, ids.to(device), mask.to(device), self.layer).float().cpu().numpy()
        if not np.isfinite(scores).all():
            raise ModelError("the layer-wise reranker gave scores that are no numbers: its weights are damaged")
        return np.asarray(scores, np.float32)

    def _rows(self, question: str, texts: Sequence[str]) -> list[list[int]]:
        """[BOS] A: question, B: text, prompt; separated by line ends; the text is cut to what is left."""
        (asked,) = self._ids([f"A: {question}"])
        start = [self._tokenizer.bos_token_id, *asked[: self.max_tokens * 3 // 4], *self._separator]
        room = max(1, self.max_tokens - len(start) + len(self._separator))
        end = [*self._separator, *self._prompt]
        return [[*start, *ids[:room], *end] for ids in self._ids([f"B: {text}" for text in texts])]


def load_layerwise(folder: str, *, dtype: Any) -> Any:
    """The model with the fixes that transformers 5 makes necessary."""
    configs, models = layerwise_classes()
    settings = configs.from_pretrained(folder)
    mend_rope(settings)
    loaded = models.from_pretrained(folder, config=settings, dtype=dtype)
    _compute_rotary_tables(loaded)
    return loaded


def layerwise_classes() -> tuple[Any, Any]:
    """The classes of config and model; the model's says that no weights are tied, as transformers 5 reads it."""
    config = import_library(f"{MODELS}.configuration_minicpm_reranker")
    modeling = import_library(f"{MODELS}.modeling_minicpm_reranker")
    causal: Any = modeling.LayerWiseMiniCPMForCausalLM
    mended = {"_tied_weights_keys": None, "can_generate": classmethod(lambda cls: False)}  # it only scores
    return config.LayerWiseMiniCPMConfig, type("LayerWiseMiniCPMForCausalLM", (causal,), mended)


def mend_rope(config: Any) -> None:
    """Give a config its rope settings in the shape of transformers 4."""
    rope = config.rope_parameters
    if not rope:
        return
    config.rope_theta = rope.get("rope_theta", config.rope_theta)
    kind = rope.get("rope_type") or rope.get("type")
    config.rope_parameters = None if kind in (None, "default") else {"type": kind, "factor": rope["factor"]}


def _compute_rotary_tables(model: Any) -> None:
    import torch

    for module in model.modules():
        if hasattr(module, "_set_cos_sin_cache"):
            exponents = torch.arange(0, module.dim, 2, dtype=torch.float32) / module.dim
            module.inv_freq = 1.0 / module.base**exponents
            length = module.max_position_embeddings
            module._set_cos_sin_cache(seq_len=length, device=module.inv_freq.device, dtype=torch.float32)


def _forward(model: Any, ids_BL: Any, mask_BL: Any, layer: int) -> Any:
    """The score of a layer's head at the last token of every row: (B). Rows are padded on the right."""
    import torch

    x_BLD = model.model.embed_tokens(ids_BL) * model.config.scale_emb
    length = ids_BL.shape[1]
    causal_LL = torch.ones(length, length, dtype=torch.bool, device=ids_BL.device).tril()
    seen_B1LL = (causal_LL & mask_BL[:, None, :])[:, None]
    bias_B1LL = torch.zeros_like(seen_B1LL, dtype=x_BLD.dtype).masked_fill(~seen_B1LL, torch.finfo(x_BLD.dtype).min)
    positions_1L = torch.arange(length, device=ids_BL.device)[None]
    for block in model.model.layers[:layer]:
        x_BLD = block(x_BLD, attention_mask=bias_B1LL, position_ids=positions_1L, use_cache=False)[0]
    last_BD = x_BLD[torch.arange(len(ids_BL), device=ids_BL.device), mask_BL.sum(1) - 1]
    return model.lm_head[layer - model.config.start_layer].linear_head(model.model.norm(last_BD)).squeeze(-1)
