"""Links by the trained linker, for the link stage; imported only where links are predicted."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from helios.corpus import CorpusStore
from helios.models.linker.linker import PASSAGES, TableLinker
from helios.models.linker.passages import WORDS
from indexing.kept_words import NAME
from indexing.linking import LinkingJob, link_chunks
from indexing.stage import StageContext
from indexing.workers import exit_with_parent


@dataclass(frozen=True)
class WatchedJob(LinkingJob):
    """A linking job whose worker processes end with the build, even if that is killed."""

    build: int = 0
    """Process id of the build."""

    def open(self) -> tuple[CorpusStore, TableLinker]:
        """The store and the linker; in a worker, watch over the build from here on."""
        if os.getpid() != self.build:
            exit_with_parent(self.build)
        return LinkingJob.open(self)


def predicted_links(
    context: StageContext, store: CorpusStore, ranges: Mapping[int, range]
) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """(chunk number, links as columns) of every range of tables, in order, by `workers` processes."""
    if not ranges:
        return
    settings = context.config.advanced.linking
    job = WatchedJob(
        store=store.directory,
        workdir=context.scratch / "candidates",
        weights=Path(settings.model) if settings.model else None,
        threshold=settings.threshold,
        build=os.getpid(),
    )
    weights = job.prepare()
    words = job.workdir / PASSAGES / WORDS
    if words.is_file():  # a build that goes on has kept them already
        words.replace(context.keep / NAME)
    found = link_chunks(job, list(ranges.values()), workers=context.workers)
    if context.workers > 1:
        del weights  # the workers read their own
    for number, links in zip(ranges, found, strict=True):
        yield (
            number,
            {
                "segments": links.segments,
                "passages": links.passages,
                "columns": links.columns,
                "starts": links.starts,
                "ends": links.ends,
                "scores": links.scores,
            },
        )
