"""Text2Cypher: question, schema, cypher, data_source, instance_id and database_reference_alias, Parquet or JSON.

Only questions over a named database can be run: the others are left out by the loader and counted as rejects.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from helios.errors import EvaluationError, RecordError
from helios.evaluation.sources.loaders.base import Rejects, questions_of
from helios.evaluation.sources.loaders.records import READERS, Record, any_records, id_field, text_field
from helios.evaluation.sources.match import is_ordered
from helios.evaluation.sources.questions import SourceQuestion
from helios.executors.base import Language

ALIAS_PREFIX = "neo4jlabs_demo_db_"


def load_text2cypher(path: Path, *, rejects: Rejects | None = None) -> Iterator[SourceQuestion]:
    """Questions of a file, or of the test files of a folder; the source is the alias without Neo4j Labs' prefix."""
    for file in _files(path):
        yield from questions_of(file, any_records(file), partial(_question, file.stem), rejects)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(file for file in path.rglob("*") if file.suffix in READERS and "test" in file.name)
    if not found:
        raise EvaluationError(f"{path}: expected files with `test` in their name that end in {', '.join(READERS)}")
    return found


def _question(stem: str, path: Path, line: int, record: Record) -> SourceQuestion:
    alias = record.get("database_reference_alias") or record.get("database_reference")
    if not isinstance(alias, str) or not alias.strip() or alias.strip().lower() == "none":
        raise RecordError(path, line, "no database is named: such a query cannot be run")
    query = text_field(path, line, record, "cypher")
    named = record.get("instance_id") is not None
    origin = record.get("data_source")
    return SourceQuestion(
        question_id=f"text2cypher-{id_field(path, line, record, 'instance_id') if named else f'{stem}-{line}'}",
        text=text_field(path, line, record, "question"),
        paradigm=Language.CYPHER,
        source=alias.strip().removeprefix(ALIAS_PREFIX),
        gold_query=query,
        ordered=is_ordered(query),
        flags=(origin,) if isinstance(origin, str) else (),
        dataset="text2cypher",
    )
