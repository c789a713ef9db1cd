"""The front door on real indexes: answers, odd questions, poor corpora, filters, deletion, threads, opening cost."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helios.config import load_config
from helios.corpus.sample import QUESTIONS, sample_path
from helios.engine import Engine
from helios.errors import ConfigError, IndexFormatError, WhereError
from helios.evaluation.edges import ranked_edges
from helios.evaluation.evaluate import evaluate
from helios.evaluation.questions import read_questions
from helios.index.manifest import read_manifest, write_manifest
from helios.index.tombstones import Tombstones
from helios.models.encoder import MiniLMEncoder
from helios.models.text import passage_text, segment_text
from helios.retrieval.state import SearchState, Stage
from helios.types import Evidence, Origin
from indexing.commit import write_tombstones
from indexing.pipeline import build_index

GOLD_IN_TOP_5 = 18
"""Of 22 questions, those with their gold edge among the first five; 19 when measured: the linker misses three."""
ANSWERED_IN_TOP_20 = 20
"""22 when measured, on two kinds of processor; among the first ten 19 on one, 22 on the other."""


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
    assert found["AR@20"] >= ANSWERED_IN_TOP_20, found


def test_evidence_is_complete(engine: Engine):
    question = "In what year was the element discovered that melts in a warm hand?"
    evidence = engine.search(question, k=7)
    assert evidence.question == question
    assert [edge.rank for edge in evidence.edges] == list(range(1, 8))
    assert list(evidence.timings_ms) == [
        "begin", "retrieve", "rank", "rerank", "documents", "expand", "refine", "spread", "evidence",
    ]  # fmt: skip
    assert evidence.generation == engine.snapshot.manifest.generation
    assert 0 < evidence.present < 1
    for edge in evidence.edges:
        assert 0 < edge.probability < 1
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
    assert len(linked(evidence).edges) == len(engine.index.units)
    assert len(evidence.edges) == len(engine.index.units) + engine.config.advanced.expansion.beam


def test_many_questions_get_what_each_gets(engine: Engine, questions):
    texts = [question.text for question in questions[:6]]
    found = engine.search_many(iter(texts), k=5, where="kind = 'table'", workers=3)
    assert [evidence.question for evidence in found] == texts
    for evidence in found:
        alone = engine.search(evidence.question, k=5, where="kind = 'table'")
        assert (evidence.edges, evidence.present) == (alone.edges, alone.present)
    assert engine.search_many([]) == []


def test_a_filter_shows_what_it_selects_alone(engine: Engine):
    river = "Which river flows into the Black Sea?"
    plain, filtered = engine.search(river, k=10), engine.search(river, k=50, where="table.id = 'elements'")
    tables = [{edge.segment.segment_id.table_id for edge in found.edges if edge.segment} for found in (plain, filtered)]
    assert "european-rivers" in tables[0]
    assert tables[1] == {"elements"}
    assert filtered.present < plain.present
    assert engine.view("table.id = 'elements'") is engine.view(" table.id='elements' ")
    nothing = engine.search(river, where="id = 'nowhere'")
    assert (nothing.edges, nothing.present) == ((), 0.0)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("year >", "ends too early: expected a value"),
        ("colour = 'red'", "no record has the field 'colour'"),
        ("id = 3", "put the value in single quotes"),
        ("", "the filter is empty"),
        ("kind = 'table' kind = 'passage'", "character 16"),
    ],
)
def test_a_filter_that_cannot_be_used(engine: Engine, where: str, words: str):
    with pytest.raises(WhereError, match=words):
        engine.search("river", where=where)


def test_an_answer_says_where_it_stands_or_why_there_is_none(engine: Engine):
    question = "Into which sea does the Danube flow?"
    answer = engine.ask(question)
    assert answer.question == question
    assert answer.text in ("Black Sea", "the Black Sea")
    assert answer.citations
    elsewhere = engine.ask(question, where="id = 'nowhere'")
    assert elsewhere.abstained
    assert elsewhere.reason == "nothing passes the filter"


def test_what_has_no_time_is_left_out_and_said_to_be(engine: Engine):
    evidence = engine.search("In which town did the discoverer of element 32 teach?", k=5, seconds=1e-9)
    assert len(evidence.edges) == 5
    assert [note for note in evidence.notes if "time" in note]


class Reversed:
    """A stage of a user."""

    name = "reverse"
    depth = 0

    def run(self, state: SearchState) -> SearchState:
        return state.with_edges(replace(scored, score=-scored.score) for scored in state.subgraph.edges)


def test_stages_are_left_out_and_added(engine: Engine, sample_index):
    seen = []

    def arrange(usual: Sequence[Stage]) -> list[Stage]:
        seen.extend(stage.name for stage in usual)
        return [*usual[:2], Reversed()]

    with Engine.open(sample_index, threads=1, stages=arrange) as other:
        evidence = other.search("Which river is the longest?", k=5)
    assert seen == ["retrieve", "rank", "rerank", "documents", "expand", "refine", "spread"]
    assert list(evidence.timings_ms) == ["begin", "retrieve", "rank", "reverse", "evidence"]
    assert evidence.edges[0].score > evidence.edges[-1].score
    assert ids(evidence) != ids(engine.search("Which river is the longest?", k=5))


def test_everything_shows_itself_in_a_line(engine: Engine, sample_index):
    evidence = engine.search("river", k=3)
    engine.view("kind = 'table'")
    shown = {repr(engine): f"Engine({str(sample_index)!r}, generation=1, IndexReader(parts=1, segments=66, "}
    shown |= {repr(engine.index): "IndexReader(parts=1", repr(engine.snapshot): "Snapshot("}
    shown |= {repr(evidence): "Evidence('river', 3 edges, best=0.", repr(engine.encoder): "MiniLMEncoder("}
    shown |= {repr(engine.pipeline): "Pipeline(retrieve", repr(engine.reader): "ExtractiveReader("}
    shown |= {repr(stage): type(stage).__name__ for stage in engine.pipeline.stages}
    shown |= {repr(engine.models): "Models(", repr(engine.begin("river")): "SearchState('river', k=50, 0 edges, done: "}
    shown |= {repr(evidence.edges[0]): "EvidenceEdge(1, '", repr(engine.corpus): "CorpusStore("}
    shown |= {repr(engine.graph): "DataGraph(segments=66", repr(engine.index.units): "Units("}
    for text, beginning in shown.items():
        assert text.startswith(beginning)
        assert len(text) < 400
        assert "\n" not in text
        assert "0x" not in text


@pytest.mark.slow
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
process, started = psutil.Process(), time.process_time()
engine = Engine.open(sys.argv[1])
seconds = time.process_time() - started
_ = engine.corpus, engine.graph, engine.index.tokens, engine.index.postings
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
        assert len(evidence.edges) == len(engine.index.units)
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


def test_an_open_engine_outlives_its_snapshot(build, encoder):
    index = build(tables=[TABLE], passages=PASSAGES)
    with Engine.open(index) as engine:
        delete(index, encoder, [0])
        remove_tombstones(index)
        assert ("rivers#0", "aare") in ids(engine.search("Which river flows through Bern?", k=5))


def remove_tombstones(index: Path) -> None:
    """What a later writer does with the lists of snapshots that are no longer current."""
    current = read_manifest(index).parts[0].tombstones.path
    for path in (index / "tombstones").glob("*.np[yz]"):
        if path != index / current:
            path.unlink()


def test_nodes_without_a_word(build):
    blank = {"id": "blank", "title": "…", "text": "—"}
    index = build(tables=[TABLE | {"title": "", "rows": [["", ""]]}], passages=[blank, *PASSAGES])
    assert len(found_in(index, "Which satellite?")) == 4


def test_deleted_nodes_are_not_found_and_their_neighbours_are(build, encoder):
    links = [[0, 0, "aare"]]
    index = build(tables=[TABLE | {"links": links}], passages=PASSAGES, overrides=["linking.source=hyperlinks"])
    assert found_in(index, "Which river flows through Bern?")[0] == ("rivers#0", "aare")
    delete(index, encoder, [0, 3])
    found = found_in(index, "Which river flows through Bern?")
    assert found == [(None, "aare"), ("rivers#1", None)]


def delete(index: Path, encoder: MiniLMEncoder, nodes: list[int]) -> None:
    """A new snapshot in which nodes are deleted (segments from 0, then passages)."""
    with Engine.open(index) as engine:
        corpus, first = engine.corpus, engine.index.segment_count
        texts = [
            (segment_text(corpus.segment(node)) if node < first else passage_text(corpus.passages[node - first])).text
            for node in nodes
        ]
    held = [np.unique(vectors.ids) for vectors in encoder.encode_documents(texts)]
    tokens, counts = np.unique(np.concatenate(held), return_counts=True)
    deleted = Tombstones(np.array(nodes), tokens.astype(np.int32), counts.astype(np.int32))
    manifest = read_manifest(index)
    part = manifest.parts[0]
    entry = write_tombstones(index, part.name, deleted, revision=1)
    counts = part.counts.model_copy(update={"deleted": len(nodes)})
    part = part.model_copy(update={"tombstones": entry, "counts": counts})
    update = {"parts": (part,), "generation": manifest.generation + 1, "counts": counts}
    write_manifest(index, manifest.model_copy(update=update))
