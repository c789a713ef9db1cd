"""Candidates: what is found, and that every span is inside its piece and can be cited."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.reading.spans import Shape, candidate_spans, citation_of, piece_spans, read_nodes
from helios.types import Evidence, EvidenceEdge, Link, Origin, Passage, Segment, SegmentId


def found(text: str, where: str = "sentence:0") -> set[str]:
    return {text[start:end] for start, end, _ in piece_spans(text, where)}


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("He was born on 31 May 1948 in Bern .", {"31 May 1948", "May 1948", "1948", "Bern", "31 May"}),
        ("It opened May 31 , 1948 .", {"May 31 , 1948", "1948"}),
        ("It had over $ 37 billion in sales .", {"$ 37 billion", "37 billion", "37", "$ 37"}),
        ("It covers 524 km of forest .", {"524 km", "524"}),
        ("She lectured at the University of Warwick .", {"University of Warwick", "Warwick"}),
        ("The film is about the White Terror inflicted by the Kuomintang .", {"Kuomintang", "White Terror"}),
        ("He finished sixth in the race .", {"sixth"}),
        ("It is known for its tin mining .", {"tin mining", "tin", "mining"}),
    ],
)
def test_candidates_of_a_sentence(text, answers):
    assert answers <= found(text)


def test_a_cell_is_a_candidate_and_so_are_its_parts():
    text = "Paris , France ( 1998 )"
    assert {"Paris , France ( 1998 )", "Paris", "France", "1998"} <= found(text, "cell:2")
    assert next(shape for start, end, shape in piece_spans(text, "cell:2") if end - start == len(text)) is Shape.CELL


def test_headers_hold_no_candidates():
    assert not found("Year", "header:0")
    assert not found("   ", "cell:0")
    assert not found("", "title")


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200), st.sampled_from(["cell:0", "sentence:0", "title"]))
def test_spans_are_never_empty_and_inside_the_text(text, where):
    for start, end, _ in piece_spans(text, where):
        assert 0 <= start < end <= len(text)
        assert text[start:end].strip()


def evidence() -> Evidence:
    segment = Segment(SegmentId("t", 1), "Towers", "List", ("Name", "City"), ("Old Tower", "Bern"))
    passage = Passage("p", "Bern", "Bern is a city. It has 134,000 inhabitants.")
    other = Passage("o", "Tower", "A tower is tall.")
    edges = (
        EvidenceEdge(1, 2.0, 0.9, Origin.LINKED, segment, passage, (Link(1, 0, 4, 0.9),)),
        EvidenceEdge(2, 1.5, 0.8, Origin.LINKED, segment, other),
        EvidenceEdge(3, 1.0, 0.7, Origin.LINKED, None, passage),
    )
    return Evidence("Which city?", edges)


def test_nodes_are_distinct_with_all_their_ranks():
    nodes = read_nodes(evidence(), edges=3)
    assert [(node.title, node.ranks) for node in nodes] == [("Towers", (1, 2)), ("Bern", (1, 3)), ("Tower", (2,))]
    assert len(read_nodes(evidence(), edges=1)) == 2


def test_citations_count_characters_in_their_cell_or_sentence():
    nodes = read_nodes(evidence(), edges=3)
    cited = {
        citation.text: citation
        for span in candidate_spans(nodes)
        if (citation := citation_of(nodes[span.node], span)).text in ("Bern", "134,000", "Old Tower")
    }
    assert cited["134,000"].sentence == 1
    assert cited["134,000"].start == len("It has ")
    assert (cited["Old Tower"].column, cited["Old Tower"].start, cited["Old Tower"].end) == (0, 0, 9)
