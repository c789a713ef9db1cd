"""Two writers exclude each other; a dead one leaves nothing locked."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helios.errors import IndexFormatError, IndexLockedError
from helios.index.lock import WriteLock

HOLD = """
import sys, time
from pathlib import Path
from helios.index.lock import WriteLock
lock = WriteLock(Path(sys.argv[1]))
lock.acquire()
{after}
print("held", flush=True)
time.sleep(60)
"""


AGAIN_AND_AGAIN = """
import sys, time
from pathlib import Path
from helios.index.lock import WriteLock
while True:
    with WriteLock(Path(sys.argv[1]), wait=60.0):
        print("held", flush=True)
        time.sleep(0.3)
"""


def holder(directory: Path, after: str = "") -> subprocess.Popen[str]:
    """Another process that holds the lock and waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(after=after), str(directory)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_second_writer_is_refused_with_the_holder(tmp_path: Path):
    with holder(tmp_path) as process:
        try:
            with pytest.raises(IndexLockedError, match=f"process {process.pid} on .*, since 20"):
                WriteLock(tmp_path).acquire()
        finally:
            process.kill()


def test_killed_holder_frees_the_lock(tmp_path: Path):
    with holder(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
    with WriteLock(tmp_path) as lock:
        assert lock.held


def test_forked_worker_does_not_keep_the_lock(tmp_path: Path):
    fork = "import os\nif (child := os.fork()) == 0:\n    time.sleep(60)\nprint(child, flush=True)"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(after=fork), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        worker = int(process.stdout.readline())
        try:
            assert process.stdout.readline() == "held\n"
            process.kill()
            process.wait(timeout=10)
            os.kill(worker, 0)
            assert _freed_within(tmp_path, seconds=30.0)  # on a busy machine the worker may not have run yet
        finally:
            os.kill(worker, signal.SIGKILL)


def _freed_within(directory: Path, *, seconds: float) -> bool:
    """Whether the lock can be taken before the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with WriteLock(directory):
                return True
        except IndexLockedError:
            time.sleep(0.05)
    return False


def test_lock_is_free_after_the_block(tmp_path: Path):
    with WriteLock(tmp_path) as lock:
        assert lock.held
        with pytest.raises(IndexLockedError):
            WriteLock(tmp_path).acquire()
        with pytest.raises(IndexLockedError, match="already holds"):
            lock.acquire()
    assert not lock.held
    with WriteLock(tmp_path):
        pass
    lock.release()


def test_unreadable_holder_is_still_a_clear_error(tmp_path: Path):
    with WriteLock(tmp_path) as lock:
        lock.path.write_bytes(b"not json")
        with pytest.raises(IndexLockedError, match="process unknown"):
            WriteLock(tmp_path).acquire()


def test_folder_that_cannot_be_locked(tmp_path: Path):
    with pytest.raises(IndexFormatError, match=re.escape(str(tmp_path / "absent"))):
        WriteLock(tmp_path / "absent").acquire()


def test_a_process_that_writes_on_and_on_lets_others_have_their_turn(tmp_path: Path):
    """Without a pause between its changes a wait of 100 tries met a free lock only by luck."""
    writer = subprocess.Popen(
        [sys.executable, "-c", AGAIN_AND_AGAIN, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    with writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "held\n"
            for _ in range(5):
                with WriteLock(tmp_path, wait=10.0):
                    pass
        finally:
            writer.kill()
