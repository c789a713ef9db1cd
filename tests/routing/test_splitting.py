"""Questions that no source answers alone: split by a scripted model, and joined by the second source's own query."""

import json

import pytest

from helios.config import load_config
from helios.routing.consolidation import Consolidator
from helios.routing.formulation.llm import LlmFormulator
from helios.routing.interrogation import Interrogator
from helios.routing.omni import OmniEngine
from helios.routing.selection import OracleSelector
from helios.routing.splitting import filled

QUESTION = "What did the customer from Norway earn as a player?"
STEPS = [
    {"source": "shop", "question": "Which customers are from Norway?"},
    {"source": "players", "question": "How much do {1} earn?"},
]


@pytest.fixture
def players(shop, tmp_path):
    rows = [("Ole Group", 700), ("Mira Lund", 900)]
    return type(shop)("players", tmp_path / "players.sqlite", {"player": (["name", "earnings"], rows)})


@pytest.fixture
def ask(scripted_llm, model, config, likeness, shop, players):
    """Asks with a model that splits as told; what it was asked is kept."""

    def asked(steps, *, chosen=(2,)):
        questions = []

        def script(body):
            schema, user = json.dumps(body["response_format"]), body["messages"][-1]["content"]
            if "SplitQuestion" in schema:
                return scripted_llm.as_json({"steps": steps})
            if "ChosenEvidence" in schema:
                numbers = [number for number in chosen if f"[{number}]" in user]
                return scripted_llm.as_json({"numbers": numbers, "sentence": ""})
            part = user.rpartition("Question: ")[2]
            questions.append(part)
            queries = {
                "Which customers are from Norway?": "SELECT name FROM customer WHERE country = 'Norway'",
                "How much do Ole Group earn?": "SELECT earnings FROM player WHERE name = 'Ole Group'",
            }
            return scripted_llm.as_json({"explanation": "as asked", "query": queries.get(part, "")})

        scripted_llm.script = script
        selector = OracleSelector({QUESTION: ["shop", "players"]})
        asker = Interrogator(config.advanced.routing, {}, LlmFormulator(model, config.language_model, likeness))
        engine = OmniEngine(lambda: [shop, players], selector, asker, Consolidator(likeness), config, model=model)
        return engine.ask(QUESTION), questions

    return asked


def test_two_sources_together(ask):
    answer, questions = ask(STEPS)
    assert questions[2:] == ["Which customers are from Norway?", "How much do Ole Group earn?"]
    assert [reply.source for reply in answer.replies] == ["shop", "players", "shop", "players"]
    assert answer.answer.source in ("shop", "players") and "split and join" in answer.timings_ms
    assert {item.text for item in (*answer.evidence, *answer.left_out)} == {
        "as asked: name Ole Group", "as asked: earning 700",
    }  # fmt: skip
    assert "players: asked as a part: How much do Ole Group earn?" in answer.notes


@pytest.mark.parametrize("steps", [[], STEPS[:1], [STEPS[1], STEPS[0]]], ids=["none", "one", "out of order"])
def test_what_cannot_be_split_stays_as_it_is(ask, steps):
    answer, questions = ask(steps)
    assert len(questions) == 2 and answer.answer is None and len(answer.replies) == 2


def test_a_step_without_values_ends_the_steps(ask):
    answer, questions = ask([{"source": "shop", "question": "Who is from Spain?"}, STEPS[1]])
    assert questions[2:] == ["Who is from Spain?"] and answer.answer is None


def test_values_are_filled_in():
    assert filled("Did {1} meet {2}?", [["a", "b"], ["c"]]) == "Did a, b meet c?"
    assert filled("Who?", []) == "Who?" and filled("Did {1}?", [[]]) == ""


def test_an_answered_question_is_not_split(scripted_llm, model, config, likeness, shop, players):
    def script(body):
        schema = json.dumps(body["response_format"])
        assert "SplitQuestion" not in schema
        if "ChosenEvidence" in schema:
            return scripted_llm.as_json({"numbers": [1], "sentence": ""})
        return scripted_llm.as_json({"explanation": "", "query": "SELECT 1 AS one"})

    scripted_llm.script = script
    selector = OracleSelector({QUESTION: ["shop", "players"]})
    asker = Interrogator(load_config().advanced.routing, {}, LlmFormulator(model, config.language_model, likeness))
    engine = OmniEngine(lambda: [shop, players], selector, asker, Consolidator(likeness), config, model=model)
    assert engine.ask(QUESTION).answer is not None
