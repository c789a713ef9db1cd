"""Changes of indexes: documents in and out, the tasks that do it, snapshots and their backups."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import ConfigDict, Field, ValidationError, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from serving.access import ServingOf, chosen_index, needs
from serving.gate import JSON_LINES
from serving.keys import Access, Scope
from serving.problems import Problem, invalid
from serving.replies import json_reply, logged, while_connected
from serving.schemas import AddRequest, Body, SnapshotsReply, TaskJson, TasksReply
from serving.state import Serving
from serving.tasks import Task

router = APIRouter(prefix="/v1", tags=["changes"])
Name = Annotated[str, Path(max_length=200)]
TaskId = Annotated[str, Path(max_length=100)]
Writes = Annotated[Access, needs(Scope.WRITE, questions=1)]
Admin = Annotated[Access, needs(Scope.ADMIN)]
Follows = Annotated[Access, needs(Scope.WRITE, Scope.ADMIN)]
Wait = Annotated[
    float, Query(ge=0, le=60, description="Seconds to wait for the task's end before it is replied to (202 if it runs)")
]
BACKUP = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {
        "description": "Accepted: `Location` is the task to follow",
        "model": TaskJson,
        "headers": {"Location": {"description": "The task's address", "schema": {"type": "string"}}},
    }
}


class DeleteRequest(Body):
    """What is deleted: whatever any of the fields means."""

    ids: list[str] = Field(default=[], max_length=10_000, description="Ids of tables and passages.")
    source: str | None = Field(default=None, max_length=2000, description="What came from this file of the corpus.")
    where: str | None = Field(default=None, max_length=10_000, description="A filter, as in docs/filters.md.")
    relink: bool = Field(default=True, description="Link rows anew that named a deleted passage.")

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"ids": ["garabit"]}]})

    @model_validator(mode="after")
    def _something(self) -> "DeleteRequest":
        if not self.ids and self.source is None and self.where is None:
            raise ValueError("say what to delete: ids, source or where")
        return self


class TaskRequest(Body):
    """Work on a whole index."""

    operation: Literal["compact", "sync", "fsck"]
    index: str | None = Field(default=None, max_length=200, description="The only one that you may ask, by default.")
    whole: bool = Field(default=False, description="compact: make the whole index one part.")
    refit: bool = Field(default=False, description="compact: fit a new codebook; scores change.")
    auto: bool = Field(default=False, description="compact: only where there are many parts, or much is deleted.")
    dry_run: bool = Field(default=False, description="sync: only say what would be done.")

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"operation": "compact"}]})


class BackupRequest(Body):
    """A backup of the current snapshot."""

    name: str = Field(pattern=BACKUP, max_length=100, description="Of its folder, below that of --backups.")

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "before-the-move"}]})


@router.post(
    "/indexes/{name}/documents", response_model=TaskJson, status_code=202, summary="Add documents",
    responses={**ACCEPTED, 200: {"model": TaskJson, "description": "It ended within `wait`"}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/AddRequest"}},
                JSON_LINES: {"schema": {"type": "string", "description": "One table or passage a line"}},
            },
        }
    },
)  # fmt: skip
async def add_documents(
    name: Name, request: Request, serving: ServingOf, access: Writes, *,
    replace: Annotated[bool, Query(description="Put records in place of those that have their ids")] = False,
    wait: Wait = 0,
) -> Response:  # fmt: skip
    """All are added in one step, or none. A later question sees them when the task is done.

    JSON takes 1 MB, `application/x-ndjson` 32 MB.
    """
    name = chosen_index(serving, access, name)
    operation = "update" if replace else "add"
    body = await request.body()
    logged(request, index=name, operation=operation)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON_LINES:
        task = await serving.tasks.add_file(operation, name, body, access)
    else:
        task = serving.tasks.add(operation, name, _records(body), access)
    return await _accepted(request, serving, task, wait)


@router.delete(
    "/indexes/{name}/documents", response_model=TaskJson, status_code=202, summary="Delete documents",
    responses={**ACCEPTED, 200: {"model": TaskJson, "description": "It ended within `wait`"}},
)  # fmt: skip
async def delete_documents(
    name: Name, body: DeleteRequest, request: Request, serving: ServingOf, access: Writes, *, wait: Wait = 0
) -> Response:
    """By ids, by the file that they came from, or by a filter. Ids that no record has are in the result's `missing`."""
    name = chosen_index(serving, access, name)
    logged(request, index=name, operation="delete")
    task = serving.tasks.add("delete", name, body.model_dump(), access)
    return await _accepted(request, serving, task, wait)


