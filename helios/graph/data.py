"""The whole bipartite graph segment-passage on disk: compressed sparse rows in both directions.

Node numbers are those of the corpus store (segment number, passage number). Edges are numbered in
segment order: edge e is the e-th pair when pairs are sorted by segment, then passage. This module
knows nothing of texts, of scores for a question, or of how links were found.

Shapes: S segments, P passages, E edges (unique pairs), L links (mentions; every edge has at least one).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helios.errors import IndexFormatError
from helios.index.arrays import map_array
from helios.index.durable import fsync_tree, read_record, remove_tree, rename
from helios.types import Edge, Link

FORMAT = "helios-graph"
FORMAT_VERSION = 1
DTYPES: Mapping[str, str] = {
    "segment_offsets": "<i8",  # [S+1] into edges
    "edge_passages": "<i4",  # [E]
    "edge_segments": "<i4",  # [E]
    "passage_offsets": "<i8",  # [P+1] into passage_edges
    "passage_edges": "<i4",  # [E] edge numbers, ascending within a passage
    "link_offsets": "<i8",  # [E+1] into links
    "link_columns": "<i2",  # [L]
    "link_starts": "<i4",  # [L] characters of the cell
    "link_ends": "<i4",  # [L] exclusive
    "link_scores": "<f4",  # [L]
}

LINK_COLUMNS = ("link_columns", "link_starts", "link_ends", "link_scores")
"""Names of the arrays that have one value a link."""
Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class DataGraph:
    """The graph of one corpus, memory-mapped; opening it reads no node and no edge."""

    segment_count: int
    passage_count: int
    edge_count: int
    link_count: int
    segment_offsets: NDArray[np.int64]
    edge_passages: NDArray[np.int32]
    edge_segments: NDArray[np.int32]
    passage_offsets: NDArray[np.int64]
    passage_edges: NDArray[np.int32]
    link_offsets: NDArray[np.int64]
    link_columns: NDArray[np.int16]
    link_starts: NDArray[np.int32]
    link_ends: NDArray[np.int32]
    link_scores: NDArray[np.float32]

    def __repr__(self) -> str:
        counts = f"segments={self.segment_count}, passages={self.passage_count}, edges={self.edge_count}"
        return f"DataGraph({counts}, links={self.link_count})"

    @classmethod
    def write(
        cls,
        directory: Path | str,
        segments: ArrayLike,
        passages: ArrayLike,
        columns: ArrayLike,
        starts: ArrayLike,
        ends: ArrayLike,
        scores: ArrayLike,
        *,
        segment_count: int,
        passage_count: int,
    ) -> "DataGraph":
        """Write links (one entry each, any order) as a graph and open it.

        Equal pairs become one edge that keeps every link. The bytes depend only on the set of links, not
        on their order. A crash leaves the previous graph or none, plus at most a `.partial` folder, which
        the next write removes. Raises IndexFormatError for numbers out of range.
        """
        links = _checked_links(segments, passages, columns, starts, ends, scores, counts=(segment_count, passage_count))
        arrays = _arrays(links, segment_count=segment_count, passage_count=passage_count)
        header = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "segment_count": segment_count,
            "passage_count": passage_count,
            "edge_count": len(arrays["edge_passages"]),
            "link_count": len(arrays["link_columns"]),
        }
        _write_directory(Path(directory), header, arrays)
        return cls.open(directory)

    @classmethod
    def open(cls, directory: Path | str) -> "DataGraph":
        """Map a graph into memory, O(1); raises IndexFormatError naming the file and what is wrong."""
        directory = Path(directory)
        header = _read_header(directory / "graph.json")
        sizes = _sizes(header)
        arrays = {name: map_array(directory / f"{name}.npy", DTYPES[name], sizes[name]) for name in DTYPES}
        for name, end in (("segment_offsets", "edge"), ("passage_offsets", "edge"), ("link_offsets", "link")):
            if arrays[name][0] != 0 or arrays[name][-1] != header[f"{end}_count"]:
                raise IndexFormatError(
                    f"{directory / name}.npy: offsets must run from 0 to {header[f'{end}_count']}, "
                    f"found {arrays[name][0]} to {arrays[name][-1]}; rebuild the graph"
                )
        fields: dict[str, Any] = {**{name: header[name] for name in _COUNTS}, **arrays}
        return cls(**fields)

    def edge(self, edge_number: int) -> Edge:
        """The pair of node numbers of an edge."""
        self._check(edge_number, self.edge_count, "edge")
        return Edge(int(self.edge_segments[edge_number]), int(self.edge_passages[edge_number]))

    def edge_number(self, segment: int, passage: int) -> int | None:
        """The number of the edge between two nodes, None where there is none; O(log degree)."""
        self._check(segment, self.segment_count, "segment")
        start, end = self.segment_offsets[segment : segment + 2]
        position = int(start) + int(np.searchsorted(self.edge_passages[start:end], passage))
        if position < end and self.edge_passages[position] == passage:
            return position
        return None

    def edges_of_segment(self, segment: int) -> range:
        """Edge numbers of a segment (they are consecutive)."""
        self._check(segment, self.segment_count, "segment")
        return range(int(self.segment_offsets[segment]), int(self.segment_offsets[segment + 1]))

    def edges_of_passage(self, passage: int) -> NDArray[np.int32]:
        """Edge numbers int32[degree] of a passage, ascending."""
        self._check(passage, self.passage_count, "passage")
        return self.passage_edges[self.passage_offsets[passage] : self.passage_offsets[passage + 1]]

    def passages_of(self, segment: int) -> NDArray[np.int32]:
        """Passage numbers int32[degree] linked to a segment, ascending."""
        edges = self.edges_of_segment(segment)
        return self.edge_passages[edges.start : edges.stop]

    def segments_of(self, passage: int) -> NDArray[np.int32]:
        """Segment numbers int32[degree] linked to a passage, ascending."""
        return self.edge_segments[self.edges_of_passage(passage)]

    def links(self, edge_number: int) -> tuple[Link, ...]:
        """Where an edge comes from, ordered by column and position in the cell."""
        self._check(edge_number, self.edge_count, "edge")
        start, end = self.link_offsets[edge_number : edge_number + 2]
        return tuple(
            Link(int(column), int(first), int(last), float(score))
            for column, first, last, score in zip(
                self.link_columns[start:end],
                self.link_starts[start:end],
                self.link_ends[start:end],
                self.link_scores[start:end],
                strict=True,
            )
        )

    def verify(self) -> None:
        """Read everything and raise IndexFormatError at the first contradiction; O(E + L)."""
        for name in ("segment_offsets", "passage_offsets", "link_offsets"):
            if np.any(np.diff(getattr(self, name)) < 0):
                raise IndexFormatError(f"{name}.npy: offsets decrease; rebuild the graph")
        if np.any(np.diff(self.link_offsets) < 1):
            raise IndexFormatError("link_offsets.npy: an edge without a link; rebuild the graph")
        degrees = np.diff(self.segment_offsets)
        if not np.array_equal(np.repeat(np.arange(self.segment_count), degrees), self.edge_segments):
            raise IndexFormatError("edge_segments.npy: differs from segment_offsets.npy; rebuild the graph")
        if np.any((self.edge_passages < 0) | (self.edge_passages >= self.passage_count)):
            raise IndexFormatError("edge_passages.npy: a passage number out of range; rebuild the graph")
        keys = self.edge_segments.astype(np.int64) * max(self.passage_count, 1) + self.edge_passages
        if np.any(np.diff(keys) <= 0):
            raise IndexFormatError("edge_passages.npy: edges are not unique and sorted; rebuild the graph")
        offsets, edges = passage_side(self.edge_passages, self.passage_count)
        if not (np.array_equal(offsets, self.passage_offsets) and np.array_equal(edges, self.passage_edges)):
            raise IndexFormatError("passage_edges.npy: differs from edge_passages.npy; rebuild the graph")

    @staticmethod
    def _check(number: int, count: int, noun: str) -> None:
        if not 0 <= number < count:
            raise IndexError(f"{noun} {number} is out of range: the graph has {count} {noun}s")


_COUNTS = ("segment_count", "passage_count", "edge_count", "link_count")


def _checked_links(*columns: ArrayLike, counts: tuple[int, int]) -> tuple[Array, ...]:
    """Links as six arrays of equal length with numbers that fit the format."""
    names = ("segments", "passages", "columns", "starts", "ends", "scores")
    arrays = tuple(np.asarray(column) for column in columns)
    if len({array.shape for array in arrays}) != 1 or arrays[0].ndim != 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(names, arrays, strict=True))
        raise IndexFormatError(f"links must be six one-dimensional arrays of equal length, got {shapes}")
    limits = (*counts, 2**15, 2**31, 2**31)
    for name, array, limit in zip(names, arrays, limits, strict=False):
        if array.size and (array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= limit):
            raise IndexFormatError(f"graph links: {name} must be whole numbers in 0..{limit - 1}")
    if max(counts) >= 2**31:
        raise IndexFormatError(f"a graph holds at most 2^31 - 1 nodes of a kind, got {counts}")
    if np.any(arrays[4] < arrays[3]):
        raise IndexFormatError("graph links: a mention ends before it starts")
    if not np.all(np.isfinite(arrays[5].astype(np.float64))):
        raise IndexFormatError("graph links: scores must be finite numbers")
    kinds = (np.int64, np.int64, np.int16, np.int32, np.int32, np.float32)
    # Adding 0 turns -0.0 into 0.0: equal scores must have equal bytes.
    return tuple(array.astype(kind) + kind(0) for array, kind in zip(arrays, kinds, strict=True))


def _arrays(links: tuple[Array, ...], *, segment_count: int, passage_count: int) -> dict[str, Array]:
    """Every array of the format, by its name."""
    order = np.lexsort(tuple(reversed(links)))
    segments, passages, columns, starts, ends, scores = (array[order] for array in links)
    is_first = np.ones(len(segments), dtype=bool)
    is_first[1:] = (segments[1:] != segments[:-1]) | (passages[1:] != passages[:-1])
    firsts = np.flatnonzero(is_first)
    edge_segments, edge_passages = segments[firsts], passages[firsts]
    passage_offsets, passage_edges = passage_side(edge_passages, passage_count)
    arrays = {
        "segment_offsets": run_offsets(edge_segments, segment_count),
        "edge_passages": edge_passages,
        "edge_segments": edge_segments,
        "passage_offsets": passage_offsets,
        "passage_edges": passage_edges,
        "link_offsets": np.append(firsts, len(segments)),
        "link_columns": columns,
        "link_starts": starts,
        "link_ends": ends,
        "link_scores": scores,
    }
    return {name: np.ascontiguousarray(array, dtype=DTYPES[name]) for name, array in arrays.items()}


def run_offsets(numbers: Array, count: int) -> NDArray[np.int64]:
    """int64[count+1]: where each node's run starts."""
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(numbers, minlength=count), out=offsets[1:])
    return offsets


