"""Edges as what frameworks take: a text, an id, and metadata that lead back to the row, the text and the cell.

All values of the metadata are strings, numbers or None, since stores of documents refuse others; `links` alone is JSON.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from helios.types import Evidence


class Searches(Protocol):
    """An `Engine`, or a client of a server."""

    def search(self, question: str, *, k: int | None = None, where: str | None = None) -> Any:
        """`Evidence`, or the reply of a server that holds it."""


@dataclass(frozen=True, slots=True)
class Record:
    """One edge: `text` is the row with its header, then the text that it names."""

    record_id: str
    text: str
    probability: float
    metadata: dict[str, Any]


def records(source: Searches, question: str, *, k: int, where: str | None = None) -> list[Record]:
    """The best `k` edges for a question; the errors of the engine or of the client."""
    found = source.search(question, k=k, where=where)
    evidence: Mapping[str, Any] = found.to_dict() if isinstance(found, Evidence) else found["evidence"]
    return [_record(edge, evidence["generation"]) for edge in evidence["edges"][:k]]


def _record(edge: Mapping[str, Any], generation: int) -> Record:
    segment, passage = edge["segment"], edge["passage"]
    ids = [node["id"] for node in (segment, passage) if node is not None]
    texts = [_row_text(segment)] if segment is not None else []
    if passage is not None:
        texts.append(f"{passage['title']}: {passage['text']}")
    metadata: dict[str, Any] = {
        "rank": edge["rank"], "probability": edge["probability"], "score": edge["score"], "origin": edge["origin"],
        "snapshot": generation,
        "table_id": segment["table_id"] if segment else None, "row": segment["row"] if segment else None,
        "table_title": segment["title"] if segment else None, "section": segment["section"] if segment else None,
        "passage_id": passage["id"] if passage else None, "passage_title": passage["title"] if passage else None,
        "url": passage["url"] if passage else None, "source": passage["source"] if passage else None,
        "links": json.dumps(edge["links"]),
    }  # fmt: skip
    return Record(" | ".join(ids), "\n".join(texts), edge["probability"], metadata)


def _row_text(segment: Mapping[str, Any]) -> str:
    """A row in one line, every cell with its header."""
    header: Sequence[str] = segment["header"]
    cells = (f"{name}: {cell}" if name else cell for name, cell in zip(header, segment["cells"], strict=True))
    return f"{segment['title']}: {' | '.join(cells)}"
