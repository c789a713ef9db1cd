"""What a file may cost: the limits of `helios.config.CorpusBudget`, and the error where one is exceeded."""

import re
from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np

from helios.config import CorpusBudget

STANDARD = CorpusBudget()
FREE_BYTES = 64 << 20
"""What a file may expand to whatever its size."""
Value = TypeVar("Value")
_STRUCTURE = b'"[]{}'
_ELSE = bytes(set(range(256)) - set(_STRUCTURE))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_TEXT = re.compile(rb'"[^"]*"?')


class RecordShapeError(ValueError):
    """A record lacks something, has it in the wrong type, or has too much of it; the reader adds file and line."""


def check(budget: CorpusBudget, setting: str, found: int, what: str) -> None:
    """RecordShapeError where `found`, bytes for a setting in MB, is more than the budget allows."""
    limit: int = getattr(budget, setting)
    unit = ""
    if setting.endswith("_mb"):
        found, unit = -(-found // 2**20), " MB"
    if found > limit:
        raise RecordShapeError(
            f"{what}: {found:,}{unit}, more than the {limit:,}{unit} that advanced.corpus.{setting} allows"
        )


def check_cells(budget: CorpusBudget, size: int, found: int, what: str) -> None:
    """RecordShapeError where a table that is read piece by piece has too many cells: more than its file has bytes."""
    if found > size:
        check(budget, "cells", found, what)


def check_expansion(budget: CorpusBudget, size: int, found: int, what: str) -> None:
    """RecordShapeError where `found` bytes came of a file of `size`."""
    if found > FREE_BYTES and found > size * budget.expansion:
        raise RecordShapeError(
            f"{what}: more than {budget.expansion} times the size of the file, which is what advanced.corpus.expansion "
            "allows"
        )


def check_nesting(budget: CorpusBudget, deepest: int) -> None:
    """RecordShapeError where brackets are within too many others."""
    if deepest > budget.depth:
        raise RecordShapeError(f"nested too deeply: advanced.corpus.depth allows {budget.depth} brackets")


def limited(fields: Iterable[tuple[str, Value]], budget: CorpusBudget) -> Iterator[tuple[str, Value]]:
    """Named values as they come, up to the text that a record may have."""
    length = 0
    for name, value in fields:
        length += len(name) + (len(value) if isinstance(value, str) else 8)
        check(budget, "text_mb", length, "text of a record")
        yield name, value


class Nesting:
    """How deeply JSON is nested, found chunk by chunk without parsing it."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = False
        self._cut = b""

    def deepest(self, chunk: bytes) -> int:
        """The greatest depth within the next chunk."""
        chunk = self._cut + chunk
        odd = (len(chunk) - len(chunk.rstrip(b"\\"))) % 2
        chunk, self._cut = (chunk[:-1], b"\\") if odd else (chunk, b"")
        chunk = chunk.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _ELSE)
        if self._in_text:
            chunk = b'"' + chunk
        self._in_text = chunk.count(b'"') % 2 == 1
        chunk = _TEXT.sub(b"", chunk.replace(b'""', b""))
        depths = np.cumsum(np.frombuffer(chunk.translate(_STEPS), dtype=np.int8), dtype=np.int64)
        before, self._depth = self._depth, self._depth + (int(depths[-1]) if depths.size else 0)
        return before + (max(0, int(depths.max())) if depths.size else 0)
