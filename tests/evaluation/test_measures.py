"""Measures against figures that were worked out by hand."""

import math

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.evaluation import measures
from helios.evaluation.edges import EdgeId, RankedEdge
from helios.evaluation.runs import encode_edge_id
from helios.types import Passage, Segment, SegmentId


def edge(row: int | None, passage: str | None, table: str = "t") -> EdgeId:
    return EdgeId(None if row is None else SegmentId(table, row), passage)


def ranked(row: int, passage_text: str | None, *, cell: str = "x", passage_id: str = "p") -> RankedEdge:
    segment = Segment(SegmentId("t", row), "Title", "", ("name",), (cell,))
    passage = None if passage_text is None else Passage(passage_id, "Page", passage_text)
    return RankedEdge(segment, passage, 1.0)


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("He won the 1990 cup .", "1990", True),
        ("It cost 21990 francs", "1990", False),
        ("born in mid-1990", "1990", True),
        ("St. John 's , Newfoundland", "St John's", True),
        ("a U.S. state", "US", False),
        ("Zürich HB", "zürich", True),
        ("Zu\u0308rich", "Zürich", True),
        ("STRASSE", "Straße", True),
        ("anything at all", "", False),
        ("anything at all ... !", "...", False),
        ("", "", False),
        ("grade a", "A", True),
        ("the Beatles", "The Beatles", True),
    ],
)
def test_answers_are_found_word_by_word(text, answer, expected):
    assert measures.contains_answer(text, [answer]) is expected


def test_one_of_several_answers_is_enough():
    assert measures.contains_answer("the year 1990", ["nineteen ninety", "1990"])


def test_answer_rank_reads_both_nodes_and_the_header():
    edges = [ranked(0, "nothing"), ranked(1, "the capital is Bern"), ranked(2, None, cell="Thun")]
    assert measures.answer_rank(edges, ["Bern"]) == 2
    assert measures.answer_rank(edges, ["Thun"]) == 3
    assert measures.answer_rank(edges, ["name x"]) == 1
    assert measures.answer_rank(edges, ["Genf"]) is None
    assert measures.answer_rank([], ["Bern"]) is None


def test_ndcg_by_hand():
    gold = [edge(0, "a"), edge(1, "b")]
    ideal = 1 + 1 / math.log2(3)
    assert measures.ndcg([edge(0, "a"), edge(1, "b")], gold, k=50) == 1.0
    assert measures.ndcg([edge(9, "z"), edge(1, "b")], gold, k=50) == pytest.approx((1 / math.log2(3)) / ideal)
    assert measures.ndcg([edge(9, "z"), edge(8, "z"), edge(0, "a")], gold, k=2) == 0.0
    assert measures.ndcg([], gold, k=50) == 0.0
    with pytest.raises(ValueError, match="at least one gold edge"):
        measures.ndcg([edge(0, "a")], [], k=50)


def test_the_ideal_counts_each_gold_edge_once():
    assert measures.ndcg([edge(0, "a")], [edge(0, "a"), edge(0, "a")], k=50) == 1.0


def test_a_gold_edge_is_collected_once():
    gold = [edge(0, None), edge(1, "b")]
    found = measures.collected_gold([edge(0, "x"), edge(0, "y"), edge(1, "b"), edge(1, "b")], gold)
    assert found == [edge(0, None), None, edge(1, "b"), None]


def test_a_gold_segment_alone_is_met_by_any_edge_of_it():
    assert measures.ndcg([edge(0, "any")], [edge(0, None)], k=50) == 1.0
    assert measures.ndcg([edge(0, None)], [edge(0, None)], k=50) == 1.0
    assert measures.ndcg([edge(1, "any")], [edge(0, None)], k=50) == 0.0
    assert measures.ndcg([edge(3, "p")], [edge(None, "p")], k=50) == 1.0


def test_a_gold_edge_is_not_met_by_its_segment_alone():
    assert measures.ndcg([edge(0, None), edge(0, "z")], [edge(0, "a")], k=50) == 0.0


def test_gold_that_another_gold_edge_covers_asks_for_nothing_more():
    gold = [edge(0, None), edge(0, "a"), edge(1, None)]
    assert measures.distinct_gold(gold) == (edge(0, "a"), edge(1, None))
    assert measures.ndcg([edge(0, "a"), edge(1, "z")], gold, k=50) == 1.0


def test_gold_edge_recall_by_hand():
    gold = [edge(0, "a"), edge(1, "b"), edge(2, None), edge(3, "c")]
    ranking = [edge(0, "a"), edge(2, "q"), edge(5, "z"), edge(3, "c")]
    assert [measures.gold_edge_recall(ranking, gold, k=k) for k in (1, 2, 3, 4)] == [0.25, 0.5, 0.5, 0.75]


