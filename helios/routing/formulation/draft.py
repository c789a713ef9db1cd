"""What a question says before tables are settled: parts whose mentions may still mean several columns."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from helios.routing.formulation.cues import Grade
from helios.routing.formulation.pieces import Piece
from helios.routing.formulation.plan import Aggregate, Operator


@dataclass(slots=True)
class Item:
    """A column or a table that is selected, grouped or ordered by."""

    piece: Piece | None
    aggregate: Aggregate | None = None
    distinct: bool = False
    grade: Grade | None = None
    """An attribute to look for, where no column is named."""
    total: bool = False
    """A count that is a sum where the column holds amounts."""
    near: Piece | None = None
    """Where the attribute is spoken of."""
    many: bool = False
    """After "most" or "fewest": what is not a number is counted."""
    provisional: bool = False
    """A table that is selected only if nothing else is."""


@dataclass(slots=True)
class Filter:
    """A comparison whose column may still be open."""

    subject: Piece | None
    operator: Operator
    value: Piece | None
    second: Piece | None = None
    grade: Grade | None = None
    negated: bool = False
    alternative: bool = False
    """Joined to the filter before by "or"."""
    average: Aggregate | None = None
    """Compared with an aggregate of the column itself."""
    inside: bool = False
    """About the rows that the aggregate of the filter before is computed over."""
    than: Item | None = None
    """Another column, that it is compared with."""
    own: Item | None = None
    """What the rows that the aggregate is computed over share with the row: "the average of its own category"."""
    at: int = 0


@dataclass(slots=True)
class Counted:
    """A condition on how many rows of a table belong to each entity."""

    operator: Operator
    number: float
    piece: Piece | None
    item: Item | None = None
    """An aggregated column that is compared instead of the count."""
    different: bool = False
    """Each of them counts once: "at least two different machines"."""


@dataclass(slots=True)
class Draft:
    """A question's parts, with mentions not yet settled."""

    pieces: Sequence[Piece]
    select: list[Item] = field(default_factory=list)
    filters: list[Filter] = field(default_factory=list)
    groups: list[Item] = field(default_factory=list)
    orders: list[Item] = field(default_factory=list)
    descending: bool | None = None
    limit: int | None = None
    having: list[Counted] = field(default_factory=list)
    absent: list[tuple[Piece, list[Filter]]] = field(default_factory=list)
    never: tuple[Piece, ...] | None = None
    """What is said after a negation that nothing else took: "have never been used"."""
    distinct: bool = False
    both: bool = False
    directed: bool = False
    """A direction of order is said."""
    measured: bool = False
    """The order is that of amounts: from the largest to the smallest."""
    either: bool = False
    """A count and a condition are joined by "or"."""
    listed: bool = False
    """A sentence of its own lists what is wanted."""
    share: int | None = None
    """A percentage is asked for: of what is said before this token, how many are as is said from there on."""
    mentions: list[Piece] = field(default_factory=list)
