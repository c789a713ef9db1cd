"""`Client`: every address of a query server as a method; `helios.client.asynchronous` has the same to await."""

import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Literal

import httpx

from helios.client.replies import (
    Alias,
    AskReply,
    BatchReply,
    CheckReply,
    Index,
    Json,
    PassageReply,
    QueryReply,
    RowReply,
    SearchReply,
    Snapshots,
    Source,
    SourceSchema,
    SourcesReply,
    Task,
)
from helios.client.transfer import (
    DEFAULT,
    MOST_WAIT,
    Call,
    Event,
    Events,
    Records,
    decoded,
    good,
    headers,
    jsonl,
    part,
    pause,
    unreachable,
)
from helios.errors import ServerError


class Client:
    """A query server; threads may share it. Methods raise ServerError for what it refuses, or if it is not there."""

    def __init__(
        self, address: str = DEFAULT, *, key: str | None = None, seconds: float = 60.0, retries: int = 2,
        transport: httpx.BaseTransport | None = None,
    ) -> None:  # fmt: skip
        """`seconds` is how long a reply is waited for where a call names no time of its own.

        A call that the server had no room for is sent again, `retries` times at most, after the time that it names.
        """
        self.address = address.rstrip("/")
        self.seconds = seconds
        self.retries = retries
        self._http = httpx.Client(base_url=self.address, headers=headers(key), transport=transport)

    def __repr__(self) -> str:
        return f"Client({self.address!r})"

    def search(
        self, question: str, *, index: str | None = None, k: int | None = None, limit: int | None = None,
        where: str | None = None, explain: bool | None = None, cursor: str | None = None, seconds: float | None = None,
    ) -> SearchReply:  # fmt: skip
        """A page of ranked edges; `cursor` is `next_cursor` of the page before."""
        body = {
            "question": question, "index": index, "k": k, "limit": limit, "where": where, "explain": explain,
            "cursor": cursor, "seconds": seconds,
        }  # fmt: skip
        found: SearchReply = self._send(Call("POST", "/v1/search", body, seconds=seconds))
        return found

    def search_all(
        self, question: str, *, index: str | None = None, k: int | None = None, limit: int | None = None,
        where: str | None = None,
    ) -> Iterator[Json]:  # fmt: skip
        """All k edges, page by page; ServerError `snapshot_gone` where the index changes in between."""
        cursor: str | None = None
        while True:
            page = self.search(question, index=index, k=k, limit=limit, where=where, cursor=cursor)
            yield from page["evidence"]["edges"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def ask(
        self, question: str, *, index: str | None = None, k: int | None = None, limit: int | None = None,
        where: str | None = None, seconds: float | None = None,
    ) -> AskReply:  # fmt: skip
        """A short answer whose citations were checked, or an abstention that says why."""
        body = {"question": question, "index": index, "k": k, "limit": limit, "where": where, "seconds": seconds}
        found: AskReply = self._send(Call("POST", "/v1/ask", body, seconds=seconds))
        return found

    def ask_events(
        self, question: str, *, index: str | None = None, k: int | None = None, limit: int | None = None,
        where: str | None = None, seconds: float | None = None,
    ) -> Iterator[Event]:  # fmt: skip
        """The same as events while it is made: `stage`, `evidence`, and at last `answer`, which is what `ask` gives."""
        body = {
            "question": question, "index": index, "k": k, "limit": limit, "where": where, "seconds": seconds,
            "stream": True,
        }  # fmt: skip
        call, events = Call("POST", "/v1/ask", body, seconds=seconds), Events()
        try:
            response = self._http.send(call.request(self._http, self.seconds), stream=True)
            try:
                if not response.is_success:
                    response.read()
                    decoded(response)
                for line in response.iter_lines():
                    yield from events.of(line)
            finally:
                response.close()
        except httpx.HTTPError as error:
            raise unreachable(error, self.address) from error

    def batch(
        self, questions: Sequence[str], *, kind: Literal["search", "ask"] | None = None, index: str | None = None,
        k: int | None = None, limit: int | None = None, where: str | None = None, seconds: float | None = None,
    ) -> BatchReply:  # fmt: skip
        """Many questions at once; `seconds` is for each of them. What failed is a problem in its place."""
        body = {
            "questions": list(questions), "kind": kind, "index": index, "k": k, "limit": limit, "where": where,
            "seconds": seconds,
        }  # fmt: skip
        longest = None if seconds is None else seconds * len(questions)
        found: BatchReply = self._send(Call("POST", "/v1/batch", body, seconds=longest))
        return found

    def indexes(self) -> list[Index]:
        """The indexes that you may ask."""
        found: list[Index] = self._send(Call("GET", "/v1/indexes"))["indexes"]
        return found

    def index(self, name: str) -> Index:
        """What an index holds."""
        found: Index = self._send(Call("GET", f"/v1/indexes/{part(name)}"))
        return found

    def row(self, index: str, table: str, row: int) -> RowReply:
        """A row with its table and the texts that it names; rows count from 0."""
        found: RowReply = self._send(Call("GET", f"/v1/indexes/{part(index)}/rows/{part(table)}/{row}"))
        return found

    def passage(self, index: str, passage_id: str) -> PassageReply:
        """A text and the rows that name it."""
        found: PassageReply = self._send(Call("GET", f"/v1/indexes/{part(index)}/passages/{part(passage_id)}"))
        return found

    def add(
        self, index: str, *, tables: Records = (), passages: Records = (), replace: bool | None = None,
        wait: float | None = None,
    ) -> Task:  # fmt: skip
        """Add tables and passages, records as in HELIOS's JSON lines; `wait` seconds for the task's end, 60 at most."""
        body = {"tables": list(tables), "passages": list(passages)}
        return self._task("POST", f"/v1/indexes/{part(index)}/documents", body, {"replace": replace, "wait": wait})

    def add_lines(
        self, index: str, records: Records | bytes | str, *, replace: bool | None = None, wait: float | None = None
    ) -> Task:
        """Add tables and passages as JSON lines, 32 MB at most."""
        params = {"replace": replace, "wait": wait}
        path, seconds = f"/v1/indexes/{part(index)}/documents", (wait or 0.0) + self.seconds
        task: Task = self._send(Call("POST", path, params=params, content=jsonl(records), seconds=seconds))
        return task

    def delete(
        self, index: str, *, ids: Sequence[str] | None = None, source: str | None = None, where: str | None = None,
        relink: bool | None = None, wait: float | None = None,
    ) -> Task:  # fmt: skip
        """Delete by ids, by the file that records came from, or by a filter: what any of them means."""
        body = {"ids": None if ids is None else list(ids), "source": source, "where": where, "relink": relink}
        return self._task("DELETE", f"/v1/indexes/{part(index)}/documents", body, {"wait": wait})

    def compact(
        self, index: str | None = None, *, whole: bool | None = None, refit: bool | None = None,
        auto: bool | None = None, wait: float | None = None,
    ) -> Task:  # fmt: skip
        """Merge small parts, or all of them; `refit` fits a new codebook, `auto` merges only what is due."""
        body = {"operation": "compact", "index": index, "whole": whole, "refit": refit, "auto": auto}
        return self._task("POST", "/v1/tasks", body, {"wait": wait})

    def sync(self, index: str | None = None, *, dry_run: bool | None = None, wait: float | None = None) -> Task:
        """Bring an index to its folder, which the server was started with."""
        body = {"operation": "sync", "index": index, "dry_run": dry_run}
        return self._task("POST", "/v1/tasks", body, {"wait": wait})

    def fsck(self, index: str | None = None, *, wait: float | None = None) -> Task:
        """Verify every checksum of an index."""
        return self._task("POST", "/v1/tasks", {"operation": "fsck", "index": index}, {"wait": wait})

    def tasks(self, *, limit: int | None = None) -> list[Task]:
        """Changes under way and done, newest first."""
        found: list[Task] = self._send(Call("GET", "/v1/tasks", params={"limit": limit}))["tasks"]
        return found

    def task(self, task_id: str, *, wait: float | None = None) -> Task:
        """What became of a task; `wait` seconds for its end, 60 at most."""
        return self._task("GET", f"/v1/tasks/{part(task_id)}", None, {"wait": wait})

    def cancel(self, task_id: str) -> Task:
        """End a task that has not ended; ServerError `task_ended`."""
        return self._task("DELETE", f"/v1/tasks/{part(task_id)}", None, {})

    def ended(self, task: Task, *, seconds: float = 600.0) -> Task:
        """A task at its good end; ServerError with its problem where it failed, `timeout` where it takes longer."""
        until = time.monotonic() + seconds
        while task["state"] in ("queued", "running"):
            left = until - time.monotonic()
            if left <= 0:
                raise ServerError("timeout", f"task {task['id']} is {task['state']} after {seconds:g} s", todo="wait")
            task = self.task(task["id"], wait=min(left, MOST_WAIT))
        return good(task)

    def snapshots(self, index: str) -> Snapshots:
        """The snapshot of an index, its parts, and backups."""
        found: Snapshots = self._send(Call("GET", f"/v1/indexes/{part(index)}/snapshots"))
        return found

    def back_up(self, index: str, name: str, *, wait: float | None = None) -> Task:
        """Back the current snapshot up, below the folder that the server was started with."""
        return self._task("POST", f"/v1/indexes/{part(index)}/snapshots", {"name": name}, {"wait": wait})

    def aliases(self) -> list[Alias]:
        """The aliases that you may ask, with the index that each names."""
        found: list[Alias] = self._send(Call("GET", "/v1/aliases"))["aliases"]
        return found

    def point(self, alias: str, index: str) -> Alias:
        """Have an alias name an index from now on."""
        found: Alias = self._send(Call("PUT", f"/v1/aliases/{part(alias)}", {"index": index}))
        return found

    def drop_alias(self, alias: str) -> Alias:
        """Forget an alias."""
        found: Alias = self._send(Call("DELETE", f"/v1/aliases/{part(alias)}"))
        return found

    def sources(self) -> list[Source]:
        """The sources that you may ask."""
        found: list[Source] = self._send(Call("GET", "/v1/sources"))["sources"]
        return found

    def source(self, name: str) -> SourceSchema:
        """What a source holds, in words."""
        found: SourceSchema = self._send(Call("GET", f"/v1/sources/{part(name)}"))
        return found

    def ask_sources(self, question: str, *, k: int | None = None, seconds: float | None = None) -> SourcesReply:
        """Ask the likeliest sources, `k` at most, each in its language."""
        body = {"question": question, "k": k, "seconds": seconds}
        found: SourcesReply = self._send(Call("POST", "/v1/sources/ask", body, seconds=seconds))
        return found

    def query(self, source: str, query: str, *, seconds: float | None = None) -> QueryReply:
        """Run a query in a source's language; only what reads is run."""
        body = {"query": query, "seconds": seconds}
        found: QueryReply = self._send(Call("POST", f"/v1/sources/{part(source)}/query", body, seconds=seconds))
        return found

    def check_source(self, name: str) -> CheckReply:
        """Whether a source can be used; ServerError says why not."""
        found: CheckReply = self._send(Call("POST", f"/v1/sources/{part(name)}/check"))
        return found

    def refresh_source(self, name: str) -> CheckReply:
        """Read a source's description again."""
        found: CheckReply = self._send(Call("POST", f"/v1/sources/{part(name)}/refresh"))
        return found

    def models(self) -> list[Json]:
        """The indexes as models of OpenAI's shape."""
        found: list[Json] = self._send(Call("GET", "/v1/models"))["data"]
        return found

    def model(self, name: str) -> Json:
        """One index as a model, by the name that `models` gives it: `helios/NAME`."""
        found: Json = self._send(Call("GET", f"/v1/models/{name}"))
        return found

    def complete(self, messages: Sequence[Json], *, model: str = "helios") -> Json:
        """An answer to the last message of a chat, in OpenAI's shape; for streams use their client."""
        found: Json = self._send(Call("POST", "/v1/chat/completions", {"model": model, "messages": list(messages)}))
        return found

    def respond(self, input: str | Sequence[Json], *, model: str = "helios") -> Json:  # noqa: A002 - OpenAI's name
        """The same in OpenAI's newer shape."""
        words = input if isinstance(input, str) else list(input)
        found: Json = self._send(Call("POST", "/v1/responses", {"model": model, "input": words}))
        return found

    def alive(self) -> bool:
        """Whether the server lives."""
        return self._says("/livez")

    def ready(self) -> bool:
        """Whether the server takes questions."""
        return self._says("/readyz")

    def metrics(self) -> str:
        """What Prometheus reads."""
        response = self._sent(Call("GET", "/metrics"))
        if not response.is_success:
            decoded(response)
        return response.text

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _task(self, method: str, path: str, body: Json | None, params: Json) -> Task:
        longest = (params.get("wait") or 0.0) + self.seconds
        task: Task = self._send(Call(method, path, body, params, seconds=longest))
        return task

    def _says(self, path: str) -> bool:
        try:
            return self._sent(Call("GET", path)).is_success
        except ServerError:
            return False

    def _send(self, call: Call) -> Any:
        attempt = 0
        while True:
            try:
                return decoded(self._sent(call))
            except ServerError as error:
                wait = pause(error, attempt, self.retries)
                if wait is None:
                    raise
            time.sleep(wait)
            attempt += 1

    def _sent(self, call: Call) -> httpx.Response:
        try:
            return self._http.send(call.request(self._http, self.seconds))
        except httpx.HTTPError as error:
            raise unreachable(error, self.address) from error
