"""The protocol of stages: any may be left out, put elsewhere or written by a user, and scores stay on one scale."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.evaluation.questions import read_questions
from helios.retrieval import state as documented
from helios.retrieval.state import SearchState, Stage, edges_of, pairs_of, run_stages
from helios.types import Edge, Evidence, Origin

QUESTION = "Where does the longest river in the table of European rivers rise?"
QUESTIONS = read_questions(sample_path() / "questions.jsonl")
LATER = ("rank", "rerank", "expand", "refine", "spread")
UNHURRIED = ("retrieve", "rank", "documents", "spread")
SUBSETS = [subset for size in range(len(LATER) + 1) for subset in combinations(LATER, size)]


def check(state: SearchState) -> None:
    """What holds of every state: each edge once, scores that are log-odds, retrieved edges kept."""
    edges = [scored.edge for scored in state.subgraph.edges]
    assert len(set(edges)) == len(edges)
    scores = np.array([scored.score for scored in state.subgraph.edges])
    assert np.isfinite(scores).all()
    assert scores.min() > -25.0
    assert scores.max() < 15.0
    assert set(edges) >= set(edges_of(state.index, state.found.pairs)[: state.depth])


@pytest.mark.parametrize("subset", SUBSETS, ids=lambda subset: "+".join(subset) or "retrieval alone")
def test_any_stage_can_be_left_out(engine: Engine, stages, subset: tuple[str, ...]) -> None:
    state = run_stages(engine.begin(QUESTION, k=20), [stages["retrieve"], *(stages[name] for name in subset)])
    check(state)
    assert set(state.milliseconds) == {"begin", "retrieve", *subset}
    assert (state.ranked is not None) is ("rank" in subset)
    origins = {scored.origin for scored in state.subgraph.edges}
    assert (Origin.EXPANDED in origins) is ("expand" in subset)
    assert bool(state.report.plans) is ("refine" in subset)
    scores = [scored.score for scored in state.subgraph.edges]
    if "spread" not in subset:
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    "order",
    [
        ("expand", "rank", "refine", "rerank", "spread"),
        ("refine", "expand", "rank", "rerank", "spread"),
        ("spread", "rank", "rerank", "expand", "refine"),
        ("rerank", "rank", "rerank", "expand", "expand", "refine", "spread"),
    ],
)
def test_a_stage_can_be_put_elsewhere(engine: Engine, stages, order: tuple[str, ...]) -> None:
    check(run_stages(engine.begin(QUESTION, k=20), [stages["retrieve"], *(stages[name] for name in order)]))


SETTINGS = [
    ("search.ranker=none",),
    ("rerank.backend=none",),
    ("expansion.enabled=false",),
    ("refinement.mode=off",),
    ("advanced.search.spread=0",),
    ("search.ranker=none", "expansion.enabled=false"),
    ("search.ranker=none", "refinement.mode=off", "advanced.search.spread=0"),
    ("search.ranker=none", "expansion.enabled=false", "refinement.mode=off", "advanced.search.spread=0"),
    ("rerank.backend=none", "advanced.expansion.beam=0", "refinement.mode=off", "advanced.search.spread=0"),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=" ".join)
def test_settings_leave_stages_out(reopen, settings: tuple[str, ...]) -> None:
    off = " ".join(settings)
    expected = [
        "retrieve",
        *(["rank"] if "ranker" not in off else []),
        *(["rerank"] if "ranker" not in off and "backend" not in off else []),
        "documents",
        *(["expand"] if "expansion" not in off else []),
        *(["refine"] if "refinement" not in off else []),
        *(["spread"] if "spread" not in off else []),
    ]
    other = reopen(*settings)
    assert [stage.name for stage in other.pipeline.stages] == expected
    evidence = other.search(QUESTION, k=30)
    assert len(evidence.edges) == 30
    assert all(0 < edge.probability < 1 and math.isfinite(edge.score) for edge in evidence.edges)
    assert set(evidence.timings_ms) == {"begin", *expected, "evidence"}


def test_what_is_read_again_may_fall_behind_what_is_not(stages, state_after) -> None:
    """The tail of a list keeps its scores: it is not pushed below the edges that were read."""
    fallen = 0
    for question in QUESTIONS[:6]:
        before = state_after(question.text, "retrieve", "rank")
        after = replace(stages["rerank"], first=4, within=1e9, tokens=10**9).run(before)
        head = {scored.edge for scored in before.subgraph.edges[:4]}
        old = {scored.edge: scored.score for scored in before.subgraph.edges}
        tail = [scored for scored in after.subgraph.edges if scored.edge not in head]
        assert all(scored.score == old[scored.edge] for scored in tail)
        read = [scored.score for scored in after.subgraph.edges if scored.edge in head]
        fallen += min(read) < max(scored.score for scored in tail)
    assert fallen


class Renamed:
    """A user's stage that does what another one does."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.name = f"my {stage.name}"
        self.depth = stage.depth
        self.asked: list[str] = []

    def run(self, state: SearchState) -> SearchState:
        self.asked.append(state.question)
        return self.stage.run(state)


def names_of(evidence: Evidence) -> list[str]:
    return [name for name in evidence.timings_ms if name not in ("begin", "evidence")]


