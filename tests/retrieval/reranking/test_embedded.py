"""The embedded reranker: pairs, batches, deadlines, and scores against plain fp32."""

import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from helios.errors import ModelError
from helios.models.adapters import adapter_tensors, add_adapter, save_adapter
from helios.models.base import find_base_model
from helios.models.bert import load_bert
from helios.retrieval.reranking.embedded import EmbeddedReranker, torch_pair_forward
from helios.retrieval.reranking.pair_scorer import PairReader, PairScorer, load_pair_scorer, padded
from helios.retrieval.reranking.reranker import batches_of, score_batches

QUESTION = "Which river flows through the capital of Austria?"
TEXTS = [
    "Vienna. Vienna is the capital of Austria, on the river Danube.",
    "Rivers of Europe. Name: Rhine ; Length: 1,230 km",
    "x",
    "A long text about nothing at all. " * 40,
    "",
    "Danube. The Danube is the second-longest river in Europe.",
]


def write_reranker(path: Path, pooling: str = "late", *, seed: int = 0, **metadata: str) -> PairScorer:
    """A reranker file with random updates; returns the same model in fp32."""
    torch.manual_seed(seed)
    bert = load_bert(find_base_model().folder)
    add_adapter(bert, rank=4, scale=2.0)
    scorer = PairScorer(bert, pooling)
    with torch.no_grad():
        for name, parameter in scorer.named_parameters():
            if parameter.requires_grad and not name.endswith(".A"):
                parameter += 0.02 * torch.randn_like(parameter)
            if parameter.requires_grad:
                parameter.copy_(parameter.bfloat16())
    tensors = {**adapter_tensors(bert), **scorer.head_tensors()}
    save_adapter(path, tensors, scale=2.0, metadata={"pooling": pooling, **metadata})
    return scorer.eval()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reranker") / "edge.safetensors"
    write_reranker(path)
    return path


@pytest.fixture(scope="module")
def reranker(file: Path) -> EmbeddedReranker:
    """The exact route on one core."""
    reranker = EmbeddedReranker.load("edge", str(file), runtime="torch", lanes=1)
    loaded = EmbeddedReranker.load("edge", str(file), runtime="torch", lanes=1, max_tokens=192)
    reranker.__dict__["_forward"] = torch_pair_forward(_scorer(loaded), bf16=False)
    return reranker


def _scorer(reranker: EmbeddedReranker) -> PairScorer:
    return load_pair_scorer(load_bert(reranker.base.folder), reranker.adapter)


@pytest.mark.parametrize("pooling", ["first", "mean", "late"])
def test_scores_are_those_of_the_trained_model_one_by_one(tmp_path, pooling):
    trained = write_reranker(tmp_path / "r.safetensors", pooling, seed=3)
    reranker = EmbeddedReranker.load("edge", str(tmp_path / "r.safetensors"), runtime="torch", lanes=1)
    reranker.__dict__["_forward"] = torch_pair_forward(_scorer(reranker), bf16=False)
    scores = reranker.score(QUESTION, TEXTS)
    assert scores.done.all()
    tokenizer = reranker._reader
    for text, value in zip(TEXTS, scores.values.tolist(), strict=True):
        (pair,) = tokenizer.read(QUESTION, [text])
        ids, mask, types = (torch.from_numpy(array) for array in padded([pair]))
        with torch.inference_mode():
            assert value == pytest.approx(float(trained(ids, mask, types)), abs=2e-4)


def test_pairs_are_those_of_a_bert_tokenizer():
    from transformers import AutoTokenizer

    folder = find_base_model().folder
    reader = PairReader(folder, max_tokens=48)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = [text for text in TEXTS if text]  # transformers takes an empty second text for none
    for text, pair in zip(texts, reader.read(QUESTION, texts), strict=True):
        wanted = tokenizer(QUESTION, text, truncation="only_second", max_length=48)
        ids, mask, types = padded([pair])
        assert ids[0].tolist() == wanted["input_ids"]
        assert types[0].tolist() == wanted["token_type_ids"]
        assert mask.all()


def test_a_long_question_leaves_half_of_the_room():
    (pair,) = PairReader(find_base_model().folder, max_tokens=32).read("river " * 90, ["a text of words " * 30])
    assert len(pair.question) == 16
    assert len(pair) == 32


def test_types_tell_the_two_sides_apart():
    bert = load_bert(find_base_model().folder)
    ids, mask = torch.tensor([[101, 2314, 102, 9999, 102]]), torch.ones(1, 5)
    with torch.inference_mode():
        zeros = bert(ids, mask, torch.zeros(1, 5, dtype=torch.long))
        torch.testing.assert_close(zeros, bert(ids, mask))
        assert not torch.allclose(zeros, bert(ids, mask, torch.tensor([[0, 0, 0, 1, 1]])), atol=1e-3)


