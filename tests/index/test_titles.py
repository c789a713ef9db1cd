"""How much of a title some words hold."""

from dataclasses import fields, replace

import numpy as np
import pytest

from helios.errors import IndexFormatError
from helios.index.lexical import Postings, Statistics, VisibleNodes, write_postings
from helios.index.titles import TitleTerms

TITLES = ["Rhine", "Rhine Falls", "List of lakes", "", "Łódź", "Euro 2004"]


@pytest.fixture(scope="module")
def titles(tmp_path_factory) -> TitleTerms:
    directory = tmp_path_factory.mktemp("lexical")
    write_postings([*TITLES, "list of rivers", "the list"], directory, segment_count=0)
    return TitleTerms.of(TITLES, Postings(directory).idf)


def cover(titles: TitleTerms, words: list[str]):
    numbers = np.unique(titles.numbers(words))
    return titles.cover(numbers[numbers >= 0])


def test_all_words_hold_all_of_the_title(titles):
    np.testing.assert_allclose(cover(titles, ["rhine", "fall"]), [1, 1, 0, 0, 0, 0], rtol=1e-6)


def test_rare_words_are_more_of_the_title(titles):
    common, rare = cover(titles, ["list"])[2], cover(titles, ["lake"])[2]
    assert 0 < common < rare < 1
    assert cover(titles, ["list", "of", "lake"])[2] == pytest.approx(1)


def test_words_count_once_and_without_accents(titles):
    np.testing.assert_allclose(cover(titles, ["łodz", "rhine", "rhine"]), [1, cover(titles, ["rhine"])[1], 0, 0, 1, 0])
    assert not cover(titles, []).any()


@pytest.mark.parametrize("count", [0, 3])
def test_no_titles(tmp_path, count):
    write_postings([], tmp_path, segment_count=0)
    TitleTerms.of([""] * count, Postings(tmp_path).idf).write(tmp_path)
    stored = TitleTerms.open(tmp_path)
    assert (stored.passage_count, stored.term_count) == (count, 0)
    assert len(cover(stored, ["rhine"])) == count


def test_stored_titles_are_what_was_written(titles, tmp_path):
    assert TitleTerms.open(tmp_path) is None
    titles.write(tmp_path)
    stored = TitleTerms.open(tmp_path)
    for field in fields(TitleTerms):
        written, found = getattr(titles, field.name), getattr(stored, field.name)
        assert written.dtype == found.dtype
        np.testing.assert_array_equal(written, found)
    (tmp_path / "title-terms.npy").write_bytes(b"nothing")
    with pytest.raises(IndexFormatError, match=r"title-terms\.npy: damaged: not a readable array"):
        TitleTerms.open(tmp_path)


def test_terms_of_a_title_and_titles_of_a_term_agree(titles):
    pairs = {(passage, int(term)) for passage in range(len(TITLES)) for term in
             titles.terms[titles.starts[passage] : titles.starts[passage + 1]]}  # fmt: skip
    held = {(int(passage), term) for term in range(titles.term_count) for passage in
            titles.holders[titles.offsets[term] : titles.offsets[term + 1]]}  # fmt: skip
    assert pairs == held
    assert titles.numbers(["rhine", "never"]).tolist() == [titles.numbers(["rhine"])[0], -1]
    numbers = titles.numbers(["rhine", "2004", "euro"])
    assert titles.numeric[numbers].tolist() == [False, True, False]


def test_numbers_that_kernels_cannot_follow_are_refused(titles, tmp_path):
    damaged = {
        "starts": titles.starts[::-1].copy(),
        "offsets": titles.offsets + 1,
        "terms": titles.terms + np.int32(titles.term_count),
        "holders": titles.holders - np.int32(len(TITLES)),
        "shares": titles.shares[:-1],
        "holder_shares": titles.holder_shares + np.float32(np.nan),
        "numeric": titles.numeric[:-1],
    }
    for name, values in damaged.items():
        replace(titles, **{name: values}).write(tmp_path)
        with pytest.raises(IndexFormatError, match=rf"title-{name.replace('_', '-')}\.npy: damaged"):
            TitleTerms.open(tmp_path)


def test_joined_titles_are_those_of_the_passages_read_together(tmp_path):
    """Parts of which some passages are hidden, against all visible titles read at once with the same statistics."""
    titles = [TITLES[:2], TITLES[2:4], TITLES[4:]]
    shown = [np.array([1]), np.array([], np.int64), np.array([0, 1])]
    parts, postings = [], []
    for number, own in enumerate(titles):
        directory = tmp_path / str(number)
        write_postings([*own, "list of rivers"], directory, segment_count=0)
        postings.append(Postings(directory))
        parts.append((TitleTerms.of(own, postings[-1].idf), shown[number]))
    nodes = [VisibleNodes(part, np.zeros(0, np.int64), own, False) for part, own in zip(postings, shown, strict=True)]
    idf = Statistics(nodes).idf
    together = TitleTerms.of(["Rhine Falls", "Łódź", "Euro 2004"], idf)
    joined = TitleTerms.joined(parts, idf)
    for field in fields(TitleTerms):
        found, expected = getattr(joined, field.name), getattr(together, field.name)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
