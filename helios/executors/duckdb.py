"""DuckDB: a database file, or Parquet, CSV and JSON files as tables; guarded queries in worker processes.

Small CSV and JSON files are read into a worker's memory when it opens. Parquet and large files are views: outside
access is closed but for these files, and they are read when a query asks for them.
"""

from collections.abc import Mapping
from pathlib import Path

from helios.executors.base import Limits
from helios.executors.pool import Engine
from helios.executors.sql.embedded import EmbeddedSqlExecutor


class DuckdbExecutor(EmbeddedSqlExecutor):
    """Guarded queries against a database file, or against data files: {table name: path}."""

    def __init__(
        self, path: Path | str | None = None, *, files: Mapping[str, Path | str] | None = None,
        limits: Limits | None = None, workers: int = 2, threads: int = 1, system_tables: bool = False,
    ) -> None:  # fmt: skip
        if (path is None) == (not files):
            raise ValueError("give either the path of a database or data files")
        limits = limits or Limits()
        options = {
            "path": None if path is None else str(Path(path).resolve()),
            "files": {name: str(Path(file).resolve()) for name, file in (files or {}).items()},
            "max_memory": limits.max_memory, "threads": threads,
        }  # fmt: skip
        engine = Engine("helios.executors.sql.duckdb_session:open_session", options)
        super().__init__("duckdb", engine, limits=limits, workers=workers, system_tables=system_tables)
