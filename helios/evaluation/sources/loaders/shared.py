"""The folder of public data that HELIOS is measured on: SQL, SPARQL and Cypher questions with stored answers, and text.

    spider/dev.jsonl.gz               wikidata_sq/dev.jsonl.gz   ir/scifact/ (BEIR)
    spider_more/dev.jsonl.gz          graphs/dev.jsonl.gz        sportreason/dev.jsonl.gz
    spider4sparql/dev.jsonl.gz        spider4sparql_more/dev.jsonl.gz                    ottqa9k/dev.jsonl.gz

The databases of Spider and the graphs of Spider4SPARQL hold the same rows, and so do their questions: each is the
other's twin. The failures on the databases of the folders `…_more` are read by nobody: they stand for data that no
rule was written for.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from helios.errors import RecordError
from helios.evaluation.sources.loaders.base import (
    WIKIDATA_PREFIXES,
    Rejects,
    first_existing,
    questions_of,
    with_prefixes,
)
from helios.evaluation.sources.loaders.beir import load_beir
from helios.evaluation.sources.loaders.rdf import SPIDER4SPARQL_PREFIXES
from helios.evaluation.sources.loaders.records import Record, id_field, json_lines, rows_field, text_field
from helios.evaluation.sources.match import is_ordered
from helios.evaluation.sources.questions import TIES, UNORDERED_LISTS, UNTYPED, Row, SourceQuestion
from helios.executors.base import Language
from helios.executors.values import GraphNode, Iri, Value

WIKIDATA, SCIFACT, SPORTREASON, OTTQA = "wikidata", "scifact", "sportreason", "ottqa"
ENTITY = WIKIDATA_PREFIXES["wd"]
LIMIT = re.compile(r"\blimit\b", re.IGNORECASE)
COLLECT = re.compile(r"\bcollect\s*\(|\[\s*\(", re.IGNORECASE)
"""Cypher that makes a list in no particular order: collect() and pattern comprehensions."""


def graph_source(database: str) -> str:
    """The name of the RDF graph with a Spider database's rows."""
    return f"{database}_rdf"


def load_shared(path: Path, *, rejects: Rejects | None = None) -> Iterator[SourceQuestion]:
    """Questions of every part that the folder has, part after part."""
    for part, load in PARTS.items():
        if (path / part).is_dir():
            yield from load(path / part, rejects)


def table_document(record: Record) -> tuple[str, str, str]:
    """Id, title and text of a table of OTT-QA: its section, its introduction, its header and its rows."""
    lines = [" ; ".join(map(str, row)) for row in [record.get("header") or [], *(record.get("rows") or [])]]
    about = [str(record.get(name) or "") for name in ("section_title", "section_text", "intro")]
    return str(record["id"]), str(record.get("title") or ""), "\n".join(filter(None, [*about, *lines]))


def _spider(folder: Path, rejects: Rejects | None) -> Iterator[SourceQuestion]:
    twins = (folder.parent / folder.name.replace("spider", "spider4sparql")).is_dir()

    def read(path: Path, line: int, record: Record) -> SourceQuestion:
        query, database = text_field(path, line, record, "query"), text_field(path, line, record, "db_id")
        stored = rows_field(path, line, record, "answers")
        return SourceQuestion(
            question_id=text_field(path, line, record, "id"), text=text_field(path, line, record, "question"),
            paradigm=Language.SQL, source=database, gold_query=query, gold_answers=_rows(stored),
            gold_count=_count(record, stored), ordered=is_ordered(query), dataset=folder.name,
            twins=(graph_source(database),) if twins else (),
        )  # fmt: skip

    return _dev(folder, read, rejects)


def _spider4sparql(folder: Path, rejects: Rejects | None) -> Iterator[SourceQuestion]:
    twins = (folder.parent / folder.name.replace("spider4sparql", "spider")).is_dir()

    def read(path: Path, line: int, record: Record) -> SourceQuestion:
        query, database = text_field(path, line, record, "sparql"), text_field(path, line, record, "db_id")
        return SourceQuestion(
            question_id=text_field(path, line, record, "id"), text=text_field(path, line, record, "question"),
            paradigm=Language.SPARQL, source=graph_source(database),
            gold_query=with_prefixes(query, SPIDER4SPARQL_PREFIXES),
            gold_answers=_rows(rows_field(path, line, record, "sparql_answers")), ordered=is_ordered(query),
            flags=(UNTYPED,), dataset=folder.name, twins=(database,) if twins else (),
        )  # fmt: skip

    return _dev(folder, read, rejects)


