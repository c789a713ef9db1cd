"""The pair model's recipe on the sample corpus: hidden links are really gone, and expansion can use the result."""

from pathlib import Path

import numpy as np
import pytest

from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.evaluation.questions import read_questions
from helios.models.card import read_card
from helios.models.trees import Trees
from helios.retrieval.expansion.candidates import PAIR_FEATURES
from helios.types import Edge, Origin
from training.crossfit import rank_edges
from training.errors import TrainingError
from training.expander import ROLE, ExpanderSettings, Unlinked, fit, graph_without, hide_links, mine_groups
from training.recipes import DataSettings

QUESTIONS = sample_path() / "questions.jsonl"


@pytest.fixture(scope="module")
def settings(sample_index: Path) -> ExpanderSettings:
    data = DataSettings(index=sample_index, questions=(QUESTIONS,))
    return ExpanderSettings(data=data, hide_share=0.8, trees=10, least_examples=2, folds=2, questions=6)


def test_a_graph_lacks_what_was_hidden_and_keeps_all_else(engine: Engine, tmp_path: Path):
    graph = engine.graph
    hidden = [graph.edge(0), graph.edge(graph.edge_count - 1)]
    copy = graph_without(graph, hidden, tmp_path / "graph")
    copy.verify()
    kept = {copy.edge(number): copy.links(number) for number in range(copy.edge_count)}
    assert kept == {edge: graph.links(n) for n in range(graph.edge_count) if (edge := graph.edge(n)) not in hidden}
    assert graph_without(graph, [], tmp_path / "same").edge_count == graph.edge_count


@pytest.mark.parametrize("below, share", [(0.0, 0.0), (2.0, 0.0), (0.0, 1.0)])
def test_hidden_links_follow_the_settings(engine: Engine, below: float, share: float):
    chosen = ExpanderSettings(hide_below=below, hide_share=share)
    hidden = hide_links(chosen, read_questions(QUESTIONS), engine.corpus, engine.graph)
    assert hidden.missing.keys() == hidden.lacking.keys()
    for name, lacking in hidden.lacking.items():
        assert hidden.missing[name] <= lacking
    linked = {edge for name, edges in hidden.lacking.items() for edge in edges - hidden.missing[name]}
    assert bool(linked) is (below > 1.0 or share == 1.0)


def test_training_writes_a_model_that_expansion_reads(settings: ExpanderSettings, sample_index: Path, tmp_path: Path):
    rows = []
    measures = ROLE.train(settings, tmp_path / "model", device=None, on_log=rows.append)
    assert rows[-1].step == len(rows) == 6
    assert 0 < measures["share among the candidates"] <= 1
    card = read_card(tmp_path / "model", "expander")
    assert (card.needs, card.scores) == ({"features": list(PAIR_FEATURES)}, measures)
    assert Trees.read(tmp_path / "model" / "trees.txt").features == PAIR_FEATURES
    wanted = [f"advanced.expansion.model={tmp_path / 'model'}", "advanced.expansion.beam=3"]
    with Engine.open(sample_index, overrides=wanted, threads=1) as engine:
        before = rank_edges(engine, read_questions(QUESTIONS)[0].text, k=200)
        (expand,) = (stage for stage in engine.pipeline.stages if stage.name == "expand")
        added = set(expand.run(before).subgraph.edges) - set(before.subgraph.edges)
    assert 0 < len(added) <= 3
    assert {scored.origin for scored in added} == {Origin.EXPANDED}


def test_an_index_without_some_links_finds_their_nodes_apart(engine: Engine, tmp_path: Path):
    question = read_questions(QUESTIONS)[0].text
    best = rank_edges(engine, question, k=1).subgraph.edges[0].edge
    unlinked = Unlinked(engine.index, graph_without(engine.graph, [best], tmp_path / "graph"))
    state = rank_edges(engine, question, k=30, index=unlinked)
    found = {scored.edge for scored in state.subgraph.edges}
    assert best not in found
    assert state.index is unlinked and engine.graph.edge_number(best.segment, best.passage) is not None
    assert any(edge.segment == best.segment for edge in found)


def test_the_same_examples_give_the_same_trees(settings: ExpanderSettings):
    groups = list(mine_groups(settings.model_copy(update={"questions": 3}), read_questions(QUESTIONS)))
    assert all(group.features.shape == (len(group.gold), len(PAIR_FEATURES)) for group in groups)
    assert sum(int(group.gold.sum()) for group in groups) <= sum(group.lacking for group in groups)
    assert all(np.all(group.gold | ~group.unlinked) for group in groups)
    assert fit(groups, settings).model_to_string() == fit(groups, settings).model_to_string()


def test_data_is_asked_for(tmp_path: Path):
    with pytest.raises(TrainingError, match=r"data\.index"):
        ROLE.train(ExpanderSettings(), tmp_path, device=None, on_log=lambda row: None)


def test_only_edges_with_both_sides_are_hidden(engine: Engine, tmp_path: Path):
    with pytest.raises(ValueError, match="lacks a side"):
        graph_without(engine.graph, [Edge(0, None)], tmp_path / "graph")
