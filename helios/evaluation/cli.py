"""`helios eval`: measure an index, or registered sources, against questions with known evidence.

retrieval   ranked lists: AR@k, nDCG, table recall, latency; baselines beside them
answers     EM and F1 of the answers that are read from them
folders     right and wrong answers about people's own folders
documents   collections of documents alone, beside BM25
ablate      the search against variants of itself
load        many questions at once: the same results, questions a second, memory
sources     databases, graphs and corpora behind the routing layer
augment     questions that are rows of a database, with what it says of them
"""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from helios.errors import EvaluationError
from helios.evaluation.aggregation import Kind, of_kind
from helios.evaluation.augment.cli import augment
from helios.evaluation.baselines import K1, B
from helios.evaluation.questions import Question, read_questions
from helios.evaluation.sources.options import CONFIDENCE, Layout, Method
from helios.evaluation.units import RetrievalUnit

if TYPE_CHECKING:
    from helios.engine import Engine
    from helios.evaluation.edges import RankedEdge
    from helios.evaluation.evaluate import EvaluationReport, Search
    from helios.evaluation.exactness import Exactness
    from helios.evaluation.expansion import Recovery
    from helios.llm.budget import Budget
    from helios.types import Evidence

app = typer.Typer(
    name="eval", no_args_is_help=True, add_completion=False, rich_markup_mode="rich",
    help="Measure an index, or registered sources, against questions with known evidence.",
)  # fmt: skip

app.command()(augment)

Index = Annotated[Path, typer.Option("--index", "-i", help="Folder of the index.")]
Questions = Annotated[Path, typer.Option("--questions", help="Questions as .jsonl or .jsonl.gz.")]
Depth = Annotated[int, typer.Option("-k", "--depth", min=1, help="Edges looked at per question.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only this many questions, from the first.")]
OfKind = Annotated[
    Kind | None, typer.Option("--kind", help="Only questions with a superlative or an ordinal, or only the others.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of samples and of bootstrap intervals.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="YAML file with settings that differ.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="A setting, as section.key=value; repeatable.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
PerQuestion = Annotated[bool, typer.Option("--per-question", help="With --json: also every question's figures.")]
Llm = Annotated[
    str | None,
    typer.Option("--llm", metavar="URL", help="Refine and read with the model of this OpenAI-compatible server."),
]
Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="With --llm: which model.")]


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


