"""The order of texts without a row: the best take the places of the others, and nothing else changes."""

import numpy as np
import pytest

from helios.augment.encoding import ColumnWeights
from helios.augment.model import AugmentModel
from helios.engine import Engine
from helios.errors import ModelError
from helios.index.tokens import pooled_codes
from helios.retrieval.documents import DocumentOrder, DocumentWeights, TrainedQuestion
from helios.retrieval.state import run_stages

QUESTION = "Which river passes through Vienna and Budapest?"
WEIGHTS = DocumentWeights(lexical=0.0, late=0.0, pooled=1.0, k1=0.9, b=0.4)


@pytest.fixture(scope="module")
def state(engine: Engine):
    """The sample's passages alone, as retrieval has them."""
    begun = engine.begin(QUESTION, k=10, where="kind = 'passage'")
    return run_stages(begun, engine.pipeline.stages[:1])


def test_by_mean_vectors_alone_the_nearest_texts_come_first(engine: Engine, state):
    found = DocumentOrder(WEIGHTS, joining=10).run(state)
    index = state.index
    pooled = np.stack([index.tokens.vectors(n).mean(axis=0) for n in range(index.node_count)])
    cosines = pooled @ engine.pooled_question(QUESTION) / np.linalg.norm(pooled, axis=1)
    ranked = [scored.edge.passage for scored in found.subgraph.edges[:5]]
    assert min(cosines[ranked]) > np.sort(cosines)[-15]  # stored vectors are rounded ones
    assert len(set(ranked)) == 5


def test_scores_and_their_number_stay(state):
    found = DocumentOrder(WEIGHTS, joining=10).run(state)
    assert [one.score for one in found.subgraph.edges] == [one.score for one in state.subgraph.edges]
    assert [one.edge for one in found.subgraph.edges] != [one.edge for one in state.subgraph.edges]


def test_edges_with_a_row_stay_where_they_are(engine: Engine):
    state = run_stages(engine.begin(QUESTION, k=10), engine.pipeline.stages[:2])
    found = DocumentOrder(WEIGHTS, joining=10).run(state)
    for before, after in zip(state.subgraph.edges, found.subgraph.edges, strict=True):
        assert after.score == before.score
        assert after.edge == before.edge or before.edge.segment is after.edge.segment is None


def test_an_index_without_mean_vectors_keeps_its_order(state, monkeypatch):
    monkeypatch.setattr(state.index.tokens.stores[0], "pooled", None)
    assert DocumentOrder(WEIGHTS, joining=10).run(state) is state


def test_a_trained_question_is_compared_by_the_map_of_its_augmenter(engine: Engine, state):
    rng, index = np.random.default_rng(7), state.index
    down, up = (0.2 * rng.standard_normal(shape).astype(np.float32) for shape in ((384, 8), (8, 384)))
    model = AugmentModel(ColumnWeights(), down, up)
    trained = TrainedQuestion(model.question(engine.pooled_question(QUESTION)), model)
    everything = np.arange(index.passage_count)
    expected = model.documents(index.tokens.pooled_vectors(everything)) @ trained.vector_D
    assert trained.cosines(index, everything) == pytest.approx(expected, abs=2e-3)
    found = DocumentOrder(WEIGHTS, joining=10, trained=trained).run(state)
    assert found.subgraph.edges[0].edge.passage == np.argmax(expected)
    plain = DocumentOrder(WEIGHTS, joining=10).run(state)
    assert [one.edge for one in found.subgraph.edges] != [one.edge for one in plain.subgraph.edges]


def test_the_packaged_weights_are_read_and_others_refused(tmp_path):
    assert DocumentWeights.load().pooled > 0
    with pytest.raises(ModelError, match="card"):
        DocumentWeights.load(tmp_path)


def test_codes_keep_the_direction():
    rng = np.random.default_rng(5)
    texts = [rng.standard_normal((count, 16)).astype(np.float32) for count in (1, 4)]
    for codes, vectors in zip(pooled_codes(texts, 16).astype(float), texts, strict=True):
        mean = vectors.mean(axis=0)
        assert codes @ mean / np.linalg.norm(codes) / np.linalg.norm(mean) > 0.999
    assert pooled_codes([], 16).shape == (0, 16)
