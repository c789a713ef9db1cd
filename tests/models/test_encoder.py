"""The token encoder: spans, truncation, batching, routes, questions of every kind, threads."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest

from helios.errors import ModelError
from helios.models import routes
from helios.models.base import FILES
from helios.models.encoder import MAX_QUESTION_TOKENS, MiniLMEncoder

TEXTS = [
    "Chemical elements, Some discoveries. Symbol: Ga ; Discoverer: Paul-Émile Lecoq de Boisbaudran",
    "Gallium. Gallium is a soft, silvery metal with atomic number 31.",
    "Łódź 🚀 naïve café — 北京 ﬁn",
    "x",
    "A sentence about rivers and bridges. " * 20,
    "",
    "... !?",
]


@pytest.fixture(scope="module")
def exact(encoder: MiniLMEncoder) -> MiniLMEncoder:
    """Documents in fp32 on every machine."""
    exact = MiniLMEncoder(encoder.base, runtime="torch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(routes, "supports_bf16", lambda: False)
        list(exact.encode_documents(["warm up"]))
    return exact


def test_vectors_are_those_of_transformers(exact):
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(exact.base.folder)
    model = AutoModel.from_pretrained(exact.base.folder).eval()
    for text, tokens in zip(TEXTS[:4], exact.encode_documents(TEXTS[:4]), strict=True):
        inputs = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            vectors = torch.nn.functional.normalize(model(**inputs).last_hidden_state[0], dim=-1).numpy()
        names = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0].tolist())
        kept = [
            i
            for i, name in enumerate(names)
            if name not in tokenizer.all_special_tokens and any(map(str.isalnum, name))
        ]
        np.testing.assert_allclose(tokens.vectors, vectors[kept], atol=1e-5)
        assert tokens.ids.tolist() == inputs["input_ids"][0][kept].tolist()


def test_documents_are_alike_in_any_batch(exact):
    together = list(exact.encode_documents(TEXTS))
    small = MiniLMEncoder(exact.base, runtime="torch", batch_tokens=64)
    small.__dict__["_document_route"] = exact._document_route
    for other in (list(small.encode_documents(TEXTS)), list(exact.encode_documents(TEXTS[::-1]))[::-1]):
        for one, two in zip(together, other, strict=True):
            np.testing.assert_array_equal(one.spans, two.spans)
            np.testing.assert_allclose(one.vectors, two.vectors, atol=1e-5)
    assert list(exact.encode_documents([])) == []


def test_vectors_have_unit_length(encoder):
    for tokens in [*encoder.encode_documents(TEXTS), *map(encoder.encode_question, TEXTS)]:
        assert tokens.vectors.shape == (len(tokens.ids), encoder.dimension) == (len(tokens.spans), 384)
        np.testing.assert_allclose(np.linalg.norm(tokens.vectors, axis=1), 1.0, atol=1e-4)
        assert tokens.vectors.dtype == np.float32
        assert 0 <= tokens.ids.min() <= tokens.ids.max() < encoder.vocabulary_size


def test_spans_are_the_words_of_the_text(encoder):
    text = TEXTS[0]
    words = [text[start:end] for start, end in encoder.token_spans(text)]
    assert words[:4] == ["Chemical", "elements", "Some", "discoveries"]
    assert "Émile" in words
    assert not any(word in {",", ".", ":", ";", "-"} for word in words)
    tokens = next(encoder.encode_documents([text]))
    np.testing.assert_array_equal(tokens.spans, encoder.token_spans(text))
    assert encoder.count_tokens([text, ""]) == len(tokens.ids) + 1


def test_spans_count_characters_not_bytes(encoder):
    text = TEXTS[2]
    words = [text[start:end] for start, end in encoder.token_spans(text)]
    assert "".join(words[:4]).startswith("Łódź"[:1])
    assert {"北", "京"} <= set(words)
    assert "café" in words


def test_long_documents_are_cut(encoder):
    short = MiniLMEncoder(encoder.base, runtime="torch", max_tokens=16)
    (tokens,) = short.encode_documents(["word " * 100])
    assert len(tokens.ids) == 14  # two special tokens are read and not kept
    assert tokens.spans[-1].tolist() == [65, 69]
    assert len(short.token_spans("word " * 100)) == 14


@pytest.mark.parametrize("text", ["", "   ", "?!… —", "🚀🚀"])
def test_texts_without_words_keep_one_token_of_no_characters(encoder, text):
    tokens = encoder.encode_question(text)
    assert tokens.vectors.shape == (1, 384)
    assert tokens.spans.tolist() == [[0, 0]]


def test_long_questions_are_cut(encoder):
    assert len(encoder.encode_question("river " * 40).ids) == 40
    assert len(encoder.encode_question("river " * 90).ids) == 90
    assert len(encoder.encode_question("river " * 1000).ids) == MAX_QUESTION_TOKENS


def test_questions_from_many_threads(encoder):
    questions = [f"Which river flows through city number {number}?" for number in range(16)]
    fresh = MiniLMEncoder(encoder.base, runtime="torch")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(fresh.encode_question, questions))
    for question, tokens in zip(questions, found, strict=True):
        np.testing.assert_allclose(tokens.vectors, encoder.encode_question(question).vectors, atol=1e-6)


def test_openvino_stays_close_to_torch(exact):
    if find_spec("openvino") is None:
        pytest.skip("openvino is not installed (helios-retrieval[cpu])")
    fast = MiniLMEncoder(exact.base, runtime="openvino", threads=1)
    for one, two in zip(fast.encode_documents(TEXTS), exact.encode_documents(TEXTS), strict=True):
        cosines = np.einsum("td,td->t", one.vectors, two.vectors)
        assert cosines.min() >= 0.99
        assert cosines.mean() >= 0.999


def test_openvino_reports_nothing_to_its_makers(tmp_path):
    """Its telemetry package, which is installed with it, leaves an id and a count of uses in the home folder."""
    if find_spec("openvino") is None:
        pytest.skip("openvino is not installed (helios-retrieval[cpu])")
    code = (
        "import sys\n"
        "from helios.models.encoder import MiniLMEncoder\n"
        "list(MiniLMEncoder.load(runtime='openvino').encode_documents(['text']))\n"
        "assert 'openvino' in sys.modules and 'openvino_telemetry' not in sys.modules\n"
    )
    watched = {"CI", "TF_BUILD", "JENKINS_URL"}  # where it would be silent by itself
    environment = {name: value for name, value in os.environ.items() if name not in watched} | {"HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []


def test_documents_stay_close_to_fp32(encoder, exact):
    for one, two in zip(encoder.encode_documents(TEXTS), exact.encode_documents(TEXTS), strict=True):
        assert np.einsum("td,td->t", one.vectors, two.vectors).mean() >= 0.999


def test_openvino_that_is_not_there(encoder, monkeypatch):
    monkeypatch.setattr(routes, "find_spec", lambda name: None)
    absent = MiniLMEncoder(encoder.base, runtime="openvino")
    with pytest.raises(ModelError, match=r"openvino is not installed: install helios-retrieval\[cpu\]"):
        list(absent.encode_documents(["text"]))


def test_more_tokens_than_the_model_reads(encoder):
    greedy = MiniLMEncoder(encoder.base, runtime="torch", max_tokens=1024)
    with pytest.raises(ModelError, match="encoder.max_tokens=1024, but .* reads at most 512 tokens"):
        greedy.encode_question("river")


def test_the_fingerprint_tells_what_changes_the_vectors(encoder, tmp_path):
    assert MiniLMEncoder(encoder.base, max_tokens=64).fingerprint != encoder.fingerprint
    assert MiniLMEncoder(encoder.base, batch_tokens=64, threads=3).fingerprint == encoder.fingerprint
    for name in FILES:
        shutil.copy(encoder.base.folder / name, tmp_path)
    assert MiniLMEncoder.load(str(tmp_path)).fingerprint == encoder.fingerprint
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert MiniLMEncoder.load(str(tmp_path)).fingerprint != encoder.fingerprint
    assert json.loads((tmp_path / "config.json").read_text())["hidden_size"] == encoder.dimension


def test_an_encoder_travels_to_other_processes(encoder):
    travelled = pickle.loads(pickle.dumps(MiniLMEncoder(encoder.base, runtime="torch")))
    np.testing.assert_array_equal(travelled.token_spans(TEXTS[0]), encoder.token_spans(TEXTS[0]))


def test_every_route_is_measured(encoder):
    from helios.models.bert import load_bert
    from helios.models.routes import measure_routes

    ids = np.random.default_rng(0).integers(1000, 20000, (2, 24))
    speeds = list(measure_routes(load_bert(encoder.base.folder), ids, threads=1, repeats=1))
    assert speeds[0].route == "torch fp32"
    assert speeds[0].worst_cosine == pytest.approx(1.0, abs=1e-5)
    assert all(speed.tokens_per_second > 0 and speed.mean_cosine > 0.995 for speed in speeds)
