"""The process that reads files whose parsers are not to be trusted: its memory and its time are limited.

    python -m helios.corpus.readers.worker MEGABYTES          lines of JSON on stdin and stdout

A request names a file and its format. The replies are lists of items: passages, tables row by row, rejects, in the
order of the file. The process writes no file and dumps no core, and ends with the process that started it.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from helios.config import CorpusBudget
from helios.corpus.budget import RecordShapeError, check_expansion
from helios.corpus.mapping import FieldMap
from helios.corpus.readers.registry import FORMATS, MAPPED
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.shape import cut
from helios.corpus.source import SourceFile
from helios.errors import CorpusError, RecordError
from helios.types import Table

REPLY_SIZE = 1 << 20
"""Characters of a reply, about; a longer text is alone in its own."""
LEAST_SHARE, SLOWEST = 0.1, 10_000
"""Share of a file's seconds that any may keep the processor busy, and bytes for which it may another second."""
Item = list[Any]


def main() -> None:
    """Read files until stdin ends, or until memory that a file took does not come back."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)  # what a parser prints must not get among the replies
    megabytes = int(sys.argv[1])
    before = _virtual_bytes()
    _limit(before + (megabytes << 20))
    for line in sys.stdin.buffer:
        request = json.loads(line)
        budget = CorpusBudget(**request["budget"])
        for items in _batches(_items(request, budget), budget.seconds, processor_seconds(request["size"], budget)):
            _send(replies, items)
        is_last = _virtual_bytes() > before + (megabytes << 18)
        _send(replies, [["done", is_last]])
        if is_last:
            return


def _items(request: dict[str, Any], budget: CorpusBudget) -> Iterator[tuple[int, Item]]:
    """(size in characters, item) of all that a file holds; a last reject says why there is no more, if there is.

    The boundary of the process: whatever a parser raises becomes the reason of a reject.
    """
    rejected: list[tuple[int, Item]] = []
    rejection = _Collecting(rejected)
    size = 0
    try:
        source = SourceFile.open(
            Path(request["path"]), request["name"], budget,
            mapping=FieldMap(**request["mapping"]) if request["mapping"] else None, strict=request["strict"],
        )  # fmt: skip
        known = next(known for known in (MAPPED, *FORMATS) if known.name == request["format"])
        for parsed in known.read(source, rejection):
            yield from rejected
            rejected.clear()
            for length, item in _record_items(parsed):
                size += length
                check_expansion(budget, source.size, size, "text of the records")
                if item[0] == "end":
                    yield 0, ["position", source.position.consumed]
                yield length, item
            yield 0, ["position", source.position.consumed]
    except MemoryError:
        reason = f"needs more than the {budget.memory_mb} MB of memory that advanced.corpus.memory_mb allows"
        rejected = [_whole(request), (0, ["reject", None, reason, None, ""])]
    except (RecordShapeError, CorpusError) as error:
        rejected += (_whole(request), (0, ["reject", None, str(error), None, ""]))
    except Exception as error:  # noqa: BLE001
        why = f"{type(error).__name__}: {str(error)[:200]}"  # lxml says no more where memory ends
        reason = f"the file is damaged, or needs more memory than advanced.corpus.memory_mb allows ({why})"
        rejected += (_whole(request), (0, ["reject", None, reason, None, ""]))
    yield from rejected


def _whole(request: dict[str, Any]) -> tuple[int, Item]:
    """What follows is of the file itself, and not of one within it."""
    return 0, ["begin", request["name"], request["format"]]


class _Collecting(Rejection):
    """Keeps rejects in their place among the records; what they mean is decided by who asked for the file."""

    def __init__(self, items: list[tuple[int, Item]]) -> None:
        super().__init__()
        self._items = items

    def begin(self, name: str, format_name: str, *, prepared: bool = False) -> None:
        self._items.append((0, ["begin", name, format_name]))

    def pass_over(self, name: str, reason: str) -> None:
        self._items.append((0, ["passed over", name, reason]))

    def reject(self, error: RecordError, record: str = "") -> None:
        self._items.append((len(record), ["reject", error.line, error.reason, error.record_id, record]))


def _record_items(parsed: Parsed) -> Iterator[tuple[int, Item]]:
    record = parsed.record
    if not isinstance(record, Table):
        fields = [record.passage_id, record.title, record.text, record.url, record.metadata]
        yield sum(map(len, fields[:4])), ["passage", parsed.line, fields]
        return
    for table, more in cut(record):
        texts = [table.table_id, table.title, table.section, table.intro, table.url, table.kind.value]
        links = [[link.row, link.column, link.passage_id] for link in table.hyperlinks]
        size = sum(map(len, (*texts, *table.header)))
        yield size, ["table", parsed.line, texts, table.header, links, table.metadata]
        for row in table.rows:
            yield sum(map(len, row)), ["row", row]
        yield 0, ["end", more or parsed.more]


def processor_seconds(size: int, budget: CorpusBudget) -> float:
    """Processor time that a file of so many bytes may take until its next reply: minutes are for large ones."""
    return min(budget.seconds, LEAST_SHARE * budget.seconds + size / SLOWEST)


def _batches(items: Iterator[tuple[int, Item]], seconds: float, processor: float) -> Iterator[list[Item]]:
    """Items in replies; the process ends itself where the next one takes longer, by the clock or of the processor."""
    batch: list[Item] = []
    size = 0
    _set_timers(seconds, processor)
    for length, item in items:
        batch.append(item)
        size += length + 16 * len(item)
        if size > REPLY_SIZE:
            _set_timers(0, 0)  # whoever asked takes its own time
            yield batch
            batch, size = [], 0
            _set_timers(seconds, processor)
    _set_timers(0, 0)
    yield batch


def _set_timers(seconds: float, processor: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_PROF, processor)


def _send(replies: BinaryIO, items: list[Item]) -> None:
    replies.write(json.dumps(items, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
    replies.flush()


def _limit(address_space: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))


def _virtual_bytes() -> int:
    try:
        pages = Path("/proc/self/statm").read_text().split()[0]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()


if __name__ == "__main__":
    main()
