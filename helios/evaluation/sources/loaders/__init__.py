"""Loaders of question sets in the layouts that they are published in."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from helios.errors import EvaluationError, RecordError
from helios.evaluation.sources.loaders.base import Rejects
from helios.evaluation.sources.loaders.beir import load_beir
from helios.evaluation.sources.loaders.graphs import load_text2cypher
from helios.evaluation.sources.loaders.plain import load_plain
from helios.evaluation.sources.loaders.rdf import load_lcquad, load_qald, load_simple_questions, load_spider4sparql
from helios.evaluation.sources.loaders.relational import load_bird, load_spider
from helios.evaluation.sources.loaders.shared import load_shared
from helios.evaluation.sources.options import Layout
from helios.evaluation.sources.questions import SourceQuestion

__all__ = ["LOADERS", "Layout", "load_questions"]


Loader = Callable[..., Iterator[SourceQuestion]]
LOADERS: dict[Layout, Loader] = {
    Layout.PLAIN: load_plain,
    Layout.SHARED: load_shared,
    Layout.SPIDER: load_spider,
    Layout.BIRD: load_bird,
    Layout.SPIDER4SPARQL: load_spider4sparql,
    Layout.SIMPLEQUESTIONS: load_simple_questions,
    Layout.QALD: load_qald,
    Layout.LCQUAD: load_lcquad,
    Layout.TEXT2CYPHER: load_text2cypher,
    Layout.BEIR: load_beir,
}


def load_questions(
    path: Path, layout: Layout = Layout.PLAIN, *, source: str | None = None, rejects: Rejects | None = None
) -> tuple[SourceQuestion, ...]:
    """All questions of a file or folder; `source` replaces the gold source's name in all of them.

    Raises RecordError for a record that cannot be used (collected where there are `rejects`) and for an id that
    appears twice, EvaluationError for a file that is missing or holds no questions.
    """
    questions: dict[str, SourceQuestion] = {}
    for question in LOADERS[layout](path, rejects=rejects):
        if question.question_id in questions:
            raise RecordError(path, None, f"question id {question.question_id!r} appears twice")
        questions[question.question_id] = question if source is None else replace(question, source=source)
    if not questions:
        raise EvaluationError(f"{path} holds no questions in the layout {layout}")
    return tuple(questions.values())


def unknown_sources(questions: Sequence[SourceQuestion], names: Sequence[str]) -> list[str]:
    """Gold sources that are not registered."""
    return sorted({question.source for question in questions} - set(names))
