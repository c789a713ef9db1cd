"""What the HTTP interface takes and gives, for checking requests and for /openapi.json."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema, model_validator

MOST_K = 1000
MOST_SHOWN = 200
SAMPLE = "Which capitals lie on the European river that flows into the Black Sea?"

Cell = str | int | float | bool | None  # read as cells of JSON files are: no value is an empty cell
Question = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
# What the published schema of evidence has: `serving.openapi` puts references to it here.
EvidenceJson = Annotated[dict[str, Any], WithJsonSchema({"published": "Evidence"})]
SegmentJson = Annotated[dict[str, Any], WithJsonSchema({"published": "Evidence.segment"})]
PassageJson = Annotated[dict[str, Any], WithJsonSchema({"published": "Evidence.passage"})]
LinkJson = Annotated[dict[str, Any], WithJsonSchema({"published": "Evidence.link"})]


class Body(BaseModel):
    """A request: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class About(Body):
    """What a question is asked of, and how long it may take."""

    index: str | None = Field(default=None, max_length=200, description="The only one that you may ask, by default.")
    k: int = Field(default=50, ge=1, le=MOST_K, description="Edges that are ranked.")
    where: str | None = Field(
        default=None, max_length=10_000, description="A filter, as in docs/filters.md.", examples=["year >= 1990"]
    )
    seconds: float | None = Field(
        default=None, gt=0, le=3600,
        description="Deadline, waiting included. What there is no time for is left out, and `coverage` says so.",
    )  # fmt: skip


class SearchRequest(About):
    """A search."""

    question: Question = Field(examples=[SAMPLE])
    explain: bool = Field(default=False, description="Also which word matched which.")
    limit: int = Field(default=10, ge=1, le=MOST_SHOWN, description="Edges of one page.")
    cursor: str | None = Field(default=None, max_length=200, description="`next_cursor` of the page before.")

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"question": SAMPLE, "limit": 3}]})


class AskRequest(About):
    """A question."""

    question: Question = Field(examples=[SAMPLE])
    limit: int = Field(default=10, ge=1, le=MOST_SHOWN, description="Edges that come with the answer.")
    stream: bool = Field(
        default=False, description="Reply with server-sent events; as for `Accept: text/event-stream`."
    )

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"question": "Which is the longest river of Europe?"}]}
    )


class BatchRequest(About):
    """Many questions; single ones of other clients go before them."""

    questions: list[Question] = Field(min_length=1, max_length=1000, examples=[[SAMPLE, "Who designed Pascal?"]])
    kind: Literal["search", "ask"] = "search"
    limit: int = Field(default=10, ge=1, le=MOST_SHOWN)

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"questions": [SAMPLE, "Who designed Pascal?"], "limit": 3}]}
    )


class Coverage(BaseModel):
    """What was searched."""

    generation: int = Field(description="The snapshot of the index.")
    rows: int
    passages: int
    filtered: bool
    complete: bool = Field(description="Whether no stage had to leave something out.")
    left_out: list[str]


class Reply(BaseModel):
    """What all replies to questions have in common."""

    request_id: str
    index: str
    evidence: EvidenceJson
    coverage: Coverage
    degraded: bool = Field(description="Whether a language model failed, so that a local stage stands in its place.")
    timings_ms: dict[str, float] = Field(description="By stage; `queue` is waiting, `total` all of it.")


class SearchReply(Reply):
    """A page of ranked edges."""

    next_cursor: str | None = Field(description="For the next page; null on the last one.")


class Citation(BaseModel):
    """Words of a cell, a sentence or a title, and where they stand."""

    text: str
    segment: str | None
    column: int | None
    passage_id: str | None
    sentence: int | None
    start: int
    end: int
    source: str | None = Field(description="The whole cell, sentence or title.")
    place: str = Field(description="In words.")
    file: str = Field(description="The file that it is from, relative to the corpus; empty for what came without one.")


class AnswerJson(BaseModel):
    """A short answer, or an abstention with its reason."""

    text: str
    abstained: bool
    reason: str
    confidence: float
    support: Literal["checked", "cited", "unsupported", "abstained", "unchecked"]
    citations: list[Citation]
    alternatives: list[tuple[str, float]]
    explanation: str
    notes: list[str]
    degraded: bool


class AskReply(Reply):
    """An answer with its evidence."""

    answer: AnswerJson
    calls: int
    tokens: int


