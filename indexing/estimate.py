"""`--dry-run`: time, disk and memory of a build, from a sample of rows and passages from all over the corpus.

A few seconds each go into reading, linking and encoding a sample of rows, and what they cost a node is multiplied. What
is done once (loading a model) counts once; clustering goes by the tokens and the root of the centroids. The
figures are estimates: rows of other lengths further on in a large file are not seen.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log10
from pathlib import Path

import numpy as np

from helios.config import Config, CorpusBudget
from helios.corpus import CorpusStore, CorpusWriter
from helios.corpus.budget import STANDARD
from helios.corpus.files import FileList, first_reason
from helios.corpus.mapping import FieldMap
from helios.corpus.readers import read_file, recognise
from helios.corpus.rejects import Rejection
from helios.corpus.source import SourceFile
from helios.errors import CorpusError
from helios.index.durable import files_below
from helios.index.lexical import write_postings
from helios.index.quantiser import centroid_count
from helios.models.routes import uses_gpu
from helios.types import Passage, Table
from indexing.encoding import (
    MAX_SAMPLE_NODES,
    SAMPLE_TOKENS_PER_CENTROID,
    encode_texts,
    fit_codebook,
    node_count,
    node_texts,
)
from indexing.inputs import InputFile, input_files
from indexing.memory import PeakMemory
from indexing.stage import BuildRequest
from indexing.stages.encode import load_encoder

SAMPLE_NODES = 2000
"""Rows and passages that are stored and read through; as many of them are linked and encoded as time allows."""
_SAMPLED_FILES = 24
_SECONDS_OF_READING = 2.0
_SECONDS_A_STAGE = 1.5
_SECONDS_OF_PATIENCE = 60.0
"""What reading may take in all where readers have to read files whole before they say anything."""
_ENCODED_AT_ONCE = 8
_FITTED_CENTROIDS = 16
_LINK_BYTES, _EDGE_BYTES, _OFFSET_BYTES = 26, 12, 8


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """What one stage is expected to cost: seconds, bytes of output, bytes resident."""

    name: str
    seconds: float
    disk: int
    memory: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a build is expected to cost; `exact` says that tables, segments and passages are counted, not estimated."""

    tables: int
    segments: int
    passages: int
    tokens: int
    links: int
    exact: bool
    stages: tuple[StageEstimate, ...]
    sample_nodes: int
    unread: int
    """Files of the sample that could not be read in time; their records are guessed from their size."""
    gpu: bool = False
    """Whether a GPU will read the texts: the codebook and encoding then take far less than is said, which is what the
    processor would take."""

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
    """Records from all over a corpus, of large tables some rows, and how many the whole corpus is likely to have."""

    tables: tuple[Table, ...]
    passages: tuple[Passage, ...]
    total_tables: float
    total_segments: float
    total_passages: float
    seconds_per_node: float
    exact: bool
    unread: int = 0

    @property
    def total_nodes(self) -> float:
        """Segments and passages of the whole corpus."""
        return self.total_segments + self.total_passages


def estimate_build(
    corpus: Path, *, config: Config, workers: int = 1, follow_links: bool = False, mapping: FieldMap | None = None
) -> Estimate:
    """Sample the corpus, link and encode some of the sample, multiply; CorpusError where nothing can be read."""
    sample = sample_corpus(corpus, budget=config.advanced.corpus, follow_links=follow_links, mapping=mapping)
    request = BuildRequest(corpus, config, workers)
    with tempfile.TemporaryDirectory(prefix="helios-estimate-") as folder, PeakMemory() as memory:
        store, stored = _stored(sample, Path(folder) / "corpus")
        linking = _linking(store, Path(folder) / "linking", request)
        encoding = _encoding(store, request)
        lexical = _lexical(store, Path(folder) / "lexical")
    found = _extrapolated(sample, store, stored, linking, encoding, lexical, memory.peak, config)
    return replace(found, gpu=uses_gpu(load_encoder(request, int(sample.total_nodes)).device))


