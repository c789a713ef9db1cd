"""Worker processes that do not outlive the build that started them."""

import os
import signal
import threading
import time

_INTERVAL_S = 1.0


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
