"""SQLite databases: guarded queries in worker processes (design: executors)."""

from collections.abc import Sequence
from pathlib import Path

from helios.executors.base import Limits
from helios.executors.pool import Engine
from helios.executors.sql.embedded import EmbeddedSqlExecutor


class SqliteExecutor(EmbeddedSqlExecutor):
    """Guarded queries against one database file."""

    def __init__(
        self, path: Path | str, *, limits: Limits | None = None, workers: int = 2, system_tables: bool = False,
        closed: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """`closed`: tables (`a`) and columns (`a.b`, with `*`) that the engine itself is to refuse."""
        limits = limits or Limits()
        options = {
            "path": str(Path(path).resolve()), "max_memory": limits.max_memory, "system_tables": system_tables,
            "closed": list(closed),
        }  # fmt: skip
        engine = Engine("helios.executors.sql.sqlite_session:open_session", options)
        super().__init__("sqlite", engine, limits=limits, workers=workers, system_tables=system_tables)
