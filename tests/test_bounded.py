"""A bounded memory: what it keeps, what it forgets, and that threads may share it."""

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.bounded import Bounded


def test_what_was_asked_for_the_longest_ago_goes_first() -> None:
    memory: Bounded[str, int] = Bounded(2)
    for number, key in enumerate("ab"):
        memory.put(key, number)
    assert memory.get("a") == 0
    memory.put("c", 2)
    assert [memory.get(key) for key in "abc"] == [0, None, 2]
    assert len(memory) == 2


def test_a_limit_in_bytes() -> None:
    memory: Bounded[str, bytes] = Bounded(10, size=len)
    memory.put("small", b"1234")
    memory.put("large", b"12345678901")
    assert memory.get("large") is None
    memory.put("other", b"1234567")
    assert (memory.get("small"), memory.get("other")) == (None, b"1234567")


def test_a_key_that_is_put_again_is_counted_once() -> None:
    memory: Bounded[str, bytes] = Bounded(10, size=len)
    for _ in range(100):
        memory.put("a", b"12345678")
    memory.put("b", b"12")
    assert (memory.get("a"), memory.get("b")) == (b"12345678", b"12")


def test_nothing_is_kept_where_nothing_may_be() -> None:
    memory: Bounded[str, bytes] = Bounded(0, size=len)
    made = [memory.of("a", lambda: b"1") for _ in range(3)]
    assert made == [b"1"] * 3
    assert len(memory) == 0


def test_a_value_is_made_when_it_is_not_there() -> None:
    memory: Bounded[int, str] = Bounded(1)
    asked: list[int] = []

    def made(key: int) -> str:
        return memory.of(key, lambda: asked.append(key) or str(key))

    assert [made(1), made(1), made(2), made(1)] == ["1", "1", "2", "1"]
    assert asked == [1, 2, 1]


def test_an_error_while_making_is_passed_on_and_kept_nowhere() -> None:
    memory: Bounded[int, int] = Bounded(2)
    with pytest.raises(ZeroDivisionError):
        memory.of(1, lambda: 1 // 0)
    assert memory.of(1, lambda: 5) == 5


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 6), st.booleans())), st.integers(0, 12))
def test_it_keeps_what_an_ordered_dict_would(steps: list[tuple[int, int, bool]], limit: int) -> None:
    """Values cost what they are; a key's value is put again with another cost."""
    memory: Bounded[int, int] = Bounded(limit, size=lambda value: value)
    expected: OrderedDict[int, int] = OrderedDict()
    for key, value, is_put in steps:
        if not is_put:
            assert memory.get(key) == expected.get(key)
            if key in expected:
                expected.move_to_end(key)
        elif value <= limit:
            expected.pop(key, None)
            memory.put(key, value)
            expected[key] = value
            while sum(expected.values()) > limit:
                expected.popitem(last=False)
        else:
            memory.put(key, value)
    assert {key: memory.get(key) for key in expected} == expected
    assert len(memory) == len(expected)


def test_threads_share_it_and_its_limit_holds() -> None:
    """Sixteen threads put and ask for keys of all costs; every value is that of its key, whatever is forgotten."""
    memory: Bounded[int, bytes] = Bounded(300, size=len)
    start = Barrier(16)

    def work(seed: int) -> bool:
        rng, right = Random(seed), True
        start.wait()
        for _ in range(2000):
            key = rng.randrange(60)
            value = memory.of(key, lambda key=key: bytes([key]) * (key + 1))
            right = right and value == bytes([key]) * (key + 1)
        return right

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))
    kept = {key: value for key in range(60) if (value := memory.get(key)) is not None}
    assert 0 < sum(map(len, kept.values())) <= 300
    assert len(memory) == len(kept)
    memory.put(1000, b"x" * 300)  # the books are right only if this forgets all the others
    assert len(memory) == 1
