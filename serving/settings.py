"""What a server is started with: where it listens, what it serves, and its limits."""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what a client may cost; seconds, bytes and counts."""

    permits: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Questions that are worked on at the same moment."""
    queue: int = 64
    """Questions that wait for a permit; the next one is refused with 503."""
    batches: int = 4
    """Batches under way at the same moment."""
    batch_questions: int = 100
    """Questions of one batch."""
    seconds: float = 30.0
    """Time for one question, waiting included, where the client names none; also the most that it may name."""
    grace_seconds: float = 5.0
    """After a question's deadline, until the client is told that it is late."""
    body_bytes: int = 1 << 20
    body_seconds: float = 10.0
    """From the head of a request to the end of its body."""
    body_depth: int = 32
    """Brackets within brackets of a JSON body."""
    header_seconds: float = 10.0
    """From the opening of a connection, or its last byte, to the end of a request's head."""
    connections: int = 1000
    """Open connections; more are closed at once."""
    notice_seconds: float = 1.0
    """After SIGTERM, in which `/readyz` says no and questions are still taken."""
    drain_seconds: float = 30.0
    """For accepted questions to end after SIGTERM."""
    document_bytes: int = 32 << 20
    """A body of JSON lines that are added to an index."""
    document_seconds: float = 120.0
    """From the head of such a request to the end of its body."""
    tasks: int = 32
    """Changes of indexes that wait or run; the next one is refused with 503."""
    tasks_kept: int = 1000
    """Tasks that clients can look at, those that have ended too."""
    source_permits: int = 8
    """Questions to sources under way: they mostly wait for others."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """All that `helios serve` was asked for."""

    indexes: Mapping[str, Path]
    """Folders of indexes by the names that clients use."""
    sources: Path | None = None
    """A file of registered sources."""
    aliases: Path | None = None
    """A file that keeps aliases of indexes; None keeps them as long as the server runs."""
    corpora: Mapping[str, Path] = field(default_factory=dict)
    """Folders that indexes may be brought up to date with, by the index's name."""
    backups: Path | None = None
    """The folder that backups are written below; None writes none."""
    host: str = "127.0.0.1"
    port: int = 8080
    """0 takes a free one."""
    allowed_hosts: tuple[str, ...] = ()
    """Names, besides its address, by which clients may call the server."""
    allowed_origins: tuple[str, ...] = ()
    """Web sites whose scripts may call it (CORS); none by default."""
    keys: Path | None = None
    """The file of keys; None serves without, on loopback alone."""
    config: Path | None = None
    overrides: tuple[str, ...] = ()
    log_questions: bool = False
    """Whether logs hold the questions' texts."""
    traces: bool = False
    """Whether requests are sent as spans where the variables of OpenTelemetry say."""
    limits: Limits = field(default_factory=Limits)

    @property
    def hosts(self) -> frozenset[str]:
        """Every name of the server that a Host header may have, without the port."""
        own = () if is_any(self.host) else (bracketed(self.host),)
        names = (*own, *(LOOPBACK_NAMES if is_loopback(self.host) or is_any(self.host) else ()), *self.allowed_hosts)
        return frozenset(name.lower() for name in names)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_any(host: str) -> bool:
    """Whether an address stands for all of the machine's."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def bracketed(host: str) -> str:
    """An address as it stands in a URL."""
    return f"[{host}]" if ":" in host else host
