"""What confidences were worth, by hand."""

import pytest

from helios.evaluation.sources.trust import trust


def test_tenths_error_and_what_may_be_answered():
    found = trust([(0.95, True), (0.9, True), (0.62, True), (0.68, False), (0.1, False), (0.0, False)])
    assert [(tenth.low, tenth.count, tenth.right) for tenth in found.tenths] == [
        (0.9, 2, 1.0), (0.6, 2, 0.5), (0.1, 1, 0.0), (0.0, 1, 0.0),
    ]  # fmt: skip
    assert found.calibration_error == pytest.approx((2 * 0.075 + 2 * 0.15 + 0.1) / 6)
    assert found.precision_of_half == pytest.approx(2 / 3)
    assert found.answered_at_88 == pytest.approx(2 / 6)


def test_equal_confidences_are_answered_together():
    assert trust([(0.9, True), (0.9, False)]).answered_at_88 == 0.0
    with pytest.raises(ValueError, match="no questions"):
        trust([])


def test_few_questions_make_an_error_by_chance():
    few, many = ([(0.7, k % 10 < 7) for k in range(n)] for n in (10, 1000))
    assert trust(many).calibration_error == pytest.approx(0.0)
    assert 0.08 < trust(few).error_by_chance < 0.16
    assert trust(many).error_by_chance < 0.02
