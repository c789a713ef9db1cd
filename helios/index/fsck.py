"""`fsck`: read every byte of an index and compare it with what the manifest and the formats promise."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from helios.corpus import CorpusStore
from helios.errors import IndexFormatError
from helios.graph.data import DataGraph
from helios.index.durable import files_below, sha256_file
from helios.index.manifest import PARTS_FOLDER, TOMBSTONES_FOLDER, FileEntry, read_manifest
from helios.index.snapshot import PartView

if TYPE_CHECKING:
    from helios.index.titles import TitleTerms

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with a file: `error` makes the index unusable, `warning` only wastes space."""

    path: str
    problem: str
    severity: Literal["error", "warning"] = "error"


def check_index(directory: Path, *, progress: Progress | None = None) -> list[Finding]:
    """Every finding, errors first; empty for a sound index. Calls `progress` with the bytes read so far.

    Raises IndexFormatError only where the manifest itself cannot be read.
    """
    manifest = read_manifest(directory)
    findings: list[Finding] = []
    for part in manifest.parts:
        view = PartView(directory, part)
        wrong = list(_check_files(directory, view, progress or (lambda size: None)))
        findings += wrong
        if not wrong:
            findings += _check_structure(view)
    findings += _unlisted(directory, [PartView(directory, part) for part in manifest.parts])
    return sorted(findings, key=lambda finding: (finding.severity, finding.path))


def listed_bytes(directory: Path) -> int:
    """Bytes of all files that the manifest names."""
    parts = read_manifest(directory).parts
    return sum(entry.size for part in parts for entry in (*part.files, part.tombstones))


def _check_files(index: Path, view: PartView, progress: Progress) -> Iterator[Finding]:
    owned = [(view.directory / entry.path, entry) for entry in view.part.files]
    for path, entry in [*owned, (index / view.part.tombstones.path, view.part.tombstones)]:
        if problem := _file_problem(path, entry):
            yield Finding(path.relative_to(index).as_posix(), problem)
        progress(entry.size)


def _file_problem(path: Path, entry: FileEntry) -> str | None:
    try:
        size = path.stat().st_size
        if size != entry.size:
            return f"{size} bytes, expected {entry.size}"
        found = sha256_file(path)
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return None if found == entry.sha256 else f"SHA-256 is {found[:12]}…, expected {entry.sha256[:12]}…"


def _check_structure(view: PartView) -> Iterator[Finding]:
    """Counts, ranges and orders inside the components, which checksums cannot judge."""
    place = f"{PARTS_FOLDER}/{view.part.name}"
    counts = view.part.counts
    try:
        if "corpus" in view.part.components:
            store = CorpusStore.open(view.path("corpus"))
            found = (len(store.tables), store.segment_count, len(store.passages))
            if found != (counts.tables, counts.segments, counts.passages):
                yield Finding(f"{place}/corpus", f"holds {found} tables, segments and passages, not {counts}")
        if "graph" in view.part.components:
            graph = DataGraph.open(view.path("graph"))
            graph.verify()
            nodes = (graph.segment_count, graph.passage_count, graph.edge_count)
            if nodes != (counts.segments, counts.passages, counts.edges):
                yield Finding(f"{place}/graph", f"holds {nodes} segments, passages and edges, not {counts}")
        if "tokens" in view.part.components:
            yield from _check_tokens(view, f"{place}/tokens")
        if "lexical" in view.part.components:
            yield from _check_postings(view, f"{place}/lexical")
        yield from _check_tombstones(view)
    except IndexFormatError as error:
        yield Finding(place, str(error))


def _check_tokens(view: PartView, place: str) -> Iterator[Finding]:
    from helios.index.tokens import TokenStore

    store, counts = TokenStore(view.path("tokens")), view.part.counts
    if (store.node_count, store.token_count) != (counts.segments + counts.passages, counts.tokens):
        yield Finding(place, f"holds {store.token_count} tokens of {store.node_count} nodes, not {counts}")
    if np.any(np.diff(store.offsets) < 0) or store.offsets[0] != 0:
        yield Finding(f"{place}/offsets.npy", "offsets must rise from 0")
    if store.token_count and int(store.codes.max()) >= len(store.quantiser.centroids_KD):
        yield Finding(f"{place}/codes.npy", "a code that is no centroid")


