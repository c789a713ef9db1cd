"""Lessons that nobody wrote: what is asked stands in the texts that answer, and in none of the others."""

import json
import random
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from helios.corpus import CorpusWriter
from helios.types import Hyperlink, Passage, Table
from training.made_lessons import cropped, fact_question, made_lessons, names_of, occurrences
from training.passage_lessons import app

BRIDGE = Passage(
    "bridge",
    "Ostby Bridge",
    "Ostby Bridge is a road bridge over the Lune in Ostby. It was opened in 1907 by Mary Ostby.",
)
MAYOR = Passage(
    "mayor", "Mary Ostby", "Mary Ostby was the mayor of the town. She opened Ostby Bridge in 1907 on a cold day."
)
OTHERS = [
    Passage(
        name, f"Place {name}", f"Place {name} is a small village in the north of the county of Lune. It has a church."
    )
    for name in ("one", "two", "three")
]
PASSAGES = {one.passage_id: one for one in (BRIDGE, MAYOR, *OTHERS)}
TABLE = Table(
    "bridges", "Bridges of Ostby", ("Name", "Opened", "By"),
    (("Ostby Bridge", "1907", "Mary Ostby"), ("Place one", "", ""), ("Place two", "", ""), ("Place three", "", "")),
    hyperlinks=(
        Hyperlink(0, 0, "bridge"), Hyperlink(0, 2, "mayor"), Hyperlink(1, 0, "one"), Hyperlink(2, 0, "two"),
        Hyperlink(3, 0, "three"),
    ),
)  # fmt: skip


def lessons(seed: int):
    return list(made_lessons([TABLE], PASSAGES, names_of(PASSAGES), random.Random(seed)))


@pytest.mark.parametrize("seed", range(12))
def test_right_texts_say_what_the_others_do_not(seed):
    found = lessons(seed)
    assert found
    for lesson in found:
        assert lesson["question"].strip()
        assert lesson["wrong"]
        said = {text[start:end] for text, spans in lesson["right"] for start, end in spans}
        assert said
        assert not any(occurrences(text, words) for text in lesson["wrong"] for words in said)


def test_all_three_kinds_are_made():
    """A crossing and a fact ask of the bridge's own text what the mayor's text and the row say."""
    asked = [lesson for seed in range(20) for lesson in lessons(seed)]
    of_bridge = [one["question"].lower() for one in asked if one["right"] and "road bridge" in one["right"][0][0]]
    assert any("cold" in question for question in of_bridge)
    assert any("opened" in question and "when" in question for question in of_bridge)
    assert any("lune" in question for question in of_bridge)


def test_the_same_seed_makes_the_same_lessons():
    assert lessons(3) == lessons(3)


def test_dates_are_asked_for_with_when():
    asked = {
        fact_question("Ostby Bridge", "Opened", "1907", "Bridges", random.Random(seed)).lower() for seed in range(9)
    }
    assert {question.removesuffix(" ?") for question in asked} == {"when was ostby bridge opened"}


def test_titles_of_two_passages_name_neither():
    again = Passage("again", "Ostby Bridge (song)", "A song.")
    assert "Ostby Bridge" in names_of(PASSAGES)
    assert "Ostby Bridge" not in names_of({**PASSAGES, "again": again})


def test_a_row_stays_beside_a_cropped_text():
    shown, spans = cropped("a b c Bern d | title: row", ((6, 10),), 20, random.Random(1))
    assert (shown, spans) == ("a b c Bern d | title: row", ((6, 10),))


def test_only_train_tables_are_asked_about(tmp_path):
    """The command refuses nothing: it takes the tables that `splits.json` calls train."""
    other = replace(TABLE, table_id="dev", title="Only dev")
    with CorpusWriter(tmp_path / "corpus") as writer:
        for record in (TABLE, other, *PASSAGES.values()):
            writer.add(record)
    splits, out = tmp_path / "splits.json", tmp_path / "made.jsonl"
    splits.write_text(json.dumps({"train": ["bridges"], "dev": ["dev"]}))
    result = CliRunner().invoke(app, ["made", str(tmp_path / "corpus"), "--splits", str(splits), "--out", str(out)])
    assert result.exit_code == 0, result.output
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert found
    assert not any("only dev" in json.dumps(one).lower() for one in found)
