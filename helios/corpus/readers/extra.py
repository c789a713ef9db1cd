"""What the readers of documents share: libraries of the extra `documents`, and what their parsers raise."""

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from helios.corpus.budget import RecordShapeError, check, check_expansion
from helios.corpus.grid import split_grid
from helios.corpus.page import PageTable
from helios.corpus.source import SourceFile
from helios.errors import CorpusError
from helios.extras import installation
from helios.types import TableKind


def library(module: str, kind: str) -> Any:
    """A library of the extra; RecordShapeError says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        needed = f"reading {kind} needs {module.partition('.')[0]}"
        raise RecordShapeError(f"{needed}: {installation(module)}") from None


@contextmanager
def parsing(kind: str) -> Iterator[None]:
    """RecordShapeError for whatever a parser raises on a damaged file."""
    try:
        yield
    except (MemoryError, RecordShapeError, CorpusError):
        raise
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise RecordShapeError(f"not a readable {kind} file ({why})") from error


def check_parts(source: SourceFile, archive: zipfile.ZipFile) -> None:
    """RecordShapeError where the parts of a ZIP file unpack to too much."""
    size = sum(part.file_size for part in archive.infolist())  # zipfile unpacks no more of a part than this says
    check(source.budget, "file_mb", size, "size of the unpacked file")
    check_expansion(source.budget, source.size, size, "unpacked data")


def cells_table(rows: Sequence[Sequence[str]]) -> Iterator[PageTable]:
    """The table that rows of a document make, its titles as its caption; none where all cells are blank."""
    if not any(map(any, rows)):
        return
    grid = split_grid([row for row in rows if any(row)])
    kind = TableKind.INFOBOX if grid.is_form else TableKind.TABLE
    yield PageTable(grid.header, grid.rows, " -- ".join(grid.titles), kind)
