"""The words of passages that linking reads, kept beside an index for its next change: reading them takes minutes."""

from pathlib import Path

from helios.index.manifest import BUILD_FOLDER, Part

NAME = "words.npz"
"""What the link stage of a build calls them in its own folder."""


def words_folder(index: Path) -> Path:
    """Where the words of an index's passages are kept for its next change; it may be removed at any time."""
    return index / BUILD_FOLDER / "words"


def words_path(folder: Path, part: Part) -> Path:
    """The file of a part's words."""
    return folder / f"{part.name}-{part.corpus_sha256[:16]}.npz"


def keep_words(stage: Path, folder: Path, part: Part) -> None:
    """Keep the words that the link stage of a build left in its folder, if it did, as those of the part it made."""
    if (stage / NAME).is_file():
        path = words_path(folder, part)
        make_room(path)
        (stage / NAME).replace(path)


def make_room(path: Path) -> None:
    """Make the folder of a part's words, and remove those of an earlier part of its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob(f"{path.name.partition('-')[0]}-*"):
        old.unlink(missing_ok=True)
