"""Run and qrels files: ids survive, order survives, and other tools compute the same nDCG."""

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.errors import EvaluationError
from helios.evaluation.edges import EdgeId
from helios.evaluation.measures import ndcg
from helios.evaluation.questions import Question
from helios.evaluation.runs import (
    Run,
    decode_edge_id,
    encode_edge_id,
    read_qrels,
    read_run,
    write_qrels,
    write_run,
)
from helios.types import SegmentId


def edge(row: int | None, passage: str | None, table: str = "t") -> EdgeId:
    return EdgeId(None if row is None else SegmentId(table, row), passage)


@pytest.mark.parametrize(
    ("edge_id", "document_id"),
    [
        (edge(3, "/wiki/Bern", "Cities_0"), "Cities_0#3|/wiki/Bern"),
        (edge(3, None), "t#3|*"),
        (edge(None, "p"), "*|p"),
        (edge(0, "a|b#c*d", "x#1|y"), "x%231%7Cy#0|a%7Cb%23c%2Ad"),
        (edge(0, "two words\ttab\n", "100 %"), "100%20%25#0|two%20words%09tab%0A"),
        (edge(0, "", ""), "#0|"),
        (edge(0, "Zürich\u3000\u2028駅"), "t#0|Z%C3%BCrich%E3%80%80%E2%80%A8%E9%A7%85"),
    ],
)
def test_edge_ids(edge_id, document_id):
    assert encode_edge_id(edge_id) == document_id
    assert decode_edge_id(document_id) == edge_id


@pytest.mark.parametrize("document_id", ["", "t#1", "t|p", "*|*", "t#-1x|p", "t#01|p", "t#1|p|q", "a b#1|p", "t#+1|p"])
def test_what_is_not_an_edge_id_is_refused(document_id):
    with pytest.raises(EvaluationError, match="is not the id of an edge"):
        decode_edge_id(document_id)


ANY_TEXT = st.text(max_size=12)
EDGE_ID = st.one_of(
    st.builds(edge, st.integers(0, 10**6), st.none() | ANY_TEXT, ANY_TEXT),
    st.builds(edge, st.none(), ANY_TEXT),
)  # fmt: skip


@given(edge_id=EDGE_ID)
def test_edge_ids_round_trip(edge_id):
    document_id = encode_edge_id(edge_id)
    assert decode_edge_id(document_id) == edge_id
    assert document_id.isascii()
    assert document_id.split() == [document_id]


SCORES = st.lists(st.floats(-100, 100, width=32), max_size=8).map(lambda scores: sorted(scores, reverse=True))


@given(
    scores=st.dictionaries(st.text(min_size=1, max_size=6), SCORES, max_size=4),
    data=st.data(),
)
def test_runs_round_trip(tmp_path_factory, scores, data):
    path = tmp_path_factory.mktemp("runs") / "run.trec"
    rankings = {}
    for question_id, values in scores.items():
        count = len(values)
        edges = data.draw(st.lists(EDGE_ID, min_size=count, max_size=count, unique=True))
        rankings[question_id] = tuple(zip(edges, values, strict=True))
    write_run(path, Run("my system", rankings))
    read = read_run(path)
    assert read.name == ("my system" if any(scores.values()) else "")
    for question_id, ranking in rankings.items():
        found = read.rankings.get(question_id, ())
        assert [edge_id for edge_id, _ in found] == [edge_id for edge_id, _ in ranking]
        assert [score for _, score in found] == pytest.approx([score for _, score in ranking], abs=1e-4)
        written = [score for _, score in found]
        assert all(first > second for first, second in zip(written, written[1:], strict=False))


def test_other_tools_compute_our_ndcg(tmp_path):
    gold = (edge(0, "a"), edge(1, None), edge(2, "c"))
    ranking = ((edge(5, "x"), 2.0), (edge(1, "y"), 2.0), (edge(1, "z"), 2.0), (edge(0, "a"), 1.0))
    question, run = Question("q 1", "?", ("x",), "t", gold), Run("s", {"q 1": ranking})
    write_run(tmp_path / "run.trec", run)
    write_qrels(tmp_path / "qrels.txt", [question], run)
    measured = ir_measures.calc_aggregate(
        [ir_measures.nDCG @ 50],
        ir_measures.read_trec_qrels(str(tmp_path / "qrels.txt")),
        ir_measures.read_trec_run(str(tmp_path / "run.trec")),
    )
    assert measured[ir_measures.nDCG @ 50] == pytest.approx(ndcg([e for e, _ in ranking], gold, k=50))


def test_qrels_round_trip(tmp_path):
    question = Question("q", "?", ("x",), "t", (edge(0, "a"), edge(0, None), edge(1, None)))
    write_qrels(tmp_path / "qrels.txt", [question])
    assert read_qrels(tmp_path / "qrels.txt") == {"q": {edge(0, "a"): 1, edge(1, None): 1}}


def test_a_second_run_replaces_the_first(tmp_path):
    path = tmp_path / "folder" / "run.trec"
    write_run(path, Run("a", {"q": [(edge(0, "a"), 1.0), (edge(1, "b"), 0.5)]}))
    write_run(path, Run("b", {"q": [(edge(2, "c"), 1.0)]}))
    assert path.read_text() == "q Q0 t#2|c 1 1.0 b\n"
    assert [file.name for file in path.parent.iterdir()] == ["run.trec"]


def test_a_failed_write_leaves_the_file_that_was_there(tmp_path):
    path = tmp_path / "run.trec"
    write_run(path, Run("a", {"q": [(edge(0, "a"), 1.0)]}))
    with pytest.raises(EvaluationError, match="ranks an edge twice"):
        write_run(path, Run("a", {"p": [(edge(0, "a"), 1.0)], "q": [(edge(0, "a"), 1.0), (edge(0, "a"), 0.5)]}))
    with pytest.raises(EvaluationError, match="has the score nan"):
        write_run(path, Run("a", {"q": [(edge(0, "a"), float("nan"))]}))
    assert path.read_text() == "q Q0 t#0|a 1 1.0 a\n"
    assert [file.name for file in tmp_path.iterdir()] == ["run.trec"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q Q0 t#0|a 1 1.0", "expected 6 fields, found 5"),
        ("q Q0 t0a 1 1.0 s", "is not the id of an edge"),
        ("q Q0 t#0|a one 1.0 s", "invalid literal"),
        ("q Q0 t#1|b 1 1.0 s", "appears twice"),
    ],
)
def test_bad_run_lines_are_named(tmp_path, line, message):
    path = tmp_path / "run.trec"
    path.write_text(f"q Q0 t#1|b 1 1.0 s\n{line}\n")
    with pytest.raises(EvaluationError, match=message) as caught:
        read_run(path)
    assert str(caught.value).startswith(f"{path}:2: ")


def test_missing_files_are_named(tmp_path):
    with pytest.raises(EvaluationError, match="does not exist"):
        read_run(tmp_path / "nowhere.trec")
