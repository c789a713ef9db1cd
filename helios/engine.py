"""The front door: open an index, ask a question, get ranked edges with their provenance.

    engine = Engine.open("index")
    evidence = engine.search("Which team did the 1998 champion drive for?", k=10)

A search is Algorithm 1 of the HELIOS paper; each stage takes the question's `SearchState` and fills in its part:

    begin      the question in the terms of the index: token vectors, rare words
    retrieve   edges by factored late interaction and BM25 (4.1)                helios.retrieval.edges
    rank       the best of them among their rivals, by learned trees            helios.retrieval.ranking
    rerank     the best ten read again (4.1)                                    helios.retrieval.reranking
    expand     edges that the graph lacks (4.2)                                 helios.retrieval.expansion
    refine     aggregation over whole tables, verification (4.3)                helios.retrieval.refinement
    spread     the first ranks do not repeat themselves                         helios.retrieval.spreading
    judge      what a score means: the chance that an edge is evidence          helios.retrieval.probability
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from helios.bounded import Bounded
from helios.config import Config, load_config
from helios.corpus.where import Where
from helios.errors import HeliosError, IndexFormatError
from helios.graph import DataGraph
from helios.index.products import load_kernels
from helios.index.reader import Corpus, IndexReader
from helios.index.search import EdgeSearch
from helios.index.settings import search_settings
from helios.index.snapshot import Snapshot
from helios.index.visible import Query, Threads, query_of
from helios.once import once
from helios.retrieval.explain import explain_edge
from helios.retrieval.pipeline import Models, Pipeline
from helios.retrieval.probability import EvidenceModel
from helios.retrieval.state import SearchState, Stage, run_stages
from helios.types import Evidence, EvidenceEdge

if TYPE_CHECKING:
    from helios.llm.budget import Budget
    from helios.models.encoder import TokenEncoder
    from helios.reading.base import Answer, Reader

Stages = Callable[[Sequence[Stage]], Iterable[Stage]]


class Engine:
    """A snapshot of an index and the models that search it; threads may share it, and get what one thread gets."""

    def __init__(
        self, snapshot: Snapshot, config: Config, *, threads: int | None = None, stages: Stages | None = None,
        models: Models | None = None,
    ) -> None:  # fmt: skip
        """`models` lends what another engine has loaded; see `open` for the rest."""
        self.snapshot = snapshot
        self.config = config
        self.index = IndexReader.of(snapshot)
        self.threads = Threads(threads or 1)
        self.models = models or Models(threads=threads or os.cpu_count() or 1)
        self._own_models = models is None
        self._arrange: Stages = stages or (lambda usual: usual)
        self._views: Bounded[str, IndexReader] = Bounded(config.advanced.search.filters)

    @classmethod
    def open(
        cls, path: Path | str, *, config: Path | None = None, overrides: Sequence[str] = (),
        threads: int | None = None, stages: Stages | None = None, models: Models | None = None,
    ) -> "Engine":  # fmt: skip
        """Open an index folder; reads its manifest and what is deleted, models and data are loaded by the first search.

        Settings are the defaults of this version, changed by the YAML file `config` and by `overrides` such as
        "search.k=20"; those that the index's files depend on (`helios.index.settings`) are the build's. `stages` is
        given the usual stages and returns those to run, in order (`helios.retrieval.state`). `threads` work together on
        one question; by default one does, and only nodes that are read again are shared out to all processors. `models`
        lends what another engine has loaded.

        Raises IndexFormatError for a foreign, damaged or newer index, ConfigError for a setting that is wrong or that
        contradicts the build.
        """
        asked = load_config(config, overrides)
        snapshot = Snapshot.open(Path(path), verify=asked.advanced.search.verify)
        try:
            return cls(snapshot, search_settings(snapshot, asked), threads=threads, stages=stages, models=models)
        except HeliosError:
            snapshot.close()
            raise

    def __repr__(self) -> str:
        return (
            f"Engine({str(self.snapshot.directory)!r}, generation={self.snapshot.manifest.generation}, {self.index!r})"
        )

    def search(
        self, question: str, *, k: int | None = None, where: str | Where | None = None, explain: bool = False,
        seconds: float | None = None, budget: "Budget | None" = None,
    ) -> Evidence:  # fmt: skip
        """Rank edges for a question (HELIOS, Algorithm 1).

        `k` edges at most, `search.k` by default; ValueError if it is less than 1. `where` searches as if the index held
        nothing but what it selects (`helios.corpus.where`, WhereError if it cannot be read). `explain` adds the words
        behind every score. After `seconds`, `search.deadline_ms` by default, stages leave out what they can, and a note
        says so. `budget` is what the question may spend on a language model, a fresh one by default.
        """
        state = self.begin(question, k=k, where=where, seconds=seconds, budget=budget)
        state = run_stages(state, self.pipeline.stages)
        return self._evidence(state, explain=explain)

    def search_many(
        self,
        questions: Iterable[str],
        *,
        k: int | None = None,
        where: str | Where | None = None,
        workers: int | None = None,
    ) -> list[Evidence]:
        """The evidence of every question, in their order: what `search` gives, by as many workers as processors."""
        with ThreadPoolExecutor(workers or os.cpu_count() or 1, thread_name_prefix="questions") as pool:
            return list(pool.map(lambda question: self.search(question, k=k, where=where), questions))

    def ask(
        self, question: str, *, k: int = 50, where: str | Where | None = None, seconds: float | None = None
    ) -> "Answer":
        """A short answer with checked citations, or an abstention that says why, from the k best edges."""
        from helios.reading.asking import answer_question

        answer, _ = answer_question(self, self.reader, question, k=k, where=where, seconds=seconds)
        return answer

    def begin(
        self, question: str, *, k: int | None = None, where: str | Where | None = None, seconds: float | None = None,
        budget: "Budget | None" = None,
    ) -> SearchState:  # fmt: skip
        """What every stage starts from: the question in the terms of what is searched."""
        k = self.config.search.k if k is None else k
        if k < 1:
            raise ValueError(f"k must be 1 or more, got {k}")
        limit = self.config.search.deadline_ms
        seconds = seconds if seconds is not None or limit is None else limit / 1e3
        started = time.perf_counter()
        question = question.encode("utf-8", "replace").decode()  # half of a character is no text
        index, pipeline = self.view(where), self.pipeline
        tokens = pipeline.encoder.encode_question(question)
        query = query_of(question, tokens, index.tokens, index.postings)
        return SearchState(
            query,
            EdgeSearch(index, pipeline.fused.fusion, self.threads),
            k=k,
            depth=max(k, pipeline.depth),
            deadline=None if seconds is None else time.monotonic() + seconds,
            budget=budget,
            milliseconds={"begin": (time.perf_counter() - started) * 1e3},
        )

    def view(self, where: str | Where | None) -> IndexReader:
        """What a filter leaves of the index; views of the last filters are kept."""
        if where is None:
            return self.index
        condition = Where.parse(where) if isinstance(where, str) else where
        return self._views.of(str(condition), lambda: self.index.narrowed(condition.nodes(self.index.corpus)))

    def warm_up(self) -> None:
        """Load models and compile kernels now rather than in the first search; servers do this before they listen."""
        self.search("Which is the largest of them, and when was it opened?", k=1)

    @once
    def pipeline(self) -> Pipeline:
        """The stages of a search."""
        built = self.index.encoder
        encoder = self.models.encoder(self.config)
        for part in self.index.parts:
            if part.tokens.encoder["fingerprint"] != encoder.fingerprint:
                raise IndexFormatError(
                    f"{part.view.directory}: its vectors come from {built['name']} ({built['fingerprint'][:12]}), the "
                    f"configured encoder is another ({encoder.fingerprint[:12]}): set encoder.model and "
                    "encoder.adapter to those that it was built with, or rebuild"
                )
        usual = self.models.pipeline(self.config, self.index)
        load_kernels()
        return replace(usual, stages=tuple(self._arrange(usual.stages)))

    @once
    def reader(self) -> "Reader":
        """What answers from evidence: `reading.reader`."""
        from helios.reading.asking import load_reader

        return load_reader(self)

    @property
    def encoder(self) -> "TokenEncoder":
        """The token encoder that the index was built with; IndexFormatError if the configured one differs."""
        return self.pipeline.encoder

    @property
    def corpus(self) -> Corpus:
        """Tables and passages, by number and by id."""
        return self.index.corpus

    @property
    def graph(self) -> DataGraph:
        """The bipartite graph of segments and passages."""
        return self.index.graph

    def query(self, question: str) -> Query:
        """A question in the terms of the index."""
        return query_of(question, self.encoder.encode_question(question), self.index.tokens, self.index.postings)

    def pooled_question(self, question: str) -> NDArray[np.float32]:
        """The unit mean of a question's token vectors: (D)."""
        mean: NDArray[np.float32] = self.encoder.encode_question(question).vectors.mean(axis=0)
        return mean / np.float32(np.linalg.norm(mean))

    def close(self) -> None:
        """Finish the searches that run, then let go of the snapshot; a later search may raise RuntimeError."""
        self.threads.close()
        if self._own_models:
            self.models.close()
        self.snapshot.close()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @once
    def _judge(self) -> EvidenceModel:
        folder = self.config.advanced.search.probability
        return EvidenceModel.load(None if folder is None else Path(folder).expanduser())

    def _evidence(self, state: SearchState, *, explain: bool) -> Evidence:
        """Ranked edges with what their scores mean, their texts, links and, if asked, matches."""
        started = time.perf_counter()
        judged = self._judge.judge(state)
        index, encoder = state.index, self.pipeline.encoder
        edges = tuple(
            EvidenceEdge(
                rank=rank,
                score=scored.score,
                probability=probability,
                origin=scored.origin,
                segment=None if scored.edge.segment is None else index.corpus.segment(scored.edge.segment),
                passage=None if scored.edge.passage is None else index.corpus.passages[scored.edge.passage],
                links=index.edge_links(scored.edge),
                matches=explain_edge(index, encoder, state.query, scored.edge) if explain else (),
                rejected=scored.rejected,
            )
            for rank, (scored, probability) in enumerate(
                zip(state.subgraph.edges[: state.k], judged.probabilities, strict=False), start=1
            )
        )
        report = state.report
        return Evidence(
            question=state.question,
            edges=edges,
            timings_ms={**state.milliseconds, "evidence": (time.perf_counter() - started) * 1e3},
            notes=(*report.notes(), *state.left_out),
            degraded=report.degraded,
            computed=report.computed(index.corpus),
            present=judged.present,
            generation=self.snapshot.manifest.generation,
            calls=report.calls,
            tokens=report.tokens,
        )
