"""The context of a question: what a database says of the row that it comes from (DAQu 3.2, the set of attributes).

    context = Context.from_columns({"tags.name": ["qiskit", "measurement"], "users.about_me": ["I teach physics."]})
    context.texts()      # ('qiskit', 'measurement', 'I teach physics.')

The values are plain: no I/O, no models. `helios.augment.augmenter` gathers them from a database,
`helios.augment.encoding` turns them into vectors.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a column's values are, and so how they are put into words."""

    TEXT = "text"
    CATEGORY = "category"
    NUMBER = "number"
    DATE = "date"


@dataclass(frozen=True, slots=True)
class Attribute:
    """One value of one row that the question's row leads to."""

    column: str
    """`table.column`, where the value stands."""
    text: str
    """The value in words, as an encoder reads it."""
    key: str = ""
    """The row that holds it, as `table:key`; empty for values that come from no database."""
    kind: Kind = Kind.TEXT
    seconds_before: float | None = None
    """How long before the question the row was written; None where its table has no time."""


@dataclass(frozen=True, slots=True)
class ContextColumn:
    """The attributes of one column that were reached in one way: a set, whose order means nothing."""

    name: str
    """`table.column`."""
    path: tuple[str, ...] = ()
    """The keys that lead from the question's row to the table, in words: `posts.owner_user_id > users.id`. It is the
    column's role: the author's other posts and the answered post stand in one column of the database, and are two."""
    attributes: tuple[Attribute, ...] = ()
    found: int = 0
    """Values that the database has, as far as they were counted; at least `kept`."""
    seconds: float = 0.0
    """What the query of its table took."""

    @property
    def role(self) -> str:
        """Name and path as one text: what tells the columns of a context apart, whatever the question's row."""
        return " / ".join((*self.path, self.name))

    @property
    def kept(self) -> int:
        """Attributes that are given to the question."""
        return len(self.attributes)

    def texts(self) -> tuple[str, ...]:
        """Every attribute in words."""
        return tuple(attribute.text for attribute in self.attributes)


@dataclass(frozen=True, slots=True)
class Context:
    """The set of attributes by column. A context without any is false, and changes no search."""

    columns: tuple[ContextColumn, ...] = ()
    row: str = ""
    """The question's row as `table:key`; empty for values that come from no database."""
    truncated: bool = False
    """Whether a cap or the deadline left something out; `notes` say what."""
    seconds: float = 0.0
    """What gathering took, all together."""
    notes: tuple[str, ...] = ()
    """What a reader should know of it, in words."""

    @classmethod
    def from_columns(cls, columns: Mapping[str, Sequence[str]]) -> "Context":
        """A context of one's own values by column; empty values and empty columns are left out."""
        found = []
        for name, texts in columns.items():
            if isinstance(texts, str):
                raise TypeError(f"context column {name!r}: expected a list of texts, got one text")
            attributes = tuple(Attribute(name, text) for text in texts if text.strip())
            if attributes:
                found.append(ContextColumn(name, attributes=attributes, found=len(attributes)))
        return cls(tuple(found))

    def __bool__(self) -> bool:
        return any(column.attributes for column in self.columns)

    def __len__(self) -> int:
        return sum(column.kept for column in self.columns)

    def attributes(self) -> Iterator[Attribute]:
        """All attributes, column by column."""
        for column in self.columns:
            yield from column.attributes

    def texts(self) -> tuple[str, ...]:
        """Every attribute in words, in the order of `attributes`."""
        return tuple(attribute.text for attribute in self.attributes())
