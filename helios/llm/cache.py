"""Replies on disk: one SQLite file that processes and threads share.

SQLite gives atomic writes across crashes and locks across processes. A cache that cannot be read or written is
a warning and a miss, never an error of the question.
"""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)

_WAIT_SECONDS = 2.0
_TABLE = """CREATE TABLE IF NOT EXISTS replies (
    number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, reply TEXT NOT NULL)"""


class ReplyCache:
    """The newest `entries` replies by the key of their request. Every access opens the file: no state, fork-safe."""

    def __init__(self, path: Path | str, *, entries: int = 100_000) -> None:
        self.path = Path(path)
        self.entries = entries

    def get(self, key: str) -> str | None:
        """The reply stored for a key; None if there is none or the file cannot be read."""
        if not self.path.exists():
            return None
        try:
            with self._connect() as connection:
                row = connection.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        except (sqlite3.Error, OSError) as error:
            log.warning("%s: cannot read the cache of replies (%s)", self.path, error)
            return None
        return str(row[0]) if row else None

    def put(self, key: str, reply: str) -> None:
        """Store a reply and let the oldest beyond `entries` go; a failure is logged, the reply is just not kept."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._connect() as connection:
                cursor = connection.execute("INSERT OR REPLACE INTO replies (key, reply) VALUES (?, ?)", (key, reply))
                oldest = (cursor.lastrowid or 0) - self.entries
                connection.execute("DELETE FROM replies WHERE number <= ?", (oldest,))
        except (sqlite3.Error, OSError) as error:
            log.warning("%s: cannot write to the cache of replies (%s)", self.path, error)

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction, committed at the end and rolled back on an error."""
        connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS)
        try:
            connection.execute(_TABLE)
            with connection:
                yield connection
        finally:
            connection.close()
