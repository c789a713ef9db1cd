"""Compiled models: what is kept of them in the user's cache, and what happens when that is damaged."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helios.models import compiled
from helios.models.bert import bert_of
from helios.models.checkpoint import BertConfig, Checkpoint
from helios.models.compiled import KEPT, CompiledBert
from helios.models.runtime import supports_bf16

pytest.importorskip("openvino")

IDS = [2, 7, 1, 8, 2, 8]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path) -> Path:
    """A cache of the test's own, and a process that has mapped nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compiled, "_MAPPED", {})
    return tmp_path / "helios" / "compiled"


class Weights:
    """A small encoder with drawn weights that counts how often it is read."""

    def __init__(self, positions: int = 24) -> None:
        config = BertConfig(16, 32, 2, 2, 64, positions, 2, 1e-12)
        draw = np.random.default_rng(0)
        tensors = {name: draw.normal(size=shape).astype(np.float32) for name, shape in config.shapes().items()}
        self.checkpoint, self.reads = Checkpoint(config, tensors, {}), 0

    def read(self) -> Checkpoint:
        self.reads += 1
        return self.checkpoint

    def bert(self, fingerprint: str | None = "a") -> CompiledBert:
        return CompiledBert(self.read, bf16=False, fingerprint=fingerprint)


def test_a_kept_model_gives_the_same_bits_without_its_weights(cache):
    weights = Weights()
    first = weights.bert().vectors(IDS)
    compiled._MAPPED.clear()
    np.testing.assert_array_equal(weights.bert().vectors(IDS), first)
    np.testing.assert_array_equal(weights.bert().vectors(IDS), first)
    assert weights.reads == 1
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("damage", ["a byte", "cut", "empty", "no file"])
def test_what_is_damaged_is_made_again(cache, damage):
    weights = Weights()
    first = weights.bert().vectors(IDS)
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    if damage == "no file":
        path.unlink()
        path.mkdir()
    else:
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        path.unlink()
        path.write_bytes({"a byte": flipped, "cut": whole[:-100], "empty": b""}[damage])
    compiled._MAPPED.clear()
    np.testing.assert_array_equal(weights.bert().vectors(IDS), first)
    assert weights.reads == 2
    if damage != "no file":
        weights.bert()
        assert weights.reads == 2


def test_other_weights_settings_and_processors_have_other_places(monkeypatch):
    settings = compiled._settings(bf16=False, lanes=1)
    places = [compiled.Kept.of("a", settings), compiled.Kept.of("b", settings)]
    places.append(compiled.Kept.of("a", compiled._settings(bf16=False, lanes=2)))
    monkeypatch.setattr(compiled, "_instructions", lambda: "flags: other")
    places.append(compiled.Kept.of("a", settings))
    assert len({place.path for place in places}) == 4


def test_a_model_without_a_fingerprint_is_not_kept(cache):
    Weights().bert(None)
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_costs_only_time(monkeypatch, tmp_path):
    weights = Weights()
    first = weights.bert(None).vectors(IDS)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    np.testing.assert_array_equal(weights.bert().vectors(IDS), first)


def test_the_oldest_models_go_first(cache):
    weights = Weights()
    for number in range(KEPT + 2):
        weights.bert(f"model {number}")
        for path in cache.iterdir():
            os.utime(path, (path.stat().st_mtime - 10,) * 2)
    settings = compiled._settings(bf16=False, lanes=1)
    kept = [compiled.Kept.of(f"model {number}", settings).path for number in range(2, KEPT + 2)]
    assert sorted(cache.iterdir()) == sorted(kept)


def test_other_weights_give_other_vectors():
    weights = Weights()
    first = weights.bert("a").vectors(IDS)
    tensors = {name: tensor * 2 for name, tensor in weights.checkpoint.tensors.items()}
    weights.checkpoint = replace(weights.checkpoint, tensors=tensors)
    assert np.abs(weights.bert("b").vectors(IDS) - first).max() > 1e-3


def test_what_a_length_is_rounded_up_by_changes_nothing(cache):
    """Every length that the model reads, the longest too, which is no multiple of what lengths are rounded up to."""
    torch = pytest.importorskip("torch")
    weights = Weights(positions=21)
    bert, module = weights.bert(), bert_of(weights.checkpoint)
    for length in range(1, 22):
        ids = np.random.default_rng(length).integers(0, 16, length)
        with torch.inference_mode():
            plain = module(torch.from_numpy(ids)[None], torch.ones(1, length, dtype=torch.long))[0]
        expected = torch.nn.functional.normalize(plain, dim=-1).numpy()
        assert bert.vectors(ids.tolist()).shape == expected.shape
        np.testing.assert_allclose(bert.vectors(ids.tolist()), expected, atol=1e-4)


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("lanes", [1, 2])
def test_what_texts_are_read_beside_changes_no_bit_of_them(cache, bf16, lanes):
    """Texts of all lengths, many of which share a run, against each of them alone."""
    draw = np.random.default_rng(0)
    texts = [draw.integers(0, 16, length).tolist() for length in sorted([*range(1, 25), *[5] * 20, *[12] * 9])]
    bert = CompiledBert(Weights().read, bf16=bf16 and supports_bf16(), lanes=lanes)
    for text, vectors in zip(texts, bert.many(texts), strict=True):
        np.testing.assert_array_equal(vectors, bert.vectors(text))
