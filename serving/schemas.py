"""What the HTTP interface takes and gives, for checking requests and for /openapi.json."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema

MOST_K = 1000
MOST_SHOWN = 200
SAMPLE = "Which capitals lie on the European river that flows into the Black Sea?"

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
