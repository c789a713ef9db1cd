"""The next snapshot of an index, until its manifest is swapped in.

A draft is what the current snapshot is, with pieces that came and nodes that are deleted. Its pieces lie in the index's
folders already, where nobody looks at them before the manifest names them. The caller holds the write lock.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helios import __version__
from helios.corpus import CorpusStore
from helios.index.checksums import Checksums
from helios.index.durable import fsync_tree, remove_tree, replace_durably
from helios.index.manifest import Codebook, Counts, Links, Manifest, Part, creation_date, write_manifest
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot, next_piece
from helios.index.tombstones import Tombstones
from helios.models.encoder import MiniLMEncoder
from indexing.commit import write_tombstones
from indexing.encoding import as_read, held_by, node_texts, token_frequencies

Numbers = NDArray[np.int64]
_CHARACTERS = 10_000_000
"""Of texts whose tokens are counted at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """Parts, layers and codebooks of the next snapshot, and what is deleted of each part, by its name."""

    index: Path
    base: Manifest
    parts: tuple[Part, ...]
    links: tuple[Links, ...]
    codebooks: tuple[Codebook, ...]
    deleted: Mapping[str, Tombstones]

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Draft":
        """What the snapshot holds."""
        manifest = snapshot.manifest
        deleted = {view.part.name: view.deleted for view in snapshot.parts}
        return cls(snapshot.directory, manifest, manifest.parts, manifest.links, manifest.codebooks, deleted)

    def reader(self) -> IndexReader:
        """All that the next snapshot will show; its layers of links are those that the draft has."""
        manifest = self.base.model_copy(update={"parts": self.parts, "links": self.links, "codebooks": self.codebooks})
        return IndexReader.of(Snapshot(self.index, manifest, [], self.deleted, Checksums(self.index, manifest.listed)))

    def with_part(self, part: Part) -> "Draft":
        """The same with a part of which nothing is deleted."""
        return replace(self, parts=(*self.parts, part), deleted={**self.deleted, part.name: Tombstones.none()})

    def with_links(self, links: Links) -> "Draft":
        """The same with one more layer of edges."""
        return replace(self, links=(*self.links, links))

    def without(self, nodes: Mapping[str, Numbers], encoder: MiniLMEncoder) -> "Draft":
        """The same with nodes of some parts deleted, by their names; those that are deleted already stay so."""
        reader = self.reader()
        deleted = dict(self.deleted)
        for files in reader.parts:
            name = files.view.part.name
            if name not in nodes:
                continue
            new = np.setdiff1d(nodes[name], deleted[name].nodes)
            own = as_read(encoder, files)
            found = np.zeros(encoder.vocabulary_size, np.int64)
            for texts in _batches(files.corpus, new):
                found += token_frequencies(texts, own)
            before = deleted[name].frequencies(len(found))
            deleted[name] = deleted[name].joined(new, held_by(files, found + before) - before)
        return replace(self, deleted=deleted)

    def commit(self) -> Manifest:
        """Write what is deleted, and swap the manifest in."""
        parts = tuple(self._written(part) for part in self.parts)
        counts = sum((part.counts for part in parts), Counts())
        manifest = self.base.model_copy(
            update={
                "generation": self.base.generation + 1,
                "created": creation_date(),
                "code_version": __version__,
                "counts": counts.model_copy(update={"edges": sum(layer.edges for layer in self.links)}),
                "corpus_sha256": _corpus_sha256(parts),
                "parts": parts,
                "links": self.links,
                "codebooks": self.codebooks,
            }
        )
        write_manifest(self.index, manifest)
        return manifest

    def _written(self, part: Part) -> Part:
        """A part with the file that says what is deleted of it, written anew where that changed."""
        deleted = self.deleted[part.name]
        if part.counts.deleted == len(deleted):
            return part
        entry = write_tombstones(self.index, part.name, deleted, revision=revision_of(part) + 1)
        counts = part.counts.model_copy(update={"deleted": len(deleted)})
        return part.model_copy(update={"tombstones": entry, "counts": counts})


def place_piece(index: Path, kind: str, name: str, folder: Path) -> None:
    """Make a finished folder of the workspace the piece `kind`/`name`, on the disk and under its name."""
    fsync_tree(folder)
    target = index / kind / name
    target.parent.mkdir(exist_ok=True)
    remove_tree(target)
    replace_durably(folder, target)


def free_name(draft: Draft, kind: str, pieces: Iterable[Part | Links | Codebook] = ()) -> str:
    """A name in the folder `kind` that nothing on the disk uses, nor any of the pieces that the draft has."""
    base = draft.base
    known = base.model_copy(  # what the draft has placed already is no leftover of another writer
        update={
            "parts": (*base.parts, *draft.parts),
            "links": (*base.links, *draft.links),
            "codebooks": (*base.codebooks, *draft.codebooks),
        }
    )
    taken = [int(piece.name) for piece in pieces if piece.folder.startswith(f"{kind}/")]
    return f"{max([int(next_piece(draft.index, kind, known)), *(number + 1 for number in taken)]):04d}"


def revision_of(part: Part) -> int:
    """How often what is deleted of a part was written."""
    _, _, revision = Path(part.tombstones.path).stem.rpartition("-")
    return int(revision) if revision.isdigit() else 0


def _batches(store: CorpusStore, nodes: Numbers) -> Iterator[list[str]]:
    """The texts of some nodes, a few at a time."""
    texts: list[str] = []
    characters = 0
    for node in nodes.tolist():
        texts += node_texts(store, node, node + 1)
        characters += len(texts[-1])
        if characters > _CHARACTERS:
            yield texts
            texts, characters = [], 0
    yield texts


def _corpus_sha256(parts: Sequence[Part]) -> str:
    if len(parts) == 1:
        return parts[0].corpus_sha256
    return hashlib.sha256("\n".join(part.corpus_sha256 for part in parts).encode()).hexdigest()
