"""A corpus small enough to count by hand."""

from collections.abc import Iterator

import numpy as np
import pytest

from helios.graph import DataGraph
from helios.types import Passage, Segment, SegmentId


class TinyCorpus:
    """Rivers and bridges: five segments, four passages; implements the reading side of a corpus store."""

    def __init__(self) -> None:
        rows = [
            ("rivers", "Rivers", ("River", "Length"), [("Aare", "288"), ("Reuss", "164"), ("Inn", "518")]),
            ("bridges", "Bridges", ("Bridge", "Opened"), [("Kirchenfeld", "1883"), ("Untertor", "1490")]),
        ]
        self._segments = [
            Segment(SegmentId(table, row), title, "", header, cells)
            for table, title, header, body in rows
            for row, cells in enumerate(body)
        ]
        self.passages = [
            Passage("p/aare", "Aare", "The Aare flows through Bern and Thun ."),
            Passage("p/reuss", "Reuss", "The Reuss leaves Lake Lucerne ."),
            Passage("p/kirchenfeld", "Kirchenfeld Bridge", "An iron bridge across the Aare in Bern ."),
            Passage("p/moon", "Moon", "A lone satellite without tables ."),
        ]

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    def segment(self, number: int) -> Segment:
        return self._segments[number]

    def segments(self) -> Iterator[Segment]:
        return iter(self._segments)


@pytest.fixture
def corpus() -> TinyCorpus:
    return TinyCorpus()


@pytest.fixture
def graph(tmp_path) -> DataGraph:
    """Four edges, two of them at the Kirchenfeld row; Inn, Untertor and the passage Moon are alone."""
    segments, passages = [0, 1, 3, 3], [0, 1, 2, 0]
    zeros = np.zeros(4, dtype=np.int64)
    return DataGraph.write(
        tmp_path / "graph", segments, passages, zeros, zeros, zeros + 1, zeros + 1.0,
        segment_count=5, passage_count=4,
    )  # fmt: skip
