"""`manifest.json`: what an index holds, of which files, made how. docs/index-format.md describes it.

The manifest is the index's only mutable file and is replaced in one step; every file that it names is
immutable. Reading it is all that opening needs.
"""

import hashlib
import json
import os
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from helios.errors import ChecksumError, ConfigError, IndexFormatError
from helios.index.durable import fsync_path, read_whole, write_atomically

FORMAT_NAME: Literal["helios-index"] = "helios-index"
FORMAT_VERSION: Literal[2] = 2
MANIFEST_FILE = "manifest.json"
PARTS_FOLDER = "parts"
LINKS_FOLDER = "links"
CODEBOOKS_FOLDER = "codebooks"
PIECE_FOLDERS = (PARTS_FOLDER, LINKS_FOLDER, CODEBOOKS_FOLDER)
"""Folders whose numbered sub-folders are immutable and pinned by readers."""
BUILD_FOLDER = ".build"
COPYING_FILE = ".copying"
"""Lies in a folder while a snapshot is copied into it (helios.index.backup)."""
TOMBSTONES_FOLDER = "tombstones"
MAX_DEPTH = 20
"""Objects and lists in each other; a manifest has six."""


class Record(BaseModel):
    """A frozen piece of the manifest; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FileEntry(Record):
    """A file by its path relative to the folder of its owner, its size in bytes and its SHA-256."""

    path: str
    size: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or not pure.parts or not path.isprintable():
            raise ValueError(f"the path {path!r} leaves the index folder, or has characters that no file of one has")
        return path


class Counts(Record):
    """How much a part or an index holds; deleted nodes are counted until they are compacted away."""

    tables: int = Field(default=0, ge=0)
    segments: int = Field(default=0, ge=0)
    passages: int = Field(default=0, ge=0)
    edges: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)
    deleted: int = Field(default=0, ge=0)

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in Counts.model_fields})


class ModelEntry(Record):
    """A model that wrote into the index: queries need the same one."""

    name: str
    sha256: str
    details: dict[str, Any] = {}


class Piece(Record):
    """An immutable folder of the index, `folder`, with the files in it and the keys of the stages that wrote them."""

    name: str = Field(pattern=r"^[0-9]{4,}$")
    folder: str
    stages: dict[str, str] = {}
    files: tuple[FileEntry, ...]

    @field_validator("folder")
    @classmethod
    def _is_a_piece(cls, folder: str) -> str:
        if not re.fullmatch(r"(parts|links|codebooks)/[0-9]{4,}(/[a-z]+)?", folder):
            raise ValueError(f"the folder {folder!r} is none of {', '.join(PIECE_FOLDERS)}")
        return folder

    @property
    def pinned(self) -> str:
        """The numbered folder that a reader holds: the piece's own, or the part's that it lies in (format 1)."""
        return "/".join(PurePosixPath(self.folder).parts[:2])


class Part(Piece):
    """A slice of the corpus in parts/NAME with its tokens and postings.

    `tombstones` names deleted nodes: segments count from 0, passages follow after the last segment. `codebook` is the
    piece that its token codes refer to.
    """

    counts: Counts
    corpus_sha256: str
    inputs_sha256: str
    tombstones: FileEntry
    codebook: str = ""

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the part's folders that hold files (corpus, tokens, lexical)."""
        return tuple(sorted({PurePosixPath(entry.path).parts[0] for entry in self.files}))

    @model_validator(mode="after")
    def _can_hold_its_nodes(self) -> "Part":
        """Readers make arrays of the size of the counts before they open any file."""
        nodes, held = self.counts.segments + self.counts.passages, sum(entry.size for entry in self.files)
        if nodes > held:
            raise ValueError(f"{nodes} nodes cannot be in files of {held} bytes")
        return self


class Links(Piece):
    """A layer of edges in links/NAME: between segments and passages of the parts that it names.

    Its node numbers count the segments of these parts in this order, and so the passages.
    """

    parts: tuple[str, ...] = Field(min_length=1)
    edges: int = Field(ge=0)


class Codebook(Piece):
    """Centroids, rotation and scales in codebooks/NAME; parts with the same one are scored alike."""


