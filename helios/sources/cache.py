"""What is kept on disk of a source, beside the file that registers it: its descriptor and its value lookup.

    helios-sources.cache/singers.descriptor.json      {"fingerprint": ..., "descriptor": ...}
    helios-sources.cache/singers.values.npz           helios.sources.lookup
    helios-sources.cache/papers.documents-*/          helios.sources.document_index

Files are for their owner alone: values of databases stand in them. Everything here can be deleted at any time. A folder
that cannot be written is a warning, never an error.
"""

import json
import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from helios.index.durable import write_atomically
from helios.sources.descriptor import Descriptor

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SourceCache:
    """The cached files of one source as it was at `fingerprint`; files of another state count as absent."""

    folder: Path | None
    """None keeps nothing."""
    name: str
    fingerprint: str

    def path(self, ending: str) -> Path | None:
        """Where the source keeps a file."""
        return None if self.folder is None else self.folder / f"{self.name}.{ending}"

    def descriptor(self) -> Descriptor | None:
        """The descriptor that was kept for this state of the source."""
        path = self.path("descriptor.json")
        if path is None:
            return None
        try:
            document = json.loads(path.read_bytes())
            if document["fingerprint"] != self.fingerprint:
                self._drop_values()  # they may hold what is not to be seen any more
                return None
            descriptor: Descriptor = _adapter().validate_python(document["descriptor"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
            log.warning("%s: cannot be read and is made anew (%s)", path, error)
            return None
        return descriptor

    def keep(self, descriptor: Descriptor) -> None:
        """Write the descriptor for the next time."""
        path = self.path("descriptor.json")
        if path is None:
            return
        document = {"fingerprint": self.fingerprint, "descriptor": _adapter().dump_python(descriptor, mode="json")}
        with self.writing(path):
            write_atomically(path, json.dumps(document, ensure_ascii=False, indent=1).encode(), mode=0o600)

    def stamp(self) -> int:
        """Changes whenever the descriptor is kept anew, by this process or another; 0 where there is none."""
        path = self.path("descriptor.json")
        try:
            return 0 if path is None else path.stat().st_mtime_ns
        except OSError:
            return 0

    def _drop_values(self) -> None:
        path = self.path("values.npz")
        if path is not None:
            with self.writing(path):
                path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete all that is kept of the source."""
        if self.folder is None or not self.folder.is_dir():
            return
        with self.writing(self.folder):
            for ending in ("descriptor.json", "values.npz"):
                (self.folder / f"{self.name}.{ending}").unlink(missing_ok=True)
            for documents in self.folder.glob(f"{self.name}.documents-*"):
                shutil.rmtree(documents)

    @contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Make the folder; a failure to write is logged."""
        try:
            if self.folder is not None:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            yield
        except OSError as error:
            log.warning("%s: cannot be written, so it is made anew next time (%s)", path, error.strerror)


@lru_cache(1)
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(Descriptor)
