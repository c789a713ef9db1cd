"""Changed bytes in every file of an index: refused, or the answer of the undamaged index, or found by fsck.

A few changes a file here; HELIOS_FUZZ=10000 makes as many in all, and HELIOS_FUZZ_SEED other ones.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helios.engine import Engine
from helios.errors import ChecksumError, IndexFormatError
from helios.index import checksums
from helios.index.durable import sha256_file
from helios.index.fsck import check_index
from helios.index.manifest import MANIFEST_FILE, Manifest, read_manifest, write_manifest
from helios.index.snapshot import Snapshot

WORKER = Path(__file__).with_name("damaged_index.py")
CASES = int(os.environ.get("HELIOS_FUZZ", "20"))
SEED = os.environ.get("HELIOS_FUZZ_SEED", "1")


@pytest.fixture(scope="module")
def outcomes(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, list[dict[str, Any]]]:
    """What became of the cases, without and with checksums to match: each in a fork of one process with the models."""
    work = tmp_path_factory.mktemp("work")
    command = [sys.executable, str(WORKER), str(sample_index), str(work), str(CASES), "--seed", SEED, "--both"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120 + 10 * CASES, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [case["resealed"] for case in found] == [False] * CASES + [True] * CASES
    return {False: found[:CASES], True: found[CASES:]}


@pytest.mark.slow
def test_a_changed_byte_is_refused(outcomes):
    """Every file of the sample's index is small enough to be read against its checksum, so no change gets through."""
    assert [case for case in outcomes[False] if case["engine"] != "refused" or case["fsck"] != "refused"] == []


@pytest.mark.slow
def test_a_change_that_no_checksum_finds_ends_no_process(outcomes):
    """Files with checksums to match are what an index too large to be read on opening looks like, and a forged one."""
    assert [case for case in outcomes[True] if case["engine"] not in ("refused", "same", "other")] == []
    assert [case for case in outcomes[True] if case["fsck"] not in ("refused", "same")] == []


def damaged(index: Path, copy: Path, name: str) -> Path:
    """A copy in which the last byte of a file is another."""
    shutil.copytree(index, copy)
    content = bytearray((copy / name).read_bytes())
    content[-1] ^= 1
    (copy / name).write_bytes(content)
    return copy


@pytest.mark.parametrize("name", checksums.PAYLOAD)
def test_payload_of_a_large_index_is_read_by_fsck_and_on_demand(sample_index, tmp_path, monkeypatch, name):
    monkeypatch.setattr(checksums, "SMALL", 0)
    index = damaged(sample_index, tmp_path / "index", f"parts/0001/{name}")
    with Snapshot.open(index) as snapshot:
        for component in ("corpus", "tokens", "lexical"):
            snapshot.parts[0].verified(component)
    with pytest.raises(ChecksumError, match=rf"{name}: damaged: SHA-256 is \w+…, expected \w+…; restore it or build"):
        Engine.open(index, overrides=["advanced.search.verify=true"])
    assert [finding.path for finding in check_index(index)] == [f"parts/0001/{name}"]


def test_everything_else_is_read_when_its_component_is_used(sample_index, tmp_path, monkeypatch):
    monkeypatch.setattr(checksums, "SMALL", 0)
    names = [name for name in read_manifest(sample_index).listed if not name.endswith(checksums.PAYLOAD)]
    for number, name in enumerate(names):
        index = damaged(sample_index, tmp_path / str(number), name)
        with pytest.raises(ChecksumError, match=rf"{name}: damaged"), Snapshot.open(index) as snapshot:
            for component in ("corpus", "tokens", "lexical"):
                snapshot.parts[0].verified(component)
            snapshot.parts[0].verified_codebook()
            snapshot.links[0].verified()


def resealed(index: Path, copy: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    """A copy with one file changed and its checksum made to match, as whoever forges an index would."""
    shutil.copytree(index, copy)
    path = copy / name
    path.write_bytes(change(path.read_bytes()))
    manifest = json.loads((copy / MANIFEST_FILE).read_text())
    for piece in (*manifest["parts"], *manifest["links"]):
        for entry in piece["files"]:
            if f"{piece['folder']}/{entry['path']}" == name:
                entry |= {"sha256": sha256_file(path), "size": path.stat().st_size}
    manifest.pop("checksum")
    write_manifest(copy, Manifest.model_validate(manifest))
    return copy


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("parts/0001/corpus/tables.arrow", lambda data: data.replace(b"rows", b"\x80ows")),
        ("parts/0001/tokens/frequencies.npy", lambda data: data[:128] + b"\xff" * (len(data) - 128)),
        ("links/0001/edge_segments.npy", lambda data: array_bytes(np.load(BytesIO(data)) + np.int32(1))),
        ("links/0001/passage_edges.npy", lambda data: array_bytes(np.load(BytesIO(data))[::-1].copy())),
    ],
    ids=["a name that is no text", "counts that are none", "edges of another row", "edges of another passage"],
)
def test_a_forged_file_is_refused_in_words(sample_index: Path, tmp_path: Path, name: str, change):
    forged = resealed(sample_index, tmp_path / "index", name, change)
    with pytest.raises(IndexFormatError), Engine.open(forged) as engine:
        engine.search("Into which sea does the river flow that passes Kraków and Warsaw?", k=1)
    assert check_index(forged)


def array_bytes(array: np.ndarray) -> bytes:
    file = BytesIO()
    np.save(file, array)
    return file.getvalue()
