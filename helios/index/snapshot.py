"""A reader's view of an index: one manifest and the immutable folders that it names, pinned while open.

A reader holds a shared lock on each folder. A writer that swapped in a new snapshot removes an old folder only when
nobody holds it, so a snapshot stays whole for as long as it is open. What is deleted is read at the opening: a newer
snapshot removes the list of this one.
"""

import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from helios.errors import IndexFormatError
from helios.index.checksums import Checksums
from helios.index.durable import remove, remove_tree
from helios.index.manifest import (
    PIECE_FOLDERS,
    TOMBSTONES_FOLDER,
    Codebook,
    FileEntry,
    Links,
    Manifest,
    Part,
    Piece,
    read_manifest,
)
from helios.index.tombstones import Tombstones

_OPEN_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class PartView:
    """A part of an open snapshot: where its components are and which of its nodes are deleted."""

    index: Path
    part: Part
    deleted: Tombstones
    codebook: Codebook | None
    checksums: Checksums

    @property
    def directory(self) -> Path:
        """The part's folder."""
        return self.index / self.part.folder

    def path(self, component: str) -> Path:
        """Folder of a component (`corpus`, `tokens`, `lexical`), or IndexFormatError."""
        if component not in self.part.components:
            raise IndexFormatError(
                f"{self.directory}: the part has no {component!r}, only {', '.join(self.part.components)}; "
                "build the index with all stages"
            )
        return self.directory / component

    def verified(self, component: str) -> Path:
        """The same, its files read against their checksums; ChecksumError for one that is damaged."""
        path = self.path(component)
        _verify(self.checksums, self.part, f"{component}/")
        return path

    def verified_codebook(self) -> Path:
        """The folder of the codebook, its files read against their checksums."""
        path = self.codebook_path
        if self.codebook is not None:
            _verify(self.checksums, self.codebook)
        return path

    @property
    def codebook_path(self) -> Path:
        """Folder of the codebook, or IndexFormatError where the part has none."""
        if self.codebook is None:
            raise IndexFormatError(f"{self.directory}: the part has no codebook; build the index with all stages")
        return self.index / self.codebook.folder


@dataclass(frozen=True, slots=True)
class LinksView:
    """A layer of edges of an open snapshot."""

    index: Path
    links: Links
    checksums: Checksums

    @property
    def directory(self) -> Path:
        """The layer's folder."""
        return self.index / self.links.folder

    def verified(self) -> Path:
        """The same, its files read against their checksums; ChecksumError for one that is damaged."""
        _verify(self.checksums, self.links)
        return self.directory


