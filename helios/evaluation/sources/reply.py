"""What a system makes of a question: the sources it chose, and what their queries gave, best first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from helios.errors import SourceError
from helios.evaluation.sources.questions import SourceQuestion
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.routing.interrogation import LESS_LIKELY
from helios.sources.base import Source

DOCUMENT_COLUMNS = ("id", "_id", "document_id", "document", "edge", "passage", "segment")
"""Names of the column that tells a document, in the result of a text search."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A query that gave a result."""

    source: str
    query: NativeQuery
    result: ResultSet
    confidence: float

    def documents(self) -> tuple[str, ...]:
        """Ids of the documents of a text search, in its order."""
        names = [name.lower() for name in self.result.columns]
        place = next((names.index(name) for name in DOCUMENT_COLUMNS if name in names), None)
        return () if place is None else tuple(str(row[place]) for row in self.result.rows)


@dataclass(frozen=True, slots=True)
class Reply:
    """The sources chosen, with their probabilities, and the queries that ran, best first."""

    ranked: tuple[tuple[str, float], ...]
    results: tuple[Ran, ...] = ()
    problems: tuple[str, ...] = ()
    declined: bool = False
    """Whether the system saw what its queries gave and held that none of it answers."""


System = Callable[[SourceQuestion], Reply]
"""Answers a question; all but an oracle read its text alone."""


class Chosen(Protocol):
    """A source that a selector ranks."""

    @property
    def name(self) -> str: ...
    @property
    def probability(self) -> float: ...


class Choice(Protocol):
    """What a selector gives, the best source first."""

    @property
    def sources(self) -> Sequence[Chosen]: ...


class Selector(Protocol):
    """Chooses among sources; see `helios.routing.selection`."""

    def select(self, question: str, sources: Sequence[Source], *, k: int = 3) -> Choice: ...


class Written(Protocol):
    """A query with how sure its writer is; see `helios.routing.formulation.base`."""

    @property
    def query(self) -> NativeQuery: ...
    @property
    def confidence(self) -> float: ...


class Formulator(Protocol):
    """Writes queries of one language."""

    def formulate(self, question: str, source: Source) -> Sequence[Written]: ...


@dataclass(frozen=True, slots=True)
class Layered:
    """Select, formulate, execute, and rank by probability and confidence: the layer without repair or reading.

    `gold` makes it the oracle: the question's own source is asked, and selection is left out.
    """

    selector: Selector
    formulators: Mapping[Language, Formulator]
    sources: Sequence[Source]
    k: int = 3
    gold: bool = False
    language: Language | None = None
    """Only sources of this language, for the baselines of a single backend."""
    limits: Limits | None = None

    def __call__(self, question: SourceQuestion) -> Reply:
        ranked = self._ranked(question)
        by_name = {source.name: source for source in self.sources}
        results: list[tuple[float, Ran]] = []
        problems: list[str] = []
        for name, probability in ranked:
            if name not in by_name:
                problems.append(f"{name}: not registered")
                continue
            ran = self._asked(question.text, by_name[name], problems)
            if ran is not None:
                results.append((probability * ran.confidence, ran))
        results.sort(key=lambda scored: -scored[0])
        return Reply(ranked, tuple(ran for _, ran in results), tuple(problems))

    def _ranked(self, question: SourceQuestion) -> tuple[tuple[str, float], ...]:
        if self.gold:
            return ((question.source, 1.0),)
        speaking = [source for source in self.sources if self.language in (None, source.language)]
        choice = self.selector.select(question.text, speaking, k=self.k)
        return tuple((chosen.name, chosen.probability) for chosen in choice.sources)

    def _asked(self, text: str, source: Source, problems: list[str]) -> Ran | None:
        """The first query of a source that gives rows, unless it is far less likely than one without; else the first
        that runs."""
        empty: Ran | None = None
        for query, confidence in self._queries(text, source, problems):
            if empty is not None and confidence < LESS_LIKELY * empty.confidence:
                break
            try:
                ran = Ran(source.name, query, source.execute(query, self.limits), confidence)
            except SourceError as error:
                problems.append(f"{source.name}: {type(error).__name__}: {error}")
                continue
            if ran.result.rows:
                return ran
            empty = empty or ran
        return empty

    def _queries(self, text: str, source: Source, problems: list[str]) -> list[tuple[NativeQuery, float]]:
        if source.language is Language.TEXT:
            return [(NativeQuery(Language.TEXT, text), 1.0)]
        formulator = self.formulators.get(source.language)
        if formulator is None:
            problems.append(f"{source.name}: nothing writes {source.language}")
            return []
        try:
            return [(written.query, written.confidence) for written in formulator.formulate(text, source)]
        except SourceError as error:
            problems.append(f"{source.name}: {type(error).__name__}: {error}")
            return []


def omni_reply(answer: Any) -> Reply:
    """What the whole layer answered (`helios.routing.evidence.OmniAnswer`): queries in the order of their evidence.

    The queries of the answer go first. Keyword evidence is no answer to a question and is left out.
    """
    ranked = tuple((chosen.name, chosen.probability) for chosen in answer.selection.sources)
    ran = {
        (execution.source, execution.query.text): Ran(
            execution.source, execution.query, execution.result, execution.confidence
        )
        for reply in answer.replies
        for execution in reply.executions
        if str(execution.made_by) != "keyword"
    }
    asked = [*answer.parts, *answer.evidence]
    order = dict.fromkeys([*((item.source, item.query.text) for item in asked), *ran])
    problems = [
        f"{reply.source}: {attempt.outcome}"
        for reply in answer.replies
        for attempt in reply.attempts
        if attempt.outcome
    ]
    return Reply(ranked, tuple(ran[key] for key in order if key in ran), (*answer.notes, *problems), answer.declined)
