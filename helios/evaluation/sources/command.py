"""`helios eval sources`: from the command line to tables, files and JSON."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import Progress

from helios.config import Config, load_config
from helios.errors import EvaluationError, RecordError
from helios.evaluation.kept import KeptRows
from helios.evaluation.report import code_commit
from helios.evaluation.sources.gold import gold_rows, run_gold
from helios.evaluation.sources.judge import judge, judge_report
from helios.evaluation.sources.loaders import load_questions, unknown_sources
from helios.evaluation.sources.options import CONFIDENCE, Layout, Method
from helios.evaluation.sources.outcomes import Outcome
from helios.evaluation.sources.questions import SourceQuestion
from helios.evaluation.sources.reply import System
from helios.evaluation.sources.report import SourceReport, document, render, render_gold, summarise
from helios.evaluation.sources.run import run_system, warm
from helios.evaluation.sources.sample import balanced_sample
from helios.evaluation.sources.systems import build_system, open_layer
from helios.index.durable import write_atomically
from helios.sources.base import Source

if TYPE_CHECKING:
    from helios.llm import LlmClient

NAME = "sources.json"
"""The report in an output folder; beside it one `.jsonl` a method."""
REJECTS_SHOWN = 5
WARMUP = 3
"""Questions that are asked once beforehand, so that latencies are those of a warm system."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What the command line says."""

    registry: Path
    questions: Path
    layout: Layout = Layout.PLAIN
    source: str | None = None
    methods: tuple[Method, ...] = (Method.LAYER,)
    k: int = 3
    sample: int | None = None
    limit: int | None = None
    seed: int = 0
    threshold: float = CONFIDENCE
    gold: bool = False
    judge: bool = False
    skip_bad: bool = False
    out: Path | None = None
    config: Path | None = None
    overrides: tuple[str, ...] = ()


def evaluate_sources(options: SourceOptions, *, as_json: bool) -> None:
    """Measure selection and answers over registered sources, or (`gold`) check the gold queries."""
    config = load_config(options.config, options.overrides)
    questions = _questions(options)
    with _open_sources(options.registry) as sources, ExitStack() as stack:
        _check_sources(options, questions, sources)
        if options.gold:
            _check_gold(options, questions, sources, as_json)
            return
        model = stack.enter_context(_client(config)) if options.judge else None
        for problem in warm(list(sources.values())):
            typer.echo(f"not usable: {problem}", err=True)
        reports = []
        with open_layer(list(sources.values()), config) as engine:
            for question in questions[:WARMUP]:
                engine.ask(question.text, k=options.k)
            for method in dict.fromkeys(options.methods):
                system = build_system(method, engine, k=options.k)
                reports.append(_measured(options, config, method, system, questions, sources, model))
    _show(document(reports, [], _context(options)), [render(report) for report in reports], options, as_json)


def _questions(options: SourceOptions) -> tuple[SourceQuestion, ...]:
    """The questions asked for; records that cannot be used are told, or end it without `skip_bad`."""
    rejects: list[RecordError] | None = [] if options.skip_bad else None
    questions = load_questions(options.questions, options.layout, source=options.source, rejects=rejects)
    if rejects:
        for error in rejects[:REJECTS_SHOWN]:
            typer.echo(f"left out: {error}", err=True)
        typer.echo(f"{len(rejects)} records left out", err=True)
    if options.sample is not None:
        questions = balanced_sample(questions, per_paradigm=options.sample, seed=options.seed)
    return questions[: options.limit]


def _check_sources(options: SourceOptions, questions: Sequence[SourceQuestion], sources: Mapping[str, Source]) -> None:
    """EvaluationError where a gold source is not registered, or speaks another language than its question."""
    missing = unknown_sources(questions, list(sources))
    if missing:
        shown = ", ".join(missing[:8]) + (" …" if len(missing) > 8 else "")
        raise EvaluationError(f"{options.registry}: gold sources are not registered: {shown}; see --source")
    for question in questions:
        language = sources[question.source].language
        if language is not question.paradigm:
            raise EvaluationError(
                f"question {question.question_id} is of the paradigm {question.paradigm}, but its source "
                f"{question.source} is asked in {language}: correct the question or the registration"
            )


