"""The token encoder: spans, windows, batching, routes, questions of every kind, threads."""

import gc
import json
import os
import pickle
import shutil
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.errors import ModelError
from helios.models import routes
from helios.models.base import FILES
from helios.models.checkpoint import read_checkpoint
from helios.models.encoder import FEW_TEXTS, HEAD_TOKENS, MAX_QUESTION_TOKENS, MiniLMEncoder, TokenVectors
from helios.models.routes import uses_gpu

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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(routes, "supports_bf16", lambda: False)
        list(small.encode_documents(["warm up"]))
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


def cut_of(encoder: MiniLMEncoder, texts: list[str]) -> list[int]:
    return [tokens.cut for tokens in encoder.encode_documents(texts)]


def on_the_same_weights(exact: MiniLMEncoder, **sizes: int) -> MiniLMEncoder:
    """An encoder of other sizes that need not load its weights again."""
    other = MiniLMEncoder(exact.base, runtime="torch", **sizes)
    other.__dict__["_documents"] = exact._documents
    return other


def test_long_documents_are_cut_after_the_last_window(exact):
    short = on_the_same_weights(exact, max_tokens=16)
    (tokens,) = short.encode_documents(["word " * 100])
    assert len(tokens.ids) == 14  # two special tokens are read and not kept
    assert tokens.spans[-1].tolist() == [65, 69]
    assert len(short.token_spans("word " * 100)) == 14
    assert cut_of(short, ["word " * 100, "word " * 14, ""]) == [86, 0, 0]
    windowed = on_the_same_weights(exact, max_tokens=16, windows=3)
    room = 14 + 2 * (14 - 14 // 4)  # each further window begins with the text's head
    (tokens,) = windowed.encode_documents(["word " * 100])
    assert len(tokens.ids) == len(windowed.token_spans("word " * 100)) == windowed.count_tokens(["word " * 100]) == room
    assert cut_of(windowed, ["word " * 100, "word " * room, "word " * (room + 1)]) == [100 - room, 0, 1]


@pytest.fixture(scope="module")
def windowed(exact) -> MiniLMEncoder:
    """As `exact`, in windows of 32 tokens, on the same weights."""
    return on_the_same_weights(exact, max_tokens=32, windows=8)


def test_a_window_is_what_the_model_reads_of_the_head_and_these_tokens(exact, windowed):
    """By the definition: [CLS] head, the window's own tokens [SEP]; only the own ones are kept, and all are words."""
    names = ["gallium", "boron", "iron", "copper", "zinc", "silver", "gold", "lead", "tin", "carbon", "neon"]
    words = [names[number * 7 % len(names)] for number in range(90)]
    (tokens,) = windowed.encode_documents([" ".join(words)])
    ids = [int(number) for number in tokens.ids]
    assert len(ids) == windowed.count_tokens([" ".join(words)])
    assert cut_of(windowed, [" ".join(words)]) == [0]
    inside, head = 30, min(HEAD_TOKENS, 30 // 4)
    (first,) = exact._documents.encode([[101, *ids[:inside], 102]])
    np.testing.assert_allclose(tokens.vectors[:inside], first[1:-1], atol=1e-5)
    for start in range(inside, len(ids), inside - head):
        own = ids[start : start + inside - head]
        (read,) = exact._documents.encode([[101, *ids[:head], *own, 102]])
        np.testing.assert_allclose(tokens.vectors[start : start + len(own)], read[1 + head : -1], atol=1e-5)


def test_texts_that_fit_are_not_changed_by_windows(exact, windowed):
    plain = on_the_same_weights(exact, max_tokens=32)
    fitting = [text for text in TEXTS if not cut_of(plain, [text])[0]]
    assert len(fitting) >= 5
    for one, other in zip(windowed.encode_documents(fitting), plain.encode_documents(fitting), strict=True):
        assert_same(one, other)
    assert plain.fingerprint == windowed.fingerprint  # the setting is fixed by the index (helios.index.settings)


def test_the_best_window_of_a_long_text_counts(windowed):
    """What is asked for stands after all that one window reads: only windows find it."""
    filler = "a long row of cells about nothing that anyone would ever ask for again "
    text = f"Lighthouses. {filler * 6} The keeper of Skerryvore was called Ebenezer Murchison ."
    assert cut_of(windowed, [text]) == [0]
    cut = on_the_same_weights(windowed, max_tokens=32)
    question = windowed.encode_question("Who was the keeper of Skerryvore?").vectors
    whole, first = (
        float((question @ next(one.encode_documents([text])).vectors.T).max(axis=1).sum()) for one in (windowed, cut)
    )
    assert cut_of(cut, [text])[0] > 60
    assert whole > first + 1.0


@settings(max_examples=30)
@given(words=st.lists(st.sampled_from(["river", "Łódź", "2,004", "—", "🚀", "unbelievable"]), max_size=120))
def test_vectors_spans_and_counts_of_any_text_agree(windowed, words):
    text = " ".join(words)
    (tokens,) = windowed.encode_documents([text])
    np.testing.assert_array_equal(tokens.spans, windowed.token_spans(text))
    assert len(tokens.ids) == len(tokens.vectors) == len(tokens.spans) == windowed.count_tokens([text])
    np.testing.assert_allclose(np.linalg.norm(tokens.vectors, axis=1), 1.0, atol=1e-4)


def assert_same(one: TokenVectors, other: TokenVectors) -> None:
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.spans, other.spans)
    np.testing.assert_allclose(one.vectors, other.vectors, atol=1e-5)


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


@pytest.fixture(scope="module")
def fast(encoder: MiniLMEncoder) -> MiniLMEncoder:
    """Through OpenVINO, two texts at a time."""
    if find_spec("openvino") is None:
        pytest.skip("openvino is not installed")
    return MiniLMEncoder(encoder.base, runtime="openvino", threads=2)


def test_openvino_stays_close_to_torch(exact, fast):
    for one, two in zip(fast.encode_documents(TEXTS), exact.encode_documents(TEXTS), strict=True):
        np.testing.assert_array_equal(one.spans, two.spans)
        cosines = np.einsum("td,td->t", one.vectors, two.vectors)
        assert cosines.min() >= 0.99
        assert cosines.mean() >= 0.999


def test_questions_through_openvino_are_those_of_torch(exact, fast):
    for text in TEXTS:
        one, two = fast.encode_question(text), exact.encode_question(text)
        np.testing.assert_array_equal(one.ids, two.ids)
        np.testing.assert_allclose(one.vectors, two.vectors, atol=1e-4)


def test_openvino_reads_every_text_as_if_it_were_alone(encoder, fast):
    """To the last bit: in any order, with any company, on one processor or several."""
    together = list(fast.encode_documents(TEXTS))
    backwards = list(fast.encode_documents(TEXTS[::-1]))[::-1]
    alone = [next(fast.encode_documents([text])) for text in TEXTS]
    single = list(MiniLMEncoder(encoder.base, runtime="openvino", threads=1).encode_documents(TEXTS))
    for others in (backwards, alone, single):
        for one, other in zip(together, others, strict=True):
            np.testing.assert_array_equal(one.vectors, other.vectors)


def test_openvino_gives_threads_what_it_gives_one(fast):
    questions = [f"Which river flows through city number {number}?" for number in range(32)]
    alone = [fast.encode_question(question).vectors for question in questions]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda question: fast.encode_question(question).vectors, questions))
    assert all(np.array_equal(one, other) for one, other in zip(alone, together, strict=True))


