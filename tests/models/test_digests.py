"""Digests of large files are remembered while the file is the same, and never when it may have changed."""

import json
import os
from pathlib import Path

import pytest

from helios.models import digests
from helios.models.digests import REMEMBERED, remembered_digest
from helios.places import cache_folder

LONG_AGO = 1_600_000_000


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of long ago, and a cache of its own. A file's last change of its state cannot be set back: none counts."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(digests, "SETTLED", -1)
    path = tmp_path / "weights"
    path.write_bytes(b"one")
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def asked(path: Path, answer: str, *, elsewhere: bool = True) -> tuple[str, bool]:
    """The digest as another process would get it, by default, and whether the file was read."""
    read = []
    if elsewhere:
        digests._READ.clear()
    return remembered_digest(path, lambda: read.append(1) or answer), bool(read)


def test_another_process_does_not_read_the_file_again(file: Path):
    assert asked(file, "a") == ("a", True)
    assert asked(file, "b") == ("a", False)


def test_a_file_that_changed_is_read(file: Path):
    asked(file, "a")
    file.write_bytes(b"two")  # of the same size
    os.utime(file, (LONG_AGO, LONG_AGO))  # and as old: its state changed now
    assert asked(file, "b") == ("b", True)


def test_a_file_that_changed_just_now_is_remembered_by_this_process_alone(file: Path, monkeypatch):
    monkeypatch.setattr(digests, "SETTLED", 60 * 10**9)
    assert asked(file, "a") == ("a", True)
    assert asked(file, "b", elsewhere=False) == ("a", False)
    assert asked(file, "b") == ("b", True)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"[" * 10**5, b'{"x": 1}', b"\xff"])
def test_a_damaged_memory_is_no_memory(file: Path, content: bytes):
    asked(file, "a")
    (cache_folder() / "digests.json").write_bytes(content)
    assert asked(file, "b") == ("b", True)
    assert asked(file, "c") == ("b", False)


def test_a_cache_that_cannot_be_written_costs_only_time(file: Path, monkeypatch, tmp_path: Path):
    (tmp_path / "no folder").write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no folder"))
    assert asked(file, "a") == ("a", True)
    assert asked(file, "b") == ("b", True)


def test_the_oldest_are_forgotten(file: Path):
    for number in range(REMEMBERED + 3):
        other = file.with_name(str(number))
        other.write_bytes(b"x")
        asked(other, str(number))
    known = json.loads((cache_folder() / "digests.json").read_text())
    assert len(known) == REMEMBERED and str(file.with_name("2").resolve()) not in known
    assert not list(cache_folder().glob("*.tmp"))
