"""Which files of a snapshot were read against their checksums.

When a component is first used, every file of it is read that decides where others are looked into: offsets, numbers,
lists, descriptions. These are a small part of an index. PAYLOAD is the large rest, of which any byte is a possible one;
where kernels follow it (`codes`, `nodes`) its range is checked instead. Files of up to SMALL bytes are all read, so a
small index has no unread file. `helios index fsck` and the setting `advanced.search.verify` read everything.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from helios.errors import ChecksumError
from helios.index.durable import sha256_file
from helios.index.manifest import FileEntry

SMALL = 1 << 20
"""Bytes up to which a file is read whatever it holds; a millisecond at most."""
PAYLOAD = (
    "tokens/codes.npy", "tokens/scales.npy", "tokens/residuals.npy", "tokens/pooled.npy", "lexical/nodes.npy",
    "lexical/counts.npy", "corpus/tables.arrow", "corpus/passages.arrow",
)  # fmt: skip


class Checksums:
    """The files of a snapshot by their paths below the index; each is read once; threads may share it."""

    def __init__(self, index: Path, listed: Mapping[str, FileEntry]) -> None:
        self._index = index
        self._listed = listed
        self._verified: set[str] = set()

    def __repr__(self) -> str:
        return f"Checksums({len(self._verified)} of {len(self._listed)} files read)"

    def verify(self, names: Iterable[str] | None = None, *, everything: bool = False) -> None:
        """Read files by their names, all by default; ChecksumError names one that is not as it was written."""
        for name in self._listed if names is None else names:
            entry = self._listed[name]
            read = everything or entry.size <= SMALL or not name.endswith(PAYLOAD)
            if read and name not in self._verified:
                _check(self._index / name, entry.sha256)
                self._verified.add(name)


def _check(path: Path, expected: str) -> None:
    try:
        found = sha256_file(path)
    except OSError as error:
        raise ChecksumError(f"{path}: cannot be read ({error.strerror}); restore it or build the index again") from None
    if found != expected:
        raise ChecksumError(
            f"{path}: damaged: SHA-256 is {found[:12]}…, expected {expected[:12]}…; restore it or build the index "
            "again (`helios index fsck` finds all that is damaged)"
        )
