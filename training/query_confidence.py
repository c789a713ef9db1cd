"""How sure a query is that was written without a language model: learned by whole databases and graphs.

A question is asked of its own source, of its source with some names hidden (as if they were not called what the
question calls them), and of another source of the same kind, which cannot answer. Every query that runs is a lesson:
what could be seen of it, and whether its rows are the gold rows. The rules of
the generators were written while failures on some databases were read, so what is right there says less than
elsewhere: hidden names and other sources make up for it.
"""

import hashlib
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from helios.config import Section
from helios.errors import SourceError
from helios.evaluation.sources.acceptance import NodeKeys, accepted
from helios.evaluation.sources.agreement import Agreement, agreement
from helios.evaluation.sources.gold import gold_rows
from helios.evaluation.sources.loaders import load_questions
from helios.evaluation.sources.options import Layout
from helios.evaluation.sources.questions import SourceQuestion
from helios.evaluation.sources.trust import Pair, trust
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.models.card import ModelCard, write_card
from helios.routing.formulation.base import Formulator
from helios.routing.formulation.confidence import ROLE as CARD_ROLE
from helios.routing.formulation.confidence import Chance
from helios.routing.formulation.cypher_generator import CypherGenerator
from helios.routing.formulation.features import GRAPH_FEATURES, TABLE_FEATURES
from helios.routing.formulation.generator import SqlGenerator
from helios.routing.formulation.table_sparql import TableSparqlGenerator
from helios.sources.base import Source, ValueHit
from helios.sources.descriptor import Descriptor, GraphSchema, RelationalSchema
from helios.sources.registry import Registry
from training.errors import TrainingError
from training.log import LogRow
from training.recipes import Role
from training.regression import fit_logistic

Floats = NDArray[np.float64]
OWN, HIDDEN, OTHER = "own", "hidden", "other"
KINDS = {"tables": TABLE_FEATURES, "graphs": GRAPH_FEATURES}


class QueryConfidenceRecipe(Section):
    """Everything that the result depends on; the same seed gives the same numbers."""

    sources: tuple[Path, ...] = ()
    """Files of sources (`python -m helios.evaluation.sources.shared DATA OUT` writes one)."""
    questions: tuple[Path, ...] = ()
    """The folder of questions of each, in the layout of the folder of public data."""
    learned: tuple[str, ...] = ("spider", "spider4sparql", "graphs", "spider_more", "spider4sparql_more")
    """Data sets that are asked; each of their databases is left out in turn to measure the model."""
    unread: tuple[str, ...] = ()
    """Databases whose failures nobody has read: the model does not learn from them and is measured on them."""
    hidden: float = Field(default=0.25, ge=0.0, lt=1.0)
    """Share of the names that a question's own source hides."""
    hidden_weight: float = Field(default=4.0, ge=0.0)
    other_weight: float = Field(default=0.5, ge=0.0)
    second_weight: float = Field(default=0.3, ge=0.0)
    """How often a lesson counts: of hidden names, of another source, of a reading that is not the first."""
    decay: float = Field(default=0.001, gt=0.0)
    graph_hidden_weight: float = Field(default=1.0, ge=0.0)
    graph_decay: float = Field(default=0.003, gt=0.0)
    """The same for graphs: there, hidden names mostly change which property stands for a node."""
    seed: int = 13


@dataclass(frozen=True, slots=True)
class Lesson:
    """A query that was written, and whether it was right."""

    question_id: str
    dataset: str
    database: str
    """The source, without what tells its twins apart."""
    how: str
    """`own`, `hidden` or `other`."""
    features: Mapping[str, float]
    right: bool
    accepted: bool
    """By the rule of a person."""

    @property
    def kind(self) -> str:
        return "tables" if "tables" in self.features else "graphs"


class Hiding:
    """A source some of whose names nobody knows: what it describes lacks them, what it runs does not."""

    def __init__(self, source: Source, share: float, seed: str) -> None:
        self.source, self.name, self.kind, self.language = source, source.name, source.kind, source.language
        found = source.descriptor()
        schema, self.gone = _without(found.schema, share, random.Random(seed))
        self._descriptor = replace(found, schema=schema)

    def descriptor(self) -> Descriptor:
        return self._descriptor

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        return tuple(hit for hit in self.source.find_values(phrases, limit=limit) if hit.place not in self.gone)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        return self.source.execute(query, limits)


