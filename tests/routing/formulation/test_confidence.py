"""How sure a query is: the model of the package, and what it reads."""

import json
import math
import sqlite3
from contextlib import closing

import pytest

from helios.errors import ModelError
from helios.models.card import ModelCard, write_card
from helios.routing.formulation.confidence import ROLE, Chance, QueryConfidence, shipped
from helios.routing.formulation.features import ASKED_FEATURES, GRAPH_FEATURES, TABLE_FEATURES
from helios.routing.formulation.generator import SqlGenerator
from helios.sources.registry import Registry


@pytest.fixture(scope="module")
def pond(tmp_path_factory):
    """A table of fish and one of the ponds that they swim in."""
    folder = tmp_path_factory.mktemp("pond")
    with closing(sqlite3.connect(folder / "pond.sqlite")) as connection:
        connection.executescript(
            "CREATE TABLE pond (pond_id INTEGER PRIMARY KEY, pond_name TEXT);"
            "CREATE TABLE fish (fish_id INTEGER PRIMARY KEY, fish_name TEXT, weight INTEGER,"
            " born_in INTEGER REFERENCES pond (pond_id), lives_in INTEGER REFERENCES pond (pond_id));"
            "INSERT INTO pond VALUES (1, 'Mere'), (2, 'Tarn');"
            "INSERT INTO fish VALUES (1, 'Bo', 5, 1, 2), (2, 'Mo', 9, 1, 1), (3, 'Jo', 9, 2, 1);"
        )
    file = folder / "sources.yaml"
    file.write_text("sources:\n  pond: {kind: sqlite, path: pond.sqlite}\n")
    with Registry.open(file) as registry:
        yield registry.source("pond")


def seen(pond, question):
    return SqlGenerator().formulate(question, pond)[0].features


def test_a_chance_is_the_logistic_function_of_weighted_features():
    chance = Chance({"a": 2.0, "b": -1.0}, 0.5)
    assert chance.of({"a": 1.0, "b": 1.0, "c": 9.0}) == pytest.approx(1 / (1 + math.exp(-1.5)))
    assert 0.0 < chance.of({"b": 1e9}) < chance.of({"a": 1e9}) < 1.0


def test_an_operation_that_the_plan_lacks_halves_the_chance():
    chance = Chance({}, 0.0)
    assert chance.of({"unmet": 0.0, "beyond": 0.0}) == 0.5
    assert chance.of({"unmet": 1.0, "beyond": 0.0}) == chance.of({"unmet": 0.0, "beyond": 1.0}) == 0.25
    assert chance.of({"beyond": 1.0}) == 0.5, "of graphs the word alone says nothing"


def test_the_model_of_the_package_reads_what_there_is(pond):
    assert set(shipped().tables.weights) == set(TABLE_FEATURES)
    assert set(shipped().graphs.weights) == set(GRAPH_FEATURES)
    assert set(seen(pond, "How many fish are there?")) == {*TABLE_FEATURES, *ASKED_FEATURES}


def test_what_is_not_read_makes_a_query_less_sure(pond):
    generator = SqlGenerator()
    sure = generator.formulate("Show the names of all fish.", pond)[0]
    unsure = generator.formulate("Show the names of all fish with purple moustaches.", pond)[0]
    assert unsure.features["unread"] > sure.features["unread"] == 0.0
    assert unsure.confidence < sure.confidence - 0.2


@pytest.mark.parametrize(
    ("question", "feature"),
    [
        ("How many dogs do the fish have?", "asked unread"),
        ("What is the e-mail address of Bo?", "asked unread"),
        ("What is the fish name of the fish called Bo?", "echo"),
        ("When does Bo wake up?", "no date"),
        ("How many fish are endangered?", "all counted"),
    ],
)
def test_what_nobody_asked_for_is_seen(pond, question, feature):
    """A plan that reads some words and not the one that is asked for is as sure as its other words make it, halved."""
    found = SqlGenerator().formulate(question, pond)[0]
    assert found.features[feature] == 1.0
    assert found.confidence < 0.5


@pytest.mark.parametrize(
    "question",
    [
        "How many fish are there?", "how many fish", "How many fish are recorded?", "Show the heavy fish.",
        "What is the weight of Bo?", "List all the details of fish.",
    ],
)  # fmt: skip
def test_what_was_read_is_not_doubted(pond, question):
    found = seen(pond, question)
    assert not any(found[name] for name in ASKED_FEATURES)


def test_ties_and_other_joins_are_seen(pond):
    assert seen(pond, "Show the name of the fish with the largest weight.")["tie"] == 1.0
    assert seen(pond, "Show the name of the fish with the smallest weight.")["tie"] == 0.0
    assert seen(pond, "Show the names of fish and the names of their ponds.")["other joins"] > 0.0
    assert seen(pond, "Show the names of fish.")["other joins"] == 0.0


def test_a_card_of_something_else_is_refused(tmp_path):
    card = ModelCard("x", ROLE, "", "none", (), {}, {}, values={"tables": {"weights": {"luck": 1}, "intercept": 0}})
    write_card(tmp_path, card)
    with pytest.raises(ModelError, match="luck"):
        QueryConfidence.load(tmp_path)
    values = {"tables": {"weights": {}, "intercept": 0}}
    write_card(tmp_path, ModelCard("x", ROLE, "", "none", (), {}, {}, values=values))
    with pytest.raises(ModelError, match="no weights for graphs"):
        QueryConfidence.load(tmp_path)
    (tmp_path / "card.json").write_text(json.dumps({"role": ROLE}))
    with pytest.raises(ModelError):
        QueryConfidence.load(tmp_path)
