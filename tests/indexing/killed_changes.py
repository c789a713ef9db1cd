"""Changes an index in forked processes that are killed at random moments; run by test_living_killed.py.

    python tests/indexing/killed_changes.py CORPUS WORK KILLS SEED

Imports happen once, then every process is a fork that adds, updates, deletes and compacts until it gets SIGKILL. It
says which change it begins and which one is done. After every kill the index must hold what it held after the last
change that was done, or after the one that was begun, and be sound. Prints one JSON line: kills, changes that were
done, and how many of the changes that were cut off had happened.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from helios.config import load_config
from helios.index.fsck import check_index
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot
from indexing.living import Index
from indexing.pipeline import build_index

SECONDS = 1.2
"""A process lives no longer."""
Held = dict[str, str]
"""Ids of what the changes brought, with their texts."""


def main() -> None:
    corpus, work, kills, seed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    random.seed(seed)
    folder = work / "index"
    config = load_config(None, ["encoder.runtime=torch", "linking.source=hyperlinks"])
    build_index(corpus, folder, config=config)
    own = held(folder)
    index = Index.open(folder, overrides=["encoder.runtime=torch"])
    index.add(passages=[passage("warm")])  # models are loaded and kernels compiled before anything is forked
    index.delete(["warm"])
    index.compact(whole=True)
    now, done, begun = own, 0, 0
    for number in range(kills):
        changes = random_changes(now, number)
        finished, cut_off = run_and_kill(index, changes)
        for _, after in changes[:finished]:
            now = after(now)
        found = held(folder)
        if cut_off and found != now:
            now = changes[finished][1](now)
            begun += 1
        assert found == now, f"after kill {number}: lost {set(now) - set(found)}, came back {set(found) - set(now)}"
        errors = [one for one in check_index(folder) if one.severity == "error"]
        assert not errors, errors
        done += finished
    index.compact(whole=True)
    assert held(folder) == now
    assert check_index(folder) == []
    assert not list((folder / ".build" / "changes").iterdir())
    shutil.rmtree(folder)
    sys.stdout.write(json.dumps({"kills": kills, "done": done, "begun": begun}) + "\n")


def passage(name: str, text: str = "A text.") -> dict[str, str]:
    return {"id": name, "title": name, "text": text}


Change = tuple[Callable[[Index], object], Callable[[Held], Held]]


def random_changes(now: Held, number: int) -> list[Change]:
    """Changes and what an index holds after each of them."""
    names = [f"new-{number}-{place}" for place in range(40)]
    known = [name for name in now if name.startswith("new-")]
    changes: list[Change] = []
    for place, name in enumerate(names):
        kind = random.choice(("add", "add", "update", "delete", "compact"))
        if kind == "add":
            changes.append(_adding(name, "A text."))
            known.append(name)
        elif kind == "update" and known:
            changes.append(_adding(random.choice(known), f"Text {number} {place}."))
        elif kind == "delete" and known:
            changes.append(_deleting(known.pop(random.randrange(len(known)))))
        else:
            changes.append(_compacting(whole=random.random() < 0.3))
    return changes


def _adding(name: str, text: str) -> Change:
    return (lambda index: index.update(passages=[passage(name, text)])), (lambda now: {**now, name: text})


def _deleting(name: str) -> Change:
    return (lambda index: index.delete([name])), (lambda now: {one: text for one, text in now.items() if one != name})


def _compacting(*, whole: bool) -> Change:
    return (lambda index: index.compact(whole=whole)), (lambda now: now)


def run_and_kill(index: Index, changes: list[Change]) -> tuple[int, bool]:
    """Make the changes in a fork until it is killed: how many were done, and whether one more was begun."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            for change, _ in changes:
                os.write(writing, b"b")
                change(index)
                os.write(writing, b"d")
        finally:
            os._exit(0)
    os.close(writing)
    time.sleep(random.uniform(0.0, SECONDS))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as told:
        signs = told.read()
    return signs.count(b"d"), signs.count(b"b") > signs.count(b"d")


def held(folder: Path) -> Held:
    with Snapshot.open(folder) as snapshot:
        corpus = IndexReader.of(snapshot).corpus
        passages = {one.passage_id: one.text for one in corpus.passages}
        return passages | {table.table_id: str(table.rows) for table in corpus.tables}


main()
