"""Lessons about passages, and the reader trained on them."""

import json
import random

import pytest

from helios.engine import Engine
from helios.models.card import read_card
from helios.reading.passages import ROLE, PassageReader
from training.errors import TrainingError
from training.made_lessons import cropped, occurrences
from training.passage_lessons import written_lessons
from training.passage_reader import PassageLesson, PassageReaderSettings, token_pairs, train_passage_reader
from training.settings import TrainSettings

RULES = "# House rules\n\nParking is limited to **40 minutes**. Dogs are welcome on a lead.\n"
ASKED = [
    {"question": "how long may we park?", "file": "rules.md", "answer": [["40 minutes"]], "span": "40 minutes",
     "sentence": "Parking is limited to **40 minutes**."},
    {"question": "may I bring the dog?", "file": "rules.md", "answer": [["on a lead"]], "span": "on a lead",
     "sentence": "Dogs are welcome on a lead."},
    {"question": "where do I pay?", "file": "rules.md", "answer": [], "span": "", "sentence": ""},
]  # fmt: skip


@pytest.fixture
def lessons(tmp_path):
    """A folder of two documents and the lessons about them."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "rules.md").write_text(RULES)
    (tmp_path / "files" / "minutes.txt").write_text(
        "The treasurer reported a balance of 2,310 pounds. The bar is shut.\n"
    )
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in ASKED))
    return list(written_lessons(tmp_path))


def test_answers_are_found_in_the_passages_of_the_file(lessons):
    assert len(lessons) == 3
    for lesson, asked in zip(lessons, ASKED, strict=True):
        for text, spans in lesson["right"]:
            assert {text[start:end] for start, end in spans} == {asked["span"]}
        assert all("2,310" in text or not asked["answer"] for text in lesson["wrong"])
    assert lessons[0]["right"]
    assert not lessons[2]["right"]


@pytest.mark.parametrize("seed", range(20))
def test_a_cropped_text_keeps_what_answers(seed):
    text = " ".join(f"word{n}" for n in range(300)) + " | title: row"
    at = text.index("word150")
    shown, spans = cropped(text, ((at, at + 7),), 45, random.Random(seed))
    assert [shown[start:end] for start, end in spans] == ["word150"]
    assert len(shown.split()) < 60
    assert shown.endswith("title: row")


def test_occurrences_are_whole_words():
    assert occurrences("Ann and Annabel, ann", "Ann") == [(0, 3), (17, 20)]
    assert occurrences("anything", " ") == []


@pytest.mark.slow
def test_training_writes_what_reads(lessons, sample_index, tmp_path):
    path = tmp_path / "lessons.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lessons))
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    for file, question, answer in (
        (first, "Where does the Rhine end?", "North Sea"),
        (second, "Who built it?", "Nobody"),
    ):
        record = {"id": "1", "question": question, "kind": "passage", "answer": [[answer]], "evidence": []}
        file.write_text(json.dumps(record) + "\n")
    settings = PassageReaderSettings(
        lessons=(path,), before=(path,), indexes=(sample_index, sample_index), questions=(first, second), rank=2,
        train=TrainSettings(epochs=1, learning_rate=1e-3, evaluate_first=False),
    )  # fmt: skip
    scores = train_passage_reader(settings, tmp_path / "out")
    assert {name.rpartition(": ")[2] for name in scores} >= {"right, left out", "said, left out"}
    assert read_card(tmp_path / "out", ROLE).values["weights"]
    with Engine.open(sample_index) as engine:
        question = "Which sea does the Rhine flow into?"
        reader, evidence = PassageReader.load(tmp_path / "out"), engine.search(question)
        assert reader.read(question, evidence, reader.passages(question, evidence, edges=10))
    with pytest.raises(TrainingError, match="lessons"):
        train_passage_reader(PassageReaderSettings(), tmp_path / "none")


def test_first_and_last_token_of_an_answer(lessons):
    from helios.models.base import find_base_model
    from helios.reading.passages import WindowTokeniser

    lesson = PassageLesson(lessons[0]["question"], tuple(lessons[0]["right"]), ())
    text, spans = lesson.right[0]
    (window,) = WindowTokeniser(find_base_model()).of(lesson.question, [text])
    ((first, last),) = token_pairs(window, spans)
    start, end = (window.spans[at - window.first] for at in (first, last))
    assert text[start[0] : end[1]] == "40 minutes"
    assert token_pairs(window, [(len(text) - 1, len(text) + 5)]) == []
