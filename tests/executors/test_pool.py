"""Workers and their pool: deadlines, memory, crashes, many threads, and what a worker may do."""

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import psutil
import pytest

from helios.errors import QueryFailed, QueryRejected, QueryTimeout, SourceError, SourceUnavailable
from helios.executors.base import Deadline, Language, Limits, NativeQuery
from helios.executors.pool import Engine, Worker, WorkerPool

HERE = Path(__file__).parent
ENGINE = Engine("pool_engine:open_session")
QUICK = Limits(timeout=0.5, max_memory=2**26)


def query(text: str, **parameters) -> NativeQuery:
    return NativeQuery(Language.SQL, text, parameters)


@pytest.fixture(autouse=True, scope="module")
def importable_engine():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(HERE))
        yield


@pytest.fixture
def pool():
    pool = WorkerPool(ENGINE, size=2)
    pool.warm_up()
    yield pool
    pool.close()


def worker_pid(pool: WorkerPool) -> int:
    return pool.run(query("pid"), Limits()).rows[0][0]


def test_a_query_is_answered_and_the_worker_kept(pool):
    result = pool.run(query("echo hello", a=1, b=b"\x00\xff"), Limits())
    assert (result.columns, result.rows, result.truncated) == (("value",), (("hello", 1, b"\x00\xff"),), None)
    assert worker_pid(pool) == worker_pid(pool)


def test_many_queries_give_what_each_gives_alone(pool):
    texts = ["echo one", "fail no such column", "rows 3000", "reject that", "echo five", "rows 2"]
    limits = Limits(max_rows=2500)
    outcomes = pool.run_many([query(text, n=number) for number, text in enumerate(texts)], limits, Deadline.after(10.0))
    for number, (text, outcome) in enumerate(zip(texts, outcomes, strict=True)):
        try:
            alone = pool.run(query(text, n=number), limits)
        except SourceError as error:
            assert (type(outcome), str(outcome)) == (type(error), str(error))
        else:
            assert (outcome.columns, outcome.rows, outcome.truncated) == (alone.columns, alone.rows, alone.truncated)
    assert worker_pid(pool) == worker_pid(pool)


def test_many_long_queries_with_long_replies_never_wait_for_each_other(pool):
    """Requests and replies are each many times what a pipe holds."""
    texts = [f"echo {letter * 50_000}" for letter in "abcdefghijklmnopqrst"]
    outcomes = pool.run_many([query(text) for text in texts], Limits(), Deadline.after(10.0))
    assert [outcome.rows[0][0] for outcome in outcomes] == [text.removeprefix("echo ") for text in texts]


@pytest.mark.parametrize(("text", "said"), [("sleep 5", QueryTimeout), ("die 3", QueryFailed), ("grow 9", QueryFailed)])
def test_of_many_queries_those_after_the_end_of_the_process_have_not_run(pool, text, said):
    queries = [query("pid"), query(text), query("pid")]
    limits = Limits(timeout=0.5 if said is QueryTimeout else 20.0, max_memory=2**26)
    first, second = pool.run_many(queries, limits, Deadline.after(30.0))
    assert isinstance(second, said)
    assert gone(first.rows[0][0])
    assert worker_pid(pool) != first.rows[0][0]


def test_many_queries_end_at_their_deadline(pool, within):
    with within(1.5):
        outcomes = pool.run_many([query("sleep 0.2") for _ in range(20)], Limits(timeout=1.0), Deadline.after(0.7))
    assert 1 < len(outcomes) < 6
    assert isinstance(outcomes[-1], QueryTimeout)


def test_idle_workers_end_and_the_next_query_starts_one():
    pool = WorkerPool(ENGINE, size=2, idle_seconds=0.3)
    try:
        first = worker_pid(pool)
        assert gone(first)
        second = worker_pid(pool)
        assert second != first and pool.run(query("echo hello"), Limits()).rows[0][0] == "hello"
        assert gone(second)
    finally:
        pool.close()


def test_a_worker_that_is_asked_is_not_idle():
    pool = WorkerPool(ENGINE, size=1, idle_seconds=2.0)
    try:
        pid = worker_pid(pool)
        until = monotonic() + 3.0
        while monotonic() < until:
            assert worker_pid(pool) == pid
            sleep(0.1)
    finally:
        pool.close()


def gone(pid: int) -> bool:
    """Whether a process has ended, or ends within five seconds."""
    until = monotonic() + 5
    while psutil.pid_exists(pid) and monotonic() < until:
        sleep(0.02)
    return not psutil.pid_exists(pid)


