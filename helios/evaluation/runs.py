"""TREC run and qrels files with edges as documents.

An edge's document id is `TABLE#ROW|PASSAGE`, each id percent-encoded so that it holds no white space, no
`#`, `|` or `*`; `*` stands for a side that is not there. Encoding and decoding are exact inverses.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np

from helios.errors import EvaluationError
from helios.evaluation.edges import EdgeId
from helios.evaluation.measures import collected_gold, distinct_gold
from helios.evaluation.questions import Question
from helios.index.durable import write_atomically
from helios.types import SegmentId

_READABLE = "/:,()'!+=&;@$"
_NONE = "*"

Ranking = Sequence[tuple[EdgeId, float]]
"""Edges with scores, best first."""


@dataclass(frozen=True, slots=True)
class Run:
    """Ranked lists of one system by question id."""

    name: str
    rankings: Mapping[str, Ranking]


def encode_edge_id(edge_id: EdgeId) -> str:
    """The document id of an edge in run and qrels files."""
    segment_id = edge_id.segment_id
    segment = _NONE if segment_id is None else f"{_quote(segment_id.table_id)}#{segment_id.row}"
    passage = _NONE if edge_id.passage_id is None else _quote(edge_id.passage_id)
    return f"{segment}|{passage}"


def decode_edge_id(document_id: str) -> EdgeId:
    """The edge of a document id; EvaluationError for anything that encode_edge_id cannot have written."""
    segment, bar, passage = document_id.partition("|")
    table, mark, row = segment.partition("#")
    try:
        segment_id = None if segment == _NONE else SegmentId(_unquote(table), int(row))
        edge_id = EdgeId(segment_id, None if passage == _NONE else _unquote(passage))
    except ValueError:
        edge_id = None
    if edge_id is None or not bar or (segment != _NONE and not mark) or encode_edge_id(edge_id) != document_id:
        raise EvaluationError(f"{document_id!r} is not the id of an edge: expected TABLE#ROW|PASSAGE")
    return edge_id


def write_run(path: Path | str, run: Run) -> None:
    """Write `question Q0 edge rank score tag` lines, replacing the file at once.

    Tools sort by score in single precision, so a score that is not below the one before it is written as
    the next smaller one: the order of the list is what counts. Raises EvaluationError for a repeated edge
    or a score that is not a finite number.
    """
    _write_lines(Path(path), _run_lines(run))


def read_run(path: Path | str) -> Run:
    """Read a run file of edges; lists are ordered by rank. EvaluationError names file and line."""
    path = Path(path)
    rows: dict[str, dict[EdgeId, tuple[int, float]]] = {}
    name = ""
    for line, fields in _fields(path, 6):
        question_id, _, document_id, rank, score, name = fields
        ranking = rows.setdefault(_unquote(question_id), {})
        try:
            edge_id = decode_edge_id(document_id)
            entry = (int(rank), float(score))
        except (EvaluationError, ValueError) as error:
            raise EvaluationError(f"{path}:{line}: {error}") from error
        if edge_id in ranking:
            raise EvaluationError(f"{path}:{line}: edge {document_id} appears twice for one question")
        ranking[edge_id] = entry
    rankings = {
        question_id: tuple((edge, score) for edge, (_, score) in sorted(rows_.items(), key=lambda r: r[1][0]))
        for question_id, rows_ in rows.items()
    }
    return Run(_unquote(name), rankings)


def write_qrels(path: Path | str, questions: Iterable[Question], run: Run | None = None) -> None:
    """Write `question 0 edge 1` lines for the distinct gold edges, replacing the file at once.

    A gold segment without a passage is met by any of its edges, which qrels cannot say. With a run, it is
    written as the edge that met it there, so that nDCG from this file and that run is ours exactly.
    """
    _write_lines(Path(path), _qrels_lines(questions, run))


def read_qrels(path: Path | str) -> dict[str, dict[EdgeId, int]]:
    """Relevance by question id and edge; EvaluationError names file and line."""
    path = Path(path)
    qrels: dict[str, dict[EdgeId, int]] = {}
    for line, (question_id, _, document_id, relevance) in _fields(path, 4):
        try:
            qrels.setdefault(_unquote(question_id), {})[decode_edge_id(document_id)] = int(relevance)
        except (EvaluationError, ValueError) as error:
            raise EvaluationError(f"{path}:{line}: {error}") from error
    return qrels


def _run_lines(run: Run) -> Iterator[str]:
    tag = _quote(run.name)
    for question_id, ranking in run.rankings.items():
        if len({edge for edge, _ in ranking}) != len(ranking):
            raise EvaluationError(f"run {run.name}: question {question_id} ranks an edge twice")
        previous = np.float32(math.inf)
        for rank, (edge_id, score) in enumerate(ranking, start=1):
            if not math.isfinite(score):
                raise EvaluationError(f"run {run.name}: question {question_id} has the score {score}")
            previous = min(np.float32(score), np.nextafter(previous, np.float32(-math.inf)))
            yield f"{_quote(question_id)} Q0 {encode_edge_id(edge_id)} {rank} {previous} {tag}"


def _qrels_lines(questions: Iterable[Question], run: Run | None) -> Iterator[str]:
    for question in questions:
        ranked = [edge for edge, _ in run.rankings.get(question.question_id, ())] if run else []
        pairs = zip(ranked, collected_gold(ranked, question.gold_edges), strict=True)
        met = {gold: edge for edge, gold in pairs if gold is not None}
        for gold in distinct_gold(question.gold_edges):
            yield f"{_quote(question.question_id)} 0 {encode_edge_id(met.get(gold, gold))} 1"


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    """A reader of the file sees the old one or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode("ascii"))


def _fields(path: Path, count: int) -> Iterator[tuple[int, list[str]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise EvaluationError(f"{path} does not exist") from None
    for line, row in enumerate(text.split("\n"), start=1):
        if not row.strip():
            continue
        fields = row.split()
        if len(fields) != count:
            raise EvaluationError(f"{path}:{line}: expected {count} fields, found {len(fields)}")
        yield line, fields


def _quote(text: str) -> str:
    return quote(text, safe=_READABLE, errors="surrogatepass")


def _unquote(text: str) -> str:
    return unquote(text, errors="surrogatepass")
