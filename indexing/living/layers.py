"""A layer of links between nodes of several parts, written from numbers of the next snapshot."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from helios.graph.data import DataGraph
from helios.index.manifest import LINKS_FOLDER, Links
from helios.index.reader import IndexReader
from indexing.linking import LinkArrays
from indexing.living.draft import Draft, Numbers, free_name, place_piece
from indexing.stage import file_entries


def placed_layer(draft: Draft, reader: IndexReader, links: LinkArrays, decided: Numbers, folder: Path) -> Links:
    """Make links by visible numbers of `reader` a layer of the index that nothing names yet; `folder` is scratch.

    The layer decides all links of the rows `decided`, visible numbers too. It lists the nodes that it links. Without
    any it is one of the first part.
    """
    sides = [_located(reader, links.segments), _located(reader, links.passages + reader.segment_count)]
    rows = _located(reader, decided)
    used = sorted({part for parts, _ in (*sides, rows) for part in np.unique(parts).tolist()}) or [0]
    own = reader.numbering
    counts = ([own.part_segments[part] for part in used],
              [own.part_nodes[part] - own.part_segments[part] for part in used])  # fmt: skip
    listed: list[Numbers] = []
    numbered: list[Numbers] = []
    before = [np.append(0, np.cumsum(sizes)).astype(np.int64) for sizes in counts]
    for (parts, nodes), first in zip(sides, before, strict=True):
        numbers = first[np.searchsorted(used, parts)] + nodes
        listed.append(np.unique(numbers))
        numbered.append(np.searchsorted(listed[-1], numbers))
    graph = DataGraph.write(
        folder, *numbered, links.columns, links.starts, links.ends, links.scores,
        segment_count=len(listed[0]), passage_count=len(listed[1]),
    )  # fmt: skip
    for noun, nodes in zip(("segments", "passages"), listed, strict=True):
        np.save(folder / f"{noun}.npy", nodes)
    np.save(folder / "decided.npy", np.unique(before[0][np.searchsorted(used, rows[0])] + rows[1]))
    return layer_of(draft, folder, tuple(reader.parts[part].view.part.name for part in used), edges=graph.edge_count)


def layer_of(draft: Draft, folder: Path, parts: Sequence[str], *, edges: int) -> Links:
    """Make a finished folder of links a piece of the index."""
    name, files = free_name(draft, LINKS_FOLDER), file_entries(folder)
    place_piece(draft.index, LINKS_FOLDER, name, folder)
    return Links(name=name, folder=f"{LINKS_FOLDER}/{name}", parts=tuple(parts), edges=edges, files=files)


def _located(reader: IndexReader, nodes: Numbers) -> tuple[Numbers, Numbers]:
    """The part of each visible node, and its number there: segments and passages each counted from 0."""
    parts, own = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
    for part, places, numbers in reader.numbering.by_part(nodes):
        segments = reader.numbering.part_segments[part]
        parts[places] = part
        own[places] = np.where(numbers < segments, numbers, numbers - segments)
    return parts, own
