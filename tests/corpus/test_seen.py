"""The set of ids that were seen."""

from hypothesis import given
from hypothesis import strategies as st

from helios.corpus.seen import SeenIds


@given(st.lists(st.text(max_size=3), max_size=50))
def test_behaves_like_a_set(ids):
    seen, expected = SeenIds(), set()
    for record_id in ids:
        assert seen.add(record_id) == (record_id not in expected)
        expected.add(record_id)
    assert len(seen) == len(expected)


def test_grows():
    seen = SeenIds()
    assert all(seen.add(f"id {number}") for number in range(5000))
    assert not any(seen.add(f"id {number}") for number in range(5000))