def test_a_users_stages_run_in_place_of_the_usual_ones(engine: Engine, reopen) -> None:
    made: list[Renamed] = []

    def arranged(usual: Iterable[Stage]) -> Iterable[Stage]:
        for stage in usual:
            made.append(Renamed(stage))
            yield made[-1]

    other = reopen(stages=arranged)
    evidence = other.search(QUESTION, k=15)
    assert evidence.edges == engine.search(QUESTION, k=15).edges
    assert names_of(evidence) == [f"my {stage.name}" for stage in engine.pipeline.stages]
    assert [stage.asked for stage in made] == [[QUESTION]] * len(made)


def test_a_users_stage_gets_as_many_edges_as_it_wants(reopen) -> None:
    seen: list[int] = []

    class Counting:
        name = "count"
        depth = 66

        def run(self, state: SearchState) -> SearchState:
            seen.append(len(state.subgraph))
            return state

    assert len(reopen(stages=lambda usual: [usual[0], Counting()]).search(QUESTION, k=3).edges) == 3
    assert seen == [66]


def test_a_users_stage_may_add_edges_and_take_them_away(engine: Engine, reopen) -> None:
    class PassagesAlone:
        name = "passages alone"
        depth = 0

        def run(self, state: SearchState) -> SearchState:
            kept = (scored for scored in state.subgraph.edges if scored.edge.segment is not None)
            added = replace(state.subgraph.edges[0], edge=Edge(None, 3), score=50.0)
            return state.with_edges([*kept, added])

    evidence = reopen(stages=lambda usual: [*usual[:-1], PassagesAlone(), usual[-1]]).search(QUESTION, k=60)
    assert evidence.edges[0].passage == engine.corpus.passages[3]
    assert evidence.edges[0].segment is None
    assert all(edge.segment is not None for edge in evidence.edges[1:])


def test_without_retrieval_a_stage_that_needs_it_says_so(reopen) -> None:
    other = reopen(stages=lambda usual: usual[1:])
    with pytest.raises(ValueError, match="no stage has retrieved candidates: the first stage must"):
        other.search(QUESTION)


def test_no_stage_at_all_finds_nothing(reopen) -> None:
    evidence = reopen(stages=lambda usual: []).search(QUESTION)
    assert (evidence.edges, evidence.present) == ((), 0.0)


def test_the_documented_stage_runs_as_it_is_written(
    sample_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index").symlink_to(sample_index)
    monkeypatch.chdir(tmp_path)
    lines = (documented.__doc__ or "").splitlines()
    code = dedent("\n".join(line for line in lines if line.startswith("    ") or not line))
    written: dict[str, object] = {}
    exec(compile(code, "the example", "exec"), written)
    evidence = written["evidence"]
    assert isinstance(evidence, Evidence)
    assert names_of(evidence)[-2:] == ["of this century", "spread"]
    assert evidence.edges


@pytest.mark.parametrize(
    "question", [QUESTION, "What did the lunar module pilot of Apollo 12 become after leaving NASA?"]
)
def test_without_time_there_are_retrieved_edges_and_notes_of_what_was_left_out(
    engine: Engine, reopen, question: str
) -> None:
    evidence = engine.search(question, k=20, seconds=0)
    plain = reopen(stages=lambda usual: [stage for stage in usual if stage.name in UNHURRIED]).search(question, k=20)
    assert evidence.edges == plain.edges
    assert len(evidence.edges) == 20
    aggregation = ("no time left for aggregation",) if question == QUESTION else ()
    assert evidence.notes == (
        *aggregation,
        "no time left to read the best edges again",
        "no time left to look for edges that the graph lacks",
    )
    assert not evidence.degraded


def test_the_setting_is_the_deadline_of_every_question_and_the_call_comes_first(engine: Engine, reopen) -> None:
    hasty = reopen("search.deadline_ms=0.0001")
    assert len([note for note in hasty.search(QUESTION, k=5).notes if note.startswith("no time left")]) == 3
    patient = hasty.search(QUESTION, k=5, seconds=600)
    assert patient.edges == engine.search(QUESTION, k=5).edges
    assert not [note for note in patient.notes if note.startswith("no time left")]


def test_a_state_says_how_much_time_is_left(engine: Engine) -> None:
    assert engine.begin(QUESTION).seconds_left() is None
    assert engine.begin(QUESTION).in_time()
    late = engine.begin(QUESTION, seconds=0)
    assert (late.seconds_left(), late.in_time()) == (0.0, False)
    assert 500 < (engine.begin(QUESTION, seconds=600).seconds_left() or 0) <= 600


def test_pairs_and_edges_are_the_same_in_other_words(engine: Engine) -> None:
    edges = (Edge(3, 5), Edge(None, 0), Edge(7, None), Edge(0, 66))
    pairs = pairs_of(engine.index, edges)
    assert edges_of(engine.index, pairs) == edges
    none = engine.index.node_count
    assert (pairs.left.tolist(), pairs.right.tolist()) == ([3, none, 7, 0], [71, 66, none, 132])


def test_a_state_is_never_changed(engine: Engine, stages) -> None:
    """Every stage gives a new one, so that one state can go two ways."""
    first: Callable[[], SearchState] = lambda: run_stages(engine.begin(QUESTION, k=20), [stages["retrieve"]])  # noqa: E731
    state = first()
    subgraph, maxima = state.subgraph, state.maxima
    for name in LATER:
        stages[name].run(state)
        assert state.subgraph is subgraph
        assert state.maxima is maxima
    again = run_stages(state, [stages["rank"]])
    assert again.subgraph == run_stages(first(), [stages["rank"]]).subgraph