def test_tables_rank_by_their_first_edge():
    ranking = [edge(3, "a", "x"), edge(None, "b"), edge(4, "c", "x"), edge(0, "d", "y")]
    assert measures.table_rank(ranking, "x") == 1
    assert measures.table_rank(ranking, "y") == 2
    assert measures.table_rank(ranking, "z") is None


class TestAnswerWithinTokens:
    """Segments linearise to `Title`, `name: x` (4 tokens with the colon), passages to `Page` + text."""

    def test_the_last_token_counts(self):
        edges = [ranked(0, "one two Bern")]
        assert measures.answer_within_tokens(edges, ["Bern"], limit=8)
        assert not measures.answer_within_tokens(edges, ["Bern"], limit=7)
        assert measures.answer_within_tokens(edges, ["two"], limit=7)

    def test_a_node_is_printed_once(self):
        edges = [ranked(0, "one", passage_id="a"), ranked(0, "Bern", passage_id="b")]
        assert measures.answer_within_tokens(edges, ["Bern"], limit=8)
        assert not measures.answer_within_tokens(edges, ["Bern"], limit=7)

    def test_the_tokenizer_decides(self):
        def letters(text: str) -> list[tuple[int, int]]:
            return [(i, i + 1) for i in range(len(text))]

        edges = [ranked(0, None, cell="Bern")]
        assert measures.answer_within_tokens(edges, ["Bern"], tokenizer=letters, limit=16)
        assert not measures.answer_within_tokens(edges, ["Bern"], tokenizer=letters, limit=15)

    def test_nothing_is_found_in_nothing(self):
        assert not measures.answer_within_tokens([], ["Bern"])
        assert not measures.answer_within_tokens([ranked(0, "...")], ["..."])


@pytest.mark.parametrize(
    ("prediction", "answer", "exact", "f1"),
    [
        ("The Beatles", "beatles!", True, 1.0),
        ("John Lennon", "Lennon", False, 2 / 3),
        ("Paul", "John", False, 0.0),
        ("the", "", True, 1.0),
        ("", "John", False, 0.0),
        ("a b b", "b b c", False, 0.8),
    ],
)
def test_squad_measures(prediction, answer, exact, f1):
    assert measures.exact_match(prediction, [answer]) is exact
    assert measures.f1(prediction, [answer]) == pytest.approx(f1)
    assert measures.f1(prediction, [answer, prediction]) == 1.0


ROW = st.integers(0, 3)
PASSAGE = st.sampled_from(["a", "b", None])
EDGE = st.one_of(st.builds(edge, ROW, PASSAGE), st.builds(edge, st.none(), st.sampled_from(["a", "b"])))
RANKING = st.lists(EDGE, max_size=60)
GOLD = st.lists(EDGE, min_size=1, max_size=8)


@given(ranking=RANKING, gold=GOLD)
def test_ndcg_lies_between_0_and_1_and_ignores_repeated_gold(ranking, gold):
    value = measures.ndcg(ranking, gold, k=50)
    assert 0.0 <= value <= 1.0
    assert measures.ndcg(ranking, gold * 2, k=50) == value


@given(ranking=RANKING, gold=GOLD)
def test_recall_never_falls_with_depth(ranking, gold):
    values = [measures.gold_edge_recall(ranking, gold, k=k) for k in range(1, 61)]
    assert values == sorted(values)
    assert values[-1] <= 1.0


@given(ranking=st.lists(EDGE, max_size=60, unique=True), gold=GOLD)
def test_ndcg_agrees_with_ir_measures(ranking, gold):
    """Each collected gold edge is judged as the edge that met it; the rest of the gold stays unranked."""
    found = measures.collected_gold(ranking, gold)
    names = [f"{rank}-{encode_edge_id(edge)}" for rank, edge in enumerate(ranking)]
    judged = {gold_edge: name for gold_edge, name in zip(found, names, strict=True) if gold_edge is not None}
    qrels = [
        ir_measures.Qrel("q", judged.get(gold_edge, f"unranked {number}"), 1)
        for number, gold_edge in enumerate(measures.distinct_gold(gold))
    ]
    run = [ir_measures.ScoredDoc("q", name, float(-rank)) for rank, name in enumerate(names)]
    expected = ir_measures.calc_aggregate([ir_measures.nDCG @ 50], qrels, run)[ir_measures.nDCG @ 50]
    assert measures.ndcg(ranking, gold, k=50) == pytest.approx(expected, abs=1e-9)
