"""An index that changes: what comes is found, what goes is gone, and what is merged is the same to the last bit."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from helios.config import load_config
from helios.corpus.sample import QUESTIONS, sample_path
from helios.engine import Engine
from helios.errors import CorpusError, HeliosError, IndexLockedError
from helios.evaluation.questions import read_questions
from helios.index.fsck import check_index
from helios.index.lock import WriteLock
from helios.index.manifest import read_manifest
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot
from helios.models.encoder import MiniLMEncoder
from helios.retrieval.pipeline import Models
from helios.types import Evidence, Passage, Table
from indexing.living import Index
from indexing.living.compaction import MANY_PARTS, groups
from indexing.pipeline import build_index

LAKES = {
    "id": "lakes", "title": "Lakes of Germany", "header": ["Lake", "State"],
    "rows": [["Chiemsee", "Bavaria"], ["Müritz", "Mecklenburg"]], "links": [[0, 0, "chiemsee"]],
}  # fmt: skip
CHIEMSEE = {"id": "chiemsee", "title": "Chiemsee", "text": "The Chiemsee is a lake near Prien in Bavaria."}
PRIEN = "Which lake is near Prien?"
Answers = list[list[tuple]]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample with the links that its tables have: linking costs nothing."""
    index = tmp_path_factory.mktemp("base") / "index"
    build_index(sample_path(), index, config=load_config(overrides=SETTINGS))
    return index


SETTINGS = ["encoder.runtime=torch", "linking.source=hyperlinks"]


@pytest.fixture
def index(base: Path, tmp_path: Path) -> Index:
    return copied(base, tmp_path / "index")


def copied(source: Path, target: Path) -> Index:
    return Index.open(shutil.copytree(source, target), wait=0, overrides=["encoder.runtime=torch"])


@pytest.fixture(scope="module")
def models():
    models = Models(threads=1)
    yield models
    models.close()


@pytest.fixture(scope="module")
def search(models: Models) -> Callable[..., Evidence]:
    """Opens an index as it is now, and asks."""

    def search(index: Index, question: str, **options) -> Evidence:
        with Engine.open(index.directory, overrides=["encoder.runtime=torch"], models=models) as engine:
            return engine.search(question, **options)

    return search


@pytest.fixture(scope="module")
def answers(models: Models) -> Callable[[Index], Answers]:
    """What some of the sample's questions find in an index as it is now, by ids."""
    questions = [question.text for question in read_questions(sample_path() / QUESTIONS)[::8]]

    def answers(index: Index) -> Answers:
        with Engine.open(index.directory, overrides=["encoder.runtime=torch"], models=models) as engine:
            return [content(engine.search(question, k=30)) for question in [*questions, PRIEN]]

    return answers


def content(evidence: Evidence) -> list[tuple]:
    return [
        (edge.segment, edge.passage, edge.links, edge.score, edge.probability, edge.origin) for edge in evidence.edges
    ]


def records(index: Index) -> tuple[list[Table], list[Passage]]:
    with Snapshot.open(index.directory) as snapshot:
        corpus = IndexReader.of(snapshot).corpus
        return list(corpus.tables), list(corpus.passages)


def is_sound(index: Index) -> bool:
    return check_index(index.directory) == []


def test_what_is_added_is_found(index: Index, search):
    before = search(index, PRIEN)
    change = index.add([LAKES], [CHIEMSEE])
    assert (change.generation, change.tables, change.segments, change.passages, change.links) == (2, 1, 2, 1, 1)
    best = search(index, PRIEN).edges[0]
    assert (str(best.segment.segment_id), best.passage.passage_id) == ("lakes#0", "chiemsee")
    assert (before.generation, [edge for edge in before.edges if edge.passage == best.passage]) == (1, [])
    assert is_sound(index)


def test_an_id_that_is_there_is_refused_and_nothing_is_added(index: Index):
    index.add([LAKES])
    files = sorted(index.directory.rglob("*"))
    with pytest.raises(CorpusError, match="the index has table 'lakes' already; `update` replaces a record by id"):
        index.add([LAKES], [CHIEMSEE])
    with pytest.raises(CorpusError, match=r"tables\[0\]"):
        index.add([CHIEMSEE])
    assert sorted(index.directory.rglob("*")) == files
    assert read_manifest(index.directory).generation == 2


