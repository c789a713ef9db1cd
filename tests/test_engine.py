"""The front door on real indexes: answers, odd questions, poor corpora, deletion, threads, opening cost."""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helios.config import load_config
from helios.corpus.sample import QUESTIONS, sample_path
from helios.engine import Engine
from helios.errors import ConfigError, IndexFormatError
from helios.evaluation.edges import ranked_edges
from helios.evaluation.evaluate import evaluate
from helios.evaluation.questions import read_questions
from helios.index.manifest import read_manifest, write_manifest
from helios.types import Evidence, Origin
from indexing.commit import write_tombstones
from indexing.pipeline import build_index

GOLD_IN_TOP_5 = 18
"""Of 22 questions, those with their gold edge among the first five; 19 when measured: the linker misses three."""
ANSWERED_IN_TOP_10 = 20
"""22 when measured."""


@pytest.fixture(scope="module")
def questions():
    return read_questions(sample_path() / QUESTIONS)


def linked(evidence: Evidence) -> Evidence:
    """The evidence without the edges that expansion made."""
    return replace(evidence, edges=tuple(edge for edge in evidence.edges if edge.origin is not Origin.EXPANDED))


def ids(evidence: Evidence) -> list[tuple[str | None, str | None]]:
    return [
        (
            None if edge.segment is None else str(edge.segment.segment_id),
            None if edge.passage is None else edge.passage.passage_id,
        )
        for edge in evidence.edges
    ]


def test_the_sample_questions_are_answered(engine: Engine, questions):
    report = evaluate(lambda question: ranked_edges(engine.search(question, k=50)), questions, name="sample", depth=50)
    found = {measure.name: round(measure.mean * len(questions)) for measure in report.measures}
    assert found["edge R@5"] >= GOLD_IN_TOP_5, found
    assert found["AR@10"] >= ANSWERED_IN_TOP_10, found


def test_evidence_is_complete(engine: Engine):
    question = "In what year was the element discovered that melts in a warm hand?"
    evidence = engine.search(question, k=7)
    assert evidence.question == question
    assert [edge.rank for edge in evidence.edges] == list(range(1, 8))
    assert [edge.score for edge in evidence.edges] == sorted((edge.score for edge in evidence.edges), reverse=True)
    assert set(evidence.timings_ms) == {"retrieve", "rerank", "expand", "refine", "spread", "evidence"}
    for edge in evidence.edges:
        if edge.segment is not None and edge.passage is not None:
            for link in edge.links:
                assert edge.segment.cells[link.column][link.start : link.end]
            assert edge.links or edge.origin is Origin.EXPANDED


@pytest.mark.parametrize(
    "question",
    [
        "",
        "  ",
        "?!…",
        "🚀🚀🚀",
        "qwxzj vbnmk",
        "Волга " * 5,
        "river " * 33,
        "Which river is the longest? " * 30,
        "\x00\n\t",
        "a",
    ],
)
def test_odd_questions(engine: Engine, question):
    evidence = engine.search(question, k=10)
    assert len(evidence.edges) == 10
    assert np.all(np.isfinite([edge.score for edge in evidence.edges]))
    assert ids(evidence) == ids(engine.search(question, k=10))


def test_k_defaults_to_the_setting(engine: Engine, sample_index):
    assert len(engine.search("river").edges) == 50
    with Engine.open(sample_index, overrides=["search.k=3"], threads=1) as other:
        assert ids(other.search("river")) == ids(engine.search("river"))[:3]


@pytest.mark.parametrize("k", [0, -1])
def test_k_must_be_positive(engine: Engine, k):
    with pytest.raises(ValueError, match="k must be 1 or more"):
        engine.search("river", k=k)


def test_every_edge_can_be_asked_for(engine: Engine):
    evidence = engine.search("river", k=10_000)
    assert len(ids(evidence)) == len(set(ids(evidence)))
    assert len(linked(evidence).edges) == len(engine.part.search.units)
    assert len(evidence.edges) == len(engine.part.search.units) + engine.config.expansion.beam


def test_threads_share_an_engine(engine: Engine, sample_index, questions):
    """Twelve threads that all come first to a fresh engine get what one thread gets."""
    texts = [question.text for question in questions]
    with Engine.open(sample_index, threads=2) as shared, ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda text: shared.search(text, k=10, explain=True), texts))
    for text, evidence in zip(texts, found, strict=True):
        expected = engine.search(text, k=10, explain=True)
        assert evidence.edges == expected.edges


def test_closing_ends_the_threads(sample_index):
    engine = Engine.open(sample_index, threads=2)
    assert engine.search("river", k=1).edges
    engine.close()
    engine.close()
    with pytest.raises(RuntimeError):
        engine.search("mountain", k=1)


def test_a_wrong_override_lets_go_of_the_index(sample_index):
    open_files = Path("/proc/self/fd")
    before = len(list(open_files.iterdir())) if open_files.exists() else 0
    with pytest.raises(ConfigError, match="did you mean search.k"):
        Engine.open(sample_index, overrides=["search.kk=2"])
    assert before == (len(list(open_files.iterdir())) if open_files.exists() else 0)


def test_another_encoder_is_refused(sample_index, tmp_path):
    adapter = tmp_path / "other.safetensors"
    adapter.write_bytes(b"another adapter")
    other = Engine.open(sample_index, overrides=[f"encoder.adapter={adapter}"])
    with other, pytest.raises(IndexFormatError, match="its vectors come from .*the configured encoder is another"):
        other.search("river")


