"""`helios train ...`: recipes that train the models, and what makes their examples."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from training.recipes import ROLES, find_recipe, find_role, load_recipe, recipe_names

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from helios.corpus import CorpusStore
    from helios.models.linker.linker import Linker
    from training.linker_evaluation import LinkingScores
    from training.log import LogRow

RECIPE_HELP = f"A YAML file, or one that comes with HELIOS: {', '.join(recipe_names())}."
app = typer.Typer(help="Train the models that HELIOS ships or that you fine-tune.", no_args_is_help=True)


@app.callback()
def train() -> None:
    """Train the models that HELIOS ships or that you fine-tune."""


def _train_command(role: str) -> Callable[..., None]:
    """The command that trains a role: `helios train ROLE --recipe FILE --out DIR key=value ...`."""

    def train_role(
        out: Annotated[Path, typer.Option(help="Folder for weights, card, checkpoints and log; resumed if it is one.")],
        settings: Annotated[list[str] | None, typer.Argument(help="Settings as section.key=value.")] = None,
        recipe: Annotated[str | None, typer.Option(help=RECIPE_HELP)] = None,
        device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, or auto.")] = "auto",
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    ) -> None:
        from training.distributed import leads, local_device

        found = find_role(role)
        resolved = load_recipe(found.settings, find_recipe(recipe) if recipe else None, settings or [])
        scores = found.train(resolved, out, device=local_device(device), on_log=_echo_row)
        if leads():
            _print_values(scores, as_json=as_json)

    return train_role


def _role_help(role: str, about: str) -> str:
    names = recipe_names()
    recipe = role if role in names else next((name for name in names if name.endswith(role)), "FILE")
    return f"{about}\n\nExample: helios train {role} --recipe {recipe} --out runs/{role} data.index=INDEX ..."


for _role, (_, _about) in ROLES.items():
    app.command(_role, help=_role_help(_role, _about))(_train_command(_role))


def _echo_row(row: "LogRow") -> None:
    values = ", ".join(f"{name} {value:.4g}" for name, value in row.values.items())
    typer.echo(f"step {row.step}, epoch {row.epoch}, {row.seconds:.0f} s: {values}", err=True)


def _print_values(values: Mapping[str, float], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(dict(values), indent=2))
        return
    for name, value in values.items():
        typer.echo(f"{name}: {value:.4f}" if isinstance(value, float) else f"{name}: {value:,}")


@app.command("questions")
def write_questions_command(
    corpus: Annotated[Path, typer.Argument(help="Corpus with hyperlinks: file, folder or corpus store.")],
    splits: Annotated[Path, typer.Option(help="JSON file: split name → list of table ids.")],
    out: Annotated[Path, typer.Option(help="Question file to write, .jsonl or .jsonl.gz.")],
    split: Annotated[str, typer.Option(help="Split whose tables are asked about.")] = "train",
    count: Annotated[int, typer.Option(min=1, help="How many questions.")] = 20_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same file.")] = 13,
) -> None:
    """Make questions of tables and linked passages by templates, with their gold edges.

    Example: helios train questions corpus --splits splits.json --out questions.jsonl.gz
    """
    from training.synthetic import synthesise, write_questions

    tables = _read_splits(splits, split)[split]
    with _folder(None) as folder, _progress("writing") as advance:
        made = synthesise(
            _open_store(corpus, folder),
            tables,
            count=count,
            seed=seed,
            advance=lambda done: advance("questions", done),
        )
        kinds = write_questions(made, out)
    typer.echo(f"{sum(kinds.values()):,} questions in {out}: {', '.join(f'{n:,} {k}' for k, n in kinds.items())}")


@app.command("standalone")
def write_standalone_command(
    questions: Annotated[Path, typer.Argument(help="Question file; train questions only.")],
    corpus: Annotated[Path, typer.Argument(help="Corpus with their tables: file, folder or corpus store.")],
    out: Annotated[Path, typer.Option(help="Question file to write, .jsonl or .jsonl.gz.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same file.")] = 13,
) -> None:
    """Tell questions that were asked before a table which table that is.

    Example: helios train standalone questions.jsonl corpus --out standalone.jsonl
    """
    from helios.evaluation.questions import read_questions, read_records
    from training.question_file import write_records
    from training.standalone import stand_alone_records

    read_questions(questions)
    with _folder(None) as folder:
        store = _open_store(corpus, folder)
        records = (record for _, record in read_records(questions))
        count = write_records(stand_alone_records(records, store, seed=seed), out)
    typer.echo(f"{count:,} questions in {out}")


@app.command("examples")
def mine_examples_command(
    index: Annotated[Path, typer.Argument(help="Index to search.")],
    questions: Annotated[list[Path], typer.Option(help="Question files; train questions only. Repeat for several.")],
    out: Annotated[Path, typer.Option(help="Folder for the examples; a stopped run goes on there.")],
    depth: Annotated[int, typer.Option(min=1, help="Edges searched for a question.")] = 100,
    threads: Annotated[int, typer.Option(min=1, help="Questions searched at the same time.")] = 1,
    settings: Annotated[list[str] | None, typer.Option("--set", help="Setting of the engine, search.k=20.")] = None,
) -> None:
    """Find hard negatives for questions with the engine itself.

    Example: helios train examples my-index --questions train.jsonl --out examples
    """
    from helios.engine import Engine
    from helios.evaluation.questions import read_questions
    from training.examples import mine_examples

    asked = [question for path in questions for question in read_questions(path)]
    with Engine.open(index, overrides=settings or [], threads=1) as engine, _progress("mining") as advance:
        store = mine_examples(
            engine, asked, out, depth=depth, threads=threads, advance=lambda done: advance("questions", done)
        )
    typer.echo(f"{len(store):,} examples of {len(asked):,} questions in {out}")


@app.command("instructions")
def write_instructions_command(
    index: Annotated[Path, typer.Argument(help="Index whose corpus the examples are of.")],
    examples: Annotated[list[Path], typer.Option(help="Folder of `helios train examples`. Repeat for several.")],
    out: Annotated[Path, typer.Option(help="JSON-lines file to write.")],
    stars: Annotated[int, typer.Option(min=0, help="Stars verified for a question.")] = 4,
    seed: Annotated[int, typer.Option(help="The same seed gives the same file.")] = 13,
) -> None:
    """Write instruction data for the language model of star-based refinement.

    Example: helios train instructions my-index --examples examples --out slr.jsonl
    """
    from helios.engine import Engine
    from training.examples import ExampleStore
    from training.slr_lessons import instructions, write_instructions

    with Engine.open(index, threads=1) as engine:
        mined = [example for folder in examples for example in ExampleStore.open(folder, engine.corpus)]
        tasks = write_instructions(instructions(mined, engine.corpus, stars=stars, seed=seed), out)
    typer.echo(f"{sum(tasks.values()):,} instructions in {out}: {', '.join(f'{n:,} {t}' for t, n in tasks.items())}")


@app.command("linker")
def train_linker_command(
    corpus: Annotated[Path, typer.Argument(help="Corpus with hyperlinks: file, folder or corpus store.")],
    splits: Annotated[Path, typer.Option(help="JSON file: split name → list of table ids.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the trained weights.")] = None,
    train_split: Annotated[str, typer.Option(help="Split to train on.")] = "train",
    evaluate: Annotated[str | None, typer.Option(help="Split to measure on afterwards.")] = None,
    questions: Annotated[
        Path | None, typer.Option(help="Questions whose gold edges are looked up in the predicted graph.")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="Only measure these weights (without --out: the shipped ones).")
    ] = None,
    workdir: Annotated[Path | None, typer.Option(help="Folder for intermediate files, kept.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the recipe.")] = 13,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train the linker on hyperlinks, or measure one: without --out nothing is trained.

    Example: helios train linker corpus --splits splits.json --out linker
    """
    from helios.models.linker.linker import Linker

    if out is None and evaluate is None:
        raise typer.BadParameter("give --out to train, --evaluate to measure, or both", param_hint="--out")
    names = _read_splits(splits, train_split if out else None, evaluate)
    with _folder(workdir) as folder:
        store = _open_store(corpus, folder)
        if out is None:
            linker = Linker.load(weights)
        else:
            linker = _train_linker(store, names[train_split], out, folder / "training", seed)
        if evaluate:
            _print_scores(_measure(store, linker, names[evaluate], questions, folder), as_json=as_json)


