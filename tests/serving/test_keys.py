"""Keys: their file, what each scope may do on every route, limits, revocation while the server runs."""

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.errors import ConfigError
from serving.keys import Access, Key, KeyFile, Rates, Scope

QUESTION = {"question": "Which is the longest river of Europe?", "limit": 1}
PUBLIC = {"/livez", "/readyz", "/openapi.json"}
REQUESTS = {
    ("POST", "/v1/search"): ("/v1/search", QUESTION, "search"),
    ("POST", "/v1/ask"): ("/v1/ask", QUESTION, "ask"),
    ("POST", "/v1/batch"): ("/v1/batch", {"questions": ["Who?"]}, "search"),
    ("GET", "/v1/indexes"): ("/v1/indexes", None, "search"),
    ("GET", "/v1/indexes/{name}"): ("/v1/indexes/sample", None, "search"),
    ("GET", "/v1/indexes/{name}/rows/{table:path}/{row}"): (
        "/v1/indexes/sample/rows/european-rivers/0", None, "search"
    ),
    ("GET", "/v1/indexes/{name}/passages/{passage_id:path}"): ("/v1/indexes/sample/passages/volga", None, "search"),
    ("GET", "/v1/models"): ("/v1/models", None, "ask"),
    ("GET", "/v1/models/{model:path}"): ("/v1/models/helios/sample", None, "ask"),
    ("POST", "/v1/chat/completions"): (
        "/v1/chat/completions", {"model": "helios", "messages": [{"role": "user", "content": "Who?"}]}, "ask"
    ),
    ("POST", "/v1/responses"): ("/v1/responses", {"model": "helios", "input": "Who?"}, "ask"),
    ("POST", "/v1/indexes/{name}/documents"): ("/v1/indexes/sample/documents", {}, "write"),
    ("DELETE", "/v1/indexes/{name}/documents"): ("/v1/indexes/sample/documents", {}, "write"),
    ("GET", "/v1/indexes/{name}/snapshots"): ("/v1/indexes/sample/snapshots", None, "admin"),
    ("POST", "/v1/indexes/{name}/snapshots"): ("/v1/indexes/sample/snapshots", {"name": "a"}, "admin"),
    ("GET", "/v1/tasks"): ("/v1/tasks", None, "write admin"),
    ("POST", "/v1/tasks"): ("/v1/tasks", {"operation": "sync"}, "admin"),
    ("GET", "/v1/tasks/{task_id}"): ("/v1/tasks/none", None, "write admin"),
    ("DELETE", "/v1/tasks/{task_id}"): ("/v1/tasks/none", None, "write admin"),
    ("GET", "/v1/aliases"): ("/v1/aliases", None, "search"),
    ("PUT", "/v1/aliases/{alias}"): ("/v1/aliases/live", {"index": "sample"}, "admin"),
    ("DELETE", "/v1/aliases/{alias}"): ("/v1/aliases/live", None, "admin"),
    ("GET", "/metrics"): ("/metrics", None, "admin"),
}  # fmt: skip
"""Every route that is not public: a request, and the scopes of which one is needed."""
LET_THROUGH = {
    ("POST", "/v1/indexes/{name}/documents"): "invalid",
    ("DELETE", "/v1/indexes/{name}/documents"): "invalid",
    ("POST", "/v1/indexes/{name}/snapshots"): "not_offered",
    ("POST", "/v1/tasks"): "not_offered",
    ("GET", "/v1/tasks/{task_id}"): "task_not_found",
    ("DELETE", "/v1/tasks/{task_id}"): "task_not_found",
}
"""What a key with the scope is told where the request of the matrix is such that it changes nothing."""


@pytest.fixture(scope="module")
def key_file(tmp_path_factory):
    return KeyFile(tmp_path_factory.mktemp("keys") / "keys.json")


@pytest.fixture(scope="module")
def keys(key_file):
    """A key of each scope, and some with less reach, by name."""
    found = {scope.value: key_file.add(Key("", scope.value, "", (scope.value,))) for scope in Scope}
    found["elsewhere"] = key_file.add(Key("", "elsewhere", "", tuple(Scope), indexes=("other*",)))
    found["slow"] = key_file.add(Key("", "slow", "", ("search",), per_minute=2))
    return found