def passage_side(edge_passages: Array, passage_count: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Offsets and edge numbers of the direction passage -> segments."""
    edges = np.argsort(edge_passages, kind="stable").astype(np.int32)
    return run_offsets(edge_passages, passage_count), edges


def _write_directory(directory: Path, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write beside the target, then rename: readers see the old graph or the new one."""
    partial = directory.with_name(directory.name + ".partial")
    replaced = directory.with_name(directory.name + ".replaced")
    for leftover in (partial, replaced):
        remove_tree(leftover)
    partial.mkdir(parents=True)
    for name, array in arrays.items():
        np.save(partial / f"{name}.npy", array, allow_pickle=False)
    text = json.dumps(header, indent=2, sort_keys=True) + "\n"
    (partial / "graph.json").write_text(text, encoding="utf-8")
    fsync_tree(partial)
    if directory.exists():
        rename(directory, replaced)
    rename(partial, directory)
    remove_tree(replaced)


def _read_header(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise IndexFormatError(f"{path} is missing: this directory holds no graph")
    header = read_record(path)
    if header.get("format") != FORMAT:
        raise IndexFormatError(f"{path} is not a {FORMAT} file")
    if header.get("version") != FORMAT_VERSION:
        raise IndexFormatError(
            f"{path} has format version {header.get('version')!r}, this code reads {FORMAT_VERSION}; "
            "use a matching release of HELIOS or rebuild the graph"
        )
    for name in _COUNTS:
        if type(header.get(name)) is not int or header[name] < 0:
            raise IndexFormatError(f"{path}: {name} must be a whole number, found {header.get(name)!r}")
    return header


def _sizes(header: Mapping[str, int]) -> dict[str, int]:
    """The length of every array that the header promises."""
    sizes = dict.fromkeys(DTYPES, header["link_count"])
    sizes |= dict.fromkeys(("edge_passages", "edge_segments", "passage_edges"), header["edge_count"])
    sizes["segment_offsets"] = header["segment_count"] + 1
    sizes["passage_offsets"] = header["passage_count"] + 1
    sizes["link_offsets"] = header["edge_count"] + 1
    return sizes
