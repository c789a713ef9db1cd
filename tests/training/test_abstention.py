"""From which confidence on an answer is worth giving."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.reading.features import FEATURES
from training.abstention import curve, isotonic, least_confidence, out_of_fold
from training.reader import ReaderSettings
from training.reader_examples import Example

CONFIDENCES = np.array([0.05, 0.15, 0.25, 0.35, 0.9])
EXACT = np.array([0.0, 1.0, 0.0, 1.0, 1.0])


def test_the_curve_counts_abstentions_as_wrong():
    first, second = curve(CONFIDENCES, EXACT, EXACT, steps=(0.0, 0.3))
    assert (first.answered, first.precision, first.em) == (1.0, 0.6, 0.6)
    assert (second.answered, second.precision, second.em) == (0.4, 1.0, 0.4)


@pytest.mark.parametrize(("precision", "confidence"), [(0.0, 0.05), (0.5, 0.15), (0.6, 0.35), (1.1, 1.0)])
def test_the_rule_takes_the_lowest_confidence_that_is_good_enough(precision, confidence):
    assert least_confidence(CONFIDENCES, EXACT, precision=precision) == confidence


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_an_isotonic_sequence_never_falls_and_keeps_the_mean(values):
    fitted = isotonic(np.array(values))
    assert len(fitted) == len(values)
    assert (np.diff(fitted) >= -1e-9).all()
    assert np.isclose(fitted.mean(), np.mean(values))


def test_every_question_is_answered_by_trees_that_never_saw_its_table():
    chance = np.random.default_rng(3)
    examples = []
    for number in range(40):
        exact = np.arange(6) == number % 6
        features = chance.random((6, len(FEATURES))).astype(np.float16)
        features[:, 0] = exact
        examples.append(Example(str(number), number / 40, features, exact.astype(np.float32), exact, np.arange(6)))
    nothing = np.zeros(0, np.float32)
    empty = np.zeros((0, len(FEATURES)), np.float16)
    examples.append(Example("none", 0.5, empty, nothing, nothing.astype(bool), nothing.astype(np.int32)))
    confidences, exact, _ = out_of_fold(examples, ReaderSettings(trees=20, least_examples=1))
    assert exact[:40].mean() > 0.9
    assert (confidences[-1], exact[-1]) == (0.0, 0.0)
