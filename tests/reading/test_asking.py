"""What refinement computed reaches the reader, an answer on a computed row cites its cells, and its row comes first."""

import pytest

from helios.reading.asking import computed_answer, with_cells, with_rows
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


def test_a_row_that_a_program_rests_on_comes_first(engine):
    evidence = engine.search("Which races did she win?", k=5)
    row = next(edge.segment.segment_id for edge in evidence.edges[1:] if edge.segment)
    moved = with_rows(evidence, Answer("?", "7", row=row), engine.corpus)
    assert moved.edges[0].segment.segment_id == row
    assert [edge.rank for edge in moved.edges] == [1, 2, 3, 4, 5]
    assert {edge.score for edge in moved.edges} == {edge.score for edge in evidence.edges}


def test_a_row_that_was_not_found_comes_first(engine):
    evidence = engine.search("Which races did she win?", k=5)
    found = {edge.segment.segment_id for edge in evidence.edges if edge.segment}
    table = next(iter(engine.corpus.tables.ids()))
    row = next(one for n in range(99) if (one := SegmentId(table, n)) not in found)
    moved = with_rows(evidence, Answer("?", "7", row=row), engine.corpus)
    assert (moved.edges[0].segment.segment_id, moved.edges[0].origin) == (row, Origin.AGGREGATED)
    assert len(moved.edges) == 5
    assert [edge.segment for edge in moved.edges[1:]] == [edge.segment for edge in evidence.edges[:4]]


def test_rows_of_other_programs_follow_the_best_edge(engine):
    evidence = engine.search("Which races did she win?", k=5)
    table = next(iter(engine.corpus.tables.ids()))
    found = {edge.segment.segment_id for edge in evidence.edges if edge.segment}
    one, two = [row for n in range(99) if (row := SegmentId(table, n)) not in found][:2]
    abstained = Answer("?", "", row=one, rows=(one, two))
    shown = [edge.segment and edge.segment.segment_id for edge in with_rows(evidence, abstained, engine.corpus).edges]
    before = [edge.segment and edge.segment.segment_id for edge in evidence.edges]
    assert shown == [one, before[0], two, *before[1:3]]
    alone = Answer("?", "", rows=(one, two))
    assert [edge.segment and edge.segment.segment_id for edge in with_rows(evidence, alone, engine.corpus).edges] == [
        before[0],
        one,
        two,
        *before[1:3],
    ]
    assert with_rows(evidence, Answer("?", "7"), engine.corpus) is evidence
