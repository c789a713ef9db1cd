"""What every request passes first: its id, host, origin, body and key; and what is counted and logged of it after.

Plain ASGI, so that streams pass through untouched. A body is read here, within its limits of bytes, seconds and depth,
before anything else sees it: a client that sends half of one holds nobody up.
"""

import asyncio
import json
import logging
import re
import time
import uuid
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from helios.errors import ConfigError
from serving.keys import EVERYTHING, Access, KeyFile
from serving.keys import Scope as KeyScope
from serving.pages.sessions import COOKIE
from serving.problems import Problem, problem_of
from serving.state import Serving
from serving.watch import Abandoned, ClientGone

log = logging.getLogger("serving.requests")
REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,80}")
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
BRACKET = re.compile(rb"[\[\]{}]")
JSON_LINES = "application/x-ndjson"
MCP_PATH = "/mcp"
API = ("/v1/", MCP_PATH, "/metrics")
"""Addresses for programs: JSON alone, and no cookies."""
QUESTIONS = {"/v1/search": KeyScope.SEARCH, "/v1/ask": KeyScope.ASK}
"""Addresses of single questions, and what they need."""
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Gate:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, serving: Serving) -> None:
        self.app = app
        self.serving = serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, started = Headers(scope=scope), time.perf_counter()
        request_id = _request_id(headers)
        scope.setdefault("state", {}).update(request_id=request_id, access=None)
        reply = _Reply(send, request_id)
        with self.serving.tracing.request(headers) as span:
            scope["state"]["trace_id"] = span.get("trace_id", "")
            try:
                await self._passed(scope, receive, headers, reply)
            finally:
                self._account(scope, reply, time.perf_counter() - started, span)

    async def _passed(self, scope: Scope, receive: Receive, headers: Headers, reply: "_Reply") -> None:
        """The request goes through to the application, or is refused; either way there is a reply."""
        try:
            self._check_origin(headers)
            access = scope["state"]["access"] = self._access(headers, scope)
            if access is None and scope["path"].startswith(MCP_PATH):
                raise Problem("unauthorized")
            if scope["method"] not in ("GET", "HEAD"):
                receive = await self._body(headers, scope, receive)
            self._check_queue(access, scope)
            if scope["method"] == "HEAD" and scope["path"] != MCP_PATH:  # GET's reply; the server sends no body of it
                asked = {**scope, "method": "GET"}
                await self.app(asked, receive, reply)
                scope.update((name, asked[name]) for name in ("route", "endpoint") if name in asked)
                return
            await self.app(scope, receive, reply)
        except (ClientGone, Abandoned):
            await reply.problem(Problem("client_gone"), scope, receive)
        except Exception as error:  # noqa: BLE001 - the last place where an error becomes a reply; it is logged
            problem = problem_of(error)
            if problem.code in ("internal", "index_unusable"):
                log.error("request %s failed", scope["state"]["request_id"], exc_info=error)
            await reply.problem(problem, scope, receive)

    def _check_origin(self, headers: Headers) -> None:
        """Problem for a Host that is not ours, and for scripts of other sites."""
        hosts = self.serving.settings.hosts
        host = headers.get("host", "")
        name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
        if name.lower() not in hosts:
            raise Problem("host_refused")
        origin = headers.get("origin")
        if origin is None or origin in self.serving.settings.allowed_origins:
            return
        if origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            raise Problem("origin_refused")

    def _check_queue(self, access: Access | None, scope: Scope) -> None:
        """Problem for a question that finds the queue full: refused here, it costs no routing."""
        needed = QUESTIONS.get(scope["path"]) if scope["method"] == "POST" else None
        if needed is not None and access is not None and needed in access.scopes and self.serving.admission.full:
            scope["state"]["route"] = scope["path"]
            raise self.serving.admission.refusal()

    def _access(self, headers: Headers, scope: Scope) -> Access | None:
        """What the request's key grants; None without a key, or with one that is not known."""
        keys = self.serving.keys
        if keys is None:
            return EVERYTHING
        kind, _, sent = headers.get("authorization", "").partition(" ")
        try:
            if kind.lower() == "bearer":
                return keys.access(sent.strip())
            return self._access_of_session(keys, headers, scope["path"])
        except ConfigError as error:
            log.error("the keys cannot be read: %s", error)
            raise Problem("not_ready") from None

    def _access_of_session(self, keys: KeyFile, headers: Headers, path: str) -> Access | None:
        """What the key of a browser's session grants now; sessions are for pages alone."""
        if path.startswith(API):
            return None
        cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        session = self.serving.sessions.find(cookie)
        return None if session is None else keys.access_of(session.key_id)

    async def _body(self, headers: Headers, scope: Scope, receive: Receive) -> Receive:
        """The whole body within its limits; what then is received begins with it."""
        limits, lines = self.serving.settings.limits, _takes_lines(scope)
        most, seconds = limits.body_bytes, limits.body_seconds
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if lines and media_type == JSON_LINES:
            most, seconds = limits.document_bytes, limits.document_seconds
        if headers.get("content-length", "0").isdigit() and int(headers.get("content-length", "0")) > most:
            raise Problem("body_too_large", f"at most {most} bytes", headers={"Connection": "close"})
        try:
            async with asyncio.timeout(seconds):
                body = await _read(receive, most)
        except TimeoutError:
            raise Problem("body_slow", headers={"Connection": "close"}) from None
        if body and scope["path"].startswith(API):
            if lines and media_type == JSON_LINES:
                return _after(body, receive)
            if media_type != "application/json":
                raise Problem("media_type")
            if too_deep(body, limits.body_depth):
                raise Problem("json_too_deep", f"at most {limits.body_depth} brackets within brackets")
        return _after(body, receive)

    def _account(self, scope: Scope, reply: "_Reply", seconds: float, span: dict[str, Any]) -> None:
        """Count and log a request; its question only where the settings say so."""
        state, metrics, route = scope["state"], self.serving.metrics, route_of(scope)
        status = reply.status or 499
        metrics.replied(route, status, seconds)
        code = state.get("code", "")
        if code:
            metrics.problems.labels(code).inc()
        access = state["access"]
        fields: dict[str, Any] = {
            "request_id": state["request_id"], "method": scope["method"], "route": route, "status": status,
            "ms": round(seconds * 1e3, 1), "code": code, "key": access.key_id if access else "",
            "trace_id": state["trace_id"], **state.get("logged", {}),
        }  # fmt: skip
        span |= {
            "name": f"{scope['method']} {route}", "http.request.method": scope["method"], "http.route": route,
            "http.response.status_code": status, "error.type": code, "helios.request_id": state["request_id"],
            "helios.index": state.get("logged", {}).get("index", ""),
        }  # fmt: skip
        if self.serving.settings.log_questions and "question" in state:
            fields["question"] = state["question"]
        log.info("request", extra={"fields": {name: value for name, value in fields.items() if value != ""}})


