"""Documents in the result of a corpus: whatever its columns are called."""

from collections.abc import Sequence
from dataclasses import dataclass

from helios.executors.base import ResultSet

IDS = ("document_id", "_id", "id", "passage_id", "table_id")
TITLES = ("title", "name")
TEXTS = ("text", "content", "body", "passage_text", "evidence")
SCORES = ("score", "relevance")


@dataclass(frozen=True, slots=True)
class Document:
    """One hit of a text search."""

    document_id: str
    title: str
    text: str
    score: float


def documents_of(result: ResultSet) -> tuple[Document, ...]:
    """The rows as documents, in their order; columns that no name explains count as text."""
    columns = [column.lower() for column in result.columns]
    id_column, title, score = (_place(columns, names) for names in (IDS, TITLES, SCORES))
    texts = [i for i, column in enumerate(columns) if column in TEXTS]
    texts = texts or [i for i in range(len(columns)) if i not in (id_column, title, score)]
    found = []
    for number, row in enumerate(result.rows):
        cells = ["" if value is None else str(value) for value in row]
        value = row[score] if score is not None else None
        found.append(
            Document(
                cells[id_column] if id_column is not None else str(number),
                cells[title] if title is not None else "",
                " ".join(cells[i] for i in texts if cells[i]),
                float(value) if isinstance(value, int | float) else 1.0 / (1 + number),
            )
        )
    return tuple(found)


def _place(columns: Sequence[str], names: Sequence[str]) -> int | None:
    return next((columns.index(name) for name in names if name in columns), None)
