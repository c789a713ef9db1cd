"""Folders of files with questions and answers out of labelled tables."""

import csv
import json

import pytest
import typer
from typer.testing import CliRunner

from helios.reading.tables.sheet import Sheet
from helios.types import Table
from training.column_lessons import place_of
from training.errors import TrainingError
from training.written_folders import answer_of, main

HEADERS = ["Boat", "Built", "Seats", "Berth", "Per hour", "Booked", "Came"]
ROWS = [
    ["Heron", "2008-05-01", "6", "north", "£28", "8", "5"],
    ["Kingcup", "2017-03-12", "4", "north", "£18", "6", "6"],
    ["Otter", "1999-07-30", "3", "south", "£12", "3", "1"],
]
SHEET = Sheet.of(Table("fleet", "", tuple(HEADERS), tuple(map(tuple, ROWS))))
FLEET = {
    "title": "Fleet: hire/2025", "headers": HEADERS, "rows": ROWS,
    "questions": [
        ["who lies at the top end?", "lookup", "Boat", None, None, ["Berth"], [1, 2]],
        ["is the Otter older than the Heron?", "whether", "Built", None, "min", ["Boat"], [3, 1]],
        ["¿hay barcas al oeste?", "whether", None, None, None, ["Berth"], []],
    ],
    "elsewhere": ["who rows the Heron?"],
}  # fmt: skip


def asking(question):
    """A file with one table and one question."""
    return json.dumps({"language": "en", "tables": [FLEET | {"questions": [question]}]})


def run(*arguments):
    app = typer.Typer()
    app.command()(main)
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize(
    ("asked", "items"),
    [
        (["lookup", "Boat", None, None, ["Berth"], [1, 2]], ("Heron", "Kingcup")),
        (["count", None, None, None, ["Berth"], [1, 2]], ("2",)),
        (["distinct", "Berth", None, None, [], None], ("2",)),
        (["sum", "Seats", None, None, [], None], ("13",)),
        (["average", "Per hour", None, None, ["Berth"], [1, 2]], ("23",)),
        (["extreme", "Boat", "Seats", "max 2", [], None], ("Kingcup",)),
        (["extreme", "Boat", "Per hour", "min top 2", [], None], ("Otter", "Kingcup")),
        (["mode", "Berth", None, "max", [], None], ("north",)),
        (["top sum", "Berth", "Seats", "min", [], None], ("south",)),
        (["difference", "Per hour", None, None, ["Boat"], [1, 3]], ("16",)),
        (["difference", "Came", "Booked", None, ["Boat"], [1]], ("3",)),
        (["whether", None, None, None, ["Berth"], []], ("no",)),
        (["whether", "Seats", None, "max", ["Boat"], [1, 2]], ("yes",)),
        (["whether", "Seats", None, "min", ["Boat"], [1, 2]], ("no",)),
        (["whether", "Built", None, "min", ["Boat"], [3, 1]], ("yes",)),
    ],
)
def test_rows_and_columns_give_the_answer(asked, items):
    found = answer_of(["?", *asked], HEADERS, SHEET)
    assert found is not None
    assert found.items == items


def test_what_selects_nothing_or_ties_has_no_answer():
    assert answer_of(["?", "lookup", "Boat", None, None, ["Berth"], []], HEADERS, SHEET) is None
    assert answer_of(["?", "difference", "Boat", None, None, ["Boat"], [1, 2]], HEADERS, SHEET) is None


def test_questions_without_rows_are_refused():
    with pytest.raises(TrainingError, match="the rows are missing"):
        answer_of(["how many?", "count", None, None, None, []], HEADERS, SHEET)


def test_places_in_an_order():
    assert [place_of(way) for way in ("max", "min", "max 2", "min top 3", None)] == [1, 1, 2, -3, 1]


def test_folders_are_written_with_their_questions(tmp_path):
    for number in range(3):
        world = {"world": "a boatyard", "language": "en", "tables": [FLEET | {"title": f"Fleet: hire/{number}"}]}
        path = tmp_path / "hire" / f"{number:02}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(world))
    out = tmp_path / "out"
    done = run(str(tmp_path / "hire"), "--out", str(out), "--together", "2")
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in out.iterdir()) == ["hire-00", "hire-02"]
    assert sorted(path.name for path in (out / "hire-00" / "files").iterdir()) == [
        "Fleet- hire-0.csv", "Fleet- hire-1.csv",
    ]  # fmt: skip
    with (out / "hire-02" / "files" / "Fleet- hire-2.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [HEADERS, *ROWS]
    records = [json.loads(line) for line in (out / "hire-02" / "questions.jsonl").read_text().splitlines()]
    assert [one["answer"] for one in records] == [[["Heron"], ["Kingcup"]], [["yes"]], [["no"]], []]
    assert records[0]["evidence"] == [{"file": "Fleet- hire-2.csv", "contains": []}]
    assert len({one["id"] for one in records}) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "training/column_lessons.py says"),
        ('{"world": "x", "language": "en"}', "lacks 'tables'"),
        (asking(["who?", "lookup", "Boat", None, None, [], [9]]), "row 9 of a table of 3 rows"),
        (asking(["who?", "lookup", "Boat", None, None, []]), "the rows are missing"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, text, said):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "01.json").write_text(text)
    done = run(str(tmp_path / "set"), "--out", str(tmp_path / "out"))
    assert done.exit_code == 1
    assert "01.json" in done.output or "who?" in done.output
    assert said in done.output
    assert "Traceback" not in done.output


def test_a_folder_without_files_is_named(tmp_path):
    done = run(str(tmp_path), "--out", str(tmp_path / "out"))
    assert (done.exit_code, "no .json file" in done.output) == (1, True)
