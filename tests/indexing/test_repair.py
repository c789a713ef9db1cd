"""`helios index fsck --repair`: what can be made again is, what cannot is dropped and told; nothing deleted returns."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.engine import Engine
from helios.errors import HeliosError
from helios.index.fsck import check_index
from helios.index.manifest import read_manifest, write_manifest
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot
from helios.index.tombstones import Tombstones
from helios.types import Evidence
from indexing.commit import write_tombstones
from indexing.cut import cut_index
from indexing.living.repair import repair_index

QUESTION = "In what year was the element discovered that melts in a warm hand?"


@pytest.fixture
def index(sample_index: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample_index, tmp_path / "index"))


@pytest.fixture
def parts(sample_index: Path, tmp_path: Path) -> Path:
    """The sample index in three parts with a layer of links each."""
    cut_index(sample_index, tmp_path / "parts", 3)
    return tmp_path / "parts"


def damage(index: Path, name: str) -> None:
    path = index / name
    path.write_bytes(path.read_bytes()[:-8] + b"damaged!")


def delete(index: Path, nodes: list[int]) -> None:
    manifest = read_manifest(index)
    part, *others = manifest.parts
    deleted = replace(Tombstones.none(), nodes=np.array(nodes, np.int64))
    entry = write_tombstones(index, part.name, deleted, revision=1)
    counts = part.counts.model_copy(update={"deleted": len(nodes)})
    part = part.model_copy(update={"tombstones": entry, "counts": counts})
    total = manifest.counts.model_copy(update={"deleted": len(nodes)})
    update = {"parts": (part, *others), "counts": total, "generation": manifest.generation + 1}
    write_manifest(index, manifest.model_copy(update=update))


def asked(index: Path, engine: Engine) -> Evidence:
    with Snapshot.open(index) as snapshot:
        found = Engine(snapshot, engine.config, models=engine.models).search(QUESTION, k=20)
        return replace(found, timings_ms={}, generation=0)


def edges_of(index: Path) -> set[tuple]:
    with Snapshot.open(index) as snapshot:
        reader = IndexReader.of(snapshot)
        graph, corpus = reader.graph, reader.corpus
        return {
            (corpus.segment_id(int(row)), corpus.passages.id(int(passage)))
            for row, passage in zip(graph.edge_segments, graph.edge_passages, strict=True)
        }


def test_a_sound_index_is_left_alone(index: Path):
    report = repair_index(index)
    assert (report.generation, report.findings, report.lost, report.rebuilt) == (1, (), (), ())
    assert read_manifest(index).generation == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tokens/residuals.npy", "lexical/nodes.npy", "lexical/title-terms.npy"])
def test_derived_components_are_made_again(index: Path, engine: Engine, name: str):
    """The same vectors under the same codebook: no score changes, and what was deleted stays so."""
    delete(index, [3, 70])
    expected, links = asked(index, engine), edges_of(index)
    damage(index, f"parts/0001/{name}")
    report = repair_index(index)
    assert (report.rebuilt, report.lost, report.left, report.relinked) == (("0001",), (), (), 0)
    assert any(finding.path == f"parts/0001/{name}" for finding in report.findings)
    assert check_index(index) == []
    (part,) = read_manifest(index).parts
    assert (part.counts.deleted, read_manifest(index).generation) == (2, 3)
    assert edges_of(index) == links
    assert asked(index, engine) == expected


@pytest.mark.slow
def test_a_damaged_codebook_is_fitted_again(index: Path, engine: Engine):
    expected = asked(index, engine)
    damage(index, "codebooks/0001/centroids.npy")
    report = repair_index(index)
    assert (report.rebuilt, report.lost, report.left) == (("0001",), (), ())
    assert [codebook.name for codebook in read_manifest(index).codebooks] == ["0002"]
    assert asked(index, engine) == expected, "the sample is its own sample, so the codebook is the same"


def test_a_part_without_its_corpus_is_dropped(parts: Path, engine: Engine):
    """Its ids are told, and edges between what is left are left."""
    with Snapshot.open(parts) as snapshot:
        second = IndexReader.of(snapshot).parts[1].corpus
        tables, passages = set(second.tables.ids()), set(second.passages.ids())
    before = edges_of(parts)
    damage(parts, "parts/0002/corpus/tables.hashes.npy")
    report = repair_index(parts)
    (lost,) = report.lost
    assert (lost.part, set(lost.table_ids), set(lost.passage_ids)) == ("0002", tables, passages)
    assert (lost.tables, lost.passages) == (len(tables), len(passages))
    assert (report.rebuilt, report.left) == ((), ())
    assert [part.name for part in read_manifest(parts).parts] == ["0001", "0003"]
    left = {edge for edge in before if edge[0].table_id not in tables and edge[1] not in passages}
    assert edges_of(parts) == left
    assert 0 < len(left) < len(before)
    assert asked(parts, engine).edges


def test_a_damaged_layer_is_linked_again(parts: Path):
    before = edges_of(parts)
    last = read_manifest(parts).links[-1]
    damage(parts, f"{last.folder}/edge_passages.npy")
    report = repair_index(parts)
    assert (report.lost, report.rebuilt, report.left) == ((), (), ())
    assert report.relinked == 66
    after = edges_of(parts)
    assert len(before & after) >= 0.95 * len(before | after)


def test_several_parts_that_share_a_codebook(parts: Path, engine: Engine):
    for number in (1, 3):
        damage(parts, f"parts/000{number}/tokens/codes.npy")
    links = edges_of(parts)
    report = repair_index(parts)
    assert (report.rebuilt, report.lost, report.left) == (("0001", "0003"), (), ())
    assert edges_of(parts) == links
    assert asked(parts, engine).edges


def test_nobody_knows_what_was_deleted(parts: Path):
    """A part whose tombstones are damaged is dropped: what was deleted must not come back."""
    delete(parts, [0, 1])
    damage(parts, "tombstones/0001-000001.npz")
    report = repair_index(parts)
    assert [lost.part for lost in report.lost] == ["0001"]
    assert "what is deleted of it cannot be read" in report.lost[0].reason
    assert report.left == ()


def test_nothing_was_deleted(index: Path):
    damage(index, "tombstones/0001-000000.npz")
    report = repair_index(index)
    assert (report.lost, report.left, read_manifest(index).counts.deleted) == ((), (), 0)


def test_wrong_totals_are_counted_again(index: Path):
    manifest = read_manifest(index)
    write_manifest(index, manifest.model_copy(update={"counts": manifest.counts.model_copy(update={"tables": 1})}))
    report = repair_index(index)
    assert (report.lost, report.rebuilt, report.left) == ((), (), ())
    assert read_manifest(index).counts.tables == 12


def test_nothing_can_be_kept(index: Path):
    damage(index, "parts/0001/corpus/passages.arrow")
    manifest = read_manifest(index)
    with pytest.raises(HeliosError, match="restore a backup, or build the index again"):
        repair_index(index)
    assert read_manifest(index) == manifest
    assert (index / "parts" / "0001" / "corpus" / "passages.arrow").exists()


def test_the_command(parts: Path):
    damage(parts, "parts/0002/corpus/passages.arrow")
    runner, app = CliRunner(), build_app()
    found = runner.invoke(app, ["index", "fsck", str(parts)])
    assert (found.exit_code, "--repair" in found.stdout) == (1, True)
    mended = runner.invoke(app, ["index", "fsck", str(parts), "--repair", "--json"])
    report = json.loads(mended.stdout)
    assert (mended.exit_code, report["sound"], report["lost"][0]["part"]) == (0, True, "0002")
    assert runner.invoke(app, ["index", "fsck", str(parts), "--repair"]).stdout.endswith("sound\n")
