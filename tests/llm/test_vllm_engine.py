"""The backend over vLLM's engine, against a stand-in for it.

vLLM needs a GPU and pins its own torch, so it is not among what the tests install: the stand-in has the four calls
that the backend makes (engine arguments, sampling parameters, generate, shutdown). The chat template is a real one.
"""

import asyncio
import os
import sys
from types import ModuleType, SimpleNamespace

import pytest
from pydantic import BaseModel

from helios.config import LanguageModelSettings
from helios.errors import ConfigError
from helios.llm import Answer, FailureKind, LlmClient, Message, Request, Undelivered, Usage
from helios.llm.vllm_engine import VllmEngine


class Rows(BaseModel):
    rows: list[int]


class EngineDead(Exception):
    """An error of vLLM's own."""


class Tokenizer:
    """A token a character, as transformers' tokenizers answer."""

    def apply_chat_template(self, turns, *, add_generation_prompt, tokenize, return_dict):
        assert add_generation_prompt
        assert tokenize
        assert not return_dict
        return [ord(c) for turn in turns for c in f"{turn['role']}: {turn['content']}\n"]


class Engine:
    """Gives one text, as late as it is told, or breaks."""

    def __init__(self, text="", *, seconds=0.0, error=None, finish="stop"):
        self.text, self.seconds, self.error, self.finish = text, seconds, error, finish
        self.asked, self.ids, self.aborted, self.down = [], [], [], False

    async def generate(self, prompt, sampling_params, request_id):
        self.asked.append((prompt, sampling_params))
        self.ids.append(request_id)
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.aborted.append(request_id)
            raise
        if self.error:
            raise self.error
        output = SimpleNamespace(text=self.text, token_ids=[1] * len(self.text), finish_reason=self.finish)
        yield SimpleNamespace(outputs=[output], finished=True)

    def shutdown(self):
        self.down = True


def ask(engine: Engine, **limits):
    backend = VllmEngine("m", engine, Tokenizer(), dict, errors=(EngineDead,))
    with LlmClient(backend, LanguageModelSettings(model="m", backend="vllm", **limits)) as client:
        requests = [Request((Message("user", str(number)),), Rows, 64) for number in range(2)]
        return client.ask(requests, budget=client.budget())


def test_an_answer_is_validated_and_counted():
    engine = Engine('{"rows": [1]}')
    first, second = ask(engine)
    assert first == second == Answer(Rows(rows=[1]), Usage(1, len("user: 0\n"), 13))
    assert engine.asked[0][1] == {"schema": Rows.model_json_schema(), "max_tokens": 64}
    assert len(set(engine.ids)) == 2
    assert engine.down


@pytest.mark.parametrize(
    ("engine", "kind"),
    [
        (Engine("prose"), FailureKind.MALFORMED),
        (Engine(""), FailureKind.EMPTY),
        (Engine('{"rows": [1', finish="length"), FailureKind.MALFORMED),
        (Engine(error=EngineDead("gone")), FailureKind.UNAVAILABLE),
        (Engine(error=ValueError("prompt too long")), FailureKind.UNAVAILABLE),
    ],
)
def test_what_goes_wrong_is_an_outcome(engine, kind):
    assert [outcome.kind for outcome in ask(engine)] == [kind, kind]


def test_a_late_call_is_aborted_in_the_engine():
    engine = Engine("{}", seconds=60.0)
    outcomes = ask(engine, call_seconds=0.2)
    assert [outcome.kind for outcome in outcomes] == [FailureKind.LATE, FailureKind.LATE]
    assert sorted(engine.aborted) == sorted(engine.ids)


def test_without_vllm_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ConfigError, match=r"install vllm .* or start `vllm serve`"):
        LlmClient.open(LanguageModelSettings(backend="vllm", model="m"))
    with pytest.raises(ConfigError, match=r"set llm\.model"):
        LlmClient.open(LanguageModelSettings(backend="vllm"))


def test_loading_asks_vllm_for_greedy_schema_bound_replies(monkeypatch):
    pytest.importorskip("transformers", reason="transformers is not installed (extra train)")
    import transformers

    made = {}

    def record(name):
        return lambda **values: made.setdefault(name, values) and SimpleNamespace(**values)

    vllm, sampling, errors = (
        ModuleType("vllm"),
        ModuleType("vllm.sampling_params"),
        ModuleType("vllm.v1.engine.exceptions"),
    )
    engine = Engine('{"rows": []}')
    vllm.AsyncEngineArgs, vllm.SamplingParams = record("engine"), record("sampling")
    vllm.AsyncLLMEngine = SimpleNamespace(from_engine_args=lambda arguments: engine)
    sampling.StructuredOutputsParams = record("structure")
    sampling.RequestOutputKind = SimpleNamespace(FINAL_ONLY="final")
    errors.EngineDeadError = errors.EngineGenerateError = EngineDead
    modules = {"vllm": vllm, "vllm.sampling_params": sampling, "vllm.v1.engine.exceptions": errors}
    for name, module in {**modules, "vllm.v1": ModuleType("v1"), "vllm.v1.engine": ModuleType("engine")}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda model: Tokenizer())
    monkeypatch.setenv("VLLM_NO_USAGE_STATS", "to be removed again")
    monkeypatch.delenv("VLLM_NO_USAGE_STATS")
    backend = VllmEngine.load("folder", context_tokens=4096, gpus=2)
    reply = asyncio.run(backend.reply([Message("user", "?")], {"type": "object"}, max_tokens=7, timeout=1.0))
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1"
    assert not isinstance(reply, Undelivered)
    assert made["engine"] == {"model": "folder", "tensor_parallel_size": 2, "max_model_len": 4096}
    assert made["sampling"]["temperature"] == 0.0
    assert made["sampling"]["max_tokens"] == 7
    assert made["structure"] == {"json": {"type": "object"}}
