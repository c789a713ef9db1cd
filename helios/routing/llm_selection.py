"""Sources that a language model selects from the whole catalogue (2.2).

What a reply names must be among what was shown; unknown names are refused. Where the model fails, the ranking made
without it stands, and the result says so.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from helios.config import LanguageModelSettings
from helios.llm.budget import Budget
from helios.llm.client import LanguageModel
from helios.llm.outcome import Failure
from helios.llm.quoting import RULE, block, one_line
from helios.llm.request import Message, Request
from helios.routing.catalogue import catalogue, described, whole_hits
from helios.routing.selection import RankedSource, Selection, Selector
from helios.sources.base import Source
from helios.sources.descriptor_text import CHARACTERS_PER_TOKEN

CATALOGUE = 2
"""The catalogue of all sources may have so many times the tokens of one source's description."""
STEP = 0.5
"""Each source of a model's list is taken for half as probable as the one before."""
CHOOSE_SOURCES = (
    "You decide which knowledge sources to ask a question. Below is a catalogue: each source with its name, the "
    "language that it is asked in, and one line for each table, class or label with the names in it. After it come "
    "stored values that the question names, where there are any; a source that does not have a name may still have the "
    "answer. Name the sources that can hold the answer, the likeliest first, "
    "by their names. A source whose tables, predicates or node types carry the asked facts comes before a collection "
    "of texts that may only mention them. Name several where the answer needs several, or where you cannot tell from "
    "the descriptions which has it; name none where none can."
)
REPLY = "Reply with one JSON object that fits the given schema, without any other text."


class LlmSelector:
    """Reads the whole catalogue; `fallback` decides where the model fails."""

    def __init__(self, model: LanguageModel, settings: LanguageModelSettings, fallback: Selector) -> None:
        self.model = model
        self.settings = settings
        self.fallback = fallback

    def select(
        self, question: str, sources: Sequence[Source], *, k: int = 3, budget: Budget | None = None
    ) -> Selection:
        """At most `k` sources as the model ranks them; see `Selector.select`."""
        descriptors, notes = described(sources)
        degraded = bool(notes)
        if not descriptors:
            return Selection((), "language model", (*notes, "no source describes itself"), degraded)
        names = [descriptor.source for descriptor in descriptors]
        shown = catalogue(descriptors, room=int(CATALOGUE * self.settings.prompt_tokens * CHARACTERS_PER_TOKEN))
        parts = [block(shown)]
        if hits := whole_hits(question, [source for source in sources if source.name in names]):
            lines = "\n".join(f"- {name}: {'; '.join(found)}" for name, found in hits.items())
            parts.append(f"Values that the question names:\n{block(lines)}")
        parts.append(f"At most {k} sources.\n\nQuestion: {one_line(question)}")
        asked = (Message("system", f"{CHOOSE_SOURCES} {RULE} {REPLY}"), Message("user", "\n\n".join(parts)))
        request = Request(asked, _names_shape(names, k), self.settings.reply_tokens)
        (outcome,) = self.model.ask([request], budget=budget or self.model.budget())
        if isinstance(outcome, Failure):
            selection = self.fallback.select(question, sources, k=k, budget=budget)
            note = f"the language model chose no sources ({outcome}); they were chosen by words and vectors"
            return replace(selection, notes=(*notes, note, *selection.notes), degraded=True)
        chosen = list(dict.fromkeys(getattr(outcome.value, "sources")))[:k]  # noqa: B009 (a field made at run time)
        if not chosen:
            notes.append("the language model holds that no source has the answer")
        total = sum(STEP**i for i in range(len(chosen)))
        ranked = tuple(RankedSource(name, STEP**i / total, ("chosen by the model",)) for i, name in enumerate(chosen))
        return Selection(ranked, "language model", tuple(notes), degraded)


def _names_shape(names: Sequence[str], k: int) -> type[BaseModel]:
    """A reply that can hold nothing but these names, `k` at most."""
    known: Any = Literal[tuple(names)]
    return create_model(
        "ChosenSources",
        __config__=ConfigDict(extra="forbid"),
        sources=(Annotated[list[known], Field(max_length=k)], ...),
    )
