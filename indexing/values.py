"""Index Python values: tables and passages from anywhere, without files of a corpus.

    tables = [{"id": "rivers", "title": "Rivers", "header": ["River", "km"], "rows": [["Aare", 288]]}]
    passages = (Passage(name, title, text) for name, title, text in cursor)
    build_from(tables, passages, "index")
    with Engine.open("index") as engine:
        engine.search("How long is the river that flows through Bern?")

The values are stored first, so that the build can be interrupted and go on like any other.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from helios.config import Config
from helios.corpus import CorpusStore, CorpusWriter
from helios.corpus.record import RecordShapeError, parse_record
from helios.errors import CorpusError
from helios.types import Passage, Table
from indexing.commit import link_file
from indexing.pipeline import BuildReport, build_index
from indexing.progress import Progress
from indexing.stage import BuildRequest, StageContext, StageResult, file_entries
from indexing.stages import default_stages

Record = TypeVar("Record", Table, Passage)


def build_from(
    tables: Iterable[Table | Mapping[str, Any]],
    passages: Iterable[Passage | Mapping[str, Any]],
    out: Path | str,
    *,
    config: Config | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> BuildReport:
    """Index tables and passages into the folder `out`, as `build_index` does with a corpus.

    Values are `Table` and `Passage`, or mappings in the schemas of JSON lines (docs/corpus-formats.md), whose cells may
    be of any type that has a text. Both are read once, and may be generators of more than fits into memory. Called with
    the same values again it goes on where an interrupted build stopped, and does nothing where that was complete.

    Raises CorpusError for a value that is no table or no passage, for an id that comes twice, and where there is no
    value at all; else what `build_index` raises.
    """
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-values-") as folder:
        store, corpus = Path(folder) / "store", Path(folder) / "values.jsonl"
        with CorpusWriter(store) as writer:
            for table in checked(tables, Table):
                writer.add(table)
            for passage in checked(passages, Passage):
                writer.add(passage)
        stage = StoredStage(store, _sha256(store))
        corpus.write_text(json.dumps({"id": stage.sha256, "text": "StoredStage has the records"}), encoding="utf-8")
        stages = tuple(stage if usual.name == stage.name else usual for usual in default_stages())
        return build_index(
            corpus, out, config=config, workers=workers, progress=progress, stages=stages, check_disk=False
        )


@dataclass(frozen=True)
class StoredStage:
    """Stands in for ingest: the records are in a corpus store already."""

    store: Path
    sha256: str
    """Over the files of the store."""
    name: str = "ingest"
    version: int = 1
    component: str | None = "corpus"
    inputs: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def fingerprint(self, request: BuildRequest) -> dict[str, Any]:
        """The content of the store."""
        return {"store": self.sha256}

    def run(self, context: StageContext) -> StageResult:
        """Link the store's files."""
        for path in self.store.iterdir():
            link_file(path, context.out / path.name)
        store = CorpusStore.open(context.out)
        records = len(store.tables) + len(store.passages)
        if not records:
            raise CorpusError("there is no table and no passage to index")
        context.meter.start(records, "records", done=records)
        counts = {"tables": len(store.tables), "segments": store.segment_count, "passages": len(store.passages)}
        return StageResult(counts=counts)


def checked(values: Iterable[Any], kind: type[Record]) -> Iterator[Record]:
    """The values as records of one kind; CorpusError says which one is none."""
    noun = "tables" if kind is Table else "passages"
    for number, value in enumerate(values):
        try:
            record = value if isinstance(value, Table | Passage) else parse_record(value, check_text=False)
        except RecordShapeError as error:
            raise CorpusError(f"{noun}[{number}]: {error}") from None
        if not isinstance(record, kind):
            raise CorpusError(f"{noun}[{number}]: is a {type(record).__name__}, expected a {kind.__name__}")
        yield record


def _sha256(store: Path) -> str:
    entries = [entry.model_dump(mode="json") for entry in file_entries(store)]
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()
