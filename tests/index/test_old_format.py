"""An index of format 1 opens, is upgraded while it is read, and gives what the same one of format 2 gives."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from helios.config import load_config
from helios.corpus import CorpusStore
from helios.corpus.sample import QUESTIONS, sample_path
from helios.engine import Engine
from helios.errors import ChecksumError, ConfigError, IndexFormatError, WhereError
from helios.evaluation.questions import read_questions
from helios.index.fsck import check_index
from helios.index.manifest import read_manifest
from helios.index.settings import built_with
from helios.index.snapshot import Snapshot
from helios.types import Evidence, EvidenceEdge
from indexing.pipeline import build_index
from indexing.stage import file_entries
from indexing.stages import GraphStage, IngestStage, LinkStage

CONFIG = {
    "linking": {"source": "linker", "model": None, "threshold": None, "fuzzy": False, "dense": False},
    "encoder": {"model": None, "adapter": None, "runtime": "torch", "max_tokens": 256, "batch_tokens": 8192},
    "tokens": {"bits": 1, "centroids": None},
    "pipeline": {"link_chunk": 200, "encode_chunk": 2048},
    "search": {"k": 50, "candidates": 2000},
}
"""Settings as version 0.1 recorded them."""


@pytest.fixture(scope="module")
def old_index(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample index as version 0.1 wrote it."""
    index = tmp_path_factory.mktemp("old") / "index"
    write_format_1(sample_index, index)
    return index


def write_format_1(source: Path, index: Path) -> None:
    """One part with graph and codebook in it, a corpus without sources and metadata, tombstones as an array."""
    manifest = read_manifest(source)
    (part,), (links,), (codebook,) = manifest.parts, manifest.links, manifest.codebooks
    folder = index / "parts" / "0001"
    shutil.copytree(source / part.folder, folder)
    shutil.copytree(source / links.folder, folder / "graph")
    shutil.copytree(source / codebook.folder, folder / "tokens", dirs_exist_ok=True)
    for name in ("tables", "passages"):
        without_new_columns(folder / "corpus" / f"{name}.arrow")
    store = json.loads((folder / "corpus" / "corpus.json").read_bytes())
    sizes = {name: (folder / "corpus" / name).stat().st_size for name in store["files"]}
    (folder / "corpus" / "corpus.json").write_text(json.dumps(store | {"version": 1, "files": sizes}))
    (index / "tombstones").mkdir()
    np.save(index / "tombstones" / "0001-000000.npy", np.zeros(0, np.int64))
    old = {
        "name": "0001",
        "counts": part.counts.model_dump(),
        "corpus_sha256": part.corpus_sha256,
        "inputs_sha256": part.inputs_sha256,
        "stages": {"corpus": "a", "graph": "b", "tokens": "c", "lexical": "d"},
        "files": [entry.model_dump() for entry in file_entries(folder)],
        "tombstones": {"path": "tombstones/0001-000000.npy", "size": 0, "sha256": ""},
    }
    document = manifest.model_dump(mode="json", exclude={"links", "codebooks"})
    write_document(index, document | {"version": 1, "code_version": "0.1.0", "config": CONFIG, "parts": [old]})


