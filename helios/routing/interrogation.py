"""One source asked one question: formulate, execute, repair; keyword evidence where no query can be had.

with a language model     its query; after a failure another, `repairs` times at most; after an empty result another
                          that knows what is stored, unless the empty one is right or the source cannot answer
then                      the generator's queries above its confidence
then                      keyword evidence; a corpus is searched with the question itself
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic, perf_counter

from helios.config import AdvancedRoutingSettings
from helios.errors import QueryFailed, QueryRejected, QueryTimeout, SourceError
from helios.executors.base import Language, NativeQuery, ResultSet
from helios.executors.values import Iri
from helios.llm.budget import Budget
from helios.llm.outcome import Failure
from helios.routing.evidence import FROM_MEANING, Attempt, Execution, MadeBy, SourceReply
from helios.routing.formulation.base import Candidate, Formulator
from helios.routing.formulation.llm import LlmFormulator, NotHere, Tried, normalised
from helios.routing.keyword import keyword_evidence
from helios.routing.stored import elsewhere, stored
from helios.sources.base import Source, Taught

log = logging.getLogger(__name__)

SEARCH_CONFIDENCE = 0.5
TAUGHT_CONFIDENCE = 0.98
"""What a text search counts: it gives the best documents there are, good or not."""
NO_ROWS = "no rows"
LESS_LIKELY = 0.5
"""Share of the confidence of a query without rows, below which another query is no better answer than none."""
LABELLED = 50
"""Resources of a result whose labels are looked up."""
LABELS = "SELECT ?s ?l WHERE {{ VALUES ?s {{ {iris} }} ?s <http://www.w3.org/2000/01/rdf-schema#label> ?l }} LIMIT 200"


@dataclass(slots=True)
class Interrogator:
    """Asks sources; threads may share it."""

    settings: AdvancedRoutingSettings
    formulators: Mapping[Language, Formulator] = field(default_factory=dict)
    """Without a language model, by language."""
    writer: LlmFormulator | None = None

    def ask(
        self, question: str, source: Source, *, budget: Budget | None = None, others: Sequence[Source] = (),
        deadline: float | None = None,
    ) -> SourceReply:  # fmt: skip
        """What the source gives; never raises SourceError: a source that fails is a reply that says so.

        `others` are sources that may hold a name which this one does not. `deadline`, an instant of time.monotonic(),
        may end it earlier than `source_seconds` would.
        """
        ends = monotonic() + self.settings.source_seconds
        ends = ends if deadline is None else min(ends, deadline)
        inquiry = _Inquiry(self, question, source, budget, ends, others)
        started = perf_counter()
        try:
            inquiry.run()
        except SourceError as error:
            inquiry.fail(f"{error}")
        return SourceReply(
            source.name, source.language, tuple(inquiry.executions), tuple(inquiry.attempts), tuple(inquiry.notes),
            inquiry.degraded, (perf_counter() - started) * 1e3,
        )  # fmt: skip


class _Inquiry:
    """The state of one question to one source."""

    def __init__(
        self, asker: Interrogator, question: str, source: Source, budget: Budget | None, deadline: float,
        others: Sequence[Source],
    ) -> None:  # fmt: skip
        self.asker = asker
        self.question = question
        self.source = source
        self.budget = budget
        self.deadline = deadline
        self.others = others
        self.empty: Execution | None = None
        """The first query that ran and gave no row."""
        self.executions: list[Execution] = []
        self.attempts: list[Attempt] = []
        self.notes: list[str] = []
        self.degraded = False

    def run(self) -> None:
        """The ways to an answer, the better ones first, until one gives it."""
        if self.recall() or self.write():
            return
        if self.source.language is Language.TEXT:
            self.search()
            return
        if self.generate():
            return
        if self.empty is not None:
            self.executions.append(self.empty)
            self.notes.append("no row matches; keyword evidence beside it")
        else:
            self.notes.append("no query of the question's meaning: keyword evidence")
        found = keyword_evidence(self.question, self.source)
        self.executions += found.executions
        self.attempts += found.attempts
        if not self.executions:
            self.notes.append("nothing in the source holds the question's phrases")

    def recall(self) -> bool:
        """The query that was taught for this question."""
        query = self.source.recall(self.question) if isinstance(self.source, Taught) else None
        if query is None:
            return False
        outcome = self.execute(Candidate(query, TAUGHT_CONFIDENCE, "as it was taught"), MadeBy.TAUGHT)
        if outcome == NO_ROWS and self.empty is not None:
            self.executions.append(self.empty)  # it was checked by a person: nothing matches
        return outcome in ("", NO_ROWS)

    def write(self) -> bool:
        """The language model's query, repaired where it fails; whether nothing else needs to be tried."""
        writer = self.asker.writer
        if writer is None:
            return False
        budget = self.budget or writer.model.budget(deadline=self.deadline)
        tried: list[Tried] = []
        for _ in range(1 + self.asker.settings.repairs):
            written = writer.write(self.question, self.source, tried=tried, budget=budget)
            if isinstance(written, Failure):
                self.fail(f"the language model wrote no query ({written})")
                return False
            if isinstance(written, NotHere):
                self.notes.append(f"the language model holds that the source cannot answer: {written.reason}")
                return True
            if (again := self.again(written, tried)) is not None:
                return again
            outcome = self.execute(written, MadeBy.MODEL if not self.is_text() else MadeBy.SEARCH)
            if not outcome:
                return True
            if outcome == NO_ROWS and not self.is_text():
                known = stored(written.query, self.source, self.question)
                if known.missing and (other := elsewhere(known.missing, self.others)):
                    names = ", ".join(map(repr, known.missing))
                    self.notes.append(f"the source does not hold {names}, which {other} holds")
                    return True
                outcome = "; ".join([outcome, *known.hints])
            tried.append(Tried(written.query, outcome))
            if self.is_text() or monotonic() >= self.deadline:
                break
        self.notes.append(f"no query of the language model gave rows; {len(tried)} tried")
        return False

    def again(self, written: Candidate, tried: Sequence[Tried]) -> bool | None:
        """What it means that a model sends a query again: one without rows is right, one that failed is no way on.

        None where it was not tried.
        """
        same = next((t for t in tried if normalised(t.query) == normalised(written.query)), None)
        if same is None:
            return None
        if same.outcome.startswith(NO_ROWS) and self.empty is not None:
            self.executions.append(replace(self.empty, query=same.query, explanation=written.explanation))
            return True
        self.fail("the language model wrote a query again that had failed")
        return False

    def generate(self) -> bool:
        """The generator's queries, the surest first, down to the least confidence."""
        formulator = self.asker.formulators.get(self.source.language)
        candidates: Sequence[Candidate] = ()
        try:
            candidates = formulator.formulate(self.question, self.source) if formulator else ()
        except SourceError:
            raise
        except Exception as error:  # noqa: BLE001 - a rule that fails on this wording must not cost the whole answer
            log.error("%s: formulation failed", self.source.name, exc_info=error)
            self.fail(f"formulation failed ({type(error).__name__}); please report it with the question")
        sure = [c for c in candidates if c.confidence >= least_confidence(self.source.language, self.asker.settings)]
        for candidate in sure[: 1 + self.asker.settings.repairs]:
            if self.empty is not None and candidate.confidence < LESS_LIKELY * self.empty.confidence:
                return False  # that nothing matches is the likelier answer
            if not self.execute(candidate, MadeBy.GENERATOR):
                return True
        return False

    def search(self) -> None:
        """The question itself, in a corpus."""
        query = NativeQuery(Language.TEXT, self.question, {"k": self.asker.settings.evidence})
        problem = self.execute(Candidate(query, SEARCH_CONFIDENCE, "text search"), MadeBy.SEARCH)
        if problem and problem != NO_ROWS:
            self.fail(problem)

    def execute(self, candidate: Candidate, made_by: MadeBy) -> str:
        """Run a query that was not run before; empty where it gave rows, else what was wrong."""
        query = candidate.query
        if normalised(query) in {normalised(attempt.query) for attempt in self.attempts}:
            return "the same query had been tried"
        started = perf_counter()
        try:
            result = self.source.execute(query)
            outcome = "" if has_answer(result) else NO_ROWS
        except QueryRejected as error:
            outcome = f"refused by the guard: {error}"
        except QueryTimeout as error:
            outcome = f"too slow: {error}"
        except QueryFailed as error:
            outcome = f"failed: {error}"
        self.attempts.append(Attempt(query, made_by, outcome, (perf_counter() - started) * 1e3))
        if outcome in ("", NO_ROWS):
            labels = self.labels(result)
            ran = Execution(
                self.source.name, query, made_by, result, candidate.confidence, candidate.explanation, labels
            )
            if not outcome:
                self.executions.append(ran)
            elif made_by in FROM_MEANING:
                self.empty = self.empty or ran
        return outcome

    def labels(self, result: ResultSet) -> dict[str, str]:
        """Labels of the resources in a result, where an RDF source has them."""
        if self.source.language is not Language.SPARQL:
            return {}
        iris = dict.fromkeys(
            value.value for row in result.rows for value in row if isinstance(value, Iri) and "_:" not in value.value
        )
        if not iris:
            return {}
        listed = " ".join(f"<{iri}>" for iri in list(iris)[:LABELLED])
        try:
            found = self.source.execute(NativeQuery(Language.SPARQL, LABELS.format(iris=listed)))
        except (QueryRejected, QueryTimeout, QueryFailed):
            return {}
        return {str(iri): str(label) for iri, label in reversed(found.rows)}

    def is_text(self) -> bool:
        return self.source.language is Language.TEXT

    def fail(self, note: str) -> None:
        self.notes.append(note)
        self.degraded = True


def has_answer(result: ResultSet) -> bool:
    """Whether there is anything but empty values; a count of 0 is something."""
    return any(value is not None and value != "" for row in result.rows for value in row)


def least_confidence(language: Language, settings: AdvancedRoutingSettings) -> float:
    """From where a generated query of a language is run: where at least about four in five are right."""
    match language:
        case Language.SQL:
            return settings.sql_confidence
        case Language.SPARQL:
            return settings.sparql_confidence
        case Language.CYPHER:
            return settings.cypher_confidence
    return 0.0
