"""Where files of the user are kept that can be made again."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Below $XDG_CACHE_HOME, or ~/.cache; it need not be there yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "helios"
