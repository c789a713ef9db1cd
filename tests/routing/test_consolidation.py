"""What becomes of the results of queries: each is one piece in its order, and a scripted model's choice decides."""

import json
from dataclasses import replace

import pytest
from rich.console import Console

from helios.config import load_config
from helios.executors.base import Language, NativeQuery
from helios.routing.answering import answer_of
from helios.routing.cli import omni_json, print_answer
from helios.routing.consolidation import Consolidator, choose, results_of
from helios.routing.evidence import Execution, MadeBy
from helios.routing.formulation.base import Candidate
from helios.routing.interrogation import Interrogator
from helios.routing.llm_choice import described, ungrounded
from helios.routing.omni import OmniEngine
from helios.routing.selection import OracleSelector

QUESTION = "Which customers are there, the best paid first, and who buys most?"
LISTED = "SELECT name, earnings FROM player ORDER BY earnings DESC"
COUNTRY = "SELECT country FROM {table} WHERE name = 'Ole Group'"


class Scripted:
    """Queries by source, with the confidences that a test wants."""

    def __init__(self, **queries) -> None:
        self.queries = queries

    def formulate(self, question, source):
        text, sure = self.queries.get(source.name, ("", 0.0))
        return [Candidate(NativeQuery(Language.SQL, text), sure, "as read")] if text else []


@pytest.fixture
def database(shop, tmp_path):
    """Makes a database of one table."""
    small = type(shop)

    def make(name, table, columns, rows):
        return small(name, tmp_path / f"{name}.sqlite", {table: (columns, rows)})

    return make


@pytest.fixture
def players(database):
    rows = [(f"Player {i:02}", 1000 - i) for i in range(35)]
    return database("players", "player", ["name", "earnings"], rows[::-1])


def omni(sources, likeness, queries, config=None, model=None):
    config = config or load_config()
    selector = OracleSelector({QUESTION: [source.name for source in sources]})
    asker = Interrogator(config.advanced.routing, {Language.SQL: Scripted(**queries)})
    return OmniEngine(lambda: sources, selector, asker, Consolidator(likeness), config, model=model)


def say(scripted_llm, *numbers, sentence=""):
    scripted_llm.say(scripted_llm.as_json({"numbers": list(numbers), "sentence": sentence}))


def test_a_result_is_one_piece_in_its_order(likeness, players):
    answer = omni([players], likeness, {"players": (LISTED, 0.9)}).ask(QUESTION)
    (item,) = [item for item in answer.evidence if item.made_by is MadeBy.GENERATOR]
    assert [row[1] for row in item.rows] == list(range(1000, 965, -1)) and item.row_count == 35
    assert item.text.index("Player 00") < item.text.index("Player 01") and "35 rows in all" in item.text
    assert answer.answer.text.startswith("Player 00 – 1000; Player 01 – 999") and "35 in all" in answer.answer.text
    document = json.loads(json.dumps(omni_json(answer)))["evidence"][0]
    assert document["row_count"] == 35 and len(document["rows"]) == 35 and document["rows"][0] == ["Player 00", 1000]


def test_a_result_that_met_a_limit_is_not_told_as_the_whole(likeness, players):
    asked = NativeQuery(Language.SQL, "SELECT name FROM player ORDER BY name LIMIT 3")
    found = replace(players.execute(asked), truncated="rows")
    execution = Execution("players", asked, MadeBy.GENERATOR, found, 0.9)
    said = "Player 00, Player 01, Player 02, … (at least 3: the source's limit of rows was met)"
    assert answer_of(execution).text == said


def test_the_answer_follows_the_choice(scripted_llm, model, config, likeness, shop, branch):
    queries = {"shop": (COUNTRY.format(table="customer"), 0.9), "branch": (COUNTRY.format(table="client"), 0.7)}
    alone = omni([shop, branch], likeness, queries).ask(QUESTION)
    assert alone.answer.text == "Norway" and alone.conflicts
    say(scripted_llm, 2, sentence="It is in Denmark.")
    answer = omni([shop, branch], likeness, queries, config, model).ask(QUESTION)
    assert (
        answer.answer.text == "Denmark" and answer.answer.source == "branch" and answer.sentence == "It is in Denmark."
    )
    assert [item.source for item in answer.evidence] == ["branch"] and answer.left_out[0].source == "shop"
    assert not answer.conflicts and not answer.degraded


