"""Logistic regression: the weights behind the data, rows that count more than once, and data that a line divides."""

import numpy as np
import pytest

from training.regression import fit_logistic


def test_the_weights_behind_the_data_are_found():
    random = np.random.default_rng(1)
    rows = random.normal(size=(20_000, 2))
    likely = 1 / (1 + np.exp(-(rows @ [1.5, -0.5] - 2.0)))
    wanted = (random.random(len(rows)) < likely).astype(float)
    weights, intercept = fit_logistic(rows, wanted, decay=1e-6)
    assert [*weights, intercept] == pytest.approx([1.5, -0.5, -2.0], abs=0.1)
    said = 1 / (1 + np.exp(-(rows @ weights + intercept)))
    assert said.mean() == pytest.approx(wanted.mean(), abs=1e-6)


def test_a_row_that_counts_twice_is_two_rows():
    rows, wanted = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 0.0, 1.0])
    counted = fit_logistic(rows, wanted, decay=1e-3, counts=np.array([1.0, 2.0, 1.0, 3.0]))
    repeated = fit_logistic(np.repeat(rows, [1, 2, 1, 3], axis=0), np.repeat(wanted, [1, 2, 1, 3]), decay=1e-3)
    np.testing.assert_allclose(counted[0], repeated[0], rtol=1e-6)
    assert counted[1] == pytest.approx(repeated[1])


@pytest.mark.parametrize("decay", [1e-4, 1e-6, 1e-9])
def test_data_that_a_line_divides_ends_in_finite_weights(decay: float):
    rows = np.concatenate([np.zeros((3, 1)), np.linspace(1, 4, 400)[:, None]])
    wanted = np.append(np.ones(3), np.zeros(400))
    (weight,), intercept = fit_logistic(rows, wanted, decay=decay)
    assert np.isfinite([weight, intercept]).all()
    assert weight < 0 < intercept
