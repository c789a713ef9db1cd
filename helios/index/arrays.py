"""Arrays on disk: mapped only if they are of the kind that is expected, and the checks that kernels rely on.

Kernels follow offsets and numbers without looking, so whoever maps an array that they follow checks it once: it is
read through at the speed of memory.
"""

from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from helios.errors import IndexFormatError

HEADER = 128
"""Bytes of an array file without a value."""
BLOCK = 1 << 20
"""Values that are compared at once."""


def map_array(path: Path, kind: DTypeLike, *shape: int | None) -> Any:
    """A memory map of an array file, as a plain array: `np.memmap` makes every slice of it many times dearer.

    `shape` is what the file must hold, None for any size of a dimension; one dimension of any size by default. An empty
    array cannot be mapped and is read. IndexFormatError names the file and what is wrong.
    """
    expected = shape or (None,)
    try:
        mode = "r" if path.stat().st_size > HEADER else None
        array = np.asarray(np.load(path, mmap_mode=mode, allow_pickle=False))  # type: ignore[arg-type]
    except FileNotFoundError:
        raise IndexFormatError(f"{path}: missing; restore it or build the index again") from None
    except (OSError, ValueError, EOFError, SyntaxError, TokenError, TypeError, OverflowError, MemoryError) as error:
        raise IndexFormatError(f"{path}: damaged: not a readable array ({error}); build the index again") from error
    fits = len(expected) == array.ndim and all(
        size in (None, held) for size, held in zip(expected, array.shape, strict=True)
    )
    if array.dtype != np.dtype(kind) or not fits or not array.flags.c_contiguous:
        wanted = ", ".join("any" if size is None else str(size) for size in expected)
        raise IndexFormatError(
            f"{path}: damaged: holds {array.dtype}{list(array.shape)}, expected {np.dtype(kind)}[{wanted}]; "
            "build the index again"
        )
    return array


def check_offsets(path: Path, offsets: NDArray[Any], end: int) -> None:
    """IndexFormatError unless the offsets of this file rise from 0 to `end`."""
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != end or not _rises(offsets):
        raise IndexFormatError(f"{path}: damaged: offsets must rise from 0 to {end}; build the index again")


def check_below(path: Path, numbers: NDArray[Any], limit: int, *, least: int = 0) -> None:
    """IndexFormatError unless all numbers of this file are from `least` to below `limit`."""
    if len(numbers) and not (least <= numbers.min() and numbers.max() < limit):
        raise IndexFormatError(
            f"{path}: damaged: numbers must be from {least} to {limit - 1}, found {numbers.min()} to {numbers.max()}; "
            "build the index again"
        )


def check_runs(path: Path, offsets: NDArray[Any], numbers: NDArray[Any]) -> None:
    """IndexFormatError unless each of these numbers (E) is that of the run, between two offsets, that it stands in."""
    for start in range(0, len(numbers), BLOCK):
        own = numbers[start : start + BLOCK]
        places = np.arange(start, start + len(own))
        if not (np.all(offsets[own] <= places) and np.all(places < offsets[own + 1])):
            raise IndexFormatError(f"{path}: damaged: does not agree with its offsets; build the index again")


def check_finite(path: Path, values: NDArray[Any]) -> None:
    """IndexFormatError unless all values of this file are numbers."""
    if not np.isfinite(values).all():
        raise IndexFormatError(f"{path}: damaged: a value that is not a finite number; build the index again")


def _rises(offsets: NDArray[Any]) -> bool:
    """Whether no offset is smaller than the one before it."""
    before, after = offsets[:-1], offsets[1:]
    return all(
        bool(np.all(before[start : start + BLOCK] <= after[start : start + BLOCK]))
        for start in range(0, len(before), BLOCK)
    )