def _check_postings(view: PartView, place: str) -> Iterator[Finding]:
    from helios.index.lexical import Postings
    from helios.index.titles import TitleTerms

    postings, titles = Postings(view.path("lexical")), TitleTerms.open(view.path("lexical"))
    counts = view.part.counts
    nodes = counts.segments + counts.passages
    if (postings.node_count, postings.segment_count) != (nodes, counts.segments):
        yield Finding(place, f"holds {postings.node_count} nodes, not {nodes}")
    if np.any(np.diff(postings.offsets) < 0) or postings.offsets[-1] != len(postings.nodes):
        yield Finding(f"{place}/offsets.npy", f"offsets must rise to {len(postings.nodes)}")
    if np.any(np.diff(postings.terms.astype(np.uint64)) == 0) or np.any(postings.terms[1:] < postings.terms[:-1]):
        yield Finding(f"{place}/terms.npy", "terms must be unique and sorted")
    if len(postings.nodes) and (postings.nodes.min() < 0 or postings.nodes.max() >= nodes):
        yield Finding(f"{place}/nodes.npy", f"node numbers must be below {nodes}")
    if titles is not None:
        yield from check_titles(titles, counts.passages, place)


def check_titles(titles: "TitleTerms", passages: int, place: str) -> Iterator[Finding]:
    """What is wrong with the terms of the titles of so many passages; kernels read them without looking."""
    if titles.passage_count != passages:
        yield Finding(f"{place}/title-starts.npy", f"holds {titles.passage_count} titles, not {passages}")
    spans = (("starts", titles.starts, "terms"), ("offsets", titles.offsets, "holders"))
    for name, bounds, of in spans:
        if np.any(np.diff(bounds) < 0) or bounds[-1] != len(getattr(titles, of)):
            yield Finding(f"{place}/title-{name}.npy", f"must rise to {len(getattr(titles, of))}")
    if len(titles.offsets) != titles.term_count + 1:
        yield Finding(f"{place}/title-offsets.npy", f"holds {len(titles.offsets) - 1} terms, not {titles.term_count}")
    for name, numbers, limit in (("terms", titles.terms, titles.term_count), ("holders", titles.holders, passages)):
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= limit):
            yield Finding(f"{place}/title-{name}.npy", f"numbers must be below {limit}")


def _check_tombstones(view: PartView) -> Iterator[Finding]:
    deleted = view.deleted_nodes()
    counts = view.part.counts
    nodes = counts.segments + counts.passages
    path = view.part.tombstones.path
    if deleted.ndim != 1 or deleted.dtype != np.int64:
        yield Finding(path, f"holds {deleted.dtype}{list(deleted.shape)}, expected a list of int64")
    elif len(deleted) and (np.any(np.diff(deleted) <= 0) or deleted[0] < 0 or deleted[-1] >= nodes):
        yield Finding(path, f"node numbers must be unique, sorted and below {nodes}")
    elif len(deleted) != counts.deleted:
        yield Finding(path, f"{len(deleted)} deleted nodes, expected {counts.deleted}")


def _unlisted(index: Path, views: list[PartView]) -> Iterator[Finding]:
    """Files in the part and tombstone folders that no snapshot needs: an interrupted writer left them."""
    named = {(view.directory / entry.path).relative_to(index) for view in views for entry in view.part.files}
    named |= {Path(view.part.tombstones.path) for view in views}
    for folder in (PARTS_FOLDER, TOMBSTONES_FOLDER):
        for path in files_below(index / folder):
            if Path(folder) / path not in named:
                yield Finding(f"{folder}/{path.as_posix()}", "not part of the current snapshot", "warning")
