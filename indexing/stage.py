"""A stage of the pipeline: what it depends on, how it runs, and the record that makes its result reusable.

A stage's key is a hash of everything that its output depends on: its code version, its settings, its
fingerprint (input files, models) and the keys of the stages that it reads. Same key, same bytes. The
folder .build/NAME of an index under construction holds

    stage.json    the record of a finished run, written last
    out/          the output
    running.json  the key of the run in progress
    scratch/      finished chunks of that run; thrown away when the key changes
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from helios import __version__
from helios.config import Config
from helios.corpus.mapping import FieldMap
from helios.corpus.rejects import OnError
from helios.index.durable import files_below, remove, remove_tree, replace_durably, sha256_file, write_atomically
from helios.index.manifest import FileEntry, ModelEntry
from indexing.progress import Meter, SilentMeter

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What is built from what: the inputs that every stage may read."""

    corpus: Path
    config: Config
    workers: int = 1
    on_error: OnError = "stop"
    inputs_sha256: str = ""
    """SHA-256 of the corpus files (indexing.inputs)."""
    metadata: Path | None = None
    """A sidecar file with fields of records (helios.corpus.sidecar)."""
    follow_links: bool = False
    """Whether files are read that links of the corpus's folder lead to outside of it."""
    mapping: FieldMap | None = None
    """Which fields of records make a passage, if that was said."""


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a stage reports besides its files: counts for the manifest, models that queries need too."""

    counts: Mapping[str, int] = field(default_factory=dict)
    models: Mapping[str, ModelEntry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StageContext:
    """Everything a running stage gets: where to read, where to write, how to report."""

    request: BuildRequest
    inputs: Mapping[str, Path]
    """Output folders of the stages named in `Stage.inputs`."""
    out: Path
    """An empty folder for the output."""
    scratch: Path
    """A folder that survives a crash as long as the stage's key stays the same."""
    keep: Path
    """The stage's own folder, for files that are kept but are no output (rejects, the list of files)."""
    kept: Mapping[str, Path] = field(default_factory=dict)
    """Of the stages named in `Stage.inputs` the folders where they keep such files."""
    note: Callable[..., None] = lambda event, **fields: None
    """Appends an event to the build's journal."""
    meter: Meter = field(default_factory=SilentMeter)

    @property
    def config(self) -> Config:
        """The resolved settings."""
        return self.request.config

    @property
    def workers(self) -> int:
        """Processes or threads that the stage may use."""
        return self.request.workers

    def chunks(self, name: str, total: int) -> "Chunks":
        """`total` numbered pieces of work whose results outlive a crash."""
        return Chunks(self.scratch / name, total, self.note)


class Stage(Protocol):
    """One step of the pipeline; a frozen value without state."""

    @property
    def name(self) -> str:
        """Its folder below .build, and what other stages call it."""
        ...

    @property
    def version(self) -> int:
        """Raised when the code changes what the stage writes."""
        ...

    @property
    def component(self) -> str | None:
        """Folder of the part that the output becomes, None for an intermediate result."""
        ...

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the stages whose output it reads."""
        ...

    @property
    def settings(self) -> tuple[str, ...]:
        """Dotted config keys that the output depends on."""
        ...

    def fingerprint(self, request: BuildRequest) -> dict[str, Any]:
        """What else the output depends on, as JSON: hashes of files and models."""
        ...

    def run(self, context: StageContext) -> StageResult:
        """Fill `context.out`; the bytes may depend only on what the key covers."""
        ...


class StageRecord(BaseModel):
    """`stage.json`: a finished stage, its output's checksums and what it cost."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    key: str
    depends_on: dict[str, Any]
    files: tuple[FileEntry, ...]
    counts: dict[str, int]
    models: dict[str, ModelEntry]
    started: str
    seconds: float
    """Wall-clock of the last run; earlier, interrupted ones are in the journal."""
    peak_rss: int
    """Bytes, worker processes included."""
    workers: int

    @classmethod
    def read(cls, directory: Path) -> "StageRecord | None":
        """The record in a stage's folder, None where the stage never finished."""
        try:
            return cls.model_validate_json((directory / "stage.json").read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def write(self, directory: Path) -> None:
        """Mark the stage as finished; the output must be on the disk before."""
        write_atomically(directory / "stage.json", self.model_dump_json(indent=1).encode() + b"\n")

    def matches(self, directory: Path) -> bool:
        """Whether a folder holds every file of the output with its size."""
        try:
            return all((directory / entry.path).stat().st_size == entry.size for entry in self.files)
        except (FileNotFoundError, NotADirectoryError):
            return False


class Chunks:
    """Numbered pieces of a stage's work; a saved piece is complete, whatever happens to the process."""

    def __init__(self, directory: Path, total: int, note: Callable[..., None] = lambda event, **fields: None) -> None:
        self.directory = directory
        self.total = total
        self._note = note

    def pending(self) -> list[int]:
        """Numbers of the pieces that are not saved yet, ascending."""
        return [number for number in range(self.total) if not self.path(number).exists()]

    def path(self, number: int) -> Path:
        """Where a piece is saved; a stage with its own file format replaces this path atomically."""
        return self.directory / f"{number:08d}.npz"

    def save(self, number: int, arrays: Arrays) -> None:
        """Save a piece in one step."""
        path = self.path(number)
        self.directory.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        replace_durably(temporary, path)
        self._note("chunk", chunk=number)

    def load(self, number: int, *names: str) -> dict[str, np.ndarray]:
        """A saved piece, or some of its arrays."""
        with np.load(self.path(number), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in names or arrays.files}


class Journal:
    """`journal.jsonl`: one line for every start, chunk, end and reuse, so that a build can be audited."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, event: str, **fields: Any) -> None:
        """Append one event with the time."""
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **fields}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def events(self) -> list[dict[str, Any]]:
        """All events in order; a line cut off by a crash is left out."""
        if not self._path.exists():
            return []
        events = []
        for line in self._path.read_text(encoding="utf-8").splitlines():
            try:
                events.append(json.loads(line))
            except ValueError:
                continue
        return events


def stage_dependencies(stage: Stage, request: BuildRequest, keys: Mapping[str, str]) -> dict[str, Any]:
    """Everything the stage's output depends on, as JSON."""
    return {
        "stage": stage.name,
        "version": stage.version,
        "code_version": __version__,
        "settings": request.config.select(stage.settings),
        "fingerprint": stage.fingerprint(request),
        "inputs": {name: keys[name] for name in stage.inputs},
    }


def stage_key(dependencies: Mapping[str, Any]) -> str:
    """Hex SHA-256 of a stage's dependencies."""
    return hashlib.sha256(json.dumps(dependencies, sort_keys=True).encode()).hexdigest()


def prepare_folder(directory: Path, key: str) -> bool:
    """Make a stage's folder ready for a run; returns whether chunks of an earlier run can be used."""
    directory.mkdir(parents=True, exist_ok=True)
    remove(directory / "stage.json")
    remove_tree(directory / "out")
    running = directory / "running.json"
    resumed = running.exists() and running.read_text(encoding="utf-8") == key
    if not resumed:
        remove_tree(directory / "scratch")
        write_atomically(running, key.encode())
    (directory / "out").mkdir()
    (directory / "scratch").mkdir(exist_ok=True)
    return resumed


def file_entries(directory: Path) -> tuple[FileEntry, ...]:
    """Path, size and SHA-256 of every file below a folder, sorted by path."""
    return tuple(
        FileEntry(path=path.as_posix(), size=(directory / path).stat().st_size, sha256=sha256_file(directory / path))
        for path in files_below(directory)
    )
