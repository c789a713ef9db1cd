"""Watches a query that a PostgreSQL server runs for us: its deadline, and how much the server sends."""

import os
import socket
import struct
import sys
import threading
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

TICK = 0.02
GRACE = 0.4
"""Seconds between asking the server to stop a query and giving up the connection."""
_BYTES_RECEIVED = 128
"""Where `struct tcp_info` of Linux has them, as 64 bits."""


class QueryWatch:
    """At the deadline a cancel request, then the end of the connection, whether the server answers or not.

    The connection also ends where more than `room` bytes arrive (Linux, over TCP): one row may have a gigabyte.
    """

    def __init__(self, connection: "psycopg.Connection[Any]", *, deadline: float, room: int) -> None:
        self.late = False
        self.overfull = False
        self.ignored = False
        """Whether the server went on after it was asked to stop."""
        self.process = connection.info.backend_pid
        """Of the server, that serves this connection."""
        self._connection = connection
        self._deadline = deadline
        self._line = socket.socket(fileno=os.dup(connection.fileno()))
        self._most = (_received(self._line) or 0) + room
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="query-watch", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._line.close()

    def _watch(self) -> None:
        while not self._done.wait(TICK):
            received = _received(self._line)
            if received is not None and received > self._most:
                self.overfull = True
                hang_up(self._line)
                return
            late = monotonic() - self._deadline if self._is_served() else -1.0
            if late >= 0 and not self.late:
                self.late = True
                threading.Thread(target=self._cancel, name="query-cancel", daemon=True).start()
            if late >= GRACE:
                self.ignored = True
                hang_up(self._line)
                return

    def _is_served(self) -> bool:
        """Whether the server is at work: reading what it sent has its own look at the clock."""
        import psycopg

        return self._connection.info.transaction_status == psycopg.pq.TransactionStatus.ACTIVE

    def _cancel(self) -> None:
        import psycopg

        with suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=GRACE)


def hang_up(line: socket.socket) -> None:
    """End the traffic of a connection that another thread waits on."""
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def _received(line: socket.socket) -> int | None:
    """Bytes that have come in over a TCP connection; None where the system does not tell."""
    if sys.platform != "linux" or line.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    try:
        data = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_RECEIVED + 8)
    except OSError:
        return None
    return struct.unpack_from("<Q", data, _BYTES_RECEIVED)[0] if len(data) >= _BYTES_RECEIVED + 8 else None
