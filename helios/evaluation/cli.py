"""`helios eval`: measure an index, and baselines beside it, against questions with known evidence."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from helios.errors import EvaluationError
from helios.evaluation.aggregation import Kind, of_kind
from helios.evaluation.answers import measure_answers, with_answers
from helios.evaluation.baselines import K1, B, Bm25Baseline, DenseBaseline
from helios.evaluation.edges import RankedEdge, ranked_edges
from helios.evaluation.evaluate import EvaluationReport, Search, evaluate
from helios.evaluation.exactness import Exactness, measure_exactness
from helios.evaluation.expansion import Recovery, count_recovered
from helios.evaluation.late_interaction import LateInteraction
from helios.evaluation.questions import Question, read_questions
from helios.evaluation.report import render, to_json
from helios.evaluation.runs import write_qrels, write_run
from helios.evaluation.sources.options import CONFIDENCE, Layout, Method
from helios.evaluation.units import RetrievalUnit
from helios.retrieval.edges import fusion_of

if TYPE_CHECKING:
    from helios.engine import Engine
    from helios.evaluation.ablation.variants import Group
    from helios.graph import Subgraph
    from helios.types import Evidence


class Baseline(StrEnum):
    """Yardsticks that `--baseline` names: a scorer and a retrieval unit."""

    BM25_NODE = "bm25-node"
    BM25_STAR = "bm25-star"
    BM25_EDGE = "bm25-edge"
    DENSE_NODE = "dense-node"
    DENSE_STAR = "dense-star"
    DENSE_EDGE = "dense-edge"

    @property
    def unit(self) -> RetrievalUnit:
        """What this baseline scores as one thing."""
        return RetrievalUnit(self.value.partition("-")[2])


def eval_command(
    questions: Annotated[
        Path, typer.Option("--questions", help="Questions as .jsonl or .jsonl.gz; with --sources see --layout.")
    ],
    index: Annotated[Path | None, typer.Option("--index", help="Folder of the index.")] = None,
    run: Annotated[Path | None, typer.Option("--run", help="Write the ranked lists as a TREC run.")] = None,
    qrels: Annotated[
        Path | None, typer.Option("--qrels", help="Write gold edges as TREC qrels, resolved against the run.")
    ] = None,
    baseline: Annotated[
        list[Baseline] | None, typer.Option("--baseline", help="Measure a baseline too; repeatable.")
    ] = None,
    baselines_only: Annotated[
        bool, typer.Option("--baselines-only", help="Measure the baselines without HELIOS.")
    ] = False,
    unit: Annotated[
        RetrievalUnit | None,
        typer.Option("--unit", help="Late interaction alone over this unit, instead of the whole search."),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--depth", min=1, help="Edges looked at per question.")] = 50,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Only this many questions, from the first.")
    ] = None,
    kind: Annotated[
        Kind | None, typer.Option("--kind", help="Only questions with a superlative or an ordinal, or only the others.")
    ] = None,
    k1: Annotated[float, typer.Option("--bm25-k1", min=0.0, help="BM25's term saturation.")] = K1,
    b: Annotated[float, typer.Option("--bm25-b", min=0.0, max=1.0, help="BM25's length normalisation.")] = B,
    ablate: Annotated[
        str | None,
        typer.Option("--ablate", help="Compare variants: all, or stages,edges,units,beam,prompts."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="With --ablate or --sources: folder for figures by question; resumed."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file with settings that differ.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as section.key=value; repeatable.")
    ] = None,
    exact: Annotated[
        int, typer.Option("--exact", min=0, help="Compare candidates with an exact scan for this many questions.")
    ] = 0,
    recovery: Annotated[
        bool, typer.Option("--recovery", help="Also count gold links that the graph lacks and that expansion finds.")
    ] = False,
    answers: Annotated[
        bool, typer.Option("--answers", help="Also answer every question, and measure EM and F1.")
    ] = False,
    llm: Annotated[
        str | None,
        typer.Option("--llm", metavar="URL", help="Refine and read with the model of this OpenAI-compatible server."),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="With --llm: which model.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the bootstrap intervals.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    per_question: Annotated[
        bool, typer.Option("--per-question", help="With --json: also every question's figures.")
    ] = False,
    sources: Annotated[
        Path | None,
        typer.Option("--sources", metavar="FILE", help="Measure registered sources instead of an index."),
    ] = None,
    layout: Annotated[Layout, typer.Option("--layout", help="With --sources: how the questions are laid out.")] = (
        Layout.PLAIN
    ),
    source: Annotated[
        str | None, typer.Option("--source", help="With --sources: the registered name of the one gold source.")
    ] = None,
    method: Annotated[
        list[Method] | None, typer.Option("--method", help="With --sources: what is measured; repeatable.")
    ] = None,
    candidates: Annotated[
        int, typer.Option("--candidates", min=1, help="With --sources: sources asked per question.")
    ] = 3,
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="With --sources: so many questions of each paradigm.")
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", min=0.0, max=1.0, help="With --sources: from which a query is an answer.")
    ] = CONFIDENCE,
    gold: Annotated[bool, typer.Option("--gold", help="With --sources: check the gold queries alone.")] = False,
    judge: Annotated[bool, typer.Option("--judge", help="With --sources: the language model judges too.")] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="With --sources: leave out records that cannot be used.")
    ] = False,
) -> None:
    """Measure an index, or registered sources, against questions with known evidence."""
    if model and not llm:
        raise typer.BadParameter("--model needs --llm, the address of its server")
    if sources is not None:
        from helios.evaluation.sources.command import SourceOptions, evaluate_sources
        from helios.reading.asking import llm_overrides

        _only_index({
            "--index": index, "--run": run, "--qrels": qrels, "--baseline": baseline, "--unit": unit,
            "--answers": answers, "--ablate": ablate, "--baselines-only": baselines_only, "--exact": exact,
            "--per-question": per_question, "--kind": kind, "--recovery": recovery,
        })  # fmt: skip
        if gold and (method or judge):
            raise typer.BadParameter("--gold runs the gold queries alone: leave out --method and --judge")
        chosen = SourceOptions(
            sources, questions, layout, source, tuple(method or [Method.LAYER]), candidates, sample, limit, seed,
            confidence, gold, judge, skip_bad, out, config, tuple(llm_overrides(llm, model, overrides or ())),
        )  # fmt: skip
        evaluate_sources(chosen, as_json=as_json)
        return
    if index is None:
        raise typer.BadParameter("give --index, the folder of an index, or --sources, a file of sources")
    if layout is not Layout.PLAIN or source or method or sample or gold or judge or skip_bad:
        raise typer.BadParameter(
            "--layout, --source, --method, --sample, --gold, --judge, --skip-bad: only with --sources"
        )
    if baselines_only and not baseline:
        raise typer.BadParameter("--baselines-only needs at least one --baseline")
    if answers and (unit or baselines_only):
        raise typer.BadParameter("--answers reads what the whole search found: leave out --unit and --baselines-only")
    if out is not None and ablate is None:
        raise typer.BadParameter("--out is where --ablate writes: give --ablate too, or --run for a ranked list")
    others = {"--baseline": baseline, "--unit": unit, "--answers": answers, "--exact": exact, "--run": run,
              "--recovery": recovery}  # fmt: skip
    groups = _groups(ablate, others | {"--qrels": qrels, "--per-question": per_question})
    from helios.reading.asking import llm_overrides

    asked = of_kind(read_questions(questions), kind)[:limit]
    if not asked:
        raise EvaluationError(f"{questions} holds no question of kind {kind}: leave out --kind")
    with _open(index, config, llm_overrides(llm, model, overrides or ())) as engine:
        if recovery and not engine.config.expansion.enabled:
            raise typer.BadParameter("--recovery counts what expansion finds: set expansion.enabled=true")
        if groups:
            from helios.evaluation.ablation.command import ablate as run_ablation

            run_ablation(engine, asked, groups, source=questions, depth=k, seed=seed, out=out, as_json=as_json)
            return
        names = ["helios"] * (not baselines_only) + [entry.value for entry in dict.fromkeys(baseline or [])]
        measured = {"index": index.name, "questions": questions.name, "k": k, "seed": seed}
        reports = []
        for name in names:
            settings = measured | ({"unit": unit.value} if name == "helios" and unit else {})
            if name.startswith("bm25"):
                settings |= {"k1": k1, "b": b}
            found: dict[str, Evidence] = {}
            search = _engine_search(engine, unit, k, found) if name == "helios" else _baseline(engine, name, k, k1, b)
            report = _measured(name, search, asked, depth=k, seed=seed, config=settings)
            if answers and name == "helios":
                report = _with_answers(report, engine, asked, found, seed=seed)
            reports.append(report)
            _write_files(reports[-1], asked, run=run, qrels=qrels, several=len(names) > 1)
        exactness = _exactness(engine, asked, exact, seed=seed) if exact else None
        recovered = _recovery(engine, asked) if recovery else None
    if as_json:
        documents = [to_json(report, with_questions=per_question) for report in reports]
        shown = {"systems": documents} | ({"exactness": asdict(exactness)} if exactness else {})
        shown |= {"recovery": asdict(recovered)} if recovered else {}
        typer.echo(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    for report in reports:
        Console().print(render(report))
    if exactness:
        typer.echo(
            f"exact scan of {exactness.questions} questions: of the exact top {exactness.depth} edges by MaxSim, "
            f"{exactness.by_maxsim:.4f} are among {exactness.candidates} candidates by MaxSim's bound, "
            f"{exactness.by_fusion:.4f} by the fused bound, {exactness.in_ranking:.4f} in the search's own top "
            f"{exactness.depth} by MaxSim"
        )
    if recovered:
        typer.echo(
            f"expansion: {recovered.recovered} of the {recovered.missing} gold links that the graph lacks were found "
            f"({recovered.share:.1%}), of {recovered.questions} questions"
        )


def _only_index(given: Mapping[str, object]) -> None:
    """BadParameter for options that measure an index."""
    names = [name for name, value in given.items() if value]
    if names:
        raise typer.BadParameter(f"--sources measures no index: leave out {' and '.join(names)}")


def _groups(ablate: str | None, others: Mapping[str, object]) -> "list[Group]":
    """The groups of an ablation, none without `--ablate`; BadParameter beside options that it has no use for."""
    if ablate is None:
        return []
    from helios.evaluation.ablation.variants import parse_groups

    given = [name for name, value in others.items() if value]
    if given:
        raise typer.BadParameter(f"--ablate compares whole searches: leave out {' and '.join(given)}")
    try:
        return parse_groups(ablate)
    except ValueError as error:
        raise typer.BadParameter(f"--ablate: {error}") from None


def _open(index: Path, config: Path | None, overrides: Sequence[str]) -> "Engine":
    """The engine, imported late: wrong usage and unreadable questions are told without loading models."""
    from helios.engine import Engine

    return Engine.open(index, config=config, overrides=overrides)


def _exactness(engine: "Engine", questions: Sequence[Question], count: int, *, seed: int) -> Exactness:
    """Candidate generation against an exact scan, on a random sample of the questions."""
    chosen = random.Random(seed).sample([question.text for question in questions], min(count, len(questions)))
    settings = engine.config.search
    with Progress(console=Console(stderr=True), disable=not Console(stderr=True).is_terminal) as bar:
        task = bar.add_task("exact scan", total=None)
        return measure_exactness(
            engine.part, engine.encoder, chosen, candidates=settings.candidates,
            fusion=fusion_of(settings),
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip


def _recovery(engine: "Engine", questions: Sequence[Question]) -> Recovery:
    """What expansion adds to what the search has for a question before it."""

    def expand(question: str) -> "Subgraph":
        found = engine.stages.rerank(question, engine.retrieve_edges(question, k=engine.stages.depth))
        return engine.stages.expand(question, found)

    return count_recovered(expand, questions, engine.corpus, engine.graph)


def _engine_search(engine: "Engine", unit: RetrievalUnit | None, k: int, found: "dict[str, Evidence]") -> Search:
    """HELIOS itself, which leaves its evidence in `found`; units other than the edge are for comparison (Table 6)."""
    if unit is None:

        def search(question: str) -> tuple[RankedEdge, ...]:
            found[question] = engine.search(question, k=k)
            return ranked_edges(found[question])

        return search
    units = LateInteraction(engine.part, engine.encoder, unit=unit, threads=engine.threads)
    return lambda question: units.search(question, k=k)


def _with_answers(
    report: EvaluationReport,
    engine: "Engine",
    questions: Sequence[Question],
    found: "dict[str, Evidence]",
    *,
    seed: int,
) -> EvaluationReport:  # fmt: skip
    """The report with EM and F1 of the configured reader over the evidence that was found."""
    from helios.reading.asking import open_reader, read_evidence

    console = Console(stderr=True)
    with (
        open_reader(engine, engine.config) as reader,
        Progress(console=console, disable=not console.is_terminal, transient=True) as bar,
    ):
        task = bar.add_task(f"reading ({reader.name})", total=len(questions))
        results = measure_answers(
            lambda question: read_evidence(engine, reader, found[question]),
            questions,
            progress=lambda done: bar.update(task, completed=done),
        )
    return with_answers(report, results, seed=seed)


def _baseline(engine: "Engine", name: str, k: int, k1: float, b: float) -> Search:
    """A baseline over the corpus and the graph of the index."""
    unit = Baseline(name).unit
    retriever: Bm25Baseline | DenseBaseline
    if name.startswith("bm25"):
        retriever = Bm25Baseline(engine.corpus, engine.graph, unit=unit, k1=k1, b=b)
    else:
        segments, passages = engine.pooled_nodes()
        retriever = DenseBaseline(engine.corpus, engine.graph, segments, passages, engine.pooled_question, unit=unit)
    return lambda question: retriever.search(question, k=k)


def _measured(
    name: str,
    search: Search,
    questions: Sequence[Question],
    *,
    depth: int,
    seed: int,
    config: dict[str, Any],
) -> EvaluationReport:
    """Evaluate with a progress bar on stderr, silent where that is no terminal."""
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(name, total=len(questions))

        def progress(done: int) -> None:
            bar.update(task, completed=done)

        return evaluate(search, questions, name=name, depth=depth, seed=seed, config=config, progress=progress)


def _write_files(
    report: EvaluationReport,
    questions: Sequence[Question],
    *,
    run: Path | None,
    qrels: Path | None,
    several: bool,
) -> None:
    """Run and qrels; with several systems each name carries its system: run.trec, run.bm25-edge.trec."""
    try:
        if run is not None:
            write_run(_named(run, report.name, several), report.run())
        if qrels is not None:
            write_qrels(_named(qrels, report.name, several), questions, report.run())
    except OSError as error:
        raise EvaluationError(f"cannot write {error.filename}: {error.strerror}") from error


def _named(path: Path, name: str, several: bool) -> Path:
    return path.with_name(f"{path.stem}.{name}{path.suffix}") if several and name != "helios" else path
