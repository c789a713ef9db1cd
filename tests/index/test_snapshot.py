"""Opening, pinning and checking a real index, and every way in which one can be broken."""

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest

from helios.config import load_config
from helios.corpus import CorpusStore
from helios.corpus.sample import sample_path
from helios.errors import IndexFormatError
from helios.graph.data import DataGraph
from helios.index import snapshot
from helios.index.fsck import check_index, listed_bytes
from helios.index.manifest import MANIFEST_FILE, read_manifest, write_manifest
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot, next_piece, remove_if_unused, remove_retired
from helios.index.tombstones import Tombstones
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
    manifest = read_manifest(index)
    return [index / piece.folder / entry.path for piece in manifest.pieces for entry in piece.files]


def test_components_open(index: Path):
    with Snapshot.open(index) as snapshot:
        (part,) = snapshot.parts
        store = CorpusStore.open(part.path("corpus"))
        (layer,) = snapshot.links
        graph = DataGraph.open(layer.directory)
        assert layer.links.parts == (part.part.name,)
        assert snapshot.manifest.counts.segments == store.segment_count == graph.segment_count
        assert snapshot.manifest.counts.passages == len(store.passages)
        assert snapshot.manifest.counts.edges == graph.edge_count > 0
        assert part.deleted.nodes.tolist() == []
        assert part.deleted.nodes.dtype == np.int64
        assert snapshot.is_current()


def test_absent_component_is_named(index: Path):
    with (
        Snapshot.open(index) as snapshot,
        pytest.raises(IndexFormatError, match="no 'music', only corpus; build"),
    ):
        snapshot.parts[0].path("music")


def test_a_part_without_a_codebook_says_so(index: Path):
    with (
        Snapshot.open(index) as snapshot,
        pytest.raises(IndexFormatError, match="parts/0001: the part has no codebook"),
    ):
        _ = snapshot.parts[0].codebook_path


def test_a_snapshot_says_what_it_is(index: Path):
    with Snapshot.open(index) as snapshot:
        assert f"{index}', generation=1, parts=1, segments=66" in repr(snapshot)


def test_opening_reads_the_manifest_and_what_is_deleted(index: Path):
    process = psutil.Process()
    if not hasattr(process, "io_counters"):
        pytest.skip("this system does not count what a process reads")
    before = process.io_counters().read_chars
    Snapshot.open(index).close()
    read = process.io_counters().read_chars - before
    deleted = sum(part.tombstones.size for part in read_manifest(index).parts)
    assert read < (index / MANIFEST_FILE).stat().st_size + deleted + 8192


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
    (part,), (links,) = manifest.parts, manifest.links
    wrong = links.model_copy(update={"edges": 1})
    write_manifest(index, manifest.model_copy(update={"links": (wrong,)}))
    (finding,) = check_index(index)
    assert (finding.path, finding.problem) == ("links/0001", f"holds {links.edges} edges, not 1")
    counts = part.counts.model_copy(update={"segments": 65, "passages": 68})
    write_manifest(index, manifest.model_copy(update={"parts": (part.model_copy(update={"counts": counts}),)}))
    findings = check_index(index)
    assert [finding.path for finding in findings] == ["links/0001", MANIFEST_FILE, "parts/0001/corpus"]
    assert findings[0].problem == "numbers 66 segments, its parts hold 65"


def test_links_of_a_part_that_is_not_there(index: Path):
    manifest = read_manifest(index)
    links = manifest.links[0].model_copy(update={"parts": ("0007",)})
    write_manifest(index, manifest.model_copy(update={"links": (links,)}))
    (finding,) = check_index(index)
    assert finding.problem == "links nodes of part 0007, which the index does not have"


def test_leftovers_are_warnings(index: Path):
    (index / "parts" / "0002").mkdir()
    (index / "parts" / "0002" / "half").write_bytes(b"x")
    (finding,) = check_index(index)
    assert (finding.severity, finding.path) == ("warning", "parts/0002/half")


def with_tombstones(index: Path, deleted: list[int], *, revision: int) -> None:
    """Swap in a snapshot in which these nodes are deleted."""
    manifest = read_manifest(index)
    part = manifest.parts[0]
    nothing = np.zeros(0, np.int32)
    tombstones = Tombstones(np.array(deleted, np.int64), nothing, nothing)
    entry = write_tombstones(index, part.name, tombstones, revision=revision)
    counts = part.counts.model_copy(update={"deleted": len(deleted)})
    changed = part.model_copy(update={"tombstones": entry, "counts": counts})
    update = {"parts": (changed,), "generation": manifest.generation + 1, "counts": counts}
    write_manifest(index, manifest.model_copy(update=update))


