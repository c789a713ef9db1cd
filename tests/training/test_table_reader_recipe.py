"""The recipe of the reader of tables, from an index to weights that answer."""

import json
import random

import pytest
import torch

from helios.engine import Engine
from helios.models.base import find_base_model
from helios.models.card import read_card
from helios.reading.passages import FILE as PASSAGES_FILE
from helios.reading.passages import WEIGHTS as PASSAGES
from helios.reading.tables.columns import FILE, ColumnReader, TableText
from helios.reading.tables.columns import ROLE as COLUMNS_ROLE
from helios.reading.tables.reader import ROLE, WEIGHTS, Sheets, TableReader
from helios.reading.tables.sheet import Sheet
from helios.types import Table
from training.errors import TrainingError
from training.table_columns import LESSONS, ColumnRecipe, TableColumnsSettings, train_table_columns
from training.table_questions import made_questions
from training.table_reader import TableReaderSettings, same_items, train_table_reader

TABLE = Table(
    "huts", "Huts", ("Hut", "Valley", "Beds", "Opened"),
    tuple((f"{name} Hut", ("Ahr", "Inn", "Ahr", "Ziller")[n % 4], str(20 + 7 * n), str(1890 + 5 * n))
          for n, name in enumerate(("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Gorse", "Hazel"))),
)  # fmt: skip


def test_made_questions_are_answered_by_the_table():
    made = list(made_questions(Sheet.of(TABLE), random.Random(1), count=60))
    assert len({one.kind for one in made}) >= 9
    cells = {cell for row in TABLE.rows for cell in row}
    for one in made:
        if one.kind in ("lookup", "reverse", "several", "extreme"):
            assert set(one.items) <= cells
        if one.kind == "absent":
            assert one.items == ()
    again = list(made_questions(Sheet.of(TABLE), random.Random(1), count=60))
    assert made == again


def test_answers_are_compared_as_people_do():
    assert same_items(("1,250",), (("1250.0",),))
    assert same_items(("Ann", "Bo"), (("bo",), ("ann",)))
    assert same_items(("12 kg",), (("12 kilograms", "12"),))
    assert same_items(("12 days",), (("12",),))
    assert not same_items(("12 days",), (("13",),))
    assert not same_items(("Ann",), (("Ann",), ("Bo",)))
    assert not same_items((), ())


@pytest.mark.slow
def test_training_writes_what_reads(sample_index, tmp_path):
    questions = tmp_path / "questions.jsonl"
    asked = [
        {"question": "How long is the Rhine?", "answer": "1,230"},
        {"question": "mouth of the Rhine", "answer": [["North Sea"]]},
    ]
    questions.write_text("".join(json.dumps(one) + "\n" for one in asked))
    settings = TableReaderSettings(indexes=(sample_index,), questions=(questions,), made=40, trees=20)
    scores = train_table_reader(settings, tmp_path / "out")
    assert scores["questions"] == 42
    assert {name.partition(":")[0] for name in scores} == {"questions", "made", "index"}
    with Engine.open(sample_index) as engine:
        reader = TableReader.load(Sheets(engine.corpus, engine.encoder), tmp_path / "out")
        question = "How long is the Rhine?"
        answers = reader.read(question, engine.encoder.encode_question(question), engine.search(question))
    assert answers
    assert all(0 <= answer.confidence <= 1 for answer in answers)
    assert read_card(tmp_path / "out", ROLE).needs["encoder"]
    assert train_table_reader(settings, tmp_path / "out") == scores  # from what was mined


def test_one_source_is_too_few(sample_index, tmp_path):
    with pytest.raises(TrainingError, match="one source only"):
        train_table_reader(TableReaderSettings(indexes=(sample_index,), made=20, trees=5), tmp_path / "out")
    with pytest.raises(TrainingError, match="indexes"):
        train_table_reader(TableReaderSettings(), tmp_path / "other")


def test_columns_are_learned_and_read(sample_index, tmp_path):
    questions = tmp_path / "questions.jsonl"
    asked = [
        {"question": "How long is the Rhine?", "answer": "1,230", "column": "Length (km, about)"},
        {"question": "mouth of the Rhine", "answer": [["North Sea"]]},
        {"question": "Who is the king of the Rhine?", "answer": []},
        {"question": "where does the Elbe end?", "answer": [["North Sea"]], "evidence": [{"file": "letters.docx"}]},
    ]
    questions.write_text("".join(json.dumps(one) + "\n" for one in asked))
    settings = TableColumnsSettings(
        indexes=(sample_index,), questions=(questions,), made=6, rank=2, train={"epochs": 2, "learning_rate": 1e-3}
    )
    train_table_columns(settings, tmp_path / "columns")
    assert read_card(tmp_path / "columns", COLUMNS_ROLE).role == COLUMNS_ROLE
    lessons = [json.loads(line) for line in (tmp_path / "columns" / LESSONS).read_text().splitlines()]
    assert {bool(lesson["programs"]) for lesson in lessons} == {True, False}
    by_chance = [one["programs"] for one in lessons if one["question"] == "where does the Elbe end?"]
    assert by_chance == [[]]  # the answer stands in a table, but the question is about another file
    rhine = next(one for one in lessons if one["question"] == "How long is the Rhine?" and one["programs"])
    named = {rhine["table"]["headers"][program[1]] for program in rhine["programs"] if program[1] >= 0}
    assert named == {"Length (km, about)"}
    table = TableText("Rivers", ("River", "Length"), ("Rhine", "1,230"), frozenset([0]))
    reader = ColumnReader(find_base_model(), tmp_path / "columns" / FILE)
    (reading,) = reader.read("How long is the Rhine?", [table])
    assert len(reading.asked) == 2


@pytest.mark.slow
def test_columns_go_on_from_their_own_heads_and_from_the_adapter_of_another_reader(tmp_path):
    settings = TableColumnsSettings(rank=32)
    own = ColumnRecipe([], settings.model_copy(update={"start": WEIGHTS / FILE}))
    other = ColumnRecipe([], settings.model_copy(update={"start": PASSAGES / PASSAGES_FILE}))
    fresh = ColumnRecipe([], settings)
    own.save(tmp_path / FILE)
    table = TableText("Rivers", ("River", "Length"), ("Rhine", "1,230"), frozenset([0]))
    base = find_base_model()
    again, packaged = (
        ColumnReader(base, path).read("How long is the Rhine?", [table])[0]
        for path in (tmp_path / FILE, WEIGHTS / FILE)
    )
    assert again.table == pytest.approx(packaged.table, abs=1e-3)
    adapters = [[p for p in recipe.model.bert.parameters() if p.requires_grad] for recipe in (other, fresh)]
    assert not all(torch.equal(one, two) for one, two in zip(*adapters, strict=True))
    assert torch.equal(other.model.heads["column"].weight, fresh.model.heads["column"].weight)
