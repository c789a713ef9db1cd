"""The registered sources that a server serves: asked together in words, or one of them in its own language.

Queries go through the guards of their source and only read. Sources mostly wait for others, so they have permits of
their own: one that hangs never takes a place from a question to an index.
"""

import copy
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helios.config import load_config
from helios.executors.base import Limits as QueryLimits
from helios.executors.base import NativeQuery
from helios.routing.cli import omni_json
from helios.routing.omni import LATE, OmniEngine
from helios.sources.base import Source
from helios.sources.descriptor_text import text
from serving.admission import Admission
from serving.keys import Access
from serving.problems import Problem
from serving.settings import Limits
from serving.watch import Watch

PLACE = re.compile(r"(?<![\w:/.])/(?:[^\s/:;,()'\"]+/)+[^\s:;,()'\"]*")
"""A path of the server's files within a message; addresses of the web are none."""
DESCRIBED = 1500
"""Tokens of a source's description."""
LEAST_SECONDS = 0.001
"""What a query is given whose deadline has passed: it ends at once, as one that is late."""
Json = dict[str, Any]


class ServedSources:
    """The sources of one file; belongs to the event loop, its work to threads."""

    def __init__(self, path: Path, *, config: Path | None, overrides: Sequence[str], limits: Limits) -> None:
        self.admission = Admission(permits=limits.source_permits, queue=limits.queue, name="source")
        self.limits = limits
        self._path = path
        self._config = load_config(config, overrides)
        self._omni: OmniEngine | None = None

    def open(self) -> None:
        """Read the file and load the models; ConfigError for one that is wrong. Sources are opened when asked."""
        self._omni = OmniEngine.open(self._path, config=self._config)

    @property
    def omni(self) -> OmniEngine:
        """The layer over all sources."""
        if self._omni is None:
            raise Problem("not_ready")
        return self._omni

    def within(self, access: Access) -> list[Source]:
        """The sources within a caller's reach."""
        return [source for source in self.omni.sources() if access.may_query(source.name)]

    def find(self, access: Access, name: str) -> Source:
        """One of them; Problem `source_not_found`, also for one out of reach."""
        for source in self.within(access):
            if source.name == name:
                return source
        raise Problem("source_not_found")

    async def list(self, access: Access) -> list[Json]:
        """Names, kinds and languages; nothing about where they are."""
        return [
            {"name": source.name, "kind": str(source.kind), "language": str(source.language)}
            for source in self.within(access)
        ]

    async def describe(self, access: Access, name: str) -> Json:
        """The schema of a source, in words, as far as it fits."""
        source = self.find(access, name)

        def work(watch: Watch) -> Json:
            described = text(source.descriptor(), budget_tokens=DESCRIBED)
            return {"name": name, "kind": str(source.kind), "language": str(source.language), "schema": described}

        return await self._run(work, None)

    async def query(self, access: Access, name: str, query: str, seconds: float | None = None) -> Json:
        """The rows of a query in the source's language, behind its guard."""
        source = self.find(access, name)

        def work(watch: Watch) -> Json:
            rows = source.execute(NativeQuery(source.language, query), _within(source, watch))
            return {"source": name, "language": str(source.language), "query": query, **rows.to_json()}

        return await self._run(work, seconds)

    async def ask(self, access: Access, question: str, k: int | None, seconds: float | None = None) -> Json:
        """What `helios ask --sources` gives, of the sources within reach."""
        within = self.within(access)
        if not within:
            raise Problem("source_not_found", "there is none that you may ask")
        omni = copy.copy(self.omni)
        omni.sources = lambda: within

        def work(watch: Watch) -> Json:
            found = without_places(omni_json(omni.ask(question, k=k, seconds=watch.seconds_left())))
            late = [one["name"] for one in found["sources"] if LATE in one["notes"]]
            asked = [one["name"] for one in found["sources"]]
            found["coverage"] = {
                "sources": len(within), "asked": asked, "complete": not late,
                "left_out": [f"{name}: {LATE}" for name in late],
            }  # fmt: skip
            return found

        return await self._run(work, seconds)

    async def check(self, access: Access, name: str, *, refresh: bool) -> Json:
        """Open a source and read one thing, after forgetting what is kept of it if asked to."""
        source = self.find(access, name)

        def work(watch: Watch) -> Json:
            if refresh:
                source.refresh()
            source.check()
            return {"name": name, "usable": True}

        return await self._run(work, None)

    def close(self) -> None:
        """Close what was opened."""
        self.admission.close()
        if self._omni is not None:
            self._omni.close()

    async def _run(self, work: Any, seconds: float | None) -> Json:
        watch = Watch(min(seconds or self.limits.seconds, self.limits.seconds))
        found: Json = await self.admission.run(lambda: work(watch), watch, grace=self.limits.grace_seconds)
        return found


def without_places(reply: Json) -> Json:
    """A reply whose messages do not say where files of the server lie."""
    reply["notes"] = [PLACE.sub("…", note) for note in reply["notes"]]
    for source in reply["sources"]:
        source["notes"] = [PLACE.sub("…", note) for note in source["notes"]]
        for attempt in source["attempts"]:
            attempt["outcome"] = PLACE.sub("…", attempt["outcome"])
    return reply


def _within(source: Source, watch: Watch) -> QueryLimits:
    """The limits of a source's registration, with no more time than the client waits."""
    registered = getattr(source, "spec", None)
    own = QueryLimits() if registered is None else registered.limits
    return own.model_copy(update={"timeout": min(own.timeout, max(watch.seconds_left(), LEAST_SECONDS))})
