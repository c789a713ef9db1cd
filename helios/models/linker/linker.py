"""The linker: a table in, scored links out.

`Linker` holds weights and knows no corpus; `prepare` builds what it needs of a corpus's passages into a
folder; `TableLinker` links tables against that folder, in as many processes as wanted.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Protocol
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from helios.errors import ModelError
from helios.models.linker.aliases import AliasTable, BoundAliases, bind
from helios.models.linker.arrays import Extra, workspace
from helios.models.linker.candidates import GIVEN, SEARCHED, SPELLED, pool_candidates, unresolved_mentions
from helios.models.linker.encoding import EncodedTable, TableEncoder
from helios.models.linker.features import Pairs, collective, describe_pairs
from helios.models.linker.forward import PassageWords
from helios.models.linker.passages import FORMAT, PassageIndex
from helios.models.linker.recognition import Recogniser
from helios.models.linker.routes import ExtraRoutes, Routes
from helios.models.linker.scorer import Scorer, ScorerSettings
from helios.types import Passage, Table

log = logging.getLogger(__name__)

WEIGHTS = Path(__file__).parent / "weights"
_COMPLETE = "complete.json"
PASSAGES = "passages"
"""Where a prepared folder has the index of passages."""
Array = npt.NDArray[Any]


class PassageRecords(Protocol):
    """The passages of a corpus store, by number."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Passage]: ...


class PassageSource(Protocol):
    """What `prepare` needs of a corpus store."""

    @property
    def passages(self) -> PassageRecords:
        """The passages in number order."""
        ...


@dataclass(frozen=True, slots=True)
class TableLinks:
    """Links of one table as aligned arrays, ordered by row, column, start and falling score."""

    rows: Array
    columns: Array
    passages: Array
    starts: Array
    ends: Array
    scores: Array

    def __len__(self) -> int:
        return len(self.rows)

    def keep(self, mask: Array) -> "TableLinks":
        """The links where `mask` is true."""
        return TableLinks(*(getattr(self, name)[mask] for name in self.__slots__))

    @classmethod
    def joined(cls, parts: Sequence["TableLinks"]) -> "TableLinks":
        """The links of one after those of the other."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))


class Linker:
    """Trained weights: what hyperlinks taught (aliases) and the two-step scorer with its threshold."""

    def __init__(self, aliases: AliasTable, scorer: Scorer, *, spacy_model: str | None = None) -> None:
        self.aliases = aliases
        self.scorer = scorer
        self.spacy_model = spacy_model

    @classmethod
    def load(cls, path: Path | str | None = None, *, spacy_model: str | None = None) -> "Linker":
        """Weights from a folder; None is the folder inside the package. ModelError if they cannot be used."""
        folder = WEIGHTS if path is None else Path(path)
        if not (folder / "scorer.json").is_file():
            raise ModelError(f"{folder}: no linker weights here (scorer.json is missing)")
        key = (folder.resolve(), _versions(folder), spacy_model)
        with _SHARING:
            linker = _SHARED.get(key)
            if linker is None:
                linker = _SHARED[key] = cls(AliasTable.load(folder), Scorer.load(folder), spacy_model=spacy_model)
        return linker

    def save(self, folder: Path) -> None:
        """Write the weights; the same weights give the same bytes."""
        self.aliases.save(folder)
        self.scorer.save(folder)

    @property
    def settings(self) -> ScorerSettings:
        """The scorer's settings, among them the default threshold."""
        return self.scorer.settings

    def prepare(self, store: PassageSource, workdir: Path, *, routes: Routes | None = None) -> "TableLinker":
        """Build the passage index, the bound aliases and the indexes of further routes into `workdir`; open it.

        Idempotent: a folder that was completed for the same passages and aliases is opened as it is, an
        incomplete or different one is built again. One process prepares; others `open` afterwards. `routes`
        None keeps those that the folder has (none in a new one).
        """
        stamp = self._stamp(store.passages)
        if not _is_complete(workdir, stamp, routes):
            if workdir.exists():
                shutil.rmtree(workdir)
            pairs = ((passage.title, passage.text) for passage in store.passages)
            index = PassageIndex.build(pairs, workdir / PASSAGES)
            bound, words = bind(self.aliases, index)
            _save_bound(bound, workdir / "aliases.npz")
            made = routes or Routes()
            made.build(store.passages, workdir)
            meta = {"stamp": stamp, "words": words, "routes": asdict(made)}
            (workdir / _COMPLETE).write_text(json.dumps(meta), encoding="utf-8")
            log.info("candidate index of %d passages in %s", index.passage_count, workdir)
        return self.open(workdir)

    def over(self, words: PassageWords, routes: ExtraRoutes | None = None) -> "TableLinker":
        """Link against passages whose words were read already; nothing is written."""
        index = PassageIndex.of(words)
        return TableLinker(self, index, *bind(self.aliases, index), routes)

    def open(self, workdir: Path) -> "TableLinker":
        """Open a prepared folder; passages stay memory-mapped."""
        if not (workdir / _COMPLETE).is_file():
            raise ModelError(f"{workdir}: not a prepared linker folder; call Linker.prepare first")
        index = PassageIndex.open(workdir / PASSAGES)
        meta = json.loads((workdir / _COMPLETE).read_text(encoding="utf-8"))
        routes = Routes(**meta.get("routes", {})).open(workdir)
        return TableLinker(self, index, _load_bound(workdir / "aliases.npz"), meta["words"], routes)

    def _stamp(self, passages: PassageRecords) -> str:
        digest = hashlib.sha256(f"{FORMAT}\0{len(passages)}\0".encode())
        for passage in passages:
            digest.update(f"{passage.title}\0{len(passage.text)}\0{passage.text[:64]}\0".encode())
        digest.update(self.aliases.digest.encode())
        return digest.hexdigest()


