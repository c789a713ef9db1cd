"""Link: find the passages that each cell of each table speaks of, table chunk by table chunk."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from helios.corpus import CorpusStore
from indexing.stage import Arrays, BuildRequest, StageContext, StageResult

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
        """The linker's model, where one is used."""
        return {}

    def run(self, context: StageContext) -> StageResult:
        """Link every table; chunks of tables that an earlier run finished are kept."""
        store = CorpusStore.open(context.inputs["ingest"])
        size = context.config.pipeline.link_chunk
        chunks = context.chunks(f"tables-{size}", -(-len(store.tables) // size))
        pending = chunks.pending()
        context.meter.start(len(store.tables), "tables", done=(chunks.total - len(pending)) * size)
        for number in pending:
            links, unknown = hyperlinks_of(store, number * size, min((number + 1) * size, len(store.tables)))
            chunks.save(number, {**links, UNKNOWN: np.array(unknown)})
            context.meter.advance(size)
        parts = [chunks.load(number) for number in range(chunks.total)]
        unknown = sum(int(part[UNKNOWN]) for part in parts)
        return StageResult(counts={"links": _write(context, parts), "unknown_targets": unknown})


def hyperlinks_of(store: CorpusStore, start: int, stop: int) -> tuple[Arrays, int]:
    """The corpus's own links of tables [start, stop) as columns, and how many point to no known passage."""
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
    return link_arrays(rows), unknown


def link_arrays(rows: list[tuple[int, int, int, int, int, float]]) -> Arrays:
    """(segment, passage, column, start, end, score) rows as columns of the right types."""
    columns = zip(*rows, strict=True) if rows else [()] * len(LINK_COLUMNS)
    return {
        name: np.array(column, dtype=kind)
        for (name, kind), column in zip(LINK_COLUMNS.items(), columns, strict=True)
    }


def _write(context: StageContext, parts: list[dict[str, np.ndarray]]) -> int:
    total = 0
    for name, kind in LINK_COLUMNS.items():
        column = np.concatenate([part[name] for part in parts] or [np.empty(0)]).astype(kind)
        np.save(context.out / f"{name}.npy", column, allow_pickle=False)
        total = len(column)
    return total