@app.command()
def retrieval(
    index: Index,
    questions: Questions,
    run: Annotated[Path | None, typer.Option("--run", help="Write the ranked lists as a TREC run.")] = None,
    qrels: Annotated[
        Path | None, typer.Option("--qrels", help="Write gold edges as TREC qrels, resolved against the run.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option("--against", help="A TREC run to compare with, question by question.")
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
    exact: Annotated[
        int, typer.Option("--exact", min=0, help="Compare candidates with an exact scan for this many questions.")
    ] = 0,
    recovery: Annotated[
        bool, typer.Option("--recovery", help="Also count gold links that the graph lacks and that expansion finds.")
    ] = False,
    reliability: Annotated[
        bool,
        typer.Option("--reliability", help="Also compare the probabilities of edges with how often they are gold."),
    ] = False,
    k1: Annotated[float, typer.Option("--bm25-k1", min=0.0, help="BM25's term saturation.")] = K1,
    b: Annotated[float, typer.Option("--bm25-b", min=0.0, max=1.0, help="BM25's length normalisation.")] = B,
    k: Depth = 50,
    limit: Limit = None,
    kind: OfKind = None,
    seed: Seed = 0,
    config: ConfigFile = None,
    overrides: Overrides = None,
    llm: Llm = None,
    model: Model = None,
    as_json: AsJson = False,
    per_question: PerQuestion = False,
) -> None:
    """Rank the evidence of every question, and measure the ranked lists.

    Example: helios eval retrieval --index demo-index --questions questions.jsonl --run run.trec
    """
    if baselines_only and not baseline:
        raise typer.BadParameter("--baselines-only needs at least one --baseline")
    if reliability and (baselines_only or unit):
        raise typer.BadParameter("--reliability is of the whole search: leave out --baselines-only and --unit")
    from helios.evaluation.compare import compared
    from helios.evaluation.reliability import Reliability, measure_reliability
    from helios.evaluation.report import render, to_json

    settings, asked = _with_model(llm, model, overrides), _asked(questions, kind, limit)
    documents: dict[str, Any] = {}
    with _open(index, config, settings) as engine:
        if recovery and not (engine.config.expansion.enabled and engine.config.advanced.expansion.beam):
            raise typer.BadParameter(
                "--recovery counts what expansion finds: set expansion.enabled=true and a beam above 0"
            )
        found: dict[str, Evidence] = {}
        names = ["helios"] * (not baselines_only) + [entry.value for entry in dict.fromkeys(baseline or [])]
        measured = {"index": index.name, "questions": questions.name, "k": k, "seed": seed}
        reports = []
        for name in names:
            about = measured | ({"unit": unit.value} if name == "helios" and unit else {})
            if name.startswith("bm25"):
                about |= {"k1": k1, "b": b}
            search = _engine_search(engine, unit, k, found) if name == "helios" else _baseline(engine, name, k, k1, b)
            warmup = _warmup(engine)
            reports.append(_measured(name, search, asked, depth=k, seed=seed, config=about, warmup=warmup))
            _write_files(reports[-1], asked, run=run, qrels=qrels, several=len(names) > 1)
        differences = compared(reports[0], asked, against, engine.corpus, depth=k, seed=seed) if against else ()
        exactness = _exactness(engine, asked, exact, seed=seed) if exact else None
        recovered = _recovery(engine, asked) if recovery else None
        reliable: Reliability | None = measure_reliability(asked, found) if reliability else None
    if as_json:
        documents["systems"] = [to_json(report, with_questions=per_question) for report in reports]
        parts = {"exactness": exactness, "recovery": recovered, "reliability": reliable}
        documents |= {name: asdict(part) for name, part in parts.items() if part}
        documents |= {"differences": [asdict(one) for one in differences]} if differences else {}
        typer.echo(json.dumps(documents, indent=2, ensure_ascii=False))
        return
    for report in reports:
        Console().print(render(report))
    for one in differences:
        typer.echo(f"{one.name:>16}  {100 * one.mean:+.1f}  ({100 * one.low:+.1f} to {100 * one.high:+.1f})")
    for line in (*_told_exactness(exactness), *_told_recovery(recovered)):
        typer.echo(line)
    if reliable:
        Console().print(reliable.table())


@app.command()
def answers(
    index: Index,
    questions: Questions,
    k: Depth = 50,
    limit: Limit = None,
    kind: OfKind = None,
    seed: Seed = 0,
    config: ConfigFile = None,
    overrides: Overrides = None,
    llm: Llm = None,
    model: Model = None,
    as_json: AsJson = False,
    per_question: PerQuestion = False,
) -> None:
    """Answer every question, and measure EM and F1 beside the ranked lists.

    Example: helios eval answers --index demo-index --questions questions.jsonl
    """
    from helios.evaluation.answers import measure_answers, with_answers
    from helios.evaluation.edges import ranked_edges
    from helios.evaluation.report import render, to_json
    from helios.reading.asking import find_evidence, read_evidence

    settings, asked = _with_model(llm, model, overrides), _asked(questions, kind, limit)
    found: dict[str, tuple[Evidence, Budget | None]] = {}
    with _open(index, config, settings) as engine:
        about = {"index": index.name, "questions": questions.name, "k": k, "seed": seed}
        reader = engine.reader

        def search(question: str) -> "tuple[RankedEdge, ...]":
            found[question] = find_evidence(engine, reader, question, k=k)
            return ranked_edges(found[question][0])

        report = _measured("helios", search, asked, depth=k, seed=seed, config=about, warmup=_warmup(engine))
        results = _with_progress(
            f"reading ({reader.name})",
            len(asked),
            lambda progress: measure_answers(
                lambda question: read_evidence(engine, reader, found[question][0], budget=found[question][1]),
                asked,
                progress=progress,
            ),
        )
    report = with_answers(report, results, seed=seed)
    if as_json:
        typer.echo(
            json.dumps({"systems": [to_json(report, with_questions=per_question)]}, indent=2, ensure_ascii=False)
        )
    else:
        Console().print(render(report))


@app.command()
def folders(
    worlds: Annotated[Path, typer.Argument(metavar="FOLDERS", help="Folders with files/ and questions.jsonl each.")],
    indexes: Annotated[Path, typer.Option("--indexes", help="Folder with an index of each folder's files, by name.")],
    world: Annotated[list[str] | None, typer.Option("--world", help="Only these folders; repeatable.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write every question's outcome, as JSON lines.")
    ] = None,
    config: ConfigFile = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Ask indexes of people's folders their questions: right, wrong and refused answers, by folder and by kind.

    Example: helios eval folders benchmarks/folders --indexes runs/folders --world shop
    """
    from helios.evaluation.folders import Outcome, measure_folder, outcome_record, read_folder_questions, report
    from helios.evaluation.report import folder_tables

    names = world or sorted(path.parent.name for path in worlds.glob("*/questions.jsonl"))
    if not names:
        raise EvaluationError(f"{worlds}: no folder here has a questions.jsonl")
    outcomes: list[Outcome] = []
    for name in names:
        asked = read_folder_questions(worlds / name / "questions.jsonl")
        with _open(indexes / name, config, overrides or []) as engine:
            outcomes += _with_progress(
                name,
                len(asked),
                lambda progress: measure_folder(engine, name, asked, progress=progress),  # noqa: B023
            )
    if out is not None:
        lines = (json.dumps(outcome_record(one), ensure_ascii=False) for one in outcomes)
        out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = report(outcomes)
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        for table in folder_tables(found):
            Console().print(table)


@app.command()
def documents(
    collections: Annotated[
        Path, typer.Argument(metavar="COLLECTIONS", help="Folders with corpus/, queries.jsonl and qrels/ each.")
    ],
    indexes: Annotated[Path, typer.Option("--indexes", help="Folder with an index of each corpus/, by name.")],
    name: Annotated[list[str] | None, typer.Option("--name", help="Only these collections; repeatable.")] = None,
    split: Annotated[str, typer.Option("--split", help="Which judgements: the file qrels/SPLIT.tsv.")] = "test",
    k1: Annotated[float, typer.Option("--bm25-k1", min=0.0, help="BM25's term saturation.")] = K1,
    b: Annotated[float, typer.Option("--bm25-b", min=0.0, max=1.0, help="BM25's length normalisation.")] = B,
    limit: Limit = None,
    seed: Seed = 0,
    config: ConfigFile = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Find the documents of collections of text: nDCG@10 beside that of BM25 in the same run.

    Example: helios eval documents collections --indexes runs/collections --name scifact
    """
    from helios.evaluation.documents import CollectionReport, measure_collection, read_collection
    from helios.evaluation.report import collections_table

    names = name or sorted(path.parent.name for path in collections.glob("*/qrels"))
    if not names:
        raise EvaluationError(f"{collections}: no folder here has qrels/")
    found: list[CollectionReport] = []
    for one in names:
        asked = read_collection(collections / one, split=split)[:limit]
        with _open(indexes / one, config, overrides or []) as engine:
            found.append(
                _with_progress(
                    one,
                    len(asked),
                    lambda progress: measure_collection(engine, one, asked, k1=k1, b=b, seed=seed, progress=progress),  # noqa: B023
                )
            )
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=2, ensure_ascii=False))
    else:
        Console().print(collections_table(found))


@app.command()
def ablate(
    index: Index,
    questions: Questions,
    groups: Annotated[str, typer.Argument(help="all, or some of stages,edges,units,beam,prompts.")] = "stages",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for figures by question; a run that stopped goes on.")
    ] = None,
    k: Depth = 50,
    limit: Limit = None,
    kind: OfKind = None,
    seed: Seed = 0,
    config: ConfigFile = None,
    overrides: Overrides = None,
    llm: Llm = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Compare the search with variants of itself: without a stage, with other units, beams or prompts.

    Example: helios eval ablate --index demo-index --questions questions.jsonl --limit 100
    """
    from helios.evaluation.ablation.command import ablate as run_ablation
    from helios.evaluation.ablation.variants import parse_groups

    try:
        chosen = parse_groups(groups)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    settings, asked = _with_model(llm, model, overrides), _asked(questions, kind, limit)
    with _open(index, config, settings) as engine:
        run_ablation(engine, asked, chosen, source=questions, depth=k, seed=seed, out=out, as_json=as_json)


@app.command()
def load(
    index: Index,
    questions: Questions,
    clients: Annotated[str, typer.Option("--clients", help="Numbers of threads that ask at the same time.")] = "1,8,16",
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Times that the questions are asked in all.")] = 1,
    k: Depth = 50,
    limit: Limit = 100,
    kind: OfKind = None,
    config: ConfigFile = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Ask from many threads at once: results against those of one, questions a second, latency, memory.

    Example: helios eval load --index demo-index --questions questions.jsonl
    """
    from helios.evaluation.load import measure_load

    try:
        counts = [int(count) for count in clients.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise typer.BadParameter("--clients expects whole numbers with commas, such as 1,8,16")
    asked = [question.text for question in _asked(questions, kind, limit)] * repeat
    report = _with_progress(
        "asking",
        len(asked) * len(counts),
        lambda progress: measure_load(
            lambda: _open(index, config, overrides or ()), asked, counts, k=k, progress=progress
        ),
    )
    if as_json:
        typer.echo(json.dumps(asdict(report), indent=2))
    else:
        Console().print(report.table())


@app.command()
def sources(
    registry: Annotated[Path, typer.Option("--sources", metavar="FILE", help="The registered sources.")],
    questions: Annotated[Path, typer.Option("--questions", help="Questions; see --layout.")],
    layout: Annotated[Layout, typer.Option("--layout", help="How the questions are laid out.")] = Layout.PLAIN,
    source: Annotated[str | None, typer.Option("--source", help="The registered name of the one gold source.")] = None,
    method: Annotated[list[Method] | None, typer.Option("--method", help="What is measured; repeatable.")] = None,
    candidates: Annotated[int, typer.Option("--candidates", min=1, help="Sources asked per question.")] = 3,
    sample: Annotated[int | None, typer.Option("--sample", min=1, help="So many questions of each paradigm.")] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", min=0.0, max=1.0, help="From which a query is an answer.")
    ] = CONFIDENCE,
    gold: Annotated[bool, typer.Option("--gold", help="Check the gold queries alone.")] = False,
    judge: Annotated[bool, typer.Option("--judge", help="The language model judges too.")] = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out records that cannot be used.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for figures by question; a run that stopped goes on.")
    ] = None,
    limit: Limit = None,
    seed: Seed = 0,
    config: ConfigFile = None,
    overrides: Overrides = None,
    llm: Llm = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Measure which sources are asked, and what they answer.

    Example: helios eval sources --sources helios-sources.yaml --questions questions.jsonl
    """
    from helios.evaluation.sources.command import SourceOptions, evaluate_sources

    if gold and (method or judge):
        raise typer.BadParameter("--gold runs the gold queries alone: leave out --method and --judge")
    chosen = SourceOptions(
        registry, questions, layout, source, tuple(method or [Method.LAYER]), candidates, sample, limit, seed,
        confidence, gold, judge, skip_bad, out, config, tuple(_with_model(llm, model, overrides)),
    )  # fmt: skip
    evaluate_sources(chosen, as_json=as_json)


def _asked(questions: Path, kind: Kind | None, limit: int | None) -> list[Question]:
    """The questions that are meant; EvaluationError for none."""
    asked = list(of_kind(read_questions(questions), kind)[:limit])
    if not asked:
        raise EvaluationError(f"{questions} holds no question of kind {kind}: leave out --kind")
    return asked


def _with_model(llm: str | None, model: str | None, overrides: Sequence[str] | None) -> list[str]:
    """The settings with those of `--llm`."""
    if model and not llm:
        raise typer.BadParameter("--model needs --llm, the address of its server")
    from helios.reading.asking import llm_overrides

    return llm_overrides(llm, model, overrides or ())


def _open(index: Path, config: Path | None, overrides: Sequence[str]) -> "Engine":
    """The engine, imported late: wrong usage and unreadable questions are told without loading models."""
    from helios.engine import Engine

    return Engine.open(index, config=config, overrides=overrides)


def _exactness(engine: "Engine", questions: Sequence[Question], count: int, *, seed: int) -> "Exactness":
    """Candidate generation against an exact scan, on a random sample of the questions."""
    from helios.evaluation.exactness import measure_exactness

    chosen = random.Random(seed).sample([question.text for question in questions], min(count, len(questions)))
    with Progress(console=Console(stderr=True), disable=not Console(stderr=True).is_terminal) as bar:
        task = bar.add_task("exact scan", total=None)
        return measure_exactness(
            engine, chosen, progress=lambda done, total: bar.update(task, completed=done, total=total)
        )


def _recovery(engine: "Engine", questions: Sequence[Question]) -> "Recovery":
    """What expansion adds to what the search has for a question before it."""
    from helios.evaluation.expansion import count_recovered, until_expanded

    return count_recovered(lambda question: until_expanded(engine, question), questions, engine.corpus, engine.graph)


def _engine_search(engine: "Engine", unit: RetrievalUnit | None, k: int, found: "dict[str, Evidence]") -> "Search":
    """HELIOS itself, which leaves its evidence in `found`; units other than the edge are for comparison (Table 6)."""
    from helios.evaluation.edges import ranked_edges
    from helios.evaluation.late_interaction import LateInteraction

    if unit is None:

        def search(question: str) -> "tuple[RankedEdge, ...]":
            found[question] = engine.search(question, k=k)
            return ranked_edges(found[question])

        return search
    units = LateInteraction(engine, unit=unit)
    return lambda question: units.search(question, k=k)


def _baseline(engine: "Engine", name: str, k: int, k1: float, b: float) -> "Search":
    """A baseline over the corpus and the graph of the index."""
    from helios.evaluation.baselines import Bm25Baseline, DenseBaseline

    unit = Baseline(name).unit
    retriever: Bm25Baseline | DenseBaseline
    if name.startswith("bm25"):
        retriever = Bm25Baseline(engine.corpus, engine.graph, unit=unit, k1=k1, b=b)
    else:
        segments, passages = engine.index.pooled_nodes()
        retriever = DenseBaseline(engine.corpus, engine.graph, segments, passages, engine.pooled_question, unit=unit)
    return lambda question: retriever.search(question, k=k)


def _measured(
    name: str, search: "Search", questions: Sequence[Question], *, depth: int, seed: int, config: dict[str, Any],
    warmup: int,
) -> "EvaluationReport":  # fmt: skip
    from helios.evaluation.evaluate import evaluate

    report: EvaluationReport = _with_progress(
        name,
        len(questions),
        lambda progress: evaluate(
            search, questions, name=name, depth=depth, warmup=warmup, seed=seed, config=config, progress=progress
        ),
    )
    return report


def _warmup(engine: "Engine") -> int:
    """Questions that are asked once before the clock runs: none where a language model would be paid for it."""
    return 0 if engine.config.refinement.mode == "llm" else 3


def _with_progress(what: str, total: int, work: Callable[[Callable[[int], None]], Any]) -> Any:
    """Do some work with a progress bar on stderr, silent where that is no terminal."""
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(what, total=total)
        return work(lambda done: bar.update(task, completed=done))


def _write_files(
    report: "EvaluationReport", questions: Sequence[Question], *, run: Path | None, qrels: Path | None, several: bool
) -> None:
    """Run and qrels; with several systems each name carries its system: run.trec, run.bm25-edge.trec."""
    from helios.evaluation.runs import write_qrels, write_run

    try:
        if run is not None:
            write_run(_named(run, report.name, several), report.run())
        if qrels is not None:
            write_qrels(_named(qrels, report.name, several), questions, report.run())
    except OSError as error:
        raise EvaluationError(f"cannot write {error.filename}: {error.strerror}") from error


def _named(path: Path, name: str, several: bool) -> Path:
    return path.with_name(f"{path.stem}.{name}{path.suffix}") if several and name != "helios" else path


def _told_exactness(found: "Exactness | None") -> list[str]:
    if found is None:
        return []
    return [
        f"exact scan of {found.questions} questions: of the exact top {found.depth} edges by MaxSim, "
        f"{found.by_maxsim:.4f} are among {found.candidates} candidates by MaxSim's bound, "
        f"{found.by_fusion:.4f} by the fused bound, {found.in_ranking:.4f} in the search's own top "
        f"{found.depth} by MaxSim"
    ]


def _told_recovery(found: "Recovery | None") -> list[str]:
    if found is None:
        return []
    return [
        f"expansion: {found.recovered} of the {found.missing} gold links that the graph lacks were found "
        f"({found.share:.1%}), of {found.questions} questions"
    ]
