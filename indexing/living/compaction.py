"""Compaction: small neighbouring parts, and parts of which much is deleted, become one.

The work is done without the write lock on a snapshot that is held open; the lock is taken for the commit alone. What
was deleted meanwhile is then deleted of the merged parts too, and parts and links that came meanwhile stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from helios.corpus import CorpusStore
from helios.graph.assembly import Edges, edges_that_count
from helios.graph.data import LINK_COLUMNS
from helios.index.manifest import Codebook, Manifest, Part
from helios.index.reader import IndexReader, PartFiles
from helios.index.snapshot import Snapshot
from helios.index.tombstones import Tombstones
from helios.models.encoder import MiniLMEncoder
from indexing.commit import write_tombstones
from indexing.linking import LinkArrays
from indexing.living.draft import Draft, Numbers
from indexing.living.layers import placed_layer
from indexing.living.merging import Moved, merge_corpus, merge_postings, merge_tokens
from indexing.living.parts import placed_part
from indexing.living.syncing import known_files, write_files
from indexing.progress import Progress

DELETED = 0.2
"""Share of a part's nodes from which on it is written anew without those that are deleted."""
LARGER = 2.0
"""A part is merged with those after it unless it has more than so many times the nodes that they have together."""
MANY_PARTS = 8
"""With more parts than these a question takes noticeably longer."""
SMALL = 20_000
"""Nodes that are merged in a few seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """A finished folder that stands for some neighbouring parts."""

    parts: tuple[Part, ...]
    moved: tuple[Moved, ...]
    folder: Path
    tokens: int
    nodes: int


def groups(manifest: Manifest, *, whole: bool = False, most: int | None = None) -> list[tuple[Part, ...]]:
    """Neighbouring parts that are worth being one, each of one codebook; all of them for `whole`.

    With `most` only such that have no more nodes together.
    """
    found: list[list[Part]] = []
    for part in reversed(manifest.parts):
        if found and part.codebook == found[0][0].codebook and (whole or _joins(part, found[0], most)):
            found[0].insert(0, part)
        else:
            found.insert(0, [part])
    return [
        tuple(own) for own in found if len(own) > 1 or (_is_worn(own[0], whole=whole) and _fits(_nodes(own[0]), most))
    ]


def due(manifest: Manifest, *, most: int | None = None) -> list[tuple[Part, ...]]:
    """What to merge without being asked: the groups of an index of many parts, else parts of which much is deleted."""
    found = groups(manifest, most=most)
    many = len(manifest.parts) > MANY_PARTS
    return [own for own in found if many or any(_is_worn(part) for part in own)]


def _joins(part: Part, after: Sequence[Part], most: int | None) -> bool:
    live = sum(map(_live, after))
    return _live(part) <= LARGER * live and _fits(_live(part) + live, most)


def _fits(nodes: int, most: int | None) -> bool:
    return most is None or nodes <= most


def _nodes(part: Part) -> int:
    return part.counts.segments + part.counts.passages


def _live(part: Part) -> int:
    return _nodes(part) - part.counts.deleted


def _is_worn(part: Part, *, whole: bool = False) -> bool:
    return part.counts.deleted > (0 if whole else DELETED * _nodes(part))


def merged(
    snapshot: Snapshot, parts: Sequence[Part], folder: Path, scratch: Path, encoder: MiniLMEncoder, progress: Progress
) -> Merged:
    """Write some neighbouring parts of a snapshot as one into a folder."""
    reader = IndexReader.of(snapshot)
    files: list[PartFiles] = [own for own in reader.parts if own.view.part in parts]
    with progress.stage("texts") as meter:
        moved = merge_corpus(files, folder / "corpus", encoder, meter)
    with progress.stage("vectors") as meter:
        tokens = merge_tokens(moved, folder / "tokens", scratch, meter)
    if known := known_files(snapshot.directory, (one.view for one in files)):
        write_files(folder, known)
    store = CorpusStore.open(folder / "corpus")
    with progress.stage("lexical"):
        merge_postings(moved, store, folder / "lexical")
    return Merged(tuple(parts), tuple(moved), folder, tokens, store.segment_count + len(store.passages))


def holds(draft: Draft, parts: Sequence[Part]) -> bool:
    """Whether these parts are still in an index, next to each other and as they were but for deleted nodes."""
    names = [part.name for part in draft.parts]
    if parts[0].name not in names:
        return False
    first = names.index(parts[0].name)
    now = draft.parts[first : first + len(parts)]
    return [(part.name, part.files) for part in now] == [(part.name, part.files) for part in parts]


def with_merged(draft: Draft, done: Sequence[Merged], work: Path, codebook: Codebook | None = None) -> Draft:
    """The draft with the merged parts in place of those that they stand for; the write lock is held.

    `codebook` is that of the merged parts, where it is another one than before. Where nothing of some parts is left
    they are dropped, but for the last part of an index.
    """
    before = draft.reader()
    after = draft
    for one in done:
        after = _swapped(after, one, codebook)
    names = {part.name for one in done for part in one.parts}
    touched = [layer for layer in draft.links if names & set(layer.parts)]
    after = replace(after, links=tuple(layer for layer in draft.links if layer not in touched))
    links, decided = _links_of(before, {layer.name for layer in touched})
    if len(links) or len(decided) or not after.links:
        after = after.with_links(placed_layer(after, after.reader(), links, decided, work / "links"))
    used = {part.codebook for part in after.parts}
    return replace(after, codebooks=tuple(one for one in after.codebooks if one.name in used))


def _swapped(draft: Draft, done: Merged, codebook: Codebook | None) -> Draft:
    names = [part.name for part in draft.parts]
    first, count = names.index(done.parts[0].name), len(done.parts)
    others = {name: own for name, own in draft.deleted.items() if name not in names[first : first + count]}
    if not done.nodes and count < len(draft.parts):
        return replace(draft, parts=draft.parts[:first] + draft.parts[first + count :], deleted=others)
    name = codebook.name if codebook else done.parts[0].codebook
    part = placed_part(draft, done.folder, codebook=name, tokens=done.tokens)
    tombstones = _carried(draft, done.moved)
    if len(tombstones):
        entry = write_tombstones(draft.index, part.name, tombstones)
        part = part.model_copy(
            update={"tombstones": entry, "counts": part.counts.model_copy(update={"deleted": len(tombstones)})}
        )
    parts = (*draft.parts[:first], part, *draft.parts[first + count :])
    return replace(draft, parts=parts, deleted={**others, part.name: tombstones})


def _carried(draft: Draft, moved: Sequence[Moved]) -> Tombstones:
    """What is deleted of the merged part by now."""
    found = [one.deleted_now(draft.deleted[one.files.view.part.name]) for one in moved]
    nodes: list[Numbers] = [own for own, _ in found]
    frequencies = np.sum([own for _, own in found], axis=0)
    return Tombstones.none().joined(np.concatenate(nodes), frequencies)


def _links_of(reader: IndexReader, names: set[str]) -> tuple[LinkArrays, Numbers]:
    """What counts of some layers, by visible numbers: links, and the rows that one of them was the last to decide."""
    ours = [view.links.name in names for view in reader.layers]
    last = np.zeros(reader.segment_count, bool)
    for is_ours, layer in zip(ours, reader.link_layers, strict=True):
        last[layer.decided] = is_ours
    counted = edges_that_count(reader.link_layers, reader.segment_count)
    found = [_links(edges) for is_ours, edges in zip(ours, counted, strict=True) if is_ours]
    return LinkArrays.concatenate(found), np.flatnonzero(last)


def _links(edges: Edges) -> LinkArrays:
    return LinkArrays(
        np.repeat(edges.segments, edges.counts),
        np.repeat(edges.passages, edges.counts),
        *(edges.links[name] for name in LINK_COLUMNS),
    )
