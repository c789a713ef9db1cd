"""The set encoding: order means nothing, weights do what they say, vectors are kept and bounded."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.augment.context import Context
from helios.augment.encoding import (
    AttributeVectors,
    ColumnWeights,
    FloatArray,
    PooledTokens,
    SentenceEncoder,
    encode_question,
    load_vectors,
    save_vectors,
    unit,
)
from helios.errors import ModelError
from helios.models.base import find_base_model
from helios.models.encoder import MiniLMEncoder


class Letters:
    """An encoder that counts letters: small enough to be worked out by hand, and it knows how often it was asked."""

    name = "letters"
    dimension = 26

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> FloatArray:
        self.asked += texts
        counts = [[text.count(chr(97 + letter)) for letter in range(26)] for text in texts]
        return unit(np.array(counts, np.float32).reshape(-1, 26) + np.float32(0.01))


TEXTS = st.lists(st.text("abcdef", min_size=1, max_size=6), min_size=1, max_size=6)
COLUMNS = st.dictionaries(st.sampled_from(["body", "tags", "comments"]), TEXTS, max_size=3)
WEIGHTS = st.sampled_from([
    ColumnWeights(), ColumnWeights(share=0.3, flat=True), ColumnWeights(share=0.5, attention=4.0),
    ColumnWeights(share=0.4, weights={"body": 0.7, "tags": 0.1, "comments": 0.2}, attention=2.0),
])  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(columns=COLUMNS, weights=WEIGHTS, chance=st.randoms())
def test_order_means_nothing(columns, weights, chance):
    names = list(columns)
    chance.shuffle(names)
    other = {name: chance.sample(columns[name], len(columns[name])) for name in names}
    one = encode_question("abc", Context.from_columns(columns), AttributeVectors(Letters()), weights)
    two = encode_question("abc", Context.from_columns(other), AttributeVectors(Letters()), weights)
    np.testing.assert_allclose(one.vector, two.vector, atol=1e-6)
    assert np.linalg.norm(one.vector) == pytest.approx(1.0, abs=1e-5)


def test_two_levels_by_hand():
    vectors = AttributeVectors(Letters())
    context = Context.from_columns({"tags": ["a", "b"], "body": ["c"]})
    found = encode_question("d", context, vectors, ColumnWeights(share=0.6))
    a, b, c, d = vectors.of(["a", "b", "c", "d"])
    np.testing.assert_allclose(found.vector, unit(0.6 * d + 0.4 * ((a + b) / 2 + c) / 2), atol=1e-6)
    flat = encode_question("d", context, vectors, ColumnWeights(share=0.6, flat=True))
    np.testing.assert_allclose(flat.vector, unit(0.6 * d + 0.4 * (a + b + c) / 3), atol=1e-6)


def test_without_context_the_question_stays_as_it_is():
    vectors = AttributeVectors(Letters())
    found = encode_question("abc", Context.from_columns({"tags": [" "]}), vectors)
    assert found.share == 1.0 and not found.parts
    np.testing.assert_array_equal(found.vector, vectors.of(["abc"])[0])


def test_a_column_of_no_weight_changes_nothing():
    vectors = AttributeVectors(Letters())
    weights = ColumnWeights(share=0.5, weights={"body": 1.0, "tags": 0.0})
    bare = encode_question("ab", Context.from_columns({"body": ["cd"]}), vectors, weights)
    more = encode_question("ab", Context.from_columns({"body": ["cd"], "tags": ["zz"], "new": ["y"]}), vectors, weights)
    np.testing.assert_allclose(bare.vector, more.vector, atol=1e-6)
    alone = encode_question("ab", Context.from_columns({"tags": ["zz"]}), vectors, weights)
    np.testing.assert_allclose(alone.vector, vectors.of(["ab"])[0], atol=1e-6)


def test_attention_prefers_what_is_like_the_question():
    vectors = AttributeVectors(Letters())
    context = Context.from_columns({"like": ["abab"], "unlike": ["xyz"]})
    even = encode_question("ab", context, vectors, ColumnWeights(share=0.5))
    drawn = encode_question("ab", context, vectors, ColumnWeights(share=0.5, attention=5.0))
    assert even.parts[0].weight == pytest.approx(even.parts[1].weight)
    assert drawn.parts[0].weight > 10 * drawn.parts[1].weight
    assert sum(part.weight for part in drawn.parts) == pytest.approx(0.5)


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_outside_of_0_and_1_is_refused(share):
    with pytest.raises(ValueError, match="from 0 to 1"):
        ColumnWeights(share=share)


def test_texts_are_encoded_once_and_the_memory_is_bounded():
    encoder = Letters()
    vectors = AttributeVectors(encoder)
    vectors.of(["a", "b", "a"])
    vectors.of(["b", "c"])
    assert sorted(encoder.asked) == ["a", "b", "c"]
    bounded = AttributeVectors(Letters(), megabytes=1)
    bounded.of([f"{number}" for number in range(9000)])
    assert len(bounded) <= (1 << 20) // (26 * 4 + 128)


def test_vectors_come_back_from_a_file_of_the_same_encoder(tmp_path: Path):
    vectors = AttributeVectors(Letters())
    before = vectors.of(["a", "bc"])
    save_vectors(tmp_path / "vectors.npz", vectors)
    encoder = Letters()
    again = AttributeVectors(encoder)
    assert load_vectors(tmp_path / "vectors.npz", again) == 2
    np.testing.assert_array_equal(again.of(["a", "bc"]), before)
    assert not encoder.asked
    other = Letters()
    other.name = "others"
    assert load_vectors(tmp_path / "vectors.npz", AttributeVectors(other)) == 0
    assert load_vectors(tmp_path / "none.npz", again) == 0
    (tmp_path / "vectors.npz").write_bytes(b"PK damaged")
    with pytest.raises(ModelError, match="delete the file"):
        load_vectors(tmp_path / "vectors.npz", again)


@pytest.mark.slow
def test_the_packaged_encoder_and_the_same_one_by_sentence_transformers():
    pooled = PooledTokens(MiniLMEncoder.load(adapter="none"))
    sentences = SentenceEncoder(str(find_base_model(None).folder), device="cpu")
    texts = ["measuring a qubit twice", "tyres for winter"]
    one, two = pooled.encode(texts), sentences.encode(texts)
    assert one.shape == two.shape == (2, pooled.dimension) == (2, sentences.dimension)
    assert np.sum(one * two, axis=1).min() > 0.9  # ours leaves out special tokens and punctuation
    assert pooled.encode([]).shape == (0, pooled.dimension)


def test_an_encoder_that_is_not_there_is_said(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="cannot load it"):
        SentenceEncoder(str(tmp_path / "empty"))
