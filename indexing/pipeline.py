"""`build_index`: run the stages that are not done, then swap in the new snapshot.

An index under construction keeps a folder per stage in OUT/.build (indexing.stage). When every component is
there, the part is assembled from hard links and the manifest is replaced: until then readers see the
previous snapshot. Killed at any moment, the same call goes on where it stopped and writes the same bytes.
"""

import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from helios import __version__
from helios.config import Config
from helios.corpus.files import FileList, Outcome
from helios.corpus.mapping import FieldMap
from helios.corpus.rejects import OnError
from helios.errors import ConfigError, CorpusError, HeliosError, IndexFormatError
from helios.index.durable import fsync_path, fsync_tree, remove_tree
from helios.index.lock import LOCK_FILE, WriteLock
from helios.index.manifest import BUILD_FOLDER, MANIFEST_FILE, Manifest, read_manifest
from indexing.commit import commit_part, component_folder
from indexing.disk import DISK_FULL, check_free_space
from indexing.inputs import input_files, inputs_sha256, list_files
from indexing.kept_words import keep_words, words_folder
from indexing.memory import PeakMemory
from indexing.progress import Progress, SilentProgress
from indexing.stage import (
    BuildRequest,
    Journal,
    Stage,
    StageContext,
    StageRecord,
    file_entries,
    prepare_folder,
    stage_dependencies,
    stage_key,
)
from indexing.stages import default_stages
from indexing.stages.ingest import FILES_FILE, REJECTS_FILE

log = logging.getLogger(__name__)

