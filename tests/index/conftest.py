"""Small token stores and indexes with random vectors, for the tests of the kernels and of search."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from helios.corpus import CorpusStore, CorpusWriter
from helios.graph import DataGraph
from helios.index.lexical import write_postings
from helios.index.manifest import Codebook, Counts, Links, Manifest, Part, write_manifest
from helios.index.quantiser import Quantiser
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot
from helios.index.tokens import TokenStore, write_tokens
from helios.index.tombstones import Tombstones
from helios.types import Passage, Table
from indexing.commit import write_tombstones
from indexing.encoding import node_texts
from indexing.stage import file_entries

VOCABULARY = 50
DIMENSION = 32


@pytest.fixture(scope="session")
def unit_vectors() -> Callable[[np.random.Generator, int], np.ndarray]:
    """Random unit vectors (count, 32)."""
    return _unit_vectors


@pytest.fixture(scope="session")
def make_store(tmp_path_factory) -> Callable[..., TokenStore]:
    """A store of nodes with so many tokens each, in chunks of `chunk` nodes; its codebook is beside it."""

    def make(lengths: list[int], *, bits: int = 2, seed: int = 0, chunk: int = 3) -> TokenStore:
        directory, fitted = tmp_path_factory.mktemp("store"), _fitted(bits)
        (directory / "codebook").mkdir()
        fitted.save(directory / "codebook")
        _write_tokens(directory, lengths, fitted, seed=seed, chunk=chunk)
        return TokenStore(directory / "tokens", codebook=directory / "codebook")

    return make


@pytest.fixture(scope="session")
def make_index(tmp_path_factory) -> Callable[..., IndexReader]:
    """An index of one table and some passages with given words, a token each, and edges; vectors are random.

    `parts` is a list of (rows, passages): the words of each. `edges` are pairs of numbers in all parts together.
    """

    def make(
        parts: Sequence[tuple[Sequence[str], Sequence[str]]], edges: Sequence[tuple[int, int]], *, bits: int = 2,
        seed: int = 0, codebooks: int = 1,
    ) -> IndexReader:  # fmt: skip
        directory = tmp_path_factory.mktemp("index")
        fitted = [_fitted(bits, seed=number) for number in range(codebooks)]
        books = tuple(_piece(Codebook, directory, "codebooks", n, quantiser.save) for n, quantiser in enumerate(fitted))
        written = []
        for number, (rows, passages) in enumerate(parts):
            book = number % codebooks
            counts = Counts(tables=1, segments=len(rows), passages=len(passages))

            def write(folder: Path, number=number, rows=rows, passages=passages, book=book) -> None:
                _write_part(folder, rows, passages, fitted[book], name=f"{number}", seed=seed + number)

            fields = {"counts": counts, "corpus_sha256": "", "inputs_sha256": "", "codebook": books[book].name}
            fields["tombstones"] = write_tombstones(directory, f"{number + 1:04d}", Tombstones.none())
            written.append(_piece(Part, directory, "parts", number, write, **fields))
        names = tuple(part.name for part in written)
        links = _piece(Links, directory, "links", 0, _graph(parts, edges), parts=names, edges=len(set(edges)))
        counts = sum((part.counts for part in written), Counts())
        manifest = Manifest(
            generation=1, created="", code_version="", counts=counts, corpus_sha256="", models={}, config={},
            parts=tuple(written), links=(links,), codebooks=books,
        )  # fmt: skip
        write_manifest(directory, manifest)
        return IndexReader.of(Snapshot.open(directory))

    return make


def _unit_vectors(random: np.random.Generator, count: int) -> np.ndarray:
    vectors = random.standard_normal((count, DIMENSION)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@cache
def _fitted(bits: int, *, seed: int = 0) -> Quantiser:
    return Quantiser.fit(_unit_vectors(np.random.default_rng(seed), 600), centroids=16, bits=bits, seed=seed)


def _write_tokens(directory: Path, lengths: Sequence[int], fitted: Quantiser, *, seed: int, chunk: int) -> None:
    random = np.random.default_rng(seed)
    stored = fitted.encode(_unit_vectors(random, sum(lengths)))
    held = [np.unique(random.integers(VOCABULARY, size=length)) for length in lengths]
    ends = np.cumsum([0, *lengths])
    chunks = []
    for first in range(0, len(lengths), chunk):
        last = min(first + chunk, len(lengths))
        span = slice(ends[first], ends[last])
        chunks.append(directory / f"chunk-{first:04d}.npz")
        np.savez(
            chunks[-1],
            counts=np.array(lengths[first:last], np.int64),
            frequencies=np.bincount(np.concatenate(held[first:last]), minlength=VOCABULARY).astype(np.int32),
            codes=stored.codes[span],
            scales=stored.scales[span],
            residuals=stored.residuals[span],
        )
    encoder = {"name": "random", "fingerprint": "0"}
    assert write_tokens(chunks, fitted, directory / "tokens", encoder=encoder) == sum(lengths)
    for path in chunks:
        path.unlink()


def _write_part(
    folder: Path, rows: Sequence[str], passages: Sequence[str], fitted: Quantiser, *, name: str, seed: int
) -> None:
    with CorpusWriter(folder / "corpus") as writer:
        writer.add(Table(f"t{name}", "", ("",), tuple((row,) for row in rows)))
        for number, words in enumerate(passages):
            writer.add(Passage(f"p{name}-{number}", "", words))
    store = CorpusStore.open(folder / "corpus")
    write_postings(node_texts(store, 0, len(rows) + len(passages)), folder / "lexical", segment_count=len(rows))
    lengths = [max(1, len(words.split())) for words in (*rows, *passages)]
    _write_tokens(folder, lengths, fitted, seed=seed, chunk=1000)


def _graph(parts: Sequence[tuple[Sequence[str], Sequence[str]]], edges: Sequence[tuple[int, int]]):
    segments, passages = (sum(len(part[side]) for part in parts) for side in (0, 1))
    left, right = (np.array([edge[side] for edge in edges], np.int64) for side in (0, 1))
    zeros = np.zeros(len(edges), np.int64)

    def write(folder: Path) -> None:
        DataGraph.write(
            folder, left, right, zeros, zeros, zeros + 1, zeros + 0.5, segment_count=segments, passage_count=passages
        )

    return write


def _piece(kind: type, index: Path, parent: str, number: int, write: Callable[[Path], object], **fields):
    """A numbered folder of an index with what `write` puts into it."""
    folder = index / parent / f"{number + 1:04d}"
    folder.mkdir(parents=True)
    write(folder)
    return kind(name=folder.name, folder=f"{parent}/{folder.name}", files=file_entries(folder), **fields)