class _Reply:
    """Passes a reply on with our headers, and knows how far it is."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = [(b"x-request-id", self._request_id.encode()), *HEADERS]
            message = {**message, "headers": [*message.get("headers", ()), *own]}
        await self._send(message)

    async def problem(self, problem: Problem, scope: Scope, receive: Receive) -> None:
        """Reply with a problem, unless a reply is on its way: then it just ends."""
        if not self.status:
            scope["state"]["code"] = problem.code
            await problem.response(self._request_id)(scope, receive, self)


def route_of(scope: Scope) -> str:
    """The pattern of the address; `none` where there is none, so that labels stay few."""
    found = getattr(scope.get("route"), "path", None)
    return str(found) if found else scope["state"].get("route", "none")


def too_deep(body: bytes, most: int) -> bool:
    """Whether JSON has more brackets within brackets; what stands in strings does not count."""
    depth = 0
    for found in BRACKET.finditer(STRING.sub(b"", body)):
        depth += 1 if found[0] in b"[{" else -1
        if depth > most:
            return True
    return False


def _takes_lines(scope: Scope) -> bool:
    """Whether a request may add documents as JSON lines: that of a key that may write."""
    access: Access | None = scope["state"]["access"]
    path = scope["path"]
    return (
        scope["method"] == "POST" and path.startswith("/v1/indexes/") and path.endswith("/documents")
        and access is not None and KeyScope.WRITE in access.scopes
    )  # fmt: skip


async def _read(receive: Receive, most: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        body += message.get("body", b"")
        if len(body) > most:
            raise Problem("body_too_large", f"at most {most} bytes", headers={"Connection": "close"})
        if not message.get("more_body", False):
            return bytes(body)


def _after(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read already, then what else is received."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _request_id(headers: Headers) -> str:
    """The client's own where it is harmless, else a new one."""
    sent = headers.get("x-request-id", "")
    return sent if REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex


class JsonLines(logging.Formatter):
    """Log records as one JSON object a line; control characters are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """`time`, `level`, `logger`, `event`, then the record's own fields."""
        fields: Mapping[str, Any] = getattr(record, "fields", {})
        document = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"), "level": record.levelname.lower(),
            "logger": record.name, "event": record.getMessage(), **fields,
        }  # fmt: skip
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info)
        return json.dumps(document, default=str)
