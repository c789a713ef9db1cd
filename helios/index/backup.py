"""Backup and restore: one snapshot of an index as an index of its own.

The pieces of a snapshot never change, so a backup on the same file system shares their bytes: by reflinks where it has
them, else by hard links, else by copies. What a writer does to the index later touches neither. A file that shares its
bytes by a hard link is damaged where the other one is, by a bad disk for example: `share=False` copies.
"""

import json
import logging
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from helios.errors import HeliosError, IndexFormatError
from helios.index.durable import (
    Sharing,
    fsync_path,
    fsync_tree,
    remove,
    remove_tree,
    share_file,
    write_atomically,
)
from helios.index.fsck import Finding, Progress, check_index
from helios.index.lock import LOCK_FILE, WriteLock
from helios.index.manifest import (
    COPYING_FILE,
    MANIFEST_FILE,
    PIECE_FOLDERS,
    TOMBSTONES_FOLDER,
    Manifest,
    read_manifest,
    write_manifest,
)
from helios.index.snapshot import Snapshot

log = logging.getLogger(__name__)

NOTES = ("files.jsonl", "rejects.jsonl")
"""Files beside the manifest that say what became of the corpus; copied where they are there."""
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class CopyReport:
    """A snapshot that was copied: from where to where, how many files which way, and how large they are."""

    source: Path
    out: Path
    manifest: Manifest
    files: dict[Sharing, int]
    bytes: int

    @property
    def way(self) -> str:
        """In words: `12 files by hard link`."""
        counts = [f"{count} files by {sharing.value}" for sharing, count in sorted(self.files.items()) if count]
        return " and ".join(counts) or "was complete already"


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """A backup that was restored, and what fsck found in the result: nothing if it is sound."""

    copied: CopyReport
    findings: tuple[Finding, ...]


def back_up(index: Path, out: Path, *, share: bool = True) -> CopyReport:
    """Copy the current snapshot into the folder `out`, which is a whole index then; `share=False` shares no bytes.

    The snapshot is held meanwhile, whatever writers do. `out` must be empty, absent, an interrupted copy, or this very
    snapshot. Raises IndexFormatError for a source that is no index, HeliosError for an `out` that is in use.
    """
    if not _is_backup_of(index, out):
        _check_places(index, out)
    out.mkdir(parents=True, exist_ok=True)
    with WriteLock(out):
        for _ in range(_ATTEMPTS):
            with Snapshot.open(index) as snapshot:
                if _is_complete(out, snapshot.manifest):
                    return _finished(index, out, snapshot.manifest, Counter())
                _begin(index, out)
                try:
                    return _finished(index, out, snapshot.manifest, _copy(snapshot, out, share=share))
                except FileNotFoundError as error:  # the tombstones of a snapshot go with it
                    if snapshot.is_current():
                        raise IndexFormatError(f"{error.filename}: missing; run `helios index fsck {index}`") from None
        raise IndexFormatError(f"{index}: the index changes faster than it can be copied; try again")


def restore(backup: Path, out: Path, *, share: bool = True, progress: Progress | None = None) -> RestoreReport:
    """Copy a backup into the folder `out` and check every byte of the result; `out` must be empty or absent.

    `progress` is called with the bytes that were checked. Raises as `back_up` does; what fsck finds is in the report.
    """
    _check_places(backup, out)
    copied = back_up(backup, out, share=share)
    return RestoreReport(copied, tuple(check_index(out, progress=progress)))


def _is_backup_of(index: Path, out: Path) -> bool:
    """Whether a folder apart from the index is a copy of its current snapshot already."""
    if not (out / MANIFEST_FILE).exists() or out.resolve() == index.resolve():
        return False
    return read_manifest(out) == read_manifest(index)


def _check_places(index: Path, out: Path) -> None:
    inside, outside = out.resolve(), index.resolve()
    if inside == outside or outside in inside.parents or inside in outside.parents:
        raise HeliosError(f"{out}: lies in {index}, or that in it; give a folder apart from it")
    if out.exists() and not out.is_dir():
        raise HeliosError(f"{out}: is a file; give a folder that is empty or does not exist")
    if (out / COPYING_FILE).exists() or not out.is_dir():
        return
    strange = sorted(path.name for path in out.iterdir() if path.name not in (LOCK_FILE, f"{COPYING_FILE}.tmp"))
    if strange:
        raise HeliosError(f"{out}: holds {strange[0]!r}; give a folder that is empty or does not exist")


def _is_complete(out: Path, manifest: Manifest) -> bool:
    """Whether an interrupted copy came as far as its manifest; HeliosError if that is of another snapshot."""
    if not (out / MANIFEST_FILE).exists():
        return False
    if read_manifest(out) != manifest:
        raise HeliosError(f"{out}: holds another snapshot; give a folder that is empty or does not exist")
    return True


def _begin(index: Path, out: Path) -> None:
    """Mark the folder as a copy in the making, and drop what an interrupted one left."""
    write_atomically(out / COPYING_FILE, json.dumps({"source": str(index.resolve())}).encode())
    for name in (*PIECE_FOLDERS, TOMBSTONES_FOLDER):
        remove_tree(out / name)


def _copy(snapshot: Snapshot, out: Path, *, share: bool) -> "Counter[Sharing]":
    """Every file of the snapshot, and last its manifest; tombstones first, which no reader holds."""
    ways: Counter[Sharing] = Counter()
    for name in sorted(snapshot.manifest.listed, key=lambda name: not name.startswith(TOMBSTONES_FOLDER)):
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        ways[share_file(snapshot.directory / name, target, clone=share, link=share)] += 1
    for name in NOTES:
        if (snapshot.directory / name).is_file():
            shutil.copyfile(snapshot.directory / name, out / name)
            fsync_path(out / name)
    for name in (*PIECE_FOLDERS, TOMBSTONES_FOLDER):
        if (out / name).is_dir():
            fsync_tree(out / name)
    write_manifest(out, snapshot.manifest)
    return ways


def _finished(index: Path, out: Path, manifest: Manifest, ways: "Counter[Sharing]") -> CopyReport:
    remove(out / COPYING_FILE)
    fsync_path(out)
    size = sum(entry.size for entry in manifest.listed.values())
    return CopyReport(index, out, manifest, dict(ways), size)
