"""The process: it binds its address, opens and warms the indexes, serves, and drains when it is told to leave."""

import asyncio
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from helios.errors import ConfigError, HeliosError
from serving.app import make_app
from serving.gate import JsonLines
from serving.settings import ServerSettings, bracketed, is_loopback
from serving.state import Serving
from serving.tools import make_tools

log = logging.getLogger(__name__)
MOST_HEADER_BYTES = 32 << 10
BACKLOG = 2048
"""Connections that wait to be accepted."""
SWITCH_SECONDS = 0.0005
"""For so long a search may keep Python's lock from the loop that answers: a refusal takes it several times. Python's
own default is ten times as long."""


def run_server(settings: ServerSettings, *, listening: Callable[[str], None]) -> None:
    """Serve until SIGTERM or an interrupt; `listening` is told the address once questions are taken.

    Raises ConfigError for an address that is not loopback without keys, or that is taken; the errors of `Engine.open`.
    """
    server = Server.prepared(settings)
    log_to_stderr()
    sys.setswitchinterval(SWITCH_SECONDS)
    listening(server.address)
    server.run()


def run_tools(settings: ServerSettings) -> None:
    """Serve the tools of agents over standard input and output until it is closed; logs go to the standard error."""
    log_to_stderr()
    serving = Serving.of(settings)
    try:
        serving.open()
        make_tools(serving).run("stdio")
    finally:
        serving.close()


def check_settings(settings: ServerSettings) -> None:
    """ConfigError for what would serve strangers without keys."""
    if settings.keys is None and not is_loopback(settings.host):
        raise ConfigError(
            f"--host {settings.host}: other machines could ask without a key; make one with "
            "`helios serve keys add NAME`, and start with --keys, or listen on 127.0.0.1"
        )


def log_to_stderr() -> None:
    """Every log line as JSON on the standard error; ours from `info` on, those of libraries from `warning` on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    logging.getLogger("serving").setLevel(logging.INFO)


class Server(uvicorn.Server):
    """A server that says that it is leaving from the first signal on, and then ends what it has accepted."""

    def __init__(self, config: uvicorn.Config, serving: Serving, bound: socket.socket) -> None:
        super().__init__(config)
        self.serving = serving
        self.bound = bound

    @classmethod
    def prepared(cls, settings: ServerSettings) -> "Server":
        """Bound to its address, its indexes open and warm; the errors of `run_server`."""
        check_settings(settings)
        bound = _bound(settings)
        serving = Serving.of(settings)
        try:
            serving.open()
        except HeliosError:
            bound.close()
            serving.close()
            raise
        return cls(_config(serving), serving, bound)

    @property
    def address(self) -> str:
        """Where it listens."""
        host, port = self.bound.getsockname()[:2]
        return f"http://{bracketed(host)}:{port}"

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal, or until `should_exit` is set."""
        super().run(sockets or [self.bound])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal to leave. After SIGTERM it still takes questions for a moment, so that a balancer can see it.

        uvicorn would raise the signal again after a clean exit.
        """
        first, self.serving.draining = not self.serving.draining, True
        if first and sig == signal.SIGTERM:
            timer = threading.Timer(self.serving.settings.limits.notice_seconds, self.leave)
            timer.daemon = True
            timer.start()
            return
        super().handle_exit(sig, frame)
        self._captured_signals.clear()

    def leave(self) -> None:
        """Take no more connections, end what was accepted, and stop."""
        self.serving.draining = self.should_exit = True


def _config(serving: Serving) -> uvicorn.Config:
    limits = serving.settings.limits
    return uvicorn.Config(
        make_app(serving), http=_protocol(limits.header_seconds, limits.connections), ws="none", lifespan="on",
        log_config=None, access_log=False, server_header=False, proxy_headers=False,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES, timeout_keep_alive=30,
        timeout_graceful_shutdown=round(limits.drain_seconds),
    )  # fmt: skip


def _bound(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Only where the protocol is named does asyncio turn Nagle's algorithm off: with it the second write of a reply, its
    # body, waits some 40 ms for the client's delayed acknowledgement of the first.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((settings.host, settings.port))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise ConfigError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror or error}; give another --port"
        ) from None
    return bound


def _protocol(header_seconds: float, connections: int) -> type[asyncio.Protocol]:
    """HTTP/1.1 whose heads have to arrive in time, over so many connections at most."""

    class PromptProtocol(H11Protocol):
        head: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > connections:
                transport.abort()
            else:
                self._wait_for_head()

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)
            if self.cycle is not before:
                self._head_came()
            elif self.head is None and (before is None or before.response_complete):
                self._wait_for_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._head_came()
            super().connection_lost(exc)

        def _wait_for_head(self) -> None:
            self.head = self.loop.call_later(header_seconds, self.transport.abort)

        def _head_came(self) -> None:
            if self.head is not None:
                self.head.cancel()
                self.head = None

    return PromptProtocol