def test_what_is_deleted_is_gone_also_after_compaction(index: Index, search):
    index.add([LAKES], [CHIEMSEE])
    change = index.delete(["chiemsee", "lakes", "nowhere"])
    assert (change.deleted_tables, change.deleted_segments, change.deleted_passages) == (1, 2, 1)
    assert change.missing == ("nowhere",)
    for _ in range(2):
        found = search(index, PRIEN, k=1000)
        assert all(edge.passage is None or edge.passage.passage_id != "chiemsee" for edge in found.edges)
        assert all(edge.segment is None or edge.segment.segment_id.table_id != "lakes" for edge in found.edges)
        index.compact()
    assert len(read_manifest(index.directory).parts) == 1
    assert read_manifest(index.directory).counts.deleted == 0
    assert is_sound(index)


def test_an_update_replaces_by_id(index: Index, search):
    index.add([LAKES], [CHIEMSEE])
    change = index.update([{**LAKES, "rows": [["Chiemsee", "Bayern"]]}], [{**CHIEMSEE, "text": "A lake at Prien."}])
    assert (change.replaced, change.deleted_segments, change.segments, change.links) == (2, 2, 1, 1)
    best = search(index, PRIEN).edges[0]
    assert (best.segment.cells, best.passage.text) == (("Chiemsee", "Bayern"), "A lake at Prien.")
    assert index.update(passages=[{**CHIEMSEE, "id": "new"}]).replaced == 0
    assert is_sound(index)


def test_old_rows_are_linked_to_a_new_passage_again(index: Index):
    index.add([LAKES])
    assert index.add(passages=[CHIEMSEE]).links == 1
    assert index.delete(["chiemsee"]).generation == read_manifest(index.directory).generation == 4
    assert len(read_manifest(index.directory).links) == 4  # the row that named it is linked anew in the same commit
    assert index.add(passages=[CHIEMSEE]).links == 1


def test_files_and_filters(index: Index, tmp_path: Path):
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "lakes.csv").write_text("Lake,State\nChiemsee,Bavaria\n")
    (folder / "broken.parquet").write_text("PAR1 is no table")
    (folder / "notes.md").write_text("# Müritz\n\nThe Müritz is a lake.\n")
    change = index.add_files(folder)
    assert (change.tables, change.passages) == (1, 1)
    assert [reject.file for reject in change.rejected] == ["broken.parquet"]
    assert index.delete(source="lakes.csv").deleted_tables == 1
    assert index.delete(where="source = 'notes.md'").deleted_passages == 1
    assert index.delete(where="source = 'notes.md'").generation == 4
    assert is_sound(index)


@pytest.mark.slow
def test_adds_in_any_order_and_their_compaction_are_one_build(base: Path, tmp_path: Path, answers):
    """The same codebook, the same records, each encoded on its own: the same scores and links to the last bit.

    Vectors of a build differ in their last bits by what is encoded beside a text, and so do its scores.
    """
    built = copied(base, tmp_path / "built")
    tables, passages = records(built)
    found = []
    for number, batches in enumerate((1, 4)):
        index = copied(base, tmp_path / str(number))
        index.__dict__["encoder"] = MiniLMEncoder.load(runtime="torch", batch_tokens=1)
        index.delete([*(table.table_id for table in tables), *(passage.passage_id for passage in passages)])
        index.compact()
        order = np.arange(len(tables) + len(passages))
        if number:
            order = np.random.default_rng(number).permutation(order)
        for batch in np.array_split(order, batches):
            own = [[*tables, *passages][place] for place in batch.tolist()]
            index.add([one for one in own if isinstance(one, Table)], [one for one in own if isinstance(one, Passage)])
        found.append(answers(index))
        assert len(read_manifest(index.directory).parts) == batches + 1
        index.compact(whole=True)
        assert len(read_manifest(index.directory).parts) == 1
        assert answers(index) == found[-1]
        assert is_sound(index)
    assert [sorted(map(repr, one)) for one in found[1]] == [sorted(map(repr, one)) for one in found[0]]
    for one, other in zip(answers(built), found[0], strict=True):
        assert one[0][:3] == other[0][:3]
        assert one[0][3] == pytest.approx(other[0][3], abs=0.1)


def test_a_pinned_reader_sees_what_it_saw(index: Index, models: Models):
    with Engine.open(index.directory, overrides=["encoder.runtime=torch"], models=models) as engine:
        before = content(engine.search(PRIEN))
        index.add([LAKES], [CHIEMSEE])
        index.delete(["danube"])
        index.compact(whole=True)
        assert content(engine.search(PRIEN)) == before
        assert len(list((index.directory / "parts").iterdir())) == 2
    index.delete(["lakes"])
    assert [path.name for path in (index.directory / "parts").iterdir()] == [
        part.name for part in read_manifest(index.directory).parts
    ]


