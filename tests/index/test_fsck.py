"""Files that have their checksums and yet contradict each other or what compiled kernels rely on: fsck finds each."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from helios.index.fsck import check_index
from helios.index.manifest import Links, read_manifest, write_manifest
from helios.index.tombstones import Tombstones
from indexing.commit import write_tombstones
from indexing.cut import cut_index
from indexing.stage import file_entries


@pytest.fixture
def index(sample_index: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample_index, tmp_path / "index"))


def tampered(index: Path, name: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Change an array of the index, and the manifest's record of it."""
    path = index / name
    np.save(path, change(np.load(path)))
    manifest, update = read_manifest(index), {}
    for kind in ("parts", "links", "codebooks"):
        pieces = [
            piece.model_copy(update={"files": file_entries(index / piece.folder)})
            for piece in getattr(manifest, kind)
        ]  # fmt: skip
        update[kind] = tuple(pieces)
    write_manifest(index, manifest.model_copy(update=update))


def with_value(place: int | tuple[int, ...], value: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array[place] = value
        return array

    return change


def swapped(array: np.ndarray) -> np.ndarray:
    """The first two that differ change places."""
    other = int(np.flatnonzero(array != array[0])[0])
    array[[0, other]] = array[[other, 0]]
    return array


PART, LINKS, CODEBOOK = "parts/0001", "links/0001", "codebooks/0001"
DAMAGE = [
    (f"{PART}/corpus/segments.npy", with_value(1, 3), "rows, not 3"),
    (f"{PART}/corpus/passages.numbers.npy", swapped, "is not found by its id"),
    (f"{PART}/tokens/offsets.npy", with_value(1, 10**6), "offsets must rise"),
    (f"{PART}/tokens/codes.npy", with_value(5, 60_000), "numbers must be from 0"),
    (f"{PART}/tokens/frequencies.npy", with_value(7, -1), "from 0 to 133"),
    (f"{PART}/tokens/frequencies.npy", with_value(7, 134), "from 0 to 133"),
    (f"{PART}/tokens/pooled.npy", lambda array: array[:-1], "holds 66 mean vectors, not 67"),
    (f"{PART}/tokens/scales.npy", lambda array: array[:-1], "expected uint8"),
    (f"{PART}/lexical/nodes.npy", with_value(0, 133), "node numbers must be below 133"),
    (f"{PART}/lexical/nodes.npy", with_value(0, -1), "node numbers must be below 133"),
    (f"{PART}/lexical/terms.npy", swapped, "terms must be unique and sorted"),
    (f"{PART}/lexical/offsets.npy", with_value(1, -5), "offsets must rise"),
    (f"{PART}/lexical/counts.npy", with_value(0, 0), "a term that stands nowhere in its node"),
    (f"{PART}/lexical/counts.npy", with_value(0, 9), "differs from the counts of terms"),
    (f"{PART}/lexical/lengths.npy", with_value(3, 1), "differs from the counts of terms"),
    (f"{PART}/lexical/title-terms.npy", with_value(0, 10**6), "numbers must be from 0"),
    (f"{PART}/lexical/title-terms.npy", swapped, "differs from title-terms.npy"),
    (f"{PART}/lexical/title-hashes.npy", swapped, "terms must be unique and sorted"),
    (f"{LINKS}/edge_passages.npy", with_value(0, 67), "a passage number out of range"),
    (f"{LINKS}/edge_segments.npy", swapped, "differs from segment_offsets.npy"),
    (f"{LINKS}/passage_edges.npy", swapped, "differs from edge_passages.npy"),
    (f"{LINKS}/link_offsets.npy", with_value(1, 0), "an edge without a link"),
    (f"{LINKS}/link_columns.npy", with_value(0, 99), "of column 99, which row"),
    (f"{LINKS}/link_ends.npy", with_value(0, 9999), "which row"),
    (f"{CODEBOOK}/cell_offsets.npy", with_value(1, 10**6), "offsets must rise"),
    (f"{CODEBOOK}/centroids.npy", with_value((0, 0), np.nan), "not a finite number"),
]


@pytest.mark.parametrize(
    ("name", "change", "problem"), DAMAGE, ids=[f"{name}-{n}" for n, (name, *_) in enumerate(DAMAGE)]
)
def test_contradictions_are_found(index: Path, name: str, change, problem: str):
    tampered(index, name, change)
    errors = [finding for finding in check_index(index) if finding.severity == "error"]
    assert any(problem in error.problem for error in errors), errors


def test_the_nodes_of_a_term_must_ascend(index: Path):
    offsets = np.load(index / PART / "lexical" / "offsets.npy")
    first = int(offsets[np.flatnonzero(np.diff(offsets) > 1)[0]])

    def change(nodes: np.ndarray) -> np.ndarray:
        nodes[[first, first + 1]] = nodes[[first + 1, first]]
        return nodes

    tampered(index, f"{PART}/lexical/nodes.npy", change)
    assert any(finding.problem == "the nodes of a term must ascend" for finding in check_index(index))


def test_totals_that_are_not_those_of_the_parts(index: Path):
    manifest = read_manifest(index)
    counts = manifest.counts.model_copy(update={"passages": 5})
    write_manifest(index, manifest.model_copy(update={"counts": counts}))
    (finding,) = check_index(index)
    assert (finding.path, "its parts hold" in finding.problem) == ("manifest.json", True)


def test_a_codebook_that_is_not_there(index: Path):
    manifest = read_manifest(index)
    part = manifest.parts[0].model_copy(update={"codebook": "0009"})
    write_manifest(index, manifest.model_copy(update={"parts": (part,)}))
    assert any("refers to codebook 0009" in finding.problem for finding in check_index(index))


def test_more_deleted_nodes_of_a_token_than_nodes_that_have_it(index: Path):
    manifest = read_manifest(index)
    (part,) = manifest.parts
    rare = int(np.flatnonzero(np.load(index / PART / "tokens" / "frequencies.npy") == 1)[0])
    nodes, tokens, counts = np.array([0, 1]), np.array([rare], np.int32), np.array([2], np.int32)
    entry = write_tombstones(index, part.name, Tombstones(nodes, tokens, counts), revision=1)
    deleted = part.counts.model_copy(update={"deleted": 2})
    part = part.model_copy(update={"tombstones": entry, "counts": deleted})
    write_manifest(index, manifest.model_copy(update={"parts": (part,), "counts": deleted}))
    errors = [finding for finding in check_index(index) if finding.severity == "error"]
    assert [error.problem for error in errors] == ["has fewer nodes of a token than are deleted"]


@pytest.fixture(scope="module")
def parts_of_three(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = tmp_path_factory.mktemp("cut") / "index"
    cut_index(sample_index, index, 3)
    return index


def test_edges_over_several_parts_and_layers(parts_of_three: Path, tmp_path: Path):
    """A layer that lists its nodes: one of them is in no part."""
    assert check_index(parts_of_three) == []
    index = Path(shutil.copytree(parts_of_three, tmp_path / "index"))
    layers = read_manifest(index).links
    assert [len(layer.parts) for layer in layers] == [1, 2, 3]
    layer = next(layer for layer in layers if (index / layer.folder / "passages.npy").exists())
    tampered(index, f"{layer.folder}/passages.npy", with_value(-1, 10**6))
    errors = [finding for finding in check_index(index) if finding.severity == "error"]
    assert [error.path for error in errors] == [f"{layer.folder}/passages.npy"]


def test_a_layer_whose_parts_are_in_another_order(parts_of_three: Path, tmp_path: Path):
    """Its links stand in cells of other rows then."""
    index = Path(shutil.copytree(parts_of_three, tmp_path / "index"))
    manifest = read_manifest(index)
    *others, last = manifest.links
    turned = Links(**last.model_dump(exclude={"parts"}), parts=tuple(reversed(last.parts)))
    write_manifest(index, manifest.model_copy(update={"links": (*others, turned)}))
    assert any(finding.path.startswith(turned.folder) for finding in check_index(index))