@router.get("/tasks", response_model=TasksReply, summary="Changes under way and done")
async def list_tasks(
    serving: ServingOf, access: Follows, *, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> Response:
    """Newest first. Tasks live as long as the server: what a task changed stays, what it had not begun is lost."""
    return json_reply({"tasks": [task.describe() for task in serving.tasks.within(access)[:limit]]})


@router.post(
    "/tasks", response_model=TaskJson, status_code=202, summary="Compact, sync or check an index",
    responses={**ACCEPTED, 200: {"model": TaskJson, "description": "It ended within `wait`"}},
)  # fmt: skip
async def add_task(
    body: TaskRequest, request: Request, serving: ServingOf, access: Admin, *, wait: Wait = 0
) -> Response:
    """`compact` merges small parts, `sync` brings the index to its folder (`--sync`), `fsck` verifies checksums."""
    name = chosen_index(serving, access, body.index)
    arguments: dict[str, Any] = {}
    if body.operation == "compact":
        if body.auto and (body.whole or body.refit):
            raise Problem("invalid", "auto decides what to merge: leave out whole and refit")
        arguments = {"whole": body.whole, "refit": body.refit, "auto": body.auto}
    elif body.operation == "sync":
        folder = serving.settings.corpora.get(serving.indexes.served(name))
        if folder is None:
            raise Problem("not_offered", "--sync NAME=FOLDER says which folder an index follows")
        arguments = {"folder": str(folder.resolve()), "dry_run": body.dry_run}
    logged(request, index=name, operation=body.operation)
    return await _accepted(request, serving, serving.tasks.add(body.operation, name, arguments, access), wait)


@router.get("/tasks/{task_id}", response_model=TaskJson, summary="What became of a task")
async def get_task(
    task_id: TaskId, request: Request, serving: ServingOf, access: Follows, *, wait: Wait = 0
) -> Response:
    """Its state; with `wait` the reply comes when it has ended, or after so many seconds."""
    task = serving.tasks.find(access, task_id)
    return json_reply((await while_connected(request, serving.tasks.wait(task, wait))).describe())


@router.delete("/tasks/{task_id}", response_model=TaskJson, summary="Cancel a task")
async def cancel_task(task_id: TaskId, serving: ServingOf, access: Follows) -> Response:
    """A task that waits is dropped; one that runs is stopped, and the index stays as it was before or after it."""
    task = serving.tasks.cancel(access, task_id)
    return json_reply((await serving.tasks.wait(task, 10)).describe())


@router.get("/indexes/{name}/snapshots", response_model=SnapshotsReply, summary="The snapshot and its parts")
async def snapshots(name: Name, serving: ServingOf, access: Admin) -> Response:
    """The current snapshot, the parts that it is made of, older ones that are still on the disk, and backups."""
    name = chosen_index(serving, access, name)
    return json_reply(await run_in_threadpool(_snapshots, serving, name))


@router.post(
    "/indexes/{name}/snapshots", response_model=TaskJson, status_code=202, summary="Back the snapshot up",
    responses={**ACCEPTED, 200: {"model": TaskJson, "description": "It ended within `wait`"}},
)  # fmt: skip
async def back_up(
    name: Name, body: BackupRequest, request: Request, serving: ServingOf, access: Admin, *, wait: Wait = 0
) -> Response:
    """A copy that is an index of its own, below the folder of `--backups`; it shares its bytes where the disk can."""
    name = chosen_index(serving, access, name)
    if serving.settings.backups is None:
        raise Problem("not_offered", "--backups FOLDER says where backups go")
    out = _backups(serving, name) / body.name
    if await run_in_threadpool(out.exists):
        raise Problem("backup_exists")
    logged(request, index=name, operation="backup")
    await run_in_threadpool(out.parent.mkdir, parents=True, exist_ok=True)
    return await _accepted(request, serving, serving.tasks.add("backup", name, {"out": str(out)}, access), wait)


def _records(body: bytes) -> dict[str, Any]:
    """Tables and passages of a body; Problem `invalid`, `json_invalid`."""
    try:
        found = AddRequest.model_validate_json(body or b"null")
    except ValidationError as error:
        raise invalid([{**one, "loc": ("body", *one["loc"])} for one in error.errors()]) from None
    return found.model_dump(exclude_unset=True)


async def _accepted(request: Request, serving: Serving, task: Task, wait: float) -> Response:
    """202 with the task to follow, or 200 where it has ended by then. A client that leaves does not stop its task."""
    await while_connected(request, serving.tasks.wait(task, wait))
    reply = json_reply(task.describe(), status=200 if task.state.ended else 202)
    reply.headers["Location"] = f"/v1/tasks/{task.id}"
    return reply


def _backups(serving: Serving, name: str) -> Any:
    assert serving.settings.backups is not None
    return serving.settings.backups.resolve() / serving.indexes.served(name)


def _snapshots(serving: Serving, name: str) -> dict[str, Any]:
    """What `helios index snapshots` tells, without paths and processes."""
    from helios.index.listing import list_snapshots

    listing = list_snapshots(serving.indexes.folders[serving.indexes.served(name)])
    backups: list[str] = []
    if serving.settings.backups is not None and (folder := _backups(serving, name)).is_dir():
        backups = sorted(path.name for path in folder.iterdir() if (path / "manifest.json").is_file())
    record = listing.record()
    names = ("generation", "created", "code_version", "counts", "unfinished_bytes")
    kept = {kind: [_piece(piece) for piece in record[kind]] for kind in ("pieces", "retired")}
    return {"index": name, **{one: record[one] for one in names}, **kept, "backups": backups}


def _piece(piece: dict[str, Any]) -> dict[str, Any]:
    return {"folder": piece["folder"], "bytes": piece["bytes"], "readers": len(piece["held_by"])}