class TableLinker:
    """Links tables against one prepared corpus. Not thread-safe: every worker opens its own."""

    def __init__(
        self,
        linker: Linker,
        index: PassageIndex,
        aliases: BoundAliases,
        words: Mapping[str, int],
        routes: ExtraRoutes | None = None,
    ) -> None:
        self.linker = linker
        self.index = index
        self._aliases = aliases
        self._arrays = index.arrays
        self._workspace = workspace(index.passage_count, len(index.vocabulary))
        self._routes = routes
        self._encoder = TableEncoder({**index.vocabulary, **words}, Recogniser(linker.spacy_model))

    def link(self, table: Table, *, threshold: float | None = None) -> TableLinks:
        """Links whose score reaches the threshold (None: the weights' default); the others are NIL."""
        wanted = self.linker.settings.threshold if threshold is None else threshold
        encoded, pairs = self.candidates(table)
        pairs, scores = self.score(encoded, pairs)
        kept = scores >= wanted
        return _links(encoded, pairs.keep(kept), scores[kept])

    def link_cells(
        self, table: Table, cells: Array, known: TableLinks, *, first_new: int, threshold: float | None = None
    ) -> tuple[Array, TableLinks]:
        """Decide some cells of a table anew, which name passages that are new; `known` are the table's links.

        `cells` (C, 2) are rows and columns, and passages from the number `first_new` on are new. Returns which of the
        cells (C) are decided, those that the first scorer lets a new passage into, and all links of these. Their
        candidates are what title keys and aliases spell and what `known` has: BM25 is not asked again, as what it found
        and the second scorer took is known. Of other cells the known links are what the second scorer hears of.
        """
        encoded = self._encoder.encode(table)
        width = max(len(table.header), 1)
        places, wanted = encoded.rows * width + encoded.columns, cells @ np.array([width, 1])
        asked = np.isin(places, wanted)
        efforts = np.full(len(encoded.texts), GIVEN, np.uint8)
        efforts[encoded.texts_of_cells[asked]] = SPELLED
        pairs, features = self.collect(encoded, self._described(table, encoded, _known(encoded, known), efforts))
        decided = np.zeros(len(places), bool)
        decided[pairs.cells[pairs.passages >= first_new]] = True
        decided &= asked
        own = decided[pairs.cells]
        scores = self.linker.scorer.second(features[own])
        kept = scores >= (self.linker.settings.threshold if threshold is None else threshold)
        return np.isin(wanted, places[decided]), _links(encoded, pairs.keep(own).keep(kept), scores[kept])

    def candidates(self, table: Table) -> tuple[EncodedTable, Pairs]:
        """Every candidate of every cell with its first features."""
        encoded = self._encoder.encode(table)
        if not self.index.passage_count or not len(encoded.rows):
            return encoded, Pairs.none()
        return encoded, self._described(
            table, encoded, self._extra(table, encoded), np.full(len(encoded.texts), SEARCHED, np.uint8)
        )

    def _described(self, table: Table, encoded: EncodedTable, extra: Extra, efforts: Array) -> Pairs:
        pool = pool_candidates(
            self._arrays, self._aliases, self._workspace, encoded.cells, encoded.context, encoded.intro, extra,
            efforts,
        )  # fmt: skip
        return describe_pairs(
            table, encoded, pool, self._arrays, self._aliases, self.linker.aliases.headers, self._workspace
        )

    def _extra(self, table: Table, encoded: EncodedTable) -> Extra:
        if self._routes is None:
            return Extra.none(len(encoded.texts))
        return self._routes.find(table, encoded, unresolved_mentions(self._arrays, self._aliases, encoded.cells))

    def score(self, encoded: EncodedTable, pairs: Pairs) -> tuple[Pairs, Array]:
        """The pairs that pass the first scorer, with their final scores (float32)."""
        pairs, features = self.collect(encoded, pairs)
        return pairs, self.linker.scorer.second(features)

    def collect(self, encoded: EncodedTable, pairs: Pairs) -> tuple[Pairs, Array]:
        """Drop what the first scorer is sure about and add the collective features."""
        first = self.linker.scorer.first(pairs.features)
        kept = first >= self.linker.settings.first_threshold
        pairs, first = pairs.keep(kept), first[kept]
        return pairs, np.concatenate((pairs.features, collective(pairs, first, encoded, self._arrays)), axis=1)


