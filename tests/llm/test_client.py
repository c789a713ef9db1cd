"""The client against servers: every outcome, repair, cache, budget, deadlines, concurrency, and a real model."""

import json
import logging
import threading
import time
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from helios.config import LanguageModelSettings
from helios.errors import ConfigError
from helios.llm import Answer, Budget, Failure, FailureKind, LlmClient, Message, Request, Usage
from helios.llm.request import contradiction

pytest.importorskip("openai", reason="openai is not installed (extra llm)")


class Rows(BaseModel):
    model_config = ConfigDict(extra="forbid")
    rows: list[int] = Field(max_length=3)


def ask_for(text: str, *, max_tokens: int = 64) -> Request[Rows]:
    return Request((Message("system", "Name rows."), Message("user", text)), Rows, max_tokens)


@pytest.fixture
def connect(scripted_llm):
    """Make clients of the scripted server; they are closed at the end."""
    clients = []

    def make(**settings) -> LlmClient:
        values = {"base_url": scripted_llm.url, "model": "scripted", "call_seconds": 60.0, **settings}
        clients.append(LlmClient.open(LanguageModelSettings(**values)))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def test_an_answer_is_validated_and_its_tokens_counted(scripted_llm, connect):
    scripted_llm.say(scripted_llm.as_json({"rows": [2, 1]}))
    client = connect()
    budget = client.budget()
    assert client.ask([ask_for("which?")], budget=budget) == [Answer(Rows(rows=[2, 1]), Usage(1, 10, 5))]
    assert budget.spent == Usage(1, 10, 5)
    (body,) = scripted_llm.requests
    assert body["temperature"] == 0
    assert body["response_format"]["json_schema"]["schema"] == Rows.model_json_schema()
    assert body["max_tokens"] == 64


def test_no_request_no_call(scripted_llm, connect):
    client = connect()
    assert client.ask([], budget=client.budget()) == []
    assert not scripted_llm.requests