class Manifest(Record):
    """One consistent snapshot of an index."""

    format: Literal["helios-index"] = FORMAT_NAME
    version: Literal[2] = FORMAT_VERSION
    generation: int = Field(ge=1)
    created: str
    code_version: str
    counts: Counts
    corpus_sha256: str
    models: dict[str, ModelEntry]
    config: dict[str, Any]
    parts: tuple[Part, ...] = Field(min_length=1)
    links: tuple[Links, ...] = ()
    codebooks: tuple[Codebook, ...] = ()

    @model_validator(mode="after")
    def _each_once(self) -> "Manifest":
        folder, times = Counter(piece.folder for piece in self.pieces).most_common(1)[0]
        if times > 1:
            raise ValueError(f"lists {folder} {times} times")
        return self

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Every immutable folder of the snapshot."""
        return (*self.parts, *self.links, *self.codebooks)

    @property
    def listed(self) -> dict[str, FileEntry]:
        """Every file by its path below the index, tombstones too, the manifest not."""
        files = {f"{piece.folder}/{entry.path}": entry for piece in self.pieces for entry in piece.files}
        return files | {part.tombstones.path: part.tombstones for part in self.parts}

    def content_hash(self) -> str:
        """SHA-256 of everything but the date: equal for two builds of the same corpus, config and code."""
        return _digest(self.model_dump(mode="json", exclude={"created"}))


def read_manifest(directory: Path) -> Manifest:
    """The current snapshot's manifest; raises IndexFormatError if missing, foreign, newer, damaged."""
    path = directory / MANIFEST_FILE
    document = _read_document(directory, path)
    if document.get("format") != FORMAT_NAME:
        raise IndexFormatError(
            f"{path}: not the manifest of a HELIOS index (no format {FORMAT_NAME!r}); is it foreign?"
        )
    version = document.get("version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        code = document.get("code_version", "a newer version")
        raise IndexFormatError(
            f"{path}: format version {version}, written by HELIOS {code}; this code reads up to version "
            f"{FORMAT_VERSION}: upgrade HELIOS, or build the index again"
        )
    checksum = document.pop("checksum", None)
    if checksum != _digest(document):
        raise ChecksumError(
            f"{path}: damaged: its content differs from its own checksum; restore it or build the index again"
        )
    try:
        return Manifest.model_validate(_upgraded(document) if version == 1 else document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise IndexFormatError(
            f"{path}: damaged: {where}: {first['msg']}; restore it or build the index again"
        ) from None
    except (KeyError, TypeError, AttributeError) as error:
        raise IndexFormatError(f"{path}: damaged: lacks {error}; restore it or build the index again") from None


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Swap in a new snapshot: readers see the old one or the new one. The caller holds the WriteLock."""
    document = manifest.model_dump(mode="json")
    document["checksum"] = _digest(document)
    fsync_path(directory)  # the folders that it names
    write_atomically(directory / MANIFEST_FILE, json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n")


def creation_date() -> str:
    """Now in UTC to the second, or the date in SOURCE_DATE_EPOCH for byte-identical manifests."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.now(UTC).isoformat(timespec="seconds")
    try:
        return datetime.fromtimestamp(int(epoch), UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        raise ConfigError(f"SOURCE_DATE_EPOCH is {epoch!r}: expected seconds since 1970 as an integer") from None


def _read_document(directory: Path, path: Path) -> dict[str, Any]:
    try:
        document = json.loads(read_whole(path))
    except (FileNotFoundError, NotADirectoryError):
        raise IndexFormatError(_absence(directory)) from None
    except OSError as error:
        raise IndexFormatError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise IndexFormatError(f"{path}: damaged: not JSON ({error}); restore it or build the index again") from None
    except RecursionError:
        raise IndexFormatError(_too_deep(path)) from None
    if not isinstance(document, dict):
        raise IndexFormatError(f"{path}: not the manifest of a HELIOS index: expected an object")
    if _is_deeper(document, MAX_DEPTH):
        raise IndexFormatError(_too_deep(path))
    return document


def _too_deep(path: Path) -> str:
    return f"{path}: damaged: more than {MAX_DEPTH} objects in each other; restore it or build the index again"


def _is_deeper(value: Any, depth: int) -> bool:
    """Whether more than so many objects and lists are in each other."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth < 0 or any(_is_deeper(one, depth - 1) for one in inner if isinstance(one, (dict, list)))


def _absence(directory: Path) -> str:
    if not directory.exists():
        return f"{directory}: no such folder; `helios index build CORPUS --out {directory}` makes an index"
    if (directory / COPYING_FILE).exists():
        return f"{directory}: the copy of an index is not finished; run its `helios index backup` or `restore` again"
    if (directory / BUILD_FOLDER).is_dir():
        return f"{directory}: the index is not finished; run its `helios index build` again to resume"
    return f"{directory}: not a HELIOS index: {MANIFEST_FILE} is missing"


def _upgraded(document: dict[str, Any]) -> dict[str, Any]:
    """A manifest of format 1, where each part held its graph and its codebook, as one of format 2."""
    parts, links, codebooks = [], [], []
    for part in document["parts"]:
        name, folder = part["name"], f"{PARTS_FOLDER}/{part['name']}"
        files = {component: _files_of(part, component) for component in ("graph", "tokens")}
        own = [entry for entry in part["files"] if not entry["path"].startswith("graph/")]
        key = part["stages"].get("graph", "")
        if files["graph"]:
            links.append({
                "name": name, "folder": f"{folder}/graph", "parts": [name], "edges": part["counts"]["edges"],
                "stages": {"graph": key}, "files": files["graph"],
            })  # fmt: skip
        if files["tokens"]:
            codebooks.append({"name": name, "folder": f"{folder}/tokens", "files": files["tokens"]})
        stages = {component: key for component, key in part["stages"].items() if component != "graph"}
        changed = {"folder": folder, "files": own, "stages": stages, "codebook": name if files["tokens"] else ""}
        parts.append(part | changed)
    return document | {"version": FORMAT_VERSION, "parts": parts, "links": links, "codebooks": codebooks}


def _files_of(part: dict[str, Any], component: str) -> list[dict[str, Any]]:
    found = [entry for entry in part["files"] if entry["path"].startswith(f"{component}/")]
    return [entry | {"path": entry["path"].removeprefix(f"{component}/")} for entry in found]


def _digest(document: dict[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