class Snapshot:
    """One consistent state of an index; opening reads the manifest and what is deleted, and looks at file sizes."""

    def __init__(
        self, directory: Path, manifest: Manifest, pins: list[int], deleted: Mapping[str, Tombstones],
        checksums: Checksums,
    ) -> None:  # fmt: skip
        self.directory = directory
        self.manifest = manifest
        codebooks = {codebook.name: codebook for codebook in manifest.codebooks}
        self.parts = tuple(
            PartView(directory, part, deleted[part.name], codebooks.get(part.codebook), checksums)
            for part in manifest.parts
        )
        self.links = tuple(LinksView(directory, links, checksums) for links in manifest.links)
        self._pins = pins

    def __repr__(self) -> str:
        counts = self.manifest.counts
        return (
            f"Snapshot({str(self.directory)!r}, generation={self.manifest.generation}, parts={len(self.parts)}, "
            f"segments={counts.segments}, passages={counts.passages}, edges={counts.edges}, deleted={counts.deleted})"
        )

    @classmethod
    def open(cls, directory: Path | str, *, verify: bool = False) -> "Snapshot":
        """The current snapshot; raises IndexFormatError naming a file that is missing or of a wrong size.

        `verify` reads every file against its checksum; without it, files that others are found by are read when their
        component is first used (`helios.index.checksums`).
        """
        directory = Path(directory)
        for _ in range(_OPEN_ATTEMPTS):
            manifest = read_manifest(directory)
            pins: list[int] = []
            try:
                for folder in sorted({piece.pinned for piece in manifest.pieces}):
                    pins += [_pin(directory / folder)]  # one by one: those of before a failure are let go
                listed = manifest.listed
                _check_sizes(directory, listed)
                checksums = Checksums(directory, listed)
                checksums.verify(
                    listed if verify else [part.tombstones.path for part in manifest.parts], everything=True
                )
                deleted = {part.name: Tombstones.read(directory / part.tombstones.path) for part in manifest.parts}
            except (IndexFormatError, OSError) as error:
                _unpin(pins)
                if read_manifest(directory).generation != manifest.generation:
                    continue  # superseded meanwhile
                if isinstance(error, IndexFormatError):
                    raise
                raise IndexFormatError(f"{error.filename}: cannot open the part ({error.strerror})") from None
            return cls(directory, manifest, pins, deleted, checksums)
        raise IndexFormatError(f"{directory}: the index changes faster than it can be opened")

    def is_current(self) -> bool:
        """Whether no other snapshot was swapped in since this one was opened."""
        return read_manifest(self.directory) == self.manifest

    def close(self) -> None:
        """Let go of the folders; a writer may then remove those that are no longer current."""
        _unpin(self._pins)

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def next_piece(index: Path, kind: str, manifest: Manifest | None) -> str:
    """A name in the folder `kind` that no snapshot uses and no reader holds; the caller holds the WriteLock.

    What an interrupted writer left behind is removed on the way, so its names come again.
    """
    current = _pinned_names(kind, manifest.pieces if manifest else ())
    used = {int(name) for name in current}
    for path in _numbered(index / kind):
        if path.name not in current and not remove_if_unused(path):
            used.add(int(path.name))
    return f"{max(used, default=0) + 1:04d}"


def remove_retired(index: Path, manifest: Manifest) -> list[str]:
    """Delete folders and tombstones that are neither current nor held by a reader; returns the folders' paths."""
    removed = []
    for kind in PIECE_FOLDERS:
        current = _pinned_names(kind, manifest.pieces)
        old = [path for path in _numbered(index / kind) if path.name not in current]
        removed += [f"{kind}/{path.name}" for path in old if remove_if_unused(path)]
    named = {part.tombstones.path for part in manifest.parts}
    for path in sorted((index / TOMBSTONES_FOLDER).glob("*")):
        if path.relative_to(index).as_posix() not in named:
            remove(path)
    return removed


def remove_if_unused(directory: Path) -> bool:
    """Delete a piece's folder unless a reader holds it; returns whether it is gone."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_tree(directory)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _verify(checksums: Checksums, piece: Piece, prefix: str = "") -> None:
    checksums.verify(f"{piece.folder}/{entry.path}" for entry in piece.files if entry.path.startswith(prefix))


def _pinned_names(kind: str, pieces: tuple[Piece, ...]) -> set[str]:
    """Names of the numbered folders in `kind` that pieces lie in."""
    return {piece.pinned.partition("/")[2] for piece in pieces if piece.pinned.startswith(f"{kind}/")}


def _numbered(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.isdigit()) if folder.is_dir() else []


def _pin(directory: Path) -> int:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise IndexFormatError(f"{directory}: is being removed ({error.strerror})") from None
    return descriptor


def _unpin(pins: list[int]) -> None:
    while pins:
        os.close(pins.pop())


def _check_sizes(index: Path, listed: Mapping[str, FileEntry]) -> None:
    """Every file is there with its size: O(files), which does not grow with the corpus."""
    for name, entry in listed.items():
        path = index / name
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise IndexFormatError(f"{path}: missing; restore it or build the index again") from None
        if size != entry.size:
            raise IndexFormatError(
                f"{path}: damaged: {size} bytes, expected {entry.size}; restore it or build the index again "
                "(`helios index fsck` finds all that is damaged)"
            )
