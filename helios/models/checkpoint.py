"""The weights of a BERT-shaped encoder as plain arrays: a published checkpoint, and a trained adapter added to it.

Reads the usual `config.json` and `model.safetensors` of BERT, RoBERTa, XLM-R, CamemBERT and DistilBERT; names of
tensors become those of `helios.models.bert`. Absolute positions, post-layer-norm, exact GELU; anything else is refused.
Needs no torch.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError

FloatArray = NDArray[np.float32]
POSITIONS = "embeddings.position_embeddings.weight"
TYPES = "embeddings.token_type_embeddings.weight"
LAYER_NAMES = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "output",
    "attention.output.LayerNorm": "output_norm",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "down_norm",
}
"""Names in published BERT checkpoints → names here."""
DISTIL_NAMES = {
    "attention.q_lin": "query",
    "attention.k_lin": "key",
    "attention.v_lin": "value",
    "attention.out_lin": "output",
    "sa_layer_norm": "output_norm",
    "ffn.lin1": "up",
    "ffn.lin2": "down",
    "output_layer_norm": "down_norm",
}
"""The same of DistilBERT."""
DISTIL_SETTINGS = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
}
"""Names of settings here → what DistilBERT calls them."""
ROBERTAS = ("roberta", "xlm-roberta", "camembert")
"""Architectures whose first position is the one after the padding's number."""
ARCHITECTURES = ("bert", "distilbert", *ROBERTAS)
_PREFIX = re.compile(r"^(?:bert|roberta|distilbert)\.")
_LAYER = re.compile(r"^(?:encoder|transformer)\.layer\.(\d+)\.(.+)\.(weight|bias)$")


@dataclass(frozen=True, slots=True)
class BertConfig:
    """The sizes of a BERT encoder, under the names of its `config.json`."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int
    layer_norm_eps: float
    first_position: int = 0
    """Rows of the published table of positions that stand for none; `max_position_embeddings` are those after them."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor that an encoder of these sizes has."""
        size, inner = self.hidden_size, self.intermediate_size
        shapes: dict[str, tuple[int, ...]] = {
            "embeddings.word_embeddings.weight": (self.vocab_size, size),
            POSITIONS: (self.max_position_embeddings, size),
            TYPES: (self.type_vocab_size, size),
            "embeddings.LayerNorm.weight": (size,),
            "embeddings.LayerNorm.bias": (size,),
        }
        linear = {name: (size, size) for name in ("query", "key", "value", "output")}
        linear |= {"up": (inner, size), "down": (size, inner)}
        for number in range(self.num_hidden_layers):
            for name, shape in linear.items():
                shapes[f"layers.{number}.{name}.weight"] = shape
                shapes[f"layers.{number}.{name}.bias"] = shape[:1]
            for name in ("output_norm", "down_norm"):
                shapes |= {f"layers.{number}.{name}.{kind}": (size,) for kind in ("weight", "bias")}
        return shapes


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """An encoder's sizes, its tensors in fp32, and those of the heads that an adapter brought."""

    config: BertConfig
    tensors: Mapping[str, FloatArray]
    heads: Mapping[str, FloatArray]


def read_checkpoint(folder: Path, adapter: Path | None = None) -> Checkpoint:
    """Read `config.json` and `model.safetensors`, and add an adapter's updates; ModelError if they do not fit."""
    config = read_config(folder)
    found = {local_name(name): tensor for name, tensor in read_tensors(folder / "model.safetensors")[0].items()}
    if POSITIONS in found:
        found[POSITIONS] = found[POSITIONS][config.first_position :]
    if TYPES not in found:  # DistilBERT has none
        found[TYPES] = np.zeros(config.shapes()[TYPES], np.float32)
    shapes = config.shapes()
    missing = [name for name in shapes if name not in found]
    if missing:
        raise ModelError(f"{folder}/model.safetensors lacks {missing[0]} and {len(missing) - 1} more tensors")
    for name, shape in shapes.items():
        if found[name].shape != shape:
            raise ModelError(
                f"{folder}: config.json and model.safetensors do not fit together: {name} is {found[name].shape}, "
                f"expected {shape}"
            )
    tensors = {name: found[name] for name in shapes}
    heads = _updated(tensors, adapter) if adapter is not None else {}
    return Checkpoint(config, tensors, heads)


