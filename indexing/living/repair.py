"""Repair: a damaged part is made again from its corpus where that is whole, else dropped; links are decided again.

Tokens and postings follow from the corpus, so a part whose corpus is whole loses nothing: it gets the same vectors
under the same codebook, or under a new one where that is damaged. A part whose corpus is damaged, or of which nobody
knows any more what is deleted, is dropped with its links, and the report says what it held. Rows of a damaged layer of
links are linked anew. The result is one new snapshot; a crash before leaves the damaged one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from helios.config import load_config
from helios.corpus import CorpusStore
from helios.errors import HeliosError, IndexFormatError
from helios.graph.data import LINK_COLUMNS, DataGraph
from helios.index.checksums import Checksums
from helios.index.durable import sha256_file
from helios.index.fsck import Finding, Progress, check_index
from helios.index.languages import Analysis
from helios.index.lexical import Postings
from helios.index.lock import WriteLock
from helios.index.manifest import CODEBOOKS_FOLDER, Codebook, Manifest, Part, Piece, read_manifest
from helios.index.quantiser import Quantiser
from helios.index.settings import search_settings
from helios.index.snapshot import Snapshot, remove_retired
from helios.index.tombstones import Tombstones
from indexing.commit import link_file, write_tombstones
from indexing.encoding import encode_texts, fit_codebook, node_count, node_texts, sample_nodes
from indexing.linking import LinkArrays
from indexing.living.draft import Draft, Numbers, free_name, place_piece, revision_of
from indexing.living.index import WAIT, Index
from indexing.living.layers import placed_layer
from indexing.living.links import chosen
from indexing.living.parts import Codec, placed_part, write_part
from indexing.living.workspace import remove_orphans, workspace
from indexing.progress import Progress as Stages
from indexing.progress import SilentProgress
from indexing.stage import file_entries
from indexing.stages.lexical import language_samples

SEED = 0


@dataclass(frozen=True, slots=True)
class Lost:
    """A part that was dropped: how much of it was not deleted, and the ids as far as they can still be read."""

    part: str
    reason: str
    tables: int
    segments: int
    passages: int
    table_ids: tuple[str, ...]
    passage_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What was found, what was done about it, and what fsck finds now: no errors."""

    generation: int
    findings: tuple[Finding, ...]
    lost: tuple[Lost, ...] = ()
    rebuilt: tuple[str, ...] = ()
    """Parts whose tokens and postings were made again from their corpus: nothing of them is lost."""
    relinked: int = 0
    """Rows whose links were decided again."""
    left: tuple[Finding, ...] = ()

    def record(self) -> dict[str, Any]:
        """As plain JSON data."""
        return asdict(self)


def repair_index(
    directory: Path, *, progress: Progress | None = None, stages: Stages | None = None, wait: float = WAIT,
    overrides: Iterable[str] = (),
) -> RepairReport:  # fmt: skip
    """Check an index and mend what can be mended; a sound one stays as it is, without what killed writers left behind.

    `progress` is called with the bytes that were checked; `overrides` may say where the models of the index lie now.
    HeliosError where no part can be kept or a model is not that of the index, IndexFormatError where the manifest
    itself is damaged, IndexLockedError while another writer is at work.
    """
    with WriteLock(directory, wait=wait):
        remove_orphans(directory)
        findings = tuple(check_index(directory, progress=progress))
        manifest = read_manifest(directory)
        errors = [finding for finding in findings if finding.severity == "error"]
        if not errors:
            remove_retired(directory, manifest)  # a repair that was killed after its commit left the old pieces
            return RepairReport(manifest.generation, findings)
        with workspace(directory) as work:
            report = _Repair(directory, manifest, errors, work, stages or SilentProgress(), overrides).run()
        remove_retired(directory, read_manifest(directory))
        return replace(report, findings=findings, left=tuple(check_index(directory)))


