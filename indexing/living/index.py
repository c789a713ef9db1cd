"""`Index`: the front door of an index that changes.

Each change is made ready in a workspace, becomes pieces that nothing names yet, and is there at once when the manifest
is swapped (`indexing.living.draft`). Whatever goes wrong before that leaves the snapshot that was.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from helios.config import Config, load_config
from helios.corpus import CorpusStore
from helios.errors import HeliosError
from helios.index.lock import WriteLock
from helios.index.reader import Corpus, IndexReader
from helios.index.settings import search_settings
from helios.index.snapshot import Snapshot
from helios.models.encoder import MiniLMEncoder
from helios.once import once
from indexing.disk import DISK_FULL
from indexing.linking import LinkArrays
from indexing.living.change import Change, Reject
from indexing.living.draft import Draft, Numbers
from indexing.living.layers import placed_layer
from indexing.living.links import Links, without_known
from indexing.living.parts import Codec, placed_part, write_part
from indexing.living.records import Reading, Records, refuse_known, spooled, store_files, store_values
from indexing.living.selection import Mask, by_part, live_table, of_sources, that_pass, with_ids
from indexing.living.workspace import remove_orphans, workspace
from indexing.progress import Progress, SilentProgress
from indexing.stage import BuildRequest
from indexing.stages.encode import load_encoder

WAIT = 60.0
"""Seconds that a change waits for another writer by default."""
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

    def add_files(
        self, corpus: Path | BinaryIO, reading: Reading | None = None, *, replacing: bool = False
    ) -> Change:
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
        """Delete tables and passages by their ids, by the file that they came from, and by a filter: all that any names.

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

    def _with_links(
        self, draft: Draft, reader: IndexReader, rows: dict[int, Numbers], work: Path
    ) -> tuple[Draft, int]:
        """The draft with a layer of links that these rows of the parts have now and had not before."""
        with self.progress.stage("link") as meter:
            links: LinkArrays = without_known(self.links.of_rows(reader, rows, work, meter), reader)
        if not len(links):
            return draft, 0
        layer = placed_layer(draft, reader, links, work / "links")
        return draft.with_links(layer), layer.edges

    def _relinked(self, change: Change, bereft: dict[str, Numbers]) -> Change:
        """Link rows anew that named what was deleted; the write lock is held."""
        with Snapshot.open(self.directory) as snapshot, workspace(self.directory) as work:
            draft = Draft.of(snapshot)
            reader = draft.reader()
            rows = {at: bereft.get(files.view.part.name, np.zeros(0, np.int64)) for at, files in enumerate(reader.parts)}
            draft, edges = self._with_links(draft, reader, rows, work)
            if not edges:
                return change
            return replace(change, generation=draft.commit().generation, links=edges)

    @contextmanager
    def _writing(self) -> Iterator["_Writing"]:
        """The current snapshot with the write lock held."""
        try:
            with WriteLock(self.directory, wait=self.wait), Snapshot.open(self.directory) as snapshot:
                remove_orphans(self.directory)
                yield _Writing(snapshot, Draft.of(snapshot), IndexReader.of(snapshot))
        except OSError as error:
            raise _failed(self.directory, error) from error


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


def _failed(directory: Path, error: OSError) -> HeliosError:
    """What is said of an error of the disk."""
    what = "the disk is full" if error.errno in DISK_FULL else "the disk failed"
    return HeliosError(
        f"{directory}: {what} ({error}); the index is as it was before: free some space or mend the disk, and run the "
        "same command again"
    )


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
