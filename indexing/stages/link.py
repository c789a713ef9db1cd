"""Link: find the passages that each cell of each table speaks of, table chunk by table chunk."""

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from helios.corpus import CorpusStore
from helios.index.durable import files_below, sha256_file
from helios.index.manifest import ModelEntry
from indexing.stage import BuildRequest, StageContext, StageResult
from indexing.workers import exit_with_parent

if TYPE_CHECKING:
    from helios.models.linker.linker import TableLinker

LINK_COLUMNS = {
    "segments": np.int64,
    "passages": np.int64,
    "columns": np.int16,
    "starts": np.int32,
    "ends": np.int32,
    "scores": np.float32,
}
"""The output: one .npy per column, one entry per link, tables in order."""
UNKNOWN = "unknown"


@dataclass(frozen=True)
class LinkStage:
    """Corpus store → links with their provenance, from `linking.source`."""

    name: str = "link"
    version: int = 1
    component: str | None = None
    inputs: tuple[str, ...] = ("ingest",)
    settings: tuple[str, ...] = ("linking",)

    def fingerprint(self, request: BuildRequest) -> dict[str, Any]:
        """The linker's weights, where they are used."""
        if request.config.linking.source != "linker":
            return {}
        return {"weights": weights_sha256(weights_folder(request))}

    def run(self, context: StageContext) -> StageResult:
        """Link every table; chunks of tables that an earlier run finished are kept."""
        store = CorpusStore.open(context.inputs["ingest"])
        size = context.config.pipeline.link_chunk
        total = len(store.tables)
        chunks = context.chunks(f"tables-{size}", -(-total // size))
        pending = chunks.pending()
        context.meter.start(total, "tables", done=min(total, (chunks.total - len(pending)) * size))
        ranges = {number: (number * size, min((number + 1) * size, total)) for number in pending}
        for number, links in _link_ranges(context, store, ranges):
            chunks.save(number, links)
            context.meter.advance(ranges[number][1] - ranges[number][0])
        parts = [chunks.load(number) for number in range(chunks.total)]
        unknown = sum(int(part[UNKNOWN]) for part in parts if UNKNOWN in part)
        counts = {"links": _write(context.out, parts), "unknown_targets": unknown}
        return StageResult(counts=counts, models=_models(context.request))


def weights_folder(request: BuildRequest) -> Path:
    """Where the linker's weights are: the configured folder, or the one inside the package."""
    from helios.models.linker.linker import WEIGHTS

    return Path(request.config.linking.model or WEIGHTS)


def weights_sha256(folder: Path) -> str:
    """One hash over the names and contents of a folder's files, without Python's."""
    digest = hashlib.sha256()
    for path in files_below(folder):
        if path.suffix not in (".py", ".pyc"):
            digest.update(f"{path.as_posix()} {sha256_file(folder / path)}\n".encode())
    return digest.hexdigest()


def _models(request: BuildRequest) -> dict[str, ModelEntry]:
    if request.config.linking.source != "linker":
        return {}
    name = request.config.linking.model or "built in"
    return {"linker": ModelEntry(name=name, sha256=weights_sha256(weights_folder(request)))}


def _link_ranges(
    context: StageContext, store: CorpusStore, ranges: dict[int, tuple[int, int]]
) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """(chunk number, links) of every range of tables, as they are done."""
    source = context.config.linking.source
    if source == "linker":
        yield from _predicted(context, store, ranges)
    elif source == "hyperlinks":
        for number, (start, stop) in ranges.items():
            yield number, hyperlinks_of(store, start, stop)
    else:
        for number in ranges:
            yield number, link_arrays([])


def hyperlinks_of(store: CorpusStore, start: int, stop: int) -> dict[str, np.ndarray]:
    """The corpus's own links of tables [start, stop) as columns; `unknown` counts dead ones."""
    rows: list[tuple[int, int, int, int, int, float]] = []
    unknown = 0
    for table_number in range(start, stop):
        table = store.tables[table_number]
        first = int(store.segment_offsets[table_number])
        for link in table.hyperlinks:
            passage = store.passages.find(link.passage_id)
            if passage is None:
                unknown += 1
                continue
            end = len(table.rows[link.row][link.column])
            rows.append((first + link.row, passage, link.column, 0, end, 1.0))
    return {**link_arrays(rows), UNKNOWN: np.array(unknown)}


def link_arrays(rows: list[tuple[int, int, int, int, int, float]]) -> dict[str, np.ndarray]:
    """(segment, passage, column, start, end, score) rows as columns of the right types."""
    columns = zip(*rows, strict=True) if rows else [()] * len(LINK_COLUMNS)
    return {
        name: np.array(column, dtype=kind)
        for (name, kind), column in zip(LINK_COLUMNS.items(), columns, strict=True)
    }


def _predicted(
    context: StageContext, store: CorpusStore, ranges: dict[int, tuple[int, int]]
) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """Links by the trained linker, in `workers` processes."""
    from helios.models.linker.linker import Linker

    settings = context.config.linking
    prepared = context.scratch / "candidates"
    linker = Linker.load(settings.model).prepare(store, prepared)
    workers = min(context.workers, len(ranges))
    if workers <= 1:
        for number, (start, stop) in ranges.items():
            yield number, predicted_links(linker, store, start, stop, threshold=settings.threshold)
        return
    places = (settings.model, prepared, store.directory, settings.threshold, os.getpid())
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_open_worker, initargs=places
    ) as pool:
        futures = {
            pool.submit(_link_in_worker, start, stop): number for number, (start, stop) in ranges.items()
        }
        for future in as_completed(futures):
            yield futures[future], future.result()


def predicted_links(
    linker: "TableLinker", store: CorpusStore, start: int, stop: int, *, threshold: float | None
) -> dict[str, np.ndarray]:
    """Links of tables [start, stop) as columns; a threshold of None is the weights' own."""
    parts = []
    for table_number in range(start, stop):
        links = linker.link(store.tables[table_number], threshold=threshold)
        segments = links.rows.astype(np.int64) + int(store.segment_offsets[table_number])
        parts.append((segments, links.passages, links.columns, links.starts, links.ends, links.scores))
    return {
        name: np.concatenate([part[position] for part in parts]).astype(kind)
        for position, (name, kind) in enumerate(LINK_COLUMNS.items())
    }


_worker: dict[str, Any] = {}
"""What a worker process opened once: the linker, the store and the threshold."""


def _open_worker(
    model: str | None, prepared: Path, corpus: Path, threshold: float | None, parent: int
) -> None:
    from helios.models.linker.linker import Linker

    exit_with_parent(parent)
    _worker["linker"] = Linker.load(model).open(prepared)
    _worker["store"] = CorpusStore.open(corpus)
    _worker["threshold"] = threshold


def _link_in_worker(start: int, stop: int) -> dict[str, np.ndarray]:
    return predicted_links(_worker["linker"], _worker["store"], start, stop, threshold=_worker["threshold"])


def _write(folder: Path, parts: list[dict[str, np.ndarray]]) -> int:
    total = 0
    for name, kind in LINK_COLUMNS.items():
        column = np.concatenate([part[name] for part in parts] or [np.empty(0)]).astype(kind)
        np.save(folder / f"{name}.npy", column, allow_pickle=False)
        total = len(column)
    return total
