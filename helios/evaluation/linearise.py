"""How nodes and edges become text for AR@k and HITS@4K (and for readers of ranked evidence)."""

from helios.evaluation.edges import RankedEdge
from helios.types import Passage, Segment


def linearise_segment(segment: Segment) -> str:
    """Title, section, then `header: cell` pairs in column order; empty parts are left out."""
    titles = [part for part in (segment.title, segment.section) if part]
    pairs = zip(segment.header, segment.cells, strict=True)
    cells = [f"{name}: {cell}" if name else cell for name, cell in pairs if cell]
    return "\n".join([*titles, " ; ".join(cells)]).strip()


def linearise_passage(passage: Passage) -> str:
    """Title, then text."""
    return "\n".join(part for part in (passage.title, passage.text) if part)


def linearise_edge(edge: RankedEdge) -> str:
    """Both nodes of an edge, segment first."""
    return "\n".join(text for _, text in linearised_nodes(edge))


def linearised_nodes(edge: RankedEdge) -> list[tuple[object, str]]:
    """The nodes that are there as (identity, text), segment first."""
    nodes: list[tuple[object, str]] = []
    if edge.segment is not None:
        nodes.append((edge.segment.segment_id, linearise_segment(edge.segment)))
    if edge.passage is not None:
        nodes.append((("passage", edge.passage.passage_id), linearise_passage(edge.passage)))
    return nodes
