"""Encoders of other families, as sentence-transformers saves them: their vectors, their positions, their characters."""

from pathlib import Path

import numpy as np
import pytest
import torch

from helios import Engine
from helios.config import load_config
from helios.errors import ModelError
from helios.models.base import find_base_model
from helios.models.encoder import MiniLMEncoder
from indexing.pipeline import build_index

SENTENCES = [
    "Der Rhein fließt durch Basel und durch Köln.",
    "El río Ebro pasa por la ciudad de Zaragoza.",
    "La Loire est le plus long fleuve de France.",
    "长江是亚洲最长的河流，流经上海。",
]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def unigram():
    """What XLM-R has: SentencePiece's pieces of whole texts, blanks within them."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(SENTENCES * 30, trainer)
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", None, [("<s>", 0), ("</s>", 2)])
    return tokenizer


def byte_level():
    """What RoBERTa has: pieces of bytes."""
    from tokenizers import ByteLevelBPETokenizer, processors

    tokenizer = ByteLevelBPETokenizer(trim_offsets=False)
    tokenizer.train_from_iterator(SENTENCES * 30, vocab_size=500, special_tokens=SPECIAL, show_progress=False)
    tokenizer._tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", None, [("<s>", 0), ("</s>", 2)])
    return tokenizer._tokenizer


def transformer(kind: str):
    """A random transformer of two small layers, and a tokenizer for it."""
    import transformers

    tokenizer = byte_level() if kind == "roberta" else unigram()
    sizes = SIZES | {"vocab_size": tokenizer.get_vocab_size(), "pad_token_id": 1, "max_position_embeddings": 42}
    if kind == "distilbert":
        sizes |= {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}
        model = transformers.DistilBertModel(transformers.DistilBertConfig(**sizes))
    else:
        name = {"bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta"}[kind]
        config = getattr(transformers, f"{name}Config")(**sizes, type_vocab_size=2 if kind == "bert" else 1)
        model = getattr(transformers, f"{name}Model")(config, add_pooling_layer=False)
    with torch.no_grad():  # as it comes, positions hardly differ from each other
        model.embeddings.position_embeddings.weight.normal_()
    return model.eval(), tokenizer


@pytest.fixture(params=["bert", "roberta", "xlm-roberta", "distilbert"])
def saved(request, tmp_path: Path):
    """A model and the folder that it was saved in: of sentence-transformers, its transformer in a folder below."""
    torch.manual_seed(0)
    model, tokenizer = transformer(request.param)
    return model, save(model, tokenizer, tmp_path)


def save(model, tokenizer, folder: Path) -> Path:
    inside = folder / "0_Transformer"
    model.save_pretrained(inside)
    tokenizer.save(str(inside / "tokenizer.json"))
    (folder / "modules.json").write_text('[{"idx": 0, "path": "0_Transformer"}, {"idx": 1, "path": "1_Pooling"}]')
    return folder


@pytest.mark.parametrize("runtime", ["torch", "openvino"])
def test_vectors_are_those_of_transformers(saved, runtime):
    if runtime == "openvino":
        pytest.importorskip("openvino")
    model, folder = saved
    encoder = MiniLMEncoder.load(str(folder), runtime=runtime, max_tokens=32)
    assert encoder.dimension == 32
    for text in SENTENCES:
        ids, kept = encoder.tokenise([text])[0]
        with torch.inference_mode():
            vectors = torch.nn.functional.normalize(model(input_ids=torch.tensor([ids])).last_hidden_state[0], dim=-1)
        found = encoder.encode_question(text)
        np.testing.assert_allclose(found.vectors, vectors[kept].numpy(), atol=1e-5)


def test_spans_are_the_characters_of_words_without_the_blanks_before_them(saved):
    _, folder = saved
    encoder = MiniLMEncoder.load(str(folder), max_tokens=32)
    for text in SENTENCES:
        pieces = [text[start:end] for start, end in encoder.token_spans(text).tolist()]
        assert pieces
        assert all(piece == piece.strip() and piece for piece in pieces)
        letters = [letter for letter in text if letter.isalpha()]
        assert [letter for letter in "".join(pieces) if letter.isalpha()] == letters[: len("".join(pieces))]


def test_no_more_tokens_than_there_are_positions(saved):
    model, folder = saved
    most = 40 if "oberta" in type(model).__name__ else 42
    MiniLMEncoder.load(str(folder), max_tokens=most)
    with pytest.raises(ModelError, match=f"reads at most {most} tokens: set it to that or less"):
        MiniLMEncoder.load(str(folder), max_tokens=most + 1)


def test_a_folder_is_indexed_and_searched_with_another_encoder(tmp_path):
    torch.manual_seed(0)
    folder = save(*transformer("xlm-roberta"), tmp_path / "model")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "fluesse.csv").write_text("Fluss,Stadt\nRhein,Köln\nElbe,Hamburg\n", encoding="utf-8")
    (corpus / "rhein.md").write_text("# Rhein\n\nDer Rhein fließt durch Basel und durch Köln.\n", encoding="utf-8")
    config = load_config(None, [f"encoder.model={folder}", "advanced.encoder.max_tokens=32", "linking.source=none"])
    build_index(corpus, tmp_path / "index", config=config)
    with Engine.open(tmp_path / "index") as engine:
        assert engine.encoder.dimension == 32
        assert engine.search("Welcher Fluss fließt durch Köln?", k=3).edges
        assert engine.index.postings.analysis.languages == ("de",)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("paraphrase-multilingual-none-of-it", "no model sentence-transformers/paraphrase-multilingual-none-of-it"),
        ("/nowhere/at/all", "no config.json; expected a folder with"),
    ],
)
def test_a_missing_model_says_what_to_do(model, message, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match=message):
        find_base_model(model)


def test_a_list_of_modules_that_is_none(tmp_path):
    (tmp_path / "modules.json").write_text("{}")
    with pytest.raises(ModelError, match="expected a list of modules"):
        find_base_model(str(tmp_path))