def test_training_attends_as_inference_does():
    bert = load_bert(find_base_model().folder)
    ids, mask = torch.tensor([[101, 2314, 9999, 102], [101, 2314, 102, 0]]), torch.tensor([[1.0] * 4, [1.0] * 3 + [0]])
    with torch.inference_mode():
        expected = bert(ids, mask)
        found = bert.train()(ids, mask)
    torch.testing.assert_close(found[mask.bool()], expected[mask.bool()], atol=1e-4, rtol=1e-4)


def test_scores_do_not_depend_on_the_batch(reranker):
    together = reranker.score(QUESTION, TEXTS).values
    backwards = reranker.score(QUESTION, TEXTS[::-1]).values[::-1]
    alone = [reranker.score(QUESTION, [text]).values[0] for text in TEXTS]
    np.testing.assert_allclose(together, backwards, atol=1e-4)
    np.testing.assert_allclose(together, alone, atol=1e-4)
    assert reranker.score(QUESTION, []).values.shape == (0,)


def test_many_lanes_give_the_same_scores(file, reranker):
    many = EmbeddedReranker.load("edge", str(file), runtime="torch", lanes=3, batch_tokens=64)
    many.__dict__["_forward"] = reranker._forward
    np.testing.assert_allclose(
        many.score(QUESTION, TEXTS * 4).values, np.tile(reranker.score(QUESTION, TEXTS).values, 4), atol=1e-4
    )


@pytest.mark.parametrize("runtime", ["torch", "openvino"])
def test_fast_routes_stay_close_to_fp32(file, reranker, runtime):
    if runtime == "openvino" and find_spec("openvino") is None:
        pytest.skip("openvino is not installed (helios-retrieval[cpu])")
    fast = EmbeddedReranker.load("edge", str(file), runtime=runtime, lanes=1)
    fast.score("a question", ["a text"])
    exact = reranker.score(QUESTION, TEXTS).values
    np.testing.assert_allclose(fast.score(QUESTION, TEXTS).values, exact, atol=0.25)


def test_a_deadline_that_is_over_scores_nothing(reranker):
    scores = reranker.score(QUESTION, TEXTS, deadline=time.monotonic() - 1)
    assert not scores.done.any()
    assert (scores.values == 0).all()
    assert reranker.score(QUESTION, TEXTS, deadline=time.monotonic() + 600).done.all()


def test_a_deadline_scores_the_first_texts_first(within):
    lengths = [10] * 64

    def forward(batch):
        time.sleep(0.02)
        return np.ones(len(batch), np.float32)

    with within(0.4):
        batches, deadline = batches_of(lengths, batch_tokens=40), time.monotonic() + 0.13
        scores = score_batches(batches, lengths, forward, deadline=deadline)
    reached = int(scores.done.sum())
    assert reached < 64
    assert scores.done[:reached].all()
    assert (scores.values[:reached] == 1).all()


def test_batches_hold_every_text_once_and_like_lengths_together():
    lengths = np.random.default_rng(0).integers(1, 190, 100).tolist()
    batches = batches_of(lengths, batch_tokens=512, lanes=2)
    assert sorted(np.concatenate(batches).tolist()) == list(range(100))
    padded_tokens = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
    assert max(len(batch) * max(lengths[i] for i in batch) for batch in batches) <= 512
    assert padded_tokens < 1.35 * sum(lengths)
    assert len(batches_of([100] * 8, batch_tokens=4096, lanes=2)) == 2
    assert batches_of([], batch_tokens=512) == []


def test_files_that_are_no_rerankers_are_refused(tmp_path):
    with pytest.raises(ModelError, match="no such reranker"):
        EmbeddedReranker.load("edge", str(tmp_path / "absent.safetensors"))
    path = tmp_path / "r.safetensors"
    save_adapter(path, {"head.weight": torch.zeros(1, 384)}, scale=1.0, metadata={})
    with pytest.raises(ModelError, match="not a reranker: its metadata name no pooling"):
        EmbeddedReranker.load("edge", str(path)).score("a question", ["a text"])
    save_adapter(path, {"head.weight": torch.zeros(1, 12)}, scale=1.0, metadata={"pooling": "mean"})
    with pytest.raises(ModelError, match=r"head.weight must have shape \(1, 384\), found \(1, 12\)"):
        EmbeddedReranker.load("edge", str(path)).score("a question", ["a text"])
    write_reranker(path)
    with pytest.raises(ModelError, match=r"advanced\.rerank\.max_tokens=1024, but .* reads at most 512"):
        EmbeddedReranker.load("edge", str(path), max_tokens=1024).score("a question", ["a text"])
