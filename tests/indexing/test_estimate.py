"""Sampling a corpus and extrapolating from it."""

import gzip
import json
import random
from pathlib import Path

import pytest

from helios.config import load_config
from helios.errors import CorpusError
from indexing.estimate import _line, estimate_build, sample_corpus
from indexing.stages import GraphStage, IngestStage, LinkStage


def write_passages(path: Path, count: int) -> None:
    generator = random.Random(5)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for number in range(count):
            text = " ".join(str(generator.random()) for _ in range(20))
            file.write(json.dumps({"id": f"p{number}", "title": f"Passage {number}", "text": text}) + "\n")


def test_small_corpus_is_counted_exactly(tmp_path: Path):
    write_passages(tmp_path / "passages.jsonl.gz", 300)
    sample = sample_corpus(tmp_path)
    assert sample.exact
    assert (sample.total_passages, sample.total_tables, sample.total_nodes) == (300, 0, 300)


def test_large_corpus_is_extrapolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_passages(tmp_path / "passages.jsonl.gz", 20_000)
    monkeypatch.setattr("indexing.estimate._SECONDS_OF_READING", 0.15)
    monkeypatch.setattr("indexing.estimate._KEPT_RECORDS", 500)
    sample = sample_corpus(tmp_path)
    if sample.exact:
        pytest.skip("this system does not count what a process reads, or reads faster than expected")
    assert 12_000 < sample.total_passages < 30_000
    assert len(sample.passages) <= 501


def test_corpus_without_records(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text("{broken\n", encoding="utf-8")
    with pytest.raises(CorpusError):
        sample_corpus(tmp_path)


def test_estimate_is_of_the_right_size(tmp_path: Path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    write_passages(corpus / "passages.jsonl.gz", 3000)
    stages = (IngestStage(), LinkStage(), GraphStage())
    config = load_config(None, ["linking.source=none"])
    estimate = estimate_build(corpus, config=config, stages=stages)
    assert estimate.passages == 3000
    assert estimate.seconds < 60
    text = 3000 * 20 * 20
    assert text * 0.8 < estimate.stages[0].disk < text * 2
    assert estimate.memory > 10**7


@pytest.mark.parametrize(
    ("points", "total", "expected"),
    [
        ((100, 2.0, 200, 3.0), 1000, 11.0),
        ((100, 3.0, 200, 3.0), 1000, 15.0),
        ((100, 1.0, 200, 2.0), 150, 2.0),
        ((100, 5.0, 100, 5.0), 100, 5.0),
    ],
)
def test_line_through_two_measurements(points: tuple[int, float, int, float], total: int, expected: float):
    assert _line(*points, total) == pytest.approx(expected)