def without_new_columns(path: Path) -> None:
    """Write an Arrow file again without the columns that version 1 of the corpus did not have."""
    reader = pa.ipc.open_file(path.read_bytes())
    numbers = range(reader.num_record_batches)
    batches = [reader.get_batch(number).drop_columns(["source", "metadata"]) for number in numbers]
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_document(index: Path, document: dict[str, Any]) -> None:
    """A manifest with the entry of its tombstones and its checksum."""
    for part in document["parts"]:
        path = index / part["tombstones"]["path"]
        content = path.read_bytes()
        part["tombstones"] |= {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    document.pop("checksum", None)
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    (index / "manifest.json").write_text(json.dumps(document | {"checksum": hashlib.sha256(text.encode()).hexdigest()}))


@pytest.fixture
def changed(old_index: Path, tmp_path: Path) -> Callable[[Callable[[dict[str, Any]], None]], Path]:
    """A copy of the old index whose manifest a function has changed."""

    def change(edit: Callable[[dict[str, Any]], None]) -> Path:
        index = Path(shutil.copytree(old_index, tmp_path / "index"))
        document = json.loads((index / "manifest.json").read_bytes())
        edit(document)
        write_document(index, document)
        return index

    return change


def comparable(evidence: Evidence) -> Evidence:
    """Without times, and without the sources that an old corpus does not know."""
    return replace(evidence, timings_ms={}, edges=tuple(map(without_source, evidence.edges)))


def without_source(edge: EvidenceEdge) -> EvidenceEdge:
    return edge if edge.passage is None else replace(edge, passage=replace(edge.passage, source=""))


def test_questions_find_the_same(old_index: Path, engine: Engine):
    with Snapshot.open(old_index) as snapshot:
        config = load_config(overrides=["encoder.runtime=torch"])
        old = Engine(snapshot, config, models=engine.models)
        for question in read_questions(sample_path() / QUESTIONS)[::4]:
            expected = comparable(engine.search(question.text, k=20))
            assert comparable(old.search(question.text, k=20)) == expected


def test_an_engine_takes_the_settings_of_the_old_build(old_index: Path, engine: Engine):
    with Engine.open(old_index) as old:
        assert old.config.encoder == engine.config.encoder
        assert old.config.advanced.encoder.windows == 1
        assert old.index.encoder == engine.index.encoder
    with pytest.raises(ConfigError, match="was built with"):
        Engine.open(old_index, overrides=["tokens.bits=2"])
    with Snapshot.open(old_index) as snapshot:
        assert built_with(snapshot).linking.source == "linker"


def test_the_manifest_becomes_one_of_now(old_index: Path):
    manifest = read_manifest(old_index)
    (part,), (links,), (codebook,) = manifest.parts, manifest.links, manifest.codebooks
    assert (manifest.version, part.folder, links.folder, codebook.folder) == (
        2, "parts/0001", "parts/0001/graph", "parts/0001/tokens",
    )  # fmt: skip
    assert part.components == ("corpus", "lexical", "tokens")
    assert (links.parts, links.edges, part.codebook) == (("0001",), part.counts.edges, codebook.name)
    assert {piece.pinned for piece in manifest.pieces} == {"parts/0001"}
    assert part.stages == {"corpus": "a", "tokens": "c", "lexical": "d"}
    assert links.stages == {"graph": "b"}
    assert check_index(old_index) == []


def test_every_file_is_still_checked(old_index: Path, tmp_path: Path):
    index = Path(shutil.copytree(old_index, tmp_path / "index"))
    for name in ("graph/edge_passages.npy", "tokens/rotation.npy", "tokens/codes.npy", "corpus/tables.arrow"):
        path = index / "parts" / "0001" / name
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        with pytest.raises(IndexFormatError, match=f"{path.name}: damaged"):
            Snapshot.open(index)
        path.write_bytes(content)
    Snapshot.open(index).close()


def test_deleted_nodes_of_an_old_index(old_index: Path, changed):
    def delete(document: dict[str, Any]) -> None:
        document["parts"][0]["counts"]["deleted"] = document["counts"]["deleted"] = 2

    index = changed(delete)
    np.save(index / "tombstones" / "0001-000000.npy", np.array([0, 70]))
    write_document(index, json.loads((index / "manifest.json").read_bytes()))
    assert check_index(index) == []
    with Engine.open(index) as engine, Engine.open(old_index) as whole:
        assert (engine.index.segment_count, engine.index.passage_count) == (65, 66)
        assert engine.corpus.passages.find(whole.corpus.passages[70 - 66].passage_id) is None
        assert engine.corpus.segment(0) == whole.corpus.segment(1)
        np.testing.assert_array_equal(engine.index.tokens.frequencies, whole.index.tokens.frequencies)  # not recorded


def test_filters_know_what_an_old_corpus_has(old_index: Path, engine: Engine):
    with Engine.open(old_index) as old:
        title = old.corpus.passages[3].title
        assert old.view(f"title = '{title}'").passage_count == engine.view(f"title = '{title}'").passage_count > 0
        assert old.view("source exists").node_count == 0
        assert old.view("kind = 'infobox'").segment_count > 0
        with pytest.raises(WhereError, match="no record has the field 'year'"):
            old.view("year > 1990")


def test_an_old_part_of_some_stages_alone(changed):
    def without_vectors(document: dict[str, Any]) -> None:
        part = document["parts"][0]
        part["files"] = [entry for entry in part["files"] if entry["path"].startswith("corpus/")]
        part["stages"] = {"corpus": "a"}

    manifest = read_manifest(changed(without_vectors))
    assert (manifest.links, manifest.codebooks, manifest.parts[0].codebook) == ((), (), "")


@pytest.mark.parametrize("missing", ["parts", "generation", "counts"])
def test_an_old_manifest_that_lacks_something(changed, missing: str):
    def damage(document: dict[str, Any]) -> None:
        if missing == "parts":
            document["parts"] = [{"tombstones": document["parts"][0]["tombstones"]}]
        else:
            del document[missing]

    index = changed(damage)
    with pytest.raises(IndexFormatError, match=r"manifest\.json: damaged: .*restore it or build"):
        read_manifest(index)


def test_an_old_manifest_that_was_edited(old_index: Path, tmp_path: Path):
    shutil.copy(old_index / "manifest.json", tmp_path)
    text = (tmp_path / "manifest.json").read_text()
    (tmp_path / "manifest.json").write_text(text.replace('"generation": 1', '"generation": 2'))
    with pytest.raises(ChecksumError):
        read_manifest(tmp_path)


def test_a_build_replaces_it_by_one_of_now(old_index: Path, tmp_path: Path):
    index = Path(shutil.copytree(old_index, tmp_path / "index"))
    with Snapshot.open(index) as reading:
        config, stages = load_config(overrides=["linking.source=none"]), (IngestStage(), LinkStage(), GraphStage())
        manifest = build_index(sample_path(), index, config=config, stages=stages).manifest
        assert (manifest.generation, manifest.parts[0].folder) == (2, "parts/0002")
        assert (index / "parts" / "0001").is_dir()
        assert CorpusStore.open(reading.parts[0].path("corpus")).segment_count == 66
    assert json.loads((index / "manifest.json").read_bytes())["version"] == 2
    assert [path.name for path in sorted((index / "tombstones").iterdir())] == ["0002-000000.npz"]
