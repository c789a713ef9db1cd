"""The stages of a search as the settings ask for them, with their models.

A stage holds models and settings and nothing of an index, so the same ones serve every snapshot. `Models` loads each
once and lends it to other pipelines with the same settings: variants of a pipeline cost little memory.
"""

import logging
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from helios.config import Config
from helios.errors import ConfigError
from helios.index.reader import IndexReader
from helios.models.encoder import MiniLMEncoder, TokenEncoder
from helios.retrieval.documents import DocumentOrder, DocumentWeights
from helios.retrieval.edges import EdgeRetrieval
from helios.retrieval.expansion.candidates import PAIR_FEATURES, Reach
from helios.retrieval.expansion.model import PairModel
from helios.retrieval.expansion.seeds import BestEdges, NodeScorer
from helios.retrieval.expansion.stage import Expansion
from helios.retrieval.joint import JointEdges, JointRetrieval
from helios.retrieval.ranking.fused import FusedModel
from helios.retrieval.ranking.stage import EdgeScorer, FusedEdges, Ranking, load_ranking
from helios.retrieval.reranking.late import LateReranking, load_late_reranking
from helios.retrieval.reranking.pair_reading import PairReranking, RerankedNodes, load_reranker
from helios.retrieval.spreading import Prices, Spreading
from helios.retrieval.state import Stage

if TYPE_CHECKING:
    from helios.augment.encoding import AttributeVectors
    from helios.augment.model import AugmentModel
    from helios.llm.client import LlmClient
    from helios.retrieval.refinement.local import RefinementModels
    from helios.retrieval.reranking.reranker import Reranker

log = logging.getLogger(__name__)

