"""All that is visible of an index, its parts under one numbering: what every stage of a search reads.

Segments of all parts come first, in the order of the parts, then passages. Deleted nodes have no number: no stage can
meet them. A filter makes another reader over the same files with fewer nodes (`IndexReader.narrowed`), and the
statistics of the whole.

Shape legend: N nodes, S segments, P passages, V token numbers of the encoder.
"""

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from helios.bounded import Bounded
from helios.corpus.store import CorpusStore
from helios.corpus.view import CorpusView, Shown, corpus_of
from helios.errors import IndexFormatError
from helios.graph import DataGraph
from helios.graph.assembly import Layer, assembled
from helios.index.arrays import check_below, check_finite, check_offsets, check_runs, map_array
from helios.index.lexical import Postings, Statistics, VisibleNodes
from helios.index.quantiser import Quantiser
from helios.index.snapshot import LinksView, PartView, Snapshot
from helios.index.titles import TitleTerms
from helios.index.tokens import TokenStore
from helios.index.units import Units, edge_units
from helios.index.visible import Numbering, VisiblePostings, VisibleTokens
from helios.once import once
from helios.types import Edge, Link

Corpus = CorpusStore | CorpusView
FloatArray = NDArray[np.float32]
Numbers = NDArray[np.int64]
Value = TypeVar("Value")
REMEMBERED = 8000
"""Words of rows and passages that are kept for the next question; a kilobyte each or so."""
POOL_BLOCK = 512
"""Nodes whose token vectors are decoded at once for pooling."""


class PartFiles:
    """The components of one part, each mapped on first use; parts of one codebook share it."""

    def __init__(self, view: PartView, codebooks: dict[Path, Quantiser]) -> None:
        self.view = view
        self._codebooks = codebooks

    @once
    def corpus(self) -> CorpusStore:
        """Tables and passages."""
        store, counts = CorpusStore.open(self.view.verified("corpus")), self.view.part.counts
        self._agree("corpus", store.segment_count, counts.segments, "segments")
        self._agree("corpus", len(store.passages), counts.passages, "passages")
        return store

    @once
    def tokens(self) -> TokenStore:
        """Token vectors of all nodes."""
        folder, codebook = self.view.verified("tokens"), self.view.verified_codebook()
        store, counts = TokenStore(folder, codebook=codebook, opened=self._codebooks), self.view.part.counts
        self._agree("tokens", store.node_count, counts.segments + counts.passages, "nodes")
        if store.pooled is not None:
            self._agree("tokens", len(store.pooled), counts.passages, "mean vectors")
        return store

    @once
    def postings(self) -> Postings:
        """Term counts of all nodes."""
        postings, counts = Postings(self.view.verified("lexical")), self.view.part.counts
        self._agree("lexical", postings.node_count, counts.segments + counts.passages, "nodes")
        self._agree("lexical", postings.segment_count, counts.segments, "segments")
        return postings

    @once
    def titles(self) -> TitleTerms:
        """Terms of all titles; read from the corpus where an older build did not store them."""
        stored = TitleTerms.open(self.view.verified("lexical"))
        if stored is None:
            return TitleTerms.of(self.corpus.passages.titles(), self.postings.idf, self.postings.analysis)
        self._agree("lexical", stored.passage_count, self.view.part.counts.passages, "titles")
        return stored

    def take_over(self, before: "PartFiles") -> None:
        """Have what was opened of the same files already."""
        for name in ("corpus", "tokens", "postings", "titles"):
            if name in before.__dict__:
                self.__dict__[name] = before.__dict__[name]

    def is_of(self, view: PartView) -> bool:
        """Whether a part of another snapshot has these very files and this codebook."""
        own = self.view
        return (own.part.folder, own.part.files, own.codebook) == (view.part.folder, view.part.files, view.codebook)

    def _agree(self, component: str, found: int, expected: int, noun: str) -> None:
        """Kernels go over all nodes of the part in every component."""
        if found != expected:
            raise IndexFormatError(
                f"{self.view.directory / component}: damaged: holds {found} {noun}, the manifest has {expected}; "
                "restore it or build the index again"
            )


