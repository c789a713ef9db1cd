"""Link: find the passages that each cell of each table speaks of, table chunk by table chunk."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from helios.corpus import CorpusStore
from helios.errors import ModelError
from helios.index.durable import files_below, sha256_file
from helios.index.manifest import ModelEntry
from indexing.kept_words import NAME
from indexing.stage import BuildRequest, StageContext, StageResult

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
ROWS_OF_CHUNK = 20_000


@dataclass(frozen=True)
class LinkStage:
    """Corpus store → links with their provenance, from `linking.source`."""

    name: str = "link"
    version: int = 2
    component: str | None = None
    inputs: tuple[str, ...] = ("ingest",)
    settings: tuple[str, ...] = (
        "linking", "advanced.linking.model", "advanced.linking.threshold", "advanced.linking.fuzzy",
        "advanced.linking.dense",
    )  # fmt: skip

    def fingerprint(self, request: BuildRequest) -> dict[str, Any]:
        """The linker's weights, where they are used."""
        if request.config.linking.source != "linker":
            return {}
        return {"weights": weights_sha256(weights_folder(request))}

    def run(self, context: StageContext) -> StageResult:
        """Link every table; chunks of tables that an earlier run finished are kept."""
        if not any(context.scratch.iterdir()):
            (context.keep / NAME).unlink(missing_ok=True)  # of another corpus, by a build that did not come to its end
        store = CorpusStore.open(context.inputs["ingest"])
        size = context.config.advanced.linking.chunk
        blocks = store.blocks()
        parts_of_work = _chunked(blocks[:, 2] - blocks[:, 1], size)
        chunks = context.chunks(f"tables-{size}", len(parts_of_work))
        ranges = {number: parts_of_work[number] for number in chunks.pending()}
        rows = {number: int((blocks[own, 2] - blocks[own, 1]).sum()) for number, own in enumerate(parts_of_work)}
        context.meter.start(
            store.segment_count, "rows", done=sum(count for number, count in rows.items() if number not in ranges)
        )
        for number, links in _link_ranges(context, store, ranges):
            chunks.save(number, links)
            context.meter.advance(rows[number])
        parts = [chunks.load(number) for number in range(chunks.total)]
        unknown = sum(int(part[UNKNOWN]) for part in parts if UNKNOWN in part)
        counts = {"links": _write(context.out, parts), "unknown_targets": unknown}
        return StageResult(counts=counts, models=_models(context.request))


def _chunked(rows: np.ndarray, size: int) -> list[range]:
    """Blocks between two save points: at most `size`, and no more after ROWS_OF_CHUNK rows."""
    chunks: list[range] = []
    start, count = 0, 0
    for number, own in enumerate(rows.tolist(), start=1):
        count += own
        if number - start == size or count >= ROWS_OF_CHUNK or number == len(rows):
            chunks.append(range(start, number))
            start, count = number, 0
    return chunks


def weights_folder(request: BuildRequest) -> Path:
    """Where the linker's weights are: the configured folder, or the packaged one; ModelError if empty."""
    from helios.models.linker.linker import WEIGHTS

    folder = Path(request.config.advanced.linking.model or WEIGHTS)
    if not (folder / "scorer.json").is_file():
        raise ModelError(
            f"{folder}: no linker weights here (scorer.json is missing); name a trained linker with "
            "advanced.linking.model=FOLDER, or set linking.source to hyperlinks or none"
        )
    return folder


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
    name = request.config.advanced.linking.model or "built in"
    return {"linker": ModelEntry(name=name, sha256=weights_sha256(weights_folder(request)))}


def _link_ranges(
    context: StageContext, store: CorpusStore, ranges: dict[int, range]
) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """(chunk number, links) of every range of row blocks, as they are done."""
    source = context.config.linking.source
    if not len(store.passages) or not store.segment_count:
        source = "none"  # there is nothing to link, and no need of a model
    if source == "linker":
        from indexing.stages.predict import predicted_links

        if ranges:
            _prepare_routes(context, store)
        yield from predicted_links(context, store, ranges)
    elif source == "hyperlinks":
        for number, blocks in ranges.items():
            yield number, hyperlinks_of(store, blocks)
    else:
        for number in ranges:
            yield number, link_arrays([])


def _prepare_routes(context: StageContext, store: CorpusStore) -> None:
    """Prepare the candidates with their further routes; whoever opens the folder later uses those it has."""
    settings = context.config.advanced.linking
    if not (settings.fuzzy or settings.dense):
        return
    from helios.models.linker.routes import Routes
    from indexing.linking import LinkingJob

    weights = Path(settings.model) if settings.model else None
    routes = Routes(fuzzy=settings.fuzzy, dense=settings.dense)
    LinkingJob(store.directory, context.scratch / "candidates", weights, routes=routes).prepare()


def hyperlinks_of(store: CorpusStore, blocks: range) -> dict[str, np.ndarray]:
    """The corpus's own links of a range of row blocks as columns; `unknown` counts those to no known passage."""
    rows: list[tuple[int, int, int, int, int, float]] = []
    unknown = 0
    for table_number, start, stop in store.blocks()[blocks.start : blocks.stop].tolist():
        table = store.tables.block(table_number, start, stop)
        first = int(store.segment_offsets[table_number]) + start
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
        name: np.array(column, dtype=kind) for (name, kind), column in zip(LINK_COLUMNS.items(), columns, strict=True)
    }


def _write(folder: Path, parts: list[dict[str, np.ndarray]]) -> int:
    total = 0
    for name, kind in LINK_COLUMNS.items():
        column = np.concatenate([part[name] for part in parts] or [np.empty(0)]).astype(kind)
        np.save(folder / f"{name}.npy", column, allow_pickle=False)
        total = len(column)
    return total
