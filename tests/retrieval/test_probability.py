"""Probabilities: between 0 and 1 for every edge whatever stages ran, from a model that is checked when it is read."""

import json
from pathlib import Path

import numpy as np
import pytest

from helios.engine import Engine
from helios.errors import ModelError
from helios.retrieval.probability import (
    CEILING,
    EDGE_FEATURES,
    FLOOR,
    QUESTION_FEATURES,
    SHIPPED,
    EvidenceModel,
    Logistic,
    features_of,
)
from helios.retrieval.state import run_stages
from helios.types import Origin

QUESTION = "In which country was the architect of the twin skyscrapers in Kuala Lumpur born?"
NOWHERE = "Who won the chess olympiad for computers in 1987 with a program written in Forth?"


def test_every_edge_has_a_chance_whatever_stages_ran(engine: Engine):
    usual = engine.pipeline.stages
    begun = engine.begin(QUESTION, k=60)
    model = EvidenceModel.load()
    for count in range(1, len(usual) + 1):
        state = run_stages(begun, usual[:count])
        judged = model.judge(state)
        assert len(judged.probabilities) == min(60, len(state.subgraph))
        assert all(0.0 < chance < 1.0 for chance in (*judged.probabilities, judged.present))


def test_a_search_gives_the_chances_of_its_edges(engine: Engine):
    found = engine.search(QUESTION, k=20)
    model, state = EvidenceModel.load(), run_stages(engine.begin(QUESTION, k=20), engine.pipeline.stages)
    assert tuple(edge.probability for edge in found.edges) == model.judge(state).probabilities
    assert found.present == model.judge(state).present


def test_what_the_corpus_holds_is_likelier_than_what_it_does_not(engine: Engine):
    there, nowhere = engine.search(QUESTION), engine.search(NOWHERE)
    assert there.present > nowhere.present
    assert there.edges[0].probability > nowhere.edges[0].probability


def test_features_are_what_their_names_say(engine: Engine):
    state = run_stages(engine.begin(QUESTION, k=40), engine.pipeline.stages)
    rows, about = features_of(state)
    column = dict(zip(EDGE_FEATURES, rows.T, strict=True))
    assert rows.shape == (40, len(EDGE_FEATURES)) and about.shape == (len(QUESTION_FEATURES),)
    np.testing.assert_array_equal(
        column["score"], np.clip([e.score for e in state.subgraph.edges[:40]], FLOOR, CEILING)
    )
    np.testing.assert_allclose(column["below_best"], column["score"].max() - column["score"])
    np.testing.assert_array_equal(column["expanded"], [e.origin is Origin.EXPANDED for e in state.subgraph.edges[:40]])
    for name in ("terms_of_best", "tokens_of_best"):
        assert 0.0 < about[QUESTION_FEATURES.index(name)] <= 1.0


def test_chances_do_not_depend_on_how_many_edges_are_asked_for(engine: Engine):
    few, many = engine.search(QUESTION, k=3), engine.search(QUESTION, k=50)
    assert few.present == many.present
    assert [edge.probability for edge in few.edges] == [edge.probability for edge in many.edges[:3]]


def test_words_that_no_node_has_count_as_not_said(engine: Engine):
    def terms(question: str) -> float:
        state = run_stages(engine.begin(question, k=10), engine.pipeline.stages)
        return float(features_of(state)[1][QUESTION_FEATURES.index("terms_of_best")])

    assert terms("Who designed Pascal?") > terms("Who designed Pascal qwertzuiop?")


def test_without_edges_nothing_is_present(engine: Engine):
    found = engine.search(QUESTION, where="id = 'no such record'")
    assert found.edges == () and found.present == 0.0


def test_a_chance_is_the_logistic_function_of_named_weights():
    model = Logistic({"b": 2.0, "unused": 5.0}, intercept=-1.0)
    chances = model.chances(np.array([[7.0, 0.5], [7.0, 1.0]]), ("a", "b"))
    np.testing.assert_allclose(chances, [0.5, 1 / (1 + np.exp(-1.0))])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda card: card["values"].pop("presence"), "lacks a number"),
        (lambda card: card["values"]["edge"]["weights"].update(colour=1.0), "colour"),
        (lambda card: card["values"]["edge"].update(intercept="low"), "lacks a number"),
        (lambda card: card.update(role="ranker"), "expected a probability"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused(tmp_path: Path, change, said: str):
    card = json.loads((SHIPPED / "card.json").read_text())
    change(card)
    (tmp_path / "card.json").write_text(json.dumps(card))
    with pytest.raises(ModelError, match=said):
        EvidenceModel.load(tmp_path)