def sample_corpus(
    corpus: Path, *, budget: CorpusBudget = STANDARD, follow_links: bool = False, mapping: FieldMap | None = None
) -> Sample:
    """Read for some seconds from up to 24 files; how far reading came in each gives the totals."""
    files = input_files(corpus, follow_links=follow_links)
    chosen = files[:: max(1, len(files) // _SAMPLED_FILES)][:_SAMPLED_FILES]
    end = time.monotonic() + _SECONDS_OF_PATIENCE
    seconds = _SECONDS_OF_READING / len(chosen)
    beginnings = [
        _read_beginning(file, seconds, budget, end, mapping=mapping, strict=corpus.is_file()) for file in chosen
    ]
    read = [one for one in beginnings if one.fraction]
    records = [record for beginning in beginnings for record in beginning.records]
    if not records:
        late = len(chosen) - len(read)
        reason = next((one.reason for one in beginnings if one.reason), "")
        why = f"; {late} of them take longer to read than a sample may" if late else ""
        raise CorpusError(
            f"{corpus}: no table and no passage in the {len(chosen)} files that were sampled{why}{reason}"
        )
    size = sum(file.size for file, one in zip(chosen, beginnings, strict=True) if one.fraction)
    share = size / max(1, sum(file.size for file in files)) or 1.0
    return Sample(
        tables=tuple(record for record in records if isinstance(record, Table)),
        passages=tuple(record for record in records if isinstance(record, Passage)),
        total_tables=sum(one.begun + (one.tables - one.begun) / one.fraction for one in read) / share,
        total_segments=sum(one.segments / one.fraction for one in read) / share,
        total_passages=sum(one.passages / one.fraction for one in read) / share,
        seconds_per_node=sum(one.seconds_per_node * (one.segments + one.passages) for one in read)
        / max(1, sum(one.segments + one.passages for one in read)),
        exact=len(chosen) == len(files) and all(one.fraction == 1.0 for one in beginnings),
        unread=len(beginnings) - len(read),
    )


@dataclass(frozen=True, slots=True)
class _Beginning:
    """What was read of one file: counts, some of the records, and the fraction of the file's bytes; 0 for none."""

    tables: int
    segments: int
    passages: int
    records: list[Table | Passage]
    fraction: float
    seconds_per_node: float
    begun: int
    """1 where reading stopped within a table, which is then counted as one of the file's, else 0."""
    reason: str = ""
    """What was wrong with the file, to be said where nothing could be read."""


def _read_beginning(
    file: InputFile, seconds: float, budget: CorpusBudget, end: float, *, mapping: FieldMap | None, strict: bool
) -> _Beginning:
    """Read for so long; a file that its reader has to read whole may take until `end`, and a second at least."""
    tables = segments = passages = 0
    kept = _Kept(SAMPLE_NODES)
    fraction, within = 1.0, False
    started, rest, listed = time.monotonic(), None, FileList()
    try:
        patience = min(budget.seconds, max(1.0, end - started))
        allowed = budget.model_copy(update={"seconds": patience})
        source = SourceFile.open(file.path, file.name, allowed, mapping=mapping, strict=strict)
        known = recognise(source)
        for parsed in read_file(known, source, Rejection("skip", files=listed)) if known else ():
            record = parsed.record
            tables += isinstance(record, Table) and not within
            segments += len(record.rows) if isinstance(record, Table) else 0
            passages += isinstance(record, Passage)
            within = parsed.more
            kept.add(record)
            if not rest:
                rest = time.monotonic(), segments + passages  # the reading process has begun by now
            if time.monotonic() > rest[0] + seconds and source.position.consumed < file.size:
                fraction = max(source.position.consumed, 1) / file.size
                break
        else:
            within = False
    except CorpusError:
        fraction = 1.0
    if not tables + passages and time.monotonic() - started > seconds:
        fraction = 0.0
    since, before = rest if rest and segments + passages > rest[1] else (started, 0)
    seconds_per_node = (time.monotonic() - since) / max(1, segments + passages - before)
    return _Beginning(
        tables, segments, passages, kept.records, fraction, seconds_per_node, int(within), first_reason(listed)
    )


class _Kept:
    """About so many rows and passages of all that are added, at even distances."""

    def __init__(self, nodes: int) -> None:
        self.records: list[Table | Passage] = []
        self._limit = nodes
        self._nodes = self._number = 0
        self._stride = 1

    def add(self, record: Table | Passage) -> None:
        """Keep a record, of a table some rows, or pass it over."""
        self._number += 1
        if self._number % self._stride:
            return
        if isinstance(record, Table):
            every = -(-len(record.rows) // (self._limit // 4)) or 1
            record = replace(record, table_id=f"{self._number}", rows=record.rows[::every], hyperlinks=())
        self.records.append(record)
        self._nodes += _nodes(record)
        while self._nodes > self._limit and len(self.records) > 1:
            self.records, self._stride = self.records[::2], self._stride * 2
            self._nodes = sum(map(_nodes, self.records))


def _nodes(record: Table | Passage) -> int:
    return len(record.rows) if isinstance(record, Table) else 1


def _stored(sample: Sample, folder: Path) -> tuple[CorpusStore, float]:
    """A store of about SAMPLE_NODES nodes in the corpus's own proportion of files, and its bytes a node."""
    records = [*sample.tables, *sample.passages]
    kept = records[:: max(1, sum(map(_nodes, records)) // SAMPLE_NODES)]
    with CorpusWriter(folder) as writer:
        for number, record in enumerate(kept):
            named = {"table_id": str(number)} if isinstance(record, Table) else {"passage_id": str(number)}
            writer.add(replace(record, **named))  # type: ignore[arg-type]
    store = CorpusStore.open(folder)
    return store, _size(folder) / max(1, node_count(store))


@dataclass(frozen=True, slots=True)
class _Linking:
    """Links of a sampled row to the sampled passages, what a row and a passage take, and what is done once."""

    links: float = 0.0
    seconds_of_row: float = 0.0
    seconds_of_passage: float = 0.0
    seconds: float = 0.0


def _linking(store: CorpusStore, folder: Path, request: BuildRequest) -> _Linking:
    settings = request.config.advanced.linking
    if request.config.linking.source != "linker" or not store.segment_count or not len(store.passages):
        return _Linking()
    from helios.models.linker import Linker
    from indexing.linking import LinkingJob, link_corpus

    started = time.perf_counter()
    job = LinkingJob(store.directory, folder, Path(settings.model) if settings.model else None)
    loaded = _seconds(lambda: Linker.load(job.weights))
    job.prepare()
    prepared = time.perf_counter() - started - loaded
    opened, linker = job.open()
    rows = links = 0
    link_corpus(opened, linker=linker, blocks=range(1))  # the first call compiles: it is not timed
    started = time.perf_counter()
    for number, (_, start, stop) in enumerate(opened.blocks().tolist()):
        links += len(link_corpus(opened, linker=linker, blocks=range(number, number + 1)))
        rows += stop - start
        if time.perf_counter() - started > _SECONDS_A_STAGE:
            break
    seconds = time.perf_counter() - started
    return _Linking(links / max(1, rows), seconds / max(1, rows), prepared / len(store.passages), 2 * loaded)


@dataclass(frozen=True, slots=True)
class _Encoding:
    """Tokens of a segment and of a passage, what a token takes, what is done once, and the cost of clustering."""

    tokens_of_segment: float
    tokens_of_passage: float
    seconds_of_token: float
    seconds: float
    seconds_of_fit: float
    """For a token and the root of a centroid."""
    bytes_of_token: float
    dimension: int


def _encoding(store: CorpusStore, request: BuildRequest) -> _Encoding:
    """Encode nodes from all over the sample until the time is up; at least a few."""
    encoder = load_encoder(replace(request, config=request.config.changed(["encoder.device=cpu"])))
    loaded = _seconds(lambda: encoder.load_ahead(documents=True))
    nodes, segments = node_count(store), store.segment_count
    order = np.random.default_rng(0).permutation(nodes).tolist()
    vectors, seconds = [], 0.0
    while order and (seconds < _SECONDS_A_STAGE or not vectors):
        own, order = order[:_ENCODED_AT_ONCE], order[_ENCODED_AT_ONCE:]
        texts = [text for node in own for text in node_texts(store, node, node + 1)]
        started = time.perf_counter()
        vectors.append(encode_texts(texts, encoder).vectors_TD)
        seconds += time.perf_counter() - started
    sample_TD = np.concatenate(vectors)
    started = time.perf_counter()
    fitted = fit_codebook(
        sample_TD, np.random.default_rng(0), bits=request.config.tokens.bits, centroids=_FITTED_CENTROIDS
    )
    fit = (time.perf_counter() - started) / len(sample_TD) / _FITTED_CENTROIDS**0.5
    counts = [
        encoder.count_tokens(list(node_texts(store, first, last))) / max(1, last - first)
        for first, last in ((0, segments), (segments, nodes))
    ]
    per_token = seconds / len(sample_TD)
    return _Encoding(*counts, per_token, loaded, fit, fitted.residual_bytes + 3, encoder.dimension)


def _lexical(store: CorpusStore, folder: Path) -> tuple[float, float]:
    """Seconds and bytes of a node."""
    nodes = node_count(store)
    texts = node_texts(store, 0, nodes)
    seconds = _seconds(lambda: write_postings(texts, folder, segment_count=store.segment_count))
    return seconds / max(1, nodes), _size(folder) / max(1, nodes)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _size(folder: Path) -> int:
    return sum((folder / path).stat().st_size for path in files_below(folder))


def _cells_of_row(tables: Sequence[Table]) -> float:
    """A row has hardly more links than cells: a few passages of many let more of their names be taken for theirs."""
    rows = [row for table in tables for row in table.rows]
    return sum(map(len, rows)) / max(1, len(rows))


def _extrapolated(
    sample: Sample, store: CorpusStore, bytes_of_node: float, linking: _Linking, encoding: _Encoding,
    lexical: tuple[float, float], memory: int, config: Config,
) -> Estimate:  # fmt: skip
    segments, passages, nodes = sample.total_segments, sample.total_passages, sample.total_nodes
    tokens = segments * encoding.tokens_of_segment + passages * encoding.tokens_of_passage
    beyond = max(1.0, passages / max(1, len(store.passages)))
    links = segments * min(linking.links * beyond, _cells_of_row(sample.tables))
    seconds_of_row = linking.seconds_of_row * (1 + log10(beyond))  # titles are looked up, whatever their number
    sampled = min(MAX_SAMPLE_NODES, nodes) / max(1.0, nodes)
    centroids = config.advanced.encoder.centroids or centroid_count(int(tokens))
    fitted = min(tokens * sampled, SAMPLE_TOKENS_PER_CENTROID * centroids)
    vector, corpus = 4 * encoding.dimension, bytes_of_node * nodes
    again = 0.0 if sampled == 1.0 else 1.0
    costs = {
        "ingest": (sample.seconds_per_node * nodes, corpus, 0.0),
        "link": (
            linking.seconds + linking.seconds_of_passage * passages + seconds_of_row * segments,
            links * _LINK_BYTES, links * 2 * _LINK_BYTES,
        ),
        "graph": (0.0, links * (_LINK_BYTES + _EDGE_BYTES) + nodes * _OFFSET_BYTES, links * 4 * _LINK_BYTES),
        "codebook": (
            encoding.seconds + encoding.seconds_of_token * tokens * sampled
            + encoding.seconds_of_fit * fitted * centroids**0.5,
            centroids * vector + encoding.dimension * vector, (tokens * sampled + 2 * fitted) * vector,
        ),
        "encode": (
            encoding.seconds + encoding.seconds_of_token * tokens * again,
            tokens * encoding.bytes_of_token + nodes * _OFFSET_BYTES,
            3 * config.advanced.encoder.chunk * tokens / max(1.0, nodes) * vector,
        ),
        "lexical": (lexical[0] * nodes, lexical[1] * nodes, 0.0),
    }  # fmt: skip
    return Estimate(
        tables=round(sample.total_tables),
        segments=round(segments),
        passages=round(passages),
        tokens=round(tokens),
        links=round(links),
        exact=sample.exact,
        stages=tuple(
            StageEstimate(name, seconds, round(disk), round(memory + corpus + more))
            for name, (seconds, disk, more) in costs.items()
        ),
        sample_nodes=node_count(store),
        unread=sample.unread,
    )