@pytest.mark.parametrize(
    ("responses", "kind", "words", "calls"),
    [
        ([("completion", "no JSON at all")], "malformed", "Invalid JSON", 2),
        ([("completion", '{"rows": ["2"]}')], "malformed", "rows.0", 2),
        ([("completion", '{"rows": [1], "note": "x"}')], "malformed", "note", 2),
        ([("completion", '{"rows": [1, 2, 3, 4]}')], "malformed", "rows", 2),
        ([("completion", "")], "empty", "no content", 2),
        ([("completion", None)], "empty", "no content", 2),
    ],
)
def test_replies_that_do_not_fit_twice(scripted_llm, connect, responses, kind, words, calls):
    scripted_llm.say(*(scripted_llm.completion(content) for _, content in responses))
    client = connect()
    (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
    assert isinstance(outcome, Failure)
    assert outcome.kind == kind
    assert words in outcome.detail
    assert outcome.usage == Usage(calls, 10 * calls, 5 * calls)
    assert len(scripted_llm.requests) == calls


def test_a_reply_is_mended_on_the_second_try(scripted_llm, connect):
    scripted_llm.say(scripted_llm.completion('{"rows": "two"}'), scripted_llm.as_json({"rows": [2]}))
    client = connect()
    (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
    assert outcome == Answer(Rows(rows=[2]), Usage(2, 20, 10))
    turns = scripted_llm.requests[1]["messages"]
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "user"]
    assert turns[2]["content"] == '{"rows": "two"}'
    assert "rows: Input should be a valid array" in turns[3]["content"]


def test_an_empty_reply_is_asked_again_with_roles_in_turn(scripted_llm, connect):
    scripted_llm.say(scripted_llm.completion(""), scripted_llm.as_json({"rows": []}))
    client = connect()
    (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
    assert isinstance(outcome, Answer)
    turns = scripted_llm.requests[1]["messages"]
    assert [turn["role"] for turn in turns] == ["system", "user"]
    assert "no content" in turns[1]["content"]


def test_a_cut_off_reply_says_so(scripted_llm, connect):
    scripted_llm.say(scripted_llm.completion('{"rows": [1', finish="length"))
    client = connect()
    (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
    assert outcome.kind is FailureKind.MALFORMED
    assert "cut off after 5 tokens" in outcome.detail


def test_a_model_that_wants_other_parameters_gets_them(scripted_llm, connect):
    """As OpenAI's models that reason refuse them."""

    def refused(parameter: str, code: str, words: str):
        error = {"error": {"code": code, "param": parameter, "message": words}}
        return scripted_llm.Response(json.dumps(error).encode(), status=400)

    def script(body):
        if "max_tokens" in body:
            words = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            return refused("max_tokens", "unsupported_parameter", words)
        if "temperature" in body:
            words = "Unsupported value: 'temperature' does not support 0.0 with this model."
            return refused("temperature", "unsupported_value", words)
        return scripted_llm.as_json({"rows": [1]})

    scripted_llm.script = script
    client = connect()
    for _ in range(2):
        (outcome,) = client.ask([ask_for("Which?")], budget=client.budget())
        assert isinstance(outcome, Answer)
    assert len(scripted_llm.requests) == 4  # what was learned is kept
    assert scripted_llm.requests[-1]["max_completion_tokens"] == 64


def test_other_refusals_change_nothing(scripted_llm, connect):
    words = "max_tokens is too large"
    scripted_llm.say(scripted_llm.Response(json.dumps({"error": {"message": words}}).encode(), status=400))
    client = connect()
    (outcome,) = client.ask([ask_for("Which?")], budget=client.budget())
    assert isinstance(outcome, Failure) and words in outcome.detail and len(scripted_llm.requests) == 1


def test_a_refusal_is_not_asked_again(scripted_llm, connect):
    scripted_llm.say(scripted_llm.completion(None, refusal="I can't\nhelp with that."))
    client = connect()
    (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
    assert outcome == Failure(FailureKind.REFUSED, "I can't help with that.", Usage(1))
    assert len(scripted_llm.requests) == 1


def test_filters_refuse_too(scripted_llm, connect):
    rejected = scripted_llm.Response(b'{"error": {"code": "content_filter", "message": "blocked"}}', status=400)
    scripted_llm.say(scripted_llm.completion("", finish="content_filter"), rejected)
    client = connect()
    for _ in range(2):
        (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
        assert outcome.kind is FailureKind.REFUSED


@pytest.mark.parametrize(
    ("how", "kind", "calls"),
    [
        ({"status": 500, "body": b"boom"}, "unavailable", 2),
        ({"status": 429, "headers": {"Retry-After": "0.01"}}, "unavailable", 2),
        ({"status": 401, "body": b'{"error": {"message": "bad key sk-secret-1"}}'}, "unavailable", 1),
        ({"status": 404}, "unavailable", 1),
        ({"drop": True}, "unavailable", 2),
        ({"body": b"<html>hello</html>", "headers": {"Content-Type": "text/html"}}, "malformed", 2),
        ({"body": b'{"choices": [{"message": {"content": 7}}]}'}, "malformed", 2),
        ({"body": b'{"choices": []}'}, "empty", 2),
    ],
)
def test_servers_at_fault(scripted_llm, connect, monkeypatch, how, kind, calls):
    monkeypatch.setenv("HELIOS_TEST_KEY", "sk-secret-1")
    scripted_llm.say(scripted_llm.Response(**how))
    client = connect(api_key_env="HELIOS_TEST_KEY")
    (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
    assert isinstance(outcome, Failure)
    assert outcome.kind == kind
    assert "sk-secret-1" not in outcome.detail
    assert outcome.usage.calls == len(scripted_llm.requests) == calls


def test_a_server_that_recovers(scripted_llm, connect):
    scripted_llm.say(scripted_llm.Response(status=503), scripted_llm.as_json({"rows": [1]}))
    client = connect()
    (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
    assert outcome == Answer(Rows(rows=[1]), Usage(2, 10, 5))


def test_no_server_at_all(connect):
    client = connect(base_url="http://127.0.0.1:9/v1")
    (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
    assert outcome.kind is FailureKind.UNAVAILABLE


@pytest.mark.parametrize("how", [{"pause": 60.0}, {"piece_pause": 0.2}])
def test_a_call_has_a_deadline_even_while_bytes_trickle(scripted_llm, connect, how, within):
    scripted_llm.say(scripted_llm.as_json({"rows": [1]}, **how))
    client = connect(call_seconds=0.4)
    with within(20):
        (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
    assert outcome.kind is FailureKind.LATE
    assert outcome.usage.calls == 1


def test_the_question_has_a_deadline(scripted_llm, connect):
    scripted_llm.say(scripted_llm.as_json({"rows": [1]}, pause=60.0))
    client = connect(concurrency=1)
    budget = client.budget(deadline=time.monotonic() + 0.4)
    first, second = client.ask([ask_for("one"), ask_for("two")], budget=budget)
    assert first.kind is FailureKind.LATE
    assert second.kind in (FailureKind.LATE, FailureKind.OVER_BUDGET)
    (third,) = client.ask([ask_for("three")], budget=budget)
    assert third.kind in (FailureKind.LATE, FailureKind.OVER_BUDGET)
    assert len(scripted_llm.requests) == 1


def test_calls_and_tokens_are_limited(scripted_llm, connect):
    scripted_llm.say(scripted_llm.as_json({"rows": [1]}))
    client = connect(question_calls=2, concurrency=1)
    outcomes = client.ask([ask_for(f"star {number}") for number in range(4)], budget=client.budget())
    assert [isinstance(outcome, Answer) for outcome in outcomes].count(True) == 2
    assert all(o.kind is FailureKind.OVER_BUDGET for o in outcomes if isinstance(o, Failure))
    assert len(scripted_llm.requests) == 2
    client = connect(question_tokens=300)
    (outcome,) = client.ask([ask_for("word " * 400)], budget=client.budget())
    assert outcome.kind is FailureKind.OVER_BUDGET
    assert "300 are left" in outcome.detail
    assert len(scripted_llm.requests) == 2


def test_a_second_try_that_the_budget_forbids_keeps_the_first_failure(scripted_llm, connect):
    scripted_llm.say(scripted_llm.completion("nonsense"))
    client = connect(question_calls=1)
    (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
    assert outcome.kind is FailureKind.MALFORMED
    assert "second try over budget" in outcome.detail


def test_budgets_give_back_what_was_not_taken():
    budget = Budget(calls=3, tokens=100, seconds=10)
    assert budget.reserve(80) == ""
    assert "20 are left" in budget.reserve(30)
    budget.settle(80, Usage(1, 10, 5))
    assert budget.reserve(85) == ""
    assert "86" in budget.reserve(86)
    budget.settle(85, Usage(1))
    assert budget.spent == Usage(2, 10, 5)
    assert Budget(calls=1, tokens=9, seconds=0).reserve(1) == "the time for this question is over"


def test_at_most_so_many_calls_at_once_over_all_questions(scripted_llm, connect):
    scripted_llm.say(scripted_llm.as_json({"rows": [1]}, together=3, pause=0.1))
    client = connect(concurrency=3)
    results: list[list] = []

    def question(name: str) -> None:
        results.append(client.ask([ask_for(f"{name} {star}") for star in range(6)], budget=client.budget()))

    threads = [threading.Thread(target=question, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert scripted_llm.peak == 3
    assert len(scripted_llm.requests) == 12
    assert all(isinstance(outcome, Answer) for result in results for outcome in result)


def test_outcomes_come_in_the_order_of_the_requests(scripted_llm, connect):
    def script(body):
        number = int(body["messages"][-1]["content"])
        return scripted_llm.as_json({"rows": [number]}, pause=0.02 * (5 - number))

    scripted_llm.script = script
    client = connect()
    outcomes = client.ask([ask_for(str(number)) for number in range(5)], budget=client.budget())
    assert [outcome.value.rows for outcome in outcomes] == [[0], [1], [2], [3], [4]]


def test_a_cached_reply_needs_no_call(scripted_llm, connect, tmp_path: Path):
    scripted_llm.say(scripted_llm.as_json({"rows": [1]}))
    settings = {"cache": str(tmp_path / "cache" / "replies.sqlite")}
    client = connect(**settings)
    (first,) = client.ask([ask_for("which?")], budget=client.budget())
    again = connect(**settings)
    budget = again.budget()
    (second,) = again.ask([ask_for("which?")], budget=budget)
    assert (first.cached, second.cached) == (False, True)
    assert second.value == first.value
    assert budget.spent == Usage()
    assert len(scripted_llm.requests) == 1
    again.ask([ask_for("another?")], budget=budget)
    other = connect(model="other", **settings)
    other.ask([ask_for("which?")], budget=other.budget())
    assert len(scripted_llm.requests) == 3


def test_failures_are_not_cached(scripted_llm, connect, tmp_path: Path):
    scripted_llm.say(scripted_llm.completion(None, refusal="no"), scripted_llm.as_json({"rows": [1]}))
    client = connect(cache=str(tmp_path / "replies.sqlite"))
    (first,) = client.ask([ask_for("which?")], budget=client.budget())
    (second,) = client.ask([ask_for("which?")], budget=client.budget())
    assert isinstance(first, Failure)
    assert isinstance(second, Answer)


def test_the_key_comes_from_the_environment_and_nothing_else_does(scripted_llm, connect, monkeypatch):
    scripted_llm.say(scripted_llm.as_json({"rows": []}))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-server")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-another-server")
    monkeypatch.setenv("HELIOS_TEST_KEY", "sk-mine")
    for client in (connect(), connect(api_key_env="HELIOS_TEST_KEY")):
        client.ask([ask_for("which?")], budget=client.budget())
    without, with_key = scripted_llm.headers
    assert not any("another-server" in value for value in without.values())
    assert with_key["authorization"] == "Bearer sk-mine"


def test_configuration_errors_name_the_setting(monkeypatch):
    monkeypatch.delenv("HELIOS_TEST_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"llm\.base_url"):
        LlmClient.open(LanguageModelSettings())
    with pytest.raises(ConfigError, match="HELIOS_TEST_KEY"):
        LlmClient.open(LanguageModelSettings(base_url="http://localhost/v1", model="m", api_key_env="HELIOS_TEST_KEY"))
    with pytest.raises(ValueError, match="Port out of range"):
        LanguageModelSettings(base_url="http://localhost:99999/v1")
    with pytest.raises(ValueError, match="api_key_env"):
        LanguageModelSettings(base_url="http://user:secret@localhost/v1")


def test_closing_ends_what_is_under_way_and_a_later_question_starts_anew(scripted_llm, connect):
    scripted_llm.say(scripted_llm.as_json({"rows": [1]}, pause=60.0), scripted_llm.as_json({"rows": [2]}))
    client = connect()
    outcomes: list = []
    waiting = threading.Thread(target=lambda: outcomes.extend(client.ask([ask_for("one")], budget=client.budget())))
    waiting.start()
    while not scripted_llm.requests:
        time.sleep(0.01)
    client.close()
    waiting.join(30)
    assert outcomes == [Failure(FailureKind.UNAVAILABLE, "the client was closed")]
    (outcome,) = client.ask([ask_for("two")], budget=client.budget())
    assert outcome.value.rows == [2]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed_and_the_key_stays(scripted_llm, connect, monkeypatch, status):
    monkeypatch.setenv("HELIOS_TEST_KEY", "sk-secret-1")
    with type(scripted_llm)() as elsewhere:
        elsewhere.say(elsewhere.as_json({"rows": [1]}))
        location = f"{elsewhere.url}/chat/completions"
        scripted_llm.say(scripted_llm.Response(status=status, headers={"Location": location}))
        client = connect(api_key_env="HELIOS_TEST_KEY")
        (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
        assert not elsewhere.requests
        assert not elsewhere.gets
    assert outcome.kind is FailureKind.UNAVAILABLE
    assert "redirects to 127.0.0.1" in outcome.detail
    assert len(scripted_llm.requests) == 1


@pytest.mark.parametrize(
    "how",
    [
        {"status": 500, "body": b'{"error": {"message": "key sk-secret-1 is \\n wrong"}}'},
        {"status": 302, "headers": {"Location": "http://sk-secret-1.example/"}},
        {"body": b'{"choices": [{"message": {"refusal": "not for sk-secret-1"}}]}'},
        {"body": b'{"choices": [{"message": {"content": "sk-secret-1"}}]}'},
        {"drop": True},
    ],
)
def test_the_key_is_in_no_error_and_no_log(scripted_llm, connect, monkeypatch, caplog, how):
    monkeypatch.setenv("HELIOS_TEST_KEY", " sk-secret-1\n")
    scripted_llm.say(scripted_llm.Response(**how))
    client = connect(api_key_env="HELIOS_TEST_KEY")
    with caplog.at_level(logging.DEBUG):
        (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
    assert scripted_llm.headers[0]["authorization"] == "Bearer sk-secret-1"
    assert "sk-secret-1" not in str(outcome)
    assert "Bearer" not in caplog.text
    assert "sk-secret-1" not in repr(client.settings)


@pytest.mark.parametrize("key", ["sk-\u00e4", "sk-1\nX-Header: 1", ""])
def test_keys_that_cannot_be_sent_are_refused_without_showing_them(monkeypatch, key):
    monkeypatch.setenv("HELIOS_TEST_KEY", key)
    with pytest.raises(ConfigError, match="HELIOS_TEST_KEY") as caught:
        LlmClient.open(LanguageModelSettings(base_url="http://localhost/v1", model="m", api_key_env="HELIOS_TEST_KEY"))
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("after", ["nan", "inf", "-3", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_any_pause_that_a_server_asks_for_is_kept_within_reason(scripted_llm, connect, after):
    scripted_llm.say(scripted_llm.Response(status=429, headers={"Retry-After": after}))
    client = connect(question_seconds=5.0)
    (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
    assert outcome.kind is FailureKind.UNAVAILABLE


def test_details_are_short_whatever_a_reply_holds(scripted_llm, connect):
    scripted_llm.say(scripted_llm.completion(json.dumps({"rows": [1], "x" * 5000 + "\n": 1})))
    client = connect()
    (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
    assert outcome.kind is FailureKind.MALFORMED
    assert len(outcome.detail) < 600
    assert "\n" not in outcome.detail


def test_a_refusal_in_prose_shows_its_beginning(scripted_llm, connect):
    scripted_llm.say(scripted_llm.completion("I'm sorry, but I cannot help with that."))
    client = connect()
    (outcome,) = client.ask([ask_for("which?")], budget=client.budget())
    assert outcome.kind is FailureKind.MALFORMED
    assert "I'm sorry" in outcome.detail


class Verdict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    yes: bool
    no: bool

    @model_validator(mode="after")
    def _one(self):
        if self.yes and self.no:
            raise contradiction("yes and no")
        return self


def test_a_contradiction_is_named_mended_or_a_failure_of_its_own(scripted_llm, connect):
    both = scripted_llm.as_json({"yes": True, "no": True})
    scripted_llm.say(both, scripted_llm.as_json({"yes": True, "no": False}), both, both)
    client = connect()
    request = Request((Message("user", "?"),), Verdict, 64)
    (mended,) = client.ask([request], budget=client.budget())
    assert mended.value.yes
    assert "yes and no" in scripted_llm.requests[1]["messages"][-1]["content"]
    (outcome,) = client.ask([request], budget=client.budget())
    assert outcome.kind is FailureKind.CONTRADICTORY


def test_a_real_server_keeps_to_the_schema(tiny_llm):
    settings = LanguageModelSettings(base_url=tiny_llm, model="tiny", call_seconds=30.0)
    with LlmClient.open(settings) as client:
        budget = client.budget()
        requests = [ask_for(f"Which rows of table {number}?", max_tokens=400) for number in range(3)]
        outcomes = client.ask(requests, budget=budget)
    answers = [outcome for outcome in outcomes if isinstance(outcome, Answer)]
    assert len(answers) == 3
    assert all(len(answer.value.rows) <= 3 for answer in answers)
    assert budget.spent.calls == 3
    assert budget.spent.prompt_tokens > 3 * len("Which rows of table 0?")


def test_work_that_comes_first_leaves_its_share():
    budget = Budget(calls=4, tokens=100, seconds=10)
    first = budget.keeping(calls=1, tokens=30, seconds=4)
    assert first.seconds_left() < 6.1 < budget.seconds_left()
    assert "70 are left" in first.reserve(71)
    assert [first.reserve(1) for _ in range(4)] == ["", "", "", "all calls of this question are spent"]
    assert budget.reserve(97) == ""
    tight = Budget(calls=3, tokens=100, seconds=1).keeping(calls=9, tokens=900, seconds=9)
    assert [tight.reserve(10) for _ in range(3)] == ["", "", "all calls of this question are spent"]
