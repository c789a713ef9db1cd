"""The index of a folder that is just asked: kept in the user's cache, brought up to date before each question."""

import hashlib
import re
from pathlib import Path

from helios import places
from helios.config import Config
from helios.corpus.mapping import FieldMap
from helios.errors import CorpusError
from indexing.cli import available_cores
from indexing.pipeline import build_index
from indexing.progress import default_progress


def index_of_folder(folder: Path, config: Config | None = None, mapping: FieldMap | None = None) -> Path:
    """An index of what the folder holds now, built or refreshed; its progress goes to stderr.

    Files that cannot be read are left out and listed in the index's `files.jsonl`. `mapping` is that of `build_index`.
    CorpusError for no such folder, and
    where nothing in it can be read.
    """
    if not folder.exists():
        raise CorpusError(f"{folder}: no such file or folder; give a folder to ask, or --index")
    index = cache_folder(folder)
    index.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    settings, progress = config or Config(), default_progress()
    build_index(
        folder, index, config=settings, workers=available_cores(), on_error="auto", progress=progress, mapping=mapping
    )
    return index


def cache_folder(folder: Path) -> Path:
    """Where a folder's index is kept: below $XDG_CACHE_HOME, or ~/.cache, by the folder's name and place."""
    place = folder.resolve()
    name = re.sub(r"[^\w.-]+", "-", place.name) or "root"
    return places.cache_folder() / "folders" / f"{name}-{hashlib.sha256(str(place).encode()).hexdigest()[:12]}"
