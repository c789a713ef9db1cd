"""Tables whose questions say which columns they mean become lessons of the reader of columns."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helios.models.card import read_card
from helios.reading.tables.programs import OPS, Op
from training.column_lessons import ColumnLesson, labelled_files, labelled_lessons, program_of
from training.errors import TrainingError

COLUMNS = Path(__file__).parents[2] / "training" / "columns"
VISITS = {
    "title": "Tuning visits", "headers": ["Place", "Booked for", "Went", "Fee"],
    "rows": [["Corfe", "3 Feb", "3 Feb", "£185"], ["Bere", "18 Mar", "19 Mar", "£150"]],
    "questions": [
        ["so which day did we turn up at Corfe?", "lookup", "Went", None, None, ["Place"]],
        ["where did we earn most?", "extreme", "Place", "Fee", "max", []],
        ["how many days late was Bere?", "difference", "Went", "Booked for", "max", ["Place"]],
        ["did Corfe pay more than Bere?", "whether", "Fee", None, "max", ["Place"], [1, 2]],
        ["have we been to Wick?", "whether", None, None, None, ["Place"], []],
        ["how often were we at Bere?", "count", None, None, None, ["Place"]],
    ],
    "elsewhere": ["who let us in at Corfe?"],
}  # fmt: skip
KEYS = {
    "title": "Keys", "headers": ["Church", "Holder"], "rows": [["Corfe", "Mrs Penfold"], ["Bere", "the vicar"]],
    "questions": [["who lets us in at Corfe?", "lookup", "Holder", None, None, ["Church"]]], "elsewhere": [],
}  # fmt: skip


def write(folder, *tables):
    folder.mkdir()
    (folder / "01.json").write_text(json.dumps({"world": "an organ builder", "language": "en", "tables": tables}))
    return folder


def test_labels_become_programs(tmp_path):
    lessons = list(labelled_lessons(write(tmp_path / "a", VISITS), seed=1))
    op = OPS.index
    assert [one.programs for one in lessons] == [
        ((op(Op.LOOKUP), 2, -1, 0, (0,)),),
        ((op(Op.EXTREME), 0, 3, 1, ()),),
        ((op(Op.DIFFERENCE), 1, 2, 0, (0,)),),
        ((op(Op.WHETHER), 3, -1, 0, (0,)),),
        ((op(Op.WHETHER), -1, -1, 0, (0,)),),
        ((op(Op.COUNT), -1, -1, 0, (0,)),),
        (),
    ]
    table = lessons[0].table
    assert (table.headers, table.matched) == (("Place", "Booked for", "Went", "Fee"), frozenset({0}))
    assert table.values[0].startswith("Corfe")
    assert ColumnLesson.parse(json.loads(json.dumps(lessons[0].record()))) == lessons[0]


def test_other_tables_of_the_file_do_not_answer(tmp_path):
    folder = write(tmp_path / "a", VISITS, KEYS)
    lessons = [list(labelled_lessons(folder, seed=seed)) for seed in (1, 1, 2)]
    assert lessons[0] == lessons[1] != lessons[2]
    asked_of_keys = [one for one in lessons[0] if one.table.headers == ("Church", "Holder") and not one.programs]
    assert asked_of_keys
    assert "who lets us in at Corfe?" not in {one.question for one in asked_of_keys}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"elsewhere": None}, "01.json"),
        ({"rows": [["Corfe"]]}, "01.json"),
        ({"questions": [["which?", "lookup", "Colour", None, None, []]]}, "lacks 'Colour'"),
        ({"questions": [["which?", "guess", "Place", None, None, []]]}, "guess"),
        ({"questions": [["which?", "lookup"]]}, "01.json"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, change, said):
    folder = write(tmp_path / "a", VISITS | change)
    with pytest.raises(TrainingError, match=said):
        list(labelled_lessons(folder, seed=1))


def test_a_folder_without_files_is_named(tmp_path):
    with pytest.raises(TrainingError, match=r"no \.json file"):
        list(labelled_lessons(tmp_path / "none", seed=1))


def test_the_labels_that_come_with_the_recipes_are_programs():
    tables = [table for path in labelled_files(COLUMNS) for table in json.loads(path.read_text("utf-8"))["tables"]]
    programs = [program_of(asked, table["headers"]) for table in tables for asked in table["questions"]]
    said = (COLUMNS / "README.md").read_text("utf-8")
    assert f"{len(tables):,} tables" in said and f"{len(programs):,} questions" in said
    assert {op for op, *_ in programs} == set(range(len(OPS)))


@pytest.mark.slow  # the values that each question names are looked up
def test_the_sets_that_come_with_the_recipes_can_be_learned_from(tmp_path):
    for path in COLUMNS.glob("*/01.json"):
        (tmp_path / f"{path.parent.name}.json").write_bytes(path.read_bytes())
    lessons = list(labelled_lessons(tmp_path, seed=13))
    tables = [table for path in labelled_files(tmp_path) for table in json.loads(path.read_text("utf-8"))["tables"]]
    assert sum(bool(one.programs) for one in lessons) == sum(len(table["questions"]) for table in tables)


@pytest.mark.slow
def test_two_processes_write_one_card(tmp_path):
    write(tmp_path / "a", VISITS, KEYS)
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "helios.cli",
        "train", "table-columns", "--out", str(tmp_path / "out"), "indexes=[]", f"labelled={tmp_path / 'a'}",
        "train.epochs=1", "train.accumulate=2", "train.evaluate_first=false", "limit=0", "made=0",
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    card = read_card(tmp_path / "out", "table-columns")
    card.check(tmp_path / "out")
