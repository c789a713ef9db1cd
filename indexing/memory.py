"""The highest resident memory of a piece of work, worker processes included."""

import resource
import sys
import threading
from pathlib import Path
from types import TracebackType

import psutil

_INTERVAL_S = 0.25
_KIBIBYTE = 1024


class PeakMemory:
    """`with PeakMemory() as memory: ...` then `memory.peak`, in bytes.

    This process's peak comes from the kernel (exact on Linux, where the mark is reset at the start); the sum
    with its workers is sampled four times a second. Pages of memory-mapped files count while resident.
    """

    def __init__(self) -> None:
        self.peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="peak-memory", daemon=True)

    def __enter__(self) -> "PeakMemory":
        _reset_high_water_mark()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self.peak = max(self.peak, _high_water_mark())

    def _sample(self) -> None:
        process = psutil.Process()
        while not self._stop.wait(_INTERVAL_S):
            self.peak = max(self.peak, _resident(process))


def _resident(process: psutil.Process) -> int:
    total = 0
    for member in [process, *process.children(recursive=True)]:
        try:
            total += member.memory_info().rss
        except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
            continue
    return total


def _reset_high_water_mark() -> None:
    """On Linux, 5 in clear_refs sets VmHWM to the present size; elsewhere the mark is the process's."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def _high_water_mark() -> int:
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * _KIBIBYTE
    except OSError:
        pass
    unit = 1 if sys.platform == "darwin" else _KIBIBYTE
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
