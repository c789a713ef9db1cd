"""How much of a title some words hold."""

import numpy as np
import pytest

from helios.index.lexical import Postings, write_postings
from helios.retrieval.titles import TitleTerms

TITLES = ["Rhine", "Rhine Falls", "List of lakes", "", "Łódź"]


@pytest.fixture(scope="module")
def titles(tmp_path_factory) -> TitleTerms:
    directory = tmp_path_factory.mktemp("lexical")
    write_postings([*TITLES, "list of rivers", "the list"], directory, segment_count=0)
    return TitleTerms(TITLES, Postings(directory))


def cover(titles: TitleTerms, words: list[str]):
    numbers = np.unique(titles.numbers(words))
    return titles.cover(numbers[numbers >= 0])


def test_all_words_hold_all_of_the_title(titles):
    np.testing.assert_allclose(cover(titles, ["rhine", "fall"]), [1, 1, 0, 0, 0], rtol=1e-6)


def test_rare_words_are_more_of_the_title(titles):
    common, rare = cover(titles, ["list"])[2], cover(titles, ["lake"])[2]
    assert 0 < common < rare < 1
    assert cover(titles, ["list", "of", "lake"])[2] == pytest.approx(1)


def test_words_count_once_and_without_accents(titles):
    np.testing.assert_allclose(cover(titles, ["łodz", "rhine", "rhine"]), [1, cover(titles, ["rhine"])[1], 0, 0, 1])
    assert not cover(titles, []).any()


def test_no_titles(tmp_path):
    write_postings([], tmp_path, segment_count=0)
    assert len(cover(TitleTerms([], Postings(tmp_path)), ["rhine"])) == 0


def test_terms_of_a_title_and_titles_of_a_term_agree(titles):
    pairs = {(passage, int(term)) for passage in range(len(TITLES)) for term in
             titles.terms[titles.starts[passage] : titles.starts[passage + 1]]}  # fmt: skip
    held = {(int(passage), term) for term in range(titles.term_count) for passage in
            titles.holders[titles.offsets[term] : titles.offsets[term + 1]]}  # fmt: skip
    assert pairs == held
    assert titles.numbers(["rhine", "never"]).tolist() == [titles.numbers(["rhine"])[0], -1]
    assert not titles.numeric.any()
