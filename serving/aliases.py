"""Other names of indexes. An alias is pointed to another index in one step: a question sees the one or the other.

With a file (`--aliases`) they outlive the server; without one they last as long as it does.
"""

import json
import os
import re
import threading
from collections.abc import Collection, Mapping
from pathlib import Path

from helios.errors import ConfigError

VERSION = 1
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MOST = 1000
"""Aliases of one server."""


class Aliases:
    """Aliases with the index that each of them names; threads may share it."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.named: Mapping[str, str] = {}
        """Replaced as a whole by every change."""
        self._changing = threading.Lock()

    def open(self, indexes: Collection[str]) -> None:
        """Read the file, if there is one; ConfigError where it is wrong or names an index that is not served."""
        if self.path is None or not self.path.exists():
            return
        try:
            document = json.loads(self.path.read_text(encoding="utf-8"))
            if document["version"] != VERSION:
                raise ConfigError(f"{self.path}: version {document['version']!r}; this code reads {VERSION}")
            named = {str(alias): str(index) for alias, index in document["aliases"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ConfigError(f"{self.path}: not a file of aliases ({error}); restore or remove it") from None
        for alias, index in named.items():
            if not NAME.fullmatch(alias) or alias in indexes or index not in indexes:
                raise ConfigError(
                    f"{self.path}: {alias!r} is to name the index {index!r}; an alias has letters and digits, is no "
                    "index itself, and names one that is served: mend the file, or give that --index"
                )
        self.named = named

    def point(self, alias: str, index: str) -> str | None:
        """Have an alias name an index from now on; what it named before."""
        with self._changing:
            before = self.named.get(alias)
            self._become({**self.named, alias: index})
            return before

    def drop(self, alias: str) -> None:
        """Forget an alias; KeyError where there is none."""
        with self._changing:
            left = dict(self.named)
            del left[alias]
            self._become(left)

    def _become(self, named: Mapping[str, str]) -> None:
        """First on the disk, then here: what was acknowledged is there after a crash."""
        if self.path is not None:
            partial = self.path.with_name(f".{self.path.name}.{os.getpid()}")
            with open(partial, "w", encoding="utf-8") as file:
                file.write(json.dumps({"version": VERSION, "aliases": dict(named)}, indent=2) + "\n")
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.path)
        self.named = named
