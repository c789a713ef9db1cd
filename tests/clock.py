"""Bounds in seconds. A machine that other programs share breaks one by chance, so a test that was only too slow is
run again up to twice (`pytest_collection_modifyitems` in conftest.py): it fails where it misses the bound thrice."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class TooSlow(AssertionError):
    """What was done is right and took longer than promised."""


@contextmanager
def within(seconds: float, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """The block ends without an error and takes less than this; `time.process_time` counts this process alone."""
    began = clock()
    yield
    took = clock() - began
    if took >= seconds:
        raise TooSlow(f"took {took:.2f} s, {seconds:g} s at most were promised")


def quick(seconds: float, call: Callable[[], object], *, times: int = 100) -> None:
    """The fast tenth of many calls takes less than this: a busy machine delays the rest."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    took.sort()
    fast, median, slow = (took[times * tenth // 10] for tenth in (1, 5, 9))
    print(f"p10 {fast * 1e3:.2f} ms, p50 {median * 1e3:.2f} ms, p90 {slow * 1e3:.2f} ms")
    if fast >= seconds:
        raise TooSlow(f"the fast tenth took {fast * 1e3:.2f} ms, {seconds * 1e3:g} ms at most were promised")