class IndexReader:
    """The visible nodes of a snapshot with their texts, links, vectors and postings; threads may share it."""

    def __init__(
        self, parts: Sequence[PartFiles], layers: Sequence[LinksView], numbering: Numbering,
        *, whole: "IndexReader | None" = None,
    ) -> None:  # fmt: skip
        """`whole` is the reader that this one hides nodes of."""
        self.parts = tuple(parts)
        self.layers = tuple(layers)
        self.numbering = numbering
        self._whole = whole

    @classmethod
    def of(cls, snapshot: Snapshot, *, after: "IndexReader | None" = None) -> "IndexReader":
        """Everything in a snapshot that is not deleted; files that `after`, of another one, has open are taken over."""
        segments, passages = zip(*map(_alive, snapshot.parts), strict=True)
        counts = [view.part.counts for view in snapshot.parts]
        sizes = [one.segments for one in counts], [one.segments + one.passages for one in counts]
        whole = not any(len(view.deleted) for view in snapshot.parts)
        numbering = Numbering.of(segments, passages, *sizes, whole=whole)
        return cls(_part_files(snapshot, () if after is None else after.parts), snapshot.links, numbering)

    def narrowed(self, shown: NDArray[np.bool_]) -> "IndexReader":
        """A reader of those nodes (N) that are marked; how rare words are is still counted over all."""
        own, segments, passages = self.numbering, [], []
        for part in range(len(self.parts)):
            (_, first), (_, first_passage) = own.spans(part)
            segments.append(own.segments[part][shown[first : first + len(own.segments[part])]])
            passages.append(own.passages[part][shown[first_passage : first_passage + len(own.passages[part])]])
        whole = own.whole and bool(shown.all())
        numbering = Numbering.of(segments, passages, own.part_segments, own.part_nodes, whole=whole)
        return IndexReader(self.parts, self.layers, numbering, whole=self._whole or self)

    def __repr__(self) -> str:
        return f"IndexReader(parts={len(self.parts)}, segments={self.segment_count}, passages={self.passage_count})"

    @property
    def segment_count(self) -> int:
        """Visible segments: nodes with numbers below it are segments."""
        return self.numbering.segment_count

    @property
    def passage_count(self) -> int:
        """Visible passages."""
        return self.numbering.passage_count

    @property
    def node_count(self) -> int:
        """Visible nodes; as a number on a side of an edge it stands for 'no such node'."""
        return self.numbering.node_count

    @once
    def corpus(self) -> Corpus:
        """Tables, segments and passages by number and by id."""
        own = self.numbering
        stores = [part.corpus for part in self.parts]
        return corpus_of([Shown(*one) for one in zip(stores, own.segments, own.passages, strict=True)])

    @once
    def graph(self) -> DataGraph:
        """The links between visible segments and passages."""
        return assembled(self.link_layers, segment_count=self.segment_count, passage_count=self.passage_count)

    @once
    def link_layers(self) -> list[Layer]:
        """The stored layers of links, by visible numbers."""
        if not self.layers:
            raise IndexFormatError(f"{self.parts[0].view.index}: the index holds no links; build it with all stages")
        numbers = {part.view.part.name: self.numbering.numbers_of(at) for at, part in enumerate(self.parts)}
        sizes = {part.view.part.name: part.view.part.counts for part in self.parts}
        for view in self.layers:
            for name in view.links.parts:
                if name not in sizes:
                    raise IndexFormatError(
                        f"{view.directory}: links nodes of part {name}, which the index does not have"
                    )
        return [
            _layer(view, [(*numbers[name], sizes[name].segments, sizes[name].passages) for name in view.links.parts])
            for view in self.layers
        ]

    @once
    def statistics(self) -> Statistics:
        """How rare words are and how long texts, over all nodes that are not deleted."""
        return self._whole.statistics if self._whole is not None else Statistics(self._visible_nodes())

    @once
    def tokens(self) -> VisibleTokens:
        """Token vectors of visible nodes."""
        stores = [part.tokens for part in self.parts]
        if self._whole is not None:
            whole = self._whole.tokens
            return VisibleTokens(stores, self.numbering, whole.frequencies, counted=whole.counted)
        alive = [
            store.frequencies - part.view.deleted.frequencies(len(store.frequencies))
            for store, part in zip(stores, self.parts, strict=True)
            if store.node_count
        ]
        frequencies = np.sum(alive, axis=0) if alive else np.zeros(0, np.int64)
        return VisibleTokens(stores, self.numbering, frequencies, counted=self.node_count)

    @once
    def postings(self) -> VisiblePostings:
        """Term counts of visible nodes."""
        return VisiblePostings([part.postings for part in self.parts], self.numbering, self.statistics)

    @once
    def titles(self) -> TitleTerms:
        """Terms of the titles of visible passages."""
        if len(self.parts) == 1 and self.numbering.whole:
            return self.parts[0].titles
        pairs = zip((part.titles for part in self.parts), self.numbering.passages, strict=True)
        return TitleTerms.joined(list(pairs), self.statistics.idf)

    @once
    def units(self) -> Units:
        """What is ranked: every edge, and every node without one."""
        return edge_units(self.graph)

    @property
    def encoder(self) -> dict[str, str]:
        """Name and fingerprint of the encoder whose vectors the index holds."""
        return self.parts[0].tokens.encoder

    @property
    def bits(self) -> int:
        """Bits a dimension of the stored residuals."""
        return self.parts[0].tokens.quantiser.bits

    def edge_links(self, edge: Edge) -> tuple[Link, ...]:
        """Where an edge comes from; empty for lone nodes and for pairs that are not linked."""
        if edge.segment is None or edge.passage is None:
            return ()
        number = self.graph.edge_number(edge.segment, edge.passage)
        return () if number is None else self.graph.links(number)

    def pooled_nodes(self) -> tuple[FloatArray, FloatArray]:
        """One unit vector a node, the mean of its stored token vectors: segments (S, D), passages (P, D)."""
        dimension = self.parts[0].tokens.quantiser.dimension
        pooled = np.empty((self.node_count, dimension), np.float32)
        for part, files in enumerate(self.parts):
            for nodes, first in self.numbering.spans(part):
                for start in range(0, len(nodes), POOL_BLOCK):
                    block = nodes[start : start + POOL_BLOCK]
                    pooled[first + start : first + start + len(block)] = _pooled(files.tokens, block)
        return pooled[: self.segment_count], pooled[self.segment_count :]

    def remembered(self, kind: str, key: Hashable, make: Callable[[], Value]) -> Value:
        """What depends on the index's texts alone, made once for the questions that need it; bounded, the oldest go."""
        return self._memory.of((kind, key), make)  # type: ignore[return-value]

    @once
    def _memory(self) -> Bounded[tuple[str, Hashable], object]:
        return Bounded(REMEMBERED)

    def _visible_nodes(self) -> list[VisibleNodes]:
        own = self.numbering
        return [
            VisibleNodes(part.postings, segments, passages, own.whole)
            for part, segments, passages in zip(self.parts, own.segments, own.passages, strict=True)
        ]


