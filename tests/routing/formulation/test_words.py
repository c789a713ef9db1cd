"""Words of questions and of names."""

import pytest

from helios.routing.formulation.words import lemma, name_words, similarity, tokenise


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("cities", "city"), ("boxes", "box"), ("classes", "class"), ("status", "status"), ("people", "person"),
        ("has", "have"), ("gas", "gas"), ("IDs", "id"), ("nationalities", "nationality"), ("diagnoses", "diagnosis"),
        ("heroes", "hero"), ("movies", "movie"), ("cookies", "cookie"), ("ties", "tie"), ("parties", "party"),
    ],
)  # fmt: skip
def test_lemma(word, expected):
    assert lemma(word) == expected


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Year_of_Founded", ("year", "of", "founded")),
        ("CustName", ("customer", "name")), ("StuID", ("student", "id")),
        ("LName", ("last", "name")), ("ref_colors", ("color",)), ("HTTPStatus", ("http", "status")),
        ("Official_ratings_(millions)", ("official", "rating", "million")), ("apt_feature_1", ("apt", "feature", "1")),
        ("dep_nm", ("dep", "name")), ("loco_cls", ("loco", "class")), ("max_spd", ("maximum", "speed")),
    ],
)  # fmt: skip
def test_words_of_a_name(name, words):
    assert name_words(name) == words


def test_tokens_keep_quotations_numbers_and_dates_whole():
    tokens = tokenise("Who isn't in \"New York\" or 'Al Bano' since 2021-03-04, for 1,200.50?")
    assert [t.text for t in tokens if t.quoted] == ["New York", "Al Bano", "2021-03-04"]
    assert [t.number for t in tokens if t.number is not None] == [1200.5]
    assert "not" in [t.lemma for t in tokens]


def test_possessives_are_no_quotations():
    tokens = tokenise("What are the students' names and the club's captain?")
    assert [t.lemma for t in tokens if t.possessive] == ["student", "club"]
    assert not any(t.quoted for t in tokens)


def test_similarity_falls_with_distance():
    assert similarity("vote", "vote") == 1.0
    assert 0.8 <= similarity("conductor", "conducted") < 1.0
    assert similarity("cost", "price") == 0.8
    assert similarity("count", "country") == 0.0
    assert similarity("cat", "category") < 0.8
    assert similarity("group", "grp") == similarity("payment", "pymt") == 0.8
    assert similarity("capacity", "city") == similarity("gravel", "grp") == 0.0
    assert similarity("valuable", "value") >= 0.8


def test_signs_belong_to_their_word_and_plurals_are_no_requests():
    assert [token.text for token in tokenise("O+ or AB-, a C++ list of non-members")][:3] == ["O+", "or", "AB-"]
    assert "C++" in [token.text for token in tokenise("in C++?")]
    assert [token.small for token in tokenise("find finds")] == [True, False]


def test_a_word_of_the_opposite_meaning_does_not_meet_its_end():
    assert similarity("disqualification", "qualification") == 0.0
    assert similarity("housewarming", "warming") > 0.0
