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
    context    what a database says of the question's row, where it is given         helios.retrieval.context
    spread     the first ranks do not repeat themselves                         helios.retrieval.spreading
    judge      what a score means: the chance that an edge is evidence          helios.retrieval.probability
"""

import copy
import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from helios.config import Config, load_config
from helios.corpus.where import Where
from helios.errors import ConfigError, HeliosError
from helios.following import Follower
from helios.graph import DataGraph
from helios.index.reader import Corpus, IndexReader
from helios.index.search import EdgeSearch
from helios.index.settings import search_settings
from helios.index.snapshot import Snapshot
from helios.index.visible import Query, Threads, query_of
from helios.opened import OpenSnapshot, Stages
from helios.retrieval.explain import explain_edge
from helios.retrieval.pipeline import Models, Pipeline
from helios.retrieval.state import SearchState, Stage, run_stages
from helios.types import Evidence, EvidenceEdge

if TYPE_CHECKING:
    from helios.augment.context import Context
    from helios.augment.encoding import ColumnWeights
    from helios.augment.model import AugmentModel
    from helios.llm.budget import Budget
    from helios.models.encoder import TokenEncoder
    from helios.reading.base import Answer, Reader


class Engine:
    """A snapshot of an index and the models that search it; threads may share it, and get what one thread gets.

    It goes on with its snapshot until `refresh` takes a newer one. A question sees one snapshot from start to end.
    """

    def __init__(
        self, snapshot: Snapshot, config: Config, *, threads: int | None = None, stages: Stages | None = None,
        models: Models | None = None, index: IndexReader | None = None, asked: Config | None = None,
    ) -> None:  # fmt: skip
        """`models` and `index` are lent by another engine, `index` by one of this snapshot; see `open` for the rest.

        `asked` are the settings from which those of a newer snapshot are made: `config` by default.
        """
        self.threads = Threads(threads or 1)
        self.models = models or Models(threads=threads or os.cpu_count() or 1)
        self.opened = OpenSnapshot(snapshot, config, self.models, stages or (lambda usual: usual), index=index)
        self.follower: Follower | None = None
        self._asked = asked or config
        self._own_models = models is None
        self._pinned = self._closed = False
        self._swapping, self._refreshing = Lock(), Lock()

    @classmethod
    def open(
        cls, path: Path | str, *, config: Path | str | None = None, overrides: Sequence[str] = (),
        threads: int | None = None, stages: Stages | None = None, models: Models | None = None,
        follow: float | None = None,
    ) -> "Engine":  # fmt: skip
        """Open an index folder; reads its manifest and what is deleted, models and data are loaded by the first search.

        Settings are the defaults of this version, changed by the YAML file `config` and by `overrides` such as
        "search.k=20"; those that the index's files depend on (`helios.index.settings`) are the build's. `stages` is
        given the usual stages and returns those to run, in order (`helios.retrieval.state`). `threads` work together on
        one question; by default one does, and only nodes that are read again are shared out to all processors. `models`
        lends what another engine has loaded. With `follow` a thread refreshes the engine every so many seconds.

        Raises IndexFormatError for a foreign, damaged or newer index, ConfigError for a setting that is wrong or that
        contradicts the build.
        """
        if follow is not None and not (follow > 0 and math.isfinite(follow)):
            raise ConfigError(f"follow={follow}: expected seconds above 0")
        asked = load_config(config, overrides)
        snapshot = Snapshot.open(Path(path), verify=asked.advanced.search.verify)
        try:
            settings = search_settings(snapshot, asked)
            engine = cls(snapshot, settings, threads=threads, stages=stages, models=models, asked=asked)
        except HeliosError:
            snapshot.close()
            raise
        if follow is not None:
            engine.follower = Follower(engine, follow)
        return engine

    def __repr__(self) -> str:
        return (
            f"Engine({str(self.snapshot.directory)!r}, generation={self.snapshot.manifest.generation}, {self.index!r})"
        )

    def refresh(self) -> bool:
        """Take the current snapshot if it is not this one's; returns whether a newer one was taken.

        New parts are opened, and if this engine was asked before also warmed by a search, before questions come to
        them; questions that run end on the old snapshot, which closes after the last of them. What did not change is
        not read again. Raises what `open` does, and the engine goes on with the old snapshot then.
        """
        with self._refreshing:
            before = self.opened
            if self._pinned or self._closed or before.snapshot.is_current():
                return False
            opened = self._successor(before)
            with self._swapping:
                self.opened = opened
            before.release()
            return True

    @contextmanager
    def pinned(self) -> Iterator["Engine"]:
        """This engine over the snapshot that it has now: calls that must agree, while the engine may be refreshed.

        with engine.pinned() as fixed:
            evidence = fixed.search(question)
            table = fixed.corpus.tables.get(evidence.edges[0].segment.segment_id.table_id)
        """
        if self._pinned:
            yield self
            return
        with self._swapping:
            opened = self.opened
            opened.hold()
        try:
            yield self._over(opened)
        finally:
            opened.release()

    def search(
        self, question: str, *, k: int | None = None, where: str | Where | None = None, explain: bool = False,
        seconds: float | None = None, budget: "Budget | None" = None, context: "Context | None" = None,
        context_weights: "ColumnWeights | None" = None, augmenter: "AugmentModel | None" = None,
    ) -> Evidence:  # fmt: skip
        """Rank edges for a question (HELIOS, Algorithm 1).

        `k` edges at most, `search.k` by default; ValueError if it is less than 1. `where` searches as if the index held
        nothing but what it selects (`helios.corpus.where`, WhereError if it cannot be read). `explain` adds the words
        behind every score. After `seconds`, `search.deadline_ms` by default, stages leave out what they can, and a note
        says so. `budget` is what the question may spend on a language model, a fresh one by default. `context` is what
        a database says of the row that the question is (`helios.augment`), `context_weights` how much its columns
        count, by default `search.context_share` and all alike. `augmenter` is a trained model for questions with a
        context, by default that of `search.augmenter`. Without a context nothing else is done.
        """
        with self.pinned() as engine:
            question = _whole_characters(question)
            asked, stages = engine._with_context(question, context, context_weights, augmenter)
            state = engine.begin(asked, k=k, where=where, seconds=seconds, budget=budget)
            state = run_stages(state, stages)
            return engine._evidence(question, state, explain=explain)

    def search_many(
        self,
        questions: Iterable[str],
        *,
        k: int | None = None,
        where: str | Where | None = None,
        workers: int | None = None,
    ) -> list[Evidence]:
        """The evidence of every question, in their order: what `search` gives, by as many workers as processors.

        All of them see one snapshot.
        """
        threads = ThreadPoolExecutor(workers or os.cpu_count() or 1, thread_name_prefix="questions")
        with self.pinned() as engine, threads as pool:
            return list(pool.map(lambda question: engine.search(question, k=k, where=where), questions))

    def ask(
        self, question: str, *, k: int = 50, where: str | Where | None = None, seconds: float | None = None,
        context: "Context | None" = None,
    ) -> "Answer":  # fmt: skip
        """A short answer with checked citations, or an abstention that says why, from the k best edges.

        `context` is as for `search`.
        """
        from helios.reading.asking import answer_question

        with self.pinned() as engine:
            answer, _ = answer_question(
                engine, engine.reader, question, k=k, where=where, seconds=seconds, context=context
            )
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
        question = _whole_characters(question)
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
        return self.opened.view(where)

    def warm_up(self) -> None:
        """Load models and compile kernels now rather than in the first search; servers do this before they listen."""
        self.search("Which is the largest of them, and when was it opened?", k=1)

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that is searched."""
        return self.opened.snapshot

    @property
    def config(self) -> Config:
        """The settings of searches of this snapshot."""
        return self.opened.config

    @property
    def index(self) -> IndexReader:
        """All nodes of the snapshot."""
        return self.opened.index

    @property
    def pipeline(self) -> Pipeline:
        """The stages of a search."""
        return self.opened.pipeline

    @property
    def reader(self) -> "Reader":
        """What answers from evidence: `reading.reader`."""
        return self.opened.reader

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
        if self._pinned:
            return
        if self.follower is not None:
            self.follower.stop()
        with self._refreshing:
            if self._closed:
                return
            self._closed = True
        self.threads.close()
        if self._own_models:
            self.models.close()
        self.opened.release()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _with_context(
        self, question: str, context: "Context | None", weights: "ColumnWeights | None",
        augmenter: "AugmentModel | None",
    ) -> tuple[str, Sequence[Stage]]:  # fmt: skip
        """The question as it is searched, and the stages, for a question that may have a context."""
        pipeline = self.pipeline
        stages: Sequence[Stage] = pipeline.stages
        if not context:
            return question, stages
        from helios.augment.encoding import ColumnWeights
        from helios.retrieval.context import ContextStage, with_context, with_own_row
        from helios.retrieval.documents import TrainedQuestion, with_trained
        from helios.retrieval.ranking.stage import FusedEdges, Ranking

        augmenter, vectors = augmenter or self.models.augmenter(self.config), self.models.attribute_vectors(self.config)
        weights = weights or (augmenter and augmenter.weights) or ColumnWeights(share=self.config.search.context_share)
        if weights.share >= 1.0:
            return question, stages
        if augmenter is not None:
            augmenter.check_for_search()
            stages = with_trained(stages, TrainedQuestion(augmenter.asked(question, context, vectors), augmenter))
        asked, context, weights = with_own_row(question, context, weights)
        if not context:
            return asked, stages
        ranking = next((stage for stage in pipeline.stages if isinstance(stage, Ranking)), None)
        scorer = ranking or FusedEdges(pipeline.fused.scale)
        stage = ContextStage(context, vectors, weights, scorer, pipeline.fused)
        return asked, with_context(stages, stage)

    def _over(self, opened: OpenSnapshot) -> "Engine":
        """This engine over an open snapshot, for as long as somebody holds that."""
        engine = copy.copy(self)
        engine.opened, engine.follower, engine._pinned = opened, None, True
        return engine

    def _successor(self, before: OpenSnapshot) -> OpenSnapshot:
        """The current snapshot, open and, where the one before was asked, warm."""
        snapshot = Snapshot.open(before.snapshot.directory, verify=self._asked.advanced.search.verify)
        try:
            opened = before.successor(snapshot, search_settings(snapshot, self._asked))
            if before.is_used:
                self._over(opened).warm_up()
                opened.take_reader(before)
        except (HeliosError, OSError):
            snapshot.close()
            raise
        return opened

    def _evidence(self, question: str, state: SearchState, *, explain: bool) -> Evidence:
        """Ranked edges with what their scores mean, their texts, links and, if asked, matches."""
        started = time.perf_counter()
        judged = self.opened.judge.judge(state)
        index, encoder, context = state.index, self.pipeline.encoder, state.context
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
                context=() if context is None else context.matches(state, scored.edge, encoder if explain else None),
            )
            for rank, (scored, probability) in enumerate(
                zip(state.subgraph.edges[: state.k], judged.probabilities, strict=False), start=1
            )
        )
        report = state.report
        return Evidence(
            question=question,
            edges=edges,
            timings_ms={**state.milliseconds, "evidence": (time.perf_counter() - started) * 1e3},
            notes=(*report.notes(), *state.left_out),
            degraded=report.degraded,
            computed=report.computed(index.corpus),
            present=judged.present,
            generation=self.snapshot.manifest.generation,
            calls=report.calls,
            tokens=report.tokens,
            context=() if context is None else context.weights(),
            filtered=index is not self.view(None),
        )


def _whole_characters(question: str) -> str:
    """A question without halves of characters, which are no text."""
    return question.encode("utf-8", "replace").decode()
