"""What both clients share: how a call becomes a request, a reply data, a stream events; nothing is sent here."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from helios import __version__
from helios.client.replies import Task
from helios.errors import ServerError

DEFAULT = "http://127.0.0.1:8080"
LINES = "application/x-ndjson"
MOST_WAIT = 60.0
"""Seconds that one request may wait for a task's end."""
REPLY_GRACE = 10.0
"""Seconds beyond a question's deadline until a reply is given up."""
LONGEST_PAUSE = 10.0
Records = Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Call:
    """One request: what is None in `params` and `body` is left out."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    params: Mapping[str, Any] | None = None
    content: bytes | None = None
    seconds: float | None = None
    """How long the server may work on it."""

    def request(self, client: "httpx.Client | httpx.AsyncClient", seconds: float) -> httpx.Request:
        """As httpx sends it; a reply is waited for a little longer than the server may work."""
        longest = seconds if self.seconds is None else max(self.seconds, 1.0) + REPLY_GRACE
        headers = {} if self.content is None else {"Content-Type": LINES}
        return client.build_request(
            self.method, self.path, params=_present(self.params), content=self.content, headers=headers,
            json=None if self.body is None else _present(self.body), timeout=httpx.Timeout(longest, connect=10.0),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a stream: `stage`, `evidence` or `answer`."""

    name: str
    data: dict[str, Any]


def headers(key: str | None) -> dict[str, str]:
    """What every request has."""
    own = {"User-Agent": f"helios-client/{__version__}"}
    return own if key is None else own | {"Authorization": f"Bearer {key}"}


def part(value: object) -> str:
    """A part of an address; ValueError for `.` and `..`, which every client takes for steps on the way."""
    if value in (".", ".."):
        raise ValueError(f"{value!r} cannot be asked for by its id: search for it")
    return quote(str(value), safe="")


def jsonl(records: Records | bytes | str) -> bytes:
    """Records as JSON lines."""
    if isinstance(records, bytes):
        return records
    if isinstance(records, str):
        return records.encode()
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def decoded(response: httpx.Response) -> Any:
    """The data of a reply; ServerError for a problem, and for what is no JSON."""
    try:
        data = response.json()
    except ValueError:
        data = None
    if response.is_success and data is not None:
        return data
    if isinstance(data, dict) and "code" in data:
        raise server_error(data, response.headers.get("retry-after"))
    where = f"{response.request.url.scheme}://{response.request.url.netloc.decode()}"
    raise ServerError(
        "unexpected", f"{where} replied {response.status_code} with what is no problem of HELIOS's",
        todo="check the address: is it that of `helios serve`?", status=response.status_code,
    )  # fmt: skip


def server_error(problem: Mapping[str, Any], retry_after: str | None = None) -> ServerError:
    """A problem as an error."""
    wait = float(retry_after) if retry_after is not None and retry_after.isdigit() else None
    detail = str(problem.get("detail") or problem.get("title") or "")
    return ServerError(
        str(problem["code"]), detail, todo=str(problem.get("todo", "")),
        status=int(problem.get("status", 0)), request_id=str(problem.get("request_id", "")), retry_after=wait,
    )  # fmt: skip


def unreachable(error: httpx.HTTPError, address: str) -> ServerError:
    """A connection that failed, or a reply that did not come in time."""
    if isinstance(error, httpx.TimeoutException):
        return ServerError("timeout", f"{address} did not reply in time", todo="give more `seconds`, or try again")
    what = str(error) or type(error).__name__
    return ServerError("unreachable", f"{address}: {what}", todo="start it with `helios serve`, or mend the address")


def pause(error: ServerError, attempt: int, retries: int) -> float | None:
    """Seconds until a call that the server had no room for is sent again; None where it is not."""
    if error.code not in ("busy", "not_ready") or attempt >= retries:
        return None
    return min(LONGEST_PAUSE, error.retry_after or 1.0)


def good(task: Task) -> Task:
    """A task that has ended well; ServerError otherwise."""
    if task["state"] == "done":
        return task
    problem = task["problem"] or {"code": "cancelled", "detail": f"task {task['id']} was cancelled"}
    raise ServerError(
        problem.get("code", ""), problem.get("detail") or problem.get("title", ""), todo=problem.get("todo", ""),
        status=problem.get("status", 0), request_id=problem.get("request_id", ""),
    )  # fmt: skip


class Events:
    """Server-sent events from the lines of a stream."""

    def __init__(self) -> None:
        self._name = ""
        self._data: list[str] = []

    def of(self, line: str) -> Iterator[Event]:
        """The event that a line ends, if it ends one; ServerError for an event that is an error."""
        if line:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                self._name = value
            elif field == "data":
                self._data.append(value)
            return
        name, text = self._name, "\n".join(self._data)
        self._name, self._data = "", []
        if not text:
            return
        data = json.loads(text)
        if name == "error":
            raise server_error(data)
        yield Event(name, data)


def _present(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if values is None:
        return None
    return {name: value for name, value in values.items() if value is not None}
