"""A card says what is needed to judge weights and to make them again."""

import sys
from pathlib import Path

import pytest

from helios.errors import ModelError
from helios.models.card import ModelCard, command_line, data_file, read_card, write_card


def test_a_card_is_written_for_programs_and_people(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text("{}\n")
    (tmp_path / "weights.safetensors").write_bytes(b"w")
    card = ModelCard(
        name="toy reranker",
        role="edge reranker",
        summary="Scores edges.",
        base="all-MiniLM-L6-v2",
        data=(data_file(tmp_path / "questions.jsonl", records=1),),
        settings={"train": {"epochs": 2}},
        scores={"held-out train reciprocal rank": 0.51234},
        limits="English only.",
        seconds=90,
        needs={"features": ["gap", "rank"], "bits": 1},
        values={"calibration": {"slope": 0.5}},
    )
    written = write_card(tmp_path, card, weights=["weights.safetensors"])
    assert read_card(tmp_path, "edge reranker") == written
    assert written.command and written.made and written.versions["helios"]
    text = (tmp_path / "README.md").read_text()
    shown = ("toy reranker", "0.5123", "questions.jsonl", written.data[0].sha256, written.command, "1.5 minutes")
    for part in (*shown, '["gap", "rank"]'):
        assert part in text
    assert str(tmp_path) not in text
    assert written.files["weights.safetensors"] in text


def written(folder: Path, **fields) -> ModelCard:
    (folder / "trees.txt").write_text("tree")
    card = ModelCard("toy", "ranker", "", "none", (), {}, {}, **fields)
    return write_card(folder, card, weights=["trees.txt"])


def test_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    card = written(tmp_path, needs={"features": ("gap", "rank"), "bits": 1})
    card.check(tmp_path, features=["gap", "rank"], bits=1, encoder="any: they do not say")
    with pytest.raises(ModelError, match=r"trained with another bits \(1; here it is 2\).*helios train"):
        card.check(tmp_path, bits=2)
    with pytest.raises(ModelError, match="another features"):
        read_card(tmp_path, "ranker").check(tmp_path, features=["rank", "gap"])


def test_files_are_those_of_the_card(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(ModelError, match="holds a ranker, expected a reader"):
        read_card(tmp_path, "reader")
    (tmp_path / "trees.txt").write_text("another tree")
    with pytest.raises(ModelError, match=r"trees\.txt: damaged, or not the file of its card"):
        read_card(tmp_path, "ranker")
    (tmp_path / "trees.txt").unlink()
    with pytest.raises(ModelError, match=r"trees\.txt: cannot be read"):
        read_card(tmp_path, "ranker")
    with pytest.raises(ModelError, match=r"no model that `helios train` wrote"):
        read_card(tmp_path / "nowhere", "ranker")


@pytest.mark.parametrize("program", ["/usr/bin/helios", "/site-packages/helios/__main__.py"])
def test_the_command_is_the_same_however_it_was_started(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(sys, "argv", [program, "train", "ranker", "data.questions=[a b.jsonl]"])
    assert command_line() == "helios train ranker 'data.questions=[a b.jsonl]'"


def test_the_command_names_no_place_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ["train", "ranker", "--out", "/home/me/runs/x", "indexes=[/data/a,b/c]", "start=/w/y.safetensors", "a=1/2"]
    monkeypatch.setattr(sys, "argv", ["helios", *said])
    assert command_line() == "helios train ranker --out x 'indexes=[a,b/c]' start=y.safetensors a=1/2"
