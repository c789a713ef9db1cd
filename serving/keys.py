"""Keys of clients: made once, shown once, kept as hashes in a file that its owner alone may read.

    {"version": 1, "keys": [{"id": "k7Qd…", "name": "dashboard", "sha256": "…", "scopes": ["search"], …}]}

A key is `hk_ID_SECRET`. Its secret has 256 random bits, so one round of SHA-256 keeps it. A server that runs sees what
is added or revoked at its next request.
"""

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from helios.errors import ConfigError

VERSION = 1
MOST_BYTES = 4 << 20
KEY = re.compile(r"hk_([A-Za-z0-9]{8})_([A-Za-z0-9_-]{43})")


class Scope(StrEnum):
    """What a key may do."""

    SEARCH = "search"
    """Search, and look at indexes, rows, passages and sources."""
    ASK = "ask"
    """Ask for answers, and run read queries on sources."""
    WRITE = "write"
    """Change indexes."""
    ADMIN = "admin"
    """Metrics, the state of the server, sources checked and read again."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who asks, and what they may do; patterns with * and ? name indexes and sources."""

    key_id: str
    scopes: frozenset[Scope]
    indexes: tuple[str, ...] = ("*",)
    sources: tuple[str, ...] = ("*",)
    per_minute: int | None = None

    def may_ask(self, index: str) -> bool:
        """Whether an index is within reach."""
        return any(fnmatchcase(index, pattern) for pattern in self.indexes)

    def may_query(self, source: str) -> bool:
        """Whether a source is within reach."""
        return any(fnmatchcase(source, pattern) for pattern in self.sources)


EVERYTHING = Access("", frozenset(Scope))
"""Without keys, on loopback."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key as the file has it."""

    id: str
    name: str
    sha256: str
    scopes: tuple[str, ...]
    indexes: tuple[str, ...] = ("*",)
    sources: tuple[str, ...] = ("*",)
    per_minute: int | None = None
    created: str = ""

    @property
    def access(self) -> Access:
        """What it grants."""
        scopes = frozenset(Scope(scope) for scope in self.scopes)
        return Access(self.id, scopes, self.indexes, self.sources, self.per_minute)


class KeyFile:
    """The keys of one file; it is read again when it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._keys: dict[str, Key] = {}
        self._stamp: tuple[int, int, int] | None = None

    def listed(self) -> tuple[Key, ...]:
        """All keys, oldest first; ConfigError for a file that is absent, wrong, or that others may read."""
        self._reload()
        return tuple(self._keys.values())

    def access(self, sent: str) -> Access | None:
        """What a key that a client sent grants; None for one that is unknown or revoked."""
        self._reload()
        found = KEY.fullmatch(sent)
        key = self._keys.get(found[1]) if found else None
        if key is None or not hmac.compare_digest(hashed(sent), key.sha256):
            return None
        return key.access

    def access_of(self, key_id: str) -> Access | None:
        """What a key grants now, by its id; None where it was revoked."""
        self._reload()
        key = self._keys.get(key_id)
        return None if key is None else key.access

    def add(self, key: Key) -> str:
        """Add a key, whose `id` and `sha256` are set here; the key itself, which is shown this once."""
        key_id = "".join(secrets.choice("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789") for _ in range(8))
        sent = f"hk_{key_id}_{secrets.token_urlsafe(32)}"
        created = datetime.now(UTC).isoformat(timespec="seconds")
        with self._writing() as keys:
            keys[key_id] = replace(key, id=key_id, sha256=hashed(sent), created=created)
        return sent

    def revoke(self, key_id: str) -> Key:
        """Take a key out; ConfigError for an unknown id."""
        with self._writing() as keys:
            if key_id not in keys:
                raise ConfigError(f"{self.path}: no key {key_id!r}; `helios serve keys list` shows their ids")
            return keys.pop(key_id)

    @contextmanager
    def _writing(self) -> Iterator[dict[str, Key]]:
        """The keys to change; written in one step at the end, one writer at a time."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path.with_name(self.path.name + ".lock"), "w", opener=_private) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            keys = {key.id: key for key in self.listed()} if self.path.exists() else {}
            yield keys
            document = {"version": VERSION, "keys": [asdict(key) for key in keys.values()]}
            partial = self.path.with_name(f".{self.path.name}.{os.getpid()}")
            with open(partial, "w", encoding="utf-8", opener=_private) as file:
                file.write(json.dumps(document, indent=2) + "\n")
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.path)

    def _reload(self) -> None:
        try:
            found = self.path.stat()
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror}; `helios serve keys add` makes the file") from None
        stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
        if stamp == self._stamp:
            return
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise ConfigError(f"{self.path}: expected a file of keys, {MOST_BYTES >> 20} MB at most")
        if found.st_mode & 0o077:
            raise ConfigError(f"{self.path}: others may read the keys; `chmod 600 {self.path}`")
        self._keys = {key.id: key for key in _read(self.path)}
        self._stamp = stamp


class Rates:
    """How many questions each key may still ask: a bucket that fills evenly, a minute's worth at most."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def wait(self, access: Access, questions: int = 1) -> float:
        """Take so many questions from the key's bucket: 0; or the seconds until it holds them, and none is taken."""
        if access.per_minute is None:
            return 0.0
        now = self._clock()
        left, then = self._left.get(access.key_id, (float(access.per_minute), now))
        left = min(float(access.per_minute), left + (now - then) * access.per_minute / 60)
        missing = questions - left
        self._left[access.key_id] = (left if missing > 0 else left - questions, now)
        return max(0.0, missing * 60 / access.per_minute)


def hashed(sent: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(sent.encode()).hexdigest()


def default_file() -> Path:
    """$XDG_CONFIG_HOME/helios/keys.json, or ~/.config/…"""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "helios" / "keys.json"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _read(path: Path) -> Iterator[Key]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["version"] != VERSION:
            raise ConfigError(f"{path}: version {document['version']!r}; this code reads {VERSION}")
        for fields in document["keys"]:
            yield _key(fields)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path}: not a file of keys ({error}); restore it, or make new keys") from None


def _key(fields: dict[str, Any]) -> Key:
    lists = {name: tuple(str(one) for one in fields[name]) for name in ("scopes", "indexes", "sources")}
    for scope in lists["scopes"]:
        Scope(scope)
    per_minute = fields["per_minute"]
    if per_minute is not None and (type(per_minute) is not int or per_minute < 1):
        raise ValueError(f"per_minute is {per_minute!r}")
    return Key(**{**fields, **lists})
