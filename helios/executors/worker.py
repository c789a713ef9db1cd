"""The process that an embedded engine runs in: it can be killed at any moment, and it can do little harm.

    python -m helios.executors.worker          frames on stdin and stdout: eight bytes of length, then `values.dumps`

First frame: the engine (`module:function`) and its options; then one frame a query, one reply each. Before the engine
is opened the process gives up what a reader never needs: it may write no file, dump no core, and, where the system
lets it and the engine is no client of a server, see no network. On Linux a query cannot outgrow its memory either:
the parent looks at intervals only, and on a busy machine gigabytes fit between two looks. A thread of the process
watches for the end of its parent and ends it too: a death signal would do so already when the thread that started the
process ends.
"""

import ctypes
import os
import resource
import select
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, BinaryIO, Protocol

from helios.errors import QueryFailed, QueryRejected, QueryTimeout, SourceUnavailable
from helios.executors.rows import capped
from helios.executors.values import Value, dumps, loads

HEADER = struct.Struct("<Q")
PARENT_SECONDS = 2.0
"""Between two looks at whether the parent is still there, should the pipe not tell."""
SPARE_BYTES = 2**26
"""Memory beyond its cap that a query may ask for: what a process sets aside it seldom fills."""
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000


class Session(Protocol):
    """An open engine inside a worker."""

    def run(self, text: str, parameters: Mapping[str, Value]) -> tuple[Sequence[str], Iterable[Sequence[Value]]]:
        """Columns and rows, as lazily as the engine can; QueryRejected or QueryFailed.

        The client of a server may also raise QueryTimeout and SourceUnavailable.
        """


Opener = Callable[[Mapping[str, Any]], Session]


def main() -> None:
    """Serve queries until stdin ends."""
    requests, replies = _channels()
    setup = loads(read_frame(requests) or b"{}")
    _give_up_rights(network=setup.get("network", False))
    threading.Thread(target=_end_with_parent, args=(requests.fileno(), os.getppid()), daemon=True).start()
    try:
        session = open_session(setup["engine"], setup["options"])
    except SourceUnavailable as error:
        write_frame(replies, dumps({"error": "unavailable", "message": str(error)}))
        return
    write_frame(replies, dumps({"ready": True}))
    while (frame := read_frame(requests)) is not None:
        try:
            write_frame(replies, answer(session, loads(frame)))
        except MemoryError:
            reply = {"error": "failed", "message": "the query needs more memory than it may use", "ended": True}
            write_frame(replies, dumps(reply))
            return  # what it holds may never be given back


def open_session(engine: str, options: Mapping[str, Any]) -> Session:
    """Call an engine's opener, named `module:function`; SourceUnavailable where it cannot open."""
    module, _, function = engine.partition(":")
    opener: Opener = getattr(import_module(module), function)
    return opener(options)


def answer(session: Session, request: Mapping[str, Any]) -> bytes:
    """Run one request; what the engine refuses is an answer too, MemoryError is raised."""
    _hold_to(request["max_memory"])
    try:
        columns, rows = session.run(request["text"], request["parameters"])
        kept, truncated = capped(rows, max_rows=request["max_rows"], max_bytes=request["max_bytes"])
        return dumps({"columns": list(columns), "rows": kept, "truncated": truncated})
    except QueryRejected as error:
        return dumps({"error": "rejected", "reason": error.reason, "part": error.part})
    except QueryTimeout:
        return dumps({"error": "timeout"})
    except SourceUnavailable as error:
        return dumps({"error": "unavailable", "message": str(error)})
    except QueryFailed as error:
        return dumps({"error": "failed", "message": str(error)})
    except RecursionError:
        return dumps({"error": "failed", "message": "the query needs more than it may use (it nests too deep)"})


def read_frame(stream: BinaryIO) -> bytes | None:
    """One frame; None at the end of the stream."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    (length,) = HEADER.unpack(header)
    data = stream.read(length)
    return data if len(data) == length else None


def write_frame(stream: BinaryIO, data: bytes) -> None:
    """Write one frame."""
    stream.write(HEADER.pack(len(data)) + data)
    stream.flush()


def _channels() -> tuple[BinaryIO, BinaryIO]:
    """Streams of our own: what an engine prints must not get among the frames."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    return requests, replies


def _hold_to(max_memory: int) -> None:
    """Refuse the process memory beyond `max_memory` bytes, those that it holds already among them."""
    if sys.platform == "linux":
        with open("/proc/self/statm", encoding="ascii") as pages:
            _, resident, _, _, _, data, _ = (int(count) * resource.getpagesize() for count in pages.read().split())
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = data + max(0, max_memory - resident) + SPARE_BYTES
        resource.setrlimit(
            resource.RLIMIT_DATA, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
        )


def _give_up_rights(*, network: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if sys.platform == "linux" and not network:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.unshare(CLONE_NEWUSER | CLONE_NEWNET)  # refused in some containers: the guards stand without it


def _end_with_parent(requests: int, parent: int) -> None:
    hung_up = select.poll()
    hung_up.register(requests, 0)
    while not hung_up.poll(PARENT_SECONDS * 1e3) and os.getppid() == parent:
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
