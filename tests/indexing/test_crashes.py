"""A writer that crashes at any durable step leaves the index before or the index after, and can run again.

`HELIOS_CRASHES=20 pytest tests/indexing/test_crashes.py -s` (`make crashes`) crashes at every step, looks at 20 more
states a step that a dead machine could have left, and kills each writer at 100 random moments.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CLONES = int(os.environ.get("HELIOS_CRASHES", "0"))
SEED = os.environ.get("HELIOS_FUZZ_SEED", "1")


def write_corpus(folder: Path) -> None:
    """Two tables whose cells link to passages."""
    folder.mkdir()
    passages = [{"id": f"p{n}", "title": f"Thing {n}", "text": f"Passage {n} speaks of thing {n}."} for n in range(4)]
    tables = [
        {
            "id": f"t{n}",
            "title": f"Table {n}",
            "header": ["name", "n"],
            "rows": [[f"Thing {n + row}", str(row)] for row in range(2)],
            "links": [[row, 0, f"p{n + row}"] for row in range(2)],
        }
        for n in range(2)
    ]
    for name, records in (("passages", passages), ("tables", tables)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    work = tmp_path_factory.mktemp("crashes")
    write_corpus(work / "corpus")
    points, clones, kills = (10_000, CLONES, 100) if CLONES else (2, 1, 1)
    script = Path(__file__).with_name("crashed_writes.py")
    arguments = [str(work), str(points), str(clones), str(kills), SEED]
    result = subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True,
        timeout=86_400 if CLONES else 600, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    sys.stdout.write(result.stdout)
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.slow
def test_every_crash_leaves_one_of_two_indexes_and_can_be_repeated(scenarios: list[dict]):
    for scenario in scenarios:
        assert scenario["problems"] == [], scenario["scenario"]
    assert len(scenarios) == 10


@pytest.mark.slow
def test_the_crashes_were_some(scenarios: list[dict]):
    """Both indexes were seen, and clones lacked something."""
    assert all(scenario["crashes"] == min(scenario["steps"], scenario["crashes"]) > 0 for scenario in scenarios)
    assert sum(scenario["before"] for scenario in scenarios) > 0
    assert sum(scenario["lost"] for scenario in scenarios) > 0
