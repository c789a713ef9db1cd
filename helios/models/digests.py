"""SHA-256 of large files, remembered between processes: a command would else spend a tenth of its start on 90 MB.

A file is taken for the same while its size, its times and its inode are. One that changed a moment ago is remembered by
no other process: within a tick of the file system's clock it might change again unseen.
"""

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from helios.places import cache_folder

REMEMBERED = 64
"""Files; the oldest ones go first."""
SETTLED = 2 * 10**9
"""Nanoseconds since a file's last change after which its digest is remembered for other processes."""
_READ: dict[str, list[object]] = {}
"""What this process has read."""


def remembered_digest(path: Path, read: Callable[[], str]) -> str:
    """What `read` says of a file, or said when another process asked; OSError where there is no such file."""
    state = path.stat()
    name, mark = str(path.resolve()), [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
    match _READ.get(name) or _known().get(name):
        case [*known, str(digest)] if known == mark:
            return digest
    digest = read()
    _READ[name] = [*mark, digest]
    if time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) > SETTLED:
        _remember(name, [*mark, digest])
    return digest


def _file() -> Path:
    return cache_folder() / "digests.json"


def _known() -> dict[str, object]:
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _remember(name: str, entry: list[object]) -> None:
    """Keep a digest; without a word where the cache cannot be written."""
    known = _known()
    known.pop(name, None)
    known[name] = entry
    kept = dict(list(known.items())[-REMEMBERED:])
    temporary = _file().with_suffix(f".{os.getpid()}.{threading.get_ident()}.tmp")
    with suppress(OSError):
        temporary.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary.write_text(json.dumps(kept), encoding="utf-8")
        temporary.replace(_file())
