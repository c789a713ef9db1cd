"""Gold queries through the guarded executors: does each run, and does it give the answers that the data set stores?"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from helios.errors import EvaluationError, SourceError
from helios.evaluation.sources.agreement import Agreement, agreement
from helios.evaluation.sources.questions import Row, SourceQuestion
from helios.executors.base import Limits, NativeQuery, ResultSet
from helios.sources.base import Source

LIMITS = Limits(timeout=60.0, max_rows=100_000, max_bytes=2**28)
"""Gold queries may give more than a person would read."""
CAUSE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class GoldException:
    """A gold query that does not run, or that gives other rows than the data set stores."""

    question_id: str
    source: str
    cause: str
    """`rejected`, `timeout`, `failed`, `unavailable`, `truncated`, `ties` or `other rows`."""
    detail: str


@dataclass(frozen=True, slots=True)
class GoldReport:
    """What the gold queries of a data set did."""

    dataset: str
    queries: int
    executed: int
    matched: int
    without_answers: int
    """Gold queries that ran but have no stored answers to compare with."""
    exceptions: tuple[GoldException, ...]
    milliseconds: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The report as plain values."""
        plain = {name: value for name, value in asdict(self).items() if name != "milliseconds"}
        return plain | {"exceptions": [asdict(exception) for exception in self.exceptions], "causes": causes(self)}


def run_gold(
    questions: Sequence[SourceQuestion],
    sources: Mapping[str, Source],
    *,
    limits: Limits = LIMITS,
    progress: Callable[[int], None] | None = None,
) -> tuple[GoldReport, ...]:
    """Run every gold query on its source and compare with the stored answers; one report a data set."""
    asked = [question for question in questions if question.gold_query is not None]
    if not asked:
        raise EvaluationError("no question has a gold query")
    outcomes: dict[str, list[_Checked]] = {}
    for done, question in enumerate(asked, start=1):
        outcomes.setdefault(question.dataset, []).append(_checked(question, sources, limits))
        if progress is not None:
            progress(done)
    return tuple(_report(dataset, rows) for dataset, rows in outcomes.items())


def gold_rows(
    question: SourceQuestion, sources: Mapping[str, Source], *, limits: Limits = LIMITS
) -> tuple[Row, ...] | None:
    """Stored answers, or the rows of the gold query; None where there is neither, or where it does not run."""
    if question.gold_answers is not None or question.gold_query is None or question.source not in sources:
        return question.gold_answers
    try:
        result = _execute(question, sources[question.source], limits)
    except SourceError:
        return None
    return None if result.truncated else result.rows


def _execute(question: SourceQuestion, source: Source, limits: Limits) -> ResultSet:
    return source.execute(NativeQuery(question.paradigm, question.gold_query or ""), limits)


@dataclass(frozen=True, slots=True)
class _Checked:
    """What became of one gold query."""

    stored: bool
    """Whether there are answers to compare with."""
    exception: GoldException | None = None
    ran: bool = False
    milliseconds: float = 0.0


def _checked(question: SourceQuestion, sources: Mapping[str, Source], limits: Limits) -> _Checked:
    stored = question.gold_answers is not None

    def fails(cause: str, detail: object, result: ResultSet | None = None) -> _Checked:
        exception = GoldException(question.question_id, question.source, cause, str(detail)[:CAUSE_LENGTH])
        return _Checked(stored, exception, result is not None, result.milliseconds if result else 0.0)

    if question.source not in sources:
        return fails("unavailable", "not registered")
    try:
        result = _execute(question, sources[question.source], limits)
    except SourceError as error:
        cause = type(error).__name__.removeprefix("Query").removeprefix("Source").lower()
        return fails(cause, error)
    if result.truncated:
        return fails("truncated", f"by the cap on {result.truncated}", result)
    if question.gold_answers is None:
        return _Checked(stored, None, True, result.milliseconds)
    verdict = agreement(question, result.rows, question.gold_answers)
    if verdict is Agreement.MATCH:
        return _Checked(stored, None, True, result.milliseconds)
    cause = "ties" if verdict is Agreement.TIES else "other rows"
    detail = (
        f"got {len(result)} rows {result.rows[:3]}; stored {len(question.gold_answers)} {question.gold_answers[:3]}"
    )
    return fails(cause, detail, result)


def _report(dataset: str, rows: Sequence[_Checked]) -> GoldReport:
    return GoldReport(
        dataset=dataset,
        queries=len(rows),
        executed=sum(row.ran for row in rows),
        matched=sum(row.stored and row.exception is None for row in rows),
        without_answers=sum(row.ran and not row.stored for row in rows),
        exceptions=tuple(row.exception for row in rows if row.exception is not None),
        milliseconds=tuple(row.milliseconds for row in rows if row.ran),
    )


def causes(report: GoldReport) -> dict[str, int]:
    """How often each cause occurs."""
    return dict(Counter(exception.cause for exception in report.exceptions))
