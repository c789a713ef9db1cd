"""Crashes writers of a small index at every durable step, and looks at what is left; run by test_crashes.py.

    python crashed_writes.py WORK POINTS CLONES KILLS SEED

A scenario is an operation on an index (a build, a deletion, an addition, a compaction, a backup, a repair). For each of
at most POINTS of its steps, spread over all, it runs in a fork that ends at the step. What is on the disk then, and
CLONES states that a dead machine could have left instead (files and names that were not forced to the disk are lost,
zero or cut off), must be the index before or the index after, sound, and the operation must succeed when it runs again.
KILLS forks get SIGKILL at a random moment instead. Prints one JSON line a scenario. Forks need OMP_NUM_THREADS=1:
threads of torch do not outlive them.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np

from helios.config import load_config
from helios.index import crashing
from helios.index.backup import back_up
from helios.index.fsck import check_index
from helios.index.lock import WriteLock
from helios.index.manifest import MANIFEST_FILE, read_manifest, write_manifest
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot, remove_retired
from helios.index.tombstones import Tombstones
from indexing.commit import write_tombstones
from indexing.living.index import Index
from indexing.living.repair import repair_index
from indexing.pipeline import build_index
from indexing.stages import GraphStage, IngestStage, LinkStage

STAGES = (IngestStage(), LinkStage(), GraphStage())
CORPUS = Path("corpus")
INDEX, BACKUP = "index", "backup"


@dataclass(frozen=True)
class Scenario:
    """An operation on a folder, and the index in it that the operation changes."""

    name: str
    run: Callable[[Path], object]
    changes: str = INDEX
    damage: Callable[[Path], object] | None = None
    """What is done to the index before; it need not be sound then before the operation."""


@dataclass
class Counts:
    """What happened in a scenario."""

    scenario: str
    steps: int = 0
    crashes: int = 0
    clones: int = 0
    kills: int = 0
    before: int = 0
    after: int = 0
    lost: int = 0
    """Files, names and contents that clones lack."""
    problems: list[str] = field(default_factory=list)


def build(source: str) -> Callable[[Path], object]:
    config = load_config(None, [f"linking.source={source}", "advanced.linking.chunk=2"])
    return lambda work: build_index(CORPUS, work / INDEX, config=config, stages=STAGES)


def delete(work: Path) -> None:
    index = work / INDEX
    with WriteLock(index):
        manifest = read_manifest(index)
        (part,) = manifest.parts
        if not part.counts.deleted:
            deleted = replace(Tombstones.none(), nodes=np.array([0, 2], np.int64))
            entry = write_tombstones(index, part.name, deleted, revision=1)
            counts = part.counts.model_copy(update={"deleted": 2})
            parts = (part.model_copy(update={"tombstones": entry, "counts": counts}),)
            update = {"parts": parts, "counts": counts, "generation": manifest.generation + 1}
            manifest = manifest.model_copy(update=update)
            write_manifest(index, manifest)
        remove_retired(index, manifest)


@cache
def opened() -> Index:
    """One that has loaded its models before the forks."""
    settings = ["linking.source=hyperlinks", "encoder.runtime=torch"]
    index = Index(Path(), load_config(None, settings))
    _ = index.encoder
    return index


def changed(work: Path, change: Callable[[Index], object]) -> None:
    index = opened()
    index.directory = work / INDEX
    change(index)


def add(index: Index) -> None:
    row = {"id": "t9", "title": "Table 9", "header": ["name"], "rows": [["Thing 1"], ["Thing 9"]]}
    table = {**row, "links": [[0, 0, "p1"], [1, 0, "p9"]]}
    passage = {"id": "p9", "title": "Thing 9", "text": "Passage 9 speaks of thing 9."}
    with Snapshot.open(index.directory) as snapshot:
        known = IndexReader.of(snapshot).corpus.tables.find("t9") is not None
    index.delete(["nothing that is there"]) if known else index.add([table], [passage])


def compact(index: Index) -> None:
    """And one more writer, which removes what a compaction left that crashed after its commit."""
    index.compact(whole=True)
    index.delete(["nothing that is there"])


def damage(work: Path) -> None:
    """Vectors of a part, and a layer of links."""
    manifest = read_manifest(work / INDEX)
    for piece, name in ((manifest.parts[-1], "tokens/residuals.npy"), (manifest.links[-1], "edge_passages.npy")):
        path = work / INDEX / piece.folder / name
        path.write_bytes(path.read_bytes()[:-4] + b"bad!")


def repair(work: Path) -> None:
    """By the object that has loaded its models: a fork has no time to load them again."""
    index = opened()
    index.directory = work / INDEX
    with patch("indexing.living.repair.Index", lambda directory, config, progress: index):
        repair_index(work / INDEX)


def build_whole(work: Path) -> None:
    opened()
    config = load_config(None, ["linking.source=hyperlinks", "encoder.runtime=torch"])
    build_index(CORPUS, work / INDEX, config=config)


SCENARIOS = (
    Scenario("build", build("hyperlinks")),
    Scenario("build again", build("none")),
    Scenario("delete", delete),
    Scenario("build over deletions", build("hyperlinks")),
    Scenario("backup", lambda work: back_up(work / INDEX, work / BACKUP, share=False), BACKUP),
    Scenario("build with vectors", build_whole),
    Scenario("add", lambda work: changed(work, add)),
    Scenario("delete a record", lambda work: changed(work, lambda index: index.delete(["p1"]))),
    Scenario("compact", lambda work: changed(work, compact)),
    Scenario("repair", repair, damage=damage),
)


def main() -> None:
    points, clones, kills, seed = map(int, sys.argv[2:6])
    os.chdir(sys.argv[1])
    before = Path("state-0")
    before.mkdir()
    for number, scenario in enumerate(SCENARIOS, start=1):
        if scenario.damage:
            scenario.damage(before)
        counts = Tried(scenario, before, random.Random(seed + number)).run(points, clones, kills)
        sys.stdout.write(json.dumps(counts.__dict__) + "\n")
        sys.stdout.flush()
        after = Path(f"state-{number}")
        shutil.copytree(before, after)
        scenario.run(after)
        before = after


class Tried:
    """A scenario that is crashed again and again."""

    def __init__(self, scenario: Scenario, before: Path, chance: random.Random) -> None:
        self.scenario, self.before, self.chance = scenario, before, chance
        self.counts = Counts(scenario.name)
        self.work, self.clone, self.log = Path("work"), Path("clone"), Path("synced.jsonl")
        self.taken = Path("steps").resolve()

    def run(self, points: int, clones: int, kills: int) -> Counts:
        self.fresh()
        started = time.monotonic()
        assert self.forked(0) == 0
        duration = time.monotonic() - started
        self.hashes = (self.content(self.before), self.content(self.work))
        steps = int(self.taken.read_text())
        self.counts.steps = steps
        for at in sorted(self.chance.sample(range(1, steps + 1), min(points, steps))):
            start = self.fresh()
            assert self.forked(at) == crashing.CRASHED, f"{self.scenario.name} did not crash at step {at}"
            self.counts.crashes += 1
            for _ in range(clones):
                self.counts.lost += lose(self.work, self.clone, self.before, self.log, start, self.chance)
                self.counts.clones += 1
                self.judge(self.clone, f"a clone of step {at}")
            self.judge(self.work, f"step {at}")
        for _ in range(kills):
            self.fresh()
            self.forked(kill_after=self.chance.uniform(0, duration))
            self.counts.kills += 1
            self.judge(self.work, "a kill")
        return self.counts

    def fresh(self) -> "Names":
        """The state before, as folders with the inodes of what they hold."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.before, self.work)
        self.log.write_bytes(b"")
        return names_below(self.work)

    def forked(self, at: int | None = None, *, kill_after: float | None = None) -> int:
        """Run in a fork that crashes at a step, or is killed; its exit status, that of the signal below 0."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if at is not None:
                    os.environ[crashing.AT] = str(at)
                os.environ[crashing.LOG] = str(self.log.resolve())
                self.scenario.run(self.work)
                self.taken.write_text(str(next(crashing._steps) - 1))
                code = 0
            finally:
                os._exit(code)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)

    def content(self, work: Path) -> str | None:
        index = work / self.scenario.changes
        return read_manifest(index).content_hash() if (index / MANIFEST_FILE).exists() else None

    def judge(self, work: Path, what: str) -> None:
        """The index is the one before or the one after, it is sound, and the operation succeeds now."""
        try:
            found = self.content(work)
            self.counts.before += found == self.hashes[0]
            self.counts.after += found == self.hashes[1]
            if found not in self.hashes:
                raise AssertionError("is neither the index before nor the one after")
            for name in (INDEX, BACKUP):
                damaged = self.scenario.damage and name == self.scenario.changes and found == self.hashes[0]
                if not damaged and (work / name / MANIFEST_FILE).exists():
                    errors = [one for one in check_index(work / name) if one.severity == "error"]
                    if errors:
                        raise AssertionError(f"{name} is damaged: {errors}")
            self.scenario.run(work)
            if self.content(work) != self.hashes[1]:
                raise AssertionError("run again, it gives another index")
            if left := check_index(work / self.scenario.changes):
                raise AssertionError(f"run again, it leaves {left}")
        except Exception as error:  # noqa: BLE001  all that a user could meet is a finding here
            self.counts.problems.append(f"{what}: {type(error).__name__}: {error}")


Names = dict[int, dict[str, int]]


def names_below(root: Path) -> Names:
    """For every folder, by its inode, the inodes of its entries: a folder that was renamed is the same."""
    return {Path(folder).stat().st_ino: _entries(Path(folder)) for folder, _, _ in os.walk(root)}


def _entries(folder: Path) -> dict[str, int]:
    return {entry.name: entry.inode() for entry in os.scandir(folder)}


def lose(work: Path, clone: Path, before: Path, log: Path, start: Names, chance: random.Random) -> int:
    """Make `clone` what a dead machine may have left of `work`; returns how many things it lacks.

    Durable are the names that a folder had when it was synced last (at the start, what it had then), and the content of
    files that were there at the start or were synced. Of all else each is kept, lost, zero or cut off by chance.
    """
    shutil.rmtree(clone, ignore_errors=True)
    shutil.copytree(work, clone)
    records = [json.loads(line) for line in log.read_text().splitlines()]
    durable = start | {record["inode"]: record["names"] for record in records if "names" in record}
    contents = {inode for names in start.values() for inode in names.values()} | {one["inode"] for one in records}
    lost = 0
    for folder, folders, names in os.walk(work):
        place = Path(folder)
        known = durable.get(place.stat().st_ino, {})
        for name in [*folders, *names]:
            path, copy = place / name, clone / (place / name).relative_to(work)
            inode = path.lstat().st_ino
            if known.get(name) != inode and name != ".lock" and chance.random() < 0.5:
                old = before / path.relative_to(work)
                if name not in known:
                    shutil.rmtree(copy) if copy.is_dir() else copy.unlink()
                    lost += 1
                elif old.is_file():
                    shutil.copyfile(old, copy)
                    lost += 1
            elif path.is_file() and inode not in contents and chance.random() < 0.5:
                size = path.stat().st_size
                kept = copy.read_bytes()[: chance.choice([0, size // 2])]
                copy.write_bytes(kept + bytes(chance.choice([0, size - len(kept)])))
                lost += 1
        folders[:] = [name for name in folders if (clone / (place / name).relative_to(work)).is_dir()]
    return lost


if __name__ == "__main__":
    main()
