"""The whole evaluation on a corpus that can be counted by hand."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from helios.errors import EvaluationError
from helios.evaluation.edges import EdgeId, RankedEdge, ranked_edges
from helios.evaluation.evaluate import CUTOFFS, bootstrap_interval, evaluate, measure_question
from helios.evaluation.questions import Question
from helios.evaluation.report import render, to_json
from helios.types import Evidence, EvidenceEdge, Origin, Passage, Segment, SegmentId


def ranked(row: int, text: str, score: float = 1.0, table: str = "t") -> RankedEdge:
    segment = Segment(SegmentId(table, row), "Title", "", ("name",), (f"row {row}",))
    return RankedEdge(segment, Passage(f"p{row}", "Page", text), score)


LISTS = {
    "first": [ranked(0, "Bern", 3.0), ranked(1, "Thun", 2.0)],
    "second": [ranked(2, "no", 3.0, "other"), ranked(1, "no", 2.0), ranked(0, "Genf", 1.0)],
    "third": [],
}
QUESTIONS = [
    Question("1", "first", ("Bern",), "t", (EdgeId(SegmentId("t", 0), "p0"),)),
    Question("2", "second", ("Genf",), "t", (EdgeId(SegmentId("t", 1), None),)),
    Question("3", "third", ("...",)),
]


def test_means_by_hand():
    asked = []
    report = evaluate(lambda text: asked.append(text) or LISTS[text], QUESTIONS, name="toy", warmup=1)
    assert asked == ["first", "first", "second", "third"]
    assert report["AR@2"] == pytest.approx(1 / 3)
    assert report["AR@5"] == pytest.approx(2 / 3)
    assert report["HITS@4K"] == pytest.approx(2 / 3)
    assert report["nDCG@50"] == pytest.approx((1 + 0.6309297535714575) / 2)
    assert report["nDCG@50 linked"] == 1.0
    assert report["edge R@2"] == 1.0
    assert report["table R@1"] == 0.5
    assert report["table R@5"] == 1.0
    assert {row.name: row.count for row in report.measures}["nDCG@50"] == 2
    assert {row.name: row.count for row in report.measures}["nDCG@50 linked"] == 1
    assert report.counts == {
        "questions": 3,
        "without_gold_edges": 1,
        "without_gold_table": 1,
        "answers_without_words": 1,
        "without_results": 1,
    }
    assert set(report.latency_ms) == {"p50", "p90", "p95", "p99", "mean"}
    assert [row.answer_rank for row in report.questions] == [1, 3, None]


def test_run_of_a_report():
    run = evaluate(LISTS.__getitem__, QUESTIONS, name="toy").run()
    assert run.name == "toy"
    assert run.rankings["1"][0] == (EdgeId(SegmentId("t", 0), "p0"), 3.0)


def test_depth_cuts_every_list():
    report = evaluate(LISTS.__getitem__, QUESTIONS, depth=2)
    assert report["AR@2"] == pytest.approx(1 / 3)
    assert "AR@5" not in {row.name for row in report.measures}
    assert "nDCG@2" in {row.name for row in report.measures}
    assert [len(row.ranking) for row in report.questions] == [2, 2, 0]


def test_no_questions_are_an_error():
    with pytest.raises(EvaluationError, match="no questions"):
        evaluate(LISTS.__getitem__, [])


def test_bootstrap_is_seeded_and_holds_the_mean():
    values = [0.0, 1.0] * 50
    low, high = bootstrap_interval(values, seed=3)
    assert (low, high) == bootstrap_interval(values, seed=3)
    assert 0.38 < low < 0.45 < 0.55 < high < 0.62
    assert bootstrap_interval([1.0, 1.0]) == (1.0, 1.0)


def test_json_and_table():
    report = evaluate(LISTS.__getitem__, QUESTIONS, name="toy", config={"k": 50})
    document = json.loads(json.dumps(to_json(report)))
    assert document["config"] == {"k": 50}
    assert document["measures"]["AR@2"]["mean"] == pytest.approx(1 / 3, abs=1e-6)
    assert document["questions"][0]["edges"] == ["t#0|p0", "t#1|p1"]
    assert {"date", "helios_version", "commit", "machine", "counts", "latency_ms"} <= set(document)
    assert "questions" not in to_json(report, with_questions=False)
    console = Console(file=io.StringIO(), width=100)
    console.print(render(report))
    text = console.file.getvalue()
    assert "AR@2" in text
    assert "33.3" in text
    assert "without gold edges: 1" in text


def test_ranked_edges_of_evidence():
    segment = Segment(SegmentId("t", 0), "T", "", ("a",), ("b",))
    evidence = Evidence("?", (EvidenceEdge(1, 0.5, 0.6, Origin.LINKED, segment, None),))
    (edge,) = ranked_edges(evidence)
    assert edge == RankedEdge(segment, None, 0.5)
    assert edge.edge_id == EdgeId(SegmentId("t", 0), None)


@settings(deadline=None)
@given(texts=st.lists(st.sampled_from(["Bern", "Thun", "x y", "Bern Thun"]), max_size=60))
def test_answer_recall_never_falls_with_k(texts):
    edges = [ranked(row, text) for row, text in enumerate(texts)]
    values = measure_question(QUESTIONS[0], edges[:50], latency_ms=0.0).values
    recalls = [values[f"AR@{k}"] for k in CUTOFFS]
    assert recalls == sorted(recalls)
    assert all(0.0 <= value <= 1.0 for value in values.values())
