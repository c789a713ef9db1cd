"""DuckDB: a database file, or Parquet, CSV and JSON files as tables; guarded queries in worker processes.

Data files are read when a worker opens, into its memory, before outside access is closed: a query can then name no
file at all. The price is memory (it counts against the cap, once a worker) and a snapshot: changed files show after
the executor is opened again. Files too large for that belong in a `.duckdb` file, which is read page by page.
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
