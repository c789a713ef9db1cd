"""Node expansion finds links that the graph lacks, from either side, and nothing that is there already."""

import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.errors import ModelError
from helios.evaluation.expansion import count_recovered, linkable_edges, missing_edges
from helios.evaluation.questions import Question, read_questions
from helios.graph import DataGraph, Subgraph
from helios.index.search import EdgeSearch
from helios.index.snapshot import Snapshot
from helios.index.visible import query_of
from helios.retrieval.expansion.candidates import PAIR_FEATURES, find_pairs
from helios.retrieval.expansion.model import SHIPPED, PairModel
from helios.retrieval.expansion.stage import Expansion
from helios.retrieval.ranking.fused import FusedModel
from helios.retrieval.ranking.stage import FusedEdges
from helios.retrieval.state import SearchState, run_stages
from helios.types import Edge, Origin, ScoredEdge

QUESTIONS = read_questions(sample_path() / "questions.jsonl")
Ask = Callable[[str], SearchState]


@pytest.fixture(scope="module")
def asked(engine: Engine) -> tuple[Question, Edge]:
    """A question with a gold edge that is linked."""
    for question in QUESTIONS:
        for edge in linkable_edges(question, engine.corpus):
            if engine.graph.edge_number(edge.segment, edge.passage) is not None:
                return question, edge
    raise AssertionError("the sample has no linked gold edge")


@pytest.fixture(scope="module")
def dropped(engine: Engine, asked, tmp_path_factory) -> Iterator[Engine]:
    """An engine over the sample whose graph lacks the gold edge."""
    _, gold = asked
    graph = engine.graph
    kept = np.array([graph.edge(number) != gold for number in range(graph.edge_count)])
    segments, passages = np.array(graph.edge_segments)[kept], np.array(graph.edge_passages)[kept]
    zeros = np.zeros(len(segments), np.int64)
    without = DataGraph.write(
        tmp_path_factory.mktemp("dropped") / "graph", segments, passages, zeros, zeros, zeros + 1, zeros + 1.0,
        segment_count=graph.segment_count, passage_count=graph.passage_count,
    )  # fmt: skip
    snapshot = Snapshot.open(engine.snapshot.directory)
    with Engine(snapshot, engine.config, models=engine.models) as dropped:
        dropped.index.__dict__["graph"] = without
        yield dropped


@pytest.fixture(scope="module")
def ask(dropped: Engine) -> Ask:
    """The state of a question with its best twenty edges."""

    @cache
    def ask(question: str) -> SearchState:
        state = run_stages(dropped.begin(question, k=20), dropped.pipeline.stages[:2])
        return replace(state, subgraph=state.subgraph.top(20))

    return ask


@pytest.fixture(scope="module")
def expansion(dropped: Engine) -> Expansion:
    (stage,) = (stage for stage in dropped.pipeline.stages if isinstance(stage, Expansion))
    return stage


def only(state: SearchState, *edges: Edge) -> SearchState:
    """The state with nothing but these edges."""
    return replace(state, subgraph=Subgraph.from_edges(ScoredEdge(edge, 1.0) for edge in edges))


def test_a_dropped_link_is_recovered(expansion, ask, asked):
    question, gold = asked
    before = ask(question.text)
    assert gold not in {scored.edge for scored in before.subgraph.edges}
    after = expansion.run(before).subgraph
    origins = {scored.edge: scored.origin for scored in after.edges}
    assert origins[gold] is Origin.EXPANDED
    assert len(before.subgraph) < len(after) <= len(before.subgraph) + expansion.beam


