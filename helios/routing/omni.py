"""The whole layer over registered sources: select → formulate → execute → repair → consolidate (OmniRetrieval 2).

with OmniEngine.open("helios-sources.yaml") as omni:
    omni.ask("How many singers are from France?").answer
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic, perf_counter
from types import TracebackType

from helios.config import Config
from helios.errors import SourceError
from helios.executors.base import Language
from helios.llm.budget import Budget
from helios.llm.client import LanguageModel
from helios.routing.consolidation import Consolidator, choose, conflicts_of, results_of
from helios.routing.evidence import Conflict, OmniAnswer, SourceAnswer, SourceReply
from helios.routing.formulation.llm import LlmFormulator
from helios.routing.interrogation import Interrogator
from helios.routing.lexical_selection import LexicalDenseSelector
from helios.routing.likeness import Likeness
from helios.routing.llm_choice import Chosen, EvidenceChooser
from helios.routing.llm_selection import LlmSelector
from helios.routing.reading import ReadAnswers, read_answers
from helios.routing.selection import Selection, Selector
from helios.routing.splitting import Splitter, filled, values_of
from helios.sources.base import Source
from helios.sources.deadline import Background
from helios.sources.descriptor import RdfSchema

GRACE = 2.0
"""Seconds after a source's own deadline until it is given up."""
LATE = "no reply before the deadline"
"""The note of a source that was given up."""


class OmniEngine:
    """Answers questions from many sources; threads may share it."""

    def __init__(
        self, sources: Callable[[], Sequence[Source]], selector: Selector, interrogator: Interrogator,
        consolidator: Consolidator, config: Config, *, model: LanguageModel | None = None,
    ) -> None:  # fmt: skip
        self.sources = sources
        """Looked up for every question, so that sources come and go while this runs."""
        self.selector = selector
        self.interrogator = interrogator
        self.consolidator = consolidator
        self.config = config
        self.model = model
        self.chooser = None if model is None else EvidenceChooser(model, config.language_model)
        self.splitter = None if model is None else Splitter(model, config.language_model)
        self._open = ExitStack()

    @classmethod
    def open(cls, path: Path | str, *, config: Config | None = None) -> "OmniEngine":
        """The sources that a file registers, with a language model where `llm` is configured.

        Raises ConfigError for a file or settings that are wrong; a source that cannot be opened is a note of the
        answers that would have needed it.
        """
        from helios.sources.registry import Registry

        config = config or Config()
        registry = Registry.open(path)
        engine = cls.over(registry.sources, config)
        engine._open.callback(registry.close)
        return engine

    @classmethod
    def over(cls, sources: Callable[[], Sequence[Source]], config: Config) -> "OmniEngine":
        """The layer as configured over sources that are open already."""
        from helios.llm.client import LlmClient
        from helios.models.encoder import MiniLMEncoder
        from helios.routing.formulation.generators import open_generators

        settings = config.encoder
        encoder = MiniLMEncoder.load(
            settings.model,
            adapter=settings.adapter,
            runtime=settings.runtime,
            max_tokens=config.advanced.encoder.max_tokens,
            threads=1,
        )
        likeness = Likeness(encoder)
        client = LlmClient.open(config.language_model) if config.llm.configured else None
        lexical = LexicalDenseSelector(likeness)
        engine = cls(
            sources,
            lexical if client is None else LlmSelector(client, config.language_model, lexical),
            Interrogator(
                config.advanced.routing, open_generators(likeness, tables=config.advanced.routing.tables),
                None if client is None else LlmFormulator(client, config.language_model, likeness),
            ),
            Consolidator(likeness), config, model=client,
        )  # fmt: skip
        if client is not None:
            engine._open.callback(client.close)
        return engine

    def ask(self, question: str, *, k: int | None = None, seconds: float | None = None) -> OmniAnswer:
        """Evidence and, where a query gave one, an answer from at most `k` sources.

        After `seconds` no source is waited for and no further step begins; notes say what was left out.
        """
        clock = _Clock()
        deadline = None if seconds is None else monotonic() + seconds
        budget = None if self.model is None else self.model.budget(deadline=deadline)
        sources = {source.name: source for source in self.sources()}
        selection = self.select(question, list(sources.values()), k or self.config.routing.k, budget)
        clock.lap("select")
        asked = [sources[name] for name in selection.names]
        replies = self.ask_sources(question, asked, budget, others=list(sources.values()), deadline=deadline)
        clock.lap("formulate and execute")
        chosen, conflicts = self.consolidate(question, selection, replies, sources, budget)
        clock.lap("consolidate")
        if budget is not None and not chosen.failed and not chosen.evidence and _has_time(deadline):
            steps = self.ask_in_steps(question, asked, budget, deadline=deadline)
            if steps:
                replies = (*replies, *steps)
                chosen, conflicts = self.consolidate(question, selection, replies, sources, budget)
            clock.lap("split and join")
        parts = tuple(result.answer() for result in chosen.choice.results)
        read = ReadAnswers()
        if not parts and not _has_time(deadline):
            read = ReadAnswers(notes=("no time was left to read the evidence",))
        elif not parts and (chosen.evidence or not chosen.left_out):
            found = {item.source for item in chosen.evidence}
            readable = [reply for reply in replies if reply.source in found or not chosen.left_out]
            read = read_answers(question, selection, readable, sources)
            clock.lap("read")
        answer = _answer(question, selection, replies, chosen, parts, conflicts, read, clock.timings_ms)
        return answer if budget is None else replace(answer, calls=budget.spent.calls, tokens=budget.spent.tokens)

    def select(self, question: str, sources: Sequence[Source], k: int, budget: Budget | None) -> Selection:
        """Which sources to ask, best first (2.2)."""
        return self.selector.select(question, sources, k=k, budget=budget)

    def ask_sources(
        self, question: str, sources: Sequence[Source], budget: Budget | None, *, others: Sequence[Source] = (),
        deadline: float | None = None,
    ) -> tuple[SourceReply, ...]:  # fmt: skip
        """Every source at the same time, each with its deadline; formulation, execution and repair (2.3).

        `others` are sources that may hold a name which one that is asked does not. `deadline` is an instant of
        time.monotonic() after which none is waited for.
        """
        if not sources:
            return ()
        background = Background(len(sources), name="ask")
        late = monotonic() + self.config.advanced.routing.source_seconds + GRACE
        late = late if deadline is None else min(late, deadline)
        asks = [
            partial(
                self.interrogator.ask, question, source, budget=budget, deadline=deadline,
                others=[other for other in others if other.name != source.name and other.language is not Language.TEXT],
            )
            for source in sources
        ]  # fmt: skip
        futures = [background.submit(ask) for ask in asks]
        return tuple(_reply(future, source, late) for future, source in zip(futures, sources, strict=True))

    def ask_in_steps(
        self, question: str, sources: Sequence[Source], budget: Budget, *, deadline: float | None = None
    ) -> tuple[SourceReply, ...]:
        """Replies to the parts of a question that the sources answer together alone, each with the values before it."""
        by_name = {source.name: source for source in sources}
        steps = self.splitter.split(question, sources, budget) if self.splitter is not None else ()
        replies: list[SourceReply] = []
        given: list[list[str]] = []
        for step in steps:
            part = filled(step.question, given)
            if not part:
                break
            (reply,) = self.ask_sources(part, [by_name[step.source]], budget, deadline=deadline)
            replies.append(replace(reply, notes=(f"asked as a part: {part}", *reply.notes)))
            given.append(values_of(reply))
        return tuple(replies)

    def consolidate(
        self, question: str, selection: Selection, replies: Sequence[SourceReply], sources: dict[str, Source],
        budget: Budget | None,
    ) -> tuple[Chosen, tuple[Conflict, ...]]:  # fmt: skip
        """Which results answer, with evidence of every form in one ranking (2.4); and where results differ.

        With a language model its choice decides, and what it leaves out is no conflict.
        """
        labels = predicate_labels([sources[reply.source] for reply in replies if reply.executions])
        kept = self.config.advanced.routing.evidence
        results = results_of(selection, replies)
        ranked = self.consolidator.rank(question, selection, replies, results, k=kept, predicates=labels)
        if self.chooser is not None and ranked:
            chosen = self.chooser.choose(question, results, ranked, budget=budget)
            if not chosen.failed:
                return chosen, ()
            return replace(chosen, choice=choose(question, results)), conflicts_of(results)
        return Chosen(choose(question, results), ranked), conflicts_of(results)

    def close(self) -> None:
        """Close what `open` opened."""
        self._open.close()

    def __enter__(self) -> "OmniEngine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def predicate_labels(sources: Sequence[Source]) -> dict[str, str]:
    """Labels of the predicates of RDF sources, by IRI."""
    labels: dict[str, str] = {}
    for source in sources:
        try:
            schema = source.descriptor().schema
        except SourceError:
            continue
        if isinstance(schema, RdfSchema):
            labels |= {term.iri: term.label for term in schema.predicates if term.label}
    return labels


