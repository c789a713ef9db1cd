"""A folder for the unfinished work of one writer, which others remove once that writer is gone.

Its owner holds a lock on the folder, which the kernel frees when the process ends in any way: whether a folder is an
orphan is told by its lock and not by its age.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helios.index.durable import remove_tree
from helios.index.manifest import BUILD_FOLDER
from helios.index.snapshot import remove_if_unused

FOLDER = "changes"
_ATTEMPTS = 10


@contextmanager
def workspace(index: Path) -> Iterator[Path]:
    """An empty folder of the index's file system, removed at the end."""
    place = index / BUILD_FOLDER / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    remove_orphans(index)
    folder, descriptor = _owned(place)
    try:
        yield folder
    finally:
        remove_tree(folder)
        os.close(descriptor)


def remove_orphans(index: Path) -> None:
    """Delete what writers that are gone left behind; those that work now hold their folders."""
    place = index / BUILD_FOLDER / FOLDER
    if place.is_dir():
        for folder in place.iterdir():
            remove_if_unused(folder)


def _owned(place: Path) -> tuple[Path, int]:
    """A new folder with its lock; one that another writer took for an orphan before that is given up."""
    for _ in range(_ATTEMPTS):
        folder = Path(tempfile.mkdtemp(dir=place, prefix=f"{os.getpid()}-"))
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(folder).st_ino == os.fstat(descriptor).st_ino:
                return folder, descriptor
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(descriptor)
    raise OSError(f"{place}: no folder could be made here")
