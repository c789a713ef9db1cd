"""Runs the methods of an ablation over one opened engine: models are shared, and what two methods have in common (the
first stages, the candidates) is done once a question.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from helios.config import Config
from helios.engine import Engine
from helios.evaluation.ablation.variants import EncodedEdges, Encoding, Method, Pipeline, UnitSearch
from helios.evaluation.edges import RankedEdge, with_texts
from helios.evaluation.late_interaction import LateInteraction
from helios.evaluation.units import RetrievalUnit
from helios.index.search import FloatArray, PairScores
from helios.once import once
from helios.retrieval.edges import EdgeRetrieval
from helios.retrieval.joint import JointEdges, apart_maxsim
from helios.retrieval.state import SearchState, Stage, edges_of
from helios.types import Edge, ScoredEdge


@dataclass(frozen=True, slots=True)
class Found:
    """A ranked list; `milliseconds` is what its own search would take, shared steps counted in full."""

    edges: tuple[RankedEdge, ...]
    milliseconds: float
    problems: tuple[str, ...] = ()
    """What a stage could not do."""


class Searches:
    """The methods of one ablation; one question at a time."""

    def __init__(self, engine: Engine, methods: Sequence[Method], *, k: int) -> None:
        self.engine = engine
        self.k = k
        self.pipelines = Pipelines(engine, [m.config for m in methods if isinstance(m, Pipeline)], k=k)
        self.encodings = Encodings(engine)
        self._units: dict[RetrievalUnit, LateInteraction] = {}

    def search(self, question: str, method: Method) -> Found:
        """The first k edges."""
        match method:
            case Pipeline(config):
                return self.pipelines.search(question, config)
            case EncodedEdges():
                return self.encodings.search(question, method, k=self.k)
            case UnitSearch(unit):
                started = perf_counter()
                edges = self._unit(unit).search(question, k=self.k)
                return Found(edges, (perf_counter() - started) * 1e3)

    def forget(self) -> None:
        """Drop what is kept of the last question, so that the next search does all its work."""
        self.pipelines.steps.begin(None)
        self.encodings.steps.begin(None)

    def _unit(self, unit: RetrievalUnit) -> LateInteraction:
        if unit not in self._units:
            self._units[unit] = LateInteraction(self.engine, unit=unit)
        return self._units[unit]


class Steps:
    """Results of one question's steps, each made once, with the time from the question to it."""

    def __init__(self) -> None:
        self._question: str | None = None
        self._made: dict[Hashable, tuple[Any, float]] = {}

    def begin(self, question: str | None) -> None:
        """Forget the results of another question."""
        if question is None or question != self._question:
            self._made.clear()
        self._question = question

    def make(self, key: Hashable, step: Callable[[], Any], *, after: float = 0.0) -> tuple[Any, float]:
        """The step's result and the milliseconds since the question, of which `after` passed before the step."""
        if key not in self._made:
            started = perf_counter()
            result = step()
            self._made[key] = result, after + (perf_counter() - started) * 1e3
        return self._made[key]


class Pipelines:
    """The whole search with several settings; stages that two of them share from the first on run once."""

    def __init__(self, engine: Engine, configs: Sequence[Config], *, k: int) -> None:
        self.engine = engine
        self.k = k
        self.steps = Steps()
        pipelines = {config: engine.models.pipeline(config, engine.index) for config in configs}
        self.stages: dict[Config, tuple[Stage, ...]] = {config: one.stages for config, one in pipelines.items()}
        self._depth = max((one.depth for one in pipelines.values()), default=k)

    def search(self, question: str, config: Config) -> Found:
        """What `Engine.search` finds with these settings, stage by stage."""
        self.steps.begin(question)
        state: SearchState
        state, spent = self.steps.make("begin", lambda: self._begin(question))
        key: tuple[Hashable, ...] = ()
        for stage in self.stages[config]:
            key = (*key, id(stage))
            state, spent = self.steps.make(key, partial(stage.run, state), after=spent)
        edges = with_texts(state.subgraph.edges[: self.k], self.engine.corpus)
        return Found(edges, spent, state.report.problems)

    def _begin(self, question: str) -> SearchState:
        """The question, with as many edges asked for as the deepest variant wants."""
        return replace(self.engine.begin(question, k=self.k), depth=max(self.k, self._depth))


@dataclass(frozen=True, slots=True)
class _Retrieved:
    """The best candidates of a question, best fused score first."""

    state: SearchState
    scores: PairScores
    units: Any
    edges: tuple[Edge, ...]


class Encodings:
    """The best factored candidates (`advanced.search.joint_depth`) by MaxSim of vectors made in different ways."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.steps = Steps()

    @once
    def joint(self) -> JointEdges:
        """Encodes edges as one text."""
        return JointEdges(self.engine.encoder.for_pairs())

    def search(self, question: str, method: EncodedEdges, *, k: int) -> Found:
        """The first k of the candidates."""
        self.steps.begin(question)
        retrieved: _Retrieved
        retrieved, spent = self.steps.make("candidates", lambda: self._retrieve(question))
        maxsim: FloatArray
        maxsim, spent = self.steps.make(method.encoding, lambda: self._maxsim(retrieved, method.encoding), after=spent)
        started = perf_counter()
        own, fusion = retrieved.scores, self.engine.pipeline.fused.fusion
        fused = PairScores.of(maxsim, own.segment, own.star, own.lexical, fusion).fused
        scores = fused if method.fused else maxsim
        order = np.lexsort((retrieved.units, -scores))[:k]
        ranked = [ScoredEdge(retrieved.edges[place], float(scores[place])) for place in order.tolist()]
        edges = with_texts(ranked, self.engine.corpus)
        return Found(edges, spent + (perf_counter() - started) * 1e3)

    def _retrieve(self, question: str) -> _Retrieved:
        engine, settings = self.engine, self.engine.config.advanced.search
        depth = settings.joint_depth
        retrieval = EdgeRetrieval(engine.pipeline.fused.scale, settings.candidates, settings.exact)
        state = retrieval.run(replace(engine.begin(question), depth=depth))
        head = np.arange(min(depth, len(state.found)))
        found = state.found
        edges = edges_of(state.index, found.pairs.take(head))
        return _Retrieved(state, found.scores.take(head), found.units[head], edges)

    def _maxsim(self, retrieved: _Retrieved, encoding: Encoding) -> FloatArray:
        index, tokens, edges = self.engine.index, retrieved.state.query.tokens, retrieved.edges
        match encoding:
            case Encoding.STORED:
                return retrieved.scores.maxsim
            case Encoding.FACTORED:
                return apart_maxsim(self.engine.encoder, index, tokens, edges)
            case Encoding.JOINT:
                return self.joint.maxsim(index, tokens, edges)