THREADS = """
import torch
torch.set_num_threads(3)
import helios.engine, helios.models.adapters, helios.models.bert, helios.retrieval.reranking.embedded
from helios.models.encoder import MiniLMEncoder
for runtime in ("torch", "auto"):
    encoder = MiniLMEncoder.load(runtime=runtime, threads=1)
    encoder.encode_question("river"), list(encoder.encode_documents(["river", "a lake"]))
assert torch.get_num_threads() == 3, torch.get_num_threads()
"""


def test_how_many_threads_torch_has_is_the_callers_business():
    subprocess.run([sys.executable, "-c", THREADS], check=True, timeout=300)


def test_openvino_reports_nothing_to_its_makers(tmp_path):
    """Its telemetry package, which is installed with it, leaves an id and a count of uses in the home folder."""
    if find_spec("openvino") is None:
        pytest.skip("openvino is not installed")
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


def test_runtimes_that_are_not_there(encoder, monkeypatch):
    monkeypatch.setattr(routes, "is_installed", lambda: False)
    absent = MiniLMEncoder(encoder.base, runtime="openvino")
    with pytest.raises(ModelError, match="openvino is not installed: pip install openvino"):
        list(absent.encode_documents(["text"]))
    monkeypatch.setattr(routes, "has_torch", lambda: False)
    for runtime in ("auto", "torch"):
        with pytest.raises(ModelError, match="encoding needs OpenVINO or torch, and neither is installed"):
            MiniLMEncoder(encoder.base, runtime=runtime).encode_question("river")


