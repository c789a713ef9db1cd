import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.models.linker.text import fold, normalise, split_disambiguator, tokens, type_noun


@given(st.text())
def test_folding_keeps_every_character_in_its_place(text: str) -> None:
    assert len(fold(text)) == len(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Škoda  Plzeň", "skoda plzen"),
        ("Eek ! The Cat", "eek the cat"),
        ("Roly-Poly (T-ara song)", "roly poly t ara song"),
        ("2010–11", "2010 11"),
        ("—", ""),
    ],
)
def test_normalise(text: str, expected: str) -> None:
    assert normalise(text) == expected


def test_tokens_of_other_scripts_are_kept() -> None:
    assert tokens("Москва 東京タワー 서울") == ["москва", "東", "京", "タ", "ワ", "ー", "서", "울"]


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Arthur Davis (gymnast)", ("Arthur Davis", "gymnast")),
        ("Mercury", ("Mercury", "")),
        ("(I Can't Get No) Satisfaction", ("(I Can't Get No) Satisfaction", "")),
        ("(unnamed)", ("(unnamed)", "")),
    ],
)
def test_split_disambiguator(title: str, expected: tuple[str, str]) -> None:
    assert split_disambiguator(title) == expected


@pytest.mark.parametrize(
    ("text", "noun"),
    [
        ("Ada Novak ( born 1990 ) is a Czech professional tennis player who won two titles .", "player"),
        ("Lund is a city in southern Sweden .", "city"),
        ("Nothing is defined here", ""),
        ("", ""),
    ],
)
def test_type_noun(text: str, noun: str) -> None:
    assert type_noun(text) == noun
