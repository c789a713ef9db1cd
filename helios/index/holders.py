"""Who reads an index: which processes hold a lock on a folder of it, as the kernel tells."""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

LOCKS = Path("/proc/locks")


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a lock; 0 where its number cannot be known from here."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})" if self.pid else self.command


def holders_of(path: Path) -> tuple[Holder, ...]:
    """The processes that hold an `flock` on a file or folder, each once, by their numbers; none where it is gone.

    Without /proc/locks, as on macOS, it is only told whether there are any.
    """
    try:
        state = path.stat()
    except FileNotFoundError:
        return ()
    if not LOCKS.exists():
        return (Holder(0, "a process unknown"),) if _is_locked(path) else ()
    found = set()
    for line in LOCKS.read_text().splitlines():
        fields = line.split()
        if "FLOCK" not in fields or "->" in fields:
            continue
        pid, place = int(fields[4]), fields[5]
        major, minor, inode = place.split(":")
        if int(inode) == state.st_ino:
            same = (int(major, 16), int(minor, 16)) == (os.major(state.st_dev), os.minor(state.st_dev))
            if same or _has_open(pid, path):  # some file systems count their devices in two ways
                found.add(max(pid, 0))
    return tuple(Holder(pid, _command(pid)) for pid in sorted(found))


def _has_open(pid: int, path: Path) -> bool:
    try:
        return any(Path(entry).resolve() == path.resolve() for entry in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def _command(pid: int) -> str:
    """How a process was started, at most 60 characters of it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "a process that cannot be seen from here"
    text = " ".join(word.decode(errors="replace") for word in words if word)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _is_locked(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
