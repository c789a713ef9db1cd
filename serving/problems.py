"""Errors as clients see them: problem details (RFC 9457) with a stable code and what to do.

    {"type": "urn:helios:problem:busy", "title": "…", "status": 503, "code": "busy", "detail": "…", "todo": "…",
     "request_id": "…"}

Messages of errors that concern the server's own files stay in its log: a client gets their code alone.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from helios.errors import (
    HeliosError,
    QueryFailed,
    QueryRejected,
    QueryTimeout,
    SourceError,
    SourceUnavailable,
    WhereError,
)
from helios.terminal import printable

CODES: Mapping[str, tuple[int, str, str]] = {
    "invalid": (422, "The request is not as described", "Mend what `errors` lists; /openapi.json has every field."),
    "where_invalid": (400, "The filter cannot be used", "Mend `where`; docs/filters.md has the language."),
    "cursor_invalid": (400, "The cursor does not belong to this request", "Ask again without a cursor."),
    "json_invalid": (400, "The body is not JSON", "Send one JSON object as UTF-8."),
    "json_too_deep": (400, "The body is nested too deep", "Send the fields that /openapi.json describes."),
    "id_invalid": (400, "The id is not of this server", "Take ids from a search."),
    "query_rejected": (400, "The guard refused the query", "Only queries that read are run; docs/sources.md."),
    "unauthorized": (401, "A key is needed", "Send `Authorization: Bearer KEY`; `helios serve keys add` makes one."),
    "forbidden": (403, "The key may not do this", "Ask for a key with the scope that `detail` names."),
    "origin_refused": (403, "Scripts of this web site may not call the server", "Start it with --allow-origin."),
    "not_found": (404, "There is nothing here", "See /openapi.json for all addresses."),
    "index_not_found": (404, "No such index", "GET /v1/indexes lists those that you may ask."),
    "row_not_found": (404, "No such row", "Take table and row from a search of this index."),
    "passage_not_found": (404, "No such passage", "Take its id from a search of this index."),
    "source_not_found": (404, "No such source", "GET /v1/sources lists those that you may ask."),
    "task_not_found": (404, "No such task", "GET /v1/tasks lists those that the server remembers."),
    "alias_not_found": (404, "No such alias", "GET /v1/aliases lists those that you may ask."),
    "method_not_allowed": (405, "The address does not take this method", "See /openapi.json."),
    "body_slow": (408, "The body did not arrive in time", "Send it at once."),
    "task_ended": (409, "The task has ended", "GET /v1/tasks/{id} says how."),
    "name_taken": (409, "An index has this name", "Give the alias another name."),
    "backup_exists": (409, "There is a backup of this name", "Give it another name."),
    "index_locked": (409, "Another program is writing to the index", "Try again when it is done."),
    "snapshot_gone": (410, "The index has changed since the first page", "Ask again without a cursor."),
    "body_too_large": (413, "The body is too large", "Send less, or ask for a higher limit."),
    "media_type": (415, "The body is of another type", "Send `Content-Type: application/json`."),
    "host_refused": (421, "The server is not called this", "Start it with --allow-host NAME."),
    "documents_invalid": (422, "The documents cannot be taken", "Mend what `detail` says; nothing was changed."),
    "not_offered": (422, "The server was not started for this", "Start it with the option that `detail` names."),
    "query_failed": (422, "The source refused the query", "Mend the query; `detail` is what its engine says."),
    "too_many": (429, "The key's limit is reached", "Wait as long as `Retry-After` says."),
    "client_gone": (499, "The client closed the connection", "Ask again."),
    "internal": (500, "The server failed", "Give its operator the `request_id`."),
    "index_unusable": (500, "The index or its models cannot be used", "Give the operator the `request_id`."),
    "source_unavailable": (502, "A source cannot be reached", "Try again later, or tell the operator."),
    "busy": (503, "All places are taken", "Wait as long as `Retry-After` says."),
    "not_ready": (503, "The server is starting or leaving", "Try again shortly."),
    "deadline": (504, "The time was up before there was a result", "Give more `seconds`, or try again later."),
}
"""Status, title and what to do by code. A code's meaning never changes; new ones may come."""
MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """An error with a code; `detail` is for the client, `more` are further members of its document."""

    def __init__(self, code: str, detail: str = "", *, headers: Mapping[str, str] | None = None, **more: Any) -> None:
        self.code = code
        self.status = CODES[code][0]
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = more
        super().__init__(f"{code}: {detail}" if detail else code)

    def document(self, request_id: str) -> dict[str, Any]:
        """The members of the problem, as plain JSON data."""
        status, title, todo = CODES[self.code]
        found = {"type": f"urn:helios:problem:{self.code}", "title": title, "status": status, "code": self.code}
        if self.detail:
            found["detail"] = self.detail
        return found | {"todo": todo, "request_id": request_id} | self.more

    def response(self, request_id: str) -> Response:
        """As a reply."""
        headers = dict(self.headers)
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return Response(encoded(self.document(request_id)), self.status, headers, MEDIA_TYPE)


def encoded(document: object) -> bytes:
    """JSON as bytes: control characters and halves of characters are escaped, and NaN is refused."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return printable(text).encode("utf-8", "backslashreplace")


def problem_of(error: Exception) -> Problem:
    """What a client is told of an error; those of the server itself say nothing but their code."""
    match error:
        case Problem():
            return error
        case WhereError():
            return Problem("where_invalid", str(error))
        case QueryRejected():
            return Problem("query_rejected", str(error))
        case QueryTimeout():
            return Problem("deadline", str(error))
        case QueryFailed():
            return Problem("query_failed", str(error))
        case SourceUnavailable() | SourceError():
            return Problem("source_unavailable")
        case HeliosError():
            return Problem("index_unusable")
        case RequestValidationError():
            return invalid(error.errors())
        case HTTPException():
            return Problem(_CODE_OF_STATUS.get(error.status_code, "invalid"))
    return Problem("internal")


_CODE_OF_STATUS = {400: "json_invalid", 404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}


def request_id_of(request: Request) -> str:
    """The id that the gate gave the request."""
    return str(request.scope.get("state", {}).get("request_id", ""))


def invalid(found: Sequence[Any]) -> Problem:
    """Which fields are wrong and why, of pydantic's errors; what was sent is not repeated."""
    if any(one["type"] == "json_invalid" for one in found):
        return Problem("json_invalid")
    errors = [
        {"field": ".".join(str(part)[:100] for part in one["loc"][1:]) or "body", "problem": one["msg"]}
        for one in found[:20]
    ]
    return Problem("invalid", "; ".join(f"{one['field']}: {one['problem']}" for one in errors[:3]), errors=errors)
