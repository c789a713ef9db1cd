"""The pipeline: what is reused, what is refused, what is reported."""

import json
import os
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from helios.config import Config, load_config
from helios.corpus import CorpusStore
from helios.corpus.sample import sample_path
from helios.corpus.where import Where
from helios.errors import (
    ConfigError,
    CorpusError,
    HeliosError,
    IndexFormatError,
    IndexLockedError,
    ModelError,
    RecordError,
)
from helios.graph.data import DataGraph
from helios.index.fsck import check_index
from helios.index.lock import WriteLock
from helios.index.manifest import ModelEntry, read_manifest
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot
from indexing.disk import disk_needed, format_bytes
from indexing.pipeline import BuildReport, build_index
from indexing.progress import SilentMeter, SilentProgress
from indexing.stage import Stage, StageContext, StageResult
from indexing.stages import GraphStage, IngestStage, LinkStage

STAGES = (IngestStage(), LinkStage(), GraphStage())


def gold(*overrides: str) -> Config:
    return load_config(None, ["linking.source=hyperlinks", *overrides])


def build(corpus: Path, index: Path, config: Config | None = None, **options: Any) -> BuildReport:
    return build_index(corpus, index, config=config or gold(), **{"stages": STAGES, **options})


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for path in sample_path().glob("*.jsonl"):
        shutil.copy(path, folder)
    return folder


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index"


