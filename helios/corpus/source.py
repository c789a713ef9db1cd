"""One input file: its name within the corpus, its first bytes, and its content unpacked from gzip, within a budget."""

import gzip
import io
import logging
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple, cast

from helios.config import CorpusBudget
from helios.corpus.budget import STANDARD, RecordShapeError, check, check_expansion
from helios.corpus.mapping import FieldMap
from helios.corpus.rejects import Rejection
from helios.errors import CorpusError, RecordError

log = logging.getLogger(__name__)

HEAD_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"


class FoundFile(NamedTuple):
    """A file of a corpus, or a folder that is not entered; `passed_over` says why it is not looked into, if so."""

    name: str
    path: Path
    passed_over: str = ""


def corpus_files(path: Path, *, follow_links: bool = False) -> list[FoundFile]:
    """A file, or every file of a folder, sorted by name; CorpusError for neither.

    Hidden ones are passed over, and so are links that leave the folder, unless links are followed, folders that are
    links, and folders that cannot be read.
    """
    if path.is_file():
        return [FoundFile(_name(path, path.parent), path)]
    if not path.is_dir():
        raise CorpusError(f"{path}: no such file or folder; give a corpus to read")
    root = os.path.realpath(path)
    found: list[FoundFile] = []
    entered: set[tuple[int, int]] = set()
    folders = [path]
    while folders:
        folder = folders.pop()
        try:
            about = folder.stat()
            names = sorted(os.listdir(folder))
        except OSError as error:
            found.append(FoundFile(_name(folder, path), folder, f"cannot be read ({error.strerror or error})"))
            continue
        if (about.st_dev, about.st_ino) in entered:
            continue
        entered.add((about.st_dev, about.st_ino))
        for name in names:
            file = folder / name
            reason = _passed_over(file, root, follow_links=follow_links)
            if not reason and file.is_dir():
                folders.insert(0 if file.is_symlink() else len(folders), file)  # a folder is read where it lies
            else:
                found.append(FoundFile(_name(file, path), file, reason))
    return sorted(found)


def _name(file: Path, root: Path) -> str:
    """The path within the corpus; bytes of it that are no UTF-8 are spelled out, such as `caf\\xe9.csv`."""
    return os.fsencode(file.relative_to(root).as_posix()).decode(errors="backslashreplace")


def _passed_over(file: Path, root: str, *, follow_links: bool) -> str:
    """Why a file or a folder is not even looked into; empty if it is."""
    if file.name.startswith("."):
        return "hidden"
    if file.is_symlink():
        if not os.path.exists(file):
            return "a link that leads nowhere"
        if not follow_links:
            target = os.path.realpath(file)
            if target != root and not target.startswith(os.path.join(root, "")):
                log.warning("%s: a link that leaves the corpus, passed over; --follow-links reads it", file)
                return "a link that leaves the corpus; --follow-links reads it"
            if file.is_dir():
                return "a link to a folder that is read where it lies"
    if not file.is_dir() and not file.is_file():
        return "not a regular file"
    return ""


@dataclass(slots=True)
class Position:
    """How far a file was read, in its own bytes, and how many bytes of files within it were unpacked."""

    consumed: int = 0
    unpacked: int = 0


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
    content: bytes | None = None
    """The file's bytes where it lies within another one; `path` then only names it."""
    depth: int = 0
    """How many files it lies within."""
    mapping: FieldMap | None = None
    """Which fields of its records make a passage, if that was said."""
    mapping_is_strict: bool = False
    """Whether the file must have these fields, even if it has none of them."""

    @classmethod
    def open(
        cls, path: Path, name: str, budget: CorpusBudget = STANDARD, *, mapping: FieldMap | None = None,
        strict: bool = False,
    ) -> "SourceFile":  # fmt: skip
        """Look at a file; CorpusError if it cannot be opened."""
        try:
            with path.open("rb") as file:
                packed, head = _head(file)
                size = os.fstat(file.fileno()).st_size
        except OSError as error:
            raise CorpusError(f"{path}: cannot be read ({error.strerror or error})") from error
        return cls(path, name, head, packed, size, budget, mapping=mapping, mapping_is_strict=strict)

    def within(self, name: str, content: bytes) -> "SourceFile":
        """A file within this one, as if it lay in a folder of this one's name; RecordShapeError for too many bytes."""
        self.position.unpacked += len(content)
        check(self.budget, "file_mb", self.position.unpacked, "size of the files within the file")
        packed, head = _head(io.BytesIO(content))
        return SourceFile(
            self.path / name, f"{self.name}/{name}", head, packed, len(content), self.budget, self.position,
            content=content, depth=self.depth + 1, mapping=self.mapping,
        )  # fmt: skip

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

    @property
    def title(self) -> str:
        """The file's name as a title."""
        return " ".join(self.stem.replace("_", " ").split()) or self.name

    def raw(self) -> BinaryIO:
        """The bytes as they lie on disk."""
        return self.path.open("rb", buffering=HEAD_BYTES) if self.content is None else io.BytesIO(self.content)

    def reached(self, part: int, whole: int) -> None:
        """Say how far a reader that jumps about has come; what lies in an archive is counted by the archive."""
        if not self.depth:
            self.position.consumed = self.size * min(part, whole) // max(1, whole)

    def seekable(self) -> BinaryIO:
        """The unpacked content for a parser that jumps about in it; RecordError if it is damaged or too much."""
        if not self.depth:
            self.position.consumed = self.size
        return io.BytesIO(self.read()) if self.packed else self.raw()

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
        self._file = source.raw()
        self._unpacked: Any = gzip.GzipFile(fileobj=self._file) if source.packed else self._file
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._unpacked.readinto(buffer)
        self._count += count
        if not self._source.depth:
            self._source.position.consumed = self._file.tell()
        check_expansion(self._source.budget, self._source.size, self._count, "unpacked data")
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def _too_long(budget: CorpusBudget) -> str:
    return f"a line of more than the {budget.record_mb} MB that advanced.corpus.record_mb allows"


def _head(file: BinaryIO) -> tuple[bool, bytes]:
    """Whether a file is packed, and its first bytes."""
    packed = file.read(2) == _GZIP
    file.seek(0)
    return packed, _gzip_head(file) if packed else file.read(HEAD_BYTES)


def _gzip_head(file: BinaryIO) -> bytes:
    """The first bytes of a gzip file, as many as an intact beginning gives."""
    try:
        return zlib.decompressobj(wbits=31).decompress(file.read(HEAD_BYTES), HEAD_BYTES)
    except zlib.error:
        return b""
