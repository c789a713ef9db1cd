"""What refinement computed reaches the reader, an answer on a computed row cites its cells, and its row comes first."""

import pytest

from helios.reading.asking import EDGES_SHARE, computed_answer, in_order_of_answers, with_cells
from helios.reading.base import Answer, Citation
from helios.types import Computation, Evidence, Origin, SegmentId

ROW, OTHER = SegmentId("players", 1), SegmentId("players", 2)
COMPUTED = Computation("largest number of Goals", 0.6, (ROW,), ((ROW, 3, "34"), (OTHER, 3, "12")))
EVIDENCE = Evidence("Where was the top scorer born ?", (), computed=COMPUTED)


def test_only_the_cells_of_chosen_rows_are_told():
    computed = computed_answer(EVIDENCE)
    assert computed is not None
    assert computed.text == "34"
    assert computed.citations == (Citation("34", ROW, 3, end=2),)


@pytest.mark.parametrize("computed", [None, Computation("smallest row in order", 0.4, (ROW,))])
def test_without_cells_there_is_nothing_to_tell(computed):
    assert computed_answer(Evidence("?", (), computed=computed)) is None


def test_an_answer_on_the_chosen_row_cites_its_cell():
    computed = computed_answer(EVIDENCE)
    name = Citation("Ada", ROW, 0, end=3)
    assert with_cells(Answer("?", "Oslo", (name,)), computed).citations == (name, Citation("34", ROW, 3, end=2))
    elsewhere = Answer("?", "Oslo", (Citation("Bo", OTHER, 0, end=2),))
    assert with_cells(elsewhere, computed) == elsewhere
    already = Answer("?", "34", (Citation("34", ROW, 3, end=2),))
    assert with_cells(already, computed) == already
    assert with_cells(Answer.abstain("?", "nothing", reader="x"), computed).abstained


def _rows(evidence):
    return [edge.segment and edge.segment.segment_id for edge in evidence.edges]


def test_a_row_that_a_likely_answer_rests_on_comes_first(engine):
    evidence = engine.search("Which races did she win?", k=5)
    row = next(row for row in _rows(evidence)[1:] if row and row != _rows(evidence)[0])
    moved = in_order_of_answers(evidence, Answer("?", "7", likely=((row, 0.6),)), engine.corpus)
    assert _rows(moved)[0] == row
    assert [edge.rank for edge in moved.edges] == [1, 2, 3, 4, 5]
    assert {edge.score for edge in moved.edges} == {edge.score for edge in evidence.edges}


def test_a_row_that_was_not_found_comes_in_the_place_of_the_last(engine):
    evidence = engine.search("Which races did she win?", k=5)
    table = next(iter(engine.corpus.tables.ids()))
    row = next(one for n in range(99) if (one := SegmentId(table, n)) not in _rows(evidence))
    moved = in_order_of_answers(evidence, Answer("?", "7", likely=((row, 0.6),)), engine.corpus)
    assert (moved.edges[0].segment.segment_id, moved.edges[0].origin) == (row, Origin.AGGREGATED)
    assert len(moved.edges) == 5
    assert [edge.segment for edge in moved.edges[1:]] == [edge.segment for edge in evidence.edges[:4]]


def test_what_unlikely_answers_rest_on_stays_behind_the_best_edges(engine):
    evidence = engine.search("Which races did she win?", k=5)
    table = next(iter(engine.corpus.tables.ids()))
    one, two = [row for n in range(99) if (row := SegmentId(table, n)) not in _rows(evidence)][:2]
    best = max(edge.probability for edge in evidence.edges)
    abstained = Answer("?", "", likely=((one, 0.3), (two, 0.1 * EDGES_SHARE * best)))
    moved = in_order_of_answers(evidence, abstained, engine.corpus)
    assert _rows(moved)[0] == one
    assert two not in _rows(moved)[:2]
    assert in_order_of_answers(evidence, Answer("?", "7"), engine.corpus) is evidence


def test_a_text_that_a_likely_answer_cites_comes_first(engine):
    evidence = engine.search("Which races did she win?", k=5)
    passage = next(edge.passage.passage_id for edge in reversed(evidence.edges) if edge.passage)
    moved = in_order_of_answers(evidence, Answer("?", "Oslo", likely=((passage, 0.5),)), engine.corpus)
    assert moved.edges[0].passage.passage_id == passage
