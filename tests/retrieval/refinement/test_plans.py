"""Wording, filters and plans over a small table, executed in a real DuckDB."""

from pathlib import Path

import numpy as np
import pytest

from helios.corpus import CorpusStore, CorpusWriter
from helios.graph import DataGraph
from helios.index.reader import IndexReader
from helios.index.visible import Numbering
from helios.retrieval.refinement.columns import Kind, read_fact, typed_columns
from helios.retrieval.refinement.dates import year_of
from helios.retrieval.refinement.detector import Detector
from helios.retrieval.refinement.execution import Executor
from helios.retrieval.refinement.filters import row_filters
from helios.retrieval.refinement.planning import FEATURES, Plan, lay_plans
from helios.retrieval.refinement.restoring import RestoredTable
from helios.retrieval.refinement.wording import Sense, read_cues
from helios.types import Passage, Table

HEADER = ("Rank", "Player", "Country", "Height", "Goals", "Joined")
ROWS = (
    ("1st", "Ada Berg", "Norway", "1.80 m", "1,204", "12 May 1990"),
    ("2nd", "Bo Dahl", "Sweden", "1.95 m", "980", "3 June 2001"),
    ("3rd", "Cleo Eng", "Norway", "1.77 m", "985", "1988"),
    ("T4th", "Dag Foss", "Denmark", "1.88 m", "-", "July 1999"),
)
PEOPLE = (
    ("Ada Berg", "Ada Berg ( born 3 March 1970 ) is a former footballer ."),
    ("Bo Dahl", "Bo Dahl ( born 1 January 1980 ) is a footballer ."),
    ("Cleo Eng", "Cleo Eng ( 5 May 1965 - 1 June 2010 ) was a footballer ."),
    ("Dag Foss", "Dag Foss ( born Oslo , July 4 , 1979 ) is a coach ."),
)


@pytest.fixture(scope="module")
def restored(tmp_path_factory: pytest.TempPathFactory) -> RestoredTable:
    folder = tmp_path_factory.mktemp("players")
    with CorpusWriter(folder / "corpus") as writer:
        writer.add(Table("players", "Players of the club", HEADER, ROWS))
        for name, text in PEOPLE:
            writer.add(Passage(name, name, text))
    rows = [0, 1, 2, 3]
    graph = DataGraph.write(
        folder / "graph", rows, rows, [1] * 4, [0] * 4, [8] * 4, [0.9] * 4, segment_count=4, passage_count=4
    )
    everything = np.arange(4)
    index = IndexReader([], [], Numbering.of([everything], [everything], [4], [8], whole=True))
    index.__dict__.update(corpus=CorpusStore.open(folder / "corpus"), graph=graph)
    return RestoredTable(index, 0, 0, np.array([3.0, 2.0, 1.0, np.nan]))


def plans(question: str, table: RestoredTable) -> list[Plan]:
    return lay_plans(question, read_cues(question), [table], Executor(), head=[3.0, 2.0, 1.0])


@pytest.mark.parametrize(
    ("question", "column", "kind", "row"),
    [
        ("Who is the tallest player ?", 3, Kind.NUMBER, 1),
        ("Who is the second tallest player ?", 3, Kind.NUMBER, 3),
        ("Which player scored the fewest goals ?", 4, Kind.NUMBER, 1),
        ("Who scored the most goals ?", 4, Kind.NUMBER, 0),
        ("Who is the oldest player ?", 1, Kind.BORN, 2),
        ("Who is the youngest player ?", 1, Kind.BORN, 1),
        ("Who joined most recently ?", 5, Kind.DATE, 1),
        ("Who was the earliest to join ?", 5, Kind.DATE, 2),
        ("Who finished in third place ?", 0, Kind.PLACE, 2),
        ("Who was the last in the list ?", -1, Kind.ORDER, 3),
    ],
)
def test_a_plan_computes_the_answer(restored: RestoredTable, question: str, column: int, kind: Kind, row: int) -> None:
    found = [p for p in plans(question, restored) if (p.column.column, p.column.kind) == (column, kind)]
    assert any(plan.rows == (row,) and plan.filter.kind == "all" for plan in found), [plan.words for plan in found]
    assert all(len(plan.features) == len(FEATURES) and np.isfinite(plan.features).all() for plan in found)


def test_a_filter_binds_a_phrase_to_cells(restored: RestoredTable) -> None:
    question = "Who is the tallest player from Norway ?"
    chosen = [f for f in row_filters(question, restored, read_cues(question)) if f.kind == "cell"]
    assert chosen[0].mask.tolist() == [True, False, True, False]
    tallest = [p for p in plans(question, restored) if p.filter.kind == "cell" and p.column.header == "Height"]
    assert [plan.rows for plan in tallest] == [(0,)]
    assert 'where Country is "norway"' in tallest[0].words


