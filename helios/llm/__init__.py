"""Asking a language model: typed requests in, typed outcomes out, never an exception for what a server does.

    with LlmClient.open(config.language_model) as client:
        budget = client.budget()
        (outcome,) = client.ask([Request(messages, Verdict)], budget=budget)
        if isinstance(outcome, Answer): outcome.value  # a Verdict
        else: outcome.kind, outcome.detail             # late, refused, malformed, ...

`Backend` is what a model behind a protocol has to offer; the OpenAI-compatible endpoint is one, a model in this
process (vLLM's asynchronous engine) can be another. Everything else (schema, repair, cache, budget, deadlines,
concurrency) is here once for all of them.
"""

from helios.llm.backend import Backend, Reply, Undelivered
from helios.llm.budget import Budget, estimate_tokens
from helios.llm.cache import ReplyCache
from helios.llm.client import LanguageModel, LlmClient
from helios.llm.outcome import Answer, Failure, FailureKind, Outcome, Usage
from helios.llm.request import Message, Request

__all__ = [
    "Answer",
    "Backend",
    "Budget",
    "Failure",
    "FailureKind",
    "LanguageModel",
    "LlmClient",
    "Message",
    "Outcome",
    "Reply",
    "ReplyCache",
    "Request",
    "Undelivered",
    "Usage",
    "estimate_tokens",
]
