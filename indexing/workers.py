"""Worker processes that do not outlive the build that started them."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

_INTERVAL_S = 1.0
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")


def kill_processes(pool: ProcessPoolExecutor) -> None:
    """End what is left of a broken pool: one process was seen to outlive it, and its end then waited for ever."""
    for process in list((pool._processes or {}).values()):
        process.kill()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Processes that are started within have one thread each for their sums, unless the environment says otherwise:
    many processes with as many threads as processors wait for each other."""
    unset = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(unset, "1"))
    try:
        yield
    finally:
        for name in unset:
            os.environ.pop(name, None)


def exit_with_parent(parent: int) -> None:
    """End this worker within a second once `parent` is gone, even if killed; call it at the start.

    Ctrl-C, which reaches the workers too, ends them at once and without a word: the build reports it.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_INTERVAL_S)
        os._exit(1)

    threading.Thread(target=watch, name="exit-with-parent", daemon=True).start()