def test_a_delete_during_a_compaction_holds(index: Index, search, monkeypatch: pytest.MonkeyPatch):
    index.add([LAKES], [CHIEMSEE])
    other = Index.open(index.directory, overrides=["encoder.runtime=torch"])
    writing = Index._writing

    def late(self: Index):
        monkeypatch.setattr(Index, "_writing", writing)
        other.delete(["lakes"])
        other.add(passages=[{**CHIEMSEE, "id": "twin"}])
        return writing(self)

    monkeypatch.setattr(Index, "_writing", late)
    index.compact(whole=True)
    assert [part.counts.deleted for part in read_manifest(index.directory).parts] == [2, 0]
    found = search(index, PRIEN, k=1000).edges
    assert all(edge.segment is None or edge.segment.segment_id.table_id != "lakes" for edge in found)
    assert {"chiemsee", "twin"} <= {edge.passage.passage_id for edge in found if edge.passage}
    assert is_sound(index)


def test_a_writer_that_is_busy_is_named(index: Index):
    with WriteLock(index.directory), pytest.raises(IndexLockedError, match=r"process \d+ on .*; waited 0.2 s"):
        Index.open(index.directory, wait=0.2).delete(["danube"])


def test_an_error_of_the_disk_leaves_the_old_snapshot(index: Index, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr("indexing.living.draft.fsync_tree", _full)
        with pytest.raises(HeliosError, match="the disk is full .* the index is as it was before"):
            index.add([LAKES])
    assert read_manifest(index.directory).generation == 1
    assert index.add([LAKES]).generation == 2
    assert is_sound(index)


def _full(path: Path) -> None:
    raise OSError(28, "No space left on device", str(path))


def test_parts_are_merged_by_size(index: Index):
    for number in range(3):
        index.add(passages=[{**CHIEMSEE, "id": str(number)}])
    manifest = read_manifest(index.directory)
    assert [[part.name for part in group] for group in groups(manifest)] == [["0002", "0003", "0004"]]
    assert [len(group) for group in groups(manifest, whole=True)] == [4]
    index.compact()
    assert len(read_manifest(index.directory).parts) == 2
    assert index.compact().generation == read_manifest(index.directory).generation


def test_parts_are_merged_without_being_asked_where_that_is_due(index: Index, search):
    for number in range(MANY_PARTS - 1):
        index.add(passages=[{**CHIEMSEE, "id": str(number)}])
    assert index.compact_if_due() is None
    assert index.add([LAKES], [CHIEMSEE]).parts == MANY_PARTS + 1
    assert not index.is_due(most=1)
    assert index.compact_if_due().parts == 2
    index.delete(["lakes"])
    assert index.compact_if_due() is None
    index.delete(["0", "1"])
    assert (index.is_due(), index.is_due(most=9)) == (True, False)
    assert index.compact_if_due().parts == 2
    assert read_manifest(index.directory).counts.deleted == 0
    assert search(index, PRIEN).edges[0].passage.title == "Chiemsee"
    assert is_sound(index)


@pytest.mark.slow
def test_a_new_codebook_fits_what_the_index_holds(index: Index, search):
    index.add([LAKES], [CHIEMSEE])
    index.delete(["danube"])
    assert 0.04 < index.compact().outliers < 0.1
    before = search(index, PRIEN).edges[0]
    index.compact(refit=True)
    manifest = read_manifest(index.directory)
    assert ([part.codebook for part in manifest.parts], manifest.counts.deleted) == (["0002"], 0)
    assert [path.name for path in (index.directory / "codebooks").iterdir()] == ["0002"]
    best = search(index, PRIEN).edges[0]
    assert (best.segment, best.passage, best.links) == (before.segment, before.passage, before.links)
    assert index.add(passages=[{**CHIEMSEE, "id": "twin"}]).parts == 2
    assert is_sound(index)


def test_an_index_may_be_empty(index: Index, search):
    index.delete(where="id exists")
    for _ in range(2):
        assert search(index, PRIEN).edges == ()
        index.compact()
    index.add([LAKES], [CHIEMSEE])
    assert search(index, PRIEN).edges[0].passage.passage_id == "chiemsee"
    assert is_sound(index)


def test_a_compaction_of_nothing_takes_away_what_a_killed_writer_left(index: Index) -> None:
    shutil.copytree(index.directory / "parts" / "0001", index.directory / "parts" / "0002")
    assert check_index(index.directory)
    generation = read_manifest(index.directory).generation
    assert index.compact(whole=True).generation == generation
    assert check_index(index.directory) == []
