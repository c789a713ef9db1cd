"""The exact scan agrees with exact scoring, and measures what candidate generation loses."""

from pathlib import Path

import numpy as np
import pytest

from helios.engine import Engine
from helios.evaluation.exactness import measure_exactness, scan, unit_scores
from helios.index.search import EdgeSearch, Fusion, Pairs
from helios.index.snapshot import Snapshot

QUESTION = "Which chemist discovered the element with atomic number 32?"


def test_scan_scores_every_unit_like_the_search(engine: Engine):
    index, query = engine.index, engine.query(QUESTION)
    count = len(query.tokens.ids)
    done = []
    maxima = scan(index, query.tokens.vectors, progress=lambda nodes, total: done.append((nodes, total)))
    assert maxima.shape == (index.node_count + 1, count)
    assert not maxima[-1].any()
    assert done[-1] == (index.node_count, index.node_count)
    search, units = EdgeSearch(index, Fusion(), engine.threads), index.units
    pairs = Pairs(units.left.astype(np.int64), units.right.astype(np.int64))
    maxima_of = search.with_maxima(query, search.no_maxima(query), np.arange(index.node_count))
    exact, _ = search.maxsim(query, pairs, maxima_of)
    scanned = unit_scores(units, maxima, query.weights_Q[:count])
    np.testing.assert_allclose(scanned, exact, atol=0.02 * count)


def test_nothing_is_lost_when_everything_is_a_candidate(engine: Engine):
    found = measure_exactness(engine, [QUESTION], depth=10)
    assert found.candidates == 2000 > len(engine.index.units)
    assert (found.questions, found.by_maxsim, found.by_fusion) == (1, 1.0, 1.0)
    assert found.in_ranking >= 0.8


def test_few_candidates_lose_edges(engine: Engine, sample_index: Path):
    few = ["advanced.search.candidates=5"]
    with Engine(Snapshot.open(sample_index), engine.config.changed(few), threads=1, models=engine.models) as other:
        found = measure_exactness(other, [QUESTION], depth=10)
    assert found.by_maxsim == pytest.approx(0.5, abs=0.2)
