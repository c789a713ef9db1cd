"""A full disk: the snapshot stays what it was, and the same call works when there is space again; on a small tmpfs."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from helios.config import load_config
from helios.corpus.sample import sample_path
from helios.errors import HeliosError
from helios.index.backup import back_up
from helios.index.fsck import check_index
from helios.index.manifest import Manifest, read_manifest, write_manifest
from helios.index.tombstones import Tombstones
from indexing.commit import write_tombstones
from indexing.pipeline import build_index
from indexing.stages import GraphStage, IngestStage, LinkStage

STAGES = (IngestStage(), LinkStage(), GraphStage())


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("may not mount a small tmpfs here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.fixture
def index(disk: Path) -> Iterator[Path]:
    build(disk / "index", "hyperlinks")
    yield disk / "index"
    subprocess.run(["find", str(disk), "-mindepth", "1", "-delete"], check=True)


def build(index: Path, source: str) -> Manifest:
    config = load_config(None, [f"linking.source={source}"])
    return build_index(sample_path(), index, config=config, stages=STAGES, check_disk=False).manifest


def delete(index: Path) -> None:
    manifest = read_manifest(index)
    (part,) = manifest.parts
    nodes = np.arange(60)
    entry = write_tombstones(
        index, part.name, Tombstones(nodes, np.zeros(0, np.int32), np.zeros(0, np.int32)), revision=1
    )
    counts = part.counts.model_copy(update={"deleted": len(nodes)})
    update = {"parts": (part.model_copy(update={"tombstones": entry, "counts": counts}),), "counts": counts}
    write_manifest(index, manifest.model_copy(update=update | {"generation": manifest.generation + 1}))


def fill(disk: Path, *, left: int) -> Path:
    """A file that leaves so many bytes free, in whole pages."""
    state = os.statvfs(disk)
    filler = disk / "filler"
    filler.write_bytes(bytes(max(0, state.f_bavail * state.f_frsize - left)))
    return filler


CALLS = {
    "build": lambda index: build(index, "none"),
    "delete": delete,
    "backup": lambda index: back_up(index, index.with_name("backup"), share=False),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_old_snapshot_stays_and_the_retry_works(index: Path, disk: Path, name: str):
    call: Callable[[Path], object] = CALLS[name]
    before = read_manifest(index)
    failures = 0
    for left in (0, 4096, 8192, 24576):
        filler = fill(disk, left=left)
        try:
            call(index)
        except (HeliosError, OSError) as error:
            failures += 1
            assert "No space left" in str(error) or "disk is full" in str(error)
            assert read_manifest(index) == before
            assert [one for one in check_index(index) if one.severity == "error"] == []
        filler.unlink()
        if read_manifest(index) != before:
            break
    assert failures
    if read_manifest(index) == before:
        call(index)
    changed = index.with_name("backup") if name == "backup" else index
    assert [one for one in check_index(changed) if one.severity == "error"] == []
    assert (read_manifest(index) != before) == (name != "backup")
