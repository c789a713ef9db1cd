"""The process in which a server changes its indexes: questions go on beside it, and it can be killed at any moment.

    python -m serving.writer          JSON lines on stdin and stdout

First line: settings; then one line an operation, for which lines `{"stage": …}` come back and at last one with `done`
or `failed`. A change is one commit, so a writer that is killed leaves the index as it was before or after it. It ends
when its standard input does.
"""

import asyncio
import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TextIO

import serving
from helios.errors import HeliosError
from serving.problems import Problem

GROUP = "helios.index_operations"
NICE = 5
"""How much less a writer is scheduled than questions; of `nice`."""
MOST_LINE = 64 << 20
PASSED_ON = (
    "PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "HOME", "TMPDIR",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "OMP_NUM_THREADS", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE",
)  # fmt: skip
"""What a writer sees of the environment: no keys, no passwords."""
Json = dict[str, Any]


class OperationFailed(Exception):
    """An operation ended with an error that its operator can mend; `kind` is the error's class."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message)


class Writer:
    """Runs operations in a process, one at a time; it belongs to the event loop."""

    def __init__(self, *, config: Path | None, overrides: tuple[str, ...], idle_seconds: float = 300.0) -> None:
        self._settings = {"config": None if config is None else str(config.resolve()), "overrides": list(overrides)}
        self._idle_seconds = idle_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._killed: list[asyncio.subprocess.Process] = []

    async def run(self, operation: str, index: Path, arguments: Json, told: Callable[[str], None]) -> Json:
        """What the operation did; OperationFailed. Cancelling the call kills the process."""
        if self._idle is not None:
            self._idle.cancel()
        request = {"operation": operation, "index": str(index.resolve()), "arguments": arguments}
        finished = False
        try:
            process = await self._started()
            _send(process, await asyncio.to_thread(json.dumps, request))
            while True:
                line = await _line(process)
                if "stage" not in line:
                    finished = True
                    break
                told(str(line["stage"]))
        except (BrokenPipeError, ConnectionResetError, ValueError):
            raise OperationFailed("Crashed", "the process that changes indexes ended in the middle") from None
        finally:
            if not finished:
                self.kill()
            else:
                self._idle = asyncio.get_running_loop().call_later(self._idle_seconds, self.kill)
        if "failed" in line:
            raise OperationFailed(line["kind"], line["failed"])
        done: Json = line["done"]
        return done

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._killed = [process for process in self._killed if process.returncode is None]
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            self._killed.append(self._process)
        self._process = None

    async def close(self) -> None:
        """End the process and wait for it."""
        if self._idle is not None:
            self._idle.cancel()
        self.kill()
        for process in self._killed:
            await process.wait()

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "serving.writer", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL, cwd="/", env=_environment(), limit=MOST_LINE,
            )  # fmt: skip
            _send(self._process, json.dumps(self._settings))
        return self._process


def can_write() -> bool:
    """Whether this installation has a package that changes indexes."""
    return any(True for _ in entry_points(group=GROUP))


def main() -> None:
    """Run operations until stdin ends."""
    os.nice(NICE)
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)  # what a library prints must not get among the replies
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(os.fdopen(os.dup(0), encoding="utf-8"), requests), daemon=True).start()
    (point,) = list(entry_points(group=GROUP))[:1]
    settings = json.loads(requests.get())
    config = None if settings["config"] is None else Path(settings["config"])
    operations = point.load()(
        config=config, overrides=settings["overrides"], told=lambda stage: _tell(replies, {"stage": stage})
    )
    while True:
        _tell(replies, _reply(operations, json.loads(requests.get())))


def _reply(operations: Any, request: Mapping[str, Any]) -> Json:
    try:
        return {"done": operations.run(request["operation"], Path(request["index"]), request["arguments"])}
    except HeliosError as error:
        names = [kind.__name__ for kind in type(error).__mro__]
        kind = next((name for name in names if name in FAILURES), "HeliosError")
        return {"failed": str(error), "kind": kind}
    except Exception as error:  # noqa: BLE001 - the last place where an error becomes a reply; the server logs it
        return {"failed": f"{type(error).__name__}: {error}", "kind": "Crashed"}


FAILURES = {
    "CorpusError": "documents_invalid", "WhereError": "where_invalid", "IndexLockedError": "index_locked",
    "HeliosError": "index_unusable", "Crashed": "internal",
}  # fmt: skip
"""The code of a problem by the class of the error."""


def problem_of_failure(error: OperationFailed, hidden: Mapping[str, str]) -> Problem:
    """What a client is told of it; paths of the server (`hidden`) are replaced, and its own failures say nothing."""
    code = FAILURES.get(error.kind, "internal")
    if code in ("index_unusable", "internal", "index_locked"):
        return Problem(code)
    detail = str(error)
    for path, name in hidden.items():
        detail = detail.replace(path, name)
    return Problem(code, detail)


def _read(stream: TextIO, requests: "queue.SimpleQueue[str]") -> None:
    for line in stream:
        requests.put(line)
    os._exit(0)  # nobody asks any more: the server has ended


def _tell(replies: TextIO, document: Json) -> None:
    replies.write(json.dumps(document, default=str) + "\n")
    replies.flush()


def _send(process: asyncio.subprocess.Process, line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line.encode() + b"\n")


async def _line(process: asyncio.subprocess.Process) -> Json:
    """The next reply; BrokenPipeError where the process has ended."""
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line.endswith(b"\n"):
        raise BrokenPipeError
    found: Json = await asyncio.to_thread(json.loads, line)
    return found


def _environment() -> dict[str, str]:
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    home = str(Path(serving.__file__).resolve().parents[1])
    paths = [home, *filter(os.path.isabs, environment.get("PYTHONPATH", "").split(os.pathsep))]
    return environment | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}


if __name__ == "__main__":
    main()