Loaded = TypeVar("Loaded")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The stages of a search, in order, and what they share."""

    stages: tuple[Stage, ...]
    fused: FusedModel
    encoder: TokenEncoder

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(stage.name for stage in self.stages)})"

    @property
    def depth(self) -> int:
        """Edges that have to be retrieved so that every stage has its input."""
        return max((stage.depth for stage in self.stages), default=0)


class Models:
    """Every model that some pipeline needed, each loaded once; threads may share it."""

    def __init__(self, *, threads: int) -> None:
        self.threads = threads
        self._loaded: dict[Hashable, Any] = {}
        self._lock = RLock()
        self._open = ExitStack()
        self._ahead = ThreadPoolExecutor(1, thread_name_prefix="load")
        """Compiles encoders while the caller goes on; who needs one waits, and meets the error if there is one."""

    def __repr__(self) -> str:
        return f"Models({len(self._loaded)} loaded, threads={self.threads})"

    def pipeline(self, config: Config, index: IndexReader) -> Pipeline:
        """The stages that the settings ask for, for an index; ModelError or ConfigError for what cannot be used."""
        encoder, fused = self.encoder(config, index), self.fused(config)
        advanced = config.advanced.search
        scorer: EdgeScorer
        if advanced.edges == "joint":
            ranking = None
            joint = self._once(
                ("joint", encoder.fingerprint, encoder.glossary), lambda: JointEdges(encoder.for_pairs())
            )
            retrieval: Stage = JointRetrieval(joint, fused, advanced.candidates, advanced.exact, advanced.joint_depth)
            scorer = joint.scorer(fused)
        else:
            ranking = self.ranking(config, index, fused)
            key = ("retrieve", advanced)
            retrieval = self._once(key, lambda: EdgeRetrieval(fused.scale, advanced.candidates, advanced.exact))
            scorer = ranking or self._once(("fused edges", id(fused)), lambda: FusedEdges(fused.scale))
        rerank = self.reranking(config, ranking, index)
        stages = [retrieval, ranking, rerank, self.documents(config), self.expansion(config, scorer, rerank)]
        stages += [self.refinement(config, scorer), self.spreading(config)]
        return Pipeline(tuple(stage for stage in stages if stage is not None), fused, encoder)

    def encoder(self, config: Config, index: IndexReader | None = None) -> MiniLMEncoder:
        """The token encoder of questions, which reads other languages as the texts of the index were read."""
        settings, more = config.encoder, config.advanced.encoder

        def load() -> MiniLMEncoder:
            encoder = MiniLMEncoder.load(
                settings.model, adapter=settings.adapter, runtime=settings.runtime, max_tokens=more.max_tokens,
                windows=more.windows, batch_tokens=more.batch_tokens, threads=self.threads,
            )  # fmt: skip
            self._ahead.submit(encoder.load_ahead, documents=False)
            return encoder

        encoder = self._once(("encoder", settings, more), load)
        if index is None:
            return encoder
        glossary = index.encoder.get("glossary")
        return self._once(("encoder", settings, more, glossary), lambda: encoder.with_glossary(glossary))

    def fused(self, config: Config) -> FusedModel:
        """The fused score."""
        folder = config.advanced.search.fused
        return self._once(("fused", folder), lambda: FusedModel.load(_path(folder)))

    def ranking(self, config: Config, index: IndexReader, fused: FusedModel) -> Ranking | None:
        """The learned ranking; None where the settings leave it out, or the packaged one does not fit the index."""
        needs = {"encoder": index.encoder["fingerprint"], "fused": fused.name, "bits": index.bits}
        folder, first = config.search.ranker, config.advanced.search.rank_depth
        return self._once(
            ("ranking", folder, first, fused, str(needs)),
            lambda: load_ranking(folder, first=first, scale=fused.scale, needs=needs),
        )

    def reranking(self, config: Config, ranking: Ranking | None, index: IndexReader) -> Stage | None:
        """g_e; late interaction needs a learned ranking before it."""
        settings, more = config.rerank, config.advanced.rerank
        if settings.backend == "late-interaction":
            return None if ranking is None else self.late_reranking(config, index)
        reranker = self._pair_reranker("edge", config)
        if reranker is None:
            return None
        key = ("rerank", settings, more, config.encoder)
        return self._once(key, lambda: PairReranking(reranker, more.weight, settings.edges, more.deadline_ms))

    def late_reranking(self, config: Config, index: IndexReader) -> LateReranking | None:
        """g_e by late interaction, which reads other languages as the texts of the index were read."""
        settings, more, encoder = config.rerank, config.advanced, config.encoder
        glossary = index.encoder.get("glossary")

        def load() -> LateReranking | None:
            stage = load_late_reranking(
                settings.model, base=encoder.model, first=settings.edges, max_tokens=more.encoder.max_tokens,
                runtime=encoder.runtime, threads=self.threads, megabytes=more.rerank.cache_mb,
                within=more.rerank.within, tokens=more.rerank.tokens,
            )  # fmt: skip
            if stage is not None and isinstance(stage.reading.encoder, MiniLMEncoder):
                self._ahead.submit(stage.reading.encoder.load_ahead, documents=True)
            return stage

        key = ("late", settings, more.rerank, encoder, more.encoder.max_tokens)
        stage = self._once(key, load)
        return stage and self._once((*key, glossary), lambda: stage.with_glossary(glossary))

    def expansion(self, config: Config, scorer: EdgeScorer, rerank: Stage | None) -> Stage | None:
        """Node expansion, with g_n as its scorer of seeds where one is asked for."""
        settings = config.advanced.expansion
        if not config.expansion.enabled or settings.beam == 0:
            return None
        model = self._once(("pairs", settings.model), lambda: PairModel.load(settings.model, features=PAIR_FEATURES))
        nodes: NodeScorer = BestEdges()
        key = ("expand", settings, id(scorer), id(rerank) if isinstance(rerank, PairReranking) else 0)
        if isinstance(rerank, PairReranking):
            scorer = rerank.over(scorer)
            nodes = self._node_scorer(config, nodes)
        reach = Reach(rows=settings.seeds, tables=settings.tables, within=settings.within)
        return self._once(key, lambda: Expansion(model, scorer, reach, settings.beam, nodes))

    def attribute_vectors(self, config: Config) -> "AttributeVectors":
        """Vectors of a context's attributes by the token encoder, kept by their content."""
        from helios.augment.encoding import AttributeVectors, PooledTokens

        encoder = self.encoder(config)
        return self._once(
            ("attributes", config.encoder, config.advanced.encoder), lambda: AttributeVectors(PooledTokens(encoder))
        )

    def augmenter(self, config: Config) -> "AugmentModel | None":
        """The trained augmenter; ModelError for one that cannot be used with this encoder's vectors."""
        if config.search.augmenter is None:
            return None
        from helios.augment.model import load_augmenter

        encoder, folder = self.attribute_vectors(config).encoder.name, Path(config.search.augmenter).expanduser()
        return self._once(("augmenter", folder, encoder), lambda: load_augmenter(folder, encoder))

    def documents(self, config: Config) -> Stage | None:
        """The order of texts that no row links to."""
        joining = config.advanced.search.documents
        return DocumentOrder(self._once("documents", DocumentWeights.load), joining) if joining else None

    def refinement(self, config: Config, scorer: EdgeScorer) -> Stage | None:
        """Star-based refinement."""
        mode, settings = config.refinement.mode, config.advanced.refinement
        if mode == "off":
            return None
        from helios.retrieval.refinement.local import LocalRefinement

        models = self._refinement_models()
        local = self._once(("refine", settings, id(scorer)), lambda: LocalRefinement(settings, models, scorer))
        if mode == "local":
            return local
        from helios.retrieval.refinement.llm import LlmRefinement

        return LlmRefinement(self.language_model(config), local, config.language_model, settings)

    def spreading(self, config: Config) -> Stage | None:
        """What keeps the first ranks from repeating themselves."""
        ranks = config.advanced.search.spread
        return Spreading(self._once("prices", Prices.load), ranks) if ranks else None

    def language_model(self, config: Config) -> "LlmClient":
        """The client of section `llm`, one for all stages and readers; ConfigError where no model is configured."""
        settings = config.language_model
        if not settings.configured:
            raise ConfigError(
                "refinement.mode=llm and reading.reader=llm need a language model: set llm.base_url and llm.model"
            )
        from helios.llm.client import LlmClient

        return self._once(("llm", settings), lambda: self._open.enter_context(LlmClient.open(settings)))

    def close(self) -> None:
        """End what was opened: the client of a language model, and what still loads ahead."""
        self._ahead.shutdown(wait=False, cancel_futures=True)
        self._open.close()

    def _refinement_models(self) -> "RefinementModels":
        from helios.retrieval.refinement.local import RefinementModels

        return self._once("refinement", RefinementModels.load)

    def _node_scorer(self, config: Config, retrieval: NodeScorer) -> NodeScorer:
        more = config.advanced.rerank
        reranker = self._pair_reranker("node", config) if more.nodes else None
        if reranker is None:
            return retrieval
        return RerankedNodes(reranker, retrieval, more.weight, more.nodes, more.deadline_ms)

    def _pair_reranker(self, role: Literal["edge", "node"], config: Config) -> "Reranker | None":
        """A reranker whose weights are read already: that is not the first question's time."""
        settings, more, encoder = config.rerank, config.advanced.rerank, config.encoder

        def load() -> "Reranker | None":
            reranker = load_reranker(role, settings, more, base=encoder.model, runtime=encoder.runtime)
            if reranker is not None:
                reranker.score("warm up", ["warm up"])
            return reranker

        return self._once((role, settings, more, encoder), load)

    def _once(self, key: Hashable, load: Callable[[], Loaded]) -> Loaded:
        """What was loaded under a key; the lock is held while loading, so that threads wait for one another."""
        with self._lock:
            if key not in self._loaded:
                self._loaded[key] = load()
            loaded: Loaded = self._loaded[key]
            return loaded


def _path(folder: str | None) -> Path | None:
    return None if folder is None else Path(folder).expanduser()
