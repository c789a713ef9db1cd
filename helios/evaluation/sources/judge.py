"""A language model as judge: does a result answer the question, whatever form it came in (OmniRetrieval 3.3)?

Execution match is strict: it fails a right passage where a table row was expected. The judge sees question, gold and
result, and says yes or no with a reason, in a fixed shape. A question that the model does not judge (it is late,
refuses, replies out of shape) counts as `not judged`, never as no.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from helios.evaluation.sources.measures import mean
from helios.evaluation.sources.outcomes import Outcome
from helios.evaluation.sources.questions import Row, SourceQuestion
from helios.executors.values import plain
from helios.llm.client import LanguageModel
from helios.llm.outcome import Answer
from helios.llm.quoting import RULE, block, clip
from helios.llm.request import Message, Request

GOLD_ROWS = 10
GOLD_BYTES = 1500
RESULTS = 3
"""Results of a reply that the judge sees, best first."""
SYSTEM = (
    "You check whether retrieved results answer a question. You are given the question, a reference answer, and the "
    "results of queries against one or more sources, the best first. Say yes if the results hold what the question "
    "asks for: they may be worded or laid out differently from the reference, hold more than was asked, or come from "
    "another source that answers the question as faithfully. Say no if what was asked is missing, wrong, or answers "
    f"another question. Give the reason first, in one sentence. {RULE}"
)


class Verdict(BaseModel):
    """What the judge replies."""

    model_config = ConfigDict(extra="forbid")
    reason: str = Field(max_length=600)
    answers: Literal["yes", "no"]


@dataclass(frozen=True, slots=True)
class Judged:
    """One question's verdict; `correct` is None where the model did not judge."""

    question_id: str
    correct: bool | None
    reason: str


def judge(
    model: LanguageModel,
    pairs: Sequence[tuple[SourceQuestion, Outcome]],
    gold: Callable[[SourceQuestion], Sequence[Row] | None],
    *,
    progress: Callable[[int], None] | None = None,
) -> tuple[Judged, ...]:
    """Judge every outcome that has a result; one without any is not the model's to judge and counts as no."""
    verdicts = []
    for done, (question, outcome) in enumerate(pairs, start=1):
        verdicts.append(_judged(model, question, outcome, gold(question)))
        if progress is not None:
            progress(done)
    return tuple(verdicts)


def judge_report(verdicts: Sequence[Judged], *, seed: int = 0) -> dict[str, Any]:
    """Share judged, and the share of yes among those judged with its interval."""
    judged = [float(verdict.correct) for verdict in verdicts if verdict.correct is not None]
    report: dict[str, Any] = {
        "questions": len(verdicts),
        "judged": len(judged),
        "not judged": len(verdicts) - len(judged),
        "judged share": round(len(judged) / len(verdicts), 6) if verdicts else 0.0,
    }
    if judged:
        row = mean("yes", judged, seed=seed)
        report["yes of judged"] = round(row.mean, 6)
        report["interval_95"] = {"low": round(row.low, 6), "high": round(row.high, 6)}
    return report


def prompt(question: SourceQuestion, outcome: Outcome, gold: Sequence[Row] | None) -> tuple[Message, ...]:
    """What the judge reads."""
    results = [
        f"{number}. from {clip(tried.source, 80)}, {tried.rows} rows: {clip(tried.shown, GOLD_BYTES)}"
        for number, tried in enumerate(outcome.tried[:RESULTS], start=1)
    ]
    asked = "\n".join(
        [
            f"Question: {clip(question.text, 1000)}",
            block("\n".join([f"Reference: {_reference(question, gold)}", "Results:", *results])),
        ]
    )  # fmt: skip
    return Message("system", SYSTEM), Message("user", asked)


def _judged(model: LanguageModel, question: SourceQuestion, outcome: Outcome, gold: Sequence[Row] | None) -> Judged:
    if not outcome.tried:
        return Judged(question.question_id, False, "no result")
    request = Request(prompt(question, outcome, gold), Verdict, 256)
    (reply,) = model.ask([request], budget=model.budget())
    if isinstance(reply, Answer):
        return Judged(question.question_id, reply.value.answers == "yes", reply.value.reason)
    return Judged(question.question_id, None, str(reply))


def _reference(question: SourceQuestion, gold: Sequence[Row] | None) -> str:
    if question.qrels:
        relevant: Mapping[str, int] = {name: gain for name, gain in question.qrels.items() if gain > 0}
        return clip(f"the documents {', '.join(relevant)}", GOLD_BYTES)
    if gold is None:
        return clip(f"the result of {question.gold_query}", GOLD_BYTES)
    rows = [" | ".join(str(plain(value)) for value in row) for row in gold[:GOLD_ROWS]]
    more = f" and {len(gold) - GOLD_ROWS} rows more" if len(gold) > GOLD_ROWS else ""
    return clip("; ".join(rows) or "no rows", GOLD_BYTES) + more
