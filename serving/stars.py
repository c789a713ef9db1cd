"""Rows and passages by id, with what they are linked to, as plain JSON data."""

from dataclasses import asdict
from typing import Any

from helios.evidence_json import passage_dict, segment_dict
from helios.types import SegmentId
from serving.indexes import OpenIndex
from serving.problems import Problem

MOST = 50
"""Neighbours that are shown."""


def row_star(index: OpenIndex, table_id: str, row: int) -> dict[str, Any]:
    """A row, its table and the texts that it names; Problem `row_not_found`."""
    corpus, graph = index.engine.corpus, index.engine.graph
    try:
        number = corpus.segment_number(SegmentId(table_id, row))
        table = corpus.tables.get(table_id)
    except (KeyError, IndexError):
        raise Problem("row_not_found") from None
    edges = graph.edges_of_segment(number)
    linked = [
        {
            "links": [asdict(link) for link in graph.links(edge)],
            "passage": passage_dict(corpus.passages[int(graph.edge_passages[edge])]),
        }
        for edge in edges[:MOST]
    ]
    return {
        "index": index.name, "generation": index.generation, "row": segment_dict(corpus.segment(number)),
        "table": {
            "id": table.table_id, "title": table.title, "section": table.section, "url": table.url,
            "source": table.source, "rows": len(table.rows), "metadata": dict(table.metadata),
        },
        "passages": linked, "left_out": max(0, len(edges) - MOST),
    }  # fmt: skip


def passage_star(index: OpenIndex, passage_id: str) -> dict[str, Any]:
    """A text and the rows that name it; Problem `passage_not_found`."""
    corpus, graph = index.engine.corpus, index.engine.graph
    number = corpus.passages.find(passage_id)
    if number is None:
        raise Problem("passage_not_found")
    edges = graph.edges_of_passage(number)
    linked = [
        {
            "links": [asdict(link) for link in graph.links(int(edge))],
            "row": segment_dict(corpus.segment(int(graph.edge_segments[edge]))),
        }
        for edge in edges[:MOST]
    ]
    return {
        "index": index.name, "generation": index.generation, "passage": passage_dict(corpus.passages[number]),
        "rows": linked, "left_out": max(0, len(edges) - MOST),
    }  # fmt: skip
