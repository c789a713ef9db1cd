"""What a folder holds now against what an index has of it: file by file, by the hash of their content.

A part says which files its records came from, in `inputs/files.json`: the SHA-256 of each and how many records it gave.
Of the part of a build, the build's own list of its inputs says it, where that is still there.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from helios.corpus import CorpusStore
from helios.errors import CorpusError
from helios.index.durable import read_record, sha256_file
from helios.index.manifest import BUILD_FOLDER
from helios.index.reader import Corpus
from helios.index.snapshot import PartView, Snapshot
from indexing.inputs import InputFile, input_files
from indexing.living.change import FilePlan

INPUTS = "inputs"
FILES = "files.json"


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file as it was read; `records` is None where nobody counted them."""

    sha256: str
    records: int | None = None


Known = Mapping[str, KnownFile]


def plan_sync(index: Path, snapshot: Snapshot, corpus: Corpus, folder: Path, *, follow_links: bool) -> "Sync":
    """Which files of a folder are new, changed or gone; CorpusError if it is no folder."""
    if not folder.is_dir():
        raise CorpusError(f"{folder}: no such folder; give the folder that the index is to hold")
    now = {file.name: (file, sha256_file(file.path)) for file in _files_in(folder, follow_links=follow_links)}
    known, alive = known_files(index, snapshot.parts), set(_top_level(corpus, set(now)))
    new, changed, same = [], [], 0
    for name, (_, sha256) in now.items():
        before = known.get(name)
        if before is None and name not in alive:
            new.append(name)
        elif before is None or before.sha256 != sha256:
            changed.append(name)
        elif name in alive or before.records == 0:
            same += 1
        else:  # its records were deleted
            new.append(name)
    gone = set(_top_level(corpus, set(known))) - set(now)
    plan = FilePlan(tuple(sorted(new)), tuple(sorted(changed)), tuple(sorted(gone)), same)
    return Sync(
        plan, {name: now[name][0].path for name in (*new, *changed)}, {name: own[1] for name, own in now.items()}
    )


@dataclass(frozen=True, slots=True)
class Sync:
    """A plan, where the files to read are, and the SHA-256 of every file of the folder."""

    plan: FilePlan
    paths: Mapping[str, Path]
    sha256: Mapping[str, str]

    def staged(self, folder: Path) -> Path:
        """A folder of links to the files that are to be read, by the names that they have."""
        for name, path in self.paths.items():
            link = folder / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path.resolve())
        return folder

    def read(self, store: CorpusStore) -> dict[str, KnownFile]:
        """The files that were read into a store, with how many records each gave."""
        counts = dict.fromkeys(self.paths, 0)
        for records in (store.tables, store.passages):
            for source in records.column("source"):
                counts[_file_of(source, counts)] += 1
        return {name: KnownFile(self.sha256[name], count) for name, count in counts.items()}


def known_files(index: Path, parts: Iterable[PartView]) -> dict[str, KnownFile]:
    """The files that records of the parts came from, as far as anybody noted that; later parts know better."""
    found: dict[str, KnownFile] = {}
    for view in parts:
        if INPUTS in view.part.components:
            listed = read_record(view.directory / INPUTS / FILES)
            found |= {name: KnownFile(one["sha256"], one["records"]) for name, one in listed.items()}
        elif view.part.inputs_sha256:
            found |= _inputs_of_build(index, view.part.inputs_sha256)
    return found


def write_files(folder: Path, known: Known) -> None:
    """Say beside the corpus of a part, in its folder, which files its records came from."""
    (folder / INPUTS).mkdir()
    listed = {name: {"sha256": one.sha256, "records": one.records} for name, one in sorted(known.items())}
    (folder / INPUTS / FILES).write_text(json.dumps(listed, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _files_in(folder: Path, *, follow_links: bool) -> list[InputFile]:
    """The files that a build would read; none where nothing is a corpus."""
    try:
        return input_files(folder, follow_links=follow_links)
    except CorpusError:
        return []


def _inputs_of_build(index: Path, wanted: str) -> dict[str, KnownFile]:
    """The build's list of its inputs, if it is that of the part."""
    path = index / BUILD_FOLDER / "inputs.json"
    if not path.is_file():
        return {}
    entries = {name: str(entry[2]) for name, entry in sorted(read_record(path).items())}
    digest = hashlib.sha256(b"".join(json.dumps(pair).encode() for pair in entries.items()))
    return {name: KnownFile(sha256) for name, sha256 in entries.items()} if digest.hexdigest() == wanted else {}


def _top_level(corpus: Corpus, files: set[str]) -> Iterable[str]:
    """Which of some files the records of a corpus came from."""
    sources = {*corpus.tables.column("source"), *corpus.passages.column("source")}
    return {name for source in sources if (name := _file_of(source, files)) in files}


def _file_of(source: str, files: Iterable[str]) -> str:
    """The file of a folder that a source is, or lies within: archive.zip of archive.zip/notes/a.md."""
    known = files if isinstance(files, (set, dict)) else set(files)
    name = source
    while name and name not in known:
        name = name.rpartition("/")[0]
    return name or source
