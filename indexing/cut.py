"""Cut an index of one part into several, as if its corpus had been indexed bit by bit under one codebook.

Vectors, links and statistics are those of the source: nothing is encoded or linked again, and a search gives the same
edges and scores. For tests, and for measuring what parts cost.

    python -m indexing.cut INDEX --out OUT --parts 7
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from helios import __version__
from helios.corpus import CorpusStore, CorpusWriter
from helios.errors import HeliosError, IndexFormatError
from helios.graph.data import LINK_COLUMNS, DataGraph
from helios.index.durable import fsync_path, fsync_tree
from helios.index.languages import Analysis
from helios.index.lexical import Postings, write_postings
from helios.index.lock import LOCK_FILE, WriteLock
from helios.index.manifest import (
    CODEBOOKS_FOLDER,
    LINKS_FOLDER,
    PARTS_FOLDER,
    Codebook,
    Counts,
    Links,
    Manifest,
    Part,
    creation_date,
    write_manifest,
)
from helios.index.settings import built_with
from helios.index.snapshot import Snapshot
from helios.index.titles import TitleTerms
from helios.index.tokens import TokenStore, write_tokens
from helios.index.tombstones import Tombstones
from helios.models.encoder import MiniLMEncoder
from indexing.commit import corpus_sha256, link_file, write_tombstones
from indexing.encoding import node_texts, token_frequencies
from indexing.stage import Arrays, BuildRequest, file_entries
from indexing.stages.encode import load_encoder

Numbers = NDArray[np.int64]
CODEBOOK = "0001"
_TEXTS = 1000
"""Texts that are tokenised at once."""


def cut_index(source: Path, out: Path, parts: int) -> Manifest:
    """Write the index `source` once more into the new folder `out`, in so many parts; returns its manifest.

    Each part has neighbouring tables and passages, so that nodes keep their numbers, and a layer of links of its nodes
    to each other and to those of earlier parts. Memory: one part.

    ValueError for fewer parts than one or more than both tables and passages; IndexFormatError for a source of several
    parts or with deleted nodes, and for an `out` that is not empty.
    """
    with Snapshot.open(source) as snapshot:
        whole = _Whole.of(snapshot)
        most = max(len(whole.store.tables), len(whole.store.passages))
        if not 1 <= parts <= most:
            raise ValueError(f"parts must be from 1 to {most}, which the index has tables or passages for, got {parts}")
        out.mkdir(parents=True, exist_ok=True)
        if strange := [path.name for path in out.iterdir() if path.name != LOCK_FILE]:
            raise IndexFormatError(f"{out}: holds {strange[0]!r}; give an empty or new folder")
        with WriteLock(out):
            return _write(whole, out, parts)


@dataclass(frozen=True, slots=True)
class _Whole:
    """All components of the part that is cut."""

    snapshot: Snapshot
    store: CorpusStore
    tokens: TokenStore
    graph: DataGraph
    encoder: MiniLMEncoder
    analysis: Analysis

    @classmethod
    def of(cls, snapshot: Snapshot) -> "_Whole":
        if len(snapshot.parts) != 1 or len(snapshot.links) != 1 or len(snapshot.parts[0].deleted):
            raise IndexFormatError(
                f"{snapshot.directory}: has {len(snapshot.parts)} parts, or deleted nodes; only an index of one whole "
                "part can be cut: build it again"
            )
        (view,), (links,) = snapshot.parts, snapshot.links
        loaded = load_encoder(BuildRequest(snapshot.directory, built_with(snapshot)))
        tokens = TokenStore(view.path("tokens"), codebook=view.codebook_path)
        encoder = loaded.with_glossary(tokens.encoder.get("glossary"))
        if tokens.encoder["fingerprint"] != encoder.fingerprint:
            raise HeliosError(f"{snapshot.directory}: was built with another encoder ({tokens.encoder['name']})")
        analysis = Postings(view.path("lexical")).analysis
        return cls(
            snapshot, CorpusStore.open(view.path("corpus")), tokens, DataGraph.open(links.directory), encoder, analysis
        )


@dataclass(frozen=True, slots=True)
class _Slice:
    """Tables, segments and passages [first, last) of one part."""

    tables: tuple[int, int]
    segments: tuple[int, int]
    passages: tuple[int, int]

    @property
    def nodes(self) -> int:
        return self.segments[1] - self.segments[0] + self.passages[1] - self.passages[0]


def _write(whole: _Whole, out: Path, parts: int) -> Manifest:
    slices = _slices(whole.store, parts)
    codebook = _write_codebook(whole, out)
    written = [_write_part(whole, out, f"{number:04d}", own) for number, own in enumerate(slices, start=1)]
    links = [_write_links(whole, out, slices[: number + 1], [part.name for part in written]) for number in range(parts)]
    counts = [part.counts.model_copy(update={"edges": layer.edges}) for part, layer in zip(written, links, strict=True)]
    source = whole.snapshot.manifest
    manifest = Manifest(
        generation=1,
        created=creation_date(),
        code_version=__version__,
        counts=sum(counts, Counts()),
        corpus_sha256=source.corpus_sha256,
        models=source.models,
        config=source.config,
        parts=tuple(part.model_copy(update={"counts": own}) for part, own in zip(written, counts, strict=True)),
        links=tuple(links),
        codebooks=(codebook,),
    )
    for folder in (PARTS_FOLDER, LINKS_FOLDER, CODEBOOKS_FOLDER):
        fsync_tree(out / folder)
    fsync_path(out)
    write_manifest(out, manifest)
    return manifest


def _slices(store: CorpusStore, parts: int) -> list[_Slice]:
    tables, passages = (
        np.linspace(0, count, parts + 1).round().astype(int).tolist()
        for count in (len(store.tables), len(store.passages))
    )
    segments = [int(store.segment_offsets[table]) for table in tables]
    ends = (list(zip(bounds, bounds[1:], strict=False)) for bounds in (tables, segments, passages))
    return [_Slice(*own) for own in zip(*ends, strict=True)]


def _write_codebook(whole: _Whole, out: Path) -> Codebook:
    (source,) = whole.snapshot.manifest.codebooks
    folder = f"{CODEBOOKS_FOLDER}/{CODEBOOK}"
    for name in whole.tokens.quantiser.arrays():  # of format 1 the folder has the tokens too
        link_file(whole.snapshot.directory / source.folder / f"{name}.npy", out / folder / f"{name}.npy")
    return Codebook(name=CODEBOOK, folder=folder, stages=source.stages, files=file_entries(out / folder))


def _write_part(whole: _Whole, out: Path, name: str, own: _Slice) -> Part:
    folder = out / PARTS_FOLDER / name
    with CorpusWriter(folder / "corpus") as writer:
        for table in whole.store.tables.between(*own.tables):
            writer.add(table)
        for passage in whole.store.passages.between(*own.passages):
            writer.add(passage)
    store = CorpusStore.open(folder / "corpus")
    tokens = _write_tokens(whole, store, folder / "tokens", own)
    texts = node_texts(store, 0, own.nodes)
    write_postings(texts, folder / "lexical", segment_count=store.segment_count, analysis=whole.analysis)
    TitleTerms.of(store.passages.titles(), Postings(folder / "lexical").idf, whole.analysis).write(folder / "lexical")
    files = file_entries(folder)
    return Part(
        name=name,
        folder=f"{PARTS_FOLDER}/{name}",
        counts=Counts(
            tables=len(store.tables), segments=store.segment_count, passages=len(store.passages), tokens=tokens
        ),
        corpus_sha256=corpus_sha256(files),
        inputs_sha256=whole.snapshot.manifest.parts[0].inputs_sha256,
        files=files,
        tombstones=write_tombstones(out, name, Tombstones.none()),
        codebook=CODEBOOK,
    )


def _write_tokens(whole: _Whole, store: CorpusStore, folder: Path, own: _Slice) -> int:
    """The tokens of the part's nodes as they are stored in the whole; returns how many there are."""
    first = whole.store.segment_count
    spans = (own.segments, store.segment_count), (tuple(first + end for end in own.passages), len(store.passages))
    with TemporaryDirectory(dir=folder.parent.parent, prefix=".cut-") as scratch:
        chunks: list[Path] = []
        for (start, stop), count in spans:
            if not count:
                continue
            offsets = np.array(whole.tokens.offsets[start : stop + 1])
            stored = whole.tokens.quantised(int(offsets[0]), int(offsets[-1]))
            before = 0 if not chunks else store.segment_count
            chunks.append(Path(scratch) / f"{len(chunks)}.npz")
            np.savez(
                chunks[-1],
                **_pooled(whole, max(0, start - first), max(0, stop - first)),
                counts=np.diff(offsets),
                frequencies=_frequencies(store, whole.encoder, before, before + count),
                codes=stored.codes,
                scales=stored.scales,
                residuals=stored.residuals,
            )
        return write_tokens(chunks, whole.tokens.quantiser, folder, encoder=whole.tokens.encoder)


