"""A BERT encoder in plain torch: the shape of all-MiniLM-L6-v2, of BERT and of ColBERT's base.

For training, and for machines without OpenVINO (`helios.models.compiled`). `helios.models.checkpoint` reads weights.

Shape legend: B batch, L tokens, D hidden size, H heads, X size of a head.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from helios.models.checkpoint import BertConfig, Checkpoint, read_checkpoint


class Embeddings(nn.Module):
    """Word, position and type embeddings."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, ids_BL: Tensor, types_BL: Tensor | None = None) -> Tensor:
        positions = self.position_embeddings.weight[: ids_BL.shape[1]]
        types = self.token_type_embeddings.weight[0] if types_BL is None else self.token_type_embeddings(types_BL)
        summed = self.word_embeddings(ids_BL) + positions + types
        normalised: Tensor = self.LayerNorm(summed)
        return normalised


class Layer(nn.Module):
    """One post-norm transformer layer."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.heads = config.num_attention_heads
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)
        self.output = nn.Linear(size, size)
        self.output_norm = nn.LayerNorm(size, eps=config.layer_norm_eps)
        self.up = nn.Linear(size, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, size)
        self.down_norm = nn.LayerNorm(size, eps=config.layer_norm_eps)

    def forward(self, x_BLD: Tensor, bias_B11L: Tensor) -> Tensor:
        q, k, v = (self._split(project(x_BLD)) for project in (self.query, self.key, self.value))
        mixed = self._attend(q, k, v, bias_B11L)
        x_BLD = self.output_norm(x_BLD + self.output(mixed.transpose(1, 2).flatten(2)))
        normalised: Tensor = self.down_norm(x_BLD + self.down(F.gelu(self.up(x_BLD))))
        return normalised

    def _attend(self, q_BHLX: Tensor, k_BHLX: Tensor, v_BHLX: Tensor, bias_B11L: Tensor) -> Tensor:
        """Attention; the fused kernel's backward is slow on processors, plain products are a fifth faster there."""
        if not (self.training and q_BHLX.device.type == "cpu"):
            return F.scaled_dot_product_attention(q_BHLX, k_BHLX, v_BHLX, attn_mask=bias_B11L)
        weights_BHLL = (q_BHLX @ k_BHLX.transpose(-1, -2)) * q_BHLX.shape[-1] ** -0.5 + bias_B11L
        mixed: Tensor = weights_BHLL.softmax(-1).to(v_BHLX.dtype) @ v_BHLX
        return mixed

    def _split(self, x_BLD: Tensor) -> Tensor:
        batch, length, size = x_BLD.shape
        return x_BLD.view(batch, length, self.heads, size // self.heads).transpose(1, 2)


class Bert(nn.Module):
    """Token vectors of the last layer."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, ids_BL: Tensor, mask_BL: Tensor, types_BL: Tensor | None = None) -> Tensor:
        """Token vectors (B, L, D); `mask` is 1 for tokens and 0 for padding, `types` 1 for a pair's second text."""
        x_BLD: Tensor = self.embeddings(ids_BL, types_BL)
        bias = (1.0 - mask_BL[:, None, None, :].to(x_BLD.dtype)) * -1e4
        for layer in self.layers:
            x_BLD = layer(x_BLD, bias)
        return x_BLD


def load_bert(folder: Path, adapter: Path | None = None) -> Bert:
    """Build the encoder from a folder with `config.json` and `model.safetensors`; ModelError if it is no BERT."""
    return bert_of(read_checkpoint(folder, adapter))


def bert_of(checkpoint: Checkpoint) -> Bert:
    """The encoder of these weights, which it gets a copy of."""
    with torch.device("meta"), _Unset():
        bert = Bert(checkpoint.config)
    tensors = {name: torch.from_numpy(tensor.copy()) for name, tensor in checkpoint.tensors.items()}
    bert.load_state_dict(tensors, assign=True)
    return bert.eval()


class _Unset(TorchFunctionMode):
    """Weights are not drawn at random: they would only be replaced, and drawing on no device imports a compiler."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if getattr(function, "__module__", None) == torch.nn.init.__name__:
            return args[0] if args else named["tensor"]
        return function(*args, **named)