def test_more_tokens_than_the_model_reads(encoder):
    with pytest.raises(ModelError, match=r"advanced\.encoder\.max_tokens=1024, but .* reads at most 512 tokens"):
        MiniLMEncoder(encoder.base, runtime="torch", max_tokens=1024)


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
    ids = np.random.default_rng(0).integers(1000, 20000, (2, 24)).tolist()
    speeds = list(routes.measure_routes(read_checkpoint(encoder.base.folder), ids, threads=1, repeats=1))
    assert speeds[0].route == "torch fp32"
    assert speeds[0].worst_cosine == pytest.approx(1.0, abs=1e-5)
    assert all(speed.tokens_per_second > 0 and speed.mean_cosine > 0.995 for speed in speeds)


def test_counted_tokens_are_those_of_every_text(encoder: MiniLMEncoder):
    """Words are split once for all texts; odd texts are, and those that are cut, are counted one by one."""
    random = np.random.default_rng(4)
    alphabet = [*"abcABC019 .,;-()[]\t\n\x00\x1f\u00a0\u2003\u200d\u0301éÉßİΣ北京ﬁ€—’", "[SEP]", "##a", "river", " "]
    texts = ["".join(random.choice(alphabet, random.integers(0, 40))) for _ in range(400)]
    texts += [*TEXTS, "bridge " * 3000, "a, b. " * 2000, "x" * 150, "[SEP] and [MASK]"]
    assert len(texts) > FEW_TEXTS
    expected = np.zeros(encoder.vocabulary_size, np.int32)
    for ids in encoder.token_ids(texts):
        expected[np.unique(ids)] += 1
    np.testing.assert_array_equal(encoder.token_frequencies(texts), expected)
    np.testing.assert_array_equal(
        encoder.token_frequencies(texts[:50]) + encoder.token_frequencies(texts[50:]), expected
    )
    assert not encoder.token_frequencies([]).any()


@pytest.mark.parametrize("runtime", ["torch", "openvino"])
def test_encoders_of_one_process_share_their_weights_while_one_is_there(runtime):
    first, second = (MiniLMEncoder.load(runtime=runtime, threads=1) for _ in range(2))
    other = MiniLMEncoder.load(runtime=runtime, threads=1, max_tokens=128)
    for encoder in (first, second, other):
        encoder.load_ahead(documents=True)
    assert first._documents._bert is second._documents._bert
    assert first._documents._bert is not other._documents._bert
    gone = weakref.ref(other._documents._bert)
    del encoder, other
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_said(encoder: MiniLMEncoder):
    assert not uses_gpu("auto")
    assert not uses_gpu("cpu")
    wanting = MiniLMEncoder(encoder.base, device="cuda")
    with pytest.raises(ModelError, match=r"encoder\.device=cuda.* encoder\.device=cpu"):
        list(wanting.encode_documents(["a text"]))
    assert len(wanting.encode_question("a question").ids) == 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_gives_the_same_vectors(exact: MiniLMEncoder):
    on_gpu = MiniLMEncoder(exact.base, device="cuda")
    for one, other in zip(on_gpu.encode_documents(TEXTS), exact.encode_documents(TEXTS), strict=True):
        assert one.ids.tolist() == other.ids.tolist()
        assert (one.vectors * other.vectors).sum(axis=1).min() > 0.999


class Crowded(torch.nn.Module):
    """A model for which a GPU has no memory where it reads more than some tokens at once: there is no GPU here."""

    def __init__(self, model: torch.nn.Module, room: int) -> None:
        super().__init__()
        self.model, self.room, self.read = model, room, []

    def forward(self, ids, mask):
        self.read.append(ids.numel())
        if ids.numel() > self.room:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return self.model(ids, mask)


def test_less_is_read_at_once_where_memory_is_short(exact: MiniLMEncoder):
    texts = [ids for ids, _ in exact.tokenise([*TEXTS, *TEXTS])]
    model = exact._documents._bert
    crowded = Crowded(model, 400)
    route = routes.TorchRoute(crowded, bf16=False, batch_tokens=10_000)
    for one, other in zip(route.encode(texts), exact._documents.encode(texts), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    refused = len(crowded.read)
    assert max(crowded.read) > 400
    list(route.encode(texts))
    assert max(crowded.read[refused:]) <= 400  # it remembers
    with pytest.raises(ModelError, match=r"no memory for a text of \d+ tokens.*encoder\.device=cpu"):
        list(routes.TorchRoute(Crowded(model, 10), bf16=False, batch_tokens=10_000).encode(texts))
