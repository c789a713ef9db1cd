"""What lies in an index's folder: the current snapshot, and pieces that are no longer current with their readers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helios.index.durable import files_below
from helios.index.holders import Holder, holders_of
from helios.index.lock import LOCK_FILE
from helios.index.manifest import BUILD_FOLDER, PIECE_FOLDERS, Counts, Links, Manifest, Part, Piece, read_manifest


@dataclass(frozen=True, slots=True)
class PieceOnDisk:
    """A piece, or a numbered folder that was one: its size, what it holds if that is known, and who reads it."""

    folder: str
    bytes: int
    counts: Counts | None
    holders: tuple[Holder, ...]

    def record(self) -> dict[str, Any]:
        """As JSON data."""
        counts = {} if self.counts is None else {"counts": self.counts.model_dump()}
        held = [{"pid": holder.pid, "command": holder.command} for holder in self.holders]
        return {"folder": self.folder, "bytes": self.bytes, **counts, "held_by": held}


@dataclass(frozen=True, slots=True)
class SnapshotListing:
    """The current snapshot of an index, its pieces, those of older ones, who writes, and unfinished work in bytes."""

    index: Path
    manifest: Manifest
    pieces: tuple[PieceOnDisk, ...]
    retired: tuple[PieceOnDisk, ...]
    writers: tuple[Holder, ...]
    unfinished: int

    def record(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "index": str(self.index),
            "generation": self.manifest.generation,
            "created": self.manifest.created,
            "code_version": self.manifest.code_version,
            "counts": self.manifest.counts.model_dump(),
            "pieces": [piece.record() for piece in self.pieces],
            "retired": [piece.record() for piece in self.retired],
            "writers": [{"pid": holder.pid, "command": holder.command} for holder in self.writers],
            "unfinished_bytes": self.unfinished,
        }


def list_snapshots(index: Path) -> SnapshotListing:
    """What is in an index's folder; reads the manifest and sizes, and takes no lock. IndexFormatError for no index."""
    manifest = read_manifest(index)
    current = {piece.pinned for piece in manifest.pieces}
    retired = [
        PieceOnDisk(folder, _size(index / folder), None, holders_of(index / folder))
        for kind in PIECE_FOLDERS
        for folder in _numbered_folders(index, kind)
        if folder not in current
    ]
    return SnapshotListing(
        index,
        manifest,
        tuple(_on_disk(index, piece) for piece in manifest.pieces),
        tuple(retired),
        holders_of(index / LOCK_FILE),
        _size(index / BUILD_FOLDER),
    )


def _on_disk(index: Path, piece: Piece) -> PieceOnDisk:
    counts = piece.counts if isinstance(piece, Part) else None
    if isinstance(piece, Links):
        counts = Counts(edges=piece.edges)
    size = sum(entry.size for entry in piece.files)
    return PieceOnDisk(piece.folder, size, counts, holders_of(index / piece.pinned))


def _numbered_folders(index: Path, kind: str) -> list[str]:
    folder = index / kind
    return sorted(f"{kind}/{path.name}" for path in folder.iterdir() if path.name.isdigit()) if folder.is_dir() else []


def _size(folder: Path) -> int:
    """Bytes of the files that are there; some may go meanwhile."""
    total = 0
    for path in files_below(folder):
        try:
            total += (folder / path).stat().st_size
        except FileNotFoundError:
            continue
    return total
