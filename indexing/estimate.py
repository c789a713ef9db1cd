"""`--dry-run`: time, disk and memory of a build, from running its stages on samples of the corpus.

A stage that reports its progress in several steps is extrapolated by the rate between its first and its last
report; what it did before and after (loading a model) counts once. Others follow the line through two samples
of different size. Work that grows otherwise (clustering) is underestimated. Memory is that of the larger
sample plus the corpus, whose pages stay mapped; it includes what the samples' earlier stages left loaded.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from helios.config import Config, CorpusBudget
from helios.corpus import CorpusWriter
from helios.corpus.budget import STANDARD
from helios.corpus.readers import read_file, recognise
from helios.corpus.rejects import Rejection
from helios.corpus.source import SourceFile
from helios.errors import CorpusError
from helios.types import Passage, Table
from indexing.inputs import InputFile, input_files
from indexing.pipeline import build_index
from indexing.progress import Meter, SilentMeter, SilentProgress
from indexing.stage import BuildRequest, Stage, StageContext, StageRecord, StageResult
from indexing.stages import default_stages

SAMPLE_NODES = (400, 1600, 6400)
"""Sizes of the samples that are built; the next one is tried while it is likely to take less than a while."""
_SECONDS_PER_BUILD = 30.0
_SAMPLED_FILES = 24
_SECONDS_OF_READING = 15.0
_KEPT_RECORDS = 8000
_SAMPLE_CHUNKS = ("advanced.linking.chunk=5", "advanced.encoder.chunk=256")
"""Small enough that even a sample has several chunks to take the time between."""


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """What one stage is expected to cost: seconds, bytes of output, bytes resident."""

    name: str
    seconds: float
    disk: int
    memory: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a build is expected to cost; `exact` says that the counts are counted, not extrapolated."""

    tables: int
    segments: int
    passages: int
    exact: bool
    stages: tuple[StageEstimate, ...]
    sample_nodes: int

    @property
    def seconds(self) -> float:
        """Wall-clock of the whole build."""
        return sum(stage.seconds for stage in self.stages)

    @property
    def disk(self) -> int:
        """Bytes at the peak of the build: all outputs, and the largest once more as chunks."""
        return sum(stage.disk for stage in self.stages) + max((stage.disk for stage in self.stages), default=0)

    @property
    def memory(self) -> int:
        """Bytes resident in the hungriest stage."""
        return max((stage.memory for stage in self.stages), default=0)


@dataclass(frozen=True, slots=True)
class Sample:
    """Records from all over a corpus and how many the whole corpus is likely to have."""

    tables: tuple[Table, ...]
    passages: tuple[Passage, ...]
    total_tables: float
    total_segments: float
    total_passages: float
    seconds_per_record: float
    exact: bool

    @property
    def total_nodes(self) -> float:
        """Segments and passages of the whole corpus."""
        return self.total_segments + self.total_passages


def estimate_build(
    corpus: Path,
    *,
    config: Config,
    workers: int = 1,
    stages: Sequence[Stage] | None = None,
    follow_links: bool = False,
) -> Estimate:
    """Sample the corpus, build an index of a small and a larger sample in a temporary folder, extrapolate."""
    sample = sample_corpus(corpus, budget=config.advanced.corpus, follow_links=follow_links)
    settings = config.changed(_SAMPLE_CHUNKS)
    runs = _build_samples(sample, settings, workers, tuple(stages or default_stages()))
    total = sample.total_nodes
    estimates = [_extrapolate(name, [(nodes, run[name]) for nodes, run in runs], total) for name in runs[0][1]]
    mapped = next((stage.disk for stage in estimates if stage.name == "ingest"), 0)
    reading = sample.seconds_per_record * (sample.total_tables + sample.total_passages)
    return Estimate(
        tables=round(sample.total_tables),
        segments=round(sample.total_segments),
        passages=round(sample.total_passages),
        exact=sample.exact,
        stages=tuple(
            replace(
                stage,
                memory=stage.memory + mapped,
                seconds=stage.seconds + (reading if stage.name == "ingest" else 0.0),
            )
            for stage in estimates
        ),
        sample_nodes=runs[-1][0],
    )


