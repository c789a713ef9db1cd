"""The exact scan agrees with exact scoring, and measures what candidate generation loses."""

import numpy as np
import pytest

from helios.engine import Engine
from helios.evaluation.exactness import measure_exactness, scan, unit_scores
from helios.index.search import Fusion, Query

QUESTION = "Which chemist discovered the element with atomic number 32?"


def test_scan_scores_every_unit_like_the_search(engine: Engine):
    part = engine.part
    query = Query.of(QUESTION, engine.encoder.encode_question(QUESTION), part.tokens)
    count = int(np.count_nonzero(query.weights_Q))
    maxima = scan(part.tokens, query.vectors_QD[:count])
    assert maxima.shape == (part.tokens.node_count + 1, count)
    assert not maxima[-1].any()
    exact, _ = part.search.exact(query, part.search.units.left, part.search.units.right)
    scanned = unit_scores(part.search.units, maxima, query.weights_Q[:count])
    np.testing.assert_allclose(scanned, exact, atol=0.02 * count)


def test_nothing_is_lost_when_everything_is_a_candidate(engine: Engine):
    found = measure_exactness(engine.part, engine.encoder, [QUESTION], candidates=10_000, fusion=Fusion(), depth=10)
    assert (found.questions, found.by_maxsim, found.by_fusion) == (1, 1.0, 1.0)
    assert found.in_ranking >= 0.8


def test_few_candidates_lose_edges(engine: Engine):
    found = measure_exactness(engine.part, engine.encoder, [QUESTION], candidates=5, fusion=Fusion(), depth=10)
    assert found.by_maxsim == pytest.approx(0.5, abs=0.2)
