"""Writing so that a crash leaves either the old file or the new one, never half of it.

Every step that makes something durable, gives it a name or takes that away is counted by `helios.index.crashing`.
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any

from helios.errors import IndexFormatError
from helios.index import crashing

_READ_BYTES = 1 << 20
MOST_BYTES = 256 << 20
"""Of a file of descriptions, such as a manifest."""
_CLONE_FILE = 0x40049409
"""FICLONE of Linux: a file that shares the blocks of another one until one of them is written to."""
_NOT_HERE = {
    errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTTY, errno.EINVAL,
}  # fmt: skip
"""What a file system says that has no links, or none between these two places."""


class Sharing(StrEnum):
    """How two names came to have the same content."""

    REFLINK = "reflink"
    HARD_LINK = "hard link"
    COPY = "copy"


def write_atomically(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Replace a file in one step: temporary file, fsync, rename, fsync of the folder; `mode`: who may read it."""
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("wb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        file.write(content)
    replace_durably(temporary, path)


def replace_durably(temporary: Path, path: Path) -> None:
    """Give a finished file, or a folder whose content is on the disk, the name of another one in the same folder."""
    if temporary.is_file():
        fsync_path(temporary)
    rename(temporary, path)
    fsync_path(path.parent)


def rename(source: Path, target: Path) -> None:
    """Give a file or a folder another name in one step; the caller syncs the folder."""
    crashing.step()
    os.replace(source, target)


def remove(path: Path) -> None:
    """Take a file's name away, if it is there."""
    crashing.step()
    path.unlink(missing_ok=True)


def remove_tree(directory: Path) -> None:
    """Remove a folder with all that is below it; not an error where it is gone, or somebody removes it meanwhile."""
    for root, folders, names in os.walk(directory, topdown=False):
        for name in names:
            remove(Path(root, name))
        for name in folders:
            _remove_folder(Path(root, name))
    _remove_folder(directory)


def _remove_folder(path: Path) -> None:
    if path.is_symlink():
        path.unlink()
        return
    try:
        path.rmdir()
    except FileNotFoundError:
        return


def fsync_path(path: Path) -> None:
    """Force a file's content, or a folder's entries, to the disk."""
    crashing.step()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    crashing.synced(path)


def fsync_tree(directory: Path) -> None:
    """Force everything below a folder to the disk, contents before entries."""
    for root, _, names in os.walk(directory, topdown=False):
        for name in names:
            fsync_path(Path(root, name))
        fsync_path(Path(root))


def share_file(source: Path, target: Path, *, clone: bool = False, link: bool = True) -> Sharing:
    """Give a file that never changes a second name: with `clone` by a reflink, with `link` by a hard link, else a copy.

    Says which way it went; the caller makes the target durable.
    """
    crashing.step()
    if clone and _cloned(source, target):
        return Sharing.REFLINK
    if link:
        try:
            os.link(source, target)
            return Sharing.HARD_LINK
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
    shutil.copyfile(source, target)
    return Sharing.COPY


def _cloned(source: Path, target: Path) -> bool:
    if sys.platform != "linux":
        return False
    with source.open("rb") as old, target.open("xb") as new:
        try:
            fcntl.ioctl(new.fileno(), _CLONE_FILE, old.fileno())
            return True
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
    target.unlink()
    return False


def read_whole(path: Path, *, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file of at most `most` bytes; OSError for any other, a pipe or a device for example."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        if state.st_size > most:
            raise OSError(errno.EFBIG, f"has {state.st_size:,} bytes, at most {most:,} are read", str(path))
        return file.read(min(most, state.st_size + 4096))  # as much memory is taken as is asked for


def read_record(path: Path) -> dict[str, Any]:
    """A JSON object of a file of an index; IndexFormatError names the file and what is wrong."""
    try:
        found = json.loads(read_whole(path))
    except OSError as error:
        raise IndexFormatError(f"{path}: cannot be read ({error.strerror}); build the index again") from None
    except (ValueError, RecursionError) as error:
        raise IndexFormatError(f"{path}: damaged: not JSON ({error}); build the index again") from None
    if not isinstance(found, dict):
        raise IndexFormatError(f"{path}: damaged: expected an object; build the index again")
    return found


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file, read in blocks of 1 MiB."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()


def files_below(directory: Path) -> list[Path]:
    """Paths of all files below a folder, relative to it, sorted."""
    return sorted(path.relative_to(directory) for path in directory.rglob("*") if path.is_file())
