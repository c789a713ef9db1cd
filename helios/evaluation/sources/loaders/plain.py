"""Questions of one's own over registered sources, as JSON lines.

    {"id": "q1", "question": "…", "paradigm": "sql", "source": "shop", "query": "SELECT …", "answers": [[3]]}
    {"id": "q2", "question": "…", "paradigm": "text", "source": "manuals", "qrels": {"page-7": 1}}

A structured question needs `query` or `answers`, a question over documents `qrels`. `ordered` says whether the rows'
order counts; without it, it does where the query has ORDER BY.
"""

from collections.abc import Iterator
from pathlib import Path

from helios.errors import RecordError
from helios.evaluation.sources.loaders.base import Rejects, questions_of
from helios.evaluation.sources.loaders.records import Record, any_records, id_field, rows_field, text_field
from helios.evaluation.sources.match import is_ordered
from helios.evaluation.sources.questions import SourceQuestion
from helios.executors.base import Language


def load_plain(path: Path, *, rejects: Rejects | None = None) -> Iterator[SourceQuestion]:
    """Questions of a file."""
    return questions_of(path, any_records(path), _question, rejects)


def _question(path: Path, line: int, record: Record) -> SourceQuestion:
    named = text_field(path, line, record, "paradigm")
    if named not in list(Language):
        raise RecordError(path, line, f"field 'paradigm' must be one of {', '.join(Language)}, found {named!r}")
    paradigm = Language(named)
    qrels = record.get("qrels") or {}
    if not isinstance(qrels, dict) or not all(type(score) is int for score in qrels.values()):
        raise RecordError(path, line, "field 'qrels' must map document ids to whole numbers")
    if paradigm is Language.TEXT and not any(score > 0 for score in qrels.values()):
        raise RecordError(path, line, "a question over documents needs 'qrels' with a relevant document")
    query = text_field(path, line, record, "query") if record.get("query") is not None else None
    answers = record.get("answers")
    if paradigm is not Language.TEXT and query is None and answers is None:
        raise RecordError(path, line, "a question over a database or a graph needs 'query' or 'answers'")
    ordered = record.get("ordered", is_ordered(query or ""))
    if not isinstance(ordered, bool):
        raise RecordError(path, line, "field 'ordered' must be true or false")
    return SourceQuestion(
        question_id=id_field(path, line, record, "id"),
        text=text_field(path, line, record, "question"),
        paradigm=paradigm,
        source=text_field(path, line, record, "source"),
        gold_query=query,
        gold_answers=None if answers is None else tuple(map(tuple, rows_field(path, line, record, "answers"))),
        qrels=qrels,
        ordered=ordered,
        dataset=path.name.partition(".")[0],
    )
