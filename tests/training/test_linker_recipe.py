"""The whole recipe on a small made-up league: abbreviations can only be learned from hyperlinks."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.corpus import CorpusStore, CorpusWriter
from helios.errors import CorpusError
from helios.models.linker import Linker, TableLinker
from helios.models.linker.recognition import Recogniser
from helios.types import Hyperlink, Passage, Table
from training.cli import app
from training.linker import LinkerRecipe, train_linker
from training.linker_evaluation import evaluate_linker
from training.linker_lessons import align, lessons, merge_lessons

FIRST = ["Ada", "Bo", "Cleo", "Dag", "Eva", "Finn", "Gro", "Hal", "Ida", "Jon", "Kai", "Liv"]
LAST = ["Almqvist", "Berget", "Carstens", "Dahl", "Ekholm", "Fossum", "Granli", "Hovden", "Isdal"]
POSITIONS = {"DF": "Defender (association football)", "GK": "Goalkeeper", "FW": "Forward (football)"}
CLUBS = ["Rovdal", "Storvik", "Tangen", "Ulvsund"]
RECIPE = LinkerRecipe(
    folds=2, first_share=0.4, second_share=0.4, threshold_share=0.2, first_rounds=30, second_rounds=60
)


def league() -> tuple[list[Table], list[Passage]]:
    passages = [Passage(f"pos-{code}", title, f"A role in a team , {title} .") for code, title in POSITIONS.items()]
    passages += [Passage(f"club-{name}", f"{name} F.K.", f"{name} is a football club .") for name in CLUBS]
    people = [f"{first} {last}" for first in FIRST for last in LAST]
    passages += [Passage(f"person-{n}", name, f"{name} is a footballer .") for n, name in enumerate(people)]
    passages += [Passage(f"town-{name}", name, f"{name} is a town by the sea .") for name in CLUBS]
    tables = []
    for number in range(24):
        rows, links = [], []
        for row in range(12):
            person = (number * 7 + row * 5) % len(people)
            code = list(POSITIONS)[(number + row) % 3]
            club = CLUBS[(number * 3 + row) % 4]
            rows.append((str(row + 1), people[person], code, club, "unknown"))
            links += [
                Hyperlink(row, 1, f"person-{person}"),
                Hyperlink(row, 2, f"pos-{code}"),
                Hyperlink(row, 3, f"club-{club}"),
            ]
        header = ("No", "Player", "Pos", "Club", "Notes")
        tables.append(
            Table(f"t{number}", f"Season {number} of the league", header, tuple(rows), hyperlinks=tuple(links))
        )
    return tables, passages


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> CorpusStore:
    folder = tmp_path_factory.mktemp("league")
    tables, passages = league()
    with CorpusWriter(folder) as writer:
        for record in (*tables, *passages):
            writer.add(record)
    return CorpusStore.open(folder)


@pytest.fixture(scope="module")
def trained(store: CorpusStore, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TableLinker]:
    folder = tmp_path_factory.mktemp("trained")
    linker = train_linker(
        store, [f"t{n}" for n in range(20)], folder / "weights", workdir=folder / "work", recipe=RECIPE
    )
    return folder / "weights", linker.prepare(store, folder / "candidates")


def test_abbreviations_are_learned_from_hyperlinks(store: CorpusStore, trained: tuple[Path, TableLinker]) -> None:
    _, linker = trained
    scores = evaluate_linker(store, linker, ["t20", "t21", "t22", "t23"])
    assert scores.recall_at["1.0"] > 0.95
    table = store.tables[22]
    links = linker.link(table, threshold=0.2)
    titles = {
        (int(row), int(column)): store.passages[int(passage)].title
        for row, column, passage in zip(links.rows, links.columns, links.passages, strict=True)
    }
    assert titles[0, 2] == POSITIONS[table.rows[0][2]]
    assert titles[0, 3] == f"{table.rows[0][3]} F.K."
    assert not {column for _, column in titles} & {0, 4}


def test_the_same_seed_gives_the_same_bytes(
    store: CorpusStore, trained: tuple[Path, TableLinker], tmp_path: Path
) -> None:
    weights, _ = trained
    names = [f"t{n}" for n in range(20)]
    train_linker(store, names, tmp_path / "again", workdir=tmp_path / "work", recipe=RECIPE)
    for path in sorted(weights.iterdir()):
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes(), path.name


def test_saved_weights_link_as_the_trained_ones(
    store: CorpusStore, trained: tuple[Path, TableLinker], tmp_path: Path
) -> None:
    weights, linker = trained
    loaded = Linker.load(weights).prepare(store, tmp_path / "candidates")
    table = store.tables[21]
    assert loaded.link(table).scores.tolist() == linker.link(table).scores.tolist()


def test_training_without_known_tables_is_refused(store: CorpusStore, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="none of the 1 training tables"):
        train_linker(store, ["absent"], tmp_path / "out", workdir=tmp_path / "work")


def test_command_measures_weights(store: CorpusStore, trained: tuple[Path, TableLinker], tmp_path: Path) -> None:
    weights, _ = trained
    splits, questions = tmp_path / "splits.json", tmp_path / "questions.jsonl"
    splits.write_text(json.dumps({"train": ["t0"], "dev": ["t22"]}))
    passage = store.tables[22].hyperlinks[0].passage_id
    questions.write_text(
        json.dumps({"table": "t22", "gold": [{"cell": [0, 1], "passage": passage}, {"cell": [0, 4]}]}) + "\n"
    )
    arguments = ["linker", str(store.directory), "--splits", str(splits), "--weights", str(weights)]
    arguments += ["--evaluate", "dev", "--questions", str(questions), "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    scores = json.loads(result.stdout)
    assert scores["gold_edges"] == 36
    assert scores["question_edges"] == 1
    assert scores["question_recall_at"]["2.0"] == 1.0


def test_unknown_split_is_wrong_usage(store: CorpusStore, tmp_path: Path) -> None:
    splits = tmp_path / "splits.json"
    splits.write_text(json.dumps({"train": []}))
    arguments = ["linker", str(store.directory), "--splits", str(splits), "--evaluate", "dev"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "no split 'dev'" in result.output


def test_a_command_that_would_do_nothing_is_wrong_usage(store: CorpusStore, tmp_path: Path) -> None:
    arguments = ["linker", str(store.directory), "--splits", str(tmp_path / "splits.json")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "--evaluate" in result.output


@pytest.mark.parametrize(
    ("text", "titles", "pairs"),
    [
        ("DF", ["Defender"], [("df", "Defender")]),
        ("Perth ( AUS )", ["Perth", "Australia"], [("perth", "Perth"), ("aus", "Australia")]),
        ("Vera Lund VEN", ["Vera Lund", "Venezuela"], [("vera lund", "Vera Lund"), ("ven", "Venezuela")]),
        ("ENG , SCO", ["England", "Scotland"], [("eng", "England"), ("sco", "Scotland")]),
        ("Growl", ["Growl (Exo song)"], [("growl", "Growl (Exo song)")]),
        ("one , two , three", ["Alpha", "Beta"], []),
        ("", [], []),
    ],
)
def test_align(text: str, titles: list[str], pairs: list[tuple[str, str]]) -> None:
    cell = Recogniser().recognise([text])[0]
    assert align(cell, titles) == pairs


def test_lessons_count_a_table_once_and_learn_what_is_not_linked() -> None:
    rows = (("DF", "free"), ("DF", "free"), ("GK", "free"))
    links = tuple(Hyperlink(row, 0, "pos") for row in range(2))
    table = Table("t", "Squad", ("Pos", "Notes"), rows, hyperlinks=links)
    taught = lessons(table, Recogniser(), {"pos": "Defender"}.get, lambda passage_id: ("role",))
    counts = merge_lessons([taught, taught])
    assert counts.aliases == {("df", "defender"): 2, ("free", ""): 2, ("gk", ""): 2}
    assert counts.headers == {"pos": (6, 4), "notes": (6, 0)}
    assert counts.header_types == {("pos", "role"): 2}