def after_each(step: str, change: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Change the index after each call of a step of opening; a server of another test may open its own beside this."""
    usual, thread = getattr(snapshot, step), threading.get_ident()

    def then_a_change(*arguments):
        result = usual(*arguments)
        if threading.get_ident() == thread:
            change()
        return result

    monkeypatch.setattr(snapshot, step, then_a_change)


def test_tombstones_belong_to_a_snapshot(index: Path):
    with Snapshot.open(index) as old:
        with_tombstones(index, [2, 5], revision=1)
        with Snapshot.open(index) as new:
            assert new.parts[0].deleted.nodes.tolist() == [2, 5]
        assert old.parts[0].deleted.nodes.tolist() == []
        assert not old.is_current()
    assert check_index(index)[0].severity == "warning"
    remove_retired(index, read_manifest(index))
    assert check_index(index) == []


@pytest.mark.parametrize("deleted", [[-1], [3, 3], [5, 2]])
def test_wrong_tombstones_are_refused_and_found(index: Path, deleted: list[int]):
    with_tombstones(index, deleted, revision=1)
    message = r"tombstones/0001-000001\.npz: cannot read the tombstones \(numbers must be unique, ascending"
    assert any("numbers must be unique, ascending" in finding.problem for finding in check_index(index))
    with pytest.raises(IndexFormatError, match=message):
        Snapshot.open(index)


def test_tombstones_of_nodes_that_are_not_there(index: Path):
    with_tombstones(index, [10**6], revision=1)
    errors = [finding for finding in check_index(index) if finding.severity == "error"]
    assert [finding.problem for finding in errors] == ["node numbers must be below 133"]
    with Snapshot.open(index) as snapshot, pytest.raises(IndexFormatError, match="a deleted node that the part does"):
        IndexReader.of(snapshot)


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
    assert next_piece(index, "parts", manifest) == "0002"
    (index / "parts" / "0002").mkdir()
    assert next_piece(index, "parts", manifest) == "0002"
    assert (index / "parts" / "0001" / "corpus").is_dir()
    assert next_piece(index, "links", manifest) == "0002"
    assert next_piece(index, "codebooks", manifest) == "0001"
    with Snapshot.open(index):
        assert next_piece(index, "parts", None) == next_piece(index, "links", None) == "0002"


def test_reader_outlives_a_rebuild(index: Path):
    with Snapshot.open(index) as old:
        segments = CorpusStore.open(old.parts[0].path("corpus")).segment_count
        config = load_config(None, ["linking.source=none"])
        report = build_index(sample_path(), index, config=config, stages=STAGES)
        assert (report.manifest.generation, report.manifest.parts[0].name) == (2, "0002")
        assert CorpusStore.open(old.parts[0].path("corpus")).segment_count == segments
        assert DataGraph.open(old.links[0].directory).edge_count > 0
        assert not old.is_current()
    remove_retired(index, read_manifest(index))
    assert not (index / "parts" / "0001").exists()
    assert not (index / "links" / "0001").exists()
    assert (index / MANIFEST_FILE).exists()
    assert check_index(index) == []


class TestCommitsMeanwhile:
    """A writer that commits while a reader opens: the reader gets one generation whole, the old one or the new one."""

    @pytest.mark.parametrize("step", ["read_manifest", "_pin", "_check_sizes"])
    @pytest.mark.parametrize("commits", [1, 3])
    def test_a_commit_after_any_step_of_opening(self, index: Path, monkeypatch, step: str, commits: int):
        """The tombstones of the manifest that was read are gone when they are read."""
        left = [commits]

        def commit() -> None:
            if left[0]:
                left[0] -= 1
                deleted = [commits - left[0]]
                with_tombstones(index, deleted, revision=commits - left[0])
                remove_retired(index, read_manifest(index))

        after_each(step, commit, monkeypatch)
        with Snapshot.open(index) as found:
            assert left == [0]
            assert found.manifest.generation == commits + 1
            assert found.parts[0].deleted.nodes.tolist() == [commits]

    def test_a_rebuild_while_the_parts_are_being_pinned(self, index: Path, monkeypatch):
        """The folders of the manifest that was read are gone when they are pinned."""
        built = []

        def build() -> None:
            if not built:
                config = load_config(None, ["linking.source=none"])
                built.append(build_index(sample_path(), index, config=config, stages=STAGES).manifest)

        after_each("read_manifest", build, monkeypatch)
        with Snapshot.open(index) as found:
            assert found.manifest == built[0]
            assert found.manifest.counts.edges == 0
            assert found.parts[0].directory.is_dir()
            assert not (index / "parts" / "0001").exists()

    def test_a_writer_that_never_rests(self, index: Path, monkeypatch):
        revision = [0]

        def commit() -> None:
            revision[0] += 1
            with_tombstones(index, [revision[0]], revision=revision[0])
            remove_retired(index, read_manifest(index))

        after_each("read_manifest", commit, monkeypatch)
        with pytest.raises(IndexFormatError, match="the index changes faster than it can be opened"):
            Snapshot.open(index)
        assert open_folders(index) == 0

    def test_readers_beside_a_writer(self, index: Path):
        """Every snapshot has the tombstones of its own generation, whatever the writer does meanwhile."""
        generations, done = range(2, 42), threading.Event()

        def write() -> None:
            for generation in generations:
                with_tombstones(index, [generation], revision=generation)
                remove_retired(index, read_manifest(index))
            done.set()

        def read() -> set[int]:
            seen = set()
            while not done.is_set() or not seen:
                with Snapshot.open(index) as found:
                    deleted = found.parts[0].deleted.nodes.tolist()
                    assert deleted == ([found.manifest.generation] if found.manifest.generation > 1 else [])
                    seen.add(found.manifest.generation)
            return seen

        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(read) for _ in range(2)]
            pool.submit(write).result()
            assert all(reader.result() for reader in readers)
        with Snapshot.open(index) as found:
            assert found.manifest.generation == generations[-1]
        assert open_folders(index) == 0


def open_folders(index: Path) -> int:
    """How many files and folders of an index this process holds open."""
    return sum(Path(descriptor).resolve().is_relative_to(index) for descriptor in Path("/proc/self/fd").iterdir())
