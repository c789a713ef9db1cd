"""Node expansion finds links that the graph lacks, from either side, and nothing that is there already."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from helios.config import ExpansionSettings
from helios.corpus.sample import sample_path
from helios.errors import ModelError
from helios.evaluation.expansion import count_recovered, linkable_edges, missing_edges
from helios.evaluation.questions import read_questions
from helios.graph import DataGraph, Subgraph
from helios.index.snapshot import PartView
from helios.models.pairs import PairModel
from helios.retrieval.edges import FactoredEdges
from helios.retrieval.expansion import NodeExpander
from helios.retrieval.pairs import PAIR_FEATURES
from helios.retrieval.part import SearchPart
from helios.types import Edge, Origin, ScoredEdge


@pytest.fixture(scope="module")
def asked(engine):
    """A question with a gold edge that is linked."""
    for question in read_questions(sample_path() / "questions.jsonl"):
        for gold in question.gold_edges:
            if gold.segment_id is not None and gold.passage_id is not None:
                segment = engine.corpus.segment_number(gold.segment_id)
                passage = engine.corpus.passages.number(gold.passage_id)
                if engine.graph.edge_number(segment, passage) is not None:
                    return question, Edge(segment, passage)
    raise AssertionError("the sample has no linked gold edge")


@pytest.fixture(scope="module")
def dropped_part(engine, asked, tmp_path_factory):
    """The sample's part with a graph that lacks the gold edge."""
    _, gold = asked
    graph = engine.graph
    kept = np.array([graph.edge(number) != gold for number in range(graph.edge_count)])
    segments, passages = np.array(graph.edge_segments)[kept], np.array(graph.edge_passages)[kept]
    zeros = np.zeros(len(segments), np.int64)
    part = SearchPart(engine.part.view, threads=1, k1=0.9, b=0.4)
    part.__dict__["graph"] = DataGraph.write(
        tmp_path_factory.mktemp("dropped") / "graph", segments, passages, zeros, zeros, zeros + 1, zeros + 1.0,
        segment_count=graph.segment_count, passage_count=graph.passage_count,
    )  # fmt: skip
    yield part
    part.close()


@pytest.fixture(scope="module")
def retrieve(dropped_part, engine):
    edges = FactoredEdges([dropped_part], engine.encoder, engine.config.search)
    return lambda question, k=20: Subgraph.from_edges(edges.retrieve(question, k=k)[0])


@pytest.fixture(scope="module")
def scorer(dropped_part, engine):
    return FactoredEdges([dropped_part], engine.encoder, engine.config.search).new_edges(dropped_part)


@pytest.fixture(scope="module")
def expander(dropped_part, engine):
    return NodeExpander(dropped_part, engine.encoder, ExpansionSettings())


def test_a_dropped_link_is_recovered(expander, retrieve, asked, scorer):
    question, gold = asked
    before = retrieve(question.text)
    assert gold not in {scored.edge for scored in before.edges}
    expanded = expander.expand(question.text, before, edge_scorer=scorer)
    origins = {scored.edge: scored.origin for scored in expanded.edges}
    assert origins[gold] is Origin.EXPANDED
    assert len(expanded) <= len(before) + ExpansionSettings().beam


def test_the_share_of_recovered_links_is_counted(expander, retrieve, asked, engine, dropped_part, scorer):
    question, gold = asked
    corpus, graph = engine.corpus, dropped_part.graph
    assert gold in missing_edges(question, corpus, graph)

    def expand(text):
        return expander.expand(text, retrieve(text), edge_scorer=scorer)

    found = count_recovered(expand, [question], corpus, graph)
    assert found.questions == 1
    assert found.recovered == found.missing - len(found.unfound) >= 1
    nothing = count_recovered(retrieve, [question], corpus, graph)
    assert nothing.recovered == 0 < nothing.missing
    assert count_recovered(retrieve, [], corpus, graph).share == 1.0


def test_a_row_alone_is_expanded(expander, asked):
    question, gold = asked
    pairs = expander.pairs(
        expander.query(question.text), Subgraph.from_edges([ScoredEdge(Edge(gold.segment, None), 1.0)])
    )
    assert gold in [pair.edge for pair in pairs]


def test_a_passage_of_the_subgraph_is_a_candidate_of_its_rows(expander, asked):
    question, gold = asked
    subgraph = Subgraph.from_edges(
        [ScoredEdge(Edge(gold.segment, None), 1.0), ScoredEdge(Edge(None, gold.passage), 1.0)]
    )
    query = expander.query(question.text)
    found = expander.finder.find(query, expander.seeds(query, subgraph), subgraph)
    assert (gold.segment, gold.passage) in set(zip(found.rows.tolist(), found.passages.tolist(), strict=True))


def test_a_passage_alone_has_no_rows_to_begin_from(expander, asked):
    question, gold = asked
    alone = Subgraph.from_edges([ScoredEdge(Edge(None, gold.passage), 1.0)])
    assert expander.pairs(expander.query(question.text), alone) == []


def test_pairs_are_new_and_in_order(expander, retrieve, asked):
    question, _ = asked
    subgraph = retrieve(question.text)
    pairs = expander.pairs(expander.query(question.text), subgraph)
    assert len({pair.edge for pair in pairs}) == len(pairs) == ExpansionSettings().beam
    known = {scored.edge for scored in subgraph.edges}
    for pair in pairs:
        assert pair.edge not in known
        assert expander.part.graph.edge_number(pair.edge.segment, pair.edge.passage) is None
    log_odds = [pair.log_odds for pair in pairs]
    assert log_odds == sorted(log_odds, reverse=True)


