"""One input file: its name within the corpus, its first bytes, and its content unpacked from gzip, within a budget."""

import gzip
import io
import logging
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from helios.config import CorpusBudget
from helios.corpus.budget import STANDARD, RecordShapeError, check, check_expansion
from helios.corpus.rejects import Rejection
from helios.errors import CorpusError, RecordError

log = logging.getLogger(__name__)

HEAD_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"


def corpus_files(path: Path, *, follow_links: bool = False) -> list[tuple[str, Path]]:
    """Name and path of a file, or of every file of a folder but hidden ones, sorted by name; CorpusError for neither.

    A link that leaves the folder is passed over unless links are followed, and so is a folder that is a link.
    """
    if path.is_file():
        return [(path.name, path)]
    if not path.is_dir():
        raise CorpusError(f"{path}: no such file or folder; give a corpus to read")
    root, files, entered = path.resolve(), [], set()
    for folder, folders, names in os.walk(path, followlinks=follow_links):
        resolved = Path(folder).resolve()
        folders[:] = [] if resolved in entered else [name for name in folders if not name.startswith(".")]
        if resolved in entered:
            continue
        entered.add(resolved)
        for file in (Path(folder, name) for name in names if not name.startswith(".")):
            if not follow_links and file.is_symlink() and not file.resolve().is_relative_to(root):
                log.warning("%s: a link that leaves the corpus, passed over; --follow-links reads it", file)
            elif file.is_file():
                files.append((file.relative_to(path).as_posix(), file))
    return sorted(files)


@dataclass(slots=True)
class Position:
    """How far a file was read, in its own bytes."""

    consumed: int = 0


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read: `name` is its POSIX path relative to the corpus, from which ids are derived."""

    path: Path
    name: str
    head: bytes
    """The first 64 KiB, unpacked; what could be read of them if the file is damaged."""
    packed: bool
    size: int
    """Bytes of the file as it lies on disk."""
    budget: CorpusBudget = STANDARD
    position: Position = field(default_factory=Position)

    @classmethod
    def open(cls, path: Path, name: str, budget: CorpusBudget = STANDARD) -> "SourceFile":
        """Look at a file; CorpusError if it cannot be opened."""
        try:
            with path.open("rb") as file:
                packed = file.read(2) == _GZIP
                file.seek(0)
                head = _gzip_head(file) if packed else file.read(HEAD_BYTES)
                size = os.fstat(file.fileno()).st_size
        except OSError as error:
            raise CorpusError(f"{path}: cannot be read ({error.strerror or error})") from error
        return cls(path, name, head, packed, size, budget)

    @property
    def suffix(self) -> str:
        """Lower-case ending without ".gz", such as ".jsonl"."""
        name = PurePosixPath(self.name.lower())
        return PurePosixPath(name.stem).suffix if name.suffix == ".gz" else name.suffix

    @property
    def stem(self) -> str:
        """File name without endings, the title of what has none."""
        name = PurePosixPath(self.name)
        return PurePosixPath(name.stem).stem if name.suffix.lower() == ".gz" else name.stem

    @property
    def base_id(self) -> str:
        """What derived ids begin with: the relative path without ".gz"."""
        return self.name[:-3] if self.name.lower().endswith(".gz") else self.name

    @property
    def is_damaged(self) -> bool:
        """Whether not even the beginning of packed data can be read."""
        return self.packed and not self.head

    def stream(self) -> BinaryIO:
        """The unpacked content; reading raises what is in DAMAGED, or RecordShapeError for a bomb."""
        return cast(BinaryIO, io.BufferedReader(_Content(self), HEAD_BYTES))

    def read(self) -> bytes:
        """The whole unpacked content; RecordError if the gzip data is damaged or there is too much of it."""
        try:
            if not self.packed:
                check(self.budget, "file_mb", self.size, "size of the file")
            with self.stream() as file:
                content = file.read((self.budget.file_mb << 20) + 1)
            check(self.budget, "file_mb", len(content), "size of the unpacked file")
            return content
        except DAMAGED as error:
            raise self.damaged(error) from error
        except RecordShapeError as error:
            raise self.error(error) from error

    def lines(self, rejection: Rejection) -> Iterator[tuple[int, bytes]]:
        """(line number from 1, line); a line that is too long is rejected, and so is a damaged end."""
        number, limit = 0, self.budget.record_mb << 20
        with self.stream() as file:
            while True:
                try:
                    line = file.readline(limit + 1)
                    if not line:
                        return
                    number += 1
                    if len(line) <= limit:
                        yield number, line
                        continue
                    rejection.reject(RecordError(self.path, number, _too_long(self.budget)))
                    while line and not line.endswith(b"\n"):
                        line = file.readline(HEAD_BYTES)
                except DAMAGED as error:
                    rejection.reject(self.damaged(error, number + 1))
                    return
                except RecordShapeError as error:
                    rejection.reject(RecordError(self.path, number + 1, str(error)))
                    return

    def error(self, error: RecordShapeError) -> RecordError:
        """The error for a file that is too much of something, or not what it should be."""
        return RecordError(self.path, None, str(error), record_id=self.base_id)

    def damaged(self, error: Exception, line: int | None = None) -> RecordError:
        """The error for compressed data that ends early or is corrupt."""
        return RecordError(self.path, line, f"damaged gzip data ({error}); restore the file and read it again")


DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading broken gzip data raises."""


class _Content(io.RawIOBase):
    """The unpacked bytes of a file, as many as its size allows; notes how far the file was read."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._file = source.path.open("rb", buffering=HEAD_BYTES)
        self._unpacked: Any = gzip.GzipFile(fileobj=self._file) if source.packed else self._file
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._unpacked.readinto(buffer)
        self._count += count
        self._source.position.consumed = self._file.tell()
        check_expansion(self._source.budget, self._source.size, self._count, "unpacked data")
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def _too_long(budget: CorpusBudget) -> str:
    return f"a line of more than the {budget.record_mb} MB that advanced.corpus.record_mb allows"


def _gzip_head(file: BinaryIO) -> bytes:
    """The first bytes of a gzip file, as many as an intact beginning gives."""
    try:
        return zlib.decompressobj(wbits=31).decompress(file.read(HEAD_BYTES), HEAD_BYTES)
    except zlib.error:
        return b""