def add_line(path: Path, record: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(record + "\n")


def test_corpus_becomes_a_graph_of_its_hyperlinks(corpus: Path, index: Path):
    report = build(corpus, index)
    assert report.ran == ("ingest", "link", "graph")
    with Snapshot.open(index) as snapshot:
        store = CorpusStore.open(snapshot.parts[0].path("corpus"))
        graph = DataGraph.open(snapshot.links[0].directory)
    expected = {
        (int(store.segment_offsets[number]) + link.row, store.passages.number(link.passage_id))
        for number, table in enumerate(store.tables)
        for link in table.hyperlinks
        if store.passages.find(link.passage_id) is not None
    }
    assert {(int(s), int(p)) for s, p in zip(graph.edge_segments, graph.edge_passages, strict=True)} == expected
    assert expected
    link = graph.links(0)[0]
    assert (link.start, link.score) == (0, 1.0)


def test_second_run_does_nothing(corpus: Path, index: Path):
    first = build(corpus, index)
    written = (index / "manifest.json").stat().st_mtime_ns
    second = build(corpus, index)
    assert second.ran == ()
    assert second.manifest == first.manifest
    assert (index / "manifest.json").stat().st_mtime_ns == written
    assert set(second.records) == {"ingest", "link", "graph"}


def test_changed_settings_redo_only_what_depends_on_them(corpus: Path, index: Path):
    build(corpus, index)
    changed = build(corpus, index, load_config(None, ["linking.source=none"]))
    assert changed.ran == ("link", "graph")
    assert (changed.manifest.generation, changed.manifest.counts.edges) == (2, 0)
    searched = build(corpus, index, load_config(None, ["linking.source=none", "search.k=7"]))
    assert searched.ran == ()
    assert searched.manifest.generation == 3
    assert searched.manifest.parts == changed.manifest.parts
    assert searched.manifest.config["search"]["k"] == 7


def test_chunk_size_and_workers_never_change_the_result(corpus: Path, tmp_path: Path):
    results = [
        build(corpus, tmp_path / f"index-{size}", gold(f"advanced.linking.chunk={size}"), workers=workers)
        for size, workers in ((1, 1), (1000, 2))
    ]
    assert results[0].manifest.listed == results[1].manifest.listed


def test_changed_corpus_redoes_everything(corpus: Path, index: Path):
    first = build(corpus, index)
    add_line(corpus / "passages.jsonl", '{"id": "extra", "title": "Extra", "text": "One more."}')
    second = build(corpus, index)
    assert second.ran == ("ingest", "link", "graph")
    assert second.manifest.counts.passages == first.manifest.counts.passages + 1
    assert second.manifest.corpus_sha256 != first.manifest.corpus_sha256


def test_touched_but_equal_corpus_is_reused(corpus: Path, index: Path):
    build(corpus, index)
    os.utime(corpus / "passages.jsonl")
    (corpus / "settings.toml").write_text("not a corpus file", encoding="utf-8")
    assert build(corpus, index).ran == ()


def test_renamed_folder_gives_the_same_index(corpus: Path, tmp_path: Path):
    first = build(corpus, tmp_path / "one")
    second = build(Path(shutil.copytree(corpus, tmp_path / "copy")), tmp_path / "two")
    assert first.manifest.content_hash() == second.manifest.content_hash()


def test_finished_build_holds_each_byte_once(corpus: Path, index: Path):
    build(corpus, index)
    assert not list((index / ".build").glob("*/out/*"))
    assert not list((index / ".build").glob("*/scratch/*"))
    assert [path.name for path in (index / "parts").iterdir()] == ["0001"]


def test_costs_are_recorded(corpus: Path, index: Path):
    for record in build(corpus, index).records.values():
        assert record.seconds > 0
        assert 1e6 < record.peak_rss < 1e11
        assert record.files


def test_file_lost_between_stages_is_made_again(corpus: Path, index: Path):
    build(corpus, index)
    shutil.rmtree(index / "links" / "0001")
    assert build(corpus, index).ran == ("link", "graph")
    assert [piece.folder for piece in read_manifest(index).pieces] == ["parts/0002", "links/0002"]
    assert check_index(index) == []


def test_fresh_build_mends_a_damaged_file(corpus: Path, index: Path):
    build(corpus, index)
    path = index / "links" / "0001" / "edge_passages.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert check_index(index)
    assert build(corpus, index).ran == ()
    assert build(corpus, index, fresh=True).ran == ("ingest", "link", "graph")
    assert check_index(index) == []
    for kind in ("parts", "links"):
        assert [path.name for path in (index / kind).iterdir()] == ["0002"]


class TestRefusals:
    def test_folder_that_is_no_index(self, corpus: Path, tmp_path: Path):
        (tmp_path / "photos").mkdir()
        (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
        with pytest.raises(IndexFormatError, match=r"cat\.jpg.*not a HELIOS index"):
            build(corpus, tmp_path / "photos")
        assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat.jpg"]

    def test_folder_of_another_tool_with_the_same_name(self, corpus: Path, tmp_path: Path):
        (tmp_path / "project" / ".build" / "debug").mkdir(parents=True)
        with pytest.raises(IndexFormatError, match="not a HELIOS index"):
            build(corpus, tmp_path / "project")

    def test_build_killed_before_its_first_word(self, corpus: Path, index: Path):
        (index / ".build").mkdir(parents=True)
        (index / ".lock").touch()
        assert build(corpus, index).ran

    def test_file_as_output(self, corpus: Path, tmp_path: Path):
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(IndexFormatError, match="is a file"):
            build(corpus, tmp_path / "file")

    def test_index_inside_the_corpus(self, corpus: Path):
        with pytest.raises(ConfigError, match="separate folders"):
            build(corpus, corpus / "index")
        with pytest.raises(ConfigError, match="separate folders"):
            build(corpus, corpus)

    def test_empty_folder_is_welcome(self, corpus: Path, index: Path):
        index.mkdir()
        assert build(corpus, index).ran

    def test_damaged_index_is_not_overwritten(self, corpus: Path, index: Path):
        build(corpus, index)
        (index / "manifest.json").write_bytes(b"{")
        with pytest.raises(IndexFormatError, match="damaged"):
            build(corpus, index)

    def test_second_writer(self, corpus: Path, index: Path):
        index.mkdir()
        with WriteLock(index), pytest.raises(IndexLockedError, match=f"process {os.getpid()}"):
            build(corpus, index)

    def test_absent_and_empty_corpora(self, tmp_path: Path, index: Path):
        with pytest.raises(CorpusError, match="no such file or folder"):
            build(tmp_path / "absent", index)
        (tmp_path / "empty").mkdir()
        with pytest.raises(CorpusError, match="the folder is empty"):
            build(tmp_path / "empty", index)
        (tmp_path / "empty" / "p.jsonl").write_text("\n", encoding="utf-8")
        with pytest.raises(CorpusError):
            build(tmp_path / "empty", index)

    def test_disk_too_small(self, corpus: Path, index: Path, monkeypatch: pytest.MonkeyPatch):
        usage = shutil.disk_usage(corpus)._replace(free=1000)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
        with pytest.raises(HeliosError, match=r"needs about .*B of disk and 1\.0 kB are free.*--force"):
            build(corpus, index)
        assert build(corpus, index, check_disk=False).ran

    def test_disk_full_on_the_way(self, corpus: Path, index: Path):
        """The kernel's file size limit fails writes as a full disk does."""
        code = (
            "import resource, signal, sys; from pathlib import Path\n"
            "from helios.errors import HeliosError\n"
            "from indexing.pipeline import build_index\n"
            "from indexing.stages import GraphStage, IngestStage, LinkStage\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))\n"
            "try: build_index(Path(sys.argv[1]), Path(sys.argv[2]), stages=(IngestStage(),))\n"
            "except HeliosError as error: print(error)\n"
        )
        arguments = [sys.executable, "-c", code, str(corpus), str(index)]
        result = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
        assert "the disk is full" in result.stdout, result.stderr
        assert "finished work is kept" in result.stdout
        assert build(corpus, index).ran


class TestRejects:
    def test_stop_names_file_and_line(self, corpus: Path, index: Path):
        add_line(corpus / "tables.jsonl", "{broken")
        with pytest.raises(RecordError, match=r"tables\.jsonl:13: not valid JSON"):
            build(corpus, index)

    def test_skip_writes_them_beside_the_index(self, corpus: Path, index: Path, tmp_path: Path):
        add_line(corpus / "tables.jsonl", "{broken")
        report = build(corpus, index, on_error="skip")
        assert report.records["ingest"].counts["rejected"] == 1
        (reject,) = (index / "rejects.jsonl").read_text(encoding="utf-8").splitlines()
        assert json.loads(reject)["line"] == 13
        build(corpus, index, on_error="skip", rejects=tmp_path / "elsewhere.jsonl")
        assert (tmp_path / "elsewhere.jsonl").read_text(encoding="utf-8") == reject + "\n"

    def test_fixed_corpus_goes_on(self, corpus: Path, index: Path):
        good = (corpus / "tables.jsonl").read_bytes()
        add_line(corpus / "tables.jsonl", "{broken")
        with pytest.raises(RecordError):
            build(corpus, index)
        (corpus / "tables.jsonl").write_bytes(good)
        assert build(corpus, index).ran == ("ingest", "link", "graph")


class TestFieldsOfRecords:
    """A sidecar file beside the corpus."""

    @pytest.fixture
    def fields(self, tmp_path: Path) -> Path:
        path = tmp_path / "fields.csv"
        path.write_text("id,year\ntables.jsonl,1990\nelements,2000\nrhine,1995\n", encoding="utf-8")
        return path

    def years(self, index: Path) -> dict[str, object]:
        with Snapshot.open(index) as snapshot:
            store = CorpusStore.open(snapshot.parts[0].path("corpus"))
        records = {table.table_id: table for table in store.tables} | {one.passage_id: one for one in store.passages}
        return {name: dict(record.metadata).get("year") for name, record in records.items()}

    def test_they_are_stored_and_searched_by(self, corpus: Path, index: Path, fields: Path):
        build(corpus, index, metadata=fields)
        years = self.years(index)
        assert (years["elements"], years["european-rivers"], years["rhine"], years["gallium"]) == (
            2000,
            1990,
            1995,
            None,
        )
        with Snapshot.open(index) as snapshot:
            reader = IndexReader.of(snapshot)
            shown = Where.parse("table.year = 2000 and passage.year < 1996").nodes(reader.corpus)
            assert reader.narrowed(shown).passage_count == 1

    def test_a_change_reads_the_corpus_again(self, corpus: Path, index: Path, fields: Path):
        build(corpus, index, metadata=fields)
        assert build(corpus, index, metadata=fields).ran == ()
        fields.write_text("id,year\nrhine,1996\n", encoding="utf-8")
        assert build(corpus, index, metadata=fields).ran[0] == "ingest"
        assert self.years(index)["rhine"] == 1996
        assert build(corpus, index).ran[0] == "ingest"
        assert set(self.years(index).values()) == {None}

    def test_a_damaged_line_stops_the_build(self, corpus: Path, index: Path, fields: Path):
        add_line(fields, "a,1,2,3")
        with pytest.raises(RecordError, match=r"fields\.csv:5: more cells than the header has names"):
            build(corpus, index, metadata=fields)

    def test_a_file_that_is_missing_or_in_the_corpus_is_refused(self, corpus: Path, index: Path, fields: Path):
        with pytest.raises(CorpusError, match=r"none\.csv: no such file; expected a sidecar file"):
            build(corpus, index, metadata=corpus / "none.csv")
        inside = Path(shutil.copy(fields, corpus))
        with pytest.raises(
            ConfigError, match=r"fields\.csv: lies in the corpus .*would read it as a table .*move the file"
        ):
            build(corpus, index, metadata=inside)
        with pytest.raises(ConfigError, match="lies in the corpus"):
            build(inside, index, metadata=inside)
        assert not index.exists()


@dataclass(frozen=True)
class CountingStage:
    """A stage of a third party: numbers 0..9 in chunks, stopping after some of them."""

    stop_after: int = 100
    model: str = "one"
    name: str = "count"
    version: int = 1
    component: str | None = "numbers"
    inputs: tuple[str, ...] = ("ingest",)
    settings: tuple[str, ...] = ("advanced.encoder.centroids",)

    def fingerprint(self, request: Any) -> dict[str, Any]:
        return {"model": self.model}

    def run(self, context: StageContext) -> StageResult:
        chunks = context.chunks("numbers", 10)
        pending = chunks.pending()
        context.meter.start(10, "numbers", done=10 - len(pending))
        for done, number in enumerate(pending):
            if done == self.stop_after:
                raise HeliosError("stopped on purpose")
            chunks.save(number, {"value": np.array(number)})
            context.meter.advance()
        values = [int(chunks.load(number)["value"]) for number in range(10)]
        np.save(context.out / "values.npy", np.array(values))
        return StageResult(
            counts={"tokens": len(values), "own": 3},
            models={"encoder": ModelEntry(name=self.model, sha256="a" * 64)},
        )


def journal(index: Path) -> list[dict[str, Any]]:
    lines = (index / ".build" / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


class TestLinker:
    """Predicted links, with whatever weights the package has."""

    @pytest.fixture(autouse=True)
    def weights(self) -> None:
        from helios.models.linker.linker import WEIGHTS

        if not (WEIGHTS / "scorer.json").is_file():
            pytest.skip("the package has no linker weights (make them with `helios train linker`)")

    @pytest.mark.slow
    def test_workers_give_the_same_links(self, corpus: Path, tmp_path: Path):
        reports = [
            build(corpus, tmp_path / f"index-{workers}", load_config(None, [chunk]), workers=workers)
            for workers, chunk in ((1, "advanced.linking.chunk=100"), (2, "advanced.linking.chunk=5"))
        ]
        first, second = (report.manifest for report in reports)
        assert first.listed == second.listed
        assert first.counts.edges > 0
        assert first.models["linker"].name == "built in"

    def test_threshold_redoes_links_alone(self, corpus: Path, index: Path):
        build(corpus, index, load_config(None, []))
        strict = build(corpus, index, load_config(None, ["advanced.linking.threshold=1.0"]))
        assert strict.ran == ("link", "graph")


def test_missing_linker_weights_are_noticed_before_any_work(corpus: Path, index: Path, tmp_path: Path):
    with pytest.raises(ModelError, match="no linker weights here"):
        build(corpus, index, load_config(None, [f"advanced.linking.model={tmp_path}"]))
    assert not (index / ".build" / "ingest").exists()


def test_workers_end_with_a_killed_build(tmp_path: Path):
    code = (
        "import multiprocessing, os, sys, time\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from indexing.workers import exit_with_parent\n"
        "if __name__ == '__main__':\n"
        "    spawn = multiprocessing.get_context('spawn')\n"
        "    with ProcessPoolExecutor(1, spawn, exit_with_parent, (os.getpid(),)) as pool:\n"
        "        print(pool.submit(os.getpid).result(), flush=True)\n"
        "        time.sleep(60)\n"
    )
    (tmp_path / "pool.py").write_text(code, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "pool.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
        assert parent.stdout is not None
        worker = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    try:
        worker.wait(timeout=20)
    finally:
        if worker.is_running():
            worker.kill()


class TestOtherStages:
    def with_stage(self, **fields: Any) -> tuple[Stage, ...]:
        return (*STAGES, CountingStage(**fields))

    def test_output_models_and_counts_reach_the_manifest(self, corpus: Path, index: Path):
        manifest = build(corpus, index, stages=self.with_stage()).manifest
        assert manifest.counts.tokens == 10
        assert manifest.models["encoder"].name == "one"
        assert manifest.parts[0].components == ("corpus", "numbers")

    def test_stopped_stage_goes_on_after_its_chunks(self, corpus: Path, index: Path):
        with pytest.raises(HeliosError, match="on purpose"):
            build(corpus, index, stages=self.with_stage(stop_after=4))
        with pytest.raises(IndexFormatError, match="not finished"):
            read_manifest(index)
        assert build(corpus, index, stages=self.with_stage()).ran == ("count",)
        chunks = [event["chunk"] for event in journal(index) if event["event"] == "chunk" and event["stage"] == "count"]
        assert chunks == list(range(10))

    def test_chunks_of_other_settings_are_dropped(self, corpus: Path, index: Path):
        with pytest.raises(HeliosError, match="on purpose"):
            build(corpus, index, stages=self.with_stage(stop_after=4))
        build(corpus, index, gold("advanced.encoder.centroids=7"), stages=self.with_stage())
        chunks = [event["chunk"] for event in journal(index) if event["event"] == "chunk" and event["stage"] == "count"]
        assert chunks == [*range(4), *range(10)]

    @pytest.mark.parametrize("change", [{"model": "two"}, {"version": 2}])
    def test_other_model_or_code_redoes_the_stage(self, corpus: Path, index: Path, change: dict[str, Any]):
        build(corpus, index, stages=self.with_stage())
        assert build(corpus, index, stages=self.with_stage(**change)).ran == ("count",)

    def test_added_stage_runs_alone(self, corpus: Path, index: Path):
        build(corpus, index)
        assert build(corpus, index, stages=self.with_stage()).ran == ("count",)


@dataclass
class RecordingProgress(SilentProgress):
    """Remembers what was reported."""

    stages: dict[str, int] = field(default_factory=dict)
    reused: list[str] = field(default_factory=list)

    def skipped(self, name: str) -> None:
        self.reused.append(name)

    def stage(self, name: str):
        progress = self

        class Meter(SilentMeter):
            def advance(self, count: int = 1) -> None:
                progress.stages[name] = progress.stages.get(name, 0) + count

        class Block:
            def __enter__(self) -> Meter:
                return Meter()

            def __exit__(self, *error: object) -> None:
                pass

        return Block()


def test_progress_counts_all_work(corpus: Path, index: Path):
    progress = RecordingProgress()
    counts = build(corpus, index, progress=progress).manifest.counts
    assert progress.stages["ingest"] == counts.segments + counts.passages
    build(corpus, index, progress=progress)
    assert progress.reused == ["ingest", "link", "graph"]


def test_disk_check_grows_with_text_and_bits(corpus: Path):
    one, two = (disk_needed(corpus, load_config(None, [f"tokens.bits={bits}"])) for bits in (1, 2))
    assert sum(path.stat().st_size for path in corpus.iterdir()) < one < two
    assert [format_bytes(size) for size in (12, 3456, 2.5e9, 3e12)] == ["12 B", "3.5 kB", "2.5 GB", "3.0 TB"]


def test_memory_of_workers_counts():
    from indexing.memory import PeakMemory

    code = "import time; block = bytearray(60_000_000); time.sleep(1.0)"
    with PeakMemory() as memory:
        subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert memory.peak > 60_000_000
    assert own > 0


def test_processes_that_encode_change_nothing(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As on a GPU, but that every process reads on its processor: there is no GPU here."""
    small = gold("advanced.encoder.chunk=2")
    alone = build_index(corpus, tmp_path / "one", config=small)
    monkeypatch.setattr("indexing.stages.encode.uses_gpu", lambda device: True)
    monkeypatch.setattr("indexing.stages.encode.gpu_room", lambda dimension: 2)
    shared = build_index(corpus, tmp_path / "many", config=small, workers=2)
    assert alone.manifest.listed == shared.manifest.listed
    chunks = [event["chunk"] for event in journal(tmp_path / "many") if event["event"] == "chunk"]
    assert len(chunks) > 100
