"""Documents in and out over HTTP, tasks, snapshots and aliases: over real servers and a real process that writes."""

import asyncio
import json
import time
from pathlib import Path

import httpx
import pytest

from helios.config import load_config
from helios.index.fsck import check_index
from indexing.pipeline import build_index
from serving.aliases import Aliases
from serving.indexes import ServedIndexes
from serving.keys import Access, Key, KeyFile, Scope
from serving.metrics import Metrics
from serving.problems import Problem
from serving.settings import Limits
from serving.tasks import State, Tasks
from serving.writer import Writer

GARABIT = {"id": "garabit", "title": "Garabit Viaduct", "text": "The Garabit Viaduct crosses the Truyère on one arch."}
EDITED = {**GARABIT, "text": "The Garabit Viaduct carries a railway near Ruynes-en-Margeride."}
TABLE = {"id": "more", "title": "More bridges", "header": ["Bridge", "Opened"], "rows": [["Garabit Viaduct", "1884"]]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two small indexes, `bridges` and `towers`, with the folders of their files."""
    root = tmp_path_factory.mktemp("changing")
    settings = load_config(overrides=["encoder.runtime=torch"])
    rows = {"bridges": "Bridge,Opened\nForth Bridge,1890\nTower Bridge,1894\n", "towers": "Tower,Built\nEiffel,1889\n"}
    for name, text in rows.items():
        (root / name).mkdir()
        (root / name / f"{name}.csv").write_text(text)
        build_index(root / name, root / f"{name}-index", config=settings)
    return root


@pytest.fixture(scope="module")
def changing(start_server, folder):
    indexes = {"bridges": folder / "bridges-index", "towers": folder / "towers-index"}
    options = {"corpora": {"bridges": folder / "bridges"}, "backups": folder / "backups"}
    return start_server(indexes=indexes, aliases=folder / "aliases.json", **options)


@pytest.fixture
def api(changing):
    with httpx.Client(base_url=f"{changing.address}/v1", timeout=90) as client:
        yield client


def ended(api, reply: httpx.Response) -> dict:
    """The task of a reply at its end, however slow the machine is."""
    task, until = reply.json(), time.monotonic() + 300
    assert reply.headers["location"] == f"/v1/tasks/{task['id']}", reply.text
    while task["state"] in ("queued", "running"):
        assert time.monotonic() < until
        task = api.get(f"/tasks/{task['id']}", params={"wait": 5}).json()
    return task


def done(api, reply: httpx.Response) -> dict:
    """The result of a task that has to come to a good end."""
    task = ended(api, reply)
    assert task["state"] == "done", task
    return task["result"]


def found(api, question: str, index: str = "bridges") -> list[str]:
    edges = api.post("/search", json={"question": question, "index": index}).json()["evidence"]["edges"]
    return [edge["passage"]["text"] for edge in edges if edge["passage"]]


@pytest.mark.slow
def test_documents_come_change_and_go(api):
    """What a task did is seen by the next question; the same operations as the command line's."""
    reply = api.post("/indexes/bridges/documents", json={"passages": [GARABIT], "tables": [TABLE]})
    assert reply.status_code == 202
    task = ended(api, reply)
    assert task["state"] == "done", task
    assert (task["result"]["tables"], task["result"]["passages"], task["result"]["links"]) == (1, 1, 1)
    assert task["result"]["served_generation"] == task["result"]["generation"] == 2
    assert GARABIT["text"] in found(api, "What does the Garabit Viaduct cross?")
    assert api.get("/indexes/bridges/rows/more/0").json()["passages"][0]["passage"]["id"] == "garabit"

    twice = ended(api, api.post("/indexes/bridges/documents", json={"passages": [GARABIT]}))
    assert (twice["state"], twice["problem"]["code"]) == ("failed", "documents_invalid")
    assert "'garabit'" in twice["problem"]["detail"]

    lines = f"{json.dumps(EDITED)}\n".encode()
    options = {"params": {"replace": True}, "headers": {"Content-Type": "application/x-ndjson"}}
    assert done(api, api.post("/indexes/bridges/documents", content=lines, **options))["replaced"] == 1
    assert EDITED["text"] in found(api, "What does the Garabit Viaduct carry?")

    body = {"ids": ["garabit", "more", "nobody"]}
    gone = done(api, api.request("DELETE", "/indexes/bridges/documents", json=body))
    assert (gone["deleted_tables"], gone["deleted_passages"], gone["missing"]) == (1, 1, ["nobody"])
    assert found(api, "What does the Garabit Viaduct carry?") == []


@pytest.mark.slow
def test_a_whole_index_is_compacted_synced_and_checked(api, folder):
    (folder / "bridges" / "arch.csv").write_text("Bridge,Opened\nGarabit Viaduct,1884\n")
    planned = done(api, api.post("/tasks", json={"operation": "sync", "index": "bridges", "dry_run": True}))
    assert planned["files"]["new"] == ["arch.csv"]
    synced = done(api, api.post("/tasks", json={"operation": "sync", "index": "bridges"}))
    assert synced["segments"] == 1
    compacted = done(api, api.post("/tasks", json={"operation": "compact", "index": "bridges", "whole": True}))
    assert compacted["parts"] == 1
    checked = done(api, api.post("/tasks", json={"operation": "fsck", "index": "bridges"}))
    assert checked["sound"]
    listed = api.get("/tasks").json()["tasks"]
    assert [task["operation"] for task in listed[:3]] == ["fsck", "compact", "sync"]


def test_a_snapshot_is_backed_up(api, folder):
    before = api.get("/indexes/towers/snapshots").json()
    assert (before["generation"], before["counts"]["segments"], before["backups"]) == (1, 1, [])
    assert str(folder) not in json.dumps(before)
    done(api, api.post("/indexes/towers/snapshots", json={"name": "first"}))
    assert not [one for one in check_index(folder / "backups" / "towers" / "first") if one.severity == "error"]
    assert api.get("/indexes/towers/snapshots").json()["backups"] == ["first"]
    again = api.post("/indexes/towers/snapshots", json={"name": "first"})
    assert (again.status_code, again.json()["code"]) == (409, "backup_exists")
    for wrong in ("../x", "a/b", ".hidden", ""):
        assert api.post("/indexes/towers/snapshots", json={"name": wrong}).status_code == 422


def test_an_alias_swaps_at_once(api, changing, folder):
    assert api.put("/aliases/live", json={"index": "bridges"}).json()["before"] is None
    body = {"question": "When was it opened?", "index": "live", "limit": 1}
    first = api.post("/search", json=body).json()
    assert first["index"] == "live"
    assert api.put("/aliases/live", json={"index": "towers"}).json() == {
        "alias": "live", "index": "towers", "before": "bridges", "kept": True
    }  # fmt: skip
    assert api.post("/search", json=body).json()["evidence"]["edges"][0]["segment"]["cells"][0] == "Eiffel"
    gone = api.post("/search", json=body | {"cursor": first["next_cursor"]})
    assert (gone.status_code, gone.json()["code"]) == (410, "snapshot_gone")
    assert api.get("/indexes/live").json()["rows"] == 1
    assert "helios/live" in [model["id"] for model in api.get("/models").json()["data"]]
    kept = Aliases(folder / "aliases.json")
    kept.open(("bridges", "towers"))
    assert kept.named == {"live": "towers"}
    assert api.put("/aliases/towers", json={"index": "bridges"}).json()["code"] == "name_taken"
    assert api.put("/aliases/new", json={"index": "nothing"}).json()["code"] == "index_not_found"
    assert api.delete("/aliases/live").json()["before"] == "towers"
    assert api.post("/search", json=body).json()["code"] == "index_not_found"
    assert api.get("/aliases").json() == {"aliases": []}


@pytest.mark.slow
def test_a_running_task_is_cancelled_and_the_index_stays_whole(api, folder):
    passages = [{"id": f"p{number}", "text": f"Passage {number} about a bridge. " * 20} for number in range(300)]
    task = api.post("/indexes/bridges/documents", json={"passages": passages}).json()
    waiting = api.post("/tasks", json={"operation": "compact", "index": "bridges"}).json()
    end = time.monotonic() + 60
    while api.get(f"/tasks/{task['id']}").json()["stage"] is None:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert api.delete(f"/tasks/{waiting['id']}").json()["state"] == "cancelled"
    assert api.delete(f"/tasks/{task['id']}").json()["state"] == "cancelled"
    again = api.delete(f"/tasks/{task['id']}")
    assert (again.status_code, again.json()["code"]) == (409, "task_ended")
    assert api.get("/indexes/bridges").json()["passages"] == 0
    assert done(api, api.post("/tasks", json={"operation": "fsck", "index": "bridges"}))["sound"]


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", "/indexes/bridges/documents", {}, "invalid"),
        ("POST", "/indexes/bridges/documents", {"passages": [{"id": "a"}]}, "invalid"),
        ("POST", "/indexes/bridges/documents", {"tables": [{"id": "a", "header": "x", "rows": []}]}, "invalid"),
        ("POST", "/indexes/nothing/documents", {"passages": [GARABIT]}, "index_not_found"),
        ("DELETE", "/indexes/bridges/documents", {}, "invalid"),
        ("POST", "/tasks", {"operation": "build"}, "invalid"),
        ("POST", "/tasks", {"operation": "sync", "index": "towers"}, "not_offered"),
        ("GET", "/tasks/none", None, "task_not_found"),
        ("DELETE", "/aliases/none", None, "alias_not_found"),
    ],
)  # fmt: skip
def test_requests_that_are_wrong(api, method, path, body, code):
    reply = api.request(method, path, json=body)
    assert reply.json()["code"] == code, reply.text


