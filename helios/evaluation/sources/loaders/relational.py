"""Spider and BIRD: questions over SQLite databases, in the folders as they are published.

    spider/  dev.json  train_spider.json  train_others.json  tables.json  database/<db>/<db>.sqlite
    bird/    dev.json  dev_tables.json  dev_databases/<db>/<db>.sqlite          (or train.json, train_databases/)

A question's source is its `db_id`. Neither stores answers: the gold query is run on the gold source.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from helios.evaluation.sources.loaders.base import Rejects, first_existing, questions_of
from helios.evaluation.sources.loaders.records import Record, any_records, id_field, text_field
from helios.evaluation.sources.match import is_ordered
from helios.evaluation.sources.questions import SourceQuestion
from helios.executors.base import Language

SPIDER_FILES = ("dev.json", "test.json", "train_spider.json")
BIRD_FILES = ("dev.json", "mini_dev_sqlite.json", "train.json")


def load_spider(path: Path, *, rejects: Rejects | None = None) -> Iterator[SourceQuestion]:
    """Questions of a Spider folder (its dev.json) or of one of its files."""
    file = first_existing(path, *SPIDER_FILES) if path.is_dir() else path
    stem = file.name.partition(".")[0]
    return questions_of(file, any_records(file), partial(_question, "spider", stem, "query"), rejects)


def load_bird(path: Path, *, rejects: Rejects | None = None) -> Iterator[SourceQuestion]:
    """Questions of a BIRD folder (its dev.json) or of one of its files; the evidence is the question's hint."""
    file = first_existing(path, *BIRD_FILES) if path.is_dir() else path
    stem = file.name.partition(".")[0]
    return questions_of(file, any_records(file), partial(_question, "bird", stem, "SQL"), rejects)


def databases(folder: Path) -> dict[str, Path]:
    """The SQLite files of a Spider or BIRD folder by database."""
    found: dict[str, Path] = {}
    for name in ("database", "dev_databases", "train_databases", "test_database"):
        for path in sorted((folder / name).glob("*/*.sqlite")):
            if path.stem == path.parent.name:
                found.setdefault(path.stem, path)
    return found


def _question(dataset: str, stem: str, query_field: str, path: Path, line: int, record: Record) -> SourceQuestion:
    query = text_field(path, line, record, query_field)
    number = id_field(path, line, record, "question_id") if record.get("question_id") is not None else f"line{line}"
    hint = record.get("evidence")
    difficulty = record.get("difficulty")
    return SourceQuestion(
        question_id=f"{dataset}-{stem}-{number}",
        text=text_field(path, line, record, "question"),
        paradigm=Language.SQL,
        source=text_field(path, line, record, "db_id"),
        gold_query=query,
        ordered=is_ordered(query),
        flags=(difficulty,) if isinstance(difficulty, str) else (),
        dataset=dataset,
        hint=hint if isinstance(hint, str) else "",
    )
