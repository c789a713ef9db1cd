"""Runs the methods of an ablation over one opened engine: parts and models are shared, and what two methods have
in common (retrieval, the first stages, the candidates) is done once a question.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from helios.config import Config
from helios.engine import Engine
from helios.evaluation.ablation.variants import EncodedEdges, Encoding, Method, Pipeline, UnitSearch
from helios.evaluation.edges import RankedEdge, with_texts
from helios.evaluation.late_interaction import LateInteraction
from helios.evaluation.units import RetrievalUnit
from helios.graph import Subgraph
from helios.index.search import Candidates, FloatArray
from helios.models.encoder import TokenVectors
from helios.once import once
from helios.retrieval.edges import FactoredEdges, fusion_of
from helios.retrieval.joint import JointTexts, apart_maxsim
from helios.retrieval.refinement.base import Refinement
from helios.retrieval.stages import Stages
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

    def close(self) -> None:
        """End what the variants opened; the engine stays open."""
        self.pipelines.close()
        for unit in self._units.values():
            unit.close()

    def _unit(self, unit: RetrievalUnit) -> LateInteraction:
        if unit not in self._units:
            engine = self.engine
            self._units[unit] = LateInteraction(engine.part, engine.encoder, unit=unit, threads=engine.threads)
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
    """The whole search with several settings, which differ in the stages after retrieval alone."""

    def __init__(self, engine: Engine, configs: Sequence[Config], *, k: int) -> None:
        self.engine = engine
        self.k = k
        self.steps = Steps()
        lender = engine.stages
        self._stages = {
            config: Stages(engine.part, engine.encoder, engine.edge_index, config, like=lender) for config in configs
        }

    def search(self, question: str, config: Config) -> Found:
        """What `Engine.search` finds with these settings, step by step."""
        self.steps.begin(question)
        stages = self._stages[config]
        depth = max(self.k, stages.depth)
        found, spent = self._reranked(question, config)
        found = found.top(max(depth, config.rerank.k2))
        key: tuple[Hashable, ...] = (config.rerank, config.expansion, depth)
        found, spent = self.steps.make(key, lambda: stages.expand(question, found), after=spent)
        refined: Refinement
        key = (*key, config.refinement, config.llm)
        refined, spent = self.steps.make(key, lambda: stages.refine(question, found), after=spent)
        started = perf_counter()
        edges = with_texts(stages.spread(refined).top(self.k).edges, self.engine.corpus)
        return Found(edges, spent + (perf_counter() - started) * 1e3, refined.report.problems)

    def close(self) -> None:
        """End what the stages opened."""
        for stages in self._stages.values():
            stages.close()

    def _reranked(self, question: str, config: Config) -> tuple[Subgraph, float]:
        """Retrieved and reranked once, as deep as any variant with this reranker wants it."""
        rivals = [stages for other, stages in self._stages.items() if other.rerank == config.rerank]
        deepest = max(rivals, key=lambda stages: stages.depth)
        deep = max(self.k, *(stages.depth for stages in self._stages.values()))
        found, spent = self.steps.make("retrieve", lambda: self.engine.retrieve_edges(question, k=deep))
        return self.steps.make(config.rerank, lambda: deepest.rerank(question, found), after=spent)


@dataclass(frozen=True, slots=True)
class _Retrieved:
    """The candidates of a question, best fused score first."""

    tokens: TokenVectors
    found: Candidates
    edges: tuple[Edge, ...]


class Encodings:
    """The best factored candidates (`search.joint_depth`) by MaxSim of vectors that were made in different ways."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.factored = FactoredEdges([engine.part], engine.encoder, engine.config.search)
        self.steps = Steps()

    @once
    def joint(self) -> JointTexts:
        """Encodes edges as one text."""
        return JointTexts(self.engine.encoder.for_pairs())

    def search(self, question: str, method: EncodedEdges, *, k: int) -> Found:
        """The first k of the candidates."""
        self.steps.begin(question)
        retrieved: _Retrieved
        retrieved, spent = self.steps.make("candidates", lambda: self._retrieve(question))
        maxsim: FloatArray
        maxsim, spent = self.steps.make(method.encoding, lambda: self._maxsim(retrieved, method.encoding), after=spent)
        started = perf_counter()
        candidates = replace(retrieved.found, maxsim=maxsim)
        scores = candidates.fused(fusion_of(self.engine.config.search)) if method.fused else maxsim
        order = np.lexsort((candidates.units, -scores))[:k]
        ranked = [ScoredEdge(retrieved.edges[place], float(scores[place])) for place in order.tolist()]
        edges = with_texts(ranked, self.engine.corpus)
        return Found(edges, spent + (perf_counter() - started) * 1e3)

    def _retrieve(self, question: str) -> _Retrieved:
        engine, settings = self.engine, self.engine.config.search
        tokens = engine.encoder.encode_question(question)
        depth = settings.joint_depth
        found, _ = self.factored.found(engine.part, question, depth=depth).top(depth)
        return _Retrieved(tokens, found, tuple(engine.part.edge(unit) for unit in found.units.tolist()))

    def _maxsim(self, retrieved: _Retrieved, encoding: Encoding) -> FloatArray:
        part, tokens, edges = self.engine.part, retrieved.tokens, retrieved.edges
        match encoding:
            case Encoding.STORED:
                return retrieved.found.maxsim
            case Encoding.FACTORED:
                return apart_maxsim(self.engine.encoder, part, tokens, edges)
            case Encoding.JOINT:
                return self.joint.maxsim(part, tokens, edges)
