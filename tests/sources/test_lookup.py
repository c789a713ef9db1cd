"""The lookup of stored values: what is stored is found, however it is written."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helios.sources.cache import SourceCache
from helios.sources.lookup import LazyLookup, StoredValue, ValueLookup, compacted, words_of

TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30)
PLACES = st.sampled_from([("singer", "name"), ("song", "title"), ("label",)])
VALUES = st.lists(st.builds(StoredValue, PLACES, TEXT, st.sampled_from(["", "http://x/1"])), max_size=30)


def lookup_of(*values: str) -> ValueLookup:
    return ValueLookup.build(StoredValue(("table", "column"), value) for value in values)


def best(lookup: ValueLookup, phrase: str) -> str | None:
    hits = lookup.find([phrase], limit=1)
    return hits[0].value if hits else None


@given(values=VALUES)
@settings(max_examples=150, deadline=None)
def test_every_stored_value_is_found(values: list[StoredValue]):
    lookup = ValueLookup.build(values)
    for stored in values:
        if not stored.value.strip():
            continue
        hits = lookup.find([stored.value], limit=len(values))
        assert (stored.place, stored.value, stored.entity) in [(hit.place, hit.value, hit.entity) for hit in hits]
        assert hits[0].score == 1.0 or not words_of(stored.value)
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert all(0.0 < score <= 1.0 for score in scores)


@given(values=VALUES, phrase=TEXT)
@settings(max_examples=60, deadline=None)
def test_a_saved_lookup_answers_the_same(values: list[StoredValue], phrase: str, tmp_path_factory):
    path = tmp_path_factory.mktemp("lookup") / "values.npz"
    lookup = ValueLookup.build(values)
    lookup.save(path, "now")
    again = ValueLookup.open(path, "now")
    assert again is not None
    phrases = [phrase, *(stored.value for stored in values)]
    assert again.find(phrases) == lookup.find(phrases)
    assert ValueLookup.open(path, "later") is None


@given(values=st.lists(TEXT, max_size=40), per_place=st.integers(1, 5), total=st.integers(1, 8))
def test_caps_hold_and_are_told(values: list[str], per_place: int, total: int):
    stored = [StoredValue((str(i % 2),), value) for i, value in enumerate(values)]
    lookup = ValueLookup.build(stored, per_place=per_place, total=total)
    distinct = {value for value in stored if value.value.strip()}
    assert len(lookup) <= min(total, 2 * per_place, len(distinct))
    assert bool(lookup.capped) == (len(lookup) < len(distinct))


def test_case_accents_and_punctuation_do_not_matter():
    lookup = lookup_of("Ole Group", "Besançon", "Ørsted", "O'Neill & Sons", "Straße 7", "AC/DC")
    for phrase, value in (
        ("ole group", "Ole Group"), ("OLE-GROUP", "Ole Group"), ("besancon", "Besançon"), ("orsted", "Ørsted"),
        ("o neill sons", "O'Neill & Sons"), ("strasse 7", "Straße 7"), ("acdc", "AC/DC"),
    ):  # fmt: skip
        assert best(lookup, phrase) == value
    assert lookup.find(["ole group"])[0].score == 1.0


def test_parts_and_spellings_score_less():
    lookup = lookup_of("New York City", "New York", "Newark", "Johannesburg")
    assert [hit.value for hit in lookup.find(["new york"])][:2] == ["New York", "New York City"]
    hits = lookup.find(["Johanesburg"])
    assert hits[0].value == "Johannesburg" and hits[0].score < 1.0
    assert not lookup.find(["completely different"])
    assert not lookup.find([""]) and not lookup.find([])


def test_the_same_spelling_comes_first():
    lookup = lookup_of("c", "C", "C++", "C#")
    assert best(lookup, "C++") == "C++"
    assert best(lookup, "c#") == "C#"
    assert best(lookup, "c") == "c"


def test_marks_without_letters_are_values_too():
    assert best(lookup_of("★", "+", "a"), "★") == "★"
    assert compacted(" + ") == "+"


def test_numbers_have_no_other_spelling():
    assert not lookup_of("20140").find(["20141"])


def test_prose_is_left_to_the_corpus():
    assert len(lookup_of("word " * 100)) == 0


def test_a_lazy_lookup_is_built_once(tmp_path: Path):
    built = []

    def values():
        built.append(1)
        yield StoredValue(("a",), "Ole Group")

    cache = SourceCache(tmp_path, "shop", "now")
    lazy = LazyLookup(values, cache)
    lazy.start().join()
    assert lazy.find(["ole group"])[0].value == "Ole Group"
    assert LazyLookup(values, cache).find(["ole group"])[0].place == ("a",)
    assert len(built) == 1
    assert LazyLookup(values, SourceCache(tmp_path, "shop", "later")).find(["ole"]) and len(built) == 2
    (tmp_path / "shop.values.npz").write_bytes(b"damaged")
    assert LazyLookup(values, cache).find(["ole group"]) and len(built) == 3
    lazy.forget()
    assert not (tmp_path / "shop.values.npz").exists()


def test_values_are_gathered_for_so_long_and_no_longer(monkeypatch: pytest.MonkeyPatch, caplog):
    monkeypatch.setattr("helios.sources.lookup.BUILD_SECONDS", 0.1)

    def values():
        for number in range(10_000):
            yield StoredValue(("t", "a"), f"value{number}")
            time.sleep(0.02)

    lazy = LazyLookup(values, None)
    assert lazy.find(["value0"])[0].value == "value0"
    assert len(lazy.get()) < 100 and "t.a on cannot be looked up" in caplog.text


def test_late_work_does_not_hold_up_the_end_of_the_process(within):
    code = """
import time
from helios.sources.deadline import Background
background = Background(1, name="test")
first, second = background.submit(lambda: time.sleep(60)), background.submit(lambda: 1)
assert second.cancel() and Background(2, name="test").submit(lambda: 7).result(5) == 7
"""
    with within(20.0):
        subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_nothing_is_kept_without_a_folder():
    lazy = LazyLookup(lambda: [StoredValue(("a",), "Ole Group")], SourceCache(None, "shop", "now"))
    assert lazy.find(["ole group"])
