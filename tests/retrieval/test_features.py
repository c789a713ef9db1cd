"""Features of edges on the sample corpus: their ranges, their meaning, and that candidates alone decide them."""

import numpy as np
import pytest

from helios.engine import Engine
from helios.retrieval.edges import rank_features
from helios.retrieval.features import FEATURES

QUESTION = "In what year was the element discovered that melts in a warm hand?"


def features_of(engine: Engine, question: str, depth: int = 100):
    found = engine.edge_index.found(engine.part, question, depth=depth)
    table = rank_features(engine.part, found, depth)
    return found.top(depth)[0], {name: table[:, i] for i, name in enumerate(FEATURES)}


def test_every_feature_is_a_number_of_every_edge(engine: Engine):
    found, columns = features_of(engine, QUESTION)
    assert len(columns) == len(FEATURES)
    for values in columns.values():
        assert values.shape == (len(found.units),)
        assert np.isfinite(values).all()


@pytest.mark.parametrize("name", ["maxsim", "fused", "below_table", "below_row", "below_passage", "terms_below_table"])
def test_distances_to_the_best_are_zero_at_best(engine: Engine, name: str):
    _, columns = features_of(engine, QUESTION)
    assert columns[name].max() == 0.0


def test_shares_are_shares(engine: Engine):
    _, columns = features_of(engine, QUESTION)
    for name in FEATURES:
        if name.startswith(("terms_in", "tokens_in", "numbers_in")):
            assert 0.0 <= columns[name].min() <= columns[name].max() <= 1.0 + 1e-5
    assert (columns["terms_in_edge"] >= columns["terms_in_row"] - 1e-6).all()
    assert (columns["terms_in_edge"] >= columns["terms_in_passage"] - 1e-6).all()


def test_a_cell_that_the_question_names_is_seen(engine: Engine):
    part = engine.part
    segment = part.corpus.segment(0)
    cell = max(segment.cells, key=len)
    found, columns = features_of(engine, f"What about {cell} then?")
    rows = np.array([part.edge(int(unit)).segment == 0 for unit in found.units])
    assert rows.any()
    assert (columns["cells_in_question"][rows] >= 1).all()
    assert columns["longest_cell_in_question"][rows].min() >= len(cell) // 2


def test_linked_rows_carry_their_link(engine: Engine):
    part = engine.part
    found, columns = features_of(engine, QUESTION)
    for unit, score, count in zip(found.units, columns["link_score"], columns["link_count"], strict=True):
        links = part.links(part.edge(int(unit)))
        assert count == len(links)
        assert score == pytest.approx(max((link.score for link in links), default=0.0), abs=1e-6)


def test_place_in_the_table_adds_up(engine: Engine):
    _, columns = features_of(engine, QUESTION)
    rows = columns["table_rows"] > 0
    inside = columns["row_from_start"] + columns["row_from_end"] + 1
    assert np.array_equal(inside[rows], columns["table_rows"][rows])
