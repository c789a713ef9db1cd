"""Rows that outlive the process: going on after a kill, and what is refused."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from helios.errors import EvaluationError
from helios.evaluation.kept import KeptRows

KEY = {"index": "a", "depth": 3}
WRITER = """
import sys, time
from dataclasses import dataclass
from pathlib import Path
from helios.evaluation.kept import KeptRows

@dataclass
class Figures:
    question_id: str
    digest: str
    value: float

file = KeptRows(Path(sys.argv[1]), {"index": "a", "depth": 3}, lambda document: Figures(**document))
for number in range(2):
    file.add(Figures(f"q{number}", "d", float(number)))
print("written", flush=True)
time.sleep(60)
"""


@dataclass(frozen=True)
class Figures:
    question_id: str
    digest: str = "d"
    value: float = 1.0
    shown: str = ""


def opened(path: Path | None, key: Mapping[str, Any] = KEY) -> "KeptRows[Figures]":
    return KeptRows(path, key, lambda document: Figures(**document))


def write(path: Path, *rows: Figures) -> None:
    with closing(opened(path)) as file:
        for row in rows:
            file.add(row)


def test_rows_outlive_a_kill(tmp_path: Path):
    path = tmp_path / "new" / "full.jsonl"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"written\n"
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
    kept = opened(path)
    assert [kept.row(f"q{number}", "d") for number in range(3)] == [Figures("q0", value=0.0), Figures("q1"), None]


def test_a_torn_last_line_is_measured_again(tmp_path: Path):
    path = tmp_path / "full.jsonl"
    write(path, Figures("q0"), Figures("q1"))
    whole = path.read_text()
    for size in (1, 20, len(whole.splitlines()[-1])):
        path.write_text("".join(whole.splitlines(keepends=True)[:2]) + whole.splitlines()[-1][:size])
        with closing(opened(path)) as file:
            assert file.row("q0", "d") == Figures("q0") and file.row("q1", "d") is None
            file.add(Figures("q1"))
        assert path.read_text() == whole, "the torn line is gone"


@pytest.mark.parametrize("line", ['{"question_id": "q1"}', '{"other": 1}', "[]", "3", "null", "torn {"])
def test_a_line_that_is_no_row_is_left_out(tmp_path: Path, line: str):
    path = tmp_path / "full.jsonl"
    write(path, Figures("q0"))
    path.write_text(path.read_text() + line + "\n" + json.dumps({"question_id": "q2", "digest": "d"}) + "\n")

    def read(document: Mapping[str, Any]) -> Figures:
        return Figures(document["question_id"], document["digest"])

    kept = KeptRows(path, KEY, read)
    assert kept.row("q0", "d") and kept.row("q1", "d") is None and kept.row("q2", "d")
    assert len(path.read_text().splitlines()) == 3


def test_separators_inside_a_text_do_not_cut_a_line(tmp_path: Path):
    row = Figures("q0", shown="a\u2028b\u2029c\x85d\x0be\nf")
    write(tmp_path / "full.jsonl", row)
    assert opened(tmp_path / "full.jsonl").row("q0", "d") == row


def test_the_row_of_another_question_is_not_used(tmp_path: Path):
    write(tmp_path / "full.jsonl", Figures("q0", digest="before"))
    kept = opened(tmp_path / "full.jsonl")
    assert kept.row("q0", "after") is None
    kept.add(Figures("q0", digest="after"))
    kept.close()
    assert opened(tmp_path / "full.jsonl").row("q0", "after"), "the later line counts"


def test_figures_of_something_else_are_refused(tmp_path: Path):
    path = tmp_path / "full.jsonl"
    write(path, Figures("q0"))
    before = path.read_bytes()
    with pytest.raises(EvaluationError, match=r"full.jsonl: holds figures of another index; give another --out"):
        opened(path, {"index": "b", "depth": 3})
    with pytest.raises(EvaluationError, match="another index and depth"):
        opened(path, {"index": "b", "depth": 4})
    with pytest.raises(EvaluationError, match="another run"):
        opened(path, {"index": "a"})
    assert path.read_bytes() == before


@pytest.mark.parametrize("garbage", [b"{}\n", b"[1]\n{", b'{"question_id": 3}\n', b"\x00\n", b"\xff\n", b"hello\n"])
def test_a_foreign_file_is_refused(tmp_path: Path, garbage: bytes):
    path = tmp_path / "full.jsonl"
    path.write_bytes(garbage)
    with pytest.raises(EvaluationError, match="give another --out folder"):
        opened(path)
    assert path.read_bytes() == garbage


def test_a_folder_that_cannot_be_is_told(tmp_path: Path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "full.jsonl", tmp_path):
        with pytest.raises(EvaluationError, match="give another --out folder"):
            opened(path)


def test_an_empty_file_is_begun_anew(tmp_path: Path):
    path = tmp_path / "full.jsonl"
    path.write_bytes(b"")
    write(path, Figures("q0"))
    assert opened(path).row("q0", "d")


def test_without_a_path_rows_are_kept_in_memory():
    file = opened(None)
    file.add(Figures("q0"))
    file.close()
    assert file.row("q0", "d") == Figures("q0")