def train_query_confidence(
    settings: QueryConfidenceRecipe,
    out: Path,
    *,
    device: Any = None,
    on_log: Callable[[LogRow], None] = lambda row: None,
) -> Mapping[str, float]:
    """Ask, fit, measure on databases left out, and write a folder for `QueryConfidence.load`.

    Nothing here uses `device`. Raises TrainingError for settings without data, and where nothing can be learned.
    """
    if not settings.sources or len(settings.sources) != len(settings.questions):
        raise TrainingError(
            "query-confidence learns from questions with gold answers: set sources and, for each, questions"
        )
    started, lessons = time.monotonic(), list[Lesson]()
    for file, folder in zip(settings.sources, settings.questions, strict=True):
        questions = [q for q in load_questions(folder, Layout.SHARED) if q.dataset in settings.learned]
        questions = [replace(q, dataset=f"{q.dataset} of {folder.name}") for q in questions]
        with Registry.open(file) as registry:
            for number, found in enumerate(mine(questions, {s.name: s for s in registry.sources()}, settings), start=1):
                lessons += found
                if number % 50 == 0:
                    on_log(LogRow(number, 0, time.monotonic() - started, {"lessons": len(lessons)}))
    if missing := set(settings.unread) - {lesson.database for lesson in lessons}:
        raise TrainingError(f"unread: no question is of {', '.join(sorted(missing))}")
    chances, scores = fit(lessons, settings)
    out.mkdir(parents=True, exist_ok=True)
    write_card(out, _card(settings, chances, scores, time.monotonic() - started))
    return scores


def mine(
    questions: Sequence[SourceQuestion], sources: Mapping[str, Source], settings: QueryConfidenceRecipe
) -> Iterator[list[Lesson]]:
    """The lessons of each question in turn."""
    writers: dict[Language, Formulator] = {
        Language.SQL: SqlGenerator(), Language.SPARQL: TableSparqlGenerator(), Language.CYPHER: CypherGenerator(),
    }  # fmt: skip
    keys = {name: NodeKeys(source) for name, source in sources.items() if source.language is Language.CYPHER}
    asked = sorted({question.source for question in questions})
    for question in questions:
        gold, source = gold_rows(question, sources), sources[question.source]
        if gold is None:
            continue
        seed = hashlib.sha256(f"{settings.seed}:{question.question_id}".encode()).hexdigest()
        others = [n for n in asked if sources[n].language is question.paradigm and n != question.source]
        other = sources[random.Random(seed).choice(others)] if others else None
        ways: list[tuple[str, Source]] = [(OWN, source)]
        if question.paradigm is not Language.SPARQL and settings.hidden:
            ways.append((HIDDEN, Hiding(source, settings.hidden, seed)))  # type: ignore[arg-type]
        lessons = []
        for how, asked_source in [*ways, *([(OTHER, other)] if other is not None else [])]:
            writer = type(writers[question.paradigm])() if how == HIDDEN else writers[question.paradigm]
            lessons += _lessons(question, gold, how, asked_source, writer, keys.get(question.source))
        yield lessons


def _lessons(
    question: SourceQuestion, gold: Sequence[Any], how: str, source: Source, writer: Formulator, keys: NodeKeys | None
) -> Iterator[Lesson]:
    try:
        candidates = writer.formulate(question.text, source)
    except SourceError:
        return
    for candidate in sorted(candidates, key=lambda candidate: candidate.features.get("rank", 0.0)):
        right = taken = False
        if how != OTHER:
            try:
                result = source.execute(candidate.query)
            except SourceError:
                continue
            whole = result.truncated is None
            right = whole and agreement(question, result.rows, gold) is Agreement.MATCH
            taken = right or (whole and accepted(question, candidate.query, result.rows, gold, keys))
        yield Lesson(
            question.question_id, question.dataset, question.source.removesuffix("_rdf"), how, candidate.features,
            right, taken,
        )  # fmt: skip


def fit(lessons: Sequence[Lesson], settings: QueryConfidenceRecipe) -> tuple[dict[str, Chance], dict[str, float]]:
    """The models of what is learned from; scores on what nobody has read, and on each database left out in turn."""
    scores: dict[str, float] = {}
    chances = {}
    for kind in KINDS:
        known = [lesson for lesson in lessons if lesson.kind == kind]
        learned = [lesson for lesson in known if lesson.database not in settings.unread]
        if len({lesson.right for lesson in learned}) < 2:
            raise TrainingError(
                f"{kind}: no right and wrong queries to learn from; are the sources those of the questions?"
            )
        chances[kind] = fit_chance(learned, settings)
        scores |= _scores(
            "unread",
            [lesson for lesson in known if lesson.database in settings.unread],
            lambda _, chance=chances[kind]: chance,
        )
        turns = {
            database: fit_chance([lesson for lesson in learned if lesson.database != database], settings)
            for database in dict.fromkeys(lesson.database for lesson in learned)
        }
        scores |= _scores("left out in turn", learned, lambda lesson, turns=turns: turns[lesson.database])
    return chances, scores


