"""`fsck`: read every byte of an index and compare it with what the manifest and the formats promise."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from helios.corpus import CorpusStore
from helios.errors import IndexFormatError
from helios.graph.data import DataGraph
from helios.index.arrays import map_array
from helios.index.checksums import Checksums
from helios.index.consistency import (
    Problems,
    corpus_problems,
    link_problems,
    posting_problems,
    title_problems,
    token_problems,
)
from helios.index.durable import files_below, sha256_file
from helios.index.manifest import (
    MANIFEST_FILE,
    PIECE_FOLDERS,
    TOMBSTONES_FOLDER,
    Codebook,
    Counts,
    FileEntry,
    Links,
    Manifest,
    Part,
    read_manifest,
)
from helios.index.snapshot import PartView
from helios.index.tombstones import Tombstones

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
    wrong = list(_check_files(directory, manifest, progress or (lambda size: None)))
    findings = [*wrong, *_unlisted(directory, manifest), *_check_counts(manifest)]
    damaged = {finding.path for finding in wrong}
    for part in manifest.parts:
        own = {f"{part.folder}/{entry.path}" for entry in part.files} | {part.tombstones.path}
        codebook = next((piece for piece in manifest.codebooks if piece.name == part.codebook), None)
        if codebook is not None:
            own |= {f"{codebook.folder}/{entry.path}" for entry in codebook.files}
        if not own & damaged:
            findings += _check_part(directory, part, codebook)
    for links in manifest.links:
        if not {f"{links.folder}/{entry.path}" for entry in links.files} & damaged:
            findings += _check_links(directory, links, manifest, damaged)
    return sorted(findings, key=lambda finding: (finding.severity, finding.path))


def listed_bytes(directory: Path) -> int:
    """Bytes of all files that the manifest names."""
    return sum(entry.size for entry in read_manifest(directory).listed.values())


def _check_files(index: Path, manifest: Manifest, progress: Progress) -> Iterator[Finding]:
    for name, entry in manifest.listed.items():
        if problem := _file_problem(index / name, entry):
            yield Finding(name, problem)
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


def _check_part(index: Path, part: Part, codebook: Codebook | None) -> Iterator[Finding]:
    """Counts, ranges and orders inside the components, which checksums cannot judge."""
    place, counts = part.folder, part.counts
    try:
        deleted = Tombstones.read(index / part.tombstones.path)
        view = PartView(index, part, deleted, codebook, Checksums(index, {}))
        if "corpus" in part.components:
            store = CorpusStore.open(view.path("corpus"))
            found = (len(store.tables), store.segment_count, len(store.passages))
            if found != (counts.tables, counts.segments, counts.passages):
                yield Finding(f"{place}/corpus", f"holds {found} tables, segments and passages, not {counts}")
            yield from _found(f"{place}/corpus", corpus_problems(store))
        if "tokens" in part.components:
            yield from _check_tokens(view, f"{place}/tokens")
        if "lexical" in part.components:
            yield from _check_postings(view, f"{place}/lexical")
        yield from _check_tombstones(view)
    except IndexFormatError as error:
        yield Finding(place, str(error))


def _found(place: str, problems: Problems) -> Iterator[Finding]:
    return (Finding(f"{place}/{name}", problem) for name, problem in problems)


def _check_counts(manifest: Manifest) -> Iterator[Finding]:
    """The totals of the manifest against those of its parts; edges are counted by layers."""
    total = sum((part.counts for part in manifest.parts), Counts()).model_copy(update={"edges": manifest.counts.edges})
    if manifest.counts != total:
        yield Finding(MANIFEST_FILE, f"counts {manifest.counts}, its parts hold {total}")
    named = {codebook.name for codebook in manifest.codebooks}
    for part in manifest.parts:
        if part.codebook and part.codebook not in named:
            yield Finding(part.folder, f"refers to codebook {part.codebook}, which the index does not have")


def _check_links(index: Path, links: Links, manifest: Manifest, damaged: set[str]) -> Iterator[Finding]:
    """A layer of edges against the parts that it names: both ends of every edge, and the cells of its links."""
    counts = {part.name: part.counts for part in manifest.parts}
    unknown = [name for name in links.parts if name not in counts]
    if unknown:
        yield Finding(links.folder, f"links nodes of part {unknown[0]}, which the index does not have")
        return
    try:
        graph = DataGraph.open(index / links.folder)
        graph.verify()
        found = graph.edge_count
        if found != links.edges:
            yield Finding(links.folder, f"holds {found} edges, not {links.edges}")
        sides = {
            "segments": (graph.segment_count, sum(counts[name].segments for name in links.parts)),
            "passages": (graph.passage_count, sum(counts[name].passages for name in links.parts)),
        }
        for noun, (own, held) in sides.items():
            wrong = list(_check_listed(index / links.folder / f"{noun}.npy", f"{links.folder}/{noun}.npy", own, held))
            yield from wrong
            if wrong:
                return
        if (index / links.folder / "decided.npy").exists():
            decided, (_, held) = map_array(index / links.folder / "decided.npy", np.int64), sides["segments"]
            if len(decided) and (decided.min() < 0 or decided.max() >= held or np.any(np.diff(decided) <= 0)):
                yield Finding(f"{links.folder}/decided.npy", f"must list segments, ascending and below {held}")
        parts = {part.name: part for part in manifest.parts}
        named = [parts[name] for name in links.parts]
        files = {f"{part.folder}/{entry.path}" for part in named for entry in part.files}
        if all("corpus" in part.components for part in named) and not files & damaged:
            rows = _rows_of(index / links.folder, graph.segment_count)
            stores = [CorpusStore.open(index / part.folder / "corpus") for part in named]
            yield from _found(links.folder, link_problems(graph, rows, stores))
    except IndexFormatError as error:
        yield Finding(links.folder, str(error))


def _rows_of(folder: Path, count: int) -> NDArray[np.int64]:
    """The rows of a layer by their numbers in all its parts."""
    path = folder / "segments.npy"
    return np.asarray(map_array(path, np.int64) if path.exists() else np.arange(count), np.int64)


def _check_listed(path: Path, place: str, own: int, held: int) -> Iterator[Finding]:
    """The nodes that a layer lists, or all of its parts where it lists none."""
    if not path.exists():
        if own != held:
            yield Finding(place.rpartition("/")[0], f"numbers {own} {path.stem}, its parts hold {held}")
        return
    listed = map_array(path, np.int64)
    if len(listed) != own or (own and (listed.min() < 0 or listed.max() >= held or np.any(np.diff(listed) <= 0))):
        yield Finding(place, f"must list {own} {path.stem}, ascending and below {held}")


def _check_tokens(view: PartView, place: str) -> Iterator[Finding]:
    from helios.index.tokens import TokenStore

    store, counts = TokenStore(view.path("tokens"), codebook=view.codebook_path), view.part.counts
    if len(view.deleted.tokens) and view.deleted.tokens[-1] >= len(store.frequencies):
        yield Finding(view.part.tombstones.path, f"token numbers must be below {len(store.frequencies)}")
    if (store.node_count, store.token_count) != (counts.segments + counts.passages, counts.tokens):
        yield Finding(place, f"holds {store.token_count} tokens of {store.node_count} nodes, not {counts}")
    yield from _found(place, token_problems(store, passages=counts.passages, deleted=view.deleted))


def _check_postings(view: PartView, place: str) -> Iterator[Finding]:
    from helios.index.lexical import Postings
    from helios.index.titles import TitleTerms

    postings, titles = Postings(view.path("lexical")), TitleTerms.open(view.path("lexical"))
    counts = view.part.counts
    nodes = counts.segments + counts.passages
    if (postings.node_count, postings.segment_count) != (nodes, counts.segments):
        yield Finding(place, f"holds {postings.node_count} nodes, not {nodes}")
    yield from _found(place, posting_problems(postings))
    if titles is not None and titles.passage_count != counts.passages:
        yield Finding(f"{place}/title-starts.npy", f"holds {titles.passage_count} titles, not {counts.passages}")
    elif titles is not None:
        yield from _found(place, title_problems(titles))


def _check_tombstones(view: PartView) -> Iterator[Finding]:
    deleted, counts = view.deleted.nodes, view.part.counts
    nodes, path = counts.segments + counts.passages, view.part.tombstones.path
    if len(deleted) and deleted[-1] >= nodes:
        yield Finding(path, f"node numbers must be below {nodes}")
    elif len(deleted) != counts.deleted:
        yield Finding(path, f"{len(deleted)} deleted nodes, expected {counts.deleted}")


def _unlisted(index: Path, manifest: Manifest) -> Iterator[Finding]:
    """Files in folders of the index that no snapshot needs: an interrupted writer left them."""
    named = set(manifest.listed)
    for folder in (*PIECE_FOLDERS, TOMBSTONES_FOLDER):
        for path in files_below(index / folder):
            if f"{folder}/{path.as_posix()}" not in named:
                yield Finding(f"{folder}/{path.as_posix()}", "not part of the current snapshot", "warning")
