"""Evidence in a prompt: the budget holds to the last token, and nothing is cut without being counted."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from helios.llm import estimate_tokens
from helios.llm.quoting import one_line
from helios.models.text import sentences_of
from helios.reading.packing import BRIEF_TOKENS, CUT, WHOLE, pack_evidence
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
        built.append(EvidenceEdge(number + 1, 1.0 - number, 0.5, Origin.LINKED, segment, passage))
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


def test_a_text_names_all_its_rows_and_titles_once():
    first, second, third = evidence(3).edges
    veep = Passage("other", "River zero", first.passage.text)
    edges = (first, replace(second, passage=first.passage), replace(third, passage=veep))
    packed = pack_evidence("?", Evidence("?", edges), budget=1000, count_tokens=words)
    assert list(packed.nodes) == ["R1", "P1", "R2", "R3"]
    assert "P1  River 0 or River zero (linked from R1, R2, R3)" in packed.text


def test_what_was_rejected_is_shown_only_where_nothing_else_is():
    first, second = evidence(2).edges
    some = pack_evidence("?", Evidence("?", (first, replace(second, rejected=True))), budget=999, count_tokens=words)
    assert list(some.nodes) == ["R1", "P1"]
    none = pack_evidence("?", Evidence("?", (replace(first, rejected=True),)), budget=999, count_tokens=words)
    assert list(none.nodes) == ["R1", "P1"]


def test_later_passages_are_shown_by_what_speaks_of_the_question():
    filler = " ".join(f"Boat {n} travels on it." for n in range(60))
    edges = tuple(
        replace(edge, passage=replace(edge.passage, text=f"{edge.passage.text} {filler} Tolls end at {n}."))
        for n, edge in enumerate(evidence(WHOLE + 1).edges)
    )
    packed = pack_evidence("Where do the tolls end?", Evidence("?", edges), budget=99999, count_tokens=words)
    assert packed.cut == 1
    last = packed.text.splitlines()[-1]
    assert f"Tolls end at {WHOLE}." in last
    assert words(last) <= BRIEF_TOKENS


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


WORDS = st.lists(st.sampled_from(["river", "source", "Жёлтая", "长江", "a|b", "<x>", "1,233", "\n"]), max_size=25)
TEXTS = WORDS.map(" ".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS, st.lists(TEXTS, max_size=6)), min_size=1, max_size=5), st.integers(0, 400))
def test_nothing_is_cut_within_a_cell_or_a_sentence(nodes, budget):
    edges = []
    for number, (one, two, sentences) in enumerate(nodes):
        segment = Segment(SegmentId("t", number), "T", "", ("a", "b"), (one, two))
        passage = Passage(
            f"p{number}", one or "p", " ".join([*(f"{sentence}." for sentence in sentences), str(number)])
        )
        edges.append(EvidenceEdge(number + 1, 0.0, 0.5, Origin.LINKED, segment, passage))
    packed = pack_evidence("source?", Evidence("?", tuple(edges)), budget=budget, count_tokens=estimate_tokens)
    assert estimate_tokens(packed.text) <= budget
    assert len(packed.nodes) + packed.left_out == 2 * len(edges)
    lines = packed.text.splitlines()
    assert len(lines) == 2 * len(packed.nodes)
    cut = 0
    for body, node in zip(lines[1::2], packed.nodes.values(), strict=True):
        wholes = _wholes(node)
        between = " | " if isinstance(node, Segment) else " "
        starts = range(len(wholes))
        runs = {between.join(wholes[a:b]) for a in starts for b in range(a + 1, len(wholes) + 1)}
        pieces = [piece.strip(" |") for piece in body.split(CUT)]
        assert {piece for piece in pieces if piece} <= {run.strip(" |") for run in runs}
        cut += CUT in body
    assert cut == packed.cut


def _wholes(node: Segment | Passage) -> list[str]:
    """The parts of a node that are shown whole or not at all."""
    if isinstance(node, Passage):
        return [one_line(text) for _, text in sentences_of(node)]
    return [f"{name}: {one_line(cell)}" for name, cell in zip(node.header, node.cells, strict=True) if cell.strip()]
