"""What is added: files, folders, standard input and Python values become a corpus store in the workspace."""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from helios.config import Config
from helios.corpus import CorpusStore, CorpusWriter
from helios.corpus.mapping import FieldMap
from helios.corpus.rejects import OnError
from helios.errors import CorpusError
from helios.types import Passage, Table
from indexing.living.change import Reject, named
from indexing.progress import Progress
from indexing.stage import BuildRequest, StageContext
from indexing.stages.ingest import REJECTS_FILE, IngestStage
from indexing.values import checked

STANDARD_INPUT = "stdin.jsonl"
Records = Iterable[Table | Passage | Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read, as `helios index build` reads them."""

    on_error: OnError = "auto"
    metadata: Path | None = None
    follow_links: bool = False
    mapping: FieldMap | None = None


def store_values(tables: Records, passages: Records, folder: Path) -> CorpusStore:
    """Store Python values; CorpusError for one that is no table or no passage, and for an id that comes twice."""
    with CorpusWriter(folder) as writer:
        for table in checked(tables, Table):
            writer.add(table)
        for passage in checked(passages, Passage):
            writer.add(passage)
        if not len(writer):
            raise CorpusError("there is no table and no passage to add")
    return CorpusStore.open(folder)


def store_files(
    corpus: Path,
    folder: Path,
    work: Path,
    *,
    config: Config,
    reading: Reading,
    progress: Progress,
    may_be_empty: bool = False,
) -> tuple[CorpusStore, tuple[Reject, ...]]:
    """Store the records of a file or a folder, as a build does; and what was rejected.

    CorpusError where that is all, unless the store may be empty.
    """
    request = BuildRequest(
        corpus, config, on_error=reading.on_error, metadata=reading.metadata, follow_links=reading.follow_links,
        mapping=reading.mapping,
    )  # fmt: skip
    folder.mkdir(parents=True)
    keep = work / "ingest"
    keep.mkdir(exist_ok=True)
    with progress.stage("ingest") as meter:
        IngestStage(may_be_empty=may_be_empty).run(StageContext(request, {}, folder, work, keep, meter=meter))
    lines = (keep / REJECTS_FILE).read_text(encoding="utf-8").splitlines()
    found = (json.loads(line) for line in lines)
    rejects = tuple(Reject(_name(corpus, one["file"]), one["line"], one["id"], one["reason"]) for one in found)
    return CorpusStore.open(folder), rejects


def store_nothing(folder: Path) -> CorpusStore:
    """A store without a record."""
    with CorpusWriter(folder):
        pass
    return CorpusStore.open(folder)


def spooled(stream: BinaryIO, work: Path) -> Path:
    """Standard input, which is JSON lines, as a file."""
    path = work / STANDARD_INPUT
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file)
    return path


def refuse_known(known: tuple[list[str], list[str]]) -> None:
    """CorpusError if some tables or passages are there already, by their ids."""
    for noun, names in zip(("table", "passage"), known, strict=True):
        if names:
            several = len(names) > 1
            raise CorpusError(
                f"the index has {noun}{'s' if several else ''} {named(names)} already; `update` replaces "
                f"{'records' if several else 'a record'} by id, and nothing was added"
            )


def without_known(
    store: CorpusStore, folder: Path, known: tuple[list[str], list[str]]
) -> tuple[CorpusStore, tuple[Reject, ...]]:
    """The store in another folder without the tables and passages of these ids, which are rejects."""
    rejects: list[Reject] = []
    with CorpusWriter(folder) as writer:
        for records, names in zip((store.tables, store.passages), map(set, known), strict=True):
            for record in records:
                record_id = record.table_id if isinstance(record, Table) else record.passage_id
                if record_id not in names:
                    writer.add(record)
                    continue
                noun = "table" if isinstance(record, Table) else "passage"
                rejects.append(Reject(record.source, None, record_id, f"the index has a {noun} of this id already"))
    return CorpusStore.open(folder), tuple(rejects)


def _name(corpus: Path, file: str) -> str:
    """A file by its name within a corpus."""
    path = Path(file)
    return path.relative_to(corpus).as_posix() if corpus.is_dir() and path.is_relative_to(corpus) else path.name
