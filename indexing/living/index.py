"""`Index`: the front door of an index that changes.

Each change is made ready in a workspace, becomes pieces that nothing names yet, and is there at once when the manifest
is swapped (`indexing.living.draft`). Whatever goes wrong before that leaves the snapshot that was.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from helios.config import Config, load_config
from helios.corpus import CorpusStore
from helios.errors import HeliosError
from helios.index.lock import WriteLock
from helios.index.manifest import read_manifest
from helios.index.reader import Corpus, IndexReader
from helios.index.settings import search_settings
from helios.index.snapshot import Snapshot, remove_retired
from helios.models.encoder import MiniLMEncoder
from helios.once import once
from indexing.disk import DISK_FULL
from indexing.living.change import Change, Reject
from indexing.living.compaction import groups, holds, merged, with_merged
from indexing.living.draft import Draft, Numbers
from indexing.living.layers import placed_layer
from indexing.living.links import Links, new_edges
from indexing.living.parts import Codec, placed_part, write_part
from indexing.living.records import Reading, Records, refuse_known, spooled, store_files, store_values
from indexing.living.selection import Mask, by_part, live_table, of_sources, that_pass, with_ids
from indexing.living.workspace import remove_orphans, workspace
from indexing.progress import Progress, SilentProgress
from indexing.stage import BuildRequest
from indexing.stages.encode import load_encoder

WAIT = 60.0
"""Seconds that a change waits for another writer by default."""
_ATTEMPTS = 3
Stored = tuple[CorpusStore, tuple[Reject, ...]]


class Index:
    """An index to be changed. It holds nothing open between calls but models, which the next change finds loaded.

    One thread at a time may use it; other objects and processes may change the same index meanwhile.
    """

    def __init__(
        self, directory: Path, config: Config, *, wait: float = WAIT, workers: int = 1,
        progress: Progress | None = None,
    ) -> None:  # fmt: skip
        self.directory = directory
        self.config = config
        self.wait = wait
        self.workers = workers
        self.progress = progress or SilentProgress()

    @classmethod
    def open(
        cls, path: Path | str, *, wait: float = WAIT, workers: int = 1, overrides: Iterable[str] = (),
        progress: Progress | None = None,
    ) -> "Index":  # fmt: skip
        """An index folder; its settings are those of its build, and `overrides` may say where its models lie now.

        `wait` is how many seconds a change waits for another writer. IndexFormatError for a foreign, damaged or newer
        index, ConfigError for a setting that contradicts the build.
        """
        with Snapshot.open(path) as snapshot:
            config = search_settings(snapshot, load_config(None, list(overrides)))
        return cls(Path(path), config, wait=wait, workers=workers, progress=progress)

    def __repr__(self) -> str:
        return f"Index({str(self.directory)!r})"

    def add(self, tables: Records = (), passages: Records = ()) -> Change:
        """Add Python values: `Table` and `Passage`, or mappings in the schemas of JSON lines.

        Raises CorpusError for a value that is no record, and for an id that is there already or comes twice; nothing is
        added then. IndexLockedError names another writer that was not done in time.
        """
        return self._change(lambda work: (store_values(tables, passages, work / "part" / "corpus"), ()))

    def update(self, tables: Records = (), passages: Records = ()) -> Change:
        """Add values in place of the tables and passages that have their ids; those that replace none are added."""
        return self._change(lambda work: (store_values(tables, passages, work / "part" / "corpus"), ()), replacing=True)

    def add_files(self, corpus: Path | BinaryIO, reading: Reading | None = None, *, replacing: bool = False) -> Change:
        """Add what a file or a folder holds, as a build reads it, or JSON lines of a stream; `replacing` updates."""

        def store(work: Path) -> Stored:
            path = corpus if isinstance(corpus, Path) else spooled(corpus, work)
            return store_files(
                path, work / "part" / "corpus", work, config=self.config, reading=reading or Reading(),
                progress=self.progress,
            )  # fmt: skip

        return self._change(store, replacing=replacing)

    def delete(
        self, ids: Iterable[str] = (), *, source: str | None = None, where: str | None = None, relink: bool = True
    ) -> Change:
        """Delete tables and passages by id, by the file that they came from, and by a filter: what any of them means.

        Ids that no record has are listed in `Change.missing`. With `relink` the rows that named a deleted passage are
        linked anew in a second commit, in which a mention may go to the next best title.
        """
        started = time.monotonic()
        with self._writing() as writing:
            corpus = writing.reader.corpus
            mask, missing = with_ids(corpus, ids)
            for more in (source and of_sources(corpus, [source]), where and that_pass(corpus, where)):
                if isinstance(more, np.ndarray):
                    mask |= more
            change = replace(writing.unchanged(), missing=missing)
            if mask.any():
                bereft = _bereft(writing.reader, mask) if relink and self.links.source != "none" else {}
                draft = writing.draft.without(by_part(writing.reader, mask), self.encoder)
                manifest = draft.commit()
                change = replace(_deleted(change, corpus, mask), generation=manifest.generation)
                if bereft:
                    change = self._relinked(change, bereft)
        return replace(change, seconds=time.monotonic() - started)

    def compact(self, *, whole: bool = False) -> Change:
        """Make small neighbouring parts, and parts of which more than a fifth is deleted, one; all parts for `whole`.

        No ranking and no score changes. Others read and write meanwhile: the write lock is held for the commit alone.
        HeliosError if other compactions were each time quicker.
        """
        started = time.monotonic()
        for _ in range(_ATTEMPTS):
            change = self._compacted(whole=whole)
            if change is not None:
                return replace(change, seconds=time.monotonic() - started)
        raise HeliosError(
            f"{self.directory}: others replaced the parts that were to be merged {_ATTEMPTS} times; nothing was "
            "changed, run it again when they are done"
        )

    def _compacted(self, *, whole: bool) -> Change | None:
        """One compaction; None if its parts were replaced meanwhile."""
        with self._failing(), workspace(self.directory) as work:
            with Snapshot.open(self.directory) as snapshot:
                wanted = groups(snapshot.manifest, whole=whole)
                if not wanted:
                    return Change(snapshot.manifest.generation, parts=len(snapshot.parts))
                done = [
                    merged(snapshot, parts, work / f"part-{number}", work, self.encoder, self.progress)
                    for number, parts in enumerate(wanted)
                ]
            with self._writing() as writing:
                if not all(holds(writing.draft, one.parts) for one in done):
                    return None
                draft = with_merged(writing.draft, done, work)
                return Change(draft.commit().generation, parts=len(draft.parts))

    @once
    def encoder(self) -> MiniLMEncoder:
        """The encoder of the index."""
        return load_encoder(BuildRequest(self.directory, self.config, self.workers))

    @once
    def links(self) -> Links:
        """What decides links."""
        return Links(self.config)

    def _change(self, store: Callable[[Path], Stored], *, replacing: bool = False) -> Change:
        """Add what `store` puts into the workspace as a new part."""
        started = time.monotonic()
        with self._writing() as writing, workspace(self.directory) as work:
            codec = Codec.of(writing.snapshot, writing.reader, self.encoder)
            records, rejected = store(work)
            corpus = writing.reader.corpus
            tables = [name for name in records.tables.ids() if live_table(corpus, name) is not None]
            passages = [name for name in records.passages.ids() if corpus.passages.find(name) is not None]
            if not replacing:
                refuse_known((tables, passages))
            mask = _of_records(corpus, tables, passages)
            bereft = _bereft(writing.reader, mask) if mask.any() and self.links.source != "none" else {}
            draft = writing.draft.without(by_part(writing.reader, mask), self.encoder) if mask.any() else writing.draft
            draft, change = self._with_part(draft, codec, work, writing.unchanged(), bereft)
            manifest = draft.commit()
            change = replace(
                _deleted(change, corpus, mask), generation=manifest.generation, replaced=len(tables) + len(passages),
                rejected=rejected, parts=len(draft.parts),
            )  # fmt: skip
        return replace(change, seconds=time.monotonic() - started)

    def _with_part(
        self, draft: Draft, codec: Codec, work: Path, change: Change, bereft: dict[str, Numbers]
    ) -> tuple[Draft, Change]:
        """The draft with the part that lies in the workspace, its links and those of old rows that it concerns."""
        tokens = write_part(
            work / "part", work, codec, chunk=self.config.advanced.encoder.chunk, progress=self.progress
        )
        part = placed_part(draft, work / "part", codebook=codec.codebook.name, tokens=tokens)
        draft = draft.with_part(part)
        reader = draft.reader()
        first = int(reader.numbering.passages_before[-2])
        rows = self.links.concerned(reader, np.arange(first, reader.passage_count))
        for at, files in enumerate(reader.parts):
            own = [rows.get(at), bereft.get(files.view.part.name)]
            if at == len(reader.parts) - 1:
                own = [reader.numbering.segments[at]]
            rows[at] = np.unique(np.concatenate([np.zeros(0, np.int64), *(one for one in own if one is not None)]))
        draft, edges = self._with_links(draft, reader, rows, work)
        counts = part.counts
        return draft, replace(
            change, tables=counts.tables, segments=counts.segments, passages=counts.passages, links=edges
        )

    def _with_links(self, draft: Draft, reader: IndexReader, rows: dict[int, Numbers], work: Path) -> tuple[Draft, int]:
        """The draft with a layer that decides the links of these rows' tables, and how many edges that brings."""
        with self.progress.stage("link") as meter:
            decision = self.links.of_rows(reader, rows, work, meter)
        if not len(decision.rows):
            return draft, 0
        layer = placed_layer(draft, reader, decision.links, decision.rows, work / "links")
        return draft.with_links(layer), new_edges(decision.links, reader)

    def _relinked(self, change: Change, bereft: dict[str, Numbers]) -> Change:
        """Link rows anew that named what was deleted; the write lock is held."""
        with Snapshot.open(self.directory) as snapshot, workspace(self.directory) as work:
            draft = Draft.of(snapshot)
            reader = draft.reader()
            rows = {
                at: bereft.get(files.view.part.name, np.zeros(0, np.int64)) for at, files in enumerate(reader.parts)
            }
            draft, edges = self._with_links(draft, reader, rows, work)
            return replace(change, generation=draft.commit().generation, links=edges)

    @contextmanager
    def _writing(self) -> Iterator["_Writing"]:
        """The current snapshot with the write lock held."""
        with self._failing(), WriteLock(self.directory, wait=self.wait):
            remove_orphans(self.directory)
            with Snapshot.open(self.directory) as snapshot:
                yield _Writing(snapshot, Draft.of(snapshot), IndexReader.of(snapshot))
            remove_retired(self.directory, read_manifest(self.directory))

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Errors of the disk as what a user can mend."""
        try:
            yield
        except OSError as error:
            what = "the disk is full" if error.errno in DISK_FULL else "the disk failed"
            raise HeliosError(
                f"{self.directory}: {what} ({error}); the index is as it was before: free some space or mend the disk, "
                "and run the same command again"
            ) from error


@dataclass(frozen=True, slots=True)
class _Writing:
    """What a change starts from."""

    snapshot: Snapshot
    draft: Draft
    reader: IndexReader

    def unchanged(self) -> Change:
        """That nothing has changed yet."""
        manifest = self.snapshot.manifest
        return Change(manifest.generation, parts=len(manifest.parts))


def _of_records(corpus: Corpus, tables: list[str], passages: list[str]) -> Mask:
    """The nodes of tables and of passages, each by its id among its kind."""
    mask = np.zeros(corpus.segment_count + len(corpus.passages), bool)
    for name in tables:
        number = corpus.tables.number(name)
        mask[int(corpus.segment_offsets[number]) : int(corpus.segment_offsets[number + 1])] = True
    for name in passages:
        mask[corpus.segment_count + corpus.passages.number(name)] = True
    return mask


def _bereft(reader: IndexReader, mask: Mask) -> dict[str, Numbers]:
    """For each part its rows that stay and name a passage that goes."""
    graph, segments = reader.graph, reader.segment_count
    lost = mask[segments:][graph.edge_passages] & ~mask[:segments][graph.edge_segments]
    rows = np.zeros(len(mask), bool)
    rows[graph.edge_segments[lost]] = True
    return by_part(reader, rows)


def _deleted(change: Change, corpus: Corpus, mask: Mask) -> Change:
    """The change with what the marked nodes are."""
    rows = mask[: corpus.segment_count]
    before = np.append(0, np.cumsum(rows))
    tables = np.count_nonzero(np.diff(before[corpus.segment_offsets]))
    return replace(
        change, deleted_tables=int(tables), deleted_segments=int(rows.sum()),
        deleted_passages=int(mask[corpus.segment_count :].sum()),
    )  # fmt: skip