def _part_files(snapshot: Snapshot, before: Sequence[PartFiles]) -> list[PartFiles]:
    """The parts of a snapshot; those that an earlier one has too keep what is open of them, and share its codebooks."""
    codebooks: dict[Path, Quantiser] = {}
    parts = [PartFiles(view, codebooks) for view in snapshot.parts]
    for part in parts:
        for old in before:
            if old.is_of(part.view):
                part.take_over(old)
                if "tokens" in part.__dict__ and part.view.codebook is not None:
                    codebooks[part.view.codebook_path] = part.tokens.quantiser
    return parts


def _alive(view: PartView) -> tuple[Numbers, Numbers]:
    """Numbers of a part's segments and of its passages that are not deleted."""
    counts, deleted = view.part.counts, view.deleted.nodes
    if len(deleted) and deleted[-1] >= counts.segments + counts.passages:
        raise IndexFormatError(f"{view.directory}: a deleted node that the part does not have; run `helios index fsck`")
    alive = np.ones(counts.segments + counts.passages, bool)
    alive[deleted] = False
    return np.flatnonzero(alive[: counts.segments]), np.flatnonzero(alive[counts.segments :])


def _layer(view: LinksView, parts: Sequence[tuple[Numbers, Numbers, int, int]]) -> Layer:
    """A layer of edges with the visible number of each of its nodes.

    `parts` has, for each part that the layer names, the numbers of its segments and passages and how many it has. A
    layer of few nodes lists them (`segments.npy`, `passages.npy`), another one has them all.
    """
    graph = DataGraph.open(view.verified())
    _check_graph(view.directory, graph)
    segments = np.concatenate([_padded(own, count) for own, _, count, _ in parts])
    passages = np.concatenate([_padded(own, count) for _, own, _, count in parts])
    listed = [
        _listed(view.directory / name, len(numbers))
        for name, numbers in (("segments.npy", segments), ("passages.npy", passages))
    ]
    sides = []
    for numbers, own, count, noun in (
        (segments, listed[0], graph.segment_count, "segments"), (passages, listed[1], graph.passage_count, "passages")
    ):  # fmt: skip
        chosen = numbers if own is None else numbers[own]
        if len(chosen) != count:
            raise IndexFormatError(f"{view.directory}: links {count} {noun}, its parts hold {len(chosen)}")
        sides.append(chosen)
    decided = _listed(view.directory / "decided.npy", len(segments))
    known = np.zeros(0, np.int64) if decided is None else segments[decided]
    return Layer(graph, sides[0], sides[1], known[known >= 0])


