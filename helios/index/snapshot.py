"""A reader's view of an index: one manifest and the immutable parts that it names, pinned while open.

A reader holds a shared lock on each part's folder. A writer that swapped in a new snapshot removes an old
part only when nobody holds it, so a snapshot stays whole for as long as it is open.
"""

import fcntl
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from helios.errors import IndexFormatError
from helios.index.manifest import PARTS_FOLDER, TOMBSTONES_FOLDER, Manifest, Part, read_manifest

_OPEN_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class PartView:
    """A part of an open snapshot: where its components are and which of its nodes are deleted."""

    index: Path
    part: Part

    @property
    def directory(self) -> Path:
        """The part's folder."""
        return part_directory(self.index, self.part.name)

    def path(self, component: str) -> Path:
        """Folder of a component (`corpus`, `graph`, `tokens`, `lexical`), or IndexFormatError."""
        if component not in self.part.components:
            raise IndexFormatError(
                f"{self.directory}: the part has no {component!r}, only {', '.join(self.part.components)}; "
                "build the index with all stages"
            )
        return self.directory / component

    def deleted_nodes(self) -> npt.NDArray[np.int64]:
        """Sorted numbers of deleted nodes: segments from 0, passages after the last segment."""
        path = self.index / self.part.tombstones.path
        try:
            deleted: npt.NDArray[np.int64] = np.load(path, mmap_mode=None, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise IndexFormatError(f"{path}: cannot read the tombstones ({error})") from None
        return deleted


class Snapshot:
    """One consistent state of an index; opening reads the manifest and looks at file sizes, nothing more."""

    def __init__(self, directory: Path, manifest: Manifest, pins: list[int]) -> None:
        self.directory = directory
        self.manifest = manifest
        self.parts = tuple(PartView(directory, part) for part in manifest.parts)
        self._pins = pins

    @classmethod
    def open(cls, directory: Path | str) -> "Snapshot":
        """The current snapshot; raises IndexFormatError naming a file that is missing or of a wrong size."""
        directory = Path(directory)
        for attempt in range(_OPEN_ATTEMPTS):
            manifest = read_manifest(directory)
            pins: list[int] = []
            try:
                for part in manifest.parts:
                    pins.append(_pin(part_directory(directory, part.name)))
                    _check_sizes(directory, part)
            except (IndexFormatError, OSError) as error:
                _unpin(pins)
                superseded = read_manifest(directory).generation != manifest.generation
                if superseded and attempt + 1 < _OPEN_ATTEMPTS:
                    continue
                if isinstance(error, IndexFormatError):
                    raise
                raise IndexFormatError(f"{error.filename}: cannot open the part ({error.strerror})") from None
            return cls(directory, manifest, pins)
        raise IndexFormatError(f"{directory}: the index changes faster than it can be opened")

    def is_current(self) -> bool:
        """Whether no newer snapshot was swapped in since this one was opened."""
        return read_manifest(self.directory).generation == self.manifest.generation

    def close(self) -> None:
        """Let go of the parts; a writer may then remove those that are no longer current."""
        _unpin(self._pins)

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def part_directory(index: Path, name: str) -> Path:
    """The folder of a part by its name."""
    return index / PARTS_FOLDER / name


def next_part_name(index: Path, manifest: Manifest | None) -> str:
    """A name that no snapshot uses and no reader holds (0001, 0002, ...); the caller holds the WriteLock.

    Parts that an interrupted writer left behind are removed on the way, so their names come again.
    """
    current = {part.name for part in manifest.parts} if manifest else set()
    used = {int(name) for name in current}
    for path in _part_folders(index):
        if path.name not in current and not remove_if_unused(path):
            used.add(int(path.name))
    return f"{max(used, default=0) + 1:04d}"


def remove_retired(index: Path, manifest: Manifest) -> list[str]:
    """Delete parts and tombstones that are neither current nor held by a reader; returns the parts' names."""
    current = {part.name for part in manifest.parts}
    old = [path for path in _part_folders(index) if path.name not in current]
    removed = [path.name for path in old if remove_if_unused(path)]
    named = {part.tombstones.path for part in manifest.parts}
    for path in sorted((index / TOMBSTONES_FOLDER).glob("*.npy")):
        if path.relative_to(index).as_posix() not in named:
            path.unlink()
    return removed


def remove_if_unused(directory: Path) -> bool:
    """Delete a part's folder unless a reader holds it; returns whether it is gone."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _part_folders(index: Path) -> list[Path]:
    folder = index / PARTS_FOLDER
    return sorted(path for path in folder.iterdir() if path.name.isdigit()) if folder.is_dir() else []


def _pin(directory: Path) -> int:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise IndexFormatError(f"{directory}: the part is being removed ({error.strerror})") from None
    return descriptor


def _unpin(pins: list[int]) -> None:
    while pins:
        os.close(pins.pop())


def _check_sizes(index: Path, part: Part) -> None:
    """Every file of the part is there with its size: O(files), which does not grow with the corpus."""
    directory = part_directory(index, part.name)
    entries = [(directory / entry.path, entry) for entry in part.files]
    for path, entry in [*entries, (index / part.tombstones.path, part.tombstones)]:
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise IndexFormatError(f"{path}: missing; restore it or build the index again") from None
        if size != entry.size:
            raise IndexFormatError(
                f"{path}: damaged: {size} bytes, expected {entry.size}; restore it or build the index again "
                "(`helios index fsck` finds all that is damaged)"
            )
