"""Changes bytes of an index's files and looks at what a search and fsck make of it; run by test_index_damage.py.

    python damaged_index.py INDEX WORK CASES [--seed N] [--resealed | --both] [--only TEXT]

Models are loaded once, then every case is a fork, so that a crash ends that fork alone. Prints one JSON line a case.
`--resealed` gives the damaged file its new checksum in the manifest: what a checksum would find, the structure must.
`--both` does all cases without, then all with it.
"""

import argparse
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from helios.config import load_config
from helios.engine import Engine
from helios.errors import HeliosError
from helios.index.durable import sha256_file
from helios.index.fsck import check_index
from helios.index.manifest import MANIFEST_FILE, FileEntry, read_manifest, write_manifest
from helios.index.snapshot import Snapshot
from helios.retrieval.pipeline import Models

QUESTIONS = (
    ("Into which sea does the river flow that passes Kraków and Warsaw?", None),
    ("Where does the longest river in the table of European rivers rise?", None),
    (
        "In what year was the element discovered that melts in a warm hand?",
        "table.title ~ '*e*' and passage.title ~ '*a*'",
    ),
)
KINDS = ("byte", "bytes", "word", "zeros")
HEADER = 128
SECONDS = 60.0
MEMORY = 12 << 30
"""Address space of a fork: what it must not take."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one case.

    `engine` is refused, same, other, traceback, crash or hang; `fsck` found, clean, traceback, crash or hang.
    """

    file: str
    kind: str
    at: int
    engine: str
    fsck: str
    says: str
    resealed: bool


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("index", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("cases", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resealed", action="store_true")
    parser.add_argument("--both", action="store_true")
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    models, sound = _sound(asked.index)
    for resealed in (False, True) if asked.both else (asked.resealed,):
        for outcome in _outcomes(asked, models, sound, resealed=resealed):
            print(json.dumps(asdict(outcome)), flush=True)


def _outcomes(asked: argparse.Namespace, models: Models, sound: Any, *, resealed: bool) -> Iterator[Outcome]:
    """What became of every case."""
    listed = read_manifest(asked.index).listed
    names = [name for name in sorted(listed) if asked.only in name]
    if not resealed and asked.only in MANIFEST_FILE:
        names.append(MANIFEST_FILE)
    for number in range(asked.cases):
        name = names[number % len(names)]
        chance = random.Random(f"{asked.seed} {number}")
        copy = asked.work / "index"
        kind, at = _damaged(asked.index, copy, name, chance, resealed=resealed)
        engine, says = _forked(lambda: _searched(copy, models), sound)  # noqa: B023
        fsck, found = _forked(lambda: _checked(copy))  # noqa: B023
        said = says if engine in ("refused", "traceback", "other") else found if fsck == "traceback" else ""
        yield Outcome(name, kind, at, engine, fsck, said, resealed)
        shutil.rmtree(copy)


def _sound(index: Path) -> tuple[Models, Any]:
    """Models that are loaded and kernels that are compiled, and what an undamaged index answers."""
    models = Models(threads=1)
    return models, json.loads(json.dumps(_searched(index, models)))


def _searched(index: Path, models: Models) -> Any:
    """Everything that the questions get."""
    found = []
    snapshot = Snapshot.open(index)
    with Engine(snapshot, load_config(None, ["encoder.runtime=torch"]), threads=1, models=models) as engine:
        for question, where in QUESTIONS:
            evidence = engine.search(question, k=20, where=where, explain=True)
            found.append([[*_shown(edge)] for edge in evidence.edges])
    return found


def _shown(edge: Any) -> Iterator[str]:
    for part in (edge.segment, edge.passage, edge.links, edge.score, edge.probability, edge.matches, edge.origin):
        yield repr(part)


def _checked(index: Path) -> str:
    """What fsck says first, or nothing."""
    errors = [finding for finding in check_index(index) if finding.severity == "error"]
    if errors:
        raise HeliosError(f"{errors[0].path}: {errors[0].problem}")
    return ""


def _damaged(index: Path, copy: Path, name: str, chance: random.Random, *, resealed: bool) -> tuple[str, int]:
    """A copy of the index (links) in which one file is another; returns what was done to it and where."""
    shutil.copytree(index, copy, copy_function=os.link, ignore=shutil.ignore_patterns(".build", ".lock"))
    path = copy / name
    content = bytearray(path.read_bytes())
    before = bytes(content)
    kind, at = "", 0
    while bytes(content) == before:
        kind = chance.choice(KINDS)
        limit = min(HEADER, len(content)) if chance.random() < 0.25 else len(content)
        at = chance.randrange(limit)
        _change(content, kind, at, chance)
    path.unlink()
    path.write_bytes(content)
    if resealed:
        _reseal(copy, name)
    return kind, at


def _change(content: bytearray, kind: str, at: int, chance: random.Random) -> None:
    """Change some bytes from a place on; the size stays."""
    size = len(content)
    if kind == "byte":
        content[at] ^= chance.randrange(1, 256)
    elif kind == "bytes":
        end = min(size, at + chance.randrange(2, 17))
        content[at:end] = chance.randbytes(end - at)
    elif kind == "word":
        first = at // 8 * 8
        end = min(size, first + 8)
        word = chance.choice([b"\xff" * 8, b"\xff" * 7 + b"\x7f", b"\x00" * 7 + b"\x80", b"\xff\xff\xff\x7f" * 2])
        content[first:end] = word[: end - first]
    else:
        end = min(size, at + chance.choice([16, 512, 4096]))
        content[at:end] = bytes(end - at)


def _reseal(index: Path, name: str) -> None:
    """Give a file its checksum in the manifest."""
    manifest = read_manifest(index)

    def sealed(folder: str, entry: FileEntry) -> FileEntry:
        path = f"{folder}/{entry.path}" if folder else entry.path
        return entry if path != name else entry.model_copy(update={"sha256": sha256_file(index / path)})

    changed: dict[str, Any] = {}
    for kind in ("parts", "links", "codebooks"):
        changed[kind] = tuple(
            piece.model_copy(update={"files": tuple(sealed(piece.folder, entry) for entry in piece.files)})
            for piece in getattr(manifest, kind)
        )
    changed["parts"] = tuple(
        part.model_copy(update={"tombstones": sealed("", part.tombstones)}) for part in changed["parts"]
    )
    write_manifest(index, manifest.model_copy(update=changed))


def _forked(work: Callable[[], Any], expected: Any = "") -> tuple[str, str]:
    """What a fork makes of some work: refused, same, other, traceback, crash or hang, and what it says."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            pipe.write(json.dumps(_tried(work, expected)))
        os._exit(0)
    os.close(writing)
    said, late = _all_of(reading, child)
    _, status = os.waitpid(child, 0)
    if late:
        return "hang", ""
    if os.WIFSIGNALED(status):
        return "crash", signal.Signals(os.WTERMSIG(status)).name
    outcome, says = json.loads(said)
    return outcome, says


def _tried(work: Callable[[], Any], expected: Any) -> tuple[str, str]:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        found = json.loads(json.dumps(work()))
    except HeliosError as error:
        return "refused", str(error)
    except BaseException:  # noqa: BLE001 what must not come
        return "traceback", traceback.format_exc()[-1500:]
    first = found and expected and [edges[:1] for edges in found] != [edges[:1] for edges in expected]
    return ("same", "") if found == expected else ("other", "another first hit" if first else "")


def _all_of(descriptor: int, child: int) -> tuple[str, bool]:
    """What a fork writes until it ends, and whether it had to be ended."""
    parts, end = [], time.monotonic() + SECONDS
    with os.fdopen(descriptor, "rb") as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                os.kill(child, signal.SIGKILL)
                return "", True
            part = pipe.read1()
            if not part:
                return b"".join(parts).decode(), False
            parts.append(part)


if __name__ == "__main__":
    sys.exit(main())