JOURNAL_FILE = "journal.jsonl"
DISTRUSTED = "distrusted"
"""Folder in .build with an empty file for every folder that a fresh build must not reuse."""


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did: the snapshot, the record of every stage, and which stages ran this time."""

    index: Path
    manifest: Manifest
    records: Mapping[str, StageRecord]
    ran: tuple[str, ...]
    seconds: float
    files: FileList
    """What became of every file of the corpus, as OUT/files.jsonl says."""


def build_index(
    corpus: Path,
    out: Path,
    *,
    config: Config | None = None,
    workers: int = 1,
    on_error: OnError = "stop",
    rejects: Path | None = None,
    progress: Progress | None = None,
    stages: Sequence[Stage] | None = None,
    check_disk: bool = True,
    fresh: bool = False,
    metadata: Path | None = None,
    follow_links: bool = False,
    mapping: FieldMap | None = None,
) -> BuildReport:
    """Index a corpus into the folder `out`, or finish a build that was interrupted there.

    `metadata` is a sidecar file with fields of records (helios.corpus.sidecar). `mapping` says which fields of records
    of any shape make a passage. `fresh` forgets what earlier builds
    left; the snapshot they made stays until the new one is complete.

    Raises IndexLockedError while another build writes there, IndexFormatError for a folder that is no
    index, RecordError for a bad record under on_error="stop", HeliosError when the disk is full.
    """
    started = time.monotonic()
    check_places(corpus, out, metadata)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with WriteLock(out):
            check_places(corpus, out, metadata)
            if fresh:
                _forget(out)
            request = BuildRequest(
                corpus, config or Config(), workers, on_error, metadata=metadata, follow_links=follow_links,
                mapping=mapping,
            )  # fmt: skip
            build = _Build(out, request, progress or SilentProgress(), tuple(stages or default_stages()))
            if check_disk:
                build.check_disk()
            ran = build.run_stages()
            manifest = build.commit()
            build.export_rejects(rejects)
            files = build.export_files()
            return BuildReport(out, manifest, build.records, ran, time.monotonic() - started, files)
    except OSError as error:
        if error.errno in DISK_FULL:
            raise HeliosError(
                f"{out}: the disk is full ({error}); free some space and run the same command again: "
                "finished work is kept"
            ) from error
        raise


def check_places(corpus: Path, out: Path, metadata: Path | None = None) -> None:
    """Refuse an output that is not an index and not empty, and an output or a sidecar file inside the corpus."""
    if not corpus.exists():
        raise CorpusError(f"{corpus}: no such file or folder; give the corpus to index")
    if metadata is not None:
        _check_sidecar(corpus, metadata)
    inside, outside = out.resolve(), corpus.resolve()
    if inside == outside or outside in inside.parents or inside in outside.parents:
        raise ConfigError(f"{out}: the index and the corpus {corpus} must be in separate folders")
    if out.exists() and not out.is_dir():
        raise IndexFormatError(f"{out}: is a file; give a folder for the index")
    if not out.is_dir() or (out / MANIFEST_FILE).exists() or (out / BUILD_FOLDER / JOURNAL_FILE).exists():
        return
    strange = sorted(path.name for path in out.iterdir() if path.name != LOCK_FILE and not _is_empty(path))
    if strange:
        raise IndexFormatError(
            f"{out}: holds {strange[0]!r} but no {MANIFEST_FILE}, so it is not a HELIOS index; "
            "give an empty or new folder"
        )


def check_same_corpus(corpus: Path, out: Path, *, follow_links: bool = False) -> None:
    """Refuse an index that was built from files none of which is in the corpus; ConfigError names one of them."""
    listed = out / FILES_FILE
    if not (listed.is_file() and (out / MANIFEST_FILE).exists()):
        return
    try:
        read = [entry.file for entry in FileList.load(listed) if entry.outcome is Outcome.READ]
    except (ValueError, KeyError, TypeError):  # damaged or of another version: a build mends it
        return
    known = {place for name in read for place in (name, *map(str, PurePosixPath(name).parents))}
    if read and known.isdisjoint(file.name for file in input_files(corpus, follow_links=follow_links)):
        raise ConfigError(
            f"{out}: is the index of other files ({read[0]}{' and others' if len(read) > 1 else ''}), none of which is "
            f"in {corpus}; give another folder with --out, or --replace to put this corpus in their place"
        )


def _check_sidecar(corpus: Path, metadata: Path) -> None:
    if not metadata.is_file():
        raise CorpusError(f"{metadata}: no such file; expected a sidecar file with fields of records")
    place = metadata.resolve()
    if corpus.resolve() in (place, *place.parents):
        raise ConfigError(
            f"{metadata}: lies in the corpus {corpus}, which would read it as a table of its own; move the file with "
            "the fields of records out of that folder"
        )


def _is_empty(path: Path) -> bool:
    """Whether this is the empty .build of a process that was killed right after making it."""
    return path.name == BUILD_FOLDER and path.is_dir() and not any(path.iterdir())


def _forget(out: Path) -> None:
    """Drop the results of earlier builds, and mark the live parts as not to be reused."""
    work = out / BUILD_FOLDER
    for folder in work.glob("*/"):
        remove_tree(folder)
    if (out / MANIFEST_FILE).exists():
        (work / DISTRUSTED).mkdir(parents=True)
        for piece in read_manifest(out).pieces:
            (work / DISTRUSTED / piece.pinned.replace("/", "-")).touch()


class _Build:
    """One build in one folder, with the write lock held."""

    def __init__(self, out: Path, request: BuildRequest, progress: Progress, stages: tuple[Stage, ...]) -> None:
        self.out = out
        self.work = out / BUILD_FOLDER
        self.live = read_manifest(out) if (out / MANIFEST_FILE).exists() else None
        self.work.mkdir(exist_ok=True)
        self.journal = Journal(self.work / JOURNAL_FILE)
        known = (self.work / JOURNAL_FILE).exists()
        self.journal.note("begin", code_version=__version__, workers=request.workers)
        if not known:  # what follows in this folder is told to be a build's by its journal
            for path in (self.work / JOURNAL_FILE, self.work, out):
                fsync_path(path)
        self.request = replace(
            request,
            inputs_sha256=inputs_sha256(request.corpus, self.work / "inputs.json", follow_links=request.follow_links),
        )
        self.progress = progress
        self.stages = stages
        self.dependencies: dict[str, dict[str, object]] = {}
        self.keys: dict[str, str] = {}
        for stage in stages:
            self.dependencies[stage.name] = stage_dependencies(stage, self.request, self.keys)
            self.keys[stage.name] = stage_key(self.dependencies[stage.name])
        self.records: dict[str, StageRecord] = {}

    def check_disk(self) -> None:
        """Refuse to start where the disk is clearly too small; a build that goes on has its space already."""
        if self._missing() and not any(self._record(stage) for stage in self.stages):
            check_free_space(self.request.corpus, self.out, self.request.config)

    def run_stages(self) -> tuple[str, ...]:
        """Run what is missing, in order; returns the names of the stages that ran."""
        missing = self._missing()
        for stage in self.stages:
            if stage.name in missing:
                self.records[stage.name] = self._run(stage)
            else:
                self.progress.skipped(stage.name)
                self.journal.note("reuse", stage=stage.name, key=self.keys[stage.name])
                if record := self._record(stage):
                    self.records[stage.name] = record
        return tuple(stage.name for stage in self.stages if stage.name in missing)

    def commit(self) -> Manifest:
        """Assemble the part, swap in the snapshot, and drop what is no longer needed."""
        components = {stage.name: stage.component for stage in self.stages if stage.component}
        sources = {name: self._output(name) for name in components}
        manifest = commit_part(
            self.out,
            live=self.live,
            request=self.request,
            components=components,
            sources={name: path for name, path in sources.items() if path},
            records=self.records,
        )
        self.journal.note("commit", generation=manifest.generation, content=manifest.content_hash())
        keep_words(self.work / "link", words_folder(self.out), manifest.parts)
        for stage in self.stages:
            remove_tree(self.work / stage.name / "out")
        return manifest

    def export_rejects(self, path: Path | None) -> None:
        """Copy the rejected records to where the user wants them, by default OUT/rejects.jsonl."""
        kept = self.work / "ingest" / REJECTS_FILE
        if kept.exists() and (path or kept.stat().st_size):
            shutil.copyfile(kept, path or self.out / REJECTS_FILE)

    def export_files(self) -> FileList:
        """Write OUT/files.jsonl: what became of every file of the corpus."""
        kept = self.work / "ingest" / FILES_FILE
        if not kept.exists():  # a stage that stands in for ingest
            return FileList()
        return list_files(self.request.corpus, kept, self.out / FILES_FILE, follow_links=self.request.follow_links)

    def _missing(self) -> set[str]:
        """Stages to run: components that are not there, and whatever those read and is not there."""
        missing: set[str] = set()
        for stage in reversed(self.stages):
            wanted = stage.component is not None or any(
                stage.name in reader.inputs for reader in self.stages if reader.name in missing
            )
            if wanted and self._output(stage.name) is None:
                missing.add(stage.name)
        return missing

    def _output(self, name: str) -> Path | None:
        """Where a stage's valid output is: in the live snapshot's part, or in its own folder."""
        stage = next(stage for stage in self.stages if stage.name == name)
        record = self._record(stage)
        if record is None:
            return None
        candidates = [self.work / name / "out"]
        live = component_folder(self.out, self.live, stage.component, record.key) if stage.component else None
        if live is not None and not self._distrusted(live):
            candidates.insert(0, live)
        return next((path for path in candidates if record.matches(path)), None)

    def _distrusted(self, folder: Path) -> bool:
        """Whether a fresh build must not use what lies in a folder of the live snapshot."""
        kind, name = folder.relative_to(self.out).parts[:2]
        return (self.work / DISTRUSTED / f"{kind}-{name}").exists()

    def _record(self, stage: Stage) -> StageRecord | None:
        record = StageRecord.read(self.work / stage.name)
        return record if record and record.key == self.keys[stage.name] else None

    def _run(self, stage: Stage) -> StageRecord:
        """Run one stage to its end and make its result durable."""
        folder, key = self.work / stage.name, self.keys[stage.name]
        resumed = prepare_folder(folder, key)
        self.journal.note("start", stage=stage.name, key=key, resumed=resumed)
        started, clock = datetime.now(UTC), time.monotonic()
        inputs = {name: path for name in stage.inputs if (path := self._output(name))}
        with self.progress.stage(stage.name) as meter, PeakMemory() as memory:
            context = StageContext(
                request=self.request,
                inputs=inputs,
                out=folder / "out",
                scratch=folder / "scratch",
                keep=folder,
                kept={name: self.work / name for name in stage.inputs},
                note=lambda event, **fields: self.journal.note(event, stage=stage.name, key=key, **fields),
                meter=meter,
            )
            result = stage.run(context)
            fsync_tree(context.out)
            for path in filter(Path.is_file, folder.iterdir()):  # what the stage keeps beside its output
                fsync_path(path)
            files = file_entries(context.out)
        record = StageRecord(
            stage=stage.name,
            key=key,
            depends_on=self.dependencies[stage.name],
            files=files,
            counts=dict(result.counts),
            models=dict(result.models),
            started=started.isoformat(timespec="milliseconds"),
            seconds=round(time.monotonic() - clock, 3),
            peak_rss=memory.peak,
            workers=self.request.workers,
        )
        record.write(folder)
        self.journal.note("finish", stage=stage.name, key=key, seconds=record.seconds)
        remove_tree(folder / "scratch")
        return record
