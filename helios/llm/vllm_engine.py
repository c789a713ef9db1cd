"""A model in this process: vLLM's asynchronous engine as a backend, for batch work on a GPU machine.

vLLM is no extra of this package: its releases pin torch and CUDA, so it is installed first, in an environment of its
own (`pip install vllm`, then this package into it). It is imported only when a model is loaded.
"""

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import Any

from helios.errors import ConfigError
from helios.llm.backend import Reply, Undelivered
from helios.llm.outcome import FailureKind, Usage
from helios.llm.quoting import clip
from helios.llm.request import Message

_DETAIL_BYTES = 300


class VllmEngine:
    """One model in memory. The engine batches what is under way; a call that is cancelled is aborted in it."""

    def __init__(
        self, model: str, engine: Any, tokenizer: Any, sampling: Callable[..., Any],
        *, errors: tuple[type[Exception], ...] = (),
    ) -> None:  # fmt: skip
        """`sampling(schema=..., max_tokens=...)` makes sampling parameters; `errors` are the engine's own."""
        self._model = model
        self._engine = engine
        self._tokenizer = tokenizer
        self._sampling = sampling
        self._errors: tuple[type[Exception], ...] = (ValueError, RuntimeError, *errors)
        self._numbers = itertools.count(1)

    @classmethod
    def load(cls, model: str, *, context_tokens: int | None = None, gpus: int = 1) -> "VllmEngine":
        """Load a folder or hub name onto the GPUs; takes minutes for a large model.

        Raises ConfigError without vLLM, or if it cannot load the model.
        """
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")  # it reports to its makers where nobody says otherwise
        try:
            import_module("vllm")  # before transformers, which takes long: what is missing is told at once
            from transformers import AutoTokenizer
            from vllm import AsyncEngineArgs, AsyncLLMEngine, SamplingParams
            from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams
            from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError
        except ImportError as error:
            raise ConfigError(
                f"llm.backend=vllm needs {error.name}: install vllm >= 0.32 on a machine with a GPU, or start "
                "`vllm serve` there and use llm.backend=server with llm.base_url"
            ) from None

        def sampling(*, schema: dict[str, Any], max_tokens: int) -> Any:
            return SamplingParams(
                temperature=0.0,
                max_tokens=max_tokens,
                structured_outputs=StructuredOutputsParams(json=schema),
                output_kind=RequestOutputKind.FINAL_ONLY,
            )

        options = {} if context_tokens is None else {"max_model_len": context_tokens}
        try:
            engine = AsyncLLMEngine.from_engine_args(AsyncEngineArgs(model=model, tensor_parallel_size=gpus, **options))
            tokenizer = AutoTokenizer.from_pretrained(model)
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigError(f"llm.model={model}: vLLM cannot load it ({clip(str(error), _DETAIL_BYTES)})") from error
        return cls(model, engine, tokenizer, sampling, errors=(EngineDeadError, EngineGenerateError))

    @property
    def model(self) -> str:
        return self._model

    async def reply(
        self, messages: Sequence[Message], schema: dict[str, Any], *, max_tokens: int, timeout: float
    ) -> Reply | Undelivered:
        """One generation; see `Backend.reply`. The deadline is the caller's, who cancels."""
        try:
            prompt = self._tokenizer.apply_chat_template(
                [asdict(message) for message in messages], add_generation_prompt=True, tokenize=True, return_dict=False
            )
            last = None
            async for output in self._engine.generate(
                {"prompt_token_ids": prompt},
                self._sampling(schema=schema, max_tokens=max_tokens),
                request_id=f"helios-{next(self._numbers)}",
            ):
                last = output
        except self._errors as error:
            # A prompt beyond the context, a schema that does not compile, a dead engine: asking again helps nothing.
            return Undelivered(FailureKind.UNAVAILABLE, f"vLLM: {clip(str(error), _DETAIL_BYTES)}")
        if last is None or not last.outputs:
            return Reply("", usage=Usage(1, len(prompt), 0))
        (first, *_) = last.outputs
        usage = Usage(1, len(prompt), len(first.token_ids))
        return Reply(first.text, truncated=first.finish_reason == "length", usage=usage)

    async def close(self) -> None:
        """Stop the engine and give the GPU's memory back; the backend cannot be used again."""
        self._engine.shutdown()
