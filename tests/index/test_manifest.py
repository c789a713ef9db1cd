"""The manifest: round trip, atomic replacement, and refusing what is foreign, newer or damaged."""

import json
from pathlib import Path

import pytest

from helios.errors import ChecksumError, ConfigError, IndexFormatError
from helios.index.manifest import (
    FORMAT_VERSION,
    MANIFEST_FILE,
    Codebook,
    Counts,
    FileEntry,
    Links,
    Manifest,
    ModelEntry,
    Part,
    Piece,
    creation_date,
    read_manifest,
    write_manifest,
)

HASH = "0" * 64


def manifest(**changes) -> Manifest:
    part = Part(
        name="0001",
        folder="parts/0001",
        counts=Counts(tables=1, segments=2, passages=3, edges=1),
        corpus_sha256=HASH,
        inputs_sha256=HASH,
        stages={"corpus": "k1", "tokens": "k2"},
        files=(
            FileEntry(path="corpus/tables.arrow", size=3, sha256=HASH),
            FileEntry(path="tokens/codes.npy", size=4, sha256=HASH),
        ),
        tombstones=FileEntry(path="tombstones/0001-000000.npz", size=128, sha256=HASH),
        codebook="0003",
    )
    graph, rotation = (FileEntry(path=name, size=5, sha256=HASH) for name in ("graph.json", "rotation.npy"))
    fields = {
        "generation": 1,
        "created": "2026-01-01T00:00:00+00:00",
        "code_version": "0.1.0",
        "counts": part.counts,
        "corpus_sha256": HASH,
        "models": {"encoder": ModelEntry(name="mini", sha256=HASH)},
        "config": {"search": {"k": 5}},
        "parts": (part,),
        "links": (Links(name="0002", folder="links/0002", parts=("0001",), edges=1, files=(graph,)),),
        "codebooks": (Codebook(name="0003", folder="codebooks/0003", files=(rotation,)),),
    }
    return Manifest(**{**fields, **changes})


def rewrite(directory: Path, **changes) -> None:
    """Change fields of a manifest on the disk, keeping its old checksum."""
    path = directory / MANIFEST_FILE
    path.write_text(json.dumps(json.loads(path.read_bytes()) | changes), encoding="utf-8")


def test_round_trip(tmp_path: Path):
    write_manifest(tmp_path, manifest())
    assert read_manifest(tmp_path) == manifest()
    assert read_manifest(tmp_path).parts[0].components == ("corpus", "tokens")
    assert [piece.pinned for piece in manifest().pieces] == ["parts/0001", "links/0002", "codebooks/0003"]
    assert list(manifest().listed) == [
        "parts/0001/corpus/tables.arrow", "parts/0001/tokens/codes.npy", "links/0002/graph.json",
        "codebooks/0003/rotation.npy", "tombstones/0001-000000.npz",
    ]  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST_FILE]


def test_leftover_of_a_crashed_write_is_ignored(tmp_path: Path):
    write_manifest(tmp_path, manifest())
    (tmp_path / f"{MANIFEST_FILE}.tmp").write_text('{"format": "hel', encoding="utf-8")
    assert read_manifest(tmp_path) == manifest()
    write_manifest(tmp_path, manifest(generation=2))
    assert read_manifest(tmp_path).generation == 2


def test_content_hash_ignores_the_date_alone():
    assert manifest().content_hash() == manifest(created="2030-01-01T00:00:00+00:00").content_hash()
    assert manifest().content_hash() != manifest(config={"search": {"k": 6}}).content_hash()
    assert manifest().content_hash() != manifest(generation=2).content_hash()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "damaged: not JSON"),
        (b"\xff\xff", "damaged: not JSON"),
        (b"", "damaged: not JSON"),
        (b"[]", "expected an object"),
        (b"{}", "foreign"),
        (b'{"format": "lucene", "version": 1}', "foreign"),
        (b"\x00" * 100, "damaged: not JSON"),
        (b'{"format": "helios\x00index"}', "damaged: not JSON"),
        (b'{"config": ' + b"[" * 100_000, "damaged: more than 20 objects in each other"),
        (b'{"config": ' + b'{"a": ' * 30 + b"1" + b"}" * 31, "damaged: more than 20 objects in each other"),
        (b'{"version": ' + b"9" * 5000 + b"}", "damaged: not JSON"),
    ],
)
def test_foreign_and_damaged_manifests_are_refused(tmp_path: Path, content: bytes, message: str):
    (tmp_path / MANIFEST_FILE).write_bytes(content)
    with pytest.raises(IndexFormatError, match=message) as caught:
        read_manifest(tmp_path)
    assert MANIFEST_FILE in str(caught.value)


def test_newer_format_asks_for_an_upgrade(tmp_path: Path):
    write_manifest(tmp_path, manifest())
    newer = FORMAT_VERSION + 1
    rewrite(tmp_path, version=newer, code_version="9.9.9")
    with pytest.raises(IndexFormatError, match=rf"format version {newer}, written by HELIOS 9\.9\.9.*upgrade"):
        read_manifest(tmp_path)


def test_every_changed_byte_is_noticed(tmp_path: Path):
    write_manifest(tmp_path, manifest())
    good = (tmp_path / MANIFEST_FILE).read_bytes()
    for position in range(0, len(good), 7):
        changed = bytearray(good)
        changed[position] ^= 1
        (tmp_path / MANIFEST_FILE).write_bytes(changed)
        try:
            assert read_manifest(tmp_path) == manifest()  # only white space may change
        except IndexFormatError:
            continue


def test_edited_manifest_is_damaged(tmp_path: Path):
    write_manifest(tmp_path, manifest())
    rewrite(tmp_path, generation=7)
    with pytest.raises(ChecksumError, match=MANIFEST_FILE):
        read_manifest(tmp_path)


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "corpus/../../x", "", "tokens/\x00", "a\nb", "\ud800"])
def test_paths_outside_the_index_are_refused(path: str):
    with pytest.raises(ValueError, match="leaves the index folder"):
        FileEntry(path=path, size=1, sha256=HASH)


def test_more_nodes_than_the_files_can_hold_are_refused(tmp_path: Path):
    (part,) = manifest().parts
    counts = part.counts.model_copy(update={"passages": 10**15})
    part = part.model_copy(update={"counts": counts})
    write_manifest(tmp_path, manifest().model_copy(update={"parts": (part,)}))
    with pytest.raises(IndexFormatError, match="1000000000000002 nodes cannot be in files of 7 bytes"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    "folder", ["parts", "parts/1", "../parts/0001", "tombstones/0001", "parts/0001/a/b", "/parts/0001"]
)
def test_pieces_lie_in_their_folders(folder: str):
    with pytest.raises(ValueError, match="is none of parts, links, codebooks"):
        Piece(name="0001", folder=folder, files=())


def test_what_is_missing_is_explained(tmp_path: Path):
    with pytest.raises(IndexFormatError, match="no such folder; `helios index build"):
        read_manifest(tmp_path / "absent")
    with pytest.raises(IndexFormatError, match=r"not a HELIOS index: manifest\.json is missing"):
        read_manifest(tmp_path)
    (tmp_path / ".build").mkdir()
    with pytest.raises(IndexFormatError, match="not finished"):
        read_manifest(tmp_path)


def test_date_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert creation_date() == "1970-01-01T00:00:00+00:00"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    with pytest.raises(ConfigError, match="SOURCE_DATE_EPOCH is 'soon'"):
        creation_date()


def test_counts_add():
    assert Counts(tables=1, tokens=2) + Counts(tables=3, deleted=1) == Counts(tables=4, tokens=2, deleted=1)
