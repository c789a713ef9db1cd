"""Questions whose answer stands in one known source, whatever that source is asked in."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from helios.executors.base import Language
from helios.executors.values import Value

Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """A question with its gold source, and with the gold query, gold rows or gold documents where the data has them."""

    question_id: str
    text: str
    paradigm: Language
    """The language of the gold source."""
    source: str
    """The name under which the gold source is registered."""
    gold_query: str | None = None
    gold_answers: tuple[Row, ...] | None = None
    """Rows of the gold query; None where the data has none stored, so that the gold query has to be run."""
    gold_count: int | None = None
    """How many rows the gold query gives, where only the first of them are stored."""
    qrels: Mapping[str, int] = field(default_factory=dict)
    """Relevance by document id."""
    ordered: bool = False
    """Whether the gold query orders its rows."""
    flags: tuple[str, ...] = ()
    dataset: str = ""
    hint: str = ""
    """What the data gives beside the question (BIRD's evidence)."""
    twins: tuple[str, ...] = ()
    """Sources that hold the same data in another form: asking one of them is no mistake of substance."""

    def digest(self) -> str:
        """Changes with anything that a figure of the question depends on."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]


TIES = "ties possible"
"""A flag: the gold query orders or cuts its rows, and rows that tie may stand in any order or be cut."""
UNTYPED = "untyped"
"""A flag: the stored answers are text, so that a number counts as equal to its text."""
UNORDERED_LISTS = "unordered lists"
"""A flag: lists inside a row were collected in no particular order."""
