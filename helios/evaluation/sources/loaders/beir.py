"""BEIR: corpus.jsonl, queries.jsonl and qrels/<split>.tsv (or qrels.<split>.tsv beside them), each plain or gzipped."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from helios.errors import EvaluationError, RecordError
from helios.evaluation.sources.loaders.base import Rejects, first_existing
from helios.evaluation.sources.loaders.records import id_field, json_lines, separated, text_field
from helios.evaluation.sources.questions import SourceQuestion
from helios.executors.base import Language

QRELS = ("query-id", "corpus-id", "score")


def load_beir(
    path: Path, *, source: str = "", split: str = "test", rejects: Rejects | None = None
) -> Iterator[SourceQuestion]:
    """Queries of a split that have relevant documents; the source is the folder's name where none is given.

    BEIR keeps judgements of 0; a query all of whose judgements are 0 has no nDCG and is left out.
    """
    if not path.is_dir():
        raise EvaluationError(f"{path}: expected a folder with queries.jsonl and qrels/{split}.tsv")
    qrels_file = first_existing(path, f"qrels/{split}.tsv", f"qrels.{split}.tsv")
    qrels = _qrels(qrels_file, rejects)
    queries_file = first_existing(path, "queries.jsonl")
    asked = set()
    for record in json_lines(queries_file):
        try:
            if isinstance(record, RecordError):
                raise record
            line, fields = record
            query_id = id_field(queries_file, line, fields, "_id")
            if query_id in asked:
                raise RecordError(queries_file, line, f"query id {query_id!r} appears twice")
            asked.add(query_id)
            if not any(score > 0 for score in qrels.get(query_id, {}).values()):
                continue
            text = text_field(queries_file, line, fields, "text")
        except RecordError as error:
            if rejects is None:
                raise
            rejects.append(error)
            continue
        name = source or path.name
        yield SourceQuestion(
            question_id=f"{name}-{query_id}", text=text, paradigm=Language.TEXT, source=name,
            qrels=qrels[query_id], dataset=name,
        )  # fmt: skip


def _qrels(path: Path, rejects: Rejects | None) -> dict[str, dict[str, int]]:
    """Relevance by query and document; a header line is known by its words."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for record in separated(path, QRELS):
        try:
            if isinstance(record, RecordError):
                raise record
            line, fields = record
            if tuple(fields.values()) == QRELS:
                continue
            if not fields["score"].lstrip("-").isdecimal():
                raise RecordError(path, line, f"expected a whole number as score, found {fields['score']!r}")
            found[fields["query-id"]][fields["corpus-id"]] = int(fields["score"])
        except RecordError as error:
            if rejects is None:
                raise
            rejects.append(error)
    return dict(found)
