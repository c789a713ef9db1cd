"""Questions over small databases of seven domains, and what must hold for any question."""

import json
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helios.evaluation.sources.generation import measure, read_questions
from helios.evaluation.sources.match import is_ordered, rows_match
from helios.evaluation.sources.plain import PlainSqlite
from helios.executors.base import Language, NativeQuery
from helios.routing.formulation.generator import THRESHOLD, SqlGenerator

DATABASES = Path(__file__).parent / "databases"
SPIDER = Path(__file__).parents[4] / "shared" / "data" / "spider"
CASES = [
    (file.stem, *json.loads(line).values())
    for file in sorted(DATABASES.glob("*.jsonl"))
    for line in file.read_text(encoding="utf-8").splitlines()
]
WORDS = """
    how many what is the of name flights airline airport with more than 5 and or not each most highest 'Oslo' Norway
    average total , ? ordered by descending between 10 country whose do have no different number price older before 2000
    first last maximum contain letter both in for per '"; drop table -- % _ \\ 12.5 2021-03-04
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("databases")
    opened = {}
    for script in DATABASES.glob("*.sql"):
        path = folder / f"{script.stem}.sqlite"
        with sqlite3.connect(path) as connection:
            connection.executescript(script.read_text(encoding="utf-8"))
        connection.close()
        opened[script.stem] = PlainSqlite(path)
    yield opened
    for source in opened.values():
        source.close()


@pytest.fixture(scope="module")
def generator():
    return SqlGenerator()


@pytest.mark.parametrize(("database", "question", "gold"), [case for case in CASES if len(case) == 3])
def test_question_is_answered_as_the_gold_query_answers_it(sources, generator, database, question, gold):
    source = sources[database]
    best = generator.formulate(question, source)[0]
    found, expected = source.execute(best.query), source.execute(NativeQuery(Language.SQL, gold))
    assert rows_match(found.rows, expected.rows, ordered=is_ordered(gold)), f"{best.query.text}\n{best.explanation}"


@pytest.mark.parametrize(
    "question",
    [
        "What is the percentage of flights to Oslo?",
        "Name the airline that operates flight 13.",
        "Which airports have had no departures?",
        "Write me a poem about the sea.",
        "Which bananas grew in the greenhouse in 1875?",
        "",
        "?",
    ],
)
def test_says_that_it_does_not_know(sources, generator, question):
    assert all(candidate.confidence < THRESHOLD for candidate in generator.formulate(question, sources["air"]))


@pytest.mark.parametrize("text", ["x'; DROP TABLE flight; --", 'a"b', "O'Neil", "50%", "Gardermoen' OR '1'='1"])
def test_text_of_a_question_stays_a_value(sources, generator, text):
    candidates = generator.formulate(f'Show the cities of airports with airport name "{text}".', sources["air"])
    for candidate in candidates:
        assert not sources["air"].execute(candidate.query).rows


def test_an_operation_that_the_plan_lacks_is_doubted(sources, generator):
    sure = generator.formulate("Which airlines have no flights?", sources["air"])[0]
    unsure = generator.formulate("Which airlines have no sense of humour?", sources["air"])[0]
    assert unsure.confidence < THRESHOLD < sure.confidence


def test_an_explanation_names_what_was_not_read(sources, generator):
    best = generator.formulate("Show the names of airlines with flamboyant zebras.", sources["air"])[0]
    assert "zebra" in best.explanation


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.lists(st.sampled_from(WORDS.split()), max_size=25).map(" ".join), st.text(max_size=60)))
def test_any_question_gives_only_queries_that_run(sources, generator, question):
    candidates = generator.formulate(question, sources["air"])
    confidences = [candidate.confidence for candidate in candidates]
    assert confidences == sorted(confidences, reverse=True)
    for candidate in candidates:
        assert 0.0 <= candidate.confidence <= 1.0
        sources["air"].execute(candidate.query)


@pytest.mark.skipif(not SPIDER.is_dir(), reason="needs ../shared/data/spider")
def test_spider_dev_stays_where_it_was_measured():
    outcomes = measure(
        read_questions(SPIDER / "dev.jsonl.gz"),
        lambda name: PlainSqlite(SPIDER / "database" / name / f"{name}.sqlite"),
    )
    answered = [outcome for outcome in outcomes if outcome.confidence >= THRESHOLD]
    assert sum(outcome.right for outcome in outcomes) / len(outcomes) > 0.9
    assert sum(outcome.right for outcome in answered) / len(answered) > 0.9
    assert len(answered) / len(outcomes) > 0.8
