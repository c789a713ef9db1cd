"""Adapters of other libraries' rerankers, on tiny random models of the same architectures, made here."""

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from helios.errors import ModelError
from helios.retrieval.reranking.cross_encoder import CrossEncoderReranker
from helios.retrieval.reranking.flag import FlagPairReranker
from helios.retrieval.reranking.layerwise import (
    PROMPT,
    LayerwiseReranker,
    layerwise_classes,
    load_layerwise,
    mend_rope,
)

QUESTION = "which river flows through vienna"
TEXTS = ["the danube flows through vienna", "vienna", "the rhine is a river " * 6, ""]
WORDS = f"{QUESTION} {' '.join(TEXTS)} {PROMPT}".split()


@pytest.fixture(scope="module")
def words() -> dict[str, int]:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "<s>", "\n", "A:", "B:"]
    return {word: number for number, word in enumerate(dict.fromkeys([*special, *WORDS]))}


def write_tokenizer(folder: Path, words: dict[str, int], *, pairs: bool) -> None:
    """Words as tokens; with `pairs` in BERT's template, else bare with a line end as a token."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    if pairs:
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", words["[CLS]"]), ("[SEP]", words["[SEP]"])],
        )  # fmt: skip
        names = {"cls_token": "[CLS]", "sep_token": "[SEP]"}
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(" "), "removed")
        names = {"bos_token": "<s>"}
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", model_max_length=512, **names
    )
    wrapped.save_pretrained(folder)


@pytest.fixture(scope="module")
def pair_model(tmp_path_factory: pytest.TempPathFactory, words: dict[str, int]) -> Path:
    """A BERT with one output."""
    from transformers import BertConfig, BertForSequenceClassification

    folder = tmp_path_factory.mktemp("pair-model")
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
        num_labels=1, initializer_range=0.3,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    write_tokenizer(folder, words, pairs=True)
    return folder


@pytest.fixture(scope="module")
def pair_scores(pair_model: Path) -> list[float]:
    """What transformers alone gives, pair by pair."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(pair_model)
    model = AutoModelForSequenceClassification.from_pretrained(pair_model).eval()
    scores = []
    for text in TEXTS[:3]:
        with torch.inference_mode():
            scores.append(float(model(**tokenizer(QUESTION, text, return_tensors="pt")).logits))
    return scores


def test_cross_encoder_scores_are_the_models_logits(pair_model, pair_scores):
    reranker = CrossEncoderReranker.load(str(pair_model), max_tokens=64, batch_tokens=64, device="cpu")
    scores = reranker.score(QUESTION, TEXTS[:3])
    assert scores.done.all()
    np.testing.assert_allclose(scores.values, pair_scores, atol=1e-5)
    assert reranker.count_tokens(TEXTS) == [5, 1, 30, 0]
    assert not reranker.score(QUESTION, TEXTS, deadline=time.monotonic() - 1).done.any()
    assert reranker.score(QUESTION, []).values.shape == (0,)


def test_flag_reranker_scores_are_the_models_logits(pair_model, pair_scores):
    pytest.importorskip("FlagEmbedding", reason="FlagEmbedding is not installed (helios-retrieval[flag])")
    reranker = FlagPairReranker.load(str(pair_model), max_tokens=64, batch_tokens=64, device="cpu")
    np.testing.assert_allclose(reranker.score(QUESTION, TEXTS[:3]).values, pair_scores, atol=1e-5)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, words: dict[str, int]) -> tuple[Path, Any]:
    """A MiniCPM with a head a layer, saved by the library itself, and as it was made; weights follow from a formula."""
    pytest.importorskip("FlagEmbedding", reason="FlagEmbedding is not installed (helios-retrieval[flag])")
    configs, models = layerwise_classes()
    folder = tmp_path_factory.mktemp("layerwise")
    config = configs(
        vocab_size=len(words), hidden_size=32, intermediate_size=48, num_hidden_layers=6, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, scale_emb=12, dim_model_base=16, scale_depth=1.4,
        start_layer=2, head_multi=True, head_type="simple", bos_token_id=words["<s>"], pad_token_id=0,
    )  # fmt: skip
    mend_rope(config)
    model = models(config).eval()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            count = torch.arange(parameter.numel(), dtype=torch.float32)
            wave = 0.3 * torch.sin(count * (0.37 + 0.01 * number) + number)
            parameter.copy_((wave + (1.0 if parameter.ndim == 1 else 0.0)).view_as(parameter))
    model.save_pretrained(folder)
    write_tokenizer(folder, words, pairs=False)
    return folder, model


