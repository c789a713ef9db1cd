"""What a long build says of its progress, in a terminal and in a log."""

import io
import time

import pytest
from rich.console import Console

from indexing.progress import BarProgress, LineProgress, Pace, format_duration


@pytest.mark.parametrize(
    ("pace", "text"),
    [
        (Pace("nodes", 1_200_000, 120_000), "120,000 of 1,200,000 nodes (10%), 2,000 nodes/s, about 9 min left"),
        (Pace("tables", 100, 40, before=40), "40 of 100 tables (40%)"),
        (Pace("tables", 100, 100, before=40), "100 of 100 tables (100%), 1.00 tables/s"),
        (Pace("rows", None, 6000, share=0.5), "6,000 of about 12,000 rows (50%), 100 rows/s, about 60.0 s left"),
        (Pace("rows", None, 6000), "6,000 rows, 100 rows/s"),
        (Pace(), "0"),
    ],
)
def test_pace_in_words(pace: Pace, text: str):
    assert pace.told(now=60.0) == text


def test_bars_count_resumed_work_and_note_reused_stages():
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    progress = BarProgress(console)
    progress.skipped("ingest")
    with progress.stage("link") as meter:
        meter.start(100, "tables", done=40)
        meter.advance(60)
    shown = console.file.getvalue()
    assert "ingest" in shown
    assert "done before" in shown
    assert "100 of 100 tables (100%)" in shown


def test_a_log_has_a_line_every_so_often_and_none_of_a_short_stage():
    log = io.StringIO()
    progress = LineProgress(log, seconds=0.05)
    with progress.stage("encode") as meter:
        meter.start(100, "nodes")
        meter.advance(25)
        time.sleep(0.12)
    lines = log.getvalue().splitlines()
    assert lines[0].startswith("encode     after 0.1 s: 25 of 100 nodes (25%), ")
    assert lines[0].endswith(" left")
    assert "done, 25 of 100" in lines[-1]
    with LineProgress(log, seconds=60.0).stage("graph"):
        pass
    assert len(log.getvalue().splitlines()) == len(lines)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.25, "1.2 s"), (89.0, "89.0 s"), (600, "10 min"), (3900, "65 min"), (7500, "2 h 05 min")],
)
def test_durations(seconds: float, text: str):
    assert format_duration(seconds) == text
