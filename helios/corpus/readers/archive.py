"""Files within files: the members of a ZIP archive and the attachments of a message are read as files of their own.

They are named `archive.zip/inner.csv`, and so are their records. An archive in an archive is read, one deeper is not.
"""

import zipfile
from collections.abc import Iterator

from helios.corpus.budget import RecordShapeError
from helios.corpus.readers.extra import check_parts, parsing
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.source import SourceFile
from helios.errors import CorpusError, RecordError

DEEPEST = 2
"""Files that a file which holds others may lie within."""
_ENCRYPTED = 0x1


def detect(source: SourceFile) -> bool:
    """By the ending, or by the first bytes of a file that has none."""
    return source.suffix == ".zip" or (not source.suffix and source.head.startswith(b"PK\x03\x04"))


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """The records of all members, sorted by name; what cannot be unpacked or read is rejected alone."""
    with parsing("ZIP"):
        archive = zipfile.ZipFile(source.seekable())
    with archive:
        check_parts(source, archive)
        for name in sorted({part.filename for part in archive.infolist() if not part.is_dir()}):
            yield from _read_part(source, archive, name, rejection)


def _read_part(source: SourceFile, archive: zipfile.ZipFile, name: str, rejection: Rejection) -> Iterator[Parsed]:
    full = f"{source.name}/{name}"
    part = archive.getinfo(name)
    if any(piece.startswith(".") for piece in name.split("/")) or name.startswith("__MACOSX/"):
        rejection.pass_over(full, "hidden")
    elif part.flag_bits & _ENCRYPTED:
        rejection.pass_over(full, "encrypted; unpack it with its password")
    else:
        try:
            with parsing("ZIP"):
                content = archive.read(part)
        except RecordShapeError as error:
            rejection.begin(full, "")
            rejection.reject(RecordError(source.path / name, None, str(error)))
        else:
            yield from read_within(source.within(name, content), rejection)


def read_within(inner: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """The records of a file that lies within another one; an error rejects no more than this file."""
    from helios.corpus.readers.registry import recognise, why_passed_over

    known = recognise(inner)
    if known is None:
        rejection.pass_over(inner.name, why_passed_over(inner))
        return
    if known.holds_files and inner.depth >= DEEPEST:
        rejection.pass_over(inner.name, f"within {inner.depth} other files; unpack them")
        return
    rejection.begin(inner.name, known.name)
    try:
        with parsing(known.name):
            yield from known.read(inner, rejection)
    except (RecordShapeError, CorpusError) as error:
        rejection.begin(inner.name, known.name)
        rejection.reject(
            error
            if isinstance(error, RecordError)
            else RecordError(inner.path, None, str(error), record_id=inner.base_id)
        )
