"""The recipe of confidences in queries: what it learns from, and what it measures."""

import sqlite3
from contextlib import closing

import pytest

from helios.evaluation.sources.questions import SourceQuestion
from helios.executors.base import Language
from helios.routing.formulation.confidence import Chance
from helios.sources.registry import Registry
from training.errors import TrainingError
from training.query_confidence import HIDDEN, OTHER, OWN, Hiding, Lesson, QueryConfidenceRecipe, fit, mine, surest
from training.query_confidence import train_query_confidence as train


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    for name, thing in (("zoo", "lion"), ("port", "ship")):
        with closing(sqlite3.connect(folder / f"{name}.sqlite")) as connection:
            connection.executescript(
                f"CREATE TABLE {thing} ({thing}_id INTEGER PRIMARY KEY, {thing}_name TEXT, colour TEXT, age INTEGER);"
                f"INSERT INTO {thing} VALUES (1, 'Ada', 'grey', 3), (2, 'Bo', 'black', 4);"
            )
    file = folder / "sources.yaml"
    file.write_text("sources:\n" + "".join(f"  {n}: {{kind: sqlite, path: {n}.sqlite}}\n" for n in ("zoo", "port")))
    with Registry.open(file) as registry:
        yield {source.name: source for source in registry.sources()}


def lesson(number, database, unread, *, right, how=OWN, rank=0.0):
    features = {"tables": 1.0, "unread": unread, "rank": rank}
    return Lesson(f"q{number}", "spider", database, how, features, right, right)


def test_hidden_names_are_gone_from_what_is_described_and_found(sources):
    hiding = Hiding(sources["zoo"], 0.99, "a seed")
    (table,) = hiding.descriptor().schema.tables
    assert {column.name for column in table.columns} == {"lion_id"}
    assert sources["zoo"].find_values(["grey"]) and not hiding.find_values(["grey"])
    assert len(sources["zoo"].descriptor().schema.tables[0].columns) == 4


def test_a_question_is_asked_of_its_source_of_hidden_names_and_of_another(sources):
    questions = [
        SourceQuestion(f"{name}", f"What are the names of all {thing}s?", Language.SQL, name,
                       f"SELECT {thing}_name FROM {thing}", dataset="spider")
        for name, thing in (("zoo", "lion"), ("port", "ship"))
    ]  # fmt: skip
    found = [one for some in mine(questions, sources, QueryConfidenceRecipe(hidden=0.99)) for one in some]
    assert {one.how for one in found} >= {OWN, HIDDEN}
    assert all(one.right for one in found if one.how == OWN and not one.features["rank"])
    assert not any(one.right for one in found if one.how != OWN)
    again = [one for some in mine(questions, sources, QueryConfidenceRecipe(hidden=0.99)) for one in some]
    assert again == found


def test_weights_follow_what_was_right_and_each_database_is_left_out_in_turn():
    lessons = [lesson(n, f"d{n % 3}", float(n % 2), right=n % 2 == 0) for n in range(60)]
    graphs = [
        Lesson(f"g{n}", "graphs", f"g{n % 3}", OWN, {"unread": float(n % 2)}, n % 2 == 0, n % 4 == 0) for n in range(60)
    ]
    others = [lesson(n, "d0", 0.0, right=False, how=OTHER) for n in range(5)]
    chances, scores = fit([*lessons, *others, *graphs], QueryConfidenceRecipe())
    assert chances["tables"].weights["unread"] < -1.0
    assert scores["left out in turn, spider: match"] == 0.5
    assert scores["left out in turn, spider: right of the surest half"] == 1.0
    assert scores["left out in turn, graphs, a person: match"] == 0.25
    known, unread = fit([*lessons, *graphs], QueryConfidenceRecipe(unread=("d1",)))
    assert (
        known["tables"]
        == fit([one for one in lessons if one.database != "d1"] + graphs, QueryConfidenceRecipe())[0]["tables"]
    )
    assert unread["unread, spider: match"] == 0.5
    with pytest.raises(TrainingError, match="tables: no right and wrong"):
        fit(graphs, QueryConfidenceRecipe())


def test_the_surest_query_of_a_question_counts():
    chance = Chance({"unread": -1.0}, 0.0)
    lessons = [lesson(1, "d", 2.0, right=False), lesson(1, "d", 0.0, right=True, rank=1.0)]
    assert surest(lessons, lambda one: chance, "right") == [(0.5, True)]


def test_settings_without_data_are_refused(tmp_path):
    with pytest.raises(TrainingError, match="set sources and, for each, questions"):
        train(QueryConfidenceRecipe(), tmp_path)