class ProblemDocument(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str
    detail: str | None = None
    todo: str
    request_id: str


class BatchReply(BaseModel):
    """One result a question, in their order: a reply, or a problem."""

    request_id: str
    results: list[SearchReply | AskReply | ProblemDocument]


class IndexReply(BaseModel):
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


class IndexesReply(BaseModel):
    """The indexes within reach."""

    indexes: list[IndexReply]


class TableJson(BaseModel):
    """The table that a row is of."""

    id: str
    title: str
    section: str
    url: str
    source: str
    rows: int
    metadata: dict[str, Any]


class LinkedPassage(BaseModel):
    """A text that a row names."""

    links: list[LinkJson]
    passage: PassageJson


class LinkedRow(BaseModel):
    """A row that names a text."""

    links: list[LinkJson]
    row: SegmentJson


class RowReply(BaseModel):
    """A row and its star."""

    index: str
    generation: int
    row: SegmentJson
    table: TableJson
    passages: list[LinkedPassage]
    left_out: int = Field(description="Linked texts beyond those that are shown.")


class PassageReply(BaseModel):
    """A text and the rows that name it."""

    index: str
    generation: int
    passage: PassageJson
    rows: list[LinkedRow]
    left_out: int = Field(description="Linked rows beyond those that are shown.")


class TableRecord(Body):
    """A table as in HELIOS's JSON lines."""

    id: str = Field(min_length=1, max_length=2000)
    header: list[Cell] = Field(max_length=1000)
    rows: list[list[Cell]] = Field(max_length=100_000)
    title: str = Field(default="", max_length=10_000)
    section_title: str = Field(default="", max_length=10_000)
    section_text: str = ""
    intro: str = ""
    url: str = Field(default="", max_length=10_000)
    kind: Literal["table", "infobox"] = "table"
    links: list[tuple[int, int, str]] = Field(default=[], description="Known links: row, column, passage id.")
    metadata: dict[str, Any] = Field(default={}, description="Fields to filter by.")


class PassageRecord(Body):
    """A text as in HELIOS's JSON lines."""

    id: str = Field(min_length=1, max_length=2000)
    text: str = Field(min_length=1)
    title: str = Field(default="", max_length=10_000)
    url: str = Field(default="", max_length=10_000)
    metadata: dict[str, Any] = Field(default={}, description="Fields to filter by.")


class AddRequest(Body):
    """Tables and passages, as in HELIOS's JSON lines (docs/corpus-formats.md)."""

    tables: list[TableRecord] = Field(default=[], max_length=10_000)
    passages: list[PassageRecord] = Field(default=[], max_length=10_000)

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "passages": [{"id": "garabit", "title": "Garabit Viaduct", "text": "It crosses the Truyère."}],
                    "tables": [
                        {"id": "bridges", "title": "Bridges", "header": ["Bridge"], "rows": [["Garabit Viaduct"]]}
                    ],
                }
            ]
        },
    )

    @model_validator(mode="after")
    def _something(self) -> "AddRequest":
        if not self.tables and not self.passages:
            raise ValueError("there is no table and no passage to add")
        return self


class TaskJson(BaseModel):
    """A change of an index, from its acceptance to its end."""

    id: str
    operation: Literal["add", "update", "delete", "compact", "sync", "backup", "fsck"]
    index: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    stage: str | None = Field(description="What it does right now.")
    created: str
    started: str | None
    ended: str | None
    result: dict[str, Any] | None = Field(
        description="What it did, as the command prints it with --json; `served_generation` is the snapshot that "
        "questions are answered from now."
    )
    problem: ProblemDocument | None = Field(description="Why it failed.")


class TasksReply(BaseModel):
    """Tasks, newest first."""

    tasks: list[TaskJson]


class PieceJson(BaseModel):
    """A folder of an index."""

    folder: str
    bytes: int
    readers: int = Field(description="Processes that read it.")


class SnapshotsReply(BaseModel):
    """The current snapshot of an index."""

    index: str
    generation: int
    created: str
    code_version: str
    counts: dict[str, int]
    unfinished_bytes: int
    pieces: list[PieceJson]
    retired: list[PieceJson] = Field(description="Parts of older snapshots that are still on the disk.")
    backups: list[str] = Field(description="Names of backups that this server made.")


class AliasReply(BaseModel):
    """An alias and what it names."""

    alias: str
    index: str | None
    before: str | None = Field(description="What it named before this request.")
    kept: bool = Field(description="Whether it outlives the server (--aliases).")


class AliasesReply(BaseModel):
    """The aliases within reach."""

    aliases: list[AliasReply]


class SourceJson(BaseModel):
    """A registered source; nothing about where it is."""

    name: str
    kind: str
    language: str


class SourcesReply(BaseModel):
    """The sources within reach."""

    sources: list[SourceJson]


class SourceSchemaJson(SourceJson):
    """A source with what it holds."""

    schema_: str = Field(alias="schema", description="In words, cut to 1,500 tokens.")


class SourcesCoverage(BaseModel):
    """Which sources were asked."""

    sources: int = Field(description="Sources within reach.")
    asked: list[str]
    complete: bool = Field(description="Whether each that was asked replied in time.")
    left_out: list[str]


class AskSourcesReply(BaseModel):
    """An answer from sources, with every query and what became of it."""

    request_id: str
    question: str
    answer: dict[str, Any] | None = Field(description="Text, source, query and rows.")
    parts: list[dict[str, Any]]
    sentence: str
    declined: bool = Field(description="Whether a language model found that no result answers.")
    conflicts: list[list[dict[str, Any]]]
    evidence: list[dict[str, Any]]
    left_out: list[dict[str, Any]]
    selection: dict[str, Any]
    sources: list[dict[str, Any]] = Field(description="What each source gave, query by query.")
    notes: list[str]
    degraded: bool
    calls: int
    tokens: int
    timings_ms: dict[str, float]
    coverage: SourcesCoverage


class QueryReply(BaseModel):
    """Rows of a query."""

    request_id: str
    source: str
    language: str
    query: str
    columns: list[str]
    rows: list[list[Any]]
    truncated: str | None = Field(description="The cap that ended the rows.")
    milliseconds: float
    rewritten: bool = Field(default=False, description="Whether rows or columns were held back by a rule.")


class CheckReply(BaseModel):
    """A source that can be used."""

    request_id: str
    name: str
    usable: bool


class ModelJson(BaseModel):
    """An index as a model of OpenAI's shape."""

    id: str = Field(examples=["helios/demo-index"])
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsReply(BaseModel):
    """The indexes as models."""

    object: Literal["list"]
    data: list[ModelJson]


class ChatReply(BaseModel):
    """A chat completion of OpenAI's shape; citations are annotations of the message."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: dict[str, Any]


class ResponseReply(BaseModel):
    """A response of OpenAI's shape; nothing of it is kept."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["completed"]
    model: str
    output: list[dict[str, Any]]
    usage: dict[str, Any]
    store: Literal[False]


class AliveReply(BaseModel):
    """The process lives."""

    alive: Literal[True]


class ReadyReply(BaseModel):
    """Questions are taken."""

    ready: Literal[True]