@pytest.mark.parametrize("text", ["sleep 60", "stuck"])
def test_a_query_is_stopped_at_its_deadline(pool, text, within):
    pid = worker_pid(pool)
    began = monotonic()
    with within(1.5), pytest.raises(QueryTimeout, match=r"after 0\.5 s"):
        pool.run(query(text), QUICK)
    assert monotonic() - began >= 0.5
    assert gone(pid)
    assert pool.run(query("echo next"), Limits()).rows == (("next",),)


@pytest.mark.parametrize("options", [{}, {"slow": 60}], ids=["in a query", "at the start of the engine"])
def test_an_interrupt_leaves_no_worker_behind(options):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    pool = WorkerPool(Engine(ENGINE.opener, options), size=1)
    if not options:
        pool.warm_up()
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            pool.run(query("sleep 60"), Limits(timeout=30))
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
        pool.close()
    until = monotonic() + 10
    while (left := workers()) and monotonic() < until:
        sleep(0.05)
    assert left == []


def workers() -> list[psutil.Process]:
    """Processes of this one that run an engine; those that have ended and wait to be forgotten are none."""
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # a zombie is one, too
            if "helios.executors.worker" in child.cmdline():
                found.append(child)
    return found


def test_a_query_is_stopped_at_its_memory(pool, within):
    with within(10), pytest.raises(QueryFailed, match="more than the 64 MB of memory"):
        pool.run(query("grow 100"), Limits(timeout=20, max_memory=2**26))
    assert pool.run(query("echo next"), Limits()).rows == (("next",),)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to its memory")
def test_a_query_cannot_outgrow_its_memory_between_two_looks(pool, monkeypatch, within):
    monkeypatch.setattr("helios.executors.pool.TICK", 60.0)
    with within(10), pytest.raises(QueryFailed, match="more memory than it may use"):
        pool.run(query("grow 1000"), Limits(timeout=30, max_memory=2**26))
    with pytest.raises(QueryFailed, match="most likely for want of memory: it may use 64 MB"):
        pool.run(query("abort"), Limits(timeout=30, max_memory=2**26))
    assert pool.run(query("echo next"), Limits()).rows == (("next",),)


def test_a_reply_that_is_too_large_is_not_read(pool):
    with pytest.raises(QueryFailed, match="bytes, more than the"):
        pool.run(query("long 800"), Limits(timeout=20, max_bytes=2**17))
    assert pool.run(query("echo next"), Limits()).rows == (("next",),)


def test_rows_are_capped_as_they_come(pool):
    result = pool.run(query("rows 1000000000000"), Limits(max_rows=5))
    assert (len(result), result.truncated) == (5, "rows")


@pytest.mark.parametrize("text", ["die 0", "die 7", "crash"])
def test_a_process_that_ends_is_replaced(pool, text):
    pid = worker_pid(pool)
    with pytest.raises(QueryFailed, match="process ended"):
        pool.run(query(text), Limits())
    assert worker_pid(pool) != pid


def test_errors_of_the_engine_keep_the_worker(pool):
    pid = worker_pid(pool)
    with pytest.raises(QueryFailed, match="no such thing"):
        pool.run(query("fail no such thing"), Limits())
    with pytest.raises(QueryRejected) as caught:
        pool.run(query("reject part"), Limits())
    assert (caught.value.reason, caught.value.part) == ("not this", "part")
    assert worker_pid(pool) == pid


def test_what_an_engine_prints_does_not_disturb(pool):
    assert pool.run(query("chatter on"), Limits()).rows == (("on",),)


def test_text_that_is_no_unicode_crosses(pool):
    assert pool.run(query("odd"), Limits()).rows == (("a\udcffb",),)
    assert pool.run(query("echo", a="\udcff"), Limits()).rows == (("", "\udcff"),)


def test_a_long_request_is_read(pool):
    assert len(pool.run(query("echo", a="x" * 2**20), Limits()).rows[0][1]) == 2**20


def test_a_killed_worker_is_noticed(pool):
    psutil.Process(worker_pid(pool)).kill()
    with pytest.raises(QueryFailed, match="process ended"):
        pool.run(query("echo hello"), Limits())
    assert pool.run(query("echo next"), Limits()).rows == (("next",),)


def test_a_halted_worker_does_not_hold_a_large_request_up(pool, within):
    worker = psutil.Process(worker_pid(pool))
    worker.suspend()
    with within(1.5), pytest.raises(QueryTimeout):
        pool.run(query("echo", a="x" * 2**22), QUICK)


def test_workers_outlive_the_thread_that_started_them():
    """The replacement of a killed worker is started by a thread of its own, which ends at once."""
    pool = WorkerPool(ENGINE, size=1)
    try:
        with pytest.raises(QueryTimeout):
            pool.run(query("sleep 60"), QUICK)
        pid = worker_pid(pool)
        sleep(0.3)
        assert worker_pid(pool) == pid
    finally:
        pool.close()