def _pooled(whole: _Whole, start: int, stop: int) -> Arrays:
    """Mean vectors of passages [start, stop) of the whole; nothing where it was built without."""
    return {} if whole.tokens.pooled is None else {"pooled": whole.tokens.pooled[start:stop]}


def _frequencies(store: CorpusStore, encoder: MiniLMEncoder, start: int, stop: int) -> NDArray[np.int32]:
    found = np.zeros(encoder.vocabulary_size, np.int32)
    for first in range(start, stop, _TEXTS):
        found += token_frequencies(list(node_texts(store, first, min(first + _TEXTS, stop))), encoder)
    return found


def _write_links(whole: _Whole, out: Path, slices: Sequence[_Slice], names: Sequence[str]) -> Links:
    """The layer of the last of some parts: edges that touch its nodes and none of a later part's.

    Where there are several parts the layer lists the nodes that it links, as one that was added later would.
    """
    graph, own, name = whole.graph, slices[-1], names[len(slices) - 1]
    last_segment, last_passage = own.segments[1], own.passages[1]
    segments, passages = graph.edge_segments, graph.edge_passages
    chosen = (segments < last_segment) & (passages < last_passage)
    chosen &= (segments >= own.segments[0]) | (passages >= own.passages[0])
    counts = np.diff(graph.link_offsets)
    of_links = np.repeat(chosen, counts)
    sides: list[Numbers] = [np.asarray(side[chosen], np.int64) for side in (segments, passages)]
    folder = out / LINKS_FOLDER / name
    listed = [np.unique(side) for side in sides] if len(names) > 1 else []
    numbered = [np.searchsorted(nodes, side) for nodes, side in zip(listed, sides, strict=True)] if listed else sides
    columns: Iterator[Any] = (getattr(graph, column)[of_links] for column in LINK_COLUMNS)
    layer = DataGraph.write(
        folder,
        *(np.repeat(side, counts[chosen]) for side in numbered),
        *columns,
        segment_count=len(listed[0]) if listed else last_segment,
        passage_count=len(listed[1]) if listed else last_passage,
    )
    for noun, nodes in zip(("segments", "passages"), listed, strict=False):
        np.save(folder / f"{noun}.npy", nodes)
    return Links(
        name=name,
        folder=f"{LINKS_FOLDER}/{name}",
        parts=tuple(names[: len(slices)]),
        edges=layer.edge_count,
        files=file_entries(folder),
    )


def main(
    index: Annotated[Path, typer.Argument(help="Folder of an index of one part.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the new index.")],
    parts: Annotated[int, typer.Option(min=1, help="How many parts it gets.")],
) -> None:
    """Write an index once more, cut into several parts."""
    try:
        manifest = cut_index(index, out, parts)
    except (HeliosError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"{out}: {len(manifest.parts)} parts, {manifest.counts.segments} segments, {manifest.counts.passages} "
               f"passages, {manifest.counts.edges} edges")  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
