"""The `helios` script and `python -m helios`: an interrupt ends them quietly, also while they are being loaded.

Nothing is imported here before `main` runs: a command takes a second or more to load, the root of the commands too.
"""

import atexit
import contextlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130


def main() -> None:
    """Run the command line; exit code 130 after an interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        from helios.cli import main as run

        run()
    except KeyboardInterrupt:
        _leave_interrupted()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _leave_at_once()
        raise


def _interrupt(number: int, frame: FrameType | None) -> None:
    """End within an import, raise KeyboardInterrupt elsewhere.

    Raised within an import it can be swallowed there and leave a lock of Python's behind, on which the next import of
    another thread waits for ever.
    """
    if is_importing(frame):
        _leave_interrupted()
    raise KeyboardInterrupt


def is_importing(frame: FrameType | None) -> bool:
    """Whether a frame works for an import."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _leave_interrupted() -> NoReturn:
    with contextlib.suppress(OSError, ValueError):  # a pipe that nobody reads any more
        os.write(2, b"interrupted\n")
    _leave_at_once()


def _leave_at_once() -> NoReturn:
    """End the process after an interrupt without taking the interpreter apart.

    A compiled library that was half loaded, or in which a thread still works, crashes or complains when it is.
    What was registered for the end (worker processes, temporary files) is done first; another interrupt cuts it short.
    """
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # as above, or it was being written to
            stream.flush()
    os._exit(INTERRUPTED)


def leave_working_folder() -> None:
    """Take the working folder, which `python -m` puts first, off the import path, also of processes that are started.

    A folder `training` or a file `json.py` of the user's would stand in for ours. A checkout that is run without an
    installation is found there, and stays.
    """
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not sys.flags.safe_path and os.path.realpath(sys.path[0]) != os.path.realpath(home):
        del sys.path[0]
        os.environ["PYTHONSAFEPATH"] = "1"


if __name__ == "__main__":
    leave_working_folder()
    main()