@pytest.fixture(scope="module")
def guarded(start_server, key_file, keys):
    return start_server(keys=key_file.path)


def send(server, method: str, path: str, body: object, key: str | None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.request(method, server.address + path, json=body, headers=headers, timeout=60)


def test_every_route_is_in_the_matrix(guarded):
    """A new route has to say here which scope it needs."""
    paths = set()
    for path, operations in guarded.config.loaded_app.app.openapi()["paths"].items():
        paths |= {(method.upper(), path) for method in operations}
    told = {(method, path.replace(":path", "")) for method, path in REQUESTS}
    told |= {(method, path) for method, path in paths if path.startswith("/v1/sources")}  # test_served_sources.py
    assert paths - told == {("GET", path) for path in PUBLIC - {"/openapi.json"}}


@pytest.mark.parametrize(("method", "route"), REQUESTS)
def test_every_route_and_scope(guarded, keys, method, route):
    path, body, needed = REQUESTS[method, route]
    refused = send(guarded, method, path, body, None)
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
    assert refused.headers["www-authenticate"] == "Bearer"
    for scope in Scope:
        reply = send(guarded, method, path, body, keys[scope.value])
        if scope.value in needed.split():
            assert (
                reply.json()["code"] == LET_THROUGH[method, route]
                if (method, route) in LET_THROUGH
                else (reply.status_code == 200)
            ), (scope, reply.text)
        else:
            assert (reply.status_code, reply.json()["code"]) == (403, "forbidden"), scope


def test_a_batch_needs_the_scope_of_its_kind(guarded, keys):
    body = {"questions": ["Who?"], "kind": "ask"}
    assert send(guarded, "POST", "/v1/batch", body, keys["ask"]).status_code == 200
    assert send(guarded, "POST", "/v1/batch", body, keys["search"]).status_code == 403


@pytest.mark.parametrize("path", sorted(PUBLIC))
def test_public_routes_tell_nothing(guarded, path):
    assert httpx.get(guarded.address + path).status_code == 200
    assert "sample" not in httpx.get(guarded.address + path).text


@pytest.mark.parametrize("key", ["hk_AAAAAAAA_" + "x" * 43, "hk_", "x", "hk_AAAAAAAA_" + "x" * 5000, "é", "\x00"])
def test_keys_that_are_none(guarded, key):
    headers = {b"Authorization": b"Bearer " + key.encode()}
    try:
        reply = httpx.post(f"{guarded.address}/v1/search", json=QUESTION, headers=headers)
    except httpx.LocalProtocolError:
        return
    assert reply.status_code in (400, 401)


def test_a_key_with_another_secret(guarded, keys):
    wrong = keys["search"][:-5] + "AAAAA"
    assert send(guarded, "POST", "/v1/search", QUESTION, wrong).status_code == 401


def test_an_index_out_of_reach_is_not_there(guarded, keys):
    assert send(guarded, "GET", "/v1/indexes", None, keys["elsewhere"]).json() == {"indexes": []}
    assert send(guarded, "GET", "/v1/models", None, keys["elsewhere"]).json()["data"] == []
    for method, route in REQUESTS:
        path, body, _ = REQUESTS[method, route]
        reply = send(guarded, method, path, body, keys["elsewhere"])
        codes = {"/v1/tasks/none": "task_not_found", "/v1/aliases/live": "alias_not_found"}
        if reply.status_code == 200:
            assert path in ("/v1/indexes", "/v1/models", "/metrics", "/v1/aliases", "/v1/tasks"), path
            continue
        if reply.json()["code"] == "invalid":  # a body that is wrong is told before any index is looked for
            continue
        assert (reply.status_code, reply.json()["code"]) == (404, codes.get(path, "index_not_found")), path
        assert "sample" not in reply.text


def test_a_keys_minute(guarded, keys):
    replies = [send(guarded, "POST", "/v1/search", QUESTION, keys["slow"]) for _ in range(3)]
    assert [reply.status_code for reply in replies] == [200, 200, 429]
    assert replies[2].json()["code"] == "too_many"
    assert 1 <= int(replies[2].headers["retry-after"]) <= 30
    batch = send(guarded, "POST", "/v1/batch", {"questions": ["Who?"] * 3}, keys["slow"])
    assert batch.status_code == 429


def test_rates_fill_evenly():
    now = [0.0]
    rates, access = Rates(lambda: now[0]), Access("a", frozenset(), per_minute=6)
    assert [rates.wait(access) for _ in range(6)] == [0.0] * 6
    assert rates.wait(access) == pytest.approx(10)
    now[0] = 10.0
    assert rates.wait(access) == 0.0
    assert rates.wait(access, 3) == pytest.approx(30)
    now[0] = 1000.0
    assert rates.wait(access, 6) == 0.0
    assert rates.wait(access, 7) > 0
    assert rates.wait(Access("b", frozenset())) == 0.0


def test_revoked_keys_are_refused_at_once(guarded, key_file):
    key = key_file.add(Key("", "short", "", ("search",)))
    assert send(guarded, "POST", "/v1/search", QUESTION, key).status_code == 200
    key_file.revoke(key.split("_")[1])
    assert send(guarded, "POST", "/v1/search", QUESTION, key).status_code == 401


def test_a_file_that_is_damaged_lets_nobody_in(start_server, tmp_path):
    keys = KeyFile(tmp_path / "keys.json")
    key = keys.add(Key("", "one", "", ("search",)))
    server = start_server(keys=keys.path)
    keys.path.write_text("{")
    reply = send(server, "POST", "/v1/search", QUESTION, key)
    assert (reply.status_code, reply.json()["code"]) == (503, "not_ready")
    assert "keys.json" not in reply.text


def test_the_file_holds_hashes_and_is_private(tmp_path):
    keys = KeyFile(tmp_path / "deep" / "keys.json")
    made = [keys.add(Key("", f"k{number}", "", ("search",))) for number in range(2)]
    text = keys.path.read_text()
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600
    assert not any(key.split("_", 2)[2] in text for key in made)
    assert len({key.sha256 for key in keys.listed()}) == 2
    assert keys.access(made[0]).scopes == {Scope.SEARCH}
    os.chmod(keys.path, 0o640)
    with pytest.raises(ConfigError, match="others may read the keys"):
        KeyFile(keys.path).listed()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 2, "keys": []}', '{"version": 1, "keys": [{}]}', "[" * 100_000,
             '{"version": 1, "keys": [{"id": "a", "name": "", "sha256": "", "scopes": ["all"], "indexes": [], '
             '"sources": [], "per_minute": null}]}']
)  # fmt: skip
def test_files_that_are_no_keys(tmp_path, text):
    path = tmp_path / "keys.json"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="keys.json"):
        KeyFile(path).listed()


