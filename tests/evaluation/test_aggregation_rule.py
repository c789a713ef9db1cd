import pytest

from helios.evaluation.aggregation import is_aggregation_question


@pytest.mark.parametrize(
    "text",
    [
        "Who is the oldest player ?",
        "the MOST goals",
        "the 13th in rank",
        "who came second",
        "the last team",
        "best result",
    ],
)
def test_superlatives_and_ordinals(text: str) -> None:
    assert is_aggregation_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "What is the first name of the guest ?",
        "west of the forest",
        "in the 19th century",
        "at least two",
        "who won ?",
        "",
    ],
)
def test_words_that_only_look_like_it(text: str) -> None:
    assert not is_aggregation_question(text)
