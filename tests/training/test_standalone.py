"""Questions that stand alone: their own words stay, and only words of their table's title and section come in."""

import gzip
import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from helios.corpus import CorpusStore, CorpusWriter
from helios.evaluation.questions import read_questions
from helios.retrieval.refinement.wording import stems
from helios.types import Table
from training.cli import app
from training.standalone import LEFT, stand_alone

QUESTION = "What is the mascot of the school of catcher Alan Hall ?"
TITLE, SECTION = "1960 College Baseball All-America Team", "Members"
TITLES = st.sampled_from(["1960 Rome Olympics", "List of Norwegian towns", "Ada Almqvist (golfer)", "Rovdal", "X of Y"])


def told(seed: int, question: str = QUESTION) -> str:
    return stand_alone(question, TITLE, SECTION, random.Random(seed))


@given(st.text(alphabet="abc RomeOlympics19?.,", min_size=1), TITLES, st.integers())
def test_a_question_keeps_its_words_and_gains_only_those_of_its_table(question: str, title: str, seed: int) -> None:
    made = stand_alone(question, title, "Members", random.Random(seed))
    added, asked = list(stems(made)), list(stems(question))
    for word in asked:
        added.remove(word)
    assert set(added) <= {*stems(title), "member", "in", "at", "the", "of", "list", "among"}


def test_most_questions_name_their_table() -> None:
    shares = [len(set(stems(TITLE)) & set(stems(told(seed)))) / len(set(stems(TITLE))) for seed in range(400)]
    untold = sum(told(seed) == QUESTION for seed in range(400)) / 400
    assert 0.7 < sum(shares) / len(shares) < 0.95
    assert LEFT / 2 < untold < LEFT * 2
    assert any(made.startswith(("In ", "At ")) for made in map(told, range(20)))


def test_a_question_that_names_its_table_stays_as_it_is() -> None:
    question = f"Who caught for the {TITLE} ?"
    assert {told(seed, question) for seed in range(50)} <= {question, f"{question[:-2]} in the members ?"}
    assert stand_alone("Who won in Rovdal ?", "Rovdal", "", random.Random(1)) == "Who won in Rovdal ?"


@pytest.fixture
def store(tmp_path: Path) -> CorpusStore:
    with CorpusWriter(tmp_path / "corpus") as writer:
        writer.add(Table("t1", TITLE, ("Name", "School"), (("Alan Hall", "Arizona"),), section=SECTION))
    return CorpusStore.open(tmp_path / "corpus")


def test_the_command_writes_a_question_file_with_the_same_gold(store: CorpusStore, tmp_path: Path) -> None:
    gold = [{"cell": [0, 1], "passage": None}]
    records = [
        {"id": f"q{n}", "question": QUESTION, "answer": "Wilbur", "table": table, "gold": gold}
        for n, table in enumerate(["t1", "t1", "gone"])
    ]
    source, out = tmp_path / "train.jsonl", tmp_path / "alone.jsonl.gz"
    source.write_text("".join(json.dumps(record) + "\n" for record in records))
    command = ["standalone", str(source), str(store.directory), "--out", str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert result.output == f"2 questions in {out}\n"
    before, after = read_questions(source), read_questions(out)
    assert [question.question_id for question in after] == ["q0-alone", "q1-alone"]
    assert [question.gold_edges for question in after] == [question.gold_edges for question in before[:2]]
    assert any("Baseball" in question.text for question in after)
    first = out.read_bytes()
    assert CliRunner().invoke(app, command).exit_code == 0
    assert out.read_bytes() == first
    assert CliRunner().invoke(app, [*command, "--seed", "14"]).exit_code == 0
    assert gzip.decompress(out.read_bytes()) != gzip.decompress(first)


def test_a_file_that_is_no_question_file_is_refused(store: CorpusStore, tmp_path: Path) -> None:
    source = tmp_path / "train.jsonl"
    source.write_text('{"id": "q", "answer": "x"}\n')
    result = CliRunner().invoke(app, ["standalone", str(source), str(store.directory), "--out", str(tmp_path / "o")])
    assert result.exit_code != 0
    assert "field 'question' is missing" in str(result.exception)
