"""Our BERT gives transformers' vectors, and refuses what is no BERT."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from helios.errors import ModelError
from helios.models.base import FILES, find_base_model
from helios.models.bert import load_bert

SMALL = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "vocab_size": 30,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 12,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A random BERT of two tiny layers, written by transformers."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    BertModel(BertConfig(**{name: value for name, value in SMALL.items() if name != "model_type"})).save_pretrained(
        tmp_path
    )
    return tmp_path


def change(folder: Path, **settings) -> None:
    config = json.loads((folder / "config.json").read_text()) | settings
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))


def same_as_transformers(folder: Path, ids: torch.Tensor, mask: torch.Tensor) -> None:
    from transformers import BertModel

    reference = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
    with torch.inference_mode():
        expected = reference(input_ids=ids, attention_mask=mask).last_hidden_state
        found = load_bert(folder)(ids, mask)
    torch.testing.assert_close(found[mask.bool()], expected[mask.bool()], atol=1e-5, rtol=1e-5)


def test_same_vectors_as_transformers(small):
    torch.manual_seed(1)
    mask = torch.tensor([[1] * 12, [1] * 5 + [0] * 7, [1] + [0] * 11])
    same_as_transformers(small, torch.randint(30, (3, 12)), mask)


def test_same_vectors_for_the_embedded_model():
    from tokenizers import Tokenizer

    folder = find_base_model().folder
    tokenizer = Tokenizer.from_file(str(folder / FILES[1]))
    texts = ["Which river flows through Basel?", "Paul-Émile Lecoq de Boisbaudran found gallium in 1875. " * 6]
    encodings = tokenizer.encode_batch(texts)
    longest = max(len(encoding.ids) for encoding in encodings)
    ids = torch.tensor([encoding.ids[:longest] + [0] * (longest - len(encoding.ids)) for encoding in encodings])
    same_as_transformers(folder, ids, (ids != 0).long())


def test_prefixed_checkpoints_load(small):
    tensors = {f"bert.{name}": tensor for name, tensor in load_file(small / "model.safetensors").items()}
    save_file(tensors, small / "model.safetensors")
    load_bert(small)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model_type": "mpnet"}, "expected one of bert, .* found mpnet gelu"),
        ({"hidden_act": "relu"}, "expected one of bert, .* found bert relu"),
        ({"position_embedding_type": "relative_key"}, "expected absolute positions, found relative_key"),
        ({"layer_norm_eps": None}, "config.json lacks layer_norm_eps"),
        ({"intermediate_size": 25}, "do not fit together"),
        ({"num_hidden_layers": 3}, "model.safetensors lacks layers.2"),
    ],
)
def test_other_architectures_are_refused(small, settings, message):
    change(small, **settings)
    with pytest.raises(ModelError, match=message):
        load_bert(small)


def test_truncated_weights_are_refused(small):
    path = small / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelError, match=rf"{small}/model\.safetensors: no readable model"):
        load_bert(small)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match="no readable model"):
        load_bert(tmp_path)
    shutil.copy(find_base_model().folder / "config.json", tmp_path)
    with pytest.raises(ModelError, match="no readable model"):
        load_bert(tmp_path)
