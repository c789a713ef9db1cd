"""Low-rank adapters: begin as the base, survive their file, refuse what does not fit."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from helios.errors import ModelError
from helios.models.adapters import adapter_tensors, add_adapter, apply_adapter, save_adapter
from helios.models.bert import Bert
from helios.models.checkpoint import BertConfig, read_checkpoint
from helios.models.encoder import MiniLMEncoder

TINY = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
    max_position_embeddings=20, type_vocab_size=2, layer_norm_eps=1e-12,
)  # fmt: skip
IDS = torch.arange(1, 11).view(2, 5)
MASK = torch.ones(2, 5)


def tiny_bert() -> Bert:
    torch.manual_seed(1)
    return Bert(TINY).eval()


def trained_file(path: Path, scale: float = 2.0) -> torch.Tensor:
    """An adapter with random updates in a file, and what the encoder gives with it."""
    bert = tiny_bert()
    for parameter in add_adapter(bert, rank=4, scale=scale):
        # steps of 1/64 are exact in bf16, in which the file is
        parameter.data = torch.randint(-8, 9, parameter.shape).float() / 64
    save_adapter(path, {**adapter_tensors(bert), "head.weight": torch.ones(1, 16)}, scale=scale, metadata={})
    with torch.no_grad():
        return bert(IDS, MASK)


def test_a_new_adapter_changes_nothing_and_trains_only_itself():
    bert, wrapped = tiny_bert(), tiny_bert()
    trained = add_adapter(wrapped, rank=4, scale=2.0)
    with torch.no_grad():
        assert torch.equal(wrapped(IDS, MASK), bert(IDS, MASK))
    wrapped(IDS, MASK).sum().backward()
    with_gradient = [parameter for parameter in wrapped.parameters() if parameter.grad is not None]
    assert len(trained) == len(with_gradient) == 2 * 6 * 2


def test_a_merged_adapter_gives_what_was_trained(tmp_path: Path):
    expected = trained_file(tmp_path / "adapter.safetensors")
    bert = tiny_bert()
    before = bert(IDS, MASK)
    heads = apply_adapter(bert, tmp_path / "adapter.safetensors")
    merged = bert(IDS, MASK)
    assert torch.allclose(merged, expected, atol=1e-5)
    assert not torch.allclose(merged, before, atol=1e-2)
    assert list(heads) == ["head.weight"]


def test_a_file_of_another_base_is_refused(tmp_path: Path):
    trained_file(tmp_path / "adapter.safetensors")
    other = Bert(BertConfig(**{**{n: getattr(TINY, n) for n in TINY.__slots__}, "hidden_size": 8}))
    with pytest.raises(ModelError, match="does not fit layers"):
        apply_adapter(other, tmp_path / "adapter.safetensors")


def test_a_damaged_file_is_refused(tmp_path: Path):
    path = tmp_path / "adapter.safetensors"
    path.write_bytes(b"not tensors")
    with pytest.raises(ModelError, match="no readable adapter"):
        apply_adapter(tiny_bert(), path)


def test_an_encoder_with_an_adapter_is_another_encoder(tmp_path: Path):
    base = MiniLMEncoder.load(adapter="none", runtime="torch")
    wrapped = Bert(base.config)
    torch.manual_seed(2)
    for parameter in add_adapter(wrapped, rank=2, scale=1.0):
        parameter.data = torch.randn(parameter.shape) * 0.2
    path = tmp_path / "adapter.safetensors"
    save_adapter(path, adapter_tensors(wrapped), scale=1.0, metadata={})
    adapted = MiniLMEncoder.load(adapter=str(path), runtime="torch")
    assert adapted.fingerprint != base.fingerprint
    similarity = (adapted.encode_question("Who?").vectors * base.encode_question("Who?").vectors).sum(1)
    assert similarity.max() < 0.999


def test_an_adapter_without_torch_gives_the_same_weights(tmp_path: Path):
    """Queries add a file's updates to plain arrays, training to torch's parameters."""
    trained_file(tmp_path / "adapter.safetensors")
    bert = tiny_bert()
    save_checkpoint(tmp_path, bert)
    found = read_checkpoint(tmp_path, tmp_path / "adapter.safetensors")
    heads = apply_adapter(bert, tmp_path / "adapter.safetensors")
    for name, tensor in bert.state_dict().items():
        np.testing.assert_allclose(found.tensors[name], tensor.numpy(), atol=1e-6)
    assert {name: tensor.tolist() for name, tensor in found.heads.items()} == {
        name: tensor.tolist() for name, tensor in heads.items()
    }
    other = {n: getattr(TINY, n) for n in TINY.__slots__} | {"hidden_size": 8, "intermediate_size": 12}
    save_checkpoint(tmp_path, Bert(BertConfig(**other)))
    with pytest.raises(ModelError, match=r"does not fit layers.*was it trained from another base\?"):
        read_checkpoint(tmp_path, tmp_path / "adapter.safetensors")
    (tmp_path / "adapter.safetensors").write_bytes(b"not tensors")
    with pytest.raises(ModelError, match=r"adapter\.safetensors: no readable model"):
        read_checkpoint(tmp_path, tmp_path / "adapter.safetensors")


def save_checkpoint(folder: Path, bert: Bert) -> None:
    """A folder as `read_checkpoint` reads it, of the tensors' own names."""
    config = {name: getattr(bert.config, name) for name in BertConfig.__slots__}
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "bert", "hidden_act": "gelu"}))
    save_file(bert.state_dict(), folder / "model.safetensors")


def test_a_missing_adapter_is_named():
    with pytest.raises(ModelError, match="nowhere.safetensors"):
        MiniLMEncoder.load(adapter="nowhere.safetensors")