def _padded(numbers: Numbers, count: int) -> Numbers:
    """Numbers of all nodes of a side; hidden ones at the end are -1."""
    return np.concatenate([numbers, np.full(count - len(numbers), -1, np.int64)])


def _check_graph(place: Path, graph: DataGraph) -> None:
    """What kernels and edges follow; `DataGraph.verify` reads all of it against all of it."""
    check_offsets(place / "segment_offsets.npy", graph.segment_offsets, graph.edge_count)
    check_offsets(place / "passage_offsets.npy", graph.passage_offsets, graph.edge_count)
    check_offsets(place / "link_offsets.npy", graph.link_offsets, graph.link_count)
    check_below(place / "edge_segments.npy", graph.edge_segments, graph.segment_count)
    check_below(place / "edge_passages.npy", graph.edge_passages, graph.passage_count)
    check_below(place / "passage_edges.npy", graph.passage_edges, graph.edge_count)
    check_runs(place / "edge_segments.npy", graph.segment_offsets, graph.edge_segments)
    check_runs(place / "passage_edges.npy", graph.passage_offsets, graph.edge_passages[graph.passage_edges])
    check_below(place / "link_columns.npy", graph.link_columns, 1 << 15)
    check_finite(place / "link_scores.npy", graph.link_scores)


def _listed(path: Path, count: int) -> Numbers | None:
    """The nodes of a side that a layer lists, of so many."""
    if not path.exists():
        return None
    listed = np.asarray(map_array(path, np.int64), np.int64)
    check_below(path, listed, count)
    return listed


def _pooled(store: TokenStore, nodes: Numbers) -> FloatArray:
    """The unit means of the stored token vectors of nodes that ascend: (nodes, D)."""
    first, last = int(nodes[0]), int(nodes[-1]) + 1
    bounds = np.array(store.offsets[first : last + 1])
    sums = np.add.reduceat(store.decode(int(bounds[0]), int(bounds[-1])), bounds[:-1] - bounds[0])[nodes - first]
    means: FloatArray = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return means
