"""SIGKILL at random moments of adds, updates, deletions and compactions: nothing lost, nothing back, always sound."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from helios.corpus.sample import sample_path

KILLS = 12


@pytest.mark.slow
def test_killed_changes_happen_or_do_not(tmp_path: Path):
    script = Path(__file__).with_name("killed_changes.py")
    result = subprocess.run(
        [sys.executable, str(script), str(sample_path()), str(tmp_path), str(KILLS), "11"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout.splitlines()[-1])
    assert report["kills"] == KILLS
    assert report["done"] > 0
