"""Sampling a corpus and extrapolating from it."""

import gzip
import json
import random
import shutil
import time
from pathlib import Path

import pytest

from helios.config import load_config
from helios.corpus.sample import sample_path
from helios.errors import CorpusError
from indexing.estimate import estimate_build, sample_corpus
from indexing.pipeline import build_index


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
    monkeypatch.setattr("indexing.estimate.SAMPLE_NODES", 500)
    sample = sample_corpus(tmp_path)
    if sample.exact:
        pytest.skip("this system does not count what a process reads, or reads faster than expected")
    assert 12_000 < sample.total_passages < 30_000
    assert len(sample.passages) <= 501


def test_of_a_large_table_some_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A tenth of it at most, and the estimate knows how long the table is."""
    rows = "".join(f"A{number},2024-05-17,{number * 7},some words of the order\n" for number in range(400_000))
    (tmp_path / "orders.csv").write_text("order,date,price,remark\n" + rows, encoding="utf-8")
    monkeypatch.setattr("indexing.estimate._SECONDS_OF_READING", 0.0)
    sample = sample_corpus(tmp_path)
    assert not sample.exact
    assert sum(len(table.rows) for table in sample.tables) <= 2000
    assert sample.total_tables == 1
    assert sample.total_segments == pytest.approx(400_000, rel=0.2)


def test_linking_goes_by_rows_and_what_compiles_is_not_multiplied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of a small sample: no more links than cells, and a first call that takes seconds tells nothing of rows."""
    from indexing import linking

    asked: list[range] = []
    link_corpus = linking.link_corpus

    def slow_at_first(*args: object, blocks: range, **kwargs: object) -> list[object]:
        asked.append(blocks)
        if len(asked) == 1:
            time.sleep(2.5)  # more than a stage of the sample may take
        return link_corpus(*args, blocks=blocks, **kwargs)

    monkeypatch.setattr(linking, "link_corpus", slow_at_first)
    monkeypatch.setattr("indexing.estimate.SAMPLE_NODES", 200)
    names = [f"Port {name}" for name in ("Alma", "Brea", "Cole")]
    rows = "".join(f"{names[number % 3]},{names[number % 2]},{number}\n" for number in range(4_000))
    (tmp_path / "calls.csv").write_text("from,to,number\n" + rows, encoding="utf-8")
    texts = [
        {"id": f"p{at}", "title": names[at % 3], "text": f"{names[at % 3]} is a port, said of it {at} times."}
        for at in range(4_000)
    ]
    (tmp_path / "ports.jsonl").write_text("".join(json.dumps(one) + "\n" for one in texts), encoding="utf-8")
    estimate = estimate_build(tmp_path, config=load_config(None, ["encoder.runtime=torch"]))
    assert len(asked) > 1
    assert estimate.links <= 3 * estimate.segments
    assert next(stage for stage in estimate.stages if stage.name == "link").seconds < 600


def test_corpus_without_records(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text("{broken\n", encoding="utf-8")
    with pytest.raises(CorpusError):
        sample_corpus(tmp_path)


@pytest.mark.slow
def test_estimate_against_the_build(tmp_path: Path):
    """Tokens, links and bytes of the sample corpus, which is counted as a whole, are those of its index."""
    config = load_config(None, ["encoder.runtime=torch"])
    corpus = tmp_path / "corpus"
    shutil.copytree(sample_path(), corpus, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    estimate = estimate_build(corpus, config=config)
    report = build_index(corpus, tmp_path / "index", config=config)
    counts = report.manifest.counts
    assert estimate.exact
    assert (estimate.tables, estimate.segments, estimate.passages) == (counts.tables, counts.segments, counts.passages)
    assert estimate.tokens == counts.tokens
    assert estimate.links == pytest.approx(report.records["link"].counts["links"], rel=0.1)
    built = sum(entry.size for record in report.records.values() for entry in record.files)
    assert sum(stage.disk for stage in estimate.stages) == pytest.approx(built, rel=0.5)
    assert estimate.memory > 10**8
