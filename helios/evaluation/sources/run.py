"""Ask every question, measure every reply."""

import time
from collections.abc import Callable, Mapping, Sequence

from helios.errors import EvaluationError, SourceError
from helios.evaluation.kept import KeptRows
from helios.evaluation.sources.acceptance import NodeKeys, accepted
from helios.evaluation.sources.agreement import Agreement, agreement
from helios.evaluation.sources.gold import gold_rows
from helios.evaluation.sources.measures import diversity, ndcg, selected_at
from helios.evaluation.sources.options import CONFIDENCE
from helios.evaluation.sources.outcomes import Outcome, Tried
from helios.evaluation.sources.questions import Row, SourceQuestion
from helios.evaluation.sources.reply import Ran, Reply, System
from helios.executors.base import Language, NativeQuery
from helios.executors.values import plain
from helios.llm.quoting import clip
from helios.sources.base import Source

SHOWN_ROWS = 10
SHOWN_BYTES = 1500


def run_system(
    system: System,
    questions: Sequence[SourceQuestion],
    sources: Mapping[str, Source],
    *,
    k: int = 3,
    threshold: float = CONFIDENCE,
    file: KeptRows[Outcome] | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[Outcome, ...]:
    """Outcomes of all questions in their order; those that `file` has are not asked again."""
    if not questions:
        raise EvaluationError("there are no questions to evaluate")
    kept = file or KeptRows(None, {}, Outcome.from_json)
    keys = {name: NodeKeys(source) for name, source in sources.items() if source.language is Language.CYPHER}
    outcomes = []
    for done, question in enumerate(questions, start=1):
        outcome = kept.row(question.question_id, question.digest())
        if outcome is None:
            started = time.perf_counter()
            reply = system(question)
            milliseconds = (time.perf_counter() - started) * 1000
            gold = gold_rows(question, sources)
            outcome = measure_reply(
                question, reply, sources, gold, k=k, threshold=threshold, milliseconds=milliseconds, keys=keys
            )
            kept.add(outcome)
        outcomes.append(outcome)
        if progress is not None:
            progress(done)
    return tuple(outcomes)


def warm(sources: Sequence[Source]) -> list[str]:
    """Open every source, read its descriptor and build its lookup, so that no question pays for it; what failed."""
    problems = []
    for source in sources:
        try:
            source.descriptor()
            if source.language is Language.TEXT:
                source.execute(NativeQuery(Language.TEXT, "warm up"))
            else:
                source.find_values(["warm up"], limit=1)
        except SourceError as error:
            problems.append(f"{source.name}: {type(error).__name__}: {error}")
    return problems


def measure_reply(
    question: SourceQuestion,
    reply: Reply,
    sources: Mapping[str, Source],
    gold: Sequence[Row] | None,
    *,
    k: int = 3,
    threshold: float = CONFIDENCE,
    milliseconds: float = 0.0,
    keys: Mapping[str, NodeKeys] | None = None,
) -> Outcome:
    """Every figure that a question's gold allows; `keys` are those of the graphs' nodes, by source."""
    verdicts = [_verdict(question, ran, gold) for ran in reply.results]
    names = [name for name, _ in reply.ranked[:k]]
    with_twins = {question.source, *question.twins}
    values = {
        "selection@1": selected_at(names, {question.source}, k=1),
        f"selection@{k}": selected_at(names, {question.source}, k=k),
        "selection@1 or twin": selected_at(names, with_twins, k=1),
        f"selection@{k} or twin": selected_at(names, with_twins, k=k),
    }
    if k == 1:
        values = {"selection@1": values["selection@1"], "selection@1 or twin": values["selection@1 or twin"]}
    languages = [(name, str(sources[name].language)) for name in names if name in sources]
    paradigms, distinct = diversity(languages)
    values |= {"paradigms asked": float(paradigms), "sources asked": float(distinct)}
    if question.paradigm is Language.TEXT:
        values["nDCG@10"] = values["retrieval"] = ndcg(_documents(question, reply), question.qrels)
    elif gold is not None:
        first = reply.results[0] if reply.results else None
        taken = verdicts[:1] == [Agreement.MATCH] or (
            first is not None and verdicts[0] is not None and not first.result.truncated
            and accepted(question, first.query, first.result.rows, gold, (keys or {}).get(first.source))
        )  # fmt: skip
        values |= _matches(reply, verdicts, threshold, taken=taken)
    tried = tuple(_tried(ran, verdict) for ran, verdict in zip(reply.results, verdicts, strict=True))
    return Outcome(
        question.question_id, question.digest(), values, reply.ranked, tried, reply.problems, round(milliseconds, 3)
    )


def _matches(reply: Reply, verdicts: Sequence[Agreement | None], threshold: float, *, taken: bool) -> dict[str, float]:
    """Figures of the best query, which a person would accept if `taken`, and of the best of all queries.

    A system that declined has no best one.
    """
    matched = float(bool(verdicts) and verdicts[0] is Agreement.MATCH and not reply.declined)
    answered = bool(reply.results) and not reply.declined and reply.results[0].confidence >= threshold
    values = {
        "execution match": matched,
        "accepted by a person": float(taken and not reply.declined),
        "retrieval": matched,
        "match in pool": float(Agreement.MATCH in verdicts),
        "answered": float(answered),
    }
    precision = {"precision of answered": matched, "accepted of answered": float(taken)}
    return values | (precision if answered else {})


def _verdict(question: SourceQuestion, ran: Ran, gold: Sequence[Row] | None) -> Agreement | None:
    """How a query's rows compare with the gold; None where there is nothing to compare."""
    if question.paradigm is Language.TEXT or gold is None or ran.query.language is Language.TEXT:
        return None
    return Agreement.MISMATCH if ran.result.truncated else agreement(question, ran.result.rows, gold)


def _documents(question: SourceQuestion, reply: Reply) -> list[str]:
    """Ids of the documents of all queries, in order; other sources' documents take a rank and are never relevant."""
    found: list[str] = []
    for ran in reply.results:
        for document in ran.documents() if ran.query.language is Language.TEXT else [""] * len(ran.result):
            found.append(document if ran.source == question.source else f"\0{ran.source}\0{len(found)}")
    return found


def _tried(ran: Ran, verdict: Agreement | None) -> Tried:
    rows = [" | ".join(str(plain(value)) for value in row) for row in ran.result.rows[:SHOWN_ROWS]]
    shown = "; ".join([" | ".join(ran.result.columns), *rows])
    return Tried(
        ran.source, str(ran.query.language), ran.query.text, ran.confidence, len(ran.result),
        str(verdict) if verdict else "", clip(shown, SHOWN_BYTES),
    )  # fmt: skip