def test_several_parts(scripted_llm, model, config, likeness, shop, players):
    queries = {"shop": ("SELECT name FROM customer", 0.9), "players": (LISTED, 0.9)}
    say(scripted_llm, 2, 1, sentence="Player 00 earns 1,000 and is the first of 35.")
    answer = omni([shop, players], likeness, queries, config, model).ask(QUESTION)
    assert {part.source for part in answer.parts} == {"shop", "players"} and answer.parts[0] == answer.answer
    assert [item.source for item in answer.evidence] == [part.source for part in answer.parts]
    assert answer.sentence
    console = Console(record=True, width=200)
    print_answer(answer, console)
    shown = console.export_text()
    assert answer.sentence in shown and LISTED in shown and "SELECT name FROM customer" in shown


def test_none_is_an_answer_too(scripted_llm, model, config, likeness, shop):
    say(scripted_llm)
    queries = {"shop": (COUNTRY.format(table="customer"), 0.9)}
    answer = omni([shop], likeness, queries, config, model).ask(QUESTION)
    assert answer.answer is None and answer.declined and not answer.evidence and len(answer.left_out) == 1
    assert any("nothing that was found answers" in note for note in answer.notes)
    assert omni_json(answer)["declined"] and omni_json(answer)["left_out"]


def test_a_model_that_fails_leaves_the_order(scripted_llm, model, config, likeness, shop, branch):
    say(scripted_llm, 99)
    queries = {"shop": (COUNTRY.format(table="customer"), 0.9), "branch": (COUNTRY.format(table="client"), 0.7)}
    answer = omni([shop, branch], likeness, queries, config, model).ask(QUESTION)
    assert answer.answer.text == "Norway" and answer.conflicts and answer.degraded
    assert any("the ranking stands" in note for note in answer.notes)


def test_equal_results_of_twins_are_one(scripted_llm, model, config, likeness, shop, database):
    twin = database("twin", "kunde", ["name", "country"], [("OLE GROUP", "norway")])
    queries = {"shop": (COUNTRY.format(table="customer"), 0.9), "twin": ("SELECT country FROM kunde", 0.8)}
    say(scripted_llm, 1)
    answer = omni([shop, twin], likeness, queries, config, model).ask(QUESTION)
    assert answer.answer.also == ("twin",) and len(answer.evidence) == 1
    assert answer.evidence[0].also[0][1].text == "SELECT country FROM kunde"
    prompt = scripted_llm.requests[0]["messages"][-1]["content"]
    assert "the same from twin" in prompt and "[2]" not in prompt


def test_a_model_sees_the_query_the_order_and_the_number_of_rows(scripted_llm, model, config, likeness, players):
    say(scripted_llm, 1)
    omni([players], likeness, {"players": (LISTED, 0.9)}, config, model).ask(QUESTION)
    prompt = scripted_llm.requests[0]["messages"][-1]["content"]
    assert LISTED in prompt and "35 rows, the first 20; columns: name ¦ earnings" in prompt
    assert prompt.index("Player 00 ¦ 1000") < prompt.index("Player 19 ¦ 981") and "Player 20" not in prompt


def test_a_sentence_that_says_what_no_row_says_is_left_out(scripted_llm, model, config, likeness, shop):
    queries = {"shop": (COUNTRY.format(table="customer"), 0.9)}
    for sentence in ("Ole Group is in Sweden.", "Ole Group has 12 offices in Norway.", "It is in “Oslo”."):
        say(scripted_llm, 1, sentence=sentence)
        answer = omni([shop], likeness, queries, config, model).ask(QUESTION)
        assert answer.answer.text == "Norway" and not answer.sentence
        assert any("sentence was left out" in note for note in answer.notes)


def test_numbers_are_compared_by_value(likeness, players):
    (result,) = results_of(*_replied(players, likeness))
    item = Consolidator(likeness).rank(QUESTION, *_replied(players, likeness), [result], k=5)[0]
    assert not ungrounded("The first of 35 earns 1,000.0.", QUESTION, [item])
    assert ungrounded("The first of 36 earns 1,000.", QUESTION, [item]) == "36"
    assert choose(QUESTION, [result]).results == (result,) and "at least" not in described(item, 500)


def _replied(source, likeness):
    answer = omni([source], likeness, {"players": (LISTED, 0.9)}).ask(QUESTION)
    return answer.selection, answer.replies