_SHARED: WeakValueDictionary[Hashable, Linker] = WeakValueDictionary()
"""Linkers that something in this process holds, by where their files are and which these are: a second each."""
_SHARING = Lock()


def _versions(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """What tells the files of a folder from others of these names."""
    stats = ((path.name, path.stat()) for path in sorted(folder.iterdir()))
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


def _links(encoded: EncodedTable, pairs: Pairs, scores: Array) -> TableLinks:
    texts = encoded.texts_of_cells[pairs.cells]
    starts = np.empty(len(scores), dtype=np.int32)
    ends = np.empty(len(scores), dtype=np.int32)
    for number, (text, first, last) in enumerate(zip(texts, pairs.first, pairs.last, strict=True)):
        cell = encoded.recognised[text]
        starts[number], ends[number] = cell.starts[first], cell.ends[last - 1]
    order = np.lexsort((pairs.passages, -scores, starts, pairs.cells))
    cells = pairs.cells[order]
    return TableLinks(
        encoded.rows[cells], encoded.columns[cells], pairs.passages[order], starts[order], ends[order],
        scores[order].astype(np.float32),
    )  # fmt: skip


def _known(encoded: EncodedTable, links: TableLinks) -> Extra:
    """The passages that are linked already, as candidates of the distinct cells."""
    width = int(max(encoded.columns.max(), links.columns.max(initial=0))) + 1
    places, wanted = encoded.rows * width + encoded.columns, links.rows * width + links.columns
    at = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
    here = places[at] == wanted
    texts = encoded.texts_of_cells[at[here]].astype(np.int64)
    pairs = np.unique(np.stack([texts, links.passages[here].astype(np.int64)], axis=1), axis=0)
    offsets = np.zeros(len(encoded.texts) + 1, np.int64)
    np.cumsum(np.bincount(pairs[:, 0], minlength=len(encoded.texts)), out=offsets[1:])
    return Extra(offsets, pairs[:, 1].astype(np.int32))


def _is_complete(workdir: Path, stamp: str, routes: Routes | None) -> bool:
    marker = workdir / _COMPLETE
    if not marker.is_file():
        return False
    meta = json.loads(marker.read_text(encoding="utf-8"))
    return bool(meta["stamp"] == stamp and (routes is None or Routes(**meta.get("routes", {})) == routes))


def _save_bound(aliases: BoundAliases, path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, **aliases._asdict())


def _load_bound(path: Path) -> BoundAliases:
    with np.load(path) as arrays:
        return BoundAliases(*(arrays[name] for name in BoundAliases._fields))