def test_the_share_of_recovered_links_is_counted(expansion, ask, asked, dropped):
    question, gold = asked
    assert gold in missing_edges(question, dropped.corpus, dropped.graph)
    found = count_recovered(lambda text: expansion.run(ask(text)).subgraph, [question], dropped.corpus, dropped.graph)
    assert found.questions == 1
    assert found.recovered == found.missing - len(found.unfound) >= 1
    nothing = count_recovered(lambda text: ask(text).subgraph, [question], dropped.corpus, dropped.graph)
    assert nothing.recovered == 0 < nothing.missing
    assert count_recovered(lambda text: ask(text).subgraph, [], dropped.corpus, dropped.graph).share == 1.0


def test_a_row_alone_is_expanded(expansion, ask, asked):
    question, gold = asked
    pairs = expansion.pairs(only(ask(question.text), Edge(gold.segment, None)))
    assert gold in [pair.edge for pair in pairs]


def test_a_passage_of_the_subgraph_is_a_candidate_of_its_rows(expansion, ask, asked):
    question, gold = asked
    state = only(ask(question.text), Edge(gold.segment, None), Edge(None, gold.passage))
    found = find_pairs(state, expansion.seeds(state), expansion.reach)
    assert (gold.segment, gold.passage) in set(zip(found.rows.tolist(), found.passages.tolist(), strict=True))


def test_a_passage_alone_has_no_rows_to_begin_from(expansion, ask, asked):
    question, gold = asked
    assert expansion.pairs(only(ask(question.text), Edge(None, gold.passage))) == []


def test_pairs_are_new_and_in_order(expansion, ask, asked):
    question, _ = asked
    state = ask(question.text)
    pairs = expansion.pairs(state)
    assert len({pair.edge for pair in pairs}) == len(pairs) == expansion.beam
    known = {scored.edge for scored in state.subgraph.edges}
    for pair in pairs:
        assert pair.edge not in known
        assert state.index.graph.edge_number(pair.edge.segment, pair.edge.passage) is None
    log_odds = [pair.log_odds for pair in pairs]
    assert log_odds == sorted(log_odds, reverse=True)


def test_features_are_numbers_and_candidates_come_once(expansion, ask):
    for question in QUESTIONS[:5]:
        state = ask(question.text)
        found = find_pairs(state, expansion.seeds(state), expansion.reach)
        assert found.features.shape == (len(found.rows), len(PAIR_FEATURES))
        assert np.isfinite(found.features).all()
        assert len(set(zip(found.rows.tolist(), found.passages.tolist(), strict=True))) == len(found.rows)
        shares = found.features[:, [PAIR_FEATURES.index(name) for name in ("title_in_row", "title_in_cell")]]
        assert shares.min() >= 0 and shares.max() <= 1 + 1e-5
        assert np.all(shares[:, 1] <= shares[:, 0] + 1e-5)


def test_the_best_pairs_are_among_the_contenders(expansion, ask):
    for question in QUESTIONS[:5]:
        state = ask(question.text)
        features = find_pairs(state, expansion.seeds(state), replace(expansion.reach, within=100.0)).features
        count = len(features) // 4
        kept = expansion.model.contenders(features, count)
        assert len(set(kept.tolist())) == len(kept) == count
        assert kept.tolist() == sorted(kept.tolist())
        best = np.argsort(-expansion.model.score(features), kind="stable")[:10]
        assert len(set(best.tolist()) & set(kept.tolist())) >= 9
        assert expansion.model.contenders(features, len(features)).tolist() == list(range(len(features)))


def test_seeds_are_the_best_first(expansion, ask, asked):
    question, _ = asked
    state = ask(question.text)
    seeds = expansion.seeds(state)
    best = state.subgraph.edges[0]
    assert next(iter(seeds.rows.values()), best.score) <= best.score
    for scores in (seeds.rows, seeds.tables, seeds.passages):
        assert list(scores.values()) == sorted(scores.values(), reverse=True)
    assert set(seeds.rows) == set(state.subgraph.nodes().segments)


