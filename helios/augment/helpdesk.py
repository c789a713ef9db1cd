"""The help desk of `helios demo augment`: a small database and its articles, of our own making."""

import shutil
import sqlite3
from pathlib import Path

SAMPLE = Path(__file__).parent / "sample"
SOURCE = "helpdesk"
ASKED = ((21, 22), (23, 24))
"""Tickets with the same words, of customers whose answers differ."""
ANSWERS = {21: "k2-off", 22: "l7-off", 23: "d5-red", 24: "r9-red"}
"""The article that answers each."""


def write_helpdesk(folder: Path) -> tuple[Path, Path]:
    """Write database, its registration and the articles; the file of sources and the folder of articles.

    What an earlier demo wrote there is replaced.
    """
    articles = folder / "articles"
    articles.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(SAMPLE / "articles.jsonl", articles / "articles.jsonl")
    database = folder / "helpdesk.sqlite"
    database.unlink(missing_ok=True)
    connection = sqlite3.connect(database)
    try:
        connection.executescript((SAMPLE / "helpdesk.sql").read_text(encoding="utf-8"))
    finally:
        connection.close()
    sources = folder / "helios-sources.yaml"
    sources.write_text(f"sources:\n  {SOURCE}:\n    kind: sqlite\n    path: {database.name}\n", encoding="utf-8")
    return sources, articles


def question_of(sources: Path, ticket: int) -> tuple[str, str]:
    """A ticket's title and the name of who opened it."""
    connection = sqlite3.connect(f"file:{sources.parent / 'helpdesk.sqlite'}?mode=ro", uri=True)
    try:
        found: tuple[str, str] = connection.execute(
            "SELECT t.title, c.name FROM tickets t JOIN customers c ON c.id = t.customer_id WHERE t.id = ?", [ticket]
        ).fetchone()
    finally:
        connection.close()
    return found
