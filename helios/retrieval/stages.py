"""The stages after edge retrieval, each one only where the settings ask for it (HELIOS 4.1 to 4.3).

Their models are loaded on first use. All of them work on scores that are log-odds, as the learned ranking gives;
without one the reranker brings fused scores to that scale.
"""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Literal

from helios.config import Config
from helios.errors import ConfigError
from helios.graph import Subgraph
from helios.models.encoder import TokenEncoder
from helios.models.reranking import Reranker
from helios.once import once
from helios.retrieval.edges import EdgeIndex, FactoredEdges
from helios.retrieval.expansion import BestEdges, EdgeScorer, NodeExpander, NodeScorer
from helios.retrieval.late_reranker import LateReranker
from helios.retrieval.part import SearchPart
from helios.retrieval.refinement.base import Refinement, RefinementReport, Refiner
from helios.retrieval.rerank import Mix, MixedEdges, RerankedNodes, deadline_in, load_reranker, rerank_edges
from helios.retrieval.spread import CANDIDATES, spread

if TYPE_CHECKING:
    from helios.llm.budget import Budget
    from helios.llm.client import LlmClient
    from helios.retrieval.refinement.llm import LlmRefiner

READ = 200
"""Edges that are retrieved for the later stages to choose from."""


class Stages:
    """Reranking, expansion and refinement over one part; threads may share it.

    `like` lends its models where its settings are the same, so that variants of a pipeline cost little memory.
    """

    def __init__(
        self, part: SearchPart, encoder: TokenEncoder, edges: EdgeIndex, config: Config, *, like: "Stages | None" = None
    ) -> None:
        self.part = part
        self.encoder = encoder
        self.edges = edges
        self.config = config
        self._like = like
        self._open = ExitStack()

    @property
    def depth(self) -> int:
        """Edges that have to be retrieved so that every stage has its input; 0 where all stages are off."""
        config = self.config
        later = config.expansion.enabled or config.refinement.mode != "off"
        spread = CANDIDATES * config.spread.depth if self._log_odds else 0
        return max(config.rerank.k1 if config.rerank.backend != "none" else 0, READ if later else 0, spread)

    def rerank(self, question: str, subgraph: Subgraph) -> Subgraph:
        """g_e reads the best edges again (4.1); edges that it does not read come after them."""
        settings = self.config.rerank
        if self.late_reranker is not None and isinstance(self.edges, FactoredEdges):
            return self.late_reranker.rerank(self.part, self.edges, question, subgraph, k1=settings.k1)
        if self.edge_reranker is None:
            return subgraph
        return rerank_edges(
            self.part, self.edge_reranker, question, subgraph, k1=settings.k1, k2=max(settings.k2, self.depth),
            mix=self._mix(subgraph), deadline=deadline_in(settings.deadline_ms),
        )  # fmt: skip

    def expand(self, question: str, subgraph: Subgraph) -> Subgraph:
        """Query-relevant node expansion (4.2)."""
        if not self.config.expansion.enabled:
            return subgraph
        scorer: EdgeScorer = self.edges.new_edges(self.part)
        if self.edge_reranker is not None:
            deadline = deadline_in(self.config.rerank.deadline_ms)
            scorer = MixedEdges(self.part, self.edge_reranker, scorer, self._mix(subgraph), deadline=deadline)
        return self.expander.expand(question, subgraph, edge_scorer=scorer)

    def refine(self, question: str, subgraph: Subgraph, *, budget: "Budget | None" = None) -> Refinement:
        """Star-based refinement (4.3): column-wise aggregation and passage verification."""
        if self.refiner is None:
            return Refinement(subgraph, RefinementReport())
        if self.llm_refiner is not None:
            return self.llm_refiner.refine(question, subgraph, self.part, budget=budget)
        return self.refiner.refine(question, subgraph, self.part)

    def spread(self, refined: Refinement) -> Subgraph:
        """Edges that repeat a better one's row or passage stand lower; what refinement removed stays behind."""
        subgraph, removed = refined.subgraph, len(refined.report.demoted)
        return spread(subgraph, self.config.spread, kept=len(subgraph) - removed) if self._log_odds else subgraph

    def close(self) -> None:
        """End what the stages opened: the client of a language model."""
        self._open.close()

    @once
    def late_reranker(self) -> LateReranker | None:
        """g_e by late interaction; None with another backend, and where no learned ranking came before."""
        settings = self.config.rerank
        if settings.backend != "late-interaction" or self.edges.ranker is None:
            return None
        if self._like is not None and self._like.config.rerank == settings:
            return self._like.late_reranker
        encoder = self.config.encoder
        loaded = LateReranker.load(settings, base=encoder.model, max_tokens=encoder.max_tokens)
        if loaded is not None:
            list(loaded.encoder.encode_documents(["warm up"]))
        return loaded

    @once
    def edge_reranker(self) -> Reranker | None:
        """g_e that reads pairs of question and text, None where there is none."""
        if self._like is not None and self._like.config.rerank == self.config.rerank:
            return self._like.edge_reranker
        return self._loaded("edge")

    @once
    def node_reranker(self) -> Reranker | None:
        """g_n, None where reranking is off or no node is to be read."""
        if self.config.rerank.nodes == 0:
            return None
        if self._like is not None and self._like.config.rerank == self.config.rerank:
            return self._like.node_reranker
        return self._loaded("node")

    @once
    def expander(self) -> NodeExpander:
        """The expander, with g_n as its scorer of seeds where there is a reranker."""
        reranker, settings = self.node_reranker, self.config.rerank
        scorer: NodeScorer = BestEdges(self.part)
        if reranker is not None:
            scorer = RerankedNodes(
                self.part, reranker, scorer, weight=settings.weight, limit=settings.nodes,
                deadline_ms=settings.deadline_ms,
            )  # fmt: skip
        return NodeExpander(self.part, self.encoder, self.config.expansion, scorer)

    @once
    def refiner(self) -> Refiner | None:
        """The local refiner; None where refinement is off."""
        settings = self.config.refinement
        if settings.mode == "off":
            return None
        if (
            self._like is not None
            and self._like.config.refinement == settings
            and self._like.config.llm == self.config.llm
        ):
            return self._like.refiner
        from helios.retrieval.refinement.local import LocalRefiner

        return LocalRefiner(self.encoder, settings)

    @once
    def llm_refiner(self) -> "LlmRefiner | None":
        """The refiner that asks a language model and falls back to the local one; None where none is to be asked."""
        if self.config.refinement.mode != "llm" or self.refiner is None:
            return None
        if not self.config.llm.configured:
            raise ConfigError("refinement.mode=llm needs a language model: set llm.base_url and llm.model")
        from helios.retrieval.refinement.llm import LlmRefiner

        return LlmRefiner(self.language_model, self.refiner, self.config.llm, self.config.refinement)

    @once
    def language_model(self) -> "LlmClient":
        """The client of section `llm`, one for all stages and readers; ConfigError where no model is configured."""
        from helios.llm.client import LlmClient

        return self._open.enter_context(LlmClient.open(self.config.llm))

    def _loaded(self, role: Literal["edge", "node"]) -> Reranker | None:
        """A reranker whose weights are read already: that is not the first question's time."""
        reranker = load_reranker(role, self.config.rerank, base=self.config.encoder.model)
        if reranker is not None:
            reranker.score("warm up", ["warm up"])
        return reranker

    @property
    def _log_odds(self) -> bool:
        """Whether scores are log-odds when the last stage gets them."""
        return self.edges.ranker is not None or self.config.rerank.backend not in ("none", "late-interaction")

    def _mix(self, subgraph: Subgraph) -> Mix:
        weight = self.config.rerank.weight
        if self.edges.ranker is not None or not subgraph.edges:
            return Mix(weight)
        return Mix.of_fused(weight, subgraph.edges[0].score)
