"""All sources in one compact text, the same for every question, and what a question's phrases hit in them.

    text = catalogue(descriptors, room=43_000)          one line a table, class or label, with all its names
    found = whole_hits(question, sources)               {source: ["'Ole Group' is stored in customer.name", ...]}

A server that caches prefixes reads the catalogue once. Where it does not fit, small sources stay whole, and of large
ones names are left out at the ends of their longest lines; how many is said.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from functools import partial
from time import monotonic

from helios.errors import SourceError
from helios.executors.base import Language
from helios.llm.quoting import clip
from helios.routing.keyword import named_values
from helios.routing.stored import WHOLE
from helios.sources.base import Source
from helios.sources.deadline import Background
from helios.sources.descriptor import (
    CorpusSchema,
    Descriptor,
    GraphSchema,
    RdfSchema,
    RdfTerm,
    RelationalSchema,
    TableSchema,
)
from helios.sources.linking import local_name

DESCRIPTION_BYTES = 400
TITLES = 5
LEAST_LINE = 12
"""Characters of names that a line keeps."""
DESCRIBE_SECONDS = 60.0
"""How long descriptors are waited for, all together; one that was read before is there at once."""
HIT_SECONDS = 10.0
HITS = 8
"""Values of one source that are shown."""
HIT_BYTES = 200


@dataclass(frozen=True, slots=True)
class Line:
    """A table, a class or a label, and the names in it."""

    head: str
    names: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Characters, with the marks between the names."""
        return len(self.head) + 2 + sum(len(name) + 2 for name in self.names)

    def written(self, room: int) -> str:
        """The line in about so many characters; names that do not fit are counted."""
        left = max(room - len(self.head) - 2, LEAST_LINE)
        shown: list[str] = []
        for name in self.names:
            left -= len(name) + 2
            if left < 0 and shown:
                break
            shown.append(" ".join(name.split()))
        more = len(self.names) - len(shown)
        names = ", ".join([*shown, *([f"and {more} more"] if more else [])])
        head = " ".join(self.head.split())
        return f"{head}: {names}" if names else head


def catalogue(descriptors: Sequence[Descriptor], *, room: int) -> str:
    """All sources in about `room` characters."""
    sources = [[Line(_title(descriptor)), *lines_of(descriptor)] for descriptor in descriptors]
    rooms = shares([sum(line.size + 1 for line in lines) for lines in sources], room)
    return "\n\n".join(_fitted(lines, size) for lines, size in zip(sources, rooms, strict=True))


def described(sources: Sequence[Source]) -> tuple[list[Descriptor], list[str]]:
    """The descriptors of all sources that have one in time, in their order, and notes on the others."""
    background = Background(max(1, len(sources)), name="describe")
    until = monotonic() + DESCRIBE_SECONDS
    futures = [(source, background.submit(source.descriptor)) for source in sources]
    found, notes = [], []
    for source, future in futures:
        try:
            found.append(future.result(max(0.0, until - monotonic())))
        except FutureTimeout:
            notes.append(f"{source.name}: not considered, it was not described within {DESCRIBE_SECONDS:g} s")
        except SourceError as error:
            notes.append(f"{source.name}: not considered ({error})")
    return found, notes


def whole_hits(question: str, sources: Sequence[Source]) -> dict[str, list[str]]:
    """Values that the question names as a whole, by source; sources that are late or fail have none."""
    structured = [source for source in sources if source.language is not Language.TEXT]
    background = Background(max(1, len(structured)), name="hits")
    until = monotonic() + HIT_SECONDS
    futures = [
        (source, background.submit(partial(named_values, question, source, limit=HITS))) for source in structured
    ]
    found: dict[str, list[str]] = {}
    for source, future in futures:
        try:
            hits = future.result(max(0.0, until - monotonic()))
        except (FutureTimeout, SourceError):
            continue
        whole = [hit for hit in hits if hit.score >= WHOLE]
        if whole:
            found[source.name] = [clip(f"{hit.value!r} is in {_place(hit.place)}", HIT_BYTES) for hit in whole]
    return found


def lines_of(descriptor: Descriptor) -> Iterator[Line]:
    """The lines of a source."""
    match descriptor.schema:
        case RelationalSchema(tables=tables):
            for table in tables:
                yield Line(table.name, tuple(_columns(table)))
        case RdfSchema(classes=classes, predicates=predicates):
            if classes:
                yield Line("classes", tuple(map(_term, classes)))
            yield Line("predicates", tuple(map(_term, predicates)))
        case GraphSchema(labels=labels, relationships=relationships):
            for label in labels:
                yield Line(f"({label.name})", tuple(column.name for column in label.properties))
            for kind in relationships:
                names = tuple(column.name for column in kind.properties)
                yield Line(f"({kind.start})-[{kind.name}]->({kind.end})", names)
        case CorpusSchema() as corpus:
            yield Line(f"{corpus.document_count:,} documents", (corpus.style,) if corpus.style else ())
            if corpus.topics:
                yield Line("topics", corpus.topics)
            if corpus.titles:
                yield Line("titles such as", corpus.titles[:TITLES])


def shares(needs: Sequence[int], room: int) -> list[int]:
    """What each of several gets of a room: all that it needs where that is no more than its share, else the share."""
    given = [0] * len(needs)
    waiting = sorted(range(len(needs)), key=lambda i: needs[i])
    for place, i in enumerate(waiting):
        given[i] = min(needs[i], max(0, room) // (len(waiting) - place))
        room -= given[i]
    return given


def _fitted(lines: Sequence[Line], room: int) -> str:
    rooms = shares([line.size + 1 for line in lines], room)
    shown: list[str] = []
    used = 0
    for number, (line, size) in enumerate(zip(lines, rooms, strict=True)):
        text = line.written(size)
        used += len(text) + 1
        if used > room and number > 1 and size < len(line.head):  # not even the names of all tables fit
            shown.append(f"and {len(lines) - number} more")
            break
        shown.append(text)
    return "\n".join(shown)


def _title(descriptor: Descriptor) -> str:
    about = f": {clip(descriptor.description, DESCRIPTION_BYTES)}" if descriptor.description else ""
    return f"## {descriptor.source} ({descriptor.kind}, asked in {descriptor.language}){about}"


def _columns(table: TableSchema) -> Iterator[str]:
    referred = {name: key.table for key in table.foreign_keys if len(key.columns) == 1 for name in key.columns}
    for column in table.columns:
        target = referred.get(column.name)
        yield f"{column.name} -> {target}" if target else column.name


def _term(term: RdfTerm) -> str:
    """A label, and the name in the IRI where that is another word, as `occupation (P106)`."""
    local = local_name(term.iri)
    same = not term.label or "".join(term.label.split()).casefold() == local.casefold()
    return local if same else f"{term.label} ({local})"


def _place(place: Sequence[str]) -> str:
    return ".".join(local_name(part) if ":" in part else part for part in place)
