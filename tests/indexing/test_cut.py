"""An index cut into parts: all of it is there, and a search gives the same to the last bit."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helios.config import load_config
from helios.corpus import CorpusStore
from helios.corpus.sample import QUESTIONS, sample_path
from helios.engine import Engine
from helios.errors import IndexFormatError
from helios.evaluation.questions import read_questions
from helios.index.fsck import check_index
from helios.index.manifest import read_manifest
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot
from helios.types import Evidence
from indexing.cut import cut_index
from indexing.pipeline import build_index
from indexing.stages import IngestStage, LinkStage


@pytest.fixture(scope="module")
def cut(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The sample index in so many parts."""
    made: dict[int, Path] = {}

    def cut(parts: int) -> Path:
        if parts not in made:
            made[parts] = tmp_path_factory.mktemp("cut") / f"{parts}-parts"
            cut_index(sample_index, made[parts], parts)
        return made[parts]

    return cut


@pytest.fixture(scope="module")
def answers(engine: Engine) -> dict[str, Evidence]:
    """What the sample's questions find in the index that was not cut."""
    questions = read_questions(sample_path() / QUESTIONS)
    return {question.text: without_times(engine.search(question.text)) for question in questions}


def without_times(evidence: Evidence) -> Evidence:
    return replace(evidence, timings_ms={})


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 2, 7])
def test_every_question_finds_the_same(engine: Engine, answers: dict[str, Evidence], cut, parts: int):
    with Snapshot.open(cut(parts)) as snapshot:
        other = Engine(snapshot, engine.config, models=engine.models)
        assert len(other.index.parts) == parts
        for question, expected in answers.items():
            assert without_times(other.search(question)) == expected


def test_every_part_is_sound_and_has_its_share(sample_index: Path, cut):
    index = cut(7)
    assert check_index(index) == []
    manifest, source = read_manifest(index), read_manifest(sample_index)
    assert manifest.counts == source.counts
    assert [part.codebook for part in manifest.parts] == ["0001"] * 7
    assert [links.parts[-1] for links in manifest.links] == [part.name for part in manifest.parts]
    assert all(part.counts.tables and part.counts.passages for part in manifest.parts)
    (codebook,), (of_source,) = manifest.codebooks, source.codebooks
    assert codebook.files == of_source.files
    stores = [CorpusStore.open(index / part.folder / "corpus") for part in manifest.parts]
    whole = CorpusStore.open(sample_index / source.parts[0].folder / "corpus")
    assert [table for store in stores for table in store.tables] == list(whole.tables)
    assert [passage for store in stores for passage in store.passages] == list(whole.passages)


def test_what_parts_count_adds_up(engine: Engine, cut):
    with Snapshot.open(cut(7)) as snapshot:
        index = IndexReader.of(snapshot)
        np.testing.assert_array_equal(index.tokens.frequencies, engine.index.tokens.frequencies)
        assert index.statistics.mean_edge_length == engine.index.statistics.mean_edge_length
        for name in ("segment_offsets", "edge_passages", "link_offsets", "link_columns", "link_starts", "link_scores"):
            np.testing.assert_array_equal(getattr(index.graph, name), getattr(engine.graph, name))
        for one, other in zip(index.pooled_nodes(), engine.index.pooled_nodes(), strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(index.titles.shares, engine.index.titles.shares)


def test_parts_without_tables(sample_index: Path, engine: Engine, answers: dict[str, Evidence], tmp_path: Path):
    manifest = cut_index(sample_index, tmp_path / "many", 20)
    assert {part.counts.passages for part in manifest.parts} == {3, 4}
    assert sum(not part.counts.tables for part in manifest.parts) == 20 - 12
    with Snapshot.open(tmp_path / "many") as snapshot:
        other, question = Engine(snapshot, engine.config, models=engine.models), next(iter(answers))
        assert without_times(other.search(question)) == answers[question]


def test_a_cut_index_is_built_again_whole(sample_index: Path, tmp_path: Path):
    cut_index(sample_index, tmp_path / "index", 2)
    config = load_config(overrides=["linking.source=none"])
    report = build_index(sample_path(), tmp_path / "index", config=config, stages=(IngestStage(), LinkStage()))
    assert (len(report.manifest.parts), report.manifest.generation) == (1, 2)
    assert check_index(tmp_path / "index") == []


def test_what_cannot_be_cut(sample_index: Path, cut, tmp_path: Path):
    for parts in (0, -1, 68):
        with pytest.raises(ValueError, match="parts must be from 1 to 67"):
            cut_index(sample_index, tmp_path / "none", parts)
    with pytest.raises(IndexFormatError, match="has 2 parts, or deleted nodes; only an index of one whole part"):
        cut_index(cut(2), tmp_path / "again", 2)
    with pytest.raises(IndexFormatError, match=r"holds 'manifest\.json'; give an empty or new folder"):
        cut_index(sample_index, cut(2), 3)
    assert not (tmp_path / "none").exists()


def test_from_the_command_line(sample_index: Path, tmp_path: Path):
    import typer

    from indexing.cut import main

    app = typer.Typer()
    app.command()(main)
    result = CliRunner().invoke(app, [str(sample_index), "--out", str(tmp_path / "index"), "--parts", "3"])
    assert result.output.endswith("index: 3 parts, 66 segments, 67 passages, 62 edges\n")
