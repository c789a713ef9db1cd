"""One input file: its name within the corpus, its first bytes, and its content unpacked from gzip."""

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from helios.corpus.rejects import Rejection
from helios.errors import CorpusError, RecordError

HEAD_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read: `name` is its POSIX path relative to the corpus, from which ids are derived."""

    path: Path
    name: str
    head: bytes
    """The first 64 KiB, unpacked; what could be read of them if the file is damaged."""
    packed: bool

    @classmethod
    def open(cls, path: Path, name: str) -> "SourceFile":
        """Look at a file; CorpusError if it cannot be opened."""
        try:
            with path.open("rb") as file:
                packed = file.read(2) == _GZIP
                file.seek(0)
                head = _gzip_head(file) if packed else file.read(HEAD_BYTES)
        except OSError as error:
            raise CorpusError(f"{path}: cannot be read ({error.strerror or error})") from error
        return cls(path, name, head, packed)

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
        """The unpacked content; a truncated gzip raises EOFError or zlib.error while reading."""
        if self.packed:
            return cast(BinaryIO, gzip.open(self.path, "rb"))
        return self.path.open("rb")

    def read(self) -> bytes:
        """The whole unpacked content; RecordError if the gzip data is damaged."""
        try:
            with self.stream() as file:
                return file.read()
        except DAMAGED as error:
            raise self.damaged(error) from error

    def lines(self, rejection: Rejection) -> Iterator[tuple[int, bytes]]:
        """(line number from 1, line); a damaged end is rejected and what came before it is kept."""
        number = 0
        with self.stream() as file:
            lines = iter(cast(io.BufferedReader, file))
            while True:
                try:
                    line = next(lines)
                except StopIteration:
                    return
                except DAMAGED as error:
                    rejection.reject(self.damaged(error, number + 1))
                    return
                number += 1
                yield number, line

    def damaged(self, error: Exception, line: int | None = None) -> RecordError:
        """The error for compressed data that ends early or is corrupt."""
        return RecordError(self.path, line, f"damaged gzip data ({error}); restore the file and read it again")


DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading broken gzip data raises."""


def _gzip_head(file: BinaryIO) -> bytes:
    """The first bytes of a gzip file, as many as an intact beginning gives."""
    try:
        return zlib.decompressobj(wbits=31).decompress(file.read(HEAD_BYTES), HEAD_BYTES)
    except zlib.error:
        return b""