def test_features_are_numbers_and_candidates_come_once(expander, retrieve):
    for question in list(read_questions(sample_path() / "questions.jsonl"))[:5]:
        subgraph, query = retrieve(question.text), expander.query(question.text)
        found = expander.finder.find(query, expander.seeds(query, subgraph), subgraph)
        assert found.features.shape == (len(found.rows), len(PAIR_FEATURES))
        assert np.isfinite(found.features).all()
        assert len(set(zip(found.rows.tolist(), found.passages.tolist(), strict=True))) == len(found.rows)
        shares = found.features[:, [PAIR_FEATURES.index(name) for name in ("title_in_row", "title_in_cell")]]
        assert shares.min() >= 0 and shares.max() <= 1 + 1e-5
        assert np.all(shares[:, 1] <= shares[:, 0] + 1e-5)


def test_the_best_pairs_are_among_the_contenders(expander, retrieve):
    for question in list(read_questions(sample_path() / "questions.jsonl"))[:5]:
        subgraph, query = retrieve(question.text), expander.query(question.text)
        features = expander.finder.find(query, expander.seeds(query, subgraph), subgraph).features
        count = len(features) // 4
        kept = expander.model.contenders(features, count)
        assert len(set(kept.tolist())) == len(kept) == count
        assert kept.tolist() == sorted(kept.tolist())
        best = np.argsort(-expander.model.score(features), kind="stable")[:10]
        assert len(set(best.tolist()) & set(kept.tolist())) >= 9
        assert expander.model.contenders(features, len(features)).tolist() == list(range(len(features)))


def test_seeds_are_the_best_first(expander, retrieve, asked):
    question, _ = asked
    subgraph = retrieve(question.text)
    seeds = expander.seeds(expander.query(question.text), subgraph)
    best = subgraph.edges[0]
    assert next(iter(seeds.rows.values()), best.score) <= best.score
    for scores in (seeds.rows, seeds.tables, seeds.passages):
        assert list(scores.values()) == sorted(scores.values(), reverse=True)
    assert set(seeds.rows) == set(subgraph.nodes().segments)


def test_a_model_of_other_features_is_refused(expander):
    with pytest.raises(ModelError, match="other features"):
        PairModel.load(None, features=("one",))
    with pytest.raises(ModelError, match="no readable pair model"):
        PairModel.load("/nowhere", features=PAIR_FEATURES)


def test_linkable_edges_are_linked_or_missing(engine):
    for question in read_questions(sample_path() / "questions.jsonl"):
        missing = set(missing_edges(question, engine.corpus, engine.graph))
        for edge in linkable_edges(question, engine.corpus):
            assert (edge in missing) is (engine.graph.edge_number(edge.segment, edge.passage) is None)


def test_no_beam_and_no_nodes_change_nothing(expander, retrieve, asked, scorer):
    question, _ = asked
    off = NodeExpander(expander.part, expander.encoder, ExpansionSettings(beam=0))
    subgraph = retrieve(question.text)
    assert off.expand(question.text, subgraph, edge_scorer=scorer) is subgraph
    assert len(expander.expand(question.text, Subgraph(), edge_scorer=scorer)) == 0


def test_a_new_edge_scores_as_if_it_were_linked(engine, asked):
    question, gold = asked
    fused = FactoredEdges(engine.parts, engine.encoder, engine.config.search)
    linked = {scored.edge: scored.score for scored in fused.retrieve(question.text, k=10_000)[0]}
    scorer = fused.new_edges(engine.part)
    query = NodeExpander(engine.part, engine.encoder, ExpansionSettings()).query(question.text)
    edges = [gold, *[edge for edge in linked if None not in (edge.segment, edge.passage)][:5]]
    np.testing.assert_allclose(scorer.score(query, edges), [linked[edge] for edge in edges], rtol=1e-4)


def test_deleted_nodes_are_not_expanded_to(expander, asked, tmp_path):
    question, gold = asked
    part = expander.part
    view = PartView(tmp_path, part.view.part)
    (tmp_path / "parts").symlink_to(part.view.index / "parts")
    tombstones = tmp_path / view.part.tombstones.path
    tombstones.parent.mkdir()
    np.save(tombstones, np.array([gold.passage + part.graph.segment_count]))
    after = SearchPart(view, threads=1, k1=0.9, b=0.4)
    after.__dict__["graph"] = part.graph
    seed = Subgraph.from_edges([ScoredEdge(Edge(gold.segment, None), 1.0)])
    deleting = NodeExpander(after, expander.encoder, ExpansionSettings())
    assert gold in [pair.edge for pair in expander.pairs(expander.query(question.text), seed)]
    assert gold not in [pair.edge for pair in deleting.pairs(deleting.query(question.text), seed)]


def test_questions_at_the_same_time(expander, retrieve):
    questions = [question.text for question in read_questions(sample_path() / "questions.jsonl")][:6]

    def pairs(text):
        return expander.pairs(expander.query(text), retrieve(text))

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(pairs, questions)) == [pairs(text) for text in questions]
