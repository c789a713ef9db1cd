"""Crashes on purpose: an instrument for tests of what `helios.index.durable` promises; inactive without its variables.

    HELIOS_CRASH_AT=7           the process ends at its seventh durable step, before that is done
    HELIOS_CRASH_LOG=FILE       what was forced to the disk before, one JSON object a line

A step is a sync, a rename, a new name for a file, or a removal. Steps are counted by process, in the order in which it
takes them; a forked process goes on counting where its parent was.
"""

import json
import os
from itertools import count
from pathlib import Path

AT = "HELIOS_CRASH_AT"
LOG = "HELIOS_CRASH_LOG"
CRASHED = 77
"""Exit status of a process that ended so."""
_steps = count(1)


def step() -> None:
    """Something durable is about to be done."""
    wanted = os.environ.get(AT)
    if wanted is not None and next(_steps) == int(wanted):
        os._exit(CRASHED)


def synced(path: Path) -> None:
    """A file's content, or the names in a folder, are on the disk now."""
    log = os.environ.get(LOG)
    if log is None:
        return
    state = path.stat()
    record: dict[str, object] = {"path": str(path.resolve()), "inode": state.st_ino}
    if path.is_dir():
        record["names"] = {entry.name: entry.inode() for entry in os.scandir(path)}
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
