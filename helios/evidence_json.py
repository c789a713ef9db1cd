"""Evidence as plain JSON data, in the shape of `helios/schemas/evidence.json`, whose version it carries."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from helios.types import Computation, Evidence, EvidenceEdge, Passage, Segment

VERSION = 1
"""Raised when a field changes its meaning or goes; new fields do not raise it."""
SCHEMA = Path(__file__).parent / "schemas" / "evidence.json"


def evidence_dict(evidence: Evidence) -> dict[str, Any]:
    """Everything that the evidence says."""
    return {
        "version": VERSION,
        "question": evidence.question,
        "generation": evidence.generation,
        "present": evidence.present,
        "edges": [_edge(edge) for edge in evidence.edges],
        "computed": None if evidence.computed is None else _computed(evidence.computed),
        "notes": list(evidence.notes),
        "degraded": evidence.degraded,
        "calls": evidence.calls,
        "tokens": evidence.tokens,
        "filtered": evidence.filtered,
        **({"context": [asdict(weight) for weight in evidence.context]} if evidence.context else {}),
        "timings_ms": {stage: round(spent, 3) for stage, spent in evidence.timings_ms.items()},
    }


def evidence_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of `evidence_dict`."""
    schema: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return schema


def _edge(edge: EvidenceEdge) -> dict[str, Any]:
    return {
        "rank": edge.rank,
        "score": edge.score,
        "probability": edge.probability,
        "origin": edge.origin.value,
        "rejected": edge.rejected,
        "segment": None if edge.segment is None else segment_dict(edge.segment),
        "passage": None if edge.passage is None else passage_dict(edge.passage),
        "links": [asdict(link) for link in edge.links],
        "matches": [asdict(match) for match in edge.matches],
        **({"context": [asdict(match) for match in edge.context]} if edge.context else {}),
    }


def segment_dict(segment: Segment) -> dict[str, Any]:
    """A row, as evidence has it."""
    return {
        "id": str(segment.segment_id),
        "table_id": segment.segment_id.table_id,
        "row": segment.segment_id.row,
        "title": segment.title,
        "section": segment.section,
        "kind": segment.kind.value,
        "header": list(segment.header),
        "cells": list(segment.cells),
    }


def passage_dict(passage: Passage) -> dict[str, Any]:
    """A text, as evidence has it."""
    return {
        "id": passage.passage_id,
        "title": passage.title,
        "text": passage.text,
        "url": passage.url,
        "source": passage.source,
        "metadata": dict(passage.metadata),
    }


def _computed(computed: Computation) -> dict[str, Any]:
    return {
        "operation": computed.operation,
        "chance": computed.chance,
        "rows": [str(row) for row in computed.rows],
        "cells": [
            {"segment": str(row), "table_id": row.table_id, "row": row.row, "column": column, "text": text}
            for row, column, text in computed.cells
        ],
    }
