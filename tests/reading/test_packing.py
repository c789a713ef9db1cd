"""Evidence in a prompt: the budget holds to the last token, and nothing is cut without being counted."""

from hypothesis import given
from hypothesis import strategies as st

from helios.reading.packing import CUT, pack_evidence
from helios.types import Evidence, EvidenceEdge, Origin, Passage, Segment, SegmentId


def words(text: str) -> int:
    return len(text.split())


def evidence(edges: int = 3) -> Evidence:
    built = []
    for number in range(edges):
        segment = Segment(
            SegmentId("t", number), "Rivers", "Europe", ("Name", "Length"), (f"River {number}", "1,233 km")
        )
        text = f"River {number} is a river. Boats travel on it. Its source is a glacier. It ends in a sea."
        passage = Passage(f"p{number}", f"River {number}", text)
        built.append(EvidenceEdge(number + 1, 1.0 - number, Origin.LINKED, segment, passage))
    return Evidence("Where is the source of the river?", tuple(built))


def test_everything_is_shown_where_there_is_room():
    packed = pack_evidence("source?", evidence(), budget=1000, count_tokens=words)
    assert list(packed.nodes) == ["R1", "P1", "R2", "P2", "R3", "P3"]
    assert (packed.cut, packed.left_out) == (0, 0)
    assert "P2  River 1 (linked from R2)" in packed.text
    assert packed.text.endswith("It ends in a sea.\n")
    assert CUT not in packed.text


def test_a_node_is_shown_once():
    edge = evidence(1).edges[0]
    packed = pack_evidence("?", Evidence("?", (edge, edge)), budget=1000, count_tokens=words)
    assert list(packed.nodes) == ["R1", "P1"]


def test_what_speaks_of_the_question_stays():
    packed = pack_evidence("Where is the source?", evidence(1), budget=28, count_tokens=words)
    assert "Its source is a glacier." in packed.text
    assert "Boats travel" not in packed.text
    assert CUT in packed.text
    assert (packed.cut, packed.left_out) == (1, 0)


def test_no_room_is_said():
    packed = pack_evidence("?", evidence(2), budget=3, count_tokens=words)
    assert (packed.text, packed.nodes, packed.left_out) == ("", {}, 4)


@given(st.integers(0, 120))
def test_the_budget_holds_and_all_nodes_are_accounted_for(budget):
    packed = pack_evidence("Where is the source?", evidence(4), budget=budget, count_tokens=words)
    assert words(packed.text) <= budget
    assert len(packed.nodes) + packed.left_out == 8
    assert packed.text.count(CUT) >= packed.cut


def test_a_budget_of_exactly_the_whole_text_loses_nothing():
    whole = pack_evidence("?", evidence(), budget=1000, count_tokens=words).text
    again = pack_evidence("?", evidence(), budget=words(whole), count_tokens=words)
    assert again.text == whole
    less = pack_evidence("?", evidence(), budget=words(whole) - 1, count_tokens=words)
    assert less.cut + less.left_out == 1
