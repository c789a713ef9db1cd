"""Descriptions that are no regular files, or without end: an error at once, and what they name stays as it is."""

import os
import shutil
import stat
from pathlib import Path

import pytest
from pydantic import ValidationError

from helios.engine import Engine
from helios.errors import ConfigError, IndexFormatError
from helios.executors.base import Limits
from helios.index.durable import MOST_BYTES, read_whole
from helios.index.manifest import MANIFEST_FILE, read_manifest, write_manifest
from helios.sources.registry_file import read_sources, write_source
from helios.sources.spec import read_spec


def odd(path: Path, kind: str) -> Path:
    """A pipe, or a file of more bytes than anybody would read."""
    if kind == "pipe":
        os.mkfifo(path)
    else:
        with path.open("wb") as file:
            file.truncate(3 << 30)
    return path


@pytest.mark.parametrize(("kind", "says"), [("pipe", "not a regular file"), ("large", "3,221,225,472 bytes, at most")])
def test_a_file_of_sources(tmp_path: Path, kind: str, says: str):
    path = odd(tmp_path / "sources.yaml", kind)
    with pytest.raises(ConfigError, match=says):
        read_sources(path)
    before = path.stat()
    with pytest.raises(ConfigError, match=says):
        write_source(path, "a", read_spec("a", {"kind": "sqlite", "path": "a.sqlite"}, where="a test"))
    assert (path.stat().st_ino, path.stat().st_mode) == (before.st_ino, before.st_mode)


def test_a_device_is_not_replaced(tmp_path: Path):
    if os.getuid() != 0:
        pytest.skip("only root makes devices")
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except OSError:
        pytest.skip("no devices can be made here")
    with pytest.raises(ConfigError, match="not a regular file"):
        write_source(device, "a", read_spec("a", {"kind": "sqlite", "path": "a.sqlite"}, where="a test"))
    assert stat.S_ISCHR(device.stat().st_mode)


@pytest.mark.parametrize(("kind", "says"), [("pipe", "not a regular file"), ("large", "3,221,225,472 bytes, at most")])
def test_a_manifest(tmp_path: Path, kind: str, says: str):
    odd(tmp_path / MANIFEST_FILE, kind)
    with pytest.raises(IndexFormatError, match=says):
        Engine.open(tmp_path)


def test_a_part_that_is_listed_twice(sample_index: Path, tmp_path: Path):
    index = shutil.copytree(sample_index, tmp_path / "index")
    manifest = read_manifest(index)
    write_manifest(index, manifest.model_copy(update={"parts": manifest.parts * 3}))
    with pytest.raises(IndexFormatError, match="lists parts/0001 3 times"):
        Engine.open(index)


def test_a_file_that_fits_is_read_whole(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"some bytes")
    assert read_whole(tmp_path / "file") == b"some bytes"
    assert MOST_BYTES > 1 << 20


def test_half_of_a_character_in_a_question(engine: Engine):
    found = engine.search("Which river\ud800 is it?", k=1)
    assert found.question == "Which river? is it?" and len(found.edges) == 1


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), 1e300, 0.0, -1.0])
def test_a_deadline_that_no_clock_has(seconds: float):
    with pytest.raises(ValidationError, match="timeout"):
        Limits(timeout=seconds)