OPENING = """
import json, resource, sys, time
import psutil
from helios.engine import Engine
process, started = psutil.Process(), time.perf_counter()
engine = Engine.open(sys.argv[1])
seconds = time.perf_counter() - started
_ = engine.part.corpus, engine.part.graph, engine.part.tokens, engine.part.postings
heavy = sorted({"torch", "faiss", "transformers", "spacy", "lightgbm", "openvino", "tokenizers"} & set(sys.modules))
print(json.dumps({"seconds": seconds, "rss": process.memory_info().rss, "heavy": heavy}))
"""


def test_opening_loads_no_model(sample_index):
    result = subprocess.run(
        [sys.executable, "-c", OPENING, str(sample_index)], capture_output=True, text=True, check=True, timeout=120
    )
    found = json.loads(result.stdout)
    assert found["heavy"] == []
    assert found["seconds"] < 1
    assert found["rss"] < 300 * 2**20


TABLE = {"id": "rivers", "title": "Rivers", "header": ["River", "Length"], "rows": [["Aare", "288"], ["Inn", "518"]]}
PASSAGES = [
    {"id": "aare", "title": "Aare", "text": "The Aare flows through Bern."},
    {"id": "moon", "title": "Moon", "text": "A satellite that no table mentions."},
]


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    """Index tables and passages; returns the index."""

    def build(*, tables=(), passages=(), overrides=()) -> Path:
        corpus, index = tmp_path / "corpus", tmp_path / "index"
        corpus.mkdir()
        for name, records in (("tables.jsonl", tables), ("passages.jsonl", passages)):
            if records:
                (corpus / name).write_text("".join(json.dumps(record) + "\n" for record in records))
        build_index(corpus, index, config=load_config(overrides=["encoder.runtime=torch", *overrides]))
        return index

    return build


def found_in(index: Path, question: str) -> list[tuple[str | None, str | None]]:
    with Engine.open(index, threads=2) as engine:
        evidence = linked(engine.search(question, k=20, explain=True))
        assert len(evidence.edges) == len(engine.part.search.units)
        return ids(evidence)


def test_a_corpus_without_tables(build):
    found = found_in(build(passages=PASSAGES), "Which satellite?")
    assert found == [(None, "moon"), (None, "aare")]


def test_a_corpus_without_passages(build):
    found = found_in(build(tables=[TABLE]), "How long is the Inn?")
    assert found == [("rivers#1", None), ("rivers#0", None)]


def test_a_corpus_without_links_and_with_lone_nodes(build):
    index = build(tables=[TABLE], passages=PASSAGES, overrides=["linking.source=none"])
    found = found_in(index, "How long is the Inn?")
    assert found[0] == ("rivers#1", None)
    assert sorted(found, key=str) == [("rivers#0", None), ("rivers#1", None), (None, "aare"), (None, "moon")]


def test_a_corpus_without_any_row(build):
    assert found_in(build(tables=[TABLE | {"rows": []}]), "How long is the Inn?") == []


def test_a_corpus_whose_every_pair_is_linked(build):
    one_row = TABLE | {"rows": [["Aare", "288"]], "links": [[0, 0, "aare"]]}
    index = build(tables=[one_row], passages=PASSAGES[:1], overrides=["linking.source=hyperlinks"])
    assert found_in(index, "Which river flows through Bern?") == [("rivers#0", "aare")]
    with Engine.open(index) as engine:
        engine.warm_up()


def test_an_open_engine_outlives_its_snapshot(build):
    index = build(tables=[TABLE], passages=PASSAGES)
    with Engine.open(index) as engine:
        delete(index, [0])
        remove_tombstones(index)
        assert ("rivers#0", "aare") in ids(engine.search("Which river flows through Bern?", k=5))


def remove_tombstones(index: Path) -> None:
    """What a later writer does with the lists of snapshots that are no longer current."""
    current = read_manifest(index).parts[0].tombstones.path
    for path in (index / "tombstones").glob("*.npy"):
        if path != index / current:
            path.unlink()


def test_nodes_without_a_word(build):
    blank = {"id": "blank", "title": "…", "text": "—"}
    index = build(tables=[TABLE | {"title": "", "rows": [["", ""]]}], passages=[blank, *PASSAGES])
    assert len(found_in(index, "Which satellite?")) == 4


def test_deleted_nodes_are_not_found_and_their_neighbours_are(build):
    links = [[0, 0, "aare"]]
    index = build(tables=[TABLE | {"links": links}], passages=PASSAGES, overrides=["linking.source=hyperlinks"])
    assert found_in(index, "Which river flows through Bern?")[0] == ("rivers#0", "aare")
    delete(index, [0, 3])
    found = found_in(index, "Which river flows through Bern?")
    assert found == [(None, "aare"), ("rivers#1", None)]


def delete(index: Path, nodes: list[int]) -> None:
    """A new snapshot in which nodes are deleted (segments from 0, then passages)."""
    manifest = read_manifest(index)
    part = manifest.parts[0]
    entry = write_tombstones(index, part.name, np.array(nodes), revision=1)
    counts = part.counts.model_copy(update={"deleted": len(nodes)})
    part = part.model_copy(update={"tombstones": entry, "counts": counts})
    update = {"parts": (part,), "generation": manifest.generation + 1, "counts": counts}
    write_manifest(index, manifest.model_copy(update=update))
