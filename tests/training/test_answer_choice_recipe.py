"""The recipe of the choice between answers, from an index to weights that choose."""

import json
from pathlib import Path

import pytest
import torch

from helios.engine import Engine
from helios.errors import ModelError
from helios.models.card import read_card
from helios.reading.choice import FEATURES, ROLE, Choice
from helios.reading.extractive import ExtractiveReader
from training.answer_choice import LISTS, AnswerChoiceSettings, read_lists, train_answer_choice
from training.answer_rivals import RivalRecipe, RivalSettings, rival_loss
from training.errors import TrainingError

ASKED = (("a", "How long is the Rhine?", "1,230"), ("b", "Which river flows through Vienna?", "Danube"))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, ...]:
    found = []
    for name, question, answer in ASKED:
        records = [
            {"question": question, "answer": [[answer]]},
            {"question": f"{question} And who dug it?", "answer": []},
        ]
        found.append(tmp_path / f"{name}.jsonl")
        found[-1].write_text("".join(json.dumps(record) + "\n" for record in records))
    return tuple(found)


@pytest.mark.slow
def test_the_choice_is_learned_from_what_the_readers_say(sample_index, tmp_path, files):
    settings = AnswerChoiceSettings(
        indexes=(sample_index, sample_index), questions=files, parts=2, trees=5,
        train={"epochs": 1, "learning_rate": 1e-3},
    )  # fmt: skip
    out = tmp_path / "out"
    scores = train_answer_choice(settings, out)
    assert all(0 <= score <= 1 for score in scores.values())
    assert read_card(out, ROLE).settings["limit"] == 500
    lists = {one.question: one for one in read_lists(out / LISTS)}
    rhine = lists["How long is the Rhine?"]
    assert rhine.answerable
    assert rhine.rivals[int(rhine.right.argmax())].answer.startswith("1,230")
    assert not any(any(one.right) for question, one in lists.items() if question.endswith("dug it?"))
    with Engine.open(sample_index, overrides=[f"advanced.reading.choice={out}"]) as engine:
        assert isinstance(engine.reader, ExtractiveReader)
        assert isinstance(engine.reader.choice, Choice)
        assert set(engine.reader.choice.trees.features) <= set(FEATURES)
    before = (out / "trees.txt").read_text()
    train_answer_choice(settings.model_copy(update={"shares": (1.0, 1e-6)}), out)  # what was said and learned is kept
    assert (out / "trees.txt").read_text() != before


@pytest.mark.slow
def test_a_source_that_counts_nothing_teaches_the_reader_of_rivals_alone(sample_index, tmp_path, files):
    more = tmp_path / "c.jsonl"
    more.write_text(json.dumps({"question": "When was Fundy established?", "answer": [["1948"]]}) + "\n")
    settings = AnswerChoiceSettings(
        indexes=(sample_index,) * 3, questions=(*files, more), shares=(1.0, 1.0, 0.0), parts=2, trees=5,
        train={"epochs": 1, "learning_rate": 1e-3},
    )  # fmt: skip
    scores = train_answer_choice(settings, tmp_path / "out")
    assert {name.split(": right")[0].rsplit(" ", 1)[-1] for name in scores if ": right" in name} == {
        "a.jsonl",
        "b.jsonl",
    }
    assert len(read_lists(tmp_path / "out" / LISTS)) == 5
    with pytest.raises(TrainingError, match="above 0"):
        train_answer_choice(settings.model_copy(update={"shares": (1.0, 0.0, 0.0)}), tmp_path)


def test_sources_that_cannot_be_left_out(sample_index, tmp_path, files):
    settings = AnswerChoiceSettings(indexes=(sample_index, sample_index), questions=files)
    with pytest.raises(TrainingError, match="two or more"):
        train_answer_choice(AnswerChoiceSettings(indexes=(sample_index,), questions=files[:1]), tmp_path)
    with pytest.raises(TrainingError, match="called alike"):
        train_answer_choice(settings.model_copy(update={"questions": (files[0], files[0])}), tmp_path)
    with pytest.raises(TrainingError, match="expected one for each"):
        train_answer_choice(settings.model_copy(update={"shares": (1.0,)}), tmp_path)


def test_none_of_them_is_an_answer():
    odds = torch.tensor([2.0, 0.0, -1.0])
    everything = float(torch.tensor([2.0, 0.0, -1.0, 0.0]).logsumexp(0))
    assert float(rival_loss(odds, torch.tensor([True, False, False]))) == pytest.approx(everything - 2.0)
    assert float(rival_loss(odds, torch.tensor([False, False, False]))) == pytest.approx(everything)


def test_an_adapter_of_another_rank_is_no_beginning():
    with pytest.raises(ModelError, match="does not fit"):
        RivalRecipe([], RivalSettings(rank=4))