def test_writers_do_not_lose_each_others_keys(tmp_path):
    path = tmp_path / "keys.json"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: KeyFile(path).add(Key("", str(number), "", ("search",))), range(24)))
    assert sorted(int(key.name) for key in KeyFile(path).listed()) == list(range(24))


def test_keys_from_the_command_line(tmp_path):
    file = str(tmp_path / "keys.json")

    def run(*arguments: str):
        return CliRunner().invoke(build_app(), ["serve", "keys", *arguments, "--file", file])

    made = run("add", "dash\u001b[31m", "--scope", "search", "--per-minute", "5", "--index", "a*")
    key = made.stdout.strip()
    assert made.exit_code == 0
    access = KeyFile(tmp_path / "keys.json").access(key)
    assert (access.scopes, access.indexes, access.per_minute) == ({Scope.SEARCH}, ("a*",), 5)
    listed = run("list")
    assert key not in listed.output
    assert "\\u001b[31m: search; indexes a*, sources *, 5 a minute" in listed.output
    (shown,) = json.loads(run("list", "--json").output)
    assert "sha256" not in shown
    assert run("add", "x", "--scope", "everything").exit_code == 2
    assert "revoked" in run("revoke", shown["id"]).output
    assert run("revoke", shown["id"]).exit_code == 1
    assert KeyFile(tmp_path / "keys.json").access(key) is None