@pytest.fixture(scope="module")
def layerwise(made: tuple[Path, Any]) -> Path:
    return made[0]


def own_forward(model: Any, rows: list[list[int]], layer: int) -> list[float]:
    """Scores of the library's forward on the model that never was on disk, row by row."""
    scores = []
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore", FutureWarning)  # its masks come from a part of transformers that is old
        for row in rows:
            ids = torch.tensor([row])
            found = model(
                input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False, cutoff_layers=[layer]
            )  # fmt: skip
            scores.append(float(found.logits[0][0, -1]))
    return scores


@pytest.mark.parametrize("layer", [2, 4, 6])
def test_layerwise_scores_are_those_of_the_models_own_forward(made, layer):
    folder, model = made
    reranker = load(folder, layer)
    rows = reranker._rows(QUESTION, TEXTS)
    np.testing.assert_allclose(reranker.score(QUESTION, TEXTS).values, own_forward(model, rows, layer), atol=2e-4)


def test_layerwise_scores_are_golden(layerwise):
    values = load(layerwise, 4).score(QUESTION, TEXTS).values
    np.testing.assert_allclose(values, GOLDEN, atol=2e-3)


GOLDEN = [0.272346, 0.257336, 0.477838, 0.320859]


def load(folder: Path, layer: int, *, max_tokens: int = 64) -> LayerwiseReranker:
    """In fp32, so that scores are the same on every machine."""
    from transformers import AutoTokenizer

    model = load_layerwise(str(folder), dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return LayerwiseReranker(model, tokenizer, layer=layer, max_tokens=max_tokens, batch_tokens=128)


def test_layerwise_rotary_tables_are_computed(layerwise):
    model = load_layerwise(str(layerwise), dtype=torch.float32)
    for block in model.model.layers:
        rotary = block.self_attn.rotary_emb
        positions = torch.arange(256, dtype=torch.float32)
        angles = torch.outer(positions, 10000.0 ** (-torch.arange(0, 8, 2, dtype=torch.float32) / 8))
        torch.testing.assert_close(rotary.cos_cached, torch.cat([angles, angles], 1).cos())
        torch.testing.assert_close(rotary.sin_cached, torch.cat([angles, angles], 1).sin())


def test_layerwise_inputs_are_those_the_model_was_trained_with(layerwise, words):
    reranker = load(layerwise, 4, max_tokens=24)
    (row, cut, *_) = reranker._rows(QUESTION, [TEXTS[0], TEXTS[2]])
    names = {number: word for word, number in words.items()}
    read = [names[number] for number in row]
    assert read == ["<s>", "A:", *QUESTION.split(), "\n", "B:", *TEXTS[0].split(), "\n", *PROMPT.split()]
    assert [names[number] for number in cut][-len(PROMPT.split()) - 1 :] == ["\n", *PROMPT.split()]
    assert len(cut) == 24 + 1 + 1 + len(PROMPT.split())


def test_layerwise_loads_with_the_machines_precision(layerwise):
    reranker = LayerwiseReranker.load(str(layerwise), layer=4, max_tokens=64, batch_tokens=128, device="cpu")
    exact = load(layerwise, 4).score(QUESTION, TEXTS).values
    np.testing.assert_allclose(reranker.score(QUESTION, TEXTS).values, exact, atol=0.3)


def test_layerwise_refuses_other_layers_and_numbers_that_are_none(layerwise):
    with pytest.raises(ModelError, match=r"advanced\.rerank\.layer=24: this model scores from layer 2 to 6"):
        load(layerwise, 24)
    reranker = load(layerwise, 4)
    with torch.no_grad():
        reranker._model.model.norm.weight.fill_(float("nan"))
    with pytest.raises(ModelError, match="scores that are no numbers"):
        reranker.score(QUESTION, TEXTS)


@pytest.mark.parametrize("kind", [CrossEncoderReranker, FlagPairReranker, LayerwiseReranker])
def test_missing_models_and_libraries_are_named(kind, tmp_path, monkeypatch):
    with pytest.raises(ModelError, match=r"needs a model: set rerank\.model \(and advanced\.rerank\.node_model\)"):
        kind.load(None)
    for library in ("sentence_transformers", "FlagEmbedding", "transformers"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModelError, match=r'pip install "helios-retrieval\['):
        kind.load(str(tmp_path))
