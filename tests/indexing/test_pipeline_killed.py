"""SIGKILL at random moments: the same bytes in the end, finished work not done again, readers never hurt."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROUNDS = 4


def write_corpus(folder: Path, *, tables: int = 60, passages: int = 200) -> None:
    """Tables whose cells link to passages, as JSON lines."""
    folder.mkdir()
    with (folder / "passages.jsonl").open("w", encoding="utf-8") as file:
        for number in range(passages):
            text = f"Passage {number} speaks of thing {number}."
            file.write(json.dumps({"id": f"p{number}", "title": f"Thing {number}", "text": text}) + "\n")
    with (folder / "tables.jsonl").open("w", encoding="utf-8") as file:
        for number in range(tables):
            rows = [[f"Thing {(number * 7 + row) % passages}", str(row)] for row in range(number % 5 + 1)]
            links = [[row, 0, f"p{(number * 7 + row) % passages}"] for row in range(len(rows))]
            table = {"id": f"t{number}", "title": f"Table {number}", "header": ["name", "n"], "rows": rows}
            file.write(json.dumps({**table, "links": links}) + "\n")


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """Reports of [undisturbed, rebuilt undisturbed, killed, rebuilt killed, killed, ...]."""
    folder = tmp_path_factory.mktemp("killed")
    write_corpus(folder / "corpus")
    script = Path(__file__).with_name("killed_builds.py")
    result = subprocess.run(
        [sys.executable, str(script), str(folder / "corpus"), str(folder), str(ROUNDS), "7"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "SOURCE_DATE_EPOCH": "0"},
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.slow
def test_kills_really_happened(builds: list[dict]):
    assert len(builds) == 2 + 2 * ROUNDS
    assert sum(build["kills"] for build in builds) >= ROUNDS


def test_every_build_gives_the_same_bytes(builds: list[dict]):
    for first in (0, 1):
        for build in builds[first + 2 :: 2]:
            assert build["files"] == builds[first]["files"]
            assert build["manifest"] == builds[first]["manifest"]


def test_nothing_is_left_behind(builds: list[dict]):
    assert [build["findings"] for build in builds] == [[]] * len(builds)


def test_finished_work_is_not_done_again(builds: list[dict]):
    for build in builds:
        finished: set[str] = set()
        chunks: Counter[tuple[str, int]] = Counter()
        for line in build["journal"]:
            event = json.loads(line)
            if event["event"] == "start":
                assert event["key"] not in finished, f"{event['stage']} ran again"
            elif event["event"] == "finish":
                finished.add(event["key"])
            elif event["event"] == "chunk":
                chunks[event["key"], event["chunk"]] += 1
        assert finished
        assert max(chunks.values()) == 1, "a saved chunk was done again"


def test_some_build_resumed_between_chunks(builds: list[dict]):
    resumed = [build for build in builds if any(json.loads(line).get("resumed") for line in build["journal"])]
    assert resumed