def test_a_question_that_compares_nothing_has_no_plan(restored: RestoredTable) -> None:
    assert plans("Where was Ada Berg born ?", restored) == []


def test_columns_are_typed(restored: RestoredTable) -> None:
    kinds = {(column.header, column.kind) for column in typed_columns(restored.table)}
    assert {("Rank", Kind.PLACE), ("Height", Kind.NUMBER), ("Goals", Kind.NUMBER), ("Joined", Kind.DATE)} <= kinds
    assert not any(header in ("Player", "Country") for header, _ in kinds)


def test_facts_of_passages() -> None:
    assert [year_of(read_fact(text, Kind.BORN)) for _, text in PEOPLE] == [1970, 1980, 1965, 1979]
    assert read_fact("The town has a population of 12,345 .", Kind.POPULATION) == 12345
    assert np.isnan(read_fact("A river in Norway .", Kind.POPULATION))


def test_cues() -> None:
    (cue,) = read_cues("Who is the second oldest player ?")
    assert (cue.sense, cue.larger, cue.place, cue.after) == (Sense.AGE, False, 2, ("player",))
    assert [c.place for c in read_cues("the 10th most populated area")] == [10]
    assert read_cues("What is the first name of the guest from West Bank at least once ?") == ()


@pytest.mark.parametrize(
    "question",
    ["Who lives in Budapest ?", "What grows in the forest ?", "Which interest has the priest from Bucharest ?",
     "Who won the contest in the Northwest ?", "What did the protest request ?",
     "Whose harvest was the guest's bequest ?"],
)  # fmt: skip
def test_words_that_end_like_superlatives_are_no_cues(question: str) -> None:
    assert read_cues(question) == ()
    assert Detector.load().probability(question) == 0.0


@pytest.mark.parametrize("word", ["longest", "oldest", "newest", "tallest", "latest", "greenest"])
def test_a_superlative_beside_such_a_word_is_the_cue(word: str) -> None:
    (cue,) = read_cues(f"Which is the {word} bridge of Budapest ?")
    assert cue.word == word
    assert Detector.load().probability(f"Which is the {word} bridge of Budapest ?") > 0.0


@pytest.mark.parametrize(
    "question",
    ["Who lost in the final ?", "Who scored in the 2012 NRL Grand Final with Melbourne ?", "who won the 2010 final",
     "the final of the cup", "What was the time of the runner from Georgia ?"],
)  # fmt: skip
def test_a_match_and_an_athlete_are_no_cues(question: str) -> None:
    assert read_cues(question) == ()


def test_a_final_season_and_a_runner_up_are_cues() -> None:
    (final,) = read_cues("Who directed the final season ?")
    assert (final.sense, final.larger, final.place) == (Sense.TIME, True, 1)
    (second,) = read_cues("Where was the runner-up of the 1990 open born ?")
    assert (second.sense, second.place) == (Sense.PLACE, 2)


def test_execution_ranks_ties_and_ignores_what_is_missing() -> None:
    values = np.array([3.0, 1.0, np.nan, 3.0, 2.0])
    everything = np.ones(5, bool)
    orders = Executor().orders([(0, values)], [(0, everything), (0, values > 1)])
    whole, filtered = orders.of(0, 0), orders.of(1, 0)
    assert orders.row[whole].tolist() == [0, 1, 3, 4]
    assert orders.from_large[whole].tolist() == [1, 4, 1, 3]
    assert orders.from_small[filtered].tolist() == [2, 2, 1]
    assert orders.size[filtered].tolist() == [3, 3, 3]
    assert len(Executor().orders([], []).row) == 0


def test_the_connection_reads_no_file_and_keeps_its_settings(tmp_path: Path) -> None:
    import duckdb

    (tmp_path / "secret.csv").write_text("a\n1\n")
    connection = Executor()._connection
    with pytest.raises(duckdb.Error):
        connection.execute(f"SELECT * FROM read_csv('{tmp_path / 'secret.csv'}')")
    with pytest.raises(duckdb.Error):
        connection.execute("SET enable_external_access = true")


@pytest.mark.parametrize("question", ["Wann ist das Fest?", "Wie viele Leute waren zuletzt auf dem Podest?"])
def test_a_question_in_another_language_has_no_english_superlatives(question):
    assert read_cues(question) == ()