def read_config(folder: Path) -> BertConfig:
    """The sizes in a folder's `config.json`; ModelError for anything but an encoder that is shaped like BERT."""
    try:
        raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder}: no readable model (config.json, model.safetensors): {error}") from error
    kind = raw.get("model_type")
    if kind == "distilbert":
        raw |= {name: raw[theirs] for name, theirs in DISTIL_SETTINGS.items() if theirs in raw}
        raw |= {"type_vocab_size": 1, "layer_norm_eps": 1e-12}
    if kind not in ARCHITECTURES or raw.get("hidden_act") != "gelu":
        raise ModelError(
            f"{folder}: expected one of {', '.join(ARCHITECTURES)} with GELU, found {kind} {raw.get('hidden_act')}"
        )
    if raw.get("position_embedding_type", "absolute") != "absolute":
        raise ModelError(f"{folder}: expected absolute positions, found {raw['position_embedding_type']}")
    first = raw.get("pad_token_id", 1) + 1 if kind in ROBERTAS else 0
    named = [name for name in BertConfig.__dataclass_fields__ if name != "first_position"]
    unset = [name for name in named if name not in raw]
    if unset:
        raise ModelError(f"{folder}/config.json lacks {', '.join(unset)}")
    sizes = {name: raw[name] for name in named} | {"max_position_embeddings": raw["max_position_embeddings"] - first}
    return BertConfig(**sizes, first_position=first)


def local_name(name: str) -> str:
    """The name of a published tensor here."""
    name = _PREFIX.sub("", name)
    match = _LAYER.match(name)
    if match is None:
        return name
    number, module, parameter = match.groups()
    return f"layers.{number}.{(LAYER_NAMES | DISTIL_NAMES).get(module, module)}.{parameter}"


def read_tensors(path: Path) -> tuple[dict[str, FloatArray], dict[str, str]]:
    """The floating-point tensors of a safetensors file in fp32, and its metadata; ModelError if it cannot be read.

    Tensors that are stored in fp32 are mapped, not copied: read only, and loaded when they are used.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:  # checks that header and data fit together
            metadata = dict(file.metadata() or {})
        stored = np.memmap(path, np.uint8, "r")
        start = 8 + int.from_bytes(stored[:8].tobytes(), "little")
        header = json.loads(stored[8:start].tobytes())
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelError(f"{path}: no readable model ({error})") from error
    data = np.asarray(stored[start:])
    floats = {name: one for name, one in header.items() if one.get("dtype") in _FLOATS}
    return {name: _fp32(data[slice(*one["data_offsets"])], one) for name, one in floats.items()}, metadata


_FLOATS = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}


def _fp32(data: NDArray[np.uint8], stored: Mapping[str, Any]) -> FloatArray:
    """A stored tensor in fp32; bf16 is the upper half of one."""
    values = data.view(_FLOATS[stored["dtype"]])
    if stored["dtype"] == "BF16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return np.asarray(values, np.float32).reshape(stored["shape"])


def _updated(tensors: dict[str, FloatArray], path: Path) -> dict[str, FloatArray]:
    """Add the updates of an adapter's file (`helios.models.adapters`) in place; returns the tensors of its heads."""
    stored, metadata = read_tensors(path)
    try:
        scale = np.float32(metadata["scale"])
    except (KeyError, ValueError) as error:
        raise ModelError(f"{path}: no readable adapter (metadata without a scale: {error})") from error
    for name in sorted(stored):
        if name.endswith(".delta"):
            target = name.removesuffix(".delta")
            if target not in tensors or tensors[target].shape != stored[name].shape:
                raise ModelError(f"{path}: {name} does not fit this encoder; was it trained from another base?")
            tensors[target] = tensors[target] + stored[name]
        if not name.endswith(".A"):
            continue
        target = f"{name.removesuffix('.A')}.weight"
        down, up, weight = stored[name], stored.get(f"{name.removesuffix('.A')}.B"), tensors.get(target)
        if weight is None or up is None or (up.shape[0], down.shape[1]) != weight.shape:
            raise ModelError(f"{path}: {name} does not fit {target} of this encoder; was it trained from another base?")
        update = up @ down
        update *= scale
        update += weight
        tensors[target] = update
    return {name: tensor for name, tensor in stored.items() if name.startswith("head.")}
