"""Questions about the sample corpus, with the prompts and replies of a capable model: from the question to the answer.

A recorded reply fits a prompt of the same step with the same instructions and question that shows what the reply
names, in whatever order; any other prompt fails the test. To record anew, with any OpenAI-compatible server:

    HELIOS_RECORD=http://localhost:8000/v1 pytest tests/reading/test_recorded.py
"""

import json
import os
import re
import urllib.request
from pathlib import Path

import pytest

from helios.engine import Engine
from helios.reading.asking import answer_question, llm_overrides

pytest.importorskip("openai", reason="openai is not installed (extra llm)")

RECORDED = Path(__file__).parent / "recorded.json"
SERVER = os.environ.get("HELIOS_RECORD", "")
ANSWERS = {
    "Where does the longest river in the table of European rivers rise?": "Valdai Hills",
    "What did the lunar module pilot of Apollo 12 become after leaving NASA?": "painter",
    "In which country was the architect of the twin skyscrapers in Kuala Lumpur born?": "Argentina",
}
SETTINGS = [
    "encoder.runtime=torch", "advanced.refinement.gate=1.0", "advanced.llm.call_seconds=600",
    "advanced.llm.question_seconds=6000",
]  # fmt: skip


MARK = re.compile(r"</?data(?: \w+)?>")
ITEM = re.compile(r"^(?:\[(\d+)\]|([RP]\d+)) +(.+?)(?: \(linked from .*)?$(?:\n    (.+))?", re.MULTILINE)


def shown(messages: list[dict[str, str]]) -> dict[str, str]:
    """What a prompt shows by its label, as `6` or `R1`: tables, rows, passages."""
    found = ITEM.findall(messages[-1]["content"])
    return {number or label: f"{name} {below if label else ''}" for number, label, name, below in found}


def relabelled(reply: str, recorded: dict[str, str], now: dict[str, str]) -> str:
    """A reply with the labels that what it names has now; KeyError where something is not shown."""
    labels = {what: label for label, what in now.items()}
    said = json.loads(reply)
    for key in ("numbers", "tables"):
        if key in said:
            said[key] = [int(labels[recorded[str(number)]]) for number in said[key]]
    return re.sub(r"\b[RP]\d+\b", lambda label: labels[recorded[label[0]]], json.dumps(said, ensure_ascii=False))


class Recording:
    """Replies by the messages that they answer; in recording, from the server that HELIOS_RECORD names."""

    def __init__(self) -> None:
        pairs = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() and not SERVER else []
        self.replies = {self.key(pair["messages"]): (shown(pair["messages"]), pair["reply"]) for pair in pairs}
        self.pairs = list(pairs)
        self.unknown: list[str] = []

    @staticmethod
    def key(messages: list[dict[str, str]]) -> str:
        instructions, *_, question = MARK.split(messages[-1]["content"])
        return json.dumps([*messages[:-1], instructions, question])

    def reply(self, body: dict) -> str | None:
        """What the model said to these messages, None where nothing is recorded."""
        key, now = self.key(body["messages"]), shown(body["messages"])
        if key not in self.replies and SERVER:
            self.replies[key] = (now, self._ask(body))
            self.pairs.append({"messages": body["messages"], "reply": self.replies[key][1]})
        try:
            recorded, reply = self.replies[key]
            return relabelled(reply, recorded, now)
        except KeyError:
            self.unknown.append(body["messages"][-1]["content"])
            return None

    def _ask(self, body: dict) -> str:
        request = urllib.request.Request(
            f"{SERVER.rstrip('/')}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=600) as response:
            return json.load(response)["choices"][0]["message"]["content"]


@pytest.fixture(scope="module")
def recording():
    made = Recording()
    yield made
    if SERVER:
        RECORDED.write_text(json.dumps(made.pairs, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def asking(sample_index, shared_scripted_llm, recording):
    """The engine and its reader; the server counts no tokens, so that they are estimated from the texts."""
    server = shared_scripted_llm

    def script(body):
        said = recording.reply(body)
        if said is None:
            return server.Response(status=400)
        message = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        return server.Response(json.dumps({"id": "1", "object": "chat.completion", "choices": [message]}).encode())

    server.script = script
    overrides = llm_overrides(server.url, "scripted", SETTINGS)
    with Engine.open(sample_index, overrides=overrides, threads=1) as engine:
        yield engine, engine.reader


@pytest.mark.parametrize("question", ANSWERS)
def test_a_recorded_model_answers_within_six_calls_and_twelve_thousand_tokens(asking, recording, question):
    answer, _ = answer_question(*asking, question)
    unknown, recording.unknown = recording.unknown, []
    if unknown:
        how = (__doc__ or "").partition("To record ")[2].strip()
        pytest.fail(f"a prompt is not among the recorded ones; to record {how}\n\n{unknown[0]}")
    assert (answer.text, answer.reader, answer.support, answer.degraded) == (ANSWERS[question], "llm", "checked", False)
    assert answer.explanation
    assert answer.citations
    assert not answer.dropped
    assert 2 <= answer.calls <= 6
    assert 1000 <= answer.tokens <= 12_000
