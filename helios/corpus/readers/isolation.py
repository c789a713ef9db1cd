"""Reading a file in a process of its own (`helios.corpus.readers.worker`), for parsers that a file can lead astray.

What ends that process rejects the rest of its file, and nothing else.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import helios
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.source import SourceFile
from helios.errors import RecordError
from helios.types import Hyperlink, Passage, Table, TableKind

PASSED_ON = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "VIRTUAL_ENV")
ONE_THREAD = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
"""A memory pool for every thread would reserve much more than it uses."""


def read_isolated(format_name: str, source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Records of a file in its order, as the reader of that format gives them."""
    process = ReadingProcess.idle(source.budget.memory_mb)
    done = False
    try:
        header: Any = None
        rows: list[tuple[str, ...]] = []
        for item in process.items(format_name, source):
            match item:
                case ["row", cells]:
                    rows.append(tuple(cells))
                case ["passage", line, [record_id, title, text, url, metadata]]:
                    yield Parsed(Passage(record_id, title, text, url, metadata=_pairs(metadata)), line)
                case ["table", *header]:
                    rows = []
                case ["end", more]:
                    yield _table(header, rows, more=more)
                case ["reject", line, reason, record_id, record]:
                    path = Path(f"{source.path}{rejection.current.removeprefix(source.name)}")
                    rejection.reject(RecordError(path, line, reason, record_id=record_id), record)
                case ["begin", name, inner_format]:
                    rejection.begin(name, inner_format)
                case ["passed over", name, reason]:
                    rejection.pass_over(name, reason)
                case ["position", consumed]:
                    source.position.consumed = consumed
                case ["done", is_last]:
                    done = not is_last
    except EOFError:
        rejection.begin(source.name, format_name)
        rejection.reject(RecordError(source.path, None, process.ending(source), record_id=source.base_id))
    finally:
        if done:
            process.keep()
        else:
            process.end()


class ReadingProcess:
    """A process that reads one file at a time; when it is idle it is kept for the next."""

    _kept: dict[tuple[int, int], "ReadingProcess"] = {}

    def __init__(self, megabytes: int) -> None:
        self.megabytes = megabytes
        self._process = subprocess.Popen(
            [sys.executable, "-m", "helios.corpus.readers.worker", str(megabytes)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment(), cwd="/",
        )  # fmt: skip

    @classmethod
    def idle(cls, megabytes: int) -> "ReadingProcess":
        """One that is kept, if this very process started it, or a new one."""
        process = cls._kept.pop((os.getpid(), megabytes), None)
        if process is not None and process._process.poll() is None:
            return process
        return cls(megabytes)

    def items(self, format_name: str, source: SourceFile) -> Iterator[list[Any]]:
        """All that the process says of a file, up to `done`; EOFError where it ends before."""
        assert self._process.stdin is not None and self._process.stdout is not None
        request = {
            "format": format_name, "path": str(source.path.absolute()), "name": source.name,
            "budget": source.budget.model_dump(), "strict": source.mapping_is_strict, "size": source.size,
            "mapping": source.mapping and source.mapping.roles(),
        }  # fmt: skip
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise EOFError from None
        while True:
            reply = self._process.stdout.readline(self.megabytes << 20)
            if not reply.endswith(b"\n"):
                raise EOFError
            items = json.loads(reply.decode("utf-8", "surrogatepass"))
            yield from items
            if items and items[-1][0] == "done":
                return

    def ending(self, source: SourceFile) -> str:
        """Why the process ended within a file, for the reject."""
        try:
            code = self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        if code == -signal.SIGALRM:
            return f"took longer than the {source.budget.seconds:g} s that advanced.corpus.seconds allows"
        if code == -signal.SIGPROF:
            return (
                f"took more processor time than its {source.size:,} bytes may take (a tenth of advanced.corpus.seconds "
                "and a second for each 10 kB)"
            )
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return (
            f"the process that read it ended ({how}): the file is damaged, or needs more than the {self.megabytes} MB "
            "of memory that advanced.corpus.memory_mb allows"
        )

    def keep(self) -> None:
        """Keep the process for the next file; only one is."""
        other = self._kept.setdefault((os.getpid(), self.megabytes), self)
        if other is not self:
            self.end()
        atexit.unregister(_end_kept)
        atexit.register(_end_kept)

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def _end_kept() -> None:
    for (parent, _), process in list(ReadingProcess._kept.items()):
        if parent == os.getpid():
            process.end()


def _table(header: Any, rows: list[tuple[str, ...]], *, more: bool) -> Parsed:
    line, (table_id, title, section, intro, url, kind), names, links, metadata = header
    hyperlinks = tuple(Hyperlink(*link) for link in links)
    table = Table(
        table_id, title, tuple(names), tuple(rows), section, intro, url, TableKind(kind), hyperlinks,
        metadata=_pairs(metadata),
    )  # fmt: skip
    return Parsed(table, line, more)


def _pairs(metadata: list[list[Any]]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, value) for name, value in metadata)


def _environment() -> dict[str, str]:
    """Where this package is found, and no key or password."""
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    home = str(Path(helios.__file__).resolve().parents[1])
    paths = [home, *filter(os.path.isabs, environment.get("PYTHONPATH", "").split(os.pathsep))]
    return environment | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
