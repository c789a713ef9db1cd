"""Which sources to ask (OmniRetrieval 2.2): the role, its result, and the selectors that need no reading.

`helios.routing.lexical_selection` ranks without a language model, `helios.routing.llm_selection` with one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from helios.executors.base import Language
from helios.llm.budget import Budget
from helios.sources.base import Source


@dataclass(frozen=True, slots=True)
class RankedSource:
    """A source that may answer, how probably, and why."""

    name: str
    probability: float
    """From 0 to 1; those of all sources, with that of `none of them`, add up to 1."""
    reasons: tuple[str, ...] = ()
    """What of the question was found in the source, in words."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Sources to ask, best first; none where the selector abstains."""

    sources: tuple[RankedSource, ...]
    made_by: str
    """`lexical`, `language model`, `oracle` or `single backend`."""
    notes: tuple[str, ...] = ()
    degraded: bool = False
    """Whether a source could not be considered, or a language model failed and the lexical selector stands in."""

    @property
    def abstained(self) -> bool:
        """Whether no source seems to hold the answer."""
        return not self.sources

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(ranked.name for ranked in self.sources)


class Selector(Protocol):
    """Chooses among sources; threads may share it."""

    def select(
        self, question: str, sources: Sequence[Source], *, k: int = 3, budget: Budget | None = None
    ) -> Selection:
        """At most `k` sources, best first; a source that fails is left out with a note."""


class OracleSelector:
    """Knows the sources of every question: the upper bound of an evaluation."""

    def __init__(self, gold: dict[str, Sequence[str]]) -> None:
        self.gold = gold
        """Names of sources by question."""

    def select(
        self, question: str, sources: Sequence[Source], *, k: int = 3, budget: Budget | None = None
    ) -> Selection:
        known = {source.name for source in sources}
        names = [name for name in self.gold.get(question, ()) if name in known][:k]
        return Selection(tuple(RankedSource(name, 1.0 / len(names), ("gold",)) for name in names), "oracle")


class SingleBackendSelector:
    """Another selector that sees the sources of one language alone: a baseline."""

    def __init__(self, inner: Selector, language: Language) -> None:
        self.inner = inner
        self.language = language

    def select(
        self, question: str, sources: Sequence[Source], *, k: int = 3, budget: Budget | None = None
    ) -> Selection:
        speaking = [source for source in sources if source.language is self.language]
        selection = self.inner.select(question, speaking, k=k, budget=budget)
        return replace(selection, notes=(*selection.notes, f"only sources that are asked in {self.language}"))


class KbRouting:
    """Another selector's first choice alone, whatever `k` is (the paper's KB routing)."""

    def __init__(self, inner: Selector) -> None:
        self.inner = inner

    def select(
        self, question: str, sources: Sequence[Source], *, k: int = 3, budget: Budget | None = None
    ) -> Selection:
        return self.inner.select(question, sources, k=1, budget=budget)
