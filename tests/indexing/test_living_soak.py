"""Searches beside a writer, a deleter and a compactor: none fails, each sees one snapshot, what was opened is closed.

`python benchmarks/living.py soak INDEX` does it for ten minutes.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "living.py"


@pytest.mark.slow
def test_searches_beside_changes(demo_index: Path):
    result = subprocess.run(
        [sys.executable, str(SCRIPT), "soak", str(demo_index), "--seconds", "4"],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["failed"], found["of_two_snapshots"], found["not_of_their_snapshot"], found["came_back"]) == (0,) * 4
    assert (found["exit_codes"], found["fsck"]) == ([0, 0, 0], [])
    assert found["checked"] > 0
    assert found["changes"]["write"] > 0
    assert found["files_kept"]["after"] <= found["files_kept"]["quiet"]
