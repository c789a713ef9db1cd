"""Arrays on disk."""

from pathlib import Path
from typing import Any

import numpy as np

HEADER = 128
"""Bytes of an array file without a value."""


def map_array(path: Path) -> Any:
    """A memory map of an array file, as a plain array: `np.memmap` makes every slice of it many times dearer.

    An empty array cannot be mapped and is read.
    """
    return np.asarray(np.load(path, mmap_mode="r" if path.stat().st_size > HEADER else None))