def _has_time(deadline: float | None) -> bool:
    return deadline is None or monotonic() < deadline


def _reply(future: "Future[SourceReply]", source: Source, deadline: float) -> SourceReply:
    """A source's reply, or one that says that it is late."""
    try:
        return future.result(max(0.0, deadline - monotonic()))
    except FutureTimeout:
        return SourceReply(source.name, source.language, notes=(LATE,), degraded=True)


def _answer(
    question: str, selection: Selection, replies: Sequence[SourceReply], chosen: Chosen,
    parts: tuple[SourceAnswer, ...], conflicts: tuple[Conflict, ...], read: ReadAnswers, timings_ms: dict[str, float],
) -> OmniAnswer:  # fmt: skip
    notes = [*selection.notes]
    notes += [f"{reply.source}: {note}" for reply in replies for note in reply.notes]
    notes += [*([chosen.problem] if chosen.problem else []), *read.notes]
    parts = parts or read.answers[:1]
    declined = bool(chosen.left_out) and not chosen.evidence
    if replies and not parts and not declined:
        notes.append("no query of the question's meaning gave an answer; the evidence is what was found instead")
    return OmniAnswer(
        question,
        chosen.evidence,
        parts[0] if parts else None,
        selection,
        tuple(replies),
        conflicts,
        tuple(notes),
        selection.degraded or chosen.failed or read.degraded or any(reply.degraded for reply in replies),
        timings_ms,
        parts=parts,
        sentence=chosen.choice.sentence,
        left_out=chosen.left_out,
        declined=declined,
    )


class _Clock:
    """Milliseconds of the stages, in their order."""

    def __init__(self) -> None:
        self.timings_ms: dict[str, float] = {}
        self._started = self._last = perf_counter()

    def lap(self, stage: str) -> None:
        now = perf_counter()
        self.timings_ms[stage] = (now - self._last) * 1e3
        self.timings_ms["total"] = (now - self._started) * 1e3
        self._last = now
