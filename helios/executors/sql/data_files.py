"""Data files that DuckDB reads as tables, told by their endings whatever the case."""

from collections.abc import Iterable
from pathlib import Path

from helios.errors import ConfigError

READERS = {
    "parquet": "read_parquet", "csv": "read_csv", "tsv": "read_csv",
    "json": "read_json", "jsonl": "read_json", "ndjson": "read_json",
}  # fmt: skip
PACKED = (".gz", ".zst")


def file_reader(file: Path) -> str:
    """The table function that reads a file; ConfigError for an ending that none reads."""
    name = file.name.lower()
    for ending in PACKED:
        name = name.removesuffix(ending)
    reader = READERS.get(name.rpartition(".")[2])
    if reader is None:
        raise ConfigError(f"{file}: expected a file that ends in {', '.join(f'.{ending}' for ending in READERS)}")
    return reader


def select_from(file: Path) -> str:
    """A FROM clause over a file."""
    return f"FROM {file_reader(file)}({literal(str(file))})"


def allowed_paths(files: Iterable[Path]) -> str:
    """The setting that leaves these files within reach when all others are out of it."""
    return f"SET allowed_paths = [{', '.join(literal(str(file)) for file in files)}]"


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"
