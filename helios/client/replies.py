"""What the server replies, as types: plain dictionaries, field by field those of /openapi.json."""

from typing import Any, Literal, TypedDict

Json = dict[str, Any]


class Coverage(TypedDict):
    """What was searched, and what there was no time for."""

    generation: int
    rows: int
    passages: int
    filtered: bool
    complete: bool
    left_out: list[str]


class Reply(TypedDict):
    """What all replies to questions have in common; `evidence` is in the published schema (docs/python.md)."""

    request_id: str
    index: str
    evidence: Json
    coverage: Coverage
    degraded: bool
    timings_ms: dict[str, float]


class SearchReply(Reply):
    """A page of ranked edges."""

    next_cursor: str | None


class Citation(TypedDict):
    """Words of a cell, a sentence or a title, and where they stand."""

    text: str
    segment: str | None
    column: int | None
    passage_id: str | None
    sentence: int | None
    start: int
    end: int
    source: str | None
    place: str
    file: str


class Answer(TypedDict):
    """A short answer, or an abstention with its reason."""

    text: str
    abstained: bool
    reason: str
    confidence: float
    support: Literal["checked", "cited", "unsupported", "abstained", "unchecked"]
    citations: list[Citation]
    alternatives: list[list[Any]]
    explanation: str
    notes: list[str]
    degraded: bool


class AskReply(Reply):
    """An answer with its evidence."""

    answer: Answer
    calls: int
    tokens: int


class Problem(TypedDict, total=False):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    todo: str
    request_id: str
    errors: list[dict[str, str]]


class BatchReply(TypedDict):
    """One result a question, in their order: a reply, or a problem."""

    request_id: str
    results: list[Any]


class Index(TypedDict):
    """What an index holds."""

    name: str
    generation: int
    created: str
    tables: int
    rows: int
    passages: int
    edges: int
    deleted: int
    models: dict[str, str]


class RowReply(TypedDict):
    """A row, its table and the texts that it names."""

    index: str
    generation: int
    row: Json
    table: Json
    passages: list[Json]
    left_out: int


class PassageReply(TypedDict):
    """A text and the rows that name it."""

    index: str
    generation: int
    passage: Json
    rows: list[Json]
    left_out: int


class Task(TypedDict):
    """A change of an index, from its acceptance to its end."""

    id: str
    operation: str
    index: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    stage: str | None
    created: str
    started: str | None
    ended: str | None
    result: Json | None
    problem: Problem | None


class Snapshots(TypedDict):
    """The current snapshot of an index, its parts, older ones that are still there, and backups."""

    index: str
    generation: int
    created: str
    code_version: str
    counts: dict[str, int]
    unfinished_bytes: int
    pieces: list[Json]
    retired: list[Json]
    backups: list[str]


class Alias(TypedDict):
    """An alias and what it names."""

    alias: str
    index: str | None
    before: str | None
    kept: bool


class Source(TypedDict):
    """A registered source."""

    name: str
    kind: str
    language: str


class SourceSchema(Source):
    """A source with what it holds, in words."""

    schema: str


class SourcesCoverage(TypedDict):
    """Which sources were asked, and those that there was no time for."""

    sources: int
    asked: list[str]
    complete: bool
    left_out: list[str]


class SourcesReply(TypedDict):
    """What the sources answered."""

    request_id: str
    question: str
    answer: Json | None
    parts: list[Json]
    sentence: str
    declined: bool
    conflicts: list[list[Json]]
    evidence: list[Json]
    left_out: list[Json]
    selection: Json
    sources: list[Json]
    notes: list[str]
    degraded: bool
    calls: int
    tokens: int
    timings_ms: dict[str, float]
    coverage: SourcesCoverage


class QueryReply(TypedDict):
    """Columns and rows of a query; `truncated` names the cap that ended them."""

    request_id: str
    source: str
    language: str
    query: str
    columns: list[str]
    rows: list[list[Any]]
    truncated: str | None
    milliseconds: float


class CheckReply(TypedDict):
    """That a source can be used."""

    request_id: str
    name: str
    usable: bool
