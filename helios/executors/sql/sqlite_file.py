"""How a file of SQLite must be read by somebody who may write nothing, beside those who write it."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FileState:
    """Which file it is and how it must be read; of one that is read without locks, also how it was written last."""

    immutable: bool
    """In WAL mode and without a log: to read it with locks would mean to write one."""
    stamp: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> "FileState":
        with path.open("rb") as file:
            header = file.read(20)
            status = os.fstat(file.fileno())
        immutable = header[18:20] == b"\x02\x02" and not _is_logged(path)
        stamp = (status.st_dev, status.st_ino)
        return cls(immutable, (*stamp, status.st_size, status.st_mtime_ns) if immutable else stamp)


def _is_logged(path: Path) -> bool:
    """Whether there is a log with pages, or with an index that somebody keeps; a failed reader leaves both empty."""
    log, index = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
    return log.exists() and any(file.stat().st_size for file in (log, index) if file.exists())