class _Repair:
    """One repair, with the write lock held."""

    def __init__(
        self, index: Path, manifest: Manifest, errors: Sequence[Finding], work: Path, stages: Stages,
        overrides: Iterable[str],
    ) -> None:  # fmt: skip
        self.index, self.manifest, self.errors, self.work, self.stages = index, manifest, errors, work, stages
        nothing = {part.name: Tombstones.none() for part in manifest.parts}
        unopened = Snapshot(index, manifest, [], nothing, Checksums(index, manifest.listed))
        config = search_settings(unopened, load_config(None, list(overrides)))
        self.living = Index(index, config, progress=stages)

    def run(self) -> RepairReport:
        """The new snapshot."""
        deleted = {part.name: self._deleted(part) for part in self.manifest.parts}
        lost = [part for part in self.manifest.parts if deleted[part.name] is None or not self._corpus_is_whole(part)]
        kept = [part for part in self.manifest.parts if part not in lost]
        if not kept:
            raise HeliosError(
                f"{self.index}: the corpus of every part is damaged, so nothing can be kept: restore a backup, or "
                "build the index again"
            )
        told = tuple(self._told(part, deleted[part.name]) for part in lost)
        before = Draft(
            self.index, self.manifest, self.manifest.parts,
            tuple(layer for layer in self.manifest.links if not self._problem(layer)), self.manifest.codebooks,
            {part.name: _all_of(part) for part in lost} | {part.name: _known(deleted, part) for part in kept},
        )  # fmt: skip
        after, rebuilt = self._rebuilt(before, kept)
        manifest, relinked = self._relinked(before, after, kept)
        return RepairReport(manifest.generation, (), told, rebuilt, relinked)

    def _problem(self, piece: Piece) -> str:
        """What is wrong with a piece; empty where nothing is."""
        own = {f"{piece.folder}/{entry.path}" for entry in piece.files}
        inside = (one for one in self.errors if one.path in own or f"{one.path}/".startswith(f"{piece.folder}/"))
        return next((f"{one.path}: {one.problem}" for one in inside), "")

    def _deleted(self, part: Part) -> Tombstones | None:
        """What is deleted of a part; None where nobody knows."""
        if not any(one.path == part.tombstones.path for one in self.errors):
            return Tombstones.read(self.index / part.tombstones.path)
        return None if part.counts.deleted else Tombstones.none()

    def _corpus_is_whole(self, part: Part) -> bool:
        place = f"{part.folder}/corpus"
        if "corpus" not in part.components or any(f"{one.path}/".startswith(f"{place}/") for one in self.errors):
            return False
        try:
            store = CorpusStore.open(self.index / place)
        except IndexFormatError:
            return False
        return (store.segment_count, len(store.passages)) == (part.counts.segments, part.counts.passages)

    def _told(self, part: Part, deleted: Tombstones | None) -> Lost:
        """What a part held that was not deleted."""
        counts, alive = part.counts, np.ones(part.counts.segments + part.counts.passages, bool)
        if deleted is not None:
            alive[deleted.nodes[deleted.nodes < len(alive)]] = False
        rows, passages = alive[: counts.segments], alive[counts.segments :]
        reason = self._problem(part) or f"{part.tombstones.path}: what is deleted of it cannot be read"
        tables, table_ids, passage_ids = counts.tables, (), ()
        try:
            store = CorpusStore.open(self.index / part.folder / "corpus")
            shown = np.diff(np.append(0, np.cumsum(rows))[store.segment_offsets]) > 0
            tables = int(shown.sum())
            table_ids = tuple(store.tables.id(number) for number in np.flatnonzero(shown).tolist())
            passage_ids = tuple(store.passages.id(number) for number in np.flatnonzero(passages).tolist())
        except (IndexFormatError, IndexError):
            pass  # as far as they can be read
        return Lost(part.name, reason, tables, int(rows.sum()), int(passages.sum()), table_ids, passage_ids)

    def _rebuilt(self, before: Draft, kept: Sequence[Part]) -> tuple[Draft, tuple[str, ...]]:
        """The parts that are kept, those that are damaged made again; nodes keep their numbers."""
        bad = {codebook.name: self._problem(codebook) for codebook in self.manifest.codebooks}
        damaged = [part for part in kept if self._problem(part) or bad.get(part.codebook)]
        named = {part.codebook for part in kept}
        codebooks = tuple(one for one in before.codebooks if one.name in named and not bad[one.name])
        after = replace(
            before, parts=tuple(kept), codebooks=codebooks, links=(),
            deleted={part.name: before.deleted[part.name] for part in kept},
        )  # fmt: skip
        fresh: Codec | None = None
        for part in damaged:
            known = next((one for one in codebooks if one.name == part.codebook), None)
            if known is None and fresh is None:
                after, fresh = self._fitted(after, damaged)
            codec = fresh if known is None else self._codec(after, known)
            assert codec is not None
            after = self._made_again(after, part, codec)
        for part in after.parts:
            if any(one.path == part.tombstones.path for one in self.errors):
                after = _with_part(after, part.name, self._untouched(part))
        return after, tuple(part.name for part in damaged)

    def _made_again(self, after: Draft, part: Part, codec: Codec) -> Draft:
        folder = self.work / f"part-{part.name}"
        for entry in part.files:
            if entry.path.startswith("corpus/"):
                link_file(self.index / part.folder / entry.path, folder / entry.path)
        chunk = self.living.config.advanced.encoder.chunk
        tokens = write_part(folder, self.work, codec, chunk=chunk, progress=self.stages)
        placed = placed_part(
            after, folder, codebook=codec.codebook.name, tokens=tokens, inputs_sha256=part.inputs_sha256
        )
        return _with_part(after, part.name, placed)

    def _untouched(self, part: Part) -> Part:
        """A part of which nothing is deleted, with a file that says so."""
        entry = write_tombstones(self.index, part.name, Tombstones.none(), revision=revision_of(part) + 1)
        return part.model_copy(update={"tombstones": entry})

    def _codec(self, after: Draft, codebook: Codebook) -> Codec:
        bits = self.living.config.tokens.bits
        quantiser = Quantiser.open(self.index / codebook.folder, bits=bits)
        return Codec(self._encoder(), codebook, quantiser, self._analysis(after))

    def _fitted(self, after: Draft, damaged: Sequence[Part]) -> tuple[Draft, Codec]:
        """A new codebook, fitted to the largest of the parts that have none any more."""
        largest = max(damaged, key=lambda part: part.counts.segments + part.counts.passages)
        store, encoder = CorpusStore.open(self.index / largest.folder / "corpus"), self._encoder()
        random = np.random.default_rng(SEED)
        nodes = sample_nodes(store, random)
        texts = [text for node in nodes.tolist() for text in node_texts(store, node, node + 1)]
        config = self.living.config
        quantiser = fit_codebook(
            encode_texts(texts, encoder).vectors_TD, random, growth=node_count(store) / max(1, len(nodes)),
            bits=config.tokens.bits, centroids=config.advanced.encoder.centroids, seed=SEED,
        )  # fmt: skip
        folder, name = self.work / "codebook", free_name(after, CODEBOOKS_FOLDER)
        folder.mkdir()
        quantiser.save(folder)
        files = file_entries(folder)
        place_piece(self.index, CODEBOOKS_FOLDER, name, folder)
        codebook = Codebook(name=name, folder=f"{CODEBOOKS_FOLDER}/{name}", files=files)
        after = replace(after, codebooks=(*after.codebooks, codebook))
        return after, Codec(encoder, codebook, quantiser, self._analysis(after))

    def _encoder(self) -> Any:
        """The encoder of the index, by what its manifest says of it."""
        encoder, wanted = self.living.encoder, self.manifest.models
        found = {"encoder": encoder.base.sha256}
        if encoder.adapter is not None:
            found["adapter"] = sha256_file(encoder.adapter)
        for role, digest in found.items():
            if role not in wanted or wanted[role].sha256 != digest:
                raise HeliosError(
                    f"{self.index}: its vectors come from another encoder than the configured one ({digest[:12]}): set "
                    "encoder.model and encoder.adapter to those that it was built with"
                )
        return encoder

    def _analysis(self, after: Draft) -> Analysis:
        """How texts became terms: as a sound part says, else told from the texts again."""
        for part in self.manifest.parts:
            if "lexical" in part.components and not self._problem(part):
                return Postings(self.index / part.folder / "lexical").analysis
        part = next(part for part in self.manifest.parts if self._corpus_is_whole(part))
        return Analysis.of_texts(language_samples(CorpusStore.open(self.index / part.folder / "corpus")))

    def _relinked(self, before: Draft, after: Draft, kept: Sequence[Part]) -> tuple[Manifest, int]:
        """One layer of the links that are left and those of damaged layers, decided again."""
        reader = after.reader()
        links = _links_of(before.reader().graph) if before.links else LinkArrays.concatenate([])
        lost = {name for layer in self.manifest.links if self._problem(layer) for name in layer.parts}
        rows: dict[int, Numbers] = {
            at: reader.numbering.segments[at] for at, part in enumerate(kept) if part.name in lost
        }
        decided = np.zeros(0, np.int64)
        if rows and self.living.links.source != "none":
            with self.stages.stage("link") as meter:
                decision = self.living.links.of_rows(reader, rows, self.work, meter)
            decided = decision.rows
            links = LinkArrays.concatenate([chosen(links, ~np.isin(links.segments, decided)), decision.links])
        if self.manifest.links:
            layer = placed_layer(after, reader, links, np.zeros(0, np.int64), self.work / "links")
            after = after.with_links(layer)
        return after.commit(), len(decided)