@contextmanager
def _open_sources(path: Path) -> Iterator[dict[str, Source]]:
    from helios.sources.registry import Registry

    with Registry.open(path) as registry:
        yield {source.name: source for source in registry.sources()}


def _measured(
    options: SourceOptions,
    config: Config,
    method: Method,
    system: System,
    questions: Sequence[SourceQuestion],
    sources: Mapping[str, Source],
    model: "LlmClient | None",
) -> SourceReport:
    """One method over all questions, resumed from its file where there is one."""
    key = _key(options, config, method)
    file = KeptRows(options.out / f"{method}.jsonl" if options.out else None, key, Outcome.from_json)
    try:
        with _progress(f"{method}", len(questions)) as progress:
            outcomes = run_system(
                system, questions, sources, k=key["k"], threshold=options.threshold, file=file, progress=progress
            )
    finally:
        file.close()
    judged = None if model is None else _judged(model, questions, outcomes, sources, options.seed)
    return summarise(method, outcomes, questions, seed=options.seed, judged=judged, config=key)


def _judged(
    model: "LlmClient",
    questions: Sequence[SourceQuestion],
    outcomes: Sequence[Outcome],
    sources: Mapping[str, Source],
    seed: int,
) -> dict[str, Any]:
    pairs = list(zip(questions, outcomes, strict=True))
    with _progress("judge", len(questions)) as progress:
        verdicts = judge(model, pairs, lambda question: gold_rows(question, sources), progress=progress)
    return judge_report(verdicts, seed=seed) | {"verdicts": {row.question_id: asdict(row) for row in verdicts}}


def _client(config: Config) -> "LlmClient":
    from helios.llm import LlmClient

    return LlmClient.open(config.language_model)


def _check_gold(
    options: SourceOptions, questions: Sequence[SourceQuestion], sources: Mapping[str, Source], as_json: bool
) -> None:
    """Gold queries through the executors; exit code 1 where one does not run or gives other rows."""
    asked = [question for question in questions if question.gold_query is not None]
    with _progress("gold queries", len(asked)) as progress:
        reports = run_gold(asked, sources, progress=progress)
    _show(document([], reports, _context(options)), [render_gold(reports)], options, as_json)
    if any(report.exceptions for report in reports):
        raise typer.Exit(1)


def _show(shown: Mapping[str, Any], tables: Sequence[Any], options: SourceOptions, as_json: bool) -> None:
    text = json.dumps(shown, indent=2, ensure_ascii=False)
    if options.out is not None:
        path = options.out / ("gold.json" if options.gold else NAME)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text.encode())
        except OSError as error:
            raise EvaluationError(f"{path}: cannot be written ({error}); give another --out folder") from None
    if as_json:
        typer.echo(text)
        return
    for table in tables:
        Console().print(table)


def _key(options: SourceOptions, config: Config, method: Method) -> dict[str, Any]:
    """All that the figures of a method depend on, beside the questions themselves."""
    return {
        "method": str(method),
        "k": options.k if method is Method.LAYER else 1,
        "threshold": options.threshold,
        "registry": hashlib.sha256(options.registry.read_bytes()).hexdigest()[:16],
        "settings": {name: config.resolved()[name] for name in ("encoder", "llm", "routing")},
        "commit": code_commit(),
    }


def _context(options: SourceOptions) -> dict[str, Any]:
    return {
        "registry": options.registry.name, "questions": options.questions.name, "layout": str(options.layout),
        "sample": options.sample, "limit": options.limit, "seed": options.seed,
    }  # fmt: skip


@contextmanager
def _progress(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, silent where that is no terminal."""
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(name, total=total)
        yield lambda done: bar.update(task, completed=done)
