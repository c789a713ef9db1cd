"""Products without a linear-algebra library: what numpy gives, and the same bits however many rows there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from helios.index.products import code_cosines, products, weighted_sums
from helios.index.simd import LANES

values = st.floats(-8, 8, width=32)


@given(st.data(), st.integers(0, 7), st.integers(1, 5), st.integers(1, 2 * LANES + 1))
def test_products_are_those_of_numpy(data: st.DataObject, rows: int, dimension: int, tokens: int):
    vectors = data.draw(arrays(np.float32, (rows, dimension), elements=values))
    question = data.draw(arrays(np.float32, (tokens, dimension), elements=values))
    found = products(vectors, question)
    assert found.shape == (rows, tokens)
    np.testing.assert_allclose(found, vectors.astype(np.float64) @ question.T.astype(np.float64), atol=1e-3)


@pytest.mark.parametrize("tokens", [1, LANES, LANES + 3])
def test_a_row_gets_the_same_bits_whatever_rows_are_beside_it(tokens: int):
    rng = np.random.default_rng(7)
    vectors, question = (rng.standard_normal((count, 384)).astype(np.float32) for count in (9, tokens))
    together, weights = products(vectors, question), rng.random(tokens).astype(np.float32)
    for row in range(len(vectors)):
        assert np.array_equal(products(vectors[row : row + 1], question), together[row : row + 1])
        assert weighted_sums(together[row : row + 1], weights)[0] == weighted_sums(together, weights)[row]


def test_weighted_sums_take_flags_and_keep_the_precision_of_the_weights():
    held = np.array([[True, False, True], [False, False, False]])
    for kind in (np.float32, np.float64):
        found = weighted_sums(held, np.array([0.5, 4.0, 0.25], kind))
        assert found.dtype == kind and found.tolist() == [0.75, 0.0]


def test_cosines_with_codes_are_those_of_numpy():
    rng = np.random.default_rng(3)
    codes = rng.integers(-127, 128, (6, 384)).astype(np.int8)
    codes[5] = 0
    question = rng.integers(-16383, 16384, 384).astype(np.int16)
    rows, out = np.array([5, 0, 3]), np.full(4, -9, np.float32)
    code_cosines(codes, rows, question, np.array([2, 0, 3]), out)
    unit = question / np.linalg.norm(question)
    expected = [codes[n].astype(float) @ unit / np.linalg.norm(codes[n].astype(float)) for n in (0, 3)]
    np.testing.assert_allclose(out, [expected[0], -9, 0, expected[1]], atol=1e-6)