def fit_chance(lessons: Sequence[Lesson], settings: QueryConfidenceRecipe) -> Chance:
    """One regression; lessons of hidden names, other sources and later readings count as the settings say."""
    names = KINDS[lessons[0].kind]
    rows = np.array([[lesson.features.get(name, 0.0) for name in names] for lesson in lessons])
    graphs = lessons[0].kind == "graphs"
    wanted = np.array([lesson.accepted if graphs else lesson.right for lesson in lessons], float)
    hidden = settings.graph_hidden_weight if graphs else settings.hidden_weight
    ways = {OWN: 1.0, HIDDEN: hidden, OTHER: settings.other_weight}
    counts = np.array([
        ways[lesson.how] * (settings.second_weight if lesson.features.get("rank") else 1.0) for lesson in lessons
    ])  # fmt: skip
    weights, intercept = fit_logistic(
        rows, wanted, decay=settings.graph_decay if graphs else settings.decay, counts=counts
    )
    return Chance({n: round(float(w), 4) for n, w in zip(names, weights, strict=True)}, round(intercept, 4))


def _scores(name: str, lessons: Sequence[Lesson], chance: Callable[[Lesson], Chance]) -> dict[str, float]:
    """Match, calibration error and what is right of the surest half, of the surest query of each question."""
    scores: dict[str, float] = {}
    for dataset in dict.fromkeys(lesson.dataset for lesson in lessons):
        own = [lesson for lesson in lessons if lesson.dataset == dataset and lesson.how == OWN]
        for rule in ("right", "accepted") if lessons[0].kind == "graphs" else ("right",):
            pairs = surest(own, chance, rule)
            found = trust(pairs)
            prefix = f"{name}, {dataset}{', a person' if rule == 'accepted' else ''}"
            scores |= {
                f"{prefix}: match": float(np.mean([right for _, right in pairs])),
                f"{prefix}: calibration error": found.calibration_error,
                f"{prefix}: calibration error by chance": found.error_by_chance,
                f"{prefix}: right of the surest half": found.precision_of_half,
                f"{prefix}: answered at 88 % right": found.answered_at_88,
            }
    return scores


def surest(lessons: Sequence[Lesson], chance: Callable[[Lesson], Chance], rule: str) -> list[Pair]:
    """The surest query of each question that has any: what it said, and whether it was right."""
    best: dict[str, Pair] = {}
    for lesson in lessons:
        said = chance(lesson).of(lesson.features)
        if lesson.question_id not in best or best[lesson.question_id][0] < said:
            best[lesson.question_id] = (said, bool(getattr(lesson, rule)))
    return list(best.values())


def _without(schema: Any, share: float, draw: random.Random) -> tuple[Any, set[tuple[str, ...]]]:
    """A schema without some of its names, and the places of these."""
    gone: set[tuple[str, ...]] = set()
    if isinstance(schema, RelationalSchema):
        tables = []
        keys = {(t.name, name) for t in schema.tables for key in t.foreign_keys for name in key.columns}
        keys |= {(key.table.lower(), name) for t in schema.tables for key in t.foreign_keys for name in key.referred}
        for table in schema.tables:
            needed = {name for owner, name in keys if owner in (table.name, table.name.lower())}
            kept = [c for c in table.columns if c.primary_key or c.name in needed or draw.random() >= share]
            gone |= {(table.name, c.name) for c in table.columns if c not in kept}
            tables.append(replace(table, columns=tuple(kept) or table.columns[:1]))
        return replace(schema, tables=tuple(tables)), gone
    if isinstance(schema, GraphSchema):
        labels = []
        for label in schema.labels:
            own = tuple(c for c in label.properties if draw.random() >= share)
            gone |= {(label.name, c.name) for c in label.properties if c not in own}
            labels.append(replace(label, properties=own))
        return replace(schema, labels=tuple(labels)), gone
    return schema, gone


def _card(
    settings: QueryConfidenceRecipe, chances: Mapping[str, Chance], scores: Mapping[str, float], seconds: float
) -> ModelCard:
    return ModelCard(
        name="helios-query-confidence",
        role=CARD_ROLE,
        summary="The chance that a query which no language model wrote is right, from what can be seen of it.",
        base="none",
        data=(),
        settings=settings.model_dump(mode="json", exclude={"sources", "questions"}),
        scores=dict(scores),
        limits=f"English. Learned from {', '.join(settings.learned)}, with answers of dev questions as labels, with "
        "names hidden and from other sources; the generators' rules were written while failures on most of these were "
        "read. Graphs: a query counts as right where a person would accept it.",
        seconds=seconds,
        values={n: {"weights": dict(c.weights), "intercept": c.intercept} for n, c in chances.items()},
    )  # fmt: skip


ROLE = Role(QueryConfidenceRecipe, train_query_confidence)
