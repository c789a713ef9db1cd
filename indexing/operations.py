"""Changes and checks of an index by plain data, for whoever may not import `indexing`: a server that writes.

It finds `IndexOperations` by the entry point `helios.index_operations`, and has it run in a process that it can kill.
Each operation is the one of the command line of its name.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from helios.config import load_config
from helios.errors import HeliosError
from helios.index.settings import search_settings
from helios.index.snapshot import Snapshot
from indexing.cli import available_cores
from indexing.living.change import Change
from indexing.living.index import Index
from indexing.living.records import Reading
from indexing.progress import Meter, SilentMeter

log = logging.getLogger(__name__)
Json = dict[str, Any]


class IndexOperations:
    """Runs operations, one after the other; models stay loaded between those on the same index."""

    NAMES = ("add", "update", "delete", "compact", "sync", "backup", "fsck")

    def __init__(
        self, *, config: Path | None = None, overrides: Sequence[str] = (), told: Callable[[str], None] | None = None
    ) -> None:
        """`config` and `overrides` say where models lie now; `told` hears the name of each stage that begins."""
        self._config = config
        self._overrides = tuple(overrides)
        self._progress = _Told(told or (lambda stage: None))
        self._opened: Index | None = None

    def run(self, operation: str, index: Path, arguments: Mapping[str, Any]) -> Json:
        """What an operation did, as the command prints it with `--json`; the errors of the command.

        Arguments by operation: add, update: `tables` and `passages`, records as in JSON lines, or `file`, JSON lines;
        delete: `ids`, `source`, `where`, `relink`; compact: `whole`, `refit`, `auto`; sync: `folder`, `dry_run`;
        backup: `out`; fsck: none.
        """
        if operation not in self.NAMES:
            raise HeliosError(f"no operation {operation!r}; there are {', '.join(self.NAMES)}")
        found: Json = getattr(self, f"_{operation}")(index, **arguments)
        return found

    def _add(self, index: Path, *, replacing: bool = False, file: str | None = None, **records: Any) -> Json:
        opened = self._index(index)
        if file is not None:
            change = opened.add_files(Path(file), Reading("stop"), replacing=replacing)
        else:
            change = (opened.update if replacing else opened.add)(**records)
        return self._kept(opened, change)

    def _update(self, index: Path, **records: Any) -> Json:
        return self._add(index, replacing=True, **records)

    def _delete(self, index: Path, *, ids: Sequence[str] = (), **which: Any) -> Json:
        opened = self._index(index)
        return self._kept(opened, opened.delete(ids, **which))

    def _compact(self, index: Path, *, auto: bool = False, **how: Any) -> Json:
        opened = self._index(index)
        change = opened.compact_if_due(most=None) if auto else opened.compact(**how)
        return (change or opened.unchanged()).record()

    def _sync(self, index: Path, *, folder: str, dry_run: bool = False) -> Json:
        opened = self._index(index)
        change = opened.sync(folder, dry_run=dry_run)
        return change.record() if dry_run else self._kept(opened, change)

    def _kept(self, opened: Index, change: Change) -> Json:
        """What a change did, after small parts were merged where that was due; it stands also where that fails."""
        try:
            opened.compact_if_due()
        except HeliosError as error:
            log.warning("%s was not compacted: %s", opened, error)
        return change.record()

    def _backup(self, index: Path, *, out: str) -> Json:
        from helios.index.backup import back_up

        report = back_up(index, Path(out))
        return {
            "generation": report.manifest.generation, "bytes": report.bytes,
            "files": {sharing.value: count for sharing, count in report.files.items()},
            "content_sha256": report.manifest.content_hash(),
        }  # fmt: skip

    def _fsck(self, index: Path) -> Json:
        from helios.index.fsck import check_index

        findings = list(check_index(index))
        sound = not any(finding.severity == "error" for finding in findings)
        return {"sound": sound, "findings": [asdict(finding) for finding in findings]}

    def _index(self, folder: Path) -> Index:
        """The index; the one of the last operation where it is the same."""
        if self._opened is None or self._opened.directory != folder:
            with Snapshot.open(folder) as snapshot:
                config = search_settings(snapshot, load_config(self._config, self._overrides))
            self._opened = Index(folder, config, workers=available_cores(), progress=self._progress)
        return self._opened


class _Told:
    """A progress that tells which stage begins."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self._told = told

    @contextmanager
    def stage(self, name: str) -> Iterator[Meter]:
        """A silent meter, after the stage's name was told."""
        self._told(name)
        yield SilentMeter()

    def skipped(self, name: str) -> None:
        """Nothing to tell."""
