"""Model cards: what a reader of weights checks before it uses them, and what it says when they do not fit."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helios.errors import ModelError
from helios.models.card import ModelCard, read_card, readme, write_card

CARD = ModelCard(
    name="numbers", role="counter", summary="Counts.", base="nothing", data=(), settings={}, scores={"F1": 0.5},
    needs={"encoder": "abc", "bits": 1, "fused": {"star": 0.4, "k1": 0.9}, "features": ["a", "b"]}, values={"row": 0.5},
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two files with their card."""
    (tmp_path / "trees.txt").write_text("trees")
    (tmp_path / "more.bin").write_bytes(b"\x00\x01")
    write_card(tmp_path, CARD, weights=["trees.txt", "more.bin"])
    return tmp_path


def test_a_card_is_read_as_it_was_written(folder: Path) -> None:
    card = read_card(folder, "counter")
    assert (card.role, card.values, dict(card.needs)) == ("counter", {"row": 0.5}, dict(CARD.needs))
    assert set(card.files) == {"trees.txt", "more.bin"}
    assert card.made
    assert card.machine
    assert card.versions["helios"]
    for text in ("Counts.", "trees.txt", "encoder"):
        assert text in (folder / "README.md").read_text()


def test_a_card_for_people_keeps_to_what_there_is() -> None:
    assert "## Fits" not in readme(replace(CARD, needs={}))
    assert "## Limits\n\nEnglish." in readme(replace(CARD, limits="English."))


def test_another_role_is_refused(folder: Path) -> None:
    with pytest.raises(ModelError, match=f"{folder}: holds a counter, expected a ranker"):
        read_card(folder, "ranker")


def test_a_file_that_changed_is_refused(folder: Path) -> None:
    (folder / "trees.txt").write_text("other trees")
    with pytest.raises(ModelError, match=r"trees\.txt: damaged, or not the file of its card: SHA-256 \w{12}…, not"):
        read_card(folder, "counter")


def test_a_file_that_is_missing_is_named(folder: Path) -> None:
    (folder / "more.bin").unlink()
    with pytest.raises(ModelError, match=r"more\.bin: cannot be read \(No such file or directory\); its card names it"):
        read_card(folder, "counter")


@pytest.mark.parametrize(
    "content", [None, "", "no json", "[]", "{}", '{"name": "x"}', json.dumps({"data": [], "unheard": 1}), "\x00",
     '{"data": ' + "[" * 100_000]
)  # fmt: skip
def test_a_folder_without_a_readable_card_is_refused(folder: Path, content: str | None) -> None:
    if content is None:
        (folder / "card.json").unlink()
    else:
        (folder / "card.json").write_text(content)
    with pytest.raises(ModelError, match=rf"{folder}: no model that `helios train` wrote \(card\.json"):
        read_card(folder, "counter")


@pytest.mark.parametrize(
    "change",
    [{"files": ["trees.txt"]}, {"files": {"a\x00b": "0"}}, {"files": {"../../secret": "0"}},
     {"files": {"/etc/passwd": "0"}}, {"files": {"trees.txt": 1}}, {"needs": 3}, {"values": None}],
)  # fmt: skip
def test_a_card_of_other_kinds_of_values_is_refused(folder: Path, change: dict[str, Any]) -> None:
    card = json.loads((folder / "card.json").read_text())
    (folder / "card.json").write_text(json.dumps(card | change))
    with pytest.raises(ModelError, match=rf"{folder}: no model that `helios train` wrote \(card\.json"):
        read_card(folder, "counter")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"encoder": "xyz"}, r"another encoder \(abc; here it is xyz\)"),
        ({"bits": 2}, r"another bits \(1; here it is 2\)"),
        ({"fused": {"star": 0.4, "k1": 1.2}}, "another fused"),
        ({"features": ["b", "a"]}, "another features"),
        ({"encoder": "abc", "bits": 2}, "another bits"),
    ],
)
def test_weights_that_need_something_else_say_what_and_what_to_do(folder: Path, found: Any, message: str) -> None:
    card = read_card(folder, "counter")
    with pytest.raises(ModelError, match=f"{folder}: these weights .counter. were trained with {message}") as error:
        card.check(folder, **found)
    assert "train them again (`helios train`), or leave them out" in str(error.value)
    assert card.unmet(**found)


def test_what_weights_do_not_need_is_passed_over(folder: Path) -> None:
    card = read_card(folder, "counter")
    card.check(folder, encoder="abc", weather="rain", features=("a", "b"), fused={"k1": 0.9, "star": 0.4})
    assert card.unmet(weather="rain") == []