def _wikidata(folder: Path, rejects: Rejects | None) -> Iterator[SourceQuestion]:
    def read(path: Path, line: int, record: Record) -> SourceQuestion:
        answers = record.get("answers")
        if not isinstance(answers, list) or not all(isinstance(entity, dict) and "id" in entity for entity in answers):
            raise RecordError(path, line, "field 'answers' must be a list of entities with an id")
        query = text_field(path, line, record, "sparql")
        return SourceQuestion(
            question_id=text_field(path, line, record, "id"), text=text_field(path, line, record, "question"),
            paradigm=Language.SPARQL, source=WIKIDATA, gold_query=with_prefixes(query, WIKIDATA_PREFIXES),
            gold_answers=tuple((Iri(f"{ENTITY}{entity['id']}"),) for entity in answers),
            ordered=is_ordered(query), dataset="wikidata_sq",
        )  # fmt: skip

    return _dev(folder, read, rejects)


def _graphs(folder: Path, rejects: Rejects | None) -> Iterator[SourceQuestion]:
    def read(path: Path, line: int, record: Record) -> SourceQuestion:
        query, ordered = text_field(path, line, record, "cypher"), is_ordered(str(record.get("cypher")))
        flags = [TIES] * (ordered or bool(LIMIT.search(query)))
        stored = rows_field(path, line, record, "answers")
        flags += [UNORDERED_LISTS] * bool(COLLECT.search(query))
        return SourceQuestion(
            question_id=text_field(path, line, record, "id"), text=text_field(path, line, record, "question"),
            paradigm=Language.CYPHER, source=text_field(path, line, record, "database"), gold_query=query,
            gold_answers=_rows(stored), ordered=ordered,
            gold_count=_count(record, stored), flags=tuple(flags),
            dataset="graphs",
        )  # fmt: skip

    return _dev(folder, read, rejects)


def _sportreason(folder: Path, rejects: Rejects | None) -> Iterator[SourceQuestion]:
    def read(path: Path, line: int, record: Record) -> SourceQuestion:
        gold = record.get("gold_evidence_ids")
        if not isinstance(gold, list) or not gold:
            raise RecordError(path, line, "field 'gold_evidence_ids' must be a list of documents")
        return _text_question(path, line, record, SPORTREASON, {str(name): 1 for name in gold})

    return _dev(folder, read, rejects)


def _ottqa(folder: Path, rejects: Rejects | None) -> Iterator[SourceQuestion]:
    """OTT-QA as the retrieval of tables: the question's table is its one relevant document."""

    def read(path: Path, line: int, record: Record) -> SourceQuestion:
        return _text_question(path, line, record, OTTQA, {text_field(path, line, record, "table"): 1})

    return _dev(folder, read, rejects)


def _text_question(path: Path, line: int, record: Record, source: str, qrels: dict[str, int]) -> SourceQuestion:
    return SourceQuestion(
        question_id=f"{source}-{id_field(path, line, record, 'id')}", text=text_field(path, line, record, "question"),
        paradigm=Language.TEXT, source=source, qrels=qrels, dataset=source,
    )  # fmt: skip


def _scifact(folder: Path, rejects: Rejects | None) -> Iterator[SourceQuestion]:
    return load_beir(folder, source=SCIFACT, rejects=rejects)


def _dev(
    folder: Path, read: Callable[[Path, int, Record], SourceQuestion], rejects: Rejects | None
) -> Iterator[SourceQuestion]:
    path = first_existing(folder, "dev.jsonl")
    return questions_of(path, json_lines(path), read, rejects)


def _count(record: Record, stored: list[list[Any]]) -> int | None:
    """How many rows there are, where fewer are stored."""
    count = record.get("row_count")
    return count if isinstance(count, int) and count > len(stored) else None


def _rows(rows: list[list[Any]]) -> tuple[Row, ...]:
    return tuple(tuple(map(_value, row)) for row in rows)


def _value(value: Any) -> Value:
    """A stored value: `{"_node": id, "_label": label}` is a node, lists hold values again."""
    if isinstance(value, dict) and "_node" in value:
        return GraphNode(str(value["_node"]), (str(value.get("_label", "")),))
    if isinstance(value, list):
        return [_value(item) for item in value]
    kept: Value = value
    return kept


PARTS: dict[str, Callable[[Path, Rejects | None], Iterator[SourceQuestion]]] = {
    "spider": _spider, "spider4sparql": _spider4sparql, "spider_more": _spider,
    "spider4sparql_more": _spider4sparql, "wikidata_sq": _wikidata, "graphs": _graphs,
    "ir/scifact": _scifact, "sportreason": _sportreason, "ottqa9k": _ottqa,
}  # fmt: skip
"""What is read, by folder; the others hold questions without their stores."""