def test_lines_that_are_no_documents_say_which(api, folder):
    headers = {"Content-Type": "application/x-ndjson"}
    for lines in (b"not json\n", b'{"id": "a", "text": "x"}\n{"id": ', b"", b"[" * 100_000):
        task = ended(api, api.post("/indexes/towers/documents", content=lines, headers=headers))
        assert (task["state"], task["problem"]["code"]) == ("failed", "documents_invalid"), task
        assert "/tmp" not in task["problem"]["detail"]
        assert str(folder) not in task["problem"]["detail"]
    assert api.get("/indexes/towers").json()["generation"] == 1


def test_a_wrong_filter_is_told(api):
    task = ended(api, api.request("DELETE", "/indexes/towers/documents", json={"where": "year <"}))
    assert (task["state"], task["problem"]["code"]) == ("failed", "where_invalid")


def test_a_body_of_documents_is_larger_for_keys_that_write(start_server, folder, tmp_path):
    keys = KeyFile(tmp_path / "keys.json")
    reader, writer = (keys.add(Key("", name, "", (name,))) for name in (Scope.SEARCH, Scope.WRITE))
    server = start_server(indexes={"towers": folder / "towers-index"}, keys=keys.path, body_bytes=1000)
    address, lines = f"{server.address}/v1/indexes/towers/documents", b"no document\n" * 200

    def send(key: str, media_type: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": media_type}
        return httpx.post(address, content=lines, headers=headers, timeout=60)

    assert send(reader, "application/x-ndjson").json()["code"] == "body_too_large"
    assert send(writer, "application/json").json()["code"] == "body_too_large"
    task = send(writer, "application/x-ndjson")
    assert task.status_code == 202
    own = {"Authorization": f"Bearer {writer}"}
    assert httpx.delete(server.address + task.headers["location"], headers=own, timeout=60).status_code in (200, 409)


def test_tasks_are_bounded_and_belong_to_keys():
    async def work() -> None:
        indexes = ServedIndexes({"towers": Path("nowhere")}, config=None, overrides=())
        limits = Limits(tasks=2, tasks_kept=3)
        tasks = Tasks(indexes, Writer(config=None, overrides=()), Metrics(), limits)
        one, two = (Access(name, frozenset({Scope.WRITE}), ("t*",)) for name in ("one", "two"))
        admin, other = Access("admin", frozenset(Scope)), Access("other", frozenset(Scope), ("b*",))
        first, second = (tasks.add("compact", "towers", {}, one) for _ in range(2))
        with pytest.raises(Problem, match="busy"):
            tasks.add("compact", "towers", {}, one)
        assert tasks.within(two) == [second, first]
        assert tasks.within(other) == []
        for access, code in ((two, "forbidden"), (other, "task_not_found")):
            with pytest.raises(Problem, match=code):
                tasks.cancel(access, first.id)
        assert tasks.cancel(one, first.id).state is State.CANCELLED
        with pytest.raises(Problem, match="task_ended"):
            tasks.cancel(one, first.id)
        tasks.cancel(admin, second.id)
        for _ in range(5):
            tasks.cancel(one, tasks.add("compact", "towers", {}, one).id)
        assert len(tasks.within(admin)) == 3
        await tasks.close()
        with pytest.raises(Problem, match="not_ready"):
            tasks.add("compact", "towers", {}, one)

    asyncio.run(work())


def test_cells_of_json_are_read_as_those_of_files(api, changing):
    """Numbers, truth values and nothing: what a program writes into a table without thinking of texts."""
    table = {"id": "spans", "title": "Spans", "header": ["Bridge", "Metres", "Open", 1890],
             "rows": [["Salginatobel Bridge", 90.5, True, None]]}  # fmt: skip
    task = ended(api, api.post("/indexes/towers/documents", json={"tables": [table]}))
    assert task["state"] == "done", task
    found = api.post("/search", json={"index": "towers", "question": "Salginatobel Bridge", "k": 1}).json()
    segment = found["evidence"]["edges"][0]["segment"]
    assert segment["header"] == ["Bridge", "Metres", "Open", "1890"], found
    assert segment["cells"] == ["Salginatobel Bridge", "90.5", "true", ""]
    done(api, api.request("DELETE", "/indexes/towers/documents", json={"ids": ["spans"]}))
