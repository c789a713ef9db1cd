"""What two readers make of a question, side by side.

Words of tables and columns lead the generator to joins, groups and several columns; the reader of tables finds columns
that share no word with the question; a property graph is read as a pattern, and as tables. Where both give the same
rows, nearly all are right. Where they differ one of them is right, or neither: each says how likely it is right alone,
and the chances follow from that.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from helios.errors import SourceError
from helios.routing.formulation.base import Candidate, Formulator
from helios.routing.programs.remembered import Remembered
from helios.sources.base import Source

log = logging.getLogger(__name__)

SURE = 0.9
"""Confidence of the first reader from which the second is not asked."""
SEVERAL = "columns"
"""The feature of a written query that says how many columns it gives (`helios.routing.formulation.features`)."""


def of_programs(chance: float) -> float:
    """What the chance of a program is worth that the reader of tables computes: it learned from folders, and of a
    database middling ones are right less often than it says. Fitted to the databases that were read."""
    return 0.9 * chance**2


def of_graph_tables(chance: float) -> float:
    """The same of a property graph's query as tables, whose chance was learned from databases. Chosen on the graphs
    that were read."""
    return 0.65 * chance


class Together:
    """Queries of two formulators in one order; threads may share it."""

    def __init__(
        self, written: Formulator, computed: Formulator, *, trust: Callable[[float], float] = of_programs,
        several: bool = False,
    ) -> None:  # fmt: skip
        """`trust`: what the confidence of the second is worth; `several`: whether it can give several columns, if not
        it is not asked where the first gives them."""
        self.written, self.computed, self.trust, self.several = written, computed, trust, several

    def formulate(self, question: str, source: Source) -> list[Candidate]:
        """Queries best first, each with the chance that is left to it by the others."""
        source = Remembered.of(source)
        written = list(self.written.formulate(question, source))
        if written and (written[0].confidence >= SURE or (not self.several and asks_for_several(written[0]))):
            return written
        computed = self._computed(question, source)
        if not computed:
            return written
        return weighed(written, computed, [_rows(one, source) for one in (*written, *computed)])

    def _computed(self, question: str, source: Source) -> list[Candidate]:
        try:
            found = self.computed.formulate(question, source)
        except Exception as error:  # noqa: BLE001 - what goes wrong here must not cost the written queries
            log.error("%s could not be read another way", source.name, exc_info=error)
            return []
        return [replace(one, confidence=self.trust(one.confidence)) for one in found]


def asks_for_several(written: Candidate) -> bool:
    """Whether a query gives several columns, which no program does."""
    return written.features.get(SEVERAL, 0.0) > 1.0  # of a logarithm: two or more


def weighed(written: Sequence[Candidate], computed: Sequence[Candidate], rows: Sequence[str]) -> list[Candidate]:
    """Candidates best first; `rows` says what each gives, those of `written` first, and is empty where it fails.

    The two formulators are taken to be right or wrong by themselves, and at most one result to be right.
    """
    sides: dict[str, tuple[float, float]] = {}
    first: dict[str, Candidate] = {}
    for number, one in enumerate((*written, *computed)):
        key = rows[number] or f"fails: {one.query.text}"
        by_words, by_tables = sides.get(key, (0.0, 0.0))
        if number < len(written):
            sides[key] = max(by_words, one.confidence), by_tables
        else:
            sides[key] = by_words, max(by_tables, one.confidence)
        first.setdefault(key, one)
    found = []
    for key, one in first.items():
        by_words, by_tables = sides[key]
        others = [chances for other, chances in sides.items() if other != key]
        rival = max([0.0, *(tables for _, tables in others if by_words), *(words for words, _ in others if by_tables)])
        own = 1.0 - (1.0 - by_words) * (1.0 - by_tables)
        found.append(replace(one, confidence=own * (1.0 - rival) / ((1.0 - own * rival) or 1.0)))
    return sorted(found, key=lambda one: -one.confidence)


def _rows(candidate: Candidate, source: Source) -> str:
    """What a query gives, in whatever order; empty where it fails."""
    try:
        return repr(sorted(map(repr, source.execute(candidate.query).rows)))
    except SourceError:
        return ""