def _train_linker(store: "CorpusStore", tables: list[str], out: Path, workdir: Path, seed: int) -> "Linker":
    """Only training needs LightGBM: a linker is measured without the extra `train`."""
    from helios.extras import installation
    from training.errors import TrainingError

    try:
        from training.linker import LinkerRecipe, train_linker
    except ModuleNotFoundError as error:
        raise TrainingError(
            f"training a linker needs {error.name!r}, which is not installed: {installation(error.name or '')}"
        ) from error
    with _progress("training") as advance:
        return train_linker(store, tables, out, workdir=workdir, recipe=LinkerRecipe(seed=seed), advance=advance)


def _measure(
    store: "CorpusStore", linker: "Linker", tables: list[str], questions: Path | None, folder: Path
) -> "LinkingScores":
    from training.linker_evaluation import evaluate_linker

    prepared = linker.prepare(store, folder / "candidates")
    with _progress("measuring") as advance:
        return evaluate_linker(
            store, prepared, tables, questions=questions, advance=lambda done: advance("tables", done)
        )


def _read_splits(path: Path, *wanted: str | None) -> dict[str, list[str]]:
    try:
        splits = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{path}: {error}", param_hint="--splits") from error
    missing = [name for name in wanted if name and name not in splits]
    if missing:
        raise typer.BadParameter(f"{path} has no split {missing[0]!r}, only {sorted(splits)}", param_hint="--splits")
    return {str(name): list(ids) for name, ids in splits.items()}


