"""A question that needs two sources, as questions to one source each (OmniRetrieval 2.2): split and joined.

Only where the question as it is got no answer, and only with a language model. At most three steps; a later one may
name the values that an earlier one gave, at most twenty, so the join is made by the later source's own query.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from helios.config import LanguageModelSettings
from helios.errors import SourceError
from helios.llm.budget import Budget
from helios.llm.client import LanguageModel
from helios.llm.outcome import Failure
from helios.llm.quoting import RULE, block, one_line
from helios.llm.request import Message, Request
from helios.routing.catalogue import catalogue
from helios.routing.evidence import FROM_MEANING, SourceReply
from helios.routing.llm_selection import REPLY
from helios.routing.verbalisation import value_text
from helios.sources.base import Source
from helios.sources.descriptor_text import CHARACTERS_PER_TOKEN

STEPS = 3
VALUES = 20
"""Values that a step hands on."""
LONGEST_QUESTION = 500
EARLIER = re.compile(r"\{(\d+)\}")
SPLIT = (
    "No single source answered the question below. If two or three sources answer it together, split it into questions "
    f"to one source each, at most {STEPS}, in the order in which they are asked. Where a question needs what an "
    "earlier one gives, write the earlier one's number in braces, as in: Which films did {1} direct? The last "
    "question's answer must be the answer to the whole. Give no step if the sources do not answer it together either."
)


@dataclass(frozen=True, slots=True)
class Step:
    """A question to one source; `{1}` in it stands for the values that the first step gives."""

    source: str
    question: str


class Splitter:
    """Splits with a language model; threads may share it."""

    def __init__(self, model: LanguageModel, settings: LanguageModelSettings) -> None:
        self.model = model
        self.settings = settings

    def split(self, question: str, sources: Sequence[Source], budget: Budget) -> tuple[Step, ...]:
        """The steps, none where the question cannot be split or the model fails."""
        descriptors = []
        for source in sources:
            try:
                descriptors.append(source.descriptor())
            except SourceError:
                continue
        if len(descriptors) < 2:
            return ()
        shown = catalogue(descriptors, room=int(self.settings.prompt_tokens * CHARACTERS_PER_TOKEN))
        user = f"{block(shown)}\n\nQuestion: {one_line(question)}"
        asked = (Message("system", f"{SPLIT} {RULE} {REPLY}"), Message("user", user))
        request = Request(asked, _shape([each.source for each in descriptors]), self.settings.reply_tokens)
        (outcome,) = self.model.ask([request], budget=budget)
        if isinstance(outcome, Failure):
            return ()
        steps = tuple(Step(step.source, step.question) for step in getattr(outcome.value, "steps"))  # noqa: B009
        return steps if len(steps) > 1 and _in_order(steps) else ()


def filled(question: str, given: Sequence[Sequence[str]]) -> str:
    """A step's question with the values that earlier steps gave; empty where one of them gave none."""
    numbers = [int(number) for number in EARLIER.findall(question)]
    if any(not given[number - 1] for number in numbers):
        return ""
    return EARLIER.sub(lambda match: ", ".join(given[int(match[1]) - 1]), question)


def values_of(reply: SourceReply) -> list[str]:
    """The first values of the surest result: of its first column that has texts, else of its first column."""
    results = [execution for execution in reply.executions if execution.made_by in FROM_MEANING]
    if not results:
        return []
    best = max(results, key=lambda execution: execution.confidence)
    rows = [
        [best.labels.get(str(value), value) if value is not None else None for value in row] for row in best.result.rows
    ]
    columns = range(len(best.result.columns))
    named = next((i for i in columns if any(isinstance(row[i], str) for row in rows)), 0)
    texts = [value_text(row[named]) for row in rows if row[named] is not None]
    return list(dict.fromkeys(texts))[:VALUES]


def _in_order(steps: Sequence[Step]) -> bool:
    """Whether each step names earlier ones alone."""
    return all(
        1 <= int(number) <= place for place, step in enumerate(steps) for number in EARLIER.findall(step.question)
    )


def _shape(names: Sequence[str]) -> type[BaseModel]:
    """Steps to these sources and no others."""
    strict = ConfigDict(extra="forbid")
    known: Any = Literal[tuple(names)]
    text = Annotated[str, Field(min_length=1, max_length=LONGEST_QUESTION)]
    step: Any = create_model("Step", __config__=strict, source=(known, ...), question=(text, ...))
    steps: Any = Annotated[list[step], Field(max_length=STEPS)]
    return create_model("SplitQuestion", __config__=strict, steps=(steps, ...))
