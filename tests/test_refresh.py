"""An engine that takes newer snapshots: between questions, never within one; what the old one took comes back."""

import gc
import shutil
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from helios.engine import Engine
from helios.errors import ConfigError, IndexFormatError
from helios.index.holders import holders_of
from helios.index.manifest import MANIFEST_FILE, read_manifest, write_manifest
from helios.index.snapshot import Snapshot, remove_retired
from helios.index.tombstones import Tombstones
from helios.retrieval.state import SearchState
from helios.types import Evidence
from indexing.commit import write_tombstones
from indexing.values import build_from

QUESTION = "In what year was the element discovered that melts in a warm hand?"
SETTINGS = ["encoder.runtime=torch"]


@pytest.fixture
def index(sample_index: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample_index, tmp_path / "index"))


@pytest.fixture
def follow(index: Path, engine: Engine):
    """Engines over the index that lend the models of the shared one; closed in the end."""
    opened: list[Engine] = []

    def open_index(**options) -> Engine:
        opened.append(Engine.open(index, overrides=SETTINGS, models=engine.models, **options))
        return opened[-1]

    yield open_index
    for one in opened:
        one.close()


def delete(index: Path, nodes: list[int]) -> None:
    """A new snapshot in which these nodes are deleted; the tombstones of the old one go at once."""
    manifest = read_manifest(index)
    (part,) = manifest.parts
    deleted = replace(Tombstones.none(), nodes=np.array(nodes, np.int64))
    entry = write_tombstones(index, part.name, deleted, revision=manifest.generation)
    counts = part.counts.model_copy(update={"deleted": len(nodes)})
    update = {"parts": (part.model_copy(update={"tombstones": entry, "counts": counts}),), "counts": counts}
    write_manifest(index, manifest.model_copy(update=update | {"generation": manifest.generation + 1}))
    remove_retired(index, read_manifest(index))


def asked(engine: Engine, **options) -> Evidence:
    return replace(engine.search(QUESTION, k=10, **options), timings_ms={})


def test_refresh_takes_a_newer_snapshot(index: Path, follow: Callable[..., Engine]):
    engine = follow()
    before = asked(engine), asked(engine, where="kind = 'table'")
    assert not engine.refresh()
    delete(index, list(range(40)))
    assert asked(engine) == before[0]
    assert engine.refresh()
    assert not engine.refresh()
    fresh = follow()
    after = asked(engine), asked(engine, where="kind = 'table'")
    assert after == (asked(fresh), asked(fresh, where="kind = 'table'"))
    assert [evidence.generation for evidence in (*before, *after)] == [1, 1, 2, 2]
    assert after[0].edges != before[0].edges
    assert engine.index.segment_count == fresh.index.segment_count


def test_what_did_not_change_is_not_read_again(index: Path, follow: Callable[..., Engine]):
    engine = follow()
    asked(engine)
    old = engine.index.parts[0]
    delete(index, [3])
    engine.refresh()
    (new,) = engine.index.parts
    assert new.tokens is old.tokens
    assert new.postings is old.postings
    assert new.view.deleted.nodes.tolist() == [3]


def test_an_engine_that_was_never_asked_loads_nothing(index: Path, follow: Callable[..., Engine]):
    engine = follow()
    delete(index, [3])
    assert engine.refresh()
    assert not engine.opened.is_used
    assert not {"tokens", "corpus", "graph"} & set(engine.index.__dict__)


@dataclass(frozen=True, slots=True)
class Between:
    """A stage that does something while a question is on its way."""

    act: Callable[[], None]
    name: str = "between"
    depth: int = 0

    def run(self, state: SearchState) -> SearchState:
        self.act()
        return state


def test_a_question_sees_one_snapshot(index: Path, follow: Callable[..., Engine]):
    """The index changes and the engine is refreshed after the first stage of a question."""
    wanted, refreshed = Event(), []

    def change() -> None:
        if wanted.is_set():
            wanted.clear()
            delete(index, list(range(40)))
            refreshed.append(engine.refresh())
            assert holders_of(index / "parts" / "0001"), "the question still holds its snapshot"

    engine = follow(stages=lambda usual: [usual[0], Between(change), *usual[1:]])
    expected = asked(engine)
    old = weakref.ref(engine.opened)
    wanted.set()
    assert asked(engine) == expected
    assert refreshed == [True]
    assert asked(engine).generation == 2
    gc.collect()
    assert old() is None


def test_calls_that_must_agree(index: Path, follow: Callable[..., Engine]):
    engine = follow()
    with engine.pinned() as fixed:
        edge = asked(fixed).edges[0]
        delete(index, list(range(66)))
        assert engine.refresh()
        assert not fixed.refresh()
        assert fixed.corpus.segment_number(edge.segment.segment_id) >= 0
        assert asked(fixed).edges[0] == edge
        fixed.close()
    assert asked(engine).edges[0].segment is None
    with pytest.raises(KeyError):
        engine.corpus.segment_number(edge.segment.segment_id)