def test_a_model_of_other_features_is_refused(tmp_path):
    with pytest.raises(ModelError, match=f"{SHIPPED}: these weights .expander. were trained with another features"):
        PairModel.load(None, features=("one",))
    with pytest.raises(ModelError, match="/nowhere: no model that `helios train` wrote"):
        PairModel.load("/nowhere", features=PAIR_FEATURES)
    place = Path(shutil.copytree(SHIPPED, tmp_path / "pairs"))
    card = json.loads((place / "card.json").read_text())
    (place / "card.json").write_text(json.dumps(card | {"needs": card["needs"] | {"encoder": "a"}}))
    assert PairModel.load(place, features=PAIR_FEATURES, encoder="a")
    with pytest.raises(ModelError, match="another encoder"):
        PairModel.load(place, features=PAIR_FEATURES, encoder="b")


def test_linkable_edges_are_linked_or_missing(engine):
    for question in QUESTIONS:
        missing = set(missing_edges(question, engine.corpus, engine.graph))
        for edge in linkable_edges(question, engine.corpus):
            assert (edge in missing) is (engine.graph.edge_number(edge.segment, edge.passage) is None)


def test_no_beam_no_edges_and_no_time_change_nothing(expansion, ask, asked):
    question, _ = asked
    state = ask(question.text)
    assert replace(expansion, beam=0).run(state) is state
    empty = replace(state, subgraph=Subgraph())
    assert expansion.run(empty) is empty
    late = expansion.run(replace(state, deadline=0.0))
    assert late.subgraph is state.subgraph
    assert late.left_out == ("no time left to look for edges that the graph lacks",)


@pytest.mark.parametrize("ranked", [True, False])
def test_new_edges_compete_with_the_others(expansion, ask, ranked: bool):
    """They are scored as if they were linked, and never above what the pair model thinks of the link."""
    fused = FusedEdges(FusedModel.load().scale)
    stage = expansion if ranked else replace(expansion, scorer=fused)
    before_last, above = 0, 0
    for question in QUESTIONS[:8]:
        state = ask(question.text)
        state = state if ranked else replace(state, ranked=None)
        pairs = {pair.edge: pair.log_odds for pair in stage.pairs(state)}
        _, as_linked = stage.scorer.score(state, list(pairs))
        expected = {edge: min(s, pairs[edge]) for edge, s in zip(pairs, as_linked.tolist(), strict=True)}
        after = stage.run(state).subgraph.edges
        new = {scored.edge: scored.score for scored in after if scored.origin is Origin.EXPANDED}
        assert new == pytest.approx(expected, abs=1e-5)
        assert [scored for scored in after if scored.origin is not Origin.EXPANDED] == list(state.subgraph.edges)
        before_last += any(score > state.subgraph.edges[-1].score for score in new.values())
        above += any(score > state.subgraph.edges[5].score for score in new.values())
    assert before_last >= 4
    assert above >= 1


def test_hidden_nodes_are_not_expanded_to(engine, dropped, expansion, ask, asked):
    question, gold = asked
    assert gold in [pair.edge for pair in expansion.pairs(only(ask(question.text), Edge(gold.segment, None)))]
    shown = np.ones(engine.index.node_count, bool)
    shown[engine.index.segment_count + gold.passage] = False
    view = engine.index.narrowed(shown)
    hidden = engine.corpus.passages.id(gold.passage)
    query = query_of(question.text, engine.encoder.encode_question(question.text), view.tokens, view.postings)
    begun = SearchState(query, EdgeSearch(view, engine.pipeline.fused.fusion, engine.threads), k=20, depth=100)
    state = run_stages(begun, engine.pipeline.stages[:2])
    pairs = expansion.pairs(only(state, Edge(gold.segment, None)))
    assert pairs
    assert hidden not in {view.corpus.passages.id(pair.edge.passage) for pair in pairs}


def test_questions_at_the_same_time(expansion, ask):
    states = [ask(question.text) for question in QUESTIONS[:6]]
    alone = [expansion.run(state).subgraph for state in states]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda state: expansion.run(state).subgraph, states * 4)) == alone * 4
