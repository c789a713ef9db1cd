"""A card says what is needed to judge weights and to make them again."""

import sys
from pathlib import Path

import pytest

from training.cards import ModelCard, command_line, data_file, read_card, write_card


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
    )
    written = write_card(tmp_path, card, weights=["weights.safetensors"])
    assert read_card(tmp_path) == written
    assert written.command and written.made and written.versions["helios"]
    text = (tmp_path / "README.md").read_text()
    for part in ("toy reranker", "0.5123", "questions.jsonl", written.data[0].sha256, written.command, "1.5 minutes"):
        assert part in text
    assert str(tmp_path) not in text
    assert written.files["weights.safetensors"] in text


@pytest.mark.parametrize("program", ["/usr/bin/helios", "/site-packages/helios/__main__.py"])
def test_the_command_is_the_same_however_it_was_started(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(sys, "argv", [program, "train", "ranker", "data.questions=[a b.jsonl]"])
    assert command_line() == "helios train ranker 'data.questions=[a b.jsonl]'"
