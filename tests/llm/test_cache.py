"""The cache of replies: processes at once, a bound, damage."""

import logging
import multiprocessing
from pathlib import Path

from helios.llm import ReplyCache


def test_what_is_put_is_got_and_the_last_one_wins(tmp_path: Path):
    cache = ReplyCache(tmp_path / "replies.sqlite")
    assert cache.get("a") is None
    cache.put("a", "ä 1")
    cache.put("a", "ä 2")
    assert cache.get("a") == "ä 2"
    assert ReplyCache(cache.path).get("a") == "ä 2"


def test_the_oldest_replies_go(tmp_path: Path):
    cache = ReplyCache(tmp_path / "replies.sqlite", entries=3)
    for number in range(5):
        cache.put(str(number), "reply")
    assert [cache.get(str(number)) for number in range(5)] == [None, None, "reply", "reply", "reply"]


def test_processes_share_a_cache(tmp_path: Path):
    path = tmp_path / "replies.sqlite"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_fill, args=(str(path), worker)) for worker in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    cache = ReplyCache(path)
    assert all(cache.get(f"{worker}-{n}") == f"reply {n}" for worker in range(2) for n in range(20))


def test_damage_is_a_warning_and_a_miss(tmp_path: Path, caplog):
    path = tmp_path / "replies.sqlite"
    path.write_bytes(b"this is no database" * 100)
    cache = ReplyCache(path)
    with caplog.at_level(logging.WARNING):
        assert cache.get("a") is None
        cache.put("a", "reply")
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert ReplyCache(path / "below-a-file").get("a") is None
    ReplyCache(path / "below-a-file").put("a", "reply")


def _fill(path: str, worker: int) -> None:
    cache = ReplyCache(path)
    for number in range(20):
        cache.put(f"{worker}-{number}", f"reply {number}")
