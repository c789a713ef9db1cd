"""Backup, restore and the list of what lies in an index's folder: over a real index, its readers and its writers."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helios.engine import Engine
from helios.errors import HeliosError, IndexFormatError
from helios.index import backup
from helios.index.backup import back_up, restore
from helios.index.durable import Sharing
from helios.index.fsck import check_index
from helios.index.listing import list_snapshots
from helios.index.lock import WriteLock
from helios.index.manifest import read_manifest, write_manifest
from helios.index.snapshot import Snapshot, remove_retired
from helios.index.tombstones import Tombstones
from helios.types import Evidence
from indexing.commit import write_tombstones

QUESTION = "In what year was the element discovered that melts in a warm hand?"


@pytest.fixture
def index(sample_index: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample_index, tmp_path / "index"))


def delete(index: Path, nodes: list[int], *, revision: int) -> None:
    """A new snapshot in which these nodes are deleted; tombstones of the old one go at once."""
    manifest = read_manifest(index)
    (part,) = manifest.parts
    deleted = replace(Tombstones.none(), nodes=np.array(nodes, np.int64))
    entry = write_tombstones(index, part.name, deleted, revision=revision)
    counts = part.counts.model_copy(update={"deleted": len(nodes)})
    update = {"parts": (part.model_copy(update={"tombstones": entry, "counts": counts}),), "counts": counts}
    write_manifest(index, manifest.model_copy(update=update | {"generation": manifest.generation + 1}))
    remove_retired(index, read_manifest(index))


def result(index: Path, engine: Engine) -> Evidence:
    with Snapshot.open(index) as snapshot:
        return replace(Engine(snapshot, engine.config, models=engine.models).search(QUESTION, k=20), timings_ms={})


def test_a_backup_is_an_index_that_answers_the_same(index: Path, tmp_path: Path, engine: Engine):
    report = back_up(index, tmp_path / "backup")
    assert sum(report.files.values()) == len(read_manifest(index).listed)
    assert report.bytes == sum(entry.size for entry in read_manifest(index).listed.values())
    assert check_index(tmp_path / "backup") == []
    assert read_manifest(tmp_path / "backup") == read_manifest(index)
    assert result(tmp_path / "backup", engine) == result(index, engine)
    assert (tmp_path / "backup" / "files.jsonl").read_bytes() == (index / "files.jsonl").read_bytes()
    assert not (tmp_path / "backup" / ".build").exists()


def test_it_outlives_the_index(index: Path, tmp_path: Path, engine: Engine):
    expected = result(index, engine)
    back_up(index, tmp_path / "backup")
    delete(index, [3, 70], revision=1)
    assert result(index, engine) != expected
    shutil.rmtree(index)
    restored = restore(tmp_path / "backup", index)
    assert restored.findings == ()
    assert result(index, engine) == expected


def test_files_are_shared_or_copied_as_asked(index: Path, tmp_path: Path):
    shared, copied = back_up(index, tmp_path / "shared"), back_up(index, tmp_path / "copied", share=False)
    assert Sharing.COPY not in shared.files
    assert set(copied.files) == {Sharing.COPY}
    assert shared.way.endswith(("by hard link", "by reflink"))
    inodes = [(folder / "parts/0001/tokens/codes.npy").stat().st_ino for folder in (index, shared.out, copied.out)]
    assert inodes[2] != inodes[0]
    assert (inodes[1] == inodes[0]) == (Sharing.HARD_LINK in shared.files)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a second file system: /dev/shm")
def test_another_file_system_gets_copies(index: Path, engine: Engine):
    out = Path("/dev/shm") / f"helios-backup-{os.getpid()}"
    try:
        assert set(back_up(index, out).files) == {Sharing.COPY}
        assert check_index(out) == []
    finally:
        shutil.rmtree(out, ignore_errors=True)


def test_what_is_there_is_not_overwritten(index: Path, tmp_path: Path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    (tmp_path / "file").touch()
    back_up(index, tmp_path / "backup")
    for call in (back_up, restore):
        with pytest.raises(HeliosError, match="holds 'mine'; give a folder that is empty"):
            call(index, tmp_path / "full")
        with pytest.raises(HeliosError, match="is a file"):
            call(index, tmp_path / "file")
        with pytest.raises(HeliosError, match="give a folder apart from it"):
            call(index, index / "backup")
    assert back_up(index, tmp_path / "backup").way == "was complete already"
    with pytest.raises(HeliosError, match="holds '"):
        restore(index, tmp_path / "backup")
    delete(index, [1], revision=1)
    with pytest.raises(HeliosError, match="holds '"):
        back_up(index, tmp_path / "backup")
    with pytest.raises(IndexFormatError, match="not a HELIOS index"):
        restore(tmp_path / "full", tmp_path / "new")


def test_damage_of_a_backup_is_found_when_it_is_restored(index: Path, tmp_path: Path):
    back_up(index, tmp_path / "backup", share=False)
    path = tmp_path / "backup" / "parts/0001/tokens/residuals.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    (finding,) = restore(tmp_path / "backup", tmp_path / "restored").findings
    assert finding.path == "parts/0001/tokens/residuals.npy"


@pytest.mark.parametrize("step", ["share_file", "fsync_tree", "write_manifest", "_finished"])
def test_an_interrupted_backup_goes_on(index: Path, tmp_path: Path, monkeypatch, step: str):
    usual = getattr(backup, step)

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(backup, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        back_up(index, tmp_path / "backup")
    if step != "_finished":
        with pytest.raises(IndexFormatError, match="the copy of an index is not finished"):
            read_manifest(tmp_path / "backup")
    monkeypatch.setattr(backup, step, usual)
    back_up(index, tmp_path / "backup")
    assert check_index(tmp_path / "backup") == []
    assert not (tmp_path / "backup" / ".copying").exists()


def test_a_finished_copy_of_another_snapshot_is_left_alone(index: Path, tmp_path: Path):
    back_up(index, tmp_path / "backup")
    (tmp_path / "backup" / ".copying").touch()
    delete(index, [1], revision=1)
    with pytest.raises(HeliosError, match="holds another snapshot"):
        back_up(index, tmp_path / "backup")


def test_a_commit_while_files_are_copied(index: Path, tmp_path: Path, monkeypatch):
    """The tombstones of the snapshot that was opened are gone: the newer one is copied whole."""
    usual, committed = backup.share_file, []

    def after_a_commit(source: Path, target: Path, **options):
        if not committed:
            committed.append(True)
            delete(index, [2, 5], revision=1)
        return usual(source, target, **options)

    monkeypatch.setattr(backup, "share_file", after_a_commit)
    assert back_up(index, tmp_path / "backup").manifest.generation == 2
    assert check_index(tmp_path / "backup") == []


def test_the_listing_names_who_reads_what(index: Path):
    script = (
        "import sys; from helios.index.snapshot import Snapshot; held = Snapshot.open(sys.argv[1]); "
        "print('open', flush=True); sys.stdin.readline()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", script, str(index)], **pipes) as reader:
        assert reader.stdout.readline() == "open\n"
        shutil.copytree(index / "parts" / "0001", index / "parts" / "0002")
        with WriteLock(index):
            listing = list_snapshots(index)
        assert [holder.pid for holder in listing.writers] == [os.getpid()]
        assert [piece.folder for piece in listing.pieces] == ["parts/0001", "links/0001", "codebooks/0001"]
        assert all([holder.pid for holder in piece.holders] == [reader.pid] for piece in listing.pieces)
        assert (
            "Snapshot.open" in listing.pieces[0].holders[0].command or "python" in listing.pieces[0].holders[0].command
        )
        (retired,) = listing.retired
        assert (retired.folder, retired.holders) == ("parts/0002", ())
        assert retired.bytes == listing.pieces[0].bytes
        reader.communicate("\n", timeout=60)
    listing = list_snapshots(index)
    assert not any(piece.holders for piece in listing.pieces)
    assert json.loads(json.dumps(listing.record()))["generation"] == 1