def sample_corpus(corpus: Path, *, budget: CorpusBudget = STANDARD, follow_links: bool = False) -> Sample:
    """Read for some seconds from up to 24 files; how far reading came in each gives the totals."""
    files = input_files(corpus, follow_links=follow_links)
    chosen = files[:: max(1, len(files) // _SAMPLED_FILES)][:_SAMPLED_FILES]
    started = time.perf_counter()
    beginnings = [_read_beginning(file, _SECONDS_OF_READING / len(chosen), budget) for file in chosen]
    seconds = time.perf_counter() - started
    records = [record for beginning in beginnings for record in beginning.records]
    if not records:
        raise CorpusError(f"{corpus}: no table and no passage in the {len(chosen)} files that were sampled")
    share = sum(file.size for file in chosen) / max(1, sum(file.size for file in files)) or 1.0
    return Sample(
        tables=tuple(record for record in records if isinstance(record, Table)),
        passages=tuple(record for record in records if isinstance(record, Passage)),
        total_tables=sum(one.tables / one.fraction for one in beginnings) / share,
        total_segments=sum(one.segments / one.fraction for one in beginnings) / share,
        total_passages=sum(one.passages / one.fraction for one in beginnings) / share,
        seconds_per_record=seconds / sum(one.tables + one.passages for one in beginnings),
        exact=len(chosen) == len(files) and all(one.fraction == 1.0 for one in beginnings),
    )


@dataclass(frozen=True, slots=True)
class _Beginning:
    """What was read of one file: counts, a part of the records, and the fraction of the file's bytes."""

    tables: int
    segments: int
    passages: int
    records: list[Table | Passage]
    fraction: float


def _read_beginning(file: InputFile, seconds: float, budget: CorpusBudget) -> _Beginning:
    counts = [0, 0, 0]
    records: list[Table | Passage] = []
    fraction, stride = 1.0, 1
    deadline = time.monotonic() + seconds
    try:
        source = SourceFile.open(file.path, file.name, budget)
        known = recognise(source)
        parsed = read_file(known, source, Rejection("skip")) if known else iter(())
        for number, (record, _) in enumerate(parsed):
            is_table = isinstance(record, Table)
            counts[0 if is_table else 2] += 1
            counts[1] += len(record.rows) if isinstance(record, Table) else 0
            if number % stride == 0:
                records.append(record)
            if len(records) > _KEPT_RECORDS:
                records, stride = records[::2], stride * 2
            if time.monotonic() > deadline:
                fraction = min(1.0, max(source.position.consumed, 1) / max(file.size, 1))
                break
    except CorpusError:
        fraction = 1.0
    return _Beginning(counts[0], counts[1], counts[2], records, fraction)


def _build_samples(
    sample: Sample, config: Config, workers: int, stages: tuple[Stage, ...]
) -> list[tuple[int, dict[str, "_Cost"]]]:
    """The two largest samples that could be built in reasonable time: nodes and the stages' records."""
    runs: list[tuple[int, dict[str, _Cost]]] = []
    for size in SAMPLE_NODES:
        records = _cut(sample, size)
        nodes = sum(len(record.rows) if isinstance(record, Table) else 1 for record in records)
        if runs and nodes <= runs[-1][0]:
            break
        runs.append((nodes, _measure(records, config, workers, stages)))
        last = sum(cost.record.seconds for cost in runs[-1][1].values())
        if len(runs) > 1 and last * SAMPLE_NODES[1] / SAMPLE_NODES[0] > _SECONDS_PER_BUILD:
            break
    return runs[-2:]


def _cut(sample: Sample, nodes: int) -> list[Table | Passage]:
    """About `nodes` nodes in the corpus's own proportion of tables and passages, from all over it."""
    share = min(1.0, nodes / sample.total_nodes)
    tables = _spread(sample.tables, max(1, round(sample.total_tables * share)))
    passages = _spread(sample.passages, max(1, round(sample.total_passages * share)))
    return [*tables, *passages]


def _spread(records: Sequence[Any], count: int) -> Iterator[Any]:
    """At most `count` records at equal distances."""
    count = min(count, len(records))
    return (records[position * len(records) // count] for position in range(count))


def _measure(
    records: list[Table | Passage], config: Config, workers: int, stages: tuple[Stage, ...]
) -> dict[str, "_Cost"]:
    """Build an index of the records in a temporary folder; what every stage cost."""
    sampled = tuple(SampleStage(tuple(records)) if stage.name == "ingest" else stage for stage in stages)
    with tempfile.TemporaryDirectory(prefix="helios-estimate-") as folder:
        corpus = Path(folder) / "sample.jsonl"
        corpus.write_text('{"id": "", "text": "SampleStage has the records"}', encoding="utf-8")
        progress = _Stopwatch()
        report = build_index(
            corpus,
            Path(folder) / "index",
            config=config,
            workers=workers,
            stages=sampled,
            progress=progress,
            check_disk=False,
        )
        return {name: _Cost(record, progress.laps[name]) for name, record in report.records.items()}


class _Laps(SilentMeter):
    """When a stage reported how much of its work as done."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.counts: list[int] = []

    def advance(self, count: int = 1) -> None:
        self.times.append(time.perf_counter())
        self.counts.append(count)

    def steady(self) -> tuple[float, float] | None:
        """Seconds between the first and the last report, and how often that goes into the whole work."""
        done = sum(self.counts[1:])
        if len(self.times) < 3 or not done:
            return None
        return self.times[-1] - self.times[0], sum(self.counts) / done


class _Stopwatch(SilentProgress):
    """Progress that keeps the laps of every stage."""

    def __init__(self) -> None:
        self.laps: dict[str, _Laps] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[Meter]:
        """A meter that notes the times."""
        self.laps[name] = _Laps()
        yield self.laps[name]


@dataclass(frozen=True, slots=True)
class _Cost:
    """What a stage cost on one sample."""

    record: StageRecord
    laps: _Laps


@dataclass(frozen=True)
class SampleStage:
    """Stands in for ingest: stores records that were read already."""

    records: tuple[Table | Passage, ...]
    name: str = "ingest"
    version: int = 1
    component: str | None = "corpus"
    inputs: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def fingerprint(self, request: BuildRequest) -> dict[str, Any]:
        """The number of records."""
        return {"sample": len(self.records)}

    def run(self, context: StageContext) -> StageResult:
        """Write the store."""
        with CorpusWriter(context.out) as writer:
            for record in self.records:
                writer.add(record)
        tables = [record for record in self.records if isinstance(record, Table)]
        counts = {
            "tables": len(tables),
            "segments": sum(len(table.rows) for table in tables),
            "passages": len(self.records) - len(tables),
        }
        return StageResult(counts=counts)


def _extrapolate(name: str, runs: list[tuple[int, _Cost]], total: float) -> StageEstimate:
    (few, small), (many, large) = runs[0], runs[-1]
    disk = [sum(entry.size for entry in cost.record.files) for cost in (small, large)]
    steady = large.laps.steady()
    if steady is None:
        seconds = _line(few, small.record.seconds, many, large.record.seconds, total)
    else:
        between, whole = steady
        seconds = large.record.seconds - between + between * whole * max(1.0, total / many)
    return StageEstimate(
        name=name,
        seconds=seconds,
        disk=round(_line(few, disk[0], many, disk[1], total)),
        memory=large.record.peak_rss,
    )


def _line(few: int, at_few: float, many: int, at_many: float, total: float) -> float:
    """The value at `total` on the line through two measurements, at least the larger one."""
    if many <= few or at_many <= at_few:
        return at_many * max(1.0, total / many)
    slope = (at_many - at_few) / (many - few)
    return max(at_many, at_many + slope * (total - many))