def _open_store(corpus: Path, folder: Path) -> "CorpusStore":
    from helios.corpus import CorpusStore, CorpusWriter, read_corpus
    from helios.corpus.layout import MANIFEST

    if (corpus / MANIFEST).is_file():
        return CorpusStore.open(corpus)
    if not (folder / "corpus" / MANIFEST).is_file():
        with CorpusWriter(folder / "corpus") as writer:
            for record in read_corpus(corpus):
                writer.add(record)
    return CorpusStore.open(folder / "corpus")


@contextmanager
def _folder(path: Path | None) -> Iterator[Path]:
    if path is not None:
        path.mkdir(parents=True, exist_ok=True)
        yield path
        return
    with TemporaryDirectory(prefix="helios-train-") as name:
        yield Path(name)


@contextmanager
def _progress(title: str) -> Iterator["_Advance"]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        yield _Advance(progress, title)


class _Advance:
    """One progress line per stage, made when the stage starts."""

    def __init__(self, progress: "Progress", title: str) -> None:
        self._progress = progress
        self._title = title
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(f"{self._title}: {stage}", total=None)
        self._progress.advance(self._tasks[stage], done)


def _print_scores(scores: "LinkingScores", *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(scores.as_dict(), indent=2))
        return
    typer.echo(
        f"tables {scores.tables:,}, gold edges {scores.gold_edges:,}; at threshold {scores.threshold:.4f}: "
        f"recall {scores.recall:.4f}, {scores.edges_per_gold:.2f} edges per gold edge, "
        f"precision {scores.precision:.4f}, recall of (row, column, passage) {scores.cell_recall:.4f}"
    )
    for budget, recall in scores.recall_at.items():
        least = scores.threshold_at[budget]
        typer.echo(f"at {budget} edges per gold edge: recall {recall:.4f} (threshold {least:.4f})")
    if scores.question_recall_at is not None:
        typer.echo(f"gold edges of questions {scores.question_edges:,}: {scores.question_recall:.4f} predicted")
        for budget, recall in scores.question_recall_at.items():
            typer.echo(f"at {budget} edges per gold edge: {recall:.4f} of the questions' gold edges")
