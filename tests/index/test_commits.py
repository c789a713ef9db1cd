"""An engine and the commits under it: it goes on with the snapshot that it opened, a new one sees the new snapshot."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helios.config import load_config
from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.index.manifest import read_manifest, write_manifest
from helios.index.snapshot import Snapshot, remove_retired
from helios.index.tombstones import Tombstones
from helios.types import Evidence
from indexing.commit import write_tombstones
from indexing.pipeline import build_index

QUESTION = "In what year was the element discovered that melts in a warm hand?"


@pytest.fixture
def index(sample_index: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample_index, tmp_path / "index"))


@pytest.fixture
def opened(index: Path, engine: Engine):
    """Engines over the current snapshot, with the models of the shared one."""
    snapshots = []

    def open_index() -> Engine:
        snapshots.append(Snapshot.open(index))
        return Engine(snapshots[-1], engine.config, models=engine.models)

    yield open_index
    for snapshot in snapshots:
        snapshot.close()


def rebuild(index: Path) -> None:
    """The same corpus without links: other parts and layers, and the old ones retired."""
    build_index(sample_path(), index, config=load_config(overrides=["linking.source=none", "encoder.runtime=torch"]))
    remove_retired(index, read_manifest(index))


def delete(index: Path, nodes: list[int]) -> None:
    manifest = read_manifest(index)
    (part,) = manifest.parts
    nothing = np.zeros(0, np.int32)
    tombstones = Tombstones(np.array(nodes, np.int64), nothing, nothing)
    entry = write_tombstones(index, part.name, tombstones, revision=manifest.generation)
    counts = part.counts.model_copy(update={"deleted": len(nodes)})
    part = part.model_copy(update={"tombstones": entry, "counts": counts})
    update = {"parts": (part,), "counts": counts, "generation": manifest.generation + 1}
    write_manifest(index, manifest.model_copy(update=update))
    remove_retired(index, read_manifest(index))


def result(engine: Engine) -> Evidence:
    return replace(engine.search(QUESTION, k=10), timings_ms={})


@pytest.mark.parametrize("commit", [rebuild, lambda index: delete(index, list(range(60)))], ids=["rebuild", "delete"])
def test_an_open_engine_goes_on(index: Path, opened, commit: Callable[[Path], None]):
    """Also one that had not read anything yet."""
    used, fresh = opened(), opened()
    expected = result(used)
    commit(index)
    assert not used.snapshot.is_current()
    assert result(used) == expected
    assert result(fresh) == expected
    new = result(opened())
    assert new.generation == expected.generation + 1
    assert new.edges != expected.edges


def test_what_nobody_reads_is_removed(index: Path):
    with Engine.open(index):
        rebuild(index)
        assert (index / "parts" / "0001").is_dir()
        assert (index / "links" / "0001").is_dir()
    assert sorted(remove_retired(index, read_manifest(index))) == ["codebooks/0001", "links/0001", "parts/0001"]
    assert not (index / "parts" / "0001").exists()


def test_searches_beside_commits(index: Path, opened):
    engine = opened()
    expected = result(engine)
    with ThreadPoolExecutor(2) as pool:
        searches = [pool.submit(result, engine) for _ in range(6)]
        for number in range(10):
            delete(index, list(range(number + 1)))
        assert all(search.result() == expected for search in searches)
    assert read_manifest(index).generation == 11
