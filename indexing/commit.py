"""Commit: finished outputs become immutable folders of the index, and the manifest that names them is swapped in."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from helios import __version__
from helios.errors import IndexFormatError
from helios.index.durable import fsync_path, fsync_tree, remove_tree, replace_durably, sha256_file, share_file
from helios.index.manifest import (
    CODEBOOKS_FOLDER,
    LINKS_FOLDER,
    PARTS_FOLDER,
    TOMBSTONES_FOLDER,
    Codebook,
    Counts,
    FileEntry,
    Links,
    Manifest,
    ModelEntry,
    Part,
    Piece,
    creation_date,
    write_manifest,
)
from helios.index.snapshot import next_piece, remove_retired
from helios.index.tombstones import Tombstones
from indexing.stage import BuildRequest, StageRecord

GRAPH, CODEBOOK = "graph", "codebook"
"""Components that are pieces of their own: the others are folders of a part."""


def commit_part(
    index: Path,
    *,
    live: Manifest | None,
    request: BuildRequest,
    components: Mapping[str, str],
    sources: Mapping[str, Path],
    records: Mapping[str, StageRecord],
) -> Manifest:
    """Make the stages' outputs the index's only part, with its links and codebook; the caller holds the write lock.

    `components` maps stage → component, `sources` stage → where its output is now. A snapshot that already says the
    same is kept as it is.
    """
    stages = {component: records[name].key for name, component in components.items()}
    pieces = _reusable(live, stages, index, sources, components)
    part, links, codebook = pieces or _assembled(index, live, request, components, sources, records)
    models: dict[str, ModelEntry] = {}
    for record in records.values():
        models |= record.models
    manifest = Manifest(
        generation=live.generation + 1 if live else 1,
        created=creation_date(),
        code_version=__version__,
        counts=part.counts,
        corpus_sha256=part.corpus_sha256,
        models=dict(sorted(models.items())),
        config=request.config.resolved(),
        parts=(part,),
        links=links,
        codebooks=codebook,
    )
    if live and _same_but_age(live, manifest):
        manifest = live
    else:
        write_manifest(index, manifest)
    remove_retired(index, manifest)
    return manifest


Pieces = tuple[Part, tuple[Links, ...], tuple[Codebook, ...]]


def component_folder(index: Path, live: Manifest | None, component: str, key: str) -> Path | None:
    """Where a live snapshot of one part has a component that was made under this key; None where it has none."""
    if live is None or len(live.parts) != 1:
        return None
    for piece in live.pieces:
        if piece.stages.get(component) == key:
            folder = index / piece.folder
            return folder / component if isinstance(piece, Part) else folder
    return None


def _reusable(
    live: Manifest | None, stages: Mapping[str, str], index: Path, sources: Mapping[str, Path],
    components: Mapping[str, str],
) -> Pieces | None:  # fmt: skip
    """What the live snapshot has, if it is of one part, nothing of it is deleted, and every output is in it already."""
    if live is None or len(live.parts) != 1 or live.parts[0].counts.deleted:
        return None
    held = {name: key for piece in live.pieces for name, key in piece.stages.items()}
    in_place = all(
        source == component_folder(index, live, components[name], stages[components[name]])
        for name, source in sources.items()
    )
    return (live.parts[0], live.links, live.codebooks) if in_place and held == dict(stages) else None


def _same_but_age(live: Manifest, manifest: Manifest) -> bool:
    return live == manifest.model_copy(update={"generation": live.generation, "created": live.created})


def _assembled(
    index: Path,
    live: Manifest | None,
    request: BuildRequest,
    components: Mapping[str, str],
    sources: Mapping[str, Path],
    records: Mapping[str, StageRecord],
) -> Pieces:
    """New pieces from hard links to the outputs; leftovers of an interrupted commit are replaced."""
    stage_of = {component: stage for stage, component in components.items()}
    counts = _counts(records)
    name = next_piece(index, PARTS_FOLDER, live)
    own = {stage: component for stage, component in components.items() if component not in (GRAPH, CODEBOOK)}
    linked = {component: (sources[stage], records[stage]) for stage, component in own.items()}
    piece = link_piece(index, PARTS_FOLDER, name, linked)
    links, codebooks = (), ()
    if stage := stage_of.get(GRAPH):
        layer = next_piece(index, LINKS_FOLDER, live)
        found = link_piece(index, LINKS_FOLDER, layer, {GRAPH: (sources[stage], records[stage])}, flat=True)
        links = (Links(**found.model_dump(), parts=(name,), edges=counts.edges),)
    if stage := stage_of.get(CODEBOOK):
        codebook = next_piece(index, CODEBOOKS_FOLDER, live)
        found = link_piece(index, CODEBOOKS_FOLDER, codebook, {CODEBOOK: (sources[stage], records[stage])}, flat=True)
        codebooks = (Codebook(**found.model_dump()),)
    part = Part(
        **piece.model_dump(),
        counts=counts,
        corpus_sha256=corpus_sha256(piece.files),
        inputs_sha256=request.inputs_sha256,
        tombstones=write_tombstones(index, name, Tombstones.none()),
        codebook=codebooks[0].name if codebooks else "",
    )
    return part, links, codebooks


def link_piece(
    index: Path, kind: str, name: str, outputs: Mapping[str, tuple[Path, StageRecord]], *, flat: bool = False
) -> Piece:
    """A new folder `kind`/`name` of hard links to outputs, made durable; each in a folder of its own unless `flat`."""
    directory = index / kind / name
    remove_tree(directory)
    files: list[FileEntry] = []
    for component, (source, record) in outputs.items():
        for entry in record.files:
            path = entry.path if flat else f"{component}/{entry.path}"
            link_file(source / entry.path, directory / path)
            files.append(entry.model_copy(update={"path": path}))
    directory.mkdir(parents=True, exist_ok=True)
    fsync_tree(directory)
    fsync_path(index / kind)
    files.sort(key=lambda entry: entry.path)
    stages = {component: record.key for component, (_, record) in outputs.items()}
    return Piece(name=name, folder=f"{kind}/{name}", stages=stages, files=tuple(files))


def write_tombstones(index: Path, part: str, deleted: Tombstones, *, revision: int = 0) -> FileEntry:
    """Save what is deleted of a part as a new file; one of that name is replaced, never rewritten: it may be shared."""
    folder = index / TOMBSTONES_FOLDER
    folder.mkdir(exist_ok=True)
    path = folder / f"{part}-{revision:06d}.npz"
    temporary = path.with_name(f"{path.name}.tmp")
    deleted.write(temporary)
    replace_durably(temporary, path)
    return FileEntry(path=path.relative_to(index).as_posix(), size=path.stat().st_size, sha256=sha256_file(path))


def link_file(source: Path, target: Path) -> None:
    """Make a file of the index a hard link to another one, or a copy where the file system has none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        share_file(source, target)
    except FileNotFoundError:
        raise IndexFormatError(f"{source}: vanished while the index was committed; run the build again") from None


def _counts(records: Mapping[str, StageRecord]) -> Counts:
    """Totals of the stages that bear the manifest's names."""
    totals: dict[str, int] = {}
    for record in records.values():
        totals |= {name: count for name, count in record.counts.items() if name in Counts.model_fields}
    return Counts(**totals)


def corpus_sha256(files: tuple[FileEntry, ...]) -> str:
    """SHA-256 over the stored corpus: the same for the same tables and passages in any input format."""
    digest = hashlib.sha256()
    for entry in files:
        if entry.path.startswith("corpus/"):
            digest.update(f"{entry.path} {entry.sha256}\n".encode())
    return digest.hexdigest()