def test_all_workers_busy_is_said():
    pool = WorkerPool(ENGINE, size=1)
    pool.warm_up()
    thread = threading.Thread(target=lambda: pool.run(query("sleep 2"), Limits()))
    thread.start()
    sleep(0.3)
    with pytest.raises(SourceUnavailable, match="all 1 workers"):
        pool.run(query("echo"), QUICK)
    thread.join()
    assert pool.run(query("echo x"), QUICK).rows == (("x",),)
    pool.close()


def test_a_worker_that_is_being_started_is_waited_for_a_second():
    """The first second of the start of a process is not taken from a query's deadline."""
    pool = WorkerPool(Engine("pool_engine:open_session", {"slow": 0.3}), size=1)
    try:
        assert pool.run(query("echo x"), Limits(timeout=1.0)).rows == (("x",),)
        with pytest.raises(QueryTimeout):
            pool.run(query("sleep 60"), QUICK)
        assert pool.run(query("echo y"), Limits(timeout=1.0)).rows == (("y",),)
    finally:
        pool.close()


def test_a_slow_start_is_over_a_second_after_the_deadline_and_serves_the_next_query(within):
    pool = WorkerPool(Engine("pool_engine:open_session", {"slow": 3.0}), size=1)
    try:
        with within(2.0), pytest.raises(SourceUnavailable, match=r"did not start within 1\.5 s; ask again later"):
            pool.run(query("echo x"), QUICK)
        assert pool.run(query("echo y"), Limits(timeout=10)).rows == (("y",),)
    finally:
        pool.close()


def test_a_query_does_not_wait_for_the_end_of_a_process(pool, monkeypatch, within):
    """A process with gigabytes takes its time to give them back."""
    kill = Worker.kill
    monkeypatch.setattr(Worker, "kill", lambda worker: (sleep(2), kill(worker)))
    pid = worker_pid(pool)
    with within(1.5), pytest.raises(QueryTimeout):
        pool.run(query("sleep 60"), QUICK)
    assert gone(pid)


def test_many_threads_share_a_pool(pool):
    results: list[object] = []

    def ask(number: int) -> None:
        text = ("echo", "fail", "die 1")[number % 3] if number % 5 == 0 else "echo"
        try:
            results.append(pool.run(query(text, n=number), Limits(timeout=30)).rows[0][1] == number)
        except QueryFailed:
            results.append(text != "echo")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 40


def test_close_ends_a_query_under_way(pool, within):
    pid = worker_pid(pool)
    timer = threading.Timer(0.3, pool.close)
    timer.start()
    with within(3), pytest.raises(SourceUnavailable, match="closed"):
        pool.run(query("sleep 60"), Limits(timeout=30))
    timer.join()
    assert gone(pid)
    with pytest.raises(SourceUnavailable, match="closed"):
        pool.run(query("echo"), Limits())


def test_an_engine_that_does_not_open_is_unavailable():
    for engine in (Engine("pool_engine:open_session", {"broken": True}), Engine("pool_engine:nothing")):
        pool = WorkerPool(engine)
        for _ in range(3):
            with pytest.raises(SourceUnavailable, match="does not open|did not start"):
                pool.run(query("echo"), QUICK)
        pool.close()


def test_a_worker_sees_no_secrets(monkeypatch):
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    pool = WorkerPool(ENGINE, size=1)
    environment, folder = pool.run(query("environment"), Limits()).rows[0]
    pool.close()
    assert "hunter2" not in repr(environment)
    assert folder == "/"


def test_a_worker_writes_no_file(pool, tmp_path):
    with pytest.raises(QueryFailed, match="File too large"):
        pool.run(query(f"write {tmp_path / 'loot'}"), Limits())
    assert (tmp_path / "loot").stat().st_size == 0


def test_a_worker_reaches_no_network_where_the_system_lets_it_go_without(pool):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        try:
            pool.run(query(f"call {listener.getsockname()[1]}"), Limits())
        except QueryFailed:
            listener.settimeout(0.2)
            with pytest.raises(TimeoutError):
                listener.accept()
        else:
            pytest.skip("this system refuses network namespaces: the guards stand without them")


def test_workers_end_with_their_parent():
    code = (
        "import sys, threading; from helios.executors.pool import *\n"
        "from helios.executors.base import *\n"
        "pool = WorkerPool(Engine('pool_engine:open_session'))\n"
        "print(pool.run(NativeQuery(Language.SQL, 'pid'), Limits()).rows[0][0], flush=True)\n"
        "pool.run(NativeQuery(Language.SQL, 'sleep 60'), Limits(timeout=60))\n"
    )
    paths = os.pathsep.join([str(HERE), *filter(None, sys.path)])
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": paths}
    ) as parent:
        pid = int(parent.stdout.readline())
        parent.kill()
    until = monotonic() + 5
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE and monotonic() < until:
        sleep(0.05)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
