"""How much disk a build needs, guessed from the sizes of its input files alone: a check, not a promise.

`indexing.estimate` measures instead.
"""

import errno
import shutil
from pathlib import Path

from helios.config import Config
from helios.errors import HeliosError
from indexing.inputs import InputFile, input_files

DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_UNPACKED = {".gz": 4.0, ".parquet": 3.0, ".xlsx": 3.0, ".html": 0.3, ".htm": 0.3}
"""Bytes of text per byte of a file, 1 for other endings."""
_BYTES_PER_TOKEN = 4.2
_DIMENSIONS = 384
_WORDS_PER_BYTE = 0.3
"""Size of the lexical index per byte of text."""


def text_bytes(files: list[InputFile]) -> int:
    """About how many bytes of text a corpus holds once unpacked."""
    return int(sum(file.size * _UNPACKED.get(file.path.suffix.lower(), 1.0) for file in files))


def disk_needed(corpus: Path, config: Config) -> int:
    """About how many bytes a build needs at its peak: text, graph, postings, and vectors twice over."""
    text = text_bytes(input_files(corpus))
    vectors = text / _BYTES_PER_TOKEN * (_DIMENSIONS * config.tokens.bits / 8 + 4)
    return int(text * (1.1 + _WORDS_PER_BYTE) + 2 * vectors)


def check_free_space(corpus: Path, out: Path, config: Config) -> None:
    """Raise HeliosError where less disk is free than a build of this corpus is likely to need."""
    needed, free = disk_needed(corpus, config), shutil.disk_usage(out).free
    if needed > free:
        raise HeliosError(
            f"{out}: the build needs about {format_bytes(needed)} of disk and {format_bytes(free)} are free; "
            "choose another disk, or skip this check with --force"
        )


def format_bytes(size: float) -> str:
    """For example "1.3 GB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
