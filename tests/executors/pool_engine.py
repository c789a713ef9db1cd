"""An engine for the tests of workers: its queries say how it behaves."""

import ctypes
import os
import socket
import time
from collections.abc import Iterator, Mapping

from helios.errors import QueryFailed, QueryRejected, SourceUnavailable


def open_session(options: Mapping) -> "Session":
    if options.get("broken"):
        raise SourceUnavailable("this engine does not open")
    if options.get("slow"):
        time.sleep(options["slow"])
    return Session(options)


class Session:
    def __init__(self, options: Mapping) -> None:
        self.options = options
        self.held: list[bytearray] = []

    def run(self, text: str, parameters: Mapping) -> tuple[list[str], Iterator[tuple]]:
        verb, _, rest = text.partition(" ")
        return ["value"], iter(getattr(self, f"_{verb}")(rest, parameters))

    def _echo(self, rest: str, parameters: Mapping) -> list[tuple]:
        return [(rest, *parameters.values())]

    def _pid(self, rest: str, parameters: Mapping) -> list[tuple]:
        return [(os.getpid(),)]

    def _sleep(self, rest: str, parameters: Mapping) -> list[tuple]:
        time.sleep(float(rest))
        return [(rest,)]

    def _stuck(self, rest: str, parameters: Mapping) -> None:
        """Holds the interpreter's lock, as C code can: no thread of this process runs any more."""
        ctypes.PyDLL(None).sleep(60)

    def _grow(self, rest: str, parameters: Mapping) -> list[tuple]:
        for _ in range(int(rest)):
            self.held.append(bytearray(os.urandom(2**16) * 2**8))
            time.sleep(0.02)
        return [(len(self.held),)]

    def _long(self, rest: str, parameters: Mapping) -> list[tuple]:
        """Numbers that count little and are long as text."""
        return [(10**4000,) for _ in range(int(rest))]

    def _rows(self, rest: str, parameters: Mapping) -> Iterator[tuple]:
        return ((number,) for number in range(int(rest)))

    def _die(self, rest: str, parameters: Mapping) -> None:
        os._exit(int(rest))

    def _abort(self, rest: str, parameters: Mapping) -> None:
        os.abort()

    def _crash(self, rest: str, parameters: Mapping) -> None:
        raise ZeroDivisionError

    def _fail(self, rest: str, parameters: Mapping) -> None:
        raise QueryFailed(rest)

    def _reject(self, rest: str, parameters: Mapping) -> None:
        raise QueryRejected("not this", rest)

    def _chatter(self, rest: str, parameters: Mapping) -> list[tuple]:
        os.write(1, b"noise that must not get among the frames")
        return [(rest,)]

    def _environment(self, rest: str, parameters: Mapping) -> list[tuple]:
        return [(dict(os.environ), os.getcwd())]

    def _write(self, rest: str, parameters: Mapping) -> list[tuple]:
        try:
            with open(rest, "wb", buffering=0) as file:
                return [(file.write(b"loot"),)]
        except OSError as error:
            raise QueryFailed(str(error)) from error

    def _call(self, rest: str, parameters: Mapping) -> list[tuple]:
        try:
            socket.create_connection(("127.0.0.1", int(rest)), timeout=2).close()
        except OSError as error:
            raise QueryFailed(str(error)) from error
        return [("connected",)]

    def _odd(self, rest: str, parameters: Mapping) -> list[tuple]:
        return [("a\udcffb",)]
