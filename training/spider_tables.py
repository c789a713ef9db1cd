"""Spider's databases as CSV files with questions, as `helios eval folders` and the reader of tables take them.

    python -m training.spider_tables SPIDER --out FOLDER

writes FOLDER/files/DATABASE/TABLE.csv and FOLDER/questions.jsonl. Questions whose gold query gives one column and at
most 30 rows are kept. Their kind is `one table` where the query has no join, set, group or nesting, else `several`.
"""

import csv
import gzip
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from helios.reading.tables.programs import average_text

MOST_ROWS = 30
_SEVERAL = re.compile(r"\b(join|intersect|except|union|group by)\b", re.IGNORECASE)


def main(
    spider: Annotated[Path, typer.Argument(help="Folder with dev.jsonl.gz and database/.")],
    out: Annotated[Path, typer.Option(help="Folder to write.")],
) -> None:
    """Write tables and questions."""
    tables = sum(write_tables(path, out / "files" / path.parent.name) for path in spider.glob("database/*/*.sqlite"))
    records = questions(spider / "dev.jsonl.gz")
    (out / "questions.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    typer.echo(f"{tables} tables and {len(records)} questions in {out}")


def write_tables(database: Path, folder: Path) -> int:
    """Write every table of a SQLite file as CSV; returns how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        names = [name for name in names if not name.startswith("sqlite_")]
        for name in names:
            rows = connection.execute(f'SELECT * FROM "{name}"')
            with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow([column[0] for column in rows.description])
                writer.writerows([["" if value is None else value for value in row] for row in rows])
    return len(names)


def questions(path: Path) -> list[dict[str, object]]:
    """Questions that one column answers, in the layout of the folders' bench."""
    found: list[dict[str, object]] = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            rows = record["answers"]
            if not rows or len(rows[0]) != 1 or len(rows) > MOST_ROWS:
                continue
            query = record["query"]
            simple = not _SEVERAL.search(query) and len(re.findall(r"\bfrom\b", query, re.IGNORECASE)) == 1
            found.append({
                "id": record["id"], "question": record["question"], "kind": "one table" if simple else "several",
                "answer": [_forms(row[0]) for row in rows if row[0] is not None], "evidence": [],
            })  # fmt: skip
    return found


def _forms(value: object) -> list[str]:
    """A value as it is stored, and a quotient of many places as a person says it."""
    forms = [str(value)]
    if isinstance(value, float) and value != round(value, 2):
        forms.append(average_text(value))
    return forms


if __name__ == "__main__":
    typer.run(main)
