"""A value that is made once, by whichever thread comes first."""

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from helios.once import once

made = count()


class Lamp:
    @once
    def light(self) -> int:
        """The light."""
        time.sleep(0.01)
        return next(made)

    @once
    def broken(self) -> int:
        raise ValueError("no light")


def test_threads_get_the_same_value():
    lamp = Lamp()
    before = next(made)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: lamp.light, range(16))) == {before + 1}
    assert Lamp().light != lamp.light


def test_a_failure_is_not_kept():
    lamp = Lamp()
    for _ in range(2):
        with pytest.raises(ValueError, match="no light"):
            _ = lamp.broken
    assert "broken" not in lamp.__dict__


def test_the_class_shows_the_docstring():
    assert Lamp.light.__doc__ == "The light."


def test_objects_stay_picklable():
    lamp = Lamp()
    assert pickle.dumps(lamp)
    assert lamp.light == lamp.light
