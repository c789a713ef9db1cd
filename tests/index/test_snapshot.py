"""Opening, pinning and checking a real index, and every way in which one can be broken."""

import shutil
from pathlib import Path

import numpy as np
import psutil
import pytest

from helios.config import load_config
from helios.corpus import CorpusStore
from helios.corpus.sample import sample_path
from helios.errors import IndexFormatError
from helios.graph.data import DataGraph
from helios.index.fsck import check_index, listed_bytes
from helios.index.manifest import MANIFEST_FILE, read_manifest, write_manifest
from helios.index.snapshot import Snapshot, next_part_name, part_directory, remove_if_unused, remove_retired
from indexing.commit import write_tombstones
from indexing.pipeline import build_index
from indexing.stages import GraphStage, IngestStage, LinkStage

STAGES = (IngestStage(), LinkStage(), GraphStage())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = tmp_path_factory.mktemp("built") / "index"
    build_index(sample_path(), index, config=load_config(None, ["linking.source=hyperlinks"]), stages=STAGES)
    return index


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "index"))


def listed_files(index: Path) -> list[Path]:
    part = read_manifest(index).parts[0]
    return [part_directory(index, part.name) / entry.path for entry in part.files]


def test_components_open(index: Path):
    with Snapshot.open(index) as snapshot:
        (part,) = snapshot.parts
        store = CorpusStore.open(part.path("corpus"))
        graph = DataGraph.open(part.path("graph"))
        assert snapshot.manifest.counts.segments == store.segment_count == graph.segment_count
        assert snapshot.manifest.counts.passages == len(store.passages)
        assert snapshot.manifest.counts.edges == graph.edge_count > 0
        assert part.deleted_nodes().tolist() == []
        assert part.deleted_nodes().dtype == np.int64
        assert snapshot.is_current()


def test_absent_component_is_named(index: Path):
    with (
        Snapshot.open(index) as snapshot,
        pytest.raises(IndexFormatError, match="no 'music', only corpus, graph"),
    ):
        snapshot.parts[0].path("music")


def test_opening_reads_the_manifest_alone(index: Path):
    process = psutil.Process()
    if not hasattr(process, "io_counters"):
        pytest.skip("this system does not count what a process reads")
    before = process.io_counters().read_chars
    Snapshot.open(index).close()
    read = process.io_counters().read_chars - before
    assert read < (index / MANIFEST_FILE).stat().st_size + 4096


def test_sound_index_has_no_findings(index: Path):
    seen: list[int] = []
    assert check_index(index, progress=seen.append) == []
    assert sum(seen) == listed_bytes(index)


def test_each_missing_file_is_named(index: Path):
    for path in listed_files(index):
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(IndexFormatError, match=f"{path.name}: missing"):
            Snapshot.open(index)
        assert [finding.problem for finding in check_index(index)] == ["missing"]
        path.write_bytes(content)


def test_each_truncated_file_is_named(index: Path):
    for path in listed_files(index):
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        with pytest.raises(IndexFormatError, match=f"{path.name}: damaged: {len(content) - 1} bytes"):
            Snapshot.open(index)
        path.write_bytes(content)


def test_each_flipped_bit_is_found_by_fsck(index: Path):
    for path in listed_files(index):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        (finding,) = check_index(index)
        assert finding.severity == "error"
        assert finding.path == path.relative_to(index).as_posix()
        assert "SHA-256" in finding.problem
        content[len(content) // 2] ^= 1
        path.write_bytes(content)


def test_missing_part_folder_is_named(index: Path):
    shutil.rmtree(index / "parts" / "0001")
    with pytest.raises(IndexFormatError, match="parts/0001: cannot open the part"):
        Snapshot.open(index)


def test_counts_that_disagree_are_found(index: Path):
    manifest = read_manifest(index)
    part = manifest.parts[0]
    wrong = part.model_copy(update={"counts": part.counts.model_copy(update={"edges": 1})})
    write_manifest(index, manifest.model_copy(update={"parts": (wrong,)}))
    (finding,) = check_index(index)
    assert finding.path == "parts/0001/graph"


def test_leftovers_are_warnings(index: Path):
    (index / "parts" / "0002").mkdir()
    (index / "parts" / "0002" / "half").write_bytes(b"x")
    (finding,) = check_index(index)
    assert (finding.severity, finding.path) == ("warning", "parts/0002/half")


def with_tombstones(index: Path, deleted: list[int], *, revision: int) -> None:
    """Swap in a snapshot in which these nodes are deleted."""
    manifest = read_manifest(index)
    part = manifest.parts[0]
    entry = write_tombstones(index, part.name, np.array(deleted), revision=revision)
    counts = part.counts.model_copy(update={"deleted": len(deleted)})
    changed = part.model_copy(update={"tombstones": entry, "counts": counts})
    update = {"parts": (changed,), "generation": manifest.generation + 1, "counts": counts}
    write_manifest(index, manifest.model_copy(update=update))


def test_tombstones_belong_to_a_snapshot(index: Path):
    with Snapshot.open(index) as old:
        with_tombstones(index, [5, 2], revision=1)
        with Snapshot.open(index) as new:
            assert new.parts[0].deleted_nodes().tolist() == [2, 5]
        assert old.parts[0].deleted_nodes().tolist() == []
        assert not old.is_current()
    assert check_index(index)[0].severity == "warning"
    remove_retired(index, read_manifest(index))
    assert check_index(index) == []


@pytest.mark.parametrize("deleted", [[-1], [10**6], [3, 3]])
def test_wrong_tombstones_are_found(index: Path, deleted: list[int]):
    with_tombstones(index, deleted, revision=1)
    assert any("node numbers must be unique" in finding.problem for finding in check_index(index))


def test_a_part_that_is_read_is_not_removed(index: Path):
    snapshot = Snapshot.open(index)
    assert not remove_if_unused(index / "parts" / "0001")
    snapshot.close()
    assert remove_if_unused(index / "parts" / "0001")
    assert remove_if_unused(index / "parts" / "0001")


def test_readers_share_a_part(index: Path):
    with Snapshot.open(index), Snapshot.open(index) as second:
        assert second.is_current()


def test_part_names_skip_what_is_in_use(index: Path):
    manifest = read_manifest(index)
    assert next_part_name(index, manifest) == "0002"
    (index / "parts" / "0002").mkdir()
    assert next_part_name(index, manifest) == "0002"
    assert (index / "parts" / "0001" / "corpus").is_dir()
    with Snapshot.open(index):
        assert next_part_name(index, None) == "0002"


def test_reader_outlives_a_rebuild(index: Path):
    with Snapshot.open(index) as old:
        segments = CorpusStore.open(old.parts[0].path("corpus")).segment_count
        config = load_config(None, ["linking.source=none"])
        report = build_index(sample_path(), index, config=config, stages=STAGES)
        assert (report.manifest.generation, report.manifest.parts[0].name) == (2, "0002")
        assert CorpusStore.open(old.parts[0].path("corpus")).segment_count == segments
        assert DataGraph.open(old.parts[0].path("graph")).edge_count > 0
        assert not old.is_current()
    remove_retired(index, read_manifest(index))
    assert not (index / "parts" / "0001").exists()
    assert (index / MANIFEST_FILE).exists()
    assert check_index(index) == []
