"""Folders of files with questions and answers, from tables whose questions say which rows answer them.

    python -m training.written_folders training/columns/hire --out FOLDERS

writes FOLDERS/hire-01/files/TITLE.csv and FOLDERS/hire-01/questions.jsonl for each file of the set, from which the
reader of tables can learn (`training.table_reader`); `--together 2` puts the tables of two files into each folder. An
answer is what a question's rows and columns give (`training.column_lessons`): it is right as far as these are.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from helios.errors import HeliosError
from helios.reading.tables.matching import Match
from helios.reading.tables.programs import OPS, Op, Program, Result, execute
from helios.reading.tables.reader import answer_text
from helios.reading.tables.sheet import Sheet
from helios.types import Table
from training.column_lessons import labelled_files, place_of, program_of
from training.errors import TrainingError

_NOT_IN_NAMES = re.compile(r'[\\/:*?"<>|]+')


def main(
    labelled: Annotated[Path, typer.Argument(help="Folder of a set, such as training/columns/hire.")],
    out: Annotated[Path, typer.Option(help="Folder to write the folders into.")],
    together: Annotated[int, typer.Option(min=1, help="Files of the set whose tables lie in one folder.")] = 1,
) -> None:
    """Write folders and questions."""
    try:
        folders, asked = write_folders(labelled, out, together=together)
    except HeliosError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"{folders} folders and {asked} questions in {out}")


def write_folders(labelled: Path, out: Path, *, together: int = 1) -> tuple[int, int]:
    """Write the folders of a set; returns how many they are, and their questions. TrainingError for a file that is not
    as `training.column_lessons` says, or whose questions name no rows."""
    paths = labelled_files(labelled)
    groups = [paths[first : first + together] for first in range(0, len(paths), together)]
    asked = 0
    for group in groups:
        folder = out / f"{labelled.name}-{group[0].stem}"
        records = [record for path in group for record in _of_file(path, folder / "files")]
        named = [{"id": f"{folder.name}-{at:03}"} | one for at, one in enumerate(records, 1)]
        lines = [json.dumps(one, ensure_ascii=False) for one in named]
        (folder / "questions.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        asked += len(records)
    return len(groups), asked


def _of_file(path: Path, files: Path) -> list[dict[str, Any]]:
    try:
        return list(_written(json.loads(path.read_text(encoding="utf-8")), files))
    except (LookupError, TypeError, ValueError) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise TrainingError(f"{path}: {what}; training/column_lessons.py says what a file must hold") from error


def _written(world: Mapping[str, Any], files: Path) -> Iterator[dict[str, Any]]:
    """Write the tables of a file, and give their questions."""
    files.mkdir(parents=True, exist_ok=True)
    for table in world["tables"]:
        name = f"{_NOT_IN_NAMES.sub('-', table['title'])}.csv"
        with (files / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([table["headers"], *table["rows"]])
        rows = tuple(tuple(map(str, row)) for row in table["rows"])
        sheet = Sheet.of(Table(name, "", tuple(table["headers"]), rows))
        said = {"language": world["language"], "evidence": [{"file": name, "contains": []}]}
        for asked in table["questions"]:
            if (result := answer_of(asked, table["headers"], sheet)) is not None:
                items = result.items if result.yes is None else (answer_text(asked[0], result),)
                yield {"question": asked[0], "kind": asked[1], "answer": [[item] for item in items]} | said
        for question in table["elsewhere"]:
            yield {"question": question, "kind": "unanswerable", "answer": []} | said | {"evidence": []}


def answer_of(asked: Sequence[Any], headers: Sequence[str], sheet: Sheet) -> Result | None:
    """What the rows and columns of a question give; None where that is nothing, or the question names no rows."""
    if len(asked) < 7:
        raise TrainingError(f"{asked[0]}: the rows are missing; training/column_lessons.py says where they stand")
    op, column, order, down, where = program_of(asked, headers)
    rows = range(1, sheet.size + 1) if asked[6] is None else asked[6]
    if any(not 1 <= row <= sheet.size for row in rows):
        raise TrainingError(f"{asked[0]}: row {max(rows)} of a table of {sheet.size} rows; rows are numbered from 1")
    if not rows and OPS[op] is not Op.WHETHER:
        return None
    compared = OPS[op] is Op.WHETHER and column >= 0
    at = where[0] if where else 0
    halves = [[row] for row in rows] if compared else [list(rows)]
    matches = tuple(_match(half, at, number, sheet.size) for number, half in enumerate(halves))
    descending = str(asked[4]).startswith("min") if compared else bool(down)
    return execute(Program(sheet, OPS[op], matches, column, order, descending, place_of(asked[4])))


def _match(rows: Sequence[int], column: int, number: int, size: int) -> Match:
    mask = np.zeros(size, bool)
    mask[[row - 1 for row in rows]] = True
    return Match(column, mask, frozenset([number]), 1.0, len(rows))


if __name__ == "__main__":
    typer.run(main)
