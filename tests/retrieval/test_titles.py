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


def test_all_words_hold_all_of_the_title(titles):
    np.testing.assert_allclose(titles.cover(["rhine", "fall"]), [1, 1, 0, 0, 0], rtol=1e-6)


def test_rare_words_are_more_of_the_title(titles):
    common, rare = titles.cover(["list"])[2], titles.cover(["lake"])[2]
    assert 0 < common < rare < 1
    assert titles.cover(["list", "of", "lake"])[2] == pytest.approx(1)


def test_words_count_once_and_without_accents(titles):
    np.testing.assert_allclose(titles.cover(["łodz", "rhine", "rhine"]), [1, titles.cover(["rhine"])[1], 0, 0, 1])
    assert not titles.cover([]).any()


def test_no_titles(tmp_path):
    write_postings([], tmp_path, segment_count=0)
    assert len(TitleTerms([], Postings(tmp_path)).cover(["rhine"])) == 0
