"""The words of passages that linking reads, kept beside an index for its next change: reading them takes minutes.

They are kept by what the corpus of a part holds, so that another part never takes them for its own.
"""

from collections.abc import Sequence
from pathlib import Path

from helios.index.manifest import BUILD_FOLDER, Part

NAME = "words.npz"
"""What the link stage of a build calls them in its own folder."""


def words_folder(index: Path) -> Path:
    """Where the words of an index's passages are kept for its next change; it may be removed at any time."""
    return index / BUILD_FOLDER / "words"


def words_path(folder: Path, part: Part) -> Path:
    """The file of a part's words."""
    return folder / f"{part.corpus_sha256[:24]}.npz"


def keep_words(stage: Path, folder: Path, parts: Sequence[Part]) -> None:
    """Keep the words that the link stage of a build left in its folder, if it did, as those of the last part."""
    if (stage / NAME).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        (stage / NAME).replace(words_path(folder, parts[-1]))
    forget_words(folder, parts)


def forget_words(folder: Path, parts: Sequence[Part]) -> None:
    """Remove the words of parts that the index has no more."""
    known = {words_path(folder, part) for part in parts}
    for path in folder.glob("*.npz"):
        if path not in known:
            path.unlink(missing_ok=True)
