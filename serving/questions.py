"""Searches and answers as the server gives them: admitted, within their deadline, as plain JSON data.

Every way in (HTTP, the page, MCP, chat completions) asks through `Questions`; nothing else calls an engine.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from helios.corpus.where import Where
from helios.engine import Engine
from helios.reading.asking import find_evidence, in_order_of_answers, read_evidence
from helios.reading.cli import answer_json
from helios.types import Evidence
from serving.admission import Admission, Rank
from serving.cursors import Cursor, digest
from serving.indexes import OpenIndex, ServedIndexes
from serving.metrics import Metrics
from serving.problems import Problem
from serving.settings import Limits
from serving.tracing import Tracing
from serving.watch import Watch, watching

Result = TypeVar("Result")
Told = Callable[[str, Any], None]
"""Is told what is known so far: `stage` with its name, `evidence` with the ranked edges."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with all that its ranking depends on."""

    question: str
    index: str
    k: int = 50
    where: str | None = None
    explain: bool = False
    limit: int = 10
    """Edges that are shown."""
    cursor: str | None = None

    @property
    def digest(self) -> str:
        """Of everything that decides which edges come and in which order."""
        return digest(self.question, self.index, self.k, self.where)


class Questions:
    """Asks the served indexes; belongs to the event loop, its work to threads."""

    def __init__(
        self, indexes: ServedIndexes, admission: Admission, metrics: Metrics, limits: Limits,
        tracing: Tracing | None = None,
    ) -> None:  # fmt: skip
        self.indexes = indexes
        self.tracing = tracing or Tracing()
        self.admission = admission
        self.metrics = metrics
        self.limits = limits

    def watch(self, seconds: float | None, told: Told | None = None) -> Watch:
        """A watch for one question; a client's deadline is at most the server's."""
        within = min(seconds or self.limits.seconds, self.limits.seconds)
        return Watch(within, on_stage=None if told is None else lambda name: told("stage", {"stage": name}))

    async def search(self, asked: Asked, watch: Watch, *, rank: Rank = Rank.SINGLE) -> dict[str, Any]:
        """A page of ranked edges."""
        return await self._run(lambda: self._search(asked, watch), asked, watch, rank)

    async def ask(
        self, asked: Asked, watch: Watch, *, rank: Rank = Rank.SINGLE, told: Told | None = None
    ) -> dict[str, Any]:
        """An answer with its citations and the best evidence."""
        return await self._run(lambda: self._ask(asked, watch, told), asked, watch, rank)

    async def look(self, index: str, work: Callable[[OpenIndex], Result]) -> Result:
        """What `work` reads of an index, in a thread; for rows and passages by id."""

        def read() -> Result:
            with self.indexes.lent(index) as opened:
                return work(opened)

        return await self.admission.run(read, self.watch(None), grace=self.limits.grace_seconds)

    async def _run(self, work: Callable[[], dict[str, Any]], asked: Asked, watch: Watch, rank: Rank) -> dict[str, Any]:
        if asked.cursor is not None:
            Cursor.read(asked.cursor)
        if asked.where is not None:
            Where.parse(asked.where)
        found = await self.admission.run(work, watch, rank=rank, grace=self.limits.grace_seconds)
        found["timings_ms"] |= {"queue": round(watch.queue_ms, 3), "total": round(watch.elapsed_ms(), 3)}
        self.metrics.answered(found, rank.value)
        self.tracing.stages(watch)
        return found

    def _search(self, asked: Asked, watch: Watch) -> dict[str, Any]:
        with self.indexes.lent(asked.index) as opened, watching(watch):
            cursor = _cursor(asked, opened)
            evidence = opened.engine.search(
                asked.question, k=asked.k, where=asked.where, explain=asked.explain, seconds=_left(watch)
            )
            found = _reply(_page(evidence, cursor.offset, asked.limit), asked, opened.engine, watch)
            after = cursor.offset + asked.limit
            more = after < len(evidence.edges)
            return found | {"next_cursor": str(replace(cursor, offset=after)) if more else None}

    def _ask(self, asked: Asked, watch: Watch, told: Told | None) -> dict[str, Any]:
        with self.indexes.lent(asked.index) as opened, watching(watch):
            engine, reader = opened.engine, opened.reader
            evidence, budget = find_evidence(
                engine,
                reader,
                asked.question,
                k=asked.k,
                where=asked.where,
                seconds=_left(watch),
                explain=asked.explain,
            )  # fmt: skip
            if told is not None:
                told("evidence", _page(evidence, 0, asked.limit))
            watch.stage("read")
            started = time.perf_counter()
            answer = read_evidence(engine, reader, evidence, budget=budget)
            read_ms = round((time.perf_counter() - started) * 1e3, 3)
            evidence = in_order_of_answers(evidence, answer, engine.corpus)
            found = _reply(_page(evidence, 0, asked.limit), asked, engine, watch)
            found["timings_ms"]["read"] = read_ms
            return found | {
                "answer": answer_json(answer, engine.corpus),
                "degraded": answer.degraded or evidence.degraded,
                "calls": answer.calls,
                "tokens": answer.tokens,
            }


def _left(watch: Watch) -> float:
    """Seconds that the engine has; Problem `deadline` where there are none."""
    left = watch.seconds_left()
    if not left:
        raise Problem("deadline", "no time was left when its turn came")
    return left


def _cursor(asked: Asked, opened: OpenIndex) -> Cursor:
    """Where the page begins."""
    if asked.cursor is None:
        return Cursor(0, opened.generation, asked.digest, _served(opened))
    cursor = Cursor.read(asked.cursor)
    cursor.check(generation=opened.generation, question=asked.digest, served=_served(opened))
    return cursor


def _served(opened: OpenIndex) -> str:
    """Of the index that was asked: another one may have its name, and its folder, by now."""
    return digest(opened.served, opened.engine.snapshot.manifest.created)


def _page(evidence: Evidence, offset: int, limit: int) -> dict[str, Any]:
    """Evidence in its published schema, of some ranks alone."""
    return replace(evidence, edges=evidence.edges[offset : offset + limit]).to_dict()


def _reply(evidence: dict[str, Any], asked: Asked, engine: Engine, watch: Watch) -> dict[str, Any]:
    """What searches and answers have in common."""
    index = engine.view(asked.where)
    return {
        "index": asked.index,
        "evidence": evidence,
        "coverage": {
            "generation": evidence["generation"],
            "rows": index.segment_count,
            "passages": index.passage_count,
            "filtered": asked.where is not None,
            "complete": not watch.left_out,
            "left_out": list(watch.left_out),
        },
        "degraded": evidence["degraded"],
        "timings_ms": dict(evidence["timings_ms"]),
    }
