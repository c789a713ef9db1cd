"""One writer at a time: an exclusive lock on an index folder that dies with its process."""

import fcntl
import json
import os
import socket
import sys
import time
import weakref
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from helios.errors import IndexFormatError, IndexLockedError

LOCK_FILE = ".lock"
_SECONDS_BETWEEN_TRIES = 0.05
_SECONDS_FOR_OTHERS = 1.5 * _SECONDS_BETWEEN_TRIES
_let_go: dict[Path, float] = {}
"""When this process last let go of a lock: one change after another in a loop would keep all others waiting."""


class WriteLock:
    """Holds the right to change an index: `with WriteLock(directory): ...`.

    The lock belongs to the open file, so the kernel frees it when the process ends in any way. The file
    itself stays, with the last holder's process id and host. Raises IndexLockedError where it is held, and is still
    held after `wait` seconds. A process that may wait and has only just let go leaves those who wait a moment first, so
    that each of them has its turn.
    """

    def __init__(self, directory: Path, *, wait: float = 0.0) -> None:
        self.path = directory / LOCK_FILE
        self.wait = wait
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock now."""
        return self._descriptor is not None

    def acquire(self) -> None:
        """Take the lock, or raise IndexLockedError naming the holder when the time to wait has passed."""
        if self.held:
            raise IndexLockedError(f"{self.path.parent}: this process already holds the write lock")
        descriptor = _open_lock_file(self.path)
        deadline = time.monotonic() + self.wait
        if self.wait:
            time.sleep(max(0.0, _let_go.get(self.path, 0.0) + _SECONDS_FOR_OTHERS - time.monotonic()))
        while not _try_lock(descriptor):
            if time.monotonic() >= deadline:
                os.close(descriptor)
                waited = f"; waited {self.wait:g} s" if self.wait else ""
                raise IndexLockedError(
                    f"{self.path.parent}: another process is writing to this index ({_holder(self.path)}){waited}; "
                    "wait until it is done, or stop it and run again"
                )
            time.sleep(_SECONDS_BETWEEN_TRIES)
        self._descriptor = descriptor
        _release_in_forked_children(self)
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, _introduction(), 0)
        except OSError:  # a full disk: who asks next gets the lock
            self.release()
            raise

    def release(self) -> None:
        """Give the lock back; does nothing where it is not held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
            _let_go[self.path] = time.monotonic()

    def __enter__(self) -> "WriteLock":
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _open_lock_file(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise IndexFormatError(f"{path}: cannot lock the index for writing ({error.strerror})") from None


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _release_in_forked_children(lock: WriteLock) -> None:
    """A forked worker would share the lock and keep it after the parent was killed."""
    reference = weakref.ref(lock)

    def release() -> None:
        if (inherited := reference()) is not None:
            inherited.release()

    os.register_at_fork(after_in_child=release)


def _introduction() -> bytes:
    who = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": Path(sys.argv[0]).name if sys.argv else "",
    }
    return json.dumps(who).encode()


def _holder(path: Path) -> str:
    try:
        who = json.loads(path.read_bytes())
        return f"process {who['pid']} on {who['host']}, since {who['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "process unknown"
