"""The front door: open an index, ask a question, get ranked edges with their provenance.

    engine = Engine.open("index")
    evidence = engine.search("Which team did the 1998 champion drive for?", k=10)

`Engine.search` is Algorithm 1 of the HELIOS paper from top to bottom; a stage is one line that calls one module.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from helios.config import Config, load_config
from helios.corpus import CorpusStore
from helios.errors import HeliosError, IndexFormatError
from helios.graph import DataGraph, Subgraph
from helios.index.settings import search_settings
from helios.index.snapshot import Snapshot
from helios.models.encoder import MiniLMEncoder, TokenEncoder
from helios.models.ranker import find_ranker
from helios.once import once
from helios.retrieval.edges import EdgeIndex, FactoredEdges
from helios.retrieval.explain import explain_edge
from helios.retrieval.features import FEATURES
from helios.retrieval.joint import JointEdges
from helios.retrieval.part import SearchPart
from helios.retrieval.stages import Stages
from helios.types import Evidence, EvidenceEdge, ScoredEdge

if TYPE_CHECKING:
    from helios.llm.budget import Budget


class Engine:
    """A snapshot of an index and the models that search it; safe to share between threads.

    The encoder sets torch to one thread a question, for the whole process: questions share the processors better
    than their tokens do.
    """

    def __init__(self, snapshot: Snapshot, config: Config, *, threads: int | None = None) -> None:
        self.snapshot = snapshot
        self.config = config
        self.threads = threads or os.cpu_count() or 1
        search = config.search
        self.parts = [
            SearchPart(view, threads=self.threads, k1=search.bm25_k1, b=search.bm25_b) for view in snapshot.parts
        ]

    @classmethod
    def open(
        cls, path: Path | str, *, config: Path | None = None, overrides: Sequence[str] = (), threads: int | None = None
    ) -> "Engine":
        """Open an index folder; reads its manifest and what is deleted, models and data are loaded by the first search.

        Settings are the defaults of this version, changed by the YAML file `config` and by `overrides` such as
        "search.k=20"; those that the index's files depend on (`helios.index.settings`) are the build's.

        `threads` search together for one question, by default one a processor.

        Raises IndexFormatError for a foreign, damaged or newer index, ConfigError for a setting that is wrong or that
        contradicts the build.
        """
        asked = load_config(config, overrides)
        snapshot = Snapshot.open(Path(path))
        try:
            return cls(snapshot, search_settings(snapshot, asked), threads=threads)
        except HeliosError:
            snapshot.close()
            raise

    def search(
        self, question: str, *, k: int | None = None, explain: bool = False, budget: "Budget | None" = None
    ) -> Evidence:
        """Rank edges for a question (HELIOS, Algorithm 1); `explain` adds the words behind every score.

        `k` edges at most, `search.k` by default; ValueError if it is less than 1. `budget` is what the question may
        spend on a language model, a fresh one by default.
        """
        k = self.config.search.k if k is None else k
        if k < 1:
            raise ValueError(f"k must be 1 or more, got {k}")
        laps = Laps()
        found = self.retrieve_edges(question, k=max(k, self.stages.depth))
        laps.done("retrieve")
        found = self.stages.rerank(question, found)
        laps.done("rerank")
        found = self.stages.expand(question, found)
        laps.done("expand")
        refined = self.stages.refine(question, found, budget=budget)
        laps.done("refine")
        found = self.stages.spread(refined)
        laps.done("spread")
        edges = self._evidence(question, found.top(k).edges, explain=explain)
        laps.done("evidence")
        report = refined.report
        return Evidence(
            question, edges, laps.milliseconds, report.notes(), report.degraded, report.computed(self.corpus)
        )

    def warm_up(self) -> None:
        """Load models and compile kernels now rather than in the first search; servers do this before they listen."""
        reranked = self.stages.rerank("warm up", self.retrieve_edges("warm up", k=1))
        self.stages.expand("warm up", reranked)

    def retrieve_edges(self, question: str, *, k: int) -> Subgraph:
        """Edge-based bipartite subgraph retrieval (4.1)."""
        (edges,) = self.edge_index.retrieve(question, k=k)
        return Subgraph.from_edges(edges)

    @once
    def encoder(self) -> TokenEncoder:
        """The token encoder that the index was built with; IndexFormatError if this one differs."""
        settings = self.config.encoder
        encoder = MiniLMEncoder.load(
            settings.model,
            adapter=settings.adapter,
            runtime=settings.runtime,
            max_tokens=settings.max_tokens,
            threads=1,  # a question is too short to share out: on a busy machine two threads took thirty times as long
        )
        for part in self.parts:
            built_with = part.tokens.encoder
            if built_with["fingerprint"] != encoder.fingerprint:
                raise IndexFormatError(
                    f"{part.view.directory}: its vectors come from {built_with['name']} "
                    f"({built_with['fingerprint'][:12]}), the configured encoder is another "
                    f"({encoder.fingerprint[:12]}): set encoder.model and encoder.adapter to those that it was built "
                    "with, or rebuild"
                )
        return encoder

    @once
    def stages(self) -> Stages:
        """What follows edge retrieval."""
        return Stages(self.part, self.encoder, self.edge_index, self.config)

    @once
    def edge_index(self) -> EdgeIndex:
        """What ranks edges."""
        search = self.config.search
        if search.edges == "joint":
            return JointEdges(FactoredEdges([self.part], self.encoder, search))
        return FactoredEdges([self.part], self.encoder, search, find_ranker(search.ranker, features=FEATURES))

    @property
    def part(self) -> SearchPart:
        """The index's part; there is one until documents can be added."""
        if len(self.parts) != 1:
            raise IndexFormatError(f"{self.snapshot.directory}: has {len(self.parts)} parts, this version reads one")
        return self.parts[0]

    @property
    def corpus(self) -> CorpusStore:
        """Tables and passages, by number and by id."""
        return self.part.corpus

    @property
    def graph(self) -> DataGraph:
        """The bipartite graph of segments and passages."""
        return self.part.graph

    def pooled_nodes(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """One unit vector a node, the mean of its token vectors: segments (S, D) and passages (P, D)."""
        return self.part.pooled_nodes()

    def pooled_question(self, question: str) -> NDArray[np.float32]:
        """The unit mean of a question's token vectors: (D)."""
        mean: NDArray[np.float32] = self.encoder.encode_question(question).vectors.mean(axis=0)
        return mean / np.float32(np.linalg.norm(mean))

    def close(self) -> None:
        """Finish the searches that run, then let go of the snapshot; a later search may raise RuntimeError."""
        if "stages" in self.__dict__:
            self.stages.close()
        for part in self.parts:
            part.close()
        self.snapshot.close()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _evidence(self, question: str, edges: Sequence[ScoredEdge], *, explain: bool) -> tuple[EvidenceEdge, ...]:
        """Give ranked edges their texts, links and, if asked, matches."""
        tokens = self.encoder.encode_question(question) if explain else None
        part = self.part
        return tuple(
            EvidenceEdge(
                rank=rank,
                score=scored.score,
                origin=scored.origin,
                segment=None if scored.edge.segment is None else part.corpus.segment(scored.edge.segment),
                passage=None if scored.edge.passage is None else part.corpus.passages[scored.edge.passage],
                links=part.links(scored.edge),
                matches=explain_edge(part, self.encoder, question, tokens, scored.edge) if tokens else (),
            )
            for rank, scored in enumerate(edges, start=1)
        )


class Laps:
    """How long each stage of a search took, in milliseconds."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}
        self._last = perf_counter()

    def done(self, stage: str) -> None:
        """A stage ends here."""
        now = perf_counter()
        self.milliseconds[stage] = (now - self._last) * 1e3
        self._last = now
