"""`helios serve` as a process: where it listens, how soon, how it leaves, and what it refuses to start with."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.config import load_config
from indexing.pipeline import build_index
from serving.cli import named_folders
from serving.settings import ServerSettings

QUESTION = {"question": "Which is the longest river of Europe?", "limit": 1}


@contextmanager
def process(index: Path, *arguments: str):
    """(process, address) of a server of its own."""
    command = [sys.executable, "-m", "helios", "serve", "--index", str(index), "--port", "0", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as started:
        try:
            line = started.stdout.readline()
            found = re.fullmatch(r"listening on (http://127\.0\.0\.1:\d+)\n", line)
            assert found, (line, started.stderr.read() if started.poll() is not None else "")
            yield started, found[1]
        finally:
            started.kill()


@pytest.mark.slow
def test_it_says_where_it_listens_and_leaves_without_losing_a_question(demo_index):
    """SIGTERM under load: what was accepted is answered, the process ends by itself, its logs are JSON."""
    with process(demo_index, "--permits", "1") as (server, address), httpx.Client(base_url=address) as watcher:
        assert watcher.get("/readyz").status_code == 200
        with ThreadPoolExecutor(8) as pool:
            replies = [pool.submit(httpx.post, f"{address}/v1/ask", json=QUESTION, timeout=60) for _ in range(8)]
            while 'helios_queue_waiting{rank="single"} 0.0' in watcher.get("/metrics").text:
                assert not all(reply.done() for reply in replies)
            server.send_signal(signal.SIGTERM)
            while (ready := watcher.get("/readyz")).status_code == 200:
                time.sleep(0.01)
            assert ready.json()["code"] == "not_ready"
            assert [reply.result().status_code for reply in replies] == [200] * 8
        _, errors = server.communicate(timeout=60)
    assert server.returncode == 0, errors
    lines = [json.loads(line) for line in errors.splitlines()]
    assert sum(line.get("route") == "/v1/ask" and line["status"] == 200 for line in lines) == 8
    assert "longest" not in errors


@pytest.mark.slow
def test_an_interrupt_ends_it_quietly(demo_index):
    with process(demo_index) as (server, _):
        time.sleep(0.3)
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=60)
    assert "Traceback" not in errors


def test_a_new_snapshot_is_served_without_a_restart(tmp_path, start_server):
    corpus, index, settings = tmp_path / "corpus", tmp_path / "index", load_config(overrides=["encoder.runtime=torch"])
    corpus.mkdir()
    (corpus / "bridges.csv").write_text("Bridge,Opened\nForth Bridge,1890\nTay Bridge,1887\n")
    build_index(corpus, index, config=settings)
    server = start_server(indexes={"bridges": index})
    with httpx.Client(base_url=server.address, timeout=60) as client:
        first = client.post("/v1/search", json={"question": "When was the bridge opened?", "limit": 1}).json()
        (corpus / "more.csv").write_text("Bridge,Opened\nGarabit Viaduct,1884\n")
        build_index(corpus, index, config=settings)
        end = time.monotonic() + 60
        while client.get("/v1/indexes/bridges").json()["generation"] == first["coverage"]["generation"]:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert client.get("/v1/indexes/bridges").json()["rows"] == 3
        body = {"question": "When was the bridge opened?", "limit": 1, "cursor": first["next_cursor"]}
        gone = client.post("/v1/search", json=body)
        assert (gone.status_code, gone.json()["code"]) == (410, "snapshot_gone")
        found = client.post("/v1/search", json={"question": "Garabit Viaduct", "limit": 1}).json()
        assert found["evidence"]["edges"][0]["segment"]["cells"] == ["Garabit Viaduct", "1884"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_other_addresses_need_keys(sample_index, host):
    result = CliRunner().invoke(build_app(), ["serve", "--index", str(sample_index), "--host", host])
    assert result.exit_code == 1
    assert "helios serve keys add" in result.stderr


def test_wrong_arguments(tmp_path, sample_index):
    def run(*arguments: str):
        return CliRunner().invoke(build_app(), ["serve", *arguments])

    assert run("--host", "127.0.0.1").exit_code == 2
    absent = run("--index", str(tmp_path / "absent"), "--port", "0")
    assert (absent.exit_code, "absent" in absent.stderr) == (1, True)
    keys = run("--index", str(sample_index), "--keys", str(tmp_path / "none.json"), "--port", "0")
    assert keys.exit_code == 1
    assert "helios serve keys add" in keys.stderr
    assert "Traceback" not in absent.stderr + keys.stderr


def test_a_port_that_is_taken(sample_index, server):
    port = server.bound.getsockname()[1]
    result = CliRunner().invoke(build_app(), ["serve", "--index", str(sample_index), "--port", str(port)])
    assert result.exit_code == 1
    assert "give another --port" in result.stderr


def test_a_missing_extra_is_named_with_its_command(sample_index):
    arguments = ["serve", "--index", str(sample_index)]
    code = f"import sys; sys.modules['fastapi'] = None\nfrom helios.cli import build_app; build_app()({arguments!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert 'pip install "helios-retrieval[serve]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_names_of_indexes(tmp_path):
    assert named_folders(["a/b", "c=d/e=f"]) == {"b": Path("a/b"), "c": Path("d/e=f")}
    for wrong in (["a/x", "b/x"], ["/"], ["na me=x"], ["=x"], ["../..=x"]):
        with pytest.raises(Exception, match="NAME=FOLDER"):
            named_folders(wrong)


def test_hosts_of_addresses():
    assert ServerSettings({}, host="127.0.0.1").hosts == {"localhost", "127.0.0.1", "[::1]"}
    assert ServerSettings({}, host="192.0.2.1").hosts == {"192.0.2.1"}
    assert ServerSettings({}, host="2001:db8::1", allowed_hosts=("Name.example",)).hosts == {
        "[2001:db8::1]", "name.example"
    }  # fmt: skip
