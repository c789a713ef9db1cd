"""Builds an index in forked processes that are killed at random moments; run by test_pipeline_killed.py.

    python killed_builds.py CORPUS WORK ROUNDS SEED

Imports happen once, then every build is a fork that gets SIGKILL after a random time, again and again until
one comes through. After every kill the last snapshot must be sound. Prints one JSON line per finished build.
"""

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from helios.config import load_config
from helios.index.fsck import check_index
from helios.index.manifest import MANIFEST_FILE, read_manifest
from indexing.pipeline import build_index
from indexing.stages import GraphStage, IngestStage, LinkStage

STAGES = (IngestStage(), LinkStage(), GraphStage())
BUILDS = (
    ["linking.source=hyperlinks", "advanced.linking.chunk=2"],
    ["linking.source=none", "advanced.linking.chunk=3"],
)


def main() -> None:
    corpus, work, rounds, seed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    random.seed(seed)
    durations = [build(corpus, work / "reference", overrides) for overrides in BUILDS]
    for number in range(rounds):
        index = work / f"killed-{number}"
        for overrides, duration in zip(BUILDS, durations, strict=True):
            kills = build_and_kill(corpus, index, overrides, duration)
            report(index, kills)
        shutil.rmtree(index)


def build(corpus: Path, index: Path, overrides: list[str]) -> float:
    """Seconds of an undisturbed build."""
    started = time.monotonic()
    build_index(corpus, index, config=load_config(None, overrides), stages=STAGES)
    report(index, 0)
    return time.monotonic() - started


def build_and_kill(corpus: Path, index: Path, overrides: list[str], duration: float) -> int:
    """Build in forks until one is quicker than its death; returns how many were killed."""
    kills = 0
    while True:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                build_index(corpus, index, config=load_config(None, overrides), stages=STAGES)
                code = 0
            finally:
                os._exit(code)
        time.sleep(random.uniform(0, duration if kills < 12 else 20 * duration))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            return kills
        assert os.WIFSIGNALED(status), f"the build failed with {status}"
        kills += 1
        if (index / MANIFEST_FILE).exists():
            errors = [one for one in check_index(index) if one.severity == "error"]
            assert not errors, errors


def report(index: Path, kills: int) -> None:
    files = {
        path.relative_to(index).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for piece in read_manifest(index).pieces
        for path in sorted((index / piece.folder).rglob("*"))
        if path.is_file()
    }
    line = {
        "kills": kills,
        "files": files,
        "manifest": hashlib.sha256((index / MANIFEST_FILE).read_bytes()).hexdigest(),
        "findings": [one.problem for one in check_index(index)],
        "journal": (index / ".build" / "journal.jsonl").read_text(encoding="utf-8").splitlines(),
    }
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


main()
