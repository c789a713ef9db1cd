"""Commit: the finished outputs become an immutable part, and the manifest that names it is swapped in."""

import errno
import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from helios import __version__
from helios.errors import IndexFormatError
from helios.index.durable import fsync_path, fsync_tree, sha256_file
from helios.index.manifest import (
    PARTS_FOLDER,
    TOMBSTONES_FOLDER,
    Counts,
    FileEntry,
    Manifest,
    ModelEntry,
    Part,
    creation_date,
    write_manifest,
)
from helios.index.snapshot import next_part_name, part_directory, remove_retired
from indexing.stage import BuildRequest, StageRecord

_NO_LINKS = {errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


def commit_part(
    index: Path,
    *,
    live: Manifest | None,
    request: BuildRequest,
    components: Mapping[str, str],
    sources: Mapping[str, Path],
    records: Mapping[str, StageRecord],
) -> Manifest:
    """Make the stages' outputs the index's only part; the caller holds the write lock.

    `components` maps stage → folder of the part, `sources` stage → where its output is now. A snapshot
    that already says the same is kept as it is.
    """
    stages = {component: records[name].key for name, component in components.items()}
    part = _reusable(index, live, stages, sources) or _assemble(index, live, request, components, sources, records)
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
    )
    if live and _same_but_age(live, manifest):
        manifest = live
    else:
        write_manifest(index, manifest)
    remove_retired(index, manifest)
    return manifest


def _reusable(
    index: Path, live: Manifest | None, stages: Mapping[str, str], sources: Mapping[str, Path]
) -> Part | None:
    """The live part, if it is the only one and every output is in it already."""
    if live is None or len(live.parts) != 1:
        return None
    part = live.parts[0]
    folder = part_directory(index, part.name)
    in_place = all(source.parent == folder for source in sources.values())
    return part if in_place and part.stages == stages and not part.counts.deleted else None


def _same_but_age(live: Manifest, manifest: Manifest) -> bool:
    return live == manifest.model_copy(update={"generation": live.generation, "created": live.created})


def _assemble(
    index: Path,
    live: Manifest | None,
    request: BuildRequest,
    components: Mapping[str, str],
    sources: Mapping[str, Path],
    records: Mapping[str, StageRecord],
) -> Part:
    """A new part from hard links to the outputs; leftovers of an interrupted commit are replaced."""
    name = next_part_name(index, live)
    directory = part_directory(index, name)
    shutil.rmtree(directory, ignore_errors=True)
    files: list[FileEntry] = []
    for stage, component in components.items():
        for entry in records[stage].files:
            _link(sources[stage] / entry.path, directory / component / entry.path)
            files.append(entry.model_copy(update={"path": f"{component}/{entry.path}"}))
    fsync_tree(directory)
    fsync_path(index / PARTS_FOLDER)
    files.sort(key=lambda entry: entry.path)
    return Part(
        name=name,
        counts=_counts(records),
        corpus_sha256=_corpus_sha256(files),
        inputs_sha256=request.inputs_sha256,
        stages={component: records[stage].key for stage, component in components.items()},
        files=tuple(files),
        tombstones=write_tombstones(index, name, np.empty(0, dtype=np.int64)),
    )


def write_tombstones(index: Path, part: str, deleted: np.ndarray, *, revision: int = 0) -> FileEntry:
    """Save a part's deleted node numbers, sorted int64, as a new file; an old one is never rewritten."""
    folder = index / TOMBSTONES_FOLDER
    folder.mkdir(exist_ok=True)
    path = folder / f"{part}-{revision:06d}.npy"
    with path.open("wb") as file:
        np.save(file, np.sort(deleted).astype(np.int64), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    fsync_path(folder)
    return FileEntry(path=path.relative_to(index).as_posix(), size=path.stat().st_size, sha256=sha256_file(path))


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise IndexFormatError(f"{source}: vanished while the index was committed; run the build again") from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copyfile(source, target)


def _counts(records: Mapping[str, StageRecord]) -> Counts:
    """Totals of the stages that bear the manifest's names."""
    totals: dict[str, int] = {}
    for record in records.values():
        totals |= {name: count for name, count in record.counts.items() if name in Counts.model_fields}
    return Counts(**totals)


def _corpus_sha256(files: list[FileEntry]) -> str:
    """SHA-256 over the stored corpus: the same for the same tables and passages in any input format."""
    digest = hashlib.sha256()
    for entry in files:
        if entry.path.startswith("corpus/"):
            digest.update(f"{entry.path} {entry.sha256}\n".encode())
    return digest.hexdigest()
