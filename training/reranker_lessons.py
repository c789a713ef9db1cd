"""Lessons for rerankers and encoder: what the engine found for a question, and what of it is right (B.1, B.2).

A candidate of g_e is an edge, one of g_n a node; both are pairs (segment, passage) with -1 for a missing side.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from helios.engine import Engine
from helios.errors import EvaluationError
from helios.evaluation.edges import EdgeId, RankedEdge
from helios.evaluation.linearise import linearise_edge
from helios.evaluation.measures import contains_answer, distinct_gold
from helios.evaluation.questions import Question
from helios.index.durable import write_atomically
from helios.types import Edge
from training.crossfit import rank_edges

Role = Literal["edge", "node"]
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing that the engine found."""

    pair: Pair
    score: float
    """The score of retrieval; of a node, that of its best edge."""
    gold: int
    """Which of the question's distinct gold edges (or gold nodes) it is, -1 for none."""
    has_answer: bool
    """Whether an answer stands in its text: neither right nor wrong where `gold` is -1."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question with what was found for it, best first."""

    question: str
    table: str
    gold_count: int
    """How many distinct gold edges (or gold nodes) there are, those that the corpus lacks included."""
    candidates: tuple[Candidate, ...]
    missed: tuple[Pair, ...]
    """Gold pairs of the corpus that were not found."""
    answers: tuple[str, ...] = ()
    """What counts as an answer; empty in files of earlier versions."""
    synthetic: bool = False
    """Whether templates asked: such questions are learned from and never measured on."""

    @property
    def positives(self) -> tuple[Pair, ...]:
        """Gold pairs, found or not."""
        return tuple(candidate.pair for candidate in self.candidates if candidate.gold >= 0) + self.missed

    @property
    def of_edges(self) -> bool:
        """Whether candidates are edges: those of nodes never have both sides."""
        return any(min(candidate.pair) >= 0 for candidate in self.candidates)

    @property
    def wrong(self) -> tuple[Candidate, ...]:
        """Candidates that are neither gold nor hold an answer, best first."""
        return tuple(c for c in self.candidates if c.gold < 0 and not c.has_answer)

    @property
    def negatives(self) -> tuple[Pair, ...]:
        """Wrong pairs, best first."""
        return tuple(c.pair for c in self.wrong)


def mine(
    engines: Callable[[Question], Engine],
    questions: Iterable[Question],
    role: Role,
    *,
    depth: int = 100,
    advance: Callable[[int], None] = lambda questions: None,
) -> Iterator[Lesson]:
    """Search for every question; one without gold, or with nothing wrong found, teaches nothing and is left out.

    `engines` gives the engine to search a question with (`training.crossfit`).
    """
    for number, question in enumerate(questions, start=1):
        engine = engines(question)
        lesson = _edge_lesson(engine, question, depth)
        if role == "node":
            lesson = node_lesson(engine, lesson)
        if lesson.positives and lesson.negatives:
            yield lesson
        advance(number)


def _edge_lesson(engine: Engine, question: Question, depth: int) -> Lesson:
    gold = distinct_gold(question.gold_edges)
    candidates = []
    for scored in rank_edges(engine, question.text, k=depth).subgraph.edges:
        edge = _with_text(engine, scored.edge)
        meets = [number for number, wanted in enumerate(gold) if edge.edge_id.covers(wanted)]
        has_answer = contains_answer(linearise_edge(edge), question.answers)
        candidates.append(Candidate(_pair(scored.edge), scored.score, meets[0] if meets else -1, has_answer))
    found = {candidate.gold for candidate in candidates}
    missed = [pair for number, wanted in enumerate(gold) if number not in found and (pair := _known(engine, wanted))]
    return Lesson(question.text, question.table_id or "", len(gold), tuple(candidates), tuple(missed), question.answers)


def node_lesson(engine: Engine, edges: Lesson) -> Lesson:
    """The same with the nodes of a lesson's edges: gold are those of the gold edges (B.2)."""
    wanted = dict.fromkeys(node for pair in edges.positives for node in _sides(pair))
    numbers = {node: number for number, node in enumerate(wanted)}
    best: dict[Pair, float] = {}
    for candidate in edges.candidates:
        for node in _sides(candidate.pair):
            best.setdefault(node, candidate.score)
    candidates = tuple(
        Candidate(node, score, numbers.get(node, -1), _node_has_answer(engine, node, edges.answers))
        for node, score in best.items()
    )
    missed = tuple(node for node in wanted if node not in best)
    return replace(edges, gold_count=len(wanted), candidates=candidates, missed=missed)


def _sides(pair: Pair) -> list[Pair]:
    segment, passage = pair
    return ([(segment, -1)] if segment >= 0 else []) + ([(-1, passage)] if passage >= 0 else [])


def _node_has_answer(engine: Engine, node: Pair, answers: Sequence[str]) -> bool:
    return contains_answer(linearise_edge(_with_text(engine, as_edge(node))), answers)


def _with_text(engine: Engine, edge: Edge) -> RankedEdge:
    corpus = engine.corpus
    segment = None if edge.segment is None else corpus.segment(edge.segment)
    passage = None if edge.passage is None else corpus.passages[edge.passage]
    return RankedEdge(segment, passage, 0.0)


def _known(engine: Engine, gold: EdgeId) -> Pair | None:
    """A gold edge by its numbers; None if the corpus lacks one of its nodes."""
    segment, passage = -1, -1
    if gold.segment_id is not None:
        if engine.corpus.tables.find(gold.segment_id.table_id) is None:
            return None
        segment = engine.corpus.segment_number(gold.segment_id)
    if gold.passage_id is not None:
        number = engine.corpus.passages.find(gold.passage_id)
        if number is None:
            return None
        passage = number
    return segment, passage


def _pair(edge: Edge) -> Pair:
    return (-1 if edge.segment is None else edge.segment, -1 if edge.passage is None else edge.passage)


def as_edge(pair: Pair) -> Edge:
    """A pair as the rest of the code writes it."""
    return Edge(None if pair[0] < 0 else pair[0], None if pair[1] < 0 else pair[1])


def save_lessons(lessons: Sequence[Lesson], path: Path) -> None:
    """Write lessons as Parquet, a row a question; `datasets` reads it."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([asdict(lesson) for lesson in lessons], schema=SCHEMA), sink)
    write_atomically(path, bytes(sink.getvalue()))


def load_lessons(path: Path) -> list[Lesson]:
    """Read what `save_lessons` wrote; EvaluationError for anything else."""
    try:
        rows = pq.read_table(path, schema=SCHEMA).to_pylist()
    except (OSError, pa.ArrowInvalid) as error:
        raise EvaluationError(f"{path}: no lessons of a reranker ({error})") from error
    return [
        Lesson(
            row["question"],
            row["table"],
            row["gold_count"],
            tuple(Candidate(tuple(c["pair"]), c["score"], c["gold"], c["has_answer"]) for c in row["candidates"]),
            tuple((segment, passage) for segment, passage in row["missed"]),
            tuple(row["answers"] or ()),
            bool(row["synthetic"]),
        )
        for row in rows
    ]


_PAIR = pa.list_(pa.int64())
SCHEMA = pa.schema(
    {
        "question": pa.string(),
        "table": pa.string(),
        "gold_count": pa.int64(),
        "candidates": pa.list_(
            pa.struct({"pair": _PAIR, "score": pa.float64(), "gold": pa.int64(), "has_answer": pa.bool_()})
        ),
        "missed": pa.list_(_PAIR),
        "answers": pa.list_(pa.string()),
        "synthetic": pa.bool_(),
    }
)