def test_searches_beside_commits_and_refreshes(index: Path, follow: Callable[..., Engine]):
    """Every question gets what an engine over the snapshot of its generation gives, in order of time."""
    engine, done = follow(), Event()
    expected = {1: asked(engine).edges}

    def search() -> list[Evidence]:
        found = []
        while not done.is_set():
            found.append(asked(engine))
        return found

    with ThreadPoolExecutor(3) as pool:
        searches = [pool.submit(search) for _ in range(3)]
        for number in range(1, 5):
            delete(index, list(range(10 * number)))
            expected[number + 1] = asked(follow()).edges
            assert engine.refresh()
        assert asked(engine).edges == expected[5]
        done.set()
        found = [one.result() for one in searches]
    for evidences in found:
        generations = [evidence.generation for evidence in evidences]
        assert generations == sorted(generations)
        assert all(evidence.edges == expected[evidence.generation] for evidence in evidences)


@pytest.mark.slow
def test_handles_come_back(index: Path, follow: Callable[..., Engine]):
    engine = follow()

    def refreshed(number: int) -> int:
        delete(index, [number])
        assert engine.refresh()
        engine.view("kind = 'table'")
        return len(list(Path("/proc/self/fd").iterdir()))

    asked(engine)
    counts = [refreshed(number) for number in range(50)]
    assert counts[-1] <= counts[1], counts
    assert engine.snapshot.manifest.generation == 51


@pytest.mark.slow
def test_old_pieces_go_after_the_last_question(index: Path, tmp_path: Path):
    values = [{"id": "rivers", "title": "Rivers", "header": ["River", "Length"], "rows": [["Aare", "288 km"]]}]
    passages = [{"id": "aare", "title": "Aare", "text": "The Aare flows through Bern."}]
    index = tmp_path / "values"
    build_from(values, passages, index)
    with Engine.open(index) as engine:
        assert engine.ask("What is the length of the Aare?").text == "288 km"
        with engine.pinned() as fixed:
            build_from([{**values[0], "rows": [["Aare", "291 km"]]}], passages, index)
            assert engine.refresh()
            assert engine.ask("What is the length of the Aare?").text == "291 km"
            assert fixed.ask("What is the length of the Aare?").text == "288 km"
            assert holders_of(index / "parts" / "0001")
        assert not holders_of(index / "parts" / "0001")
        assert "parts/0001" in remove_retired(index, read_manifest(index))
        assert engine.ask("What is the length of the Aare?").text == "291 km"


def test_a_snapshot_that_cannot_be_opened_is_not_taken(index: Path, follow: Callable[..., Engine]):
    engine = follow()
    expected = asked(engine)
    delete(index, [1])
    manifest = (index / MANIFEST_FILE).read_bytes()
    (index / MANIFEST_FILE).write_bytes(manifest[:-10])
    with pytest.raises(IndexFormatError, match="not JSON"):
        engine.refresh()
    (index / MANIFEST_FILE).write_bytes(manifest)
    (tombstones,) = (index / "tombstones").iterdir()
    content = tombstones.read_bytes()
    tombstones.write_bytes(content[:-1])
    with pytest.raises(IndexFormatError, match="damaged"):
        engine.refresh()
    assert asked(engine) == expected
    tombstones.write_bytes(content)
    assert engine.refresh()
    assert len(holders_of(index / "parts" / "0001")) == 1
    engine.close()
    assert not holders_of(index / "parts" / "0001")
    assert not engine.refresh()
    with pytest.raises(RuntimeError, match="the engine is closed"):
        engine.search(QUESTION)


def test_an_index_that_was_made_anew_is_another_snapshot(
    index: Path, sample_index: Path, follow: Callable[..., Engine]
):
    """Its generation is 1 again."""
    engine = follow()
    manifest = read_manifest(index)
    write_manifest(index, manifest.model_copy(update={"created": "2030-01-01T00:00:00+00:00"}))
    assert engine.refresh()


def test_an_engine_follows(index: Path, follow: Callable[..., Engine], caplog: pytest.LogCaptureFixture):
    engine = follow(follow=0.05)
    delete(index, [1])
    until(lambda: engine.snapshot.manifest.generation == 2)
    assert asked(engine).generation == 2
    manifest = (index / MANIFEST_FILE).read_bytes()
    (index / MANIFEST_FILE).write_bytes(b"{}")
    until(lambda: engine.follower.problem is not None)
    assert asked(engine).generation == 2
    assert "goes on with its snapshot" in caplog.text
    (index / MANIFEST_FILE).write_bytes(manifest)
    delete(index, [1, 2])
    until(lambda: engine.snapshot.manifest.generation == 3)
    until(lambda: engine.follower.problem is None)
    thread = engine.follower._thread
    engine.close()
    assert not thread.is_alive()


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_seconds_that_are_none(index: Path, seconds: float):
    with pytest.raises(ConfigError, match="expected seconds above 0"):
        Engine.open(index, follow=seconds)
    with Snapshot.open(index):
        assert len(holders_of(index / "parts" / "0001")) == 1


def until(true: Callable[[], bool], *, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)