def _all_of(part: Part) -> Tombstones:
    """That a whole part is deleted: nobody opens its files then."""
    nodes = np.arange(part.counts.segments + part.counts.passages, dtype=np.int64)
    return replace(Tombstones.none(), nodes=nodes)


def _known(deleted: Mapping[str, Tombstones | None], part: Part) -> Tombstones:
    found = deleted[part.name]
    assert found is not None
    return found


def _with_part(draft: Draft, name: str, part: Part) -> Draft:
    """The draft with a part in the place of another one, of which the same nodes are deleted."""
    deleted = {part.name if own == name else own: one for own, one in draft.deleted.items()}
    parts = tuple(part if one.name == name else one for one in draft.parts)
    return replace(draft, parts=parts, deleted=deleted)


def _links_of(graph: DataGraph) -> LinkArrays:
    """The links of a graph."""
    counts = np.diff(graph.link_offsets)
    sides = (np.repeat(graph.edge_segments, counts), np.repeat(graph.edge_passages, counts))
    columns = {name.removeprefix("link_"): getattr(graph, name) for name in LINK_COLUMNS}
    return LinkArrays(
        *(side.astype(np.int64) for side in sides),
        *(np.asarray(columns[name], np.int64) for name in ("columns", "starts", "ends")),
        np.asarray(columns["scores"], np.float32),
    )
