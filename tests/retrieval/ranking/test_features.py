"""Features of edges on the sample corpus: their ranges, their meaning, and that candidates alone decide them."""

import numpy as np
import pytest

from helios.engine import Engine
from helios.retrieval.ranking.features import FEATURES
from helios.retrieval.ranking.stage import pair_features
from helios.retrieval.ranking.words import Asked
from helios.retrieval.refinement.wording import read_cues
from helios.retrieval.state import RankedPairs
from helios.types import Edge

QUESTION = "In what year was the element discovered that melts in a warm hand?"


def ranked(state_after, question: str) -> RankedPairs:
    found = state_after(question, "retrieve", "rank").ranked
    assert found is not None
    return found


def columns_of(ranked: RankedPairs) -> dict[str, np.ndarray]:
    return dict(zip(FEATURES, ranked.features.T, strict=True))


def test_every_feature_is_a_number_of_every_edge(state_after):
    found = ranked(state_after, QUESTION)
    assert found.features.shape == (len(found.edges), len(FEATURES))
    assert np.isfinite(found.features).all()


@pytest.mark.parametrize("name", ["maxsim", "fused", "below_table", "below_row", "below_passage", "terms_below_table"])
def test_distances_to_the_best_are_zero_at_best(state_after, name: str):
    assert columns_of(ranked(state_after, QUESTION))[name].max() == 0.0


def test_shares_are_shares(state_after):
    columns = columns_of(ranked(state_after, QUESTION))
    for name in FEATURES:
        if name.startswith(("terms_in", "tokens_in", "numbers_in")):
            assert 0.0 <= columns[name].min() <= columns[name].max() <= 1.0 + 1e-5
    assert (columns["terms_in_edge"] >= columns["terms_in_row"] - 1e-6).all()
    assert (columns["terms_in_edge"] >= columns["terms_in_passage"] - 1e-6).all()


def test_a_cell_that_the_question_names_is_seen(engine: Engine, state_after):
    cell = max(engine.corpus.segment(0).cells, key=len)
    found = ranked(state_after, f"What about {cell} then?")
    columns = columns_of(found)
    rows = np.array([edge.segment == 0 for edge in found.edges])
    assert rows.any()
    assert (columns["cells_in_question"][rows] >= 1).all()
    assert columns["longest_cell_in_question"][rows].min() >= len(cell) // 2


def test_linked_rows_carry_their_link(engine: Engine, state_after):
    found = ranked(state_after, QUESTION)
    columns = columns_of(found)
    for edge, score, count in zip(found.edges, columns["link_score"], columns["link_count"], strict=True):
        links = engine.index.edge_links(edge)
        assert count == len(links)
        assert score == pytest.approx(max((link.score for link in links), default=0.0), abs=1e-6)


def test_place_in_the_table_adds_up(state_after):
    columns = columns_of(ranked(state_after, QUESTION))
    rows = columns["table_rows"] > 0
    inside = columns["row_from_start"] + columns["row_from_end"] + 1
    assert np.array_equal(inside[rows], columns["table_rows"][rows])


def test_features_are_looked_up_by_the_edge_and_not_by_its_place(state_after):
    found = ranked(state_after, QUESTION)
    picked = [found.edges[place] for place in (40, 3, 71)]
    np.testing.assert_array_equal(found.features_of(picked), found.features[[40, 3, 71]])
    with pytest.raises(KeyError):
        found.features_of([Edge(0, 10**6)])


def test_what_the_state_knows_changes_no_feature(state_after):
    """Facts and maxima of other nodes, left by another stage, and features that are known already."""
    state = state_after(QUESTION, "retrieve", "rank", "rerank", "expand")
    found = ranked(state_after, QUESTION)
    _, again, own = pair_features(state, found.pairs, found.scores)
    np.testing.assert_array_equal(again, found.features)
    _, known, _ = pair_features(state, found.pairs, found.scores, known=own[:60])
    np.testing.assert_array_equal(known, found.features)


@pytest.mark.parametrize(
    "question",
    [
        "Where does the man from Budapest live ?",
        "Which forest lies in the county ?",
        "What interest did the guest of the contest have ?",
        "Who directed the opening of the Everest film ?",
        "How many people protest in Bucharest ?",
        "Which honest priest did Ernest request ?",
        "What is the rest of the northwest called ?",
    ],
)  # fmt: skip
def test_a_superlative_is_a_word_and_no_part_of_one(question: str):
    assert not Asked.of(question).superlative
    assert read_cues(question) == ()


@pytest.mark.parametrize(
    "question", ["Which is the oldest ?", "Which Budapest bridge is the longest ?", "Who came second ?", "the 3rd one"]
)
def test_superlatives_and_ordinals_are_seen(question: str):
    assert Asked.of(question).superlative
    assert read_cues(question)
