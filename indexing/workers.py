"""Worker processes that do not outlive the build that started them."""

import os
import threading
import time

_INTERVAL_S = 1.0


def exit_with_parent(parent: int) -> None:
    """End this worker within a second once `parent` is gone, even if killed; call it at the start."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_INTERVAL_S)
        os._exit(1)

    threading.Thread(target=watch, name="exit-with-parent", daemon=True).start()
