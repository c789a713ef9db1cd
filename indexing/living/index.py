"""`Index`: the front door of an index that changes.

Each change is made ready in a workspace, becomes pieces that nothing names yet, and is there at once when the manifest
is swapped (`indexing.living.draft`). Whatever goes wrong before that leaves the snapshot that was.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from helios.config import Config, load_config
from helios.corpus import CorpusStore
from helios.errors import HeliosError, IndexLockedError
from helios.index.lock import WriteLock
from helios.index.manifest import Manifest, Part, read_manifest
from helios.index.products import load_kernels
from helios.index.reader import Corpus, IndexReader
from helios.index.settings import search_settings
from helios.index.snapshot import Snapshot, remove_retired
from helios.models.encoder import MiniLMEncoder
from helios.once import once
from indexing.disk import DISK_FULL
from indexing.kept_words import words_folder
from indexing.living.change import Change, Reject
from indexing.living.compaction import SMALL, due, groups, holds, merged, with_merged
from indexing.living.draft import Draft, Numbers
from indexing.living.layers import placed_layer
from indexing.living.links import Links, new_edges
from indexing.living.parts import Codec, placed_part, write_part
from indexing.living.records import (
    Reading,
    Records,
    refuse_known,
    spooled,
    store_files,
    store_nothing,
    store_values,
    without_known,
)
from indexing.living.refitting import outliers, placed_codebook, refitted
from indexing.living.selection import Mask, by_part, known_ids, of_records, of_sources, that_pass, with_ids
from indexing.living.syncing import Sync, plan_sync, write_files
from indexing.living.workspace import remove_orphans, workspace
from indexing.progress import Progress, SilentProgress
from indexing.stage import BuildRequest
from indexing.stages.encode import load_encoder

WAIT = 60.0
"""Seconds that a change waits for another writer by default."""
NONE = np.zeros(0, np.int64)
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
        linked anew in the same commit: a mention may go to the next best title.
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
                change = _deleted(change, corpus, mask)
                draft = writing.draft.without(by_part(writing.reader, mask), self.encoder)
                if bereft:
                    with workspace(self.directory) as work:
                        draft, edges = self._with_links(draft, draft.reader(), _by_number(draft, bereft), work)
                        change = replace(change, links=edges)
                change = replace(change, generation=draft.commit().generation)
        return replace(change, seconds=time.monotonic() - started)

    def compact(self, *, whole: bool = False, refit: bool = False) -> Change:
        """Make small neighbouring parts, and parts of which more than a fifth is deleted, one; all parts for `whole`.

        No ranking and no score changes, but with `refit`: then all is encoded again under a new codebook, as one part,
        which is worth it where `Change.outliers` is above 0.15. Others read and write meanwhile: the write lock is
        held for the commit alone.
        HeliosError if other compactions were each time quicker.
        """
        started = time.monotonic()
        for _ in range(_ATTEMPTS):
            change = self._compacted(lambda manifest: groups(manifest, whole=whole), refit=refit)
            if change is not None:
                return replace(change, seconds=time.monotonic() - started)
        raise HeliosError(
            f"{self.directory}: others replaced the parts that were to be merged {_ATTEMPTS} times; nothing was "
            "changed, run it again when they are done"
        )

    def is_due(self, *, most: int | None = SMALL) -> bool:
        """Whether `compact_if_due` has something to do."""
        return bool(due(read_manifest(self.directory), most=most))

    def compact_if_due(self, *, most: int | None = SMALL) -> Change | None:
        """Merge parts where there are more than eight, and rewrite those of which more than a fifth is deleted.

        Groups of more than `most` nodes are left alone, so that it takes seconds; None is no limit. Returns None where
        nothing was due, or another compaction was quicker.
        """
        started = time.monotonic()
        if not self.is_due(most=most):
            return None
        change = self._compacted(lambda manifest: due(manifest, most=most), refit=False)
        return change and replace(change, seconds=time.monotonic() - started)

    def _compacted(self, choose: Callable[[Manifest], list[tuple[Part, ...]]], *, refit: bool) -> Change | None:
        """One compaction of the groups that are chosen; None if their parts were replaced meanwhile."""
        with self._failing(), workspace(self.directory) as work:
            with Snapshot.open(self.directory) as snapshot:
                outlying = outliers(IndexReader.of(snapshot).parts)
                wanted = choose(snapshot.manifest)
                if not wanted and not refit:
                    with suppress(IndexLockedError), self._writing():
                        pass  # what an interrupted writer left behind goes
                    return Change(snapshot.manifest.generation, parts=len(snapshot.parts), outliers=outlying)
                fitted: Path | None = None
                if refit:
                    one, fitted = refitted(snapshot, work, self.encoder, self.config, self.progress)
                    done = [one]
                else:
                    done = [
                        merged(snapshot, parts, work / f"part-{number}", work, self.encoder, self.progress)
                        for number, parts in enumerate(wanted)
                    ]
            with self._writing() as writing:
                if not all(holds(writing.draft, one.parts) for one in done):
                    return None
                draft, codebook = writing.draft, None
                if fitted is not None:
                    draft, codebook = placed_codebook(draft, fitted)
                draft = with_merged(draft, done, work, codebook)
                outlying = outliers(draft.reader().parts)
                return Change(draft.commit().generation, parts=len(draft.parts), outliers=outlying)

    def unchanged(self) -> Change:
        """The snapshot that the index has, as a change that did nothing."""
        manifest = read_manifest(self.directory)
        return Change(manifest.generation, parts=len(manifest.parts))

    @once
    def encoder(self) -> MiniLMEncoder:
        """The encoder of the index, with the installed glossaries; parts may have been read by others (`as_read`)."""
        load_kernels()  # whatever needs the encoder runs compiled code next
        return load_encoder(BuildRequest(self.directory, self.config, self.workers))

    @once
    def links(self) -> Links:
        """What decides links."""
        return Links(self.config, words_folder(self.directory))

    def sync(self, folder: Path | str, reading: Reading | None = None, *, dry_run: bool = False) -> Change:
        """Bring the index to what a folder holds now: files that are new are added, changed ones read again.

        What came from a file that has vanished is deleted, if a build or a sync of the folder brought it. Records that
        came otherwise stay. `Change.files` names the files; with `dry_run` that is all. A record whose id another one
        has is a reject.
        """
        started, reading = time.monotonic(), reading or Reading()
        if dry_run:
            with Snapshot.open(self.directory) as snapshot:
                sync = self._plan(snapshot, IndexReader.of(snapshot), Path(folder), reading)
                return Change(snapshot.manifest.generation, parts=len(snapshot.parts), files=sync.plan)
        with self._writing() as writing, workspace(self.directory) as work:
            sync = self._plan(writing.snapshot, writing.reader, Path(folder), reading)
            corpus = writing.reader.corpus
            mask = of_sources(corpus, (*sync.plan.changed, *sync.plan.vanished))
            change = writing.unchanged()
            if sync.paths or mask.any():
                change = self._put(writing, work, mask, self._read(sync, corpus, mask, reading, work), sync=sync)
        return replace(change, files=sync.plan, seconds=time.monotonic() - started)

    def _plan(self, snapshot: Snapshot, reader: IndexReader, folder: Path, reading: Reading) -> Sync:
        return plan_sync(self.directory, snapshot, reader.corpus, folder, follow_links=reading.follow_links)

    def _read(self, sync: Sync, corpus: Corpus, mask: Mask, reading: Reading, work: Path) -> Stored:
        """The records of new and changed files, without those whose id a record has that stays."""
        place = work / "part" / "corpus"
        if not sync.paths:
            return store_nothing(place), ()
        staged = sync.staged(work / "files")
        store, rejected = store_files(
            staged, work / "read", work, config=self.config, reading=replace(reading, follow_links=True),
            progress=self.progress, may_be_empty=True,
        )  # fmt: skip
        store, more = without_known(store, place, known_ids(store, corpus, mask))
        return store, (*rejected, *more)

    def _change(self, store: Callable[[Path], Stored], *, replacing: bool = False) -> Change:
        """Add what `store` puts into the workspace as a new part."""
        started = time.monotonic()
        with self._writing() as writing, workspace(self.directory) as work:
            stored = store(work)
            corpus = writing.reader.corpus
            mask = np.zeros(corpus.segment_count + len(corpus.passages), bool)
            tables, passages = known_ids(stored[0], corpus, mask)
            if not replacing:
                refuse_known((tables, passages))
            mask = of_records(corpus, tables, passages)
            change = self._put(writing, work, mask, stored)
        return replace(change, replaced=len(tables) + len(passages), seconds=time.monotonic() - started)

    def _put(self, writing: "_Writing", work: Path, mask: Mask, stored: Stored, *, sync: Sync | None = None) -> Change:
        """Commit that the marked nodes go and the stored records, which lie in the workspace, come."""
        store, rejected = stored
        bereft = _bereft(writing.reader, mask) if mask.any() and self.links.source != "none" else {}
        draft = writing.draft.without(by_part(writing.reader, mask), self.encoder) if mask.any() else writing.draft
        change = _deleted(replace(writing.unchanged(), rejected=rejected), writing.reader.corpus, mask)
        if len(store.tables) or len(store.passages):
            if sync:
                write_files(work / "part", sync.read(store))
            codec = Codec.of(writing.snapshot, writing.reader, self.encoder)
            draft, change = self._with_part(draft, codec, work, change, bereft)
        elif mask.any():
            draft, edges = self._with_links(draft, draft.reader(), _by_number(draft, bereft), work)
            change = replace(change, links=edges)
        else:
            return change
        return replace(change, generation=draft.commit().generation, parts=len(draft.parts))

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
        rows = {**_by_number(draft, bereft), len(reader.parts) - 1: reader.numbering.segments[-1]}
        new = np.arange(first, reader.passage_count)
        draft, edges = self._with_links(draft, reader, rows, work, new=new)
        counts = part.counts
        return draft, replace(
            change, tables=counts.tables, segments=counts.segments, passages=counts.passages, links=edges
        )

    def _with_links(
        self, draft: Draft, reader: IndexReader, rows: dict[int, Numbers], work: Path, *, new: Numbers = NONE
    ) -> tuple[Draft, int]:
        """The draft with a layer that decides the links of these rows' tables and to new passages.

        And how many edges that brings.
        """
        with self.progress.stage("link") as meter:
            decision = self.links.of_change(reader, rows, new, work, meter)
        if not len(decision.rows):
            return draft, 0
        layer = placed_layer(draft, reader, decision.links, decision.rows, work / "links")
        return draft.with_links(layer), new_edges(decision.links, reader)

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


def _by_number(draft: Draft, rows: dict[str, Numbers]) -> dict[int, Numbers]:
    """Rows of parts by the parts' places instead of their names."""
    return {at: rows[part.name] for at, part in enumerate(draft.parts) if part.name in rows}


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
