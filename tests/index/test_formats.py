"""A tiny index of every version of the format, as it was written then, opens and is searched: these files never change.

One table of two rows and two passages with random vectors of 32 dimensions, which `tests/index/conftest.py` made.
Whoever raises the version adds a folder of it.
"""

from pathlib import Path

import numpy as np
import pytest

from helios.index.backup import back_up
from helios.index.fsck import check_index
from helios.index.manifest import FORMAT_VERSION, read_manifest
from helios.index.reader import IndexReader
from helios.index.search import EdgeSearch, Fusion
from helios.index.snapshot import Snapshot
from helios.index.visible import Threads, query_of
from helios.models.encoder import TokenVectors

FORMATS = Path(__file__).parent / "formats"
VERSIONS = [int(path.name) for path in sorted(FORMATS.iterdir()) if path.is_dir()]


def found(index: Path, text: str, unit_vectors) -> list[tuple[int, int, float]]:
    """Rows and passages of a question's candidates, best first, with their scores."""
    with Snapshot.open(index, verify=True) as snapshot:
        reader = IndexReader.of(snapshot)
        random = np.random.default_rng(1)
        tokens = TokenVectors(unit_vectors(random, 3), np.arange(3, dtype=np.int32), np.zeros((3, 2), np.int32))
        query = query_of(text, tokens, reader.tokens, reader.postings)
        candidates = EdgeSearch(reader, Fusion(lexical=10.0), Threads(1)).candidates(query, count=5, exact=5)
        pairs = zip(candidates.pairs.left.tolist(), candidates.pairs.right.tolist(), strict=True)
        return [(*pair, score) for pair, score in zip(pairs, candidates.scores.fused.tolist(), strict=True)]


def test_there_is_one_of_every_version():
    assert list(range(1, FORMAT_VERSION + 1)) == VERSIONS
    for version in VERSIONS:
        assert sum(file.stat().st_size for file in (FORMATS / str(version)).rglob("*.*")) < 100_000


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_sound_and_says_what_it_said(version: int, unit_vectors):
    index = FORMATS / str(version)
    assert [one for one in check_index(index) if one.severity == "error"] == []
    with Snapshot.open(index) as snapshot:
        reader = IndexReader.of(snapshot)
        assert [segment.cells for segment in map(reader.corpus.segment, range(2))] == [("Aare Bern",), ("Rhine Basel",)]
        assert [passage.text for passage in reader.corpus.passages] == [
            "the Aare flows through Bern", "the Rhine flows through Basel",
        ]  # fmt: skip
        assert reader.graph.edge_segments.tolist() == reader.graph.edge_passages.tolist() == [0, 1]
        assert reader.tokens.lengths_of(np.arange(4)).tolist() == [2, 2, 5, 5]
    assert [row for row, _, _ in found(index, "Which river flows through Basel?", unit_vectors)] == [1, 0]
    assert [row for row, _, _ in found(index, "What is on the Aare in Bern?", unit_vectors)] == [0, 1]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_backup_of_it_is_of_now(version: int, tmp_path: Path, unit_vectors):
    index = FORMATS / str(version)
    back_up(index, tmp_path / "backup", share=False)
    assert check_index(tmp_path / "backup") == []
    assert read_manifest(tmp_path / "backup") == read_manifest(index)
    question = "Which river flows through Basel?"
    assert found(tmp_path / "backup", question, unit_vectors) == found(index, question, unit_vectors)
