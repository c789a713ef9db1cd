"""An engine that follows the commits of its index: a thread looks for a newer snapshot every so many seconds."""

import logging
import weakref
from threading import Event, Thread, current_thread
from typing import TYPE_CHECKING

from helios.errors import HeliosError

if TYPE_CHECKING:
    from helios.engine import Engine

log = logging.getLogger(__name__)


class Follower:
    """Refreshes an engine until it is stopped or the engine is gone; what fails is logged once and tried again."""

    def __init__(self, engine: "Engine", seconds: float) -> None:
        self.seconds = seconds
        self.problem: str | None = None
        """Why the newest snapshot is not searched; None where it is."""
        self._engine = weakref.ref(engine)
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="follow", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"Follower(every {self.seconds:g} s, problem={self.problem!r})"

    def stop(self) -> None:
        """End the thread; a refresh that runs is waited for."""
        self._stopped.set()
        if self._thread is not current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self.seconds):
            engine = self._engine()
            if engine is None:
                return
            try:
                engine.refresh()
                self.problem = None
            except (HeliosError, OSError) as error:
                if str(error) != self.problem:
                    log.warning("%r goes on with its snapshot: %s", engine, error)
                self.problem = str(error)
            del engine
