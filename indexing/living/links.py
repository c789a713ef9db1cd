"""Links of what comes and goes: new rows to all passages, old rows to new passages, mentions of what was deleted.

Numbers of rows and passages are those of the next snapshot (`Draft.reader`).
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from helios.config import Config
from helios.corpus import CorpusStore
from helios.graph import DataGraph
from helios.index.reader import IndexReader, PartFiles
from helios.models.linker import Linker, TableLinker
from helios.models.linker.forward import PassageWords, joined
from helios.models.linker.linker import TableLinks
from helios.models.linker.passages import words_of
from helios.models.linker.routes import Routes
from helios.once import once
from indexing.kept_words import forget_words, words_path
from indexing.linking import LinkArrays, likely_links, link_block
from indexing.living.draft import Numbers
from indexing.living.mentions import (
    Key,
    Named,
    blocks_of,
    keys_of,
    mentions_by_title,
    named_cells,
    rows_with_words,
)
from indexing.progress import Meter

SMALL = 24
"""A table with no more cells is linked as a whole where one of them names a new passage."""


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """All links of some rows, by visible numbers."""

    links: LinkArrays
    rows: Numbers


class Links:
    """Decides links by the settings of an index; keeps the linker and the words of passages for the next change."""

    def __init__(self, config: Config, kept: Path) -> None:
        """`kept` is a folder for the words of passages, which takes long to read; it may be removed at any time."""
        self.config = config
        self._kept = kept
        self._words: dict[tuple[str, str], PassageWords] = {}
        self._over: tuple[object, TableLinker] | None = None

    @property
    def source(self) -> str:
        """Where links come from: linker, hyperlinks or none."""
        return self.config.linking.source

    @once
    def linker(self) -> Linker:
        """The weights that the settings name."""
        return Linker.load(self.config.advanced.linking.model)

    @once
    def _mentions(self) -> dict[str, list[str]]:
        return mentions_by_title(self.linker.aliases)

    def of_change(
        self, reader: IndexReader, rows: Mapping[int, Numbers], new: Numbers, work: Path, meter: Meter
    ) -> "Decision":
        """Links of the tables that hold some rows of the parts, and of what else may name a new passage.

        `new` are passages that came: the last ones that the reader shows.
        """
        named: dict[int, dict[int, list[Key]]] = {}
        if self.source == "hyperlinks" and len(new):
            wanted = {reader.corpus.passages.id(number) for number in new.tolist()}
            none = np.zeros(0, np.int64)
            linked = enumerate(_rows_linked_to(part, wanted) for part in reader.parts)
            rows = {at: np.union1d(own, rows.get(at, none)) for at, own in linked}
        blocks = {part: list(blocks_of(reader.parts[part].corpus, own)) for part, own in rows.items() if len(own)}
        if self.source == "linker" and len(new):
            keys = keys_of((reader.corpus.passages[number].title for number in new.tolist()), self._mentions)
            for at, part in enumerate(reader.parts):
                others = _outside(reader.numbering.segments[at], part.corpus, blocks.get(at, []))
                named[at] = rows_with_words(part, keys, others)
        count = sum(stop - start for own in blocks.values() for _, start, stop in own)
        meter.start(count + sum(map(len, named.values())), "rows")
        found = self._of_blocks(reader, blocks, work, meter)
        if any(named.values()):
            found += self._of_named(reader, named, int(new[0]), work, meter)
        rows_decided = np.concatenate([np.zeros(0, np.int64), *(own for _, own in found)])
        return Decision(LinkArrays.concatenate([links for links, _ in found]), rows_decided[rows_decided >= 0])

    def of_rows(self, reader: IndexReader, rows: Mapping[int, Numbers], work: Path, meter: Meter) -> "Decision":
        """Links of the tables that hold some rows of the parts, to all passages that the reader shows."""
        return self.of_change(reader, rows, np.zeros(0, np.int64), work, meter)

    def _of_blocks(
        self, reader: IndexReader, blocks: Mapping[int, list[list[int]]], work: Path, meter: Meter
    ) -> list[tuple[LinkArrays, Numbers]]:
        """Links of whole blocks of each part, and the rows of these, -1 for a hidden one."""
        found = []
        for part, own in blocks.items():
            offsets, numbers = reader.parts[part].corpus.segment_offsets, reader.numbering.numbers_of(part)[0]
            for block in own:
                first, links = int(offsets[block[0]]), LinkArrays.concatenate([])
                if self.source != "none" and reader.passage_count:
                    links = _visible(self._of_block(reader, reader.parts[part], block, work), numbers)
                found.append((links, _shown(numbers, np.arange(first + block[1], first + block[2]))))
                meter.advance(block[2] - block[1])
        return found

    def _of_named(
        self, reader: IndexReader, rows: Mapping[int, Mapping[int, Sequence[Key]]], first_new: int, work: Path,
        meter: Meter,
    ) -> list[tuple[LinkArrays, Numbers]]:  # fmt: skip
        """Links of the rows of each part of which a cell has one of the row's keys, and these rows."""
        linker, found = self._table_linker(reader, work), []
        for at, own in rows.items():
            store, numbers = reader.parts[at].corpus, reader.numbering.numbers_of(at)[0]
            done = 0
            for named in named_cells(store, own):
                first = int(store.segment_offsets[named.block[0]]) + named.block[1]
                visible = _shown(numbers, np.arange(first, first + len(named.table.rows)))
                if sum(map(len, named.table.rows)) <= SMALL:
                    links = self._of_block(reader, reader.parts[at], named.block, work)
                    found.append((_visible(links, numbers), visible))
                else:
                    found.append(self._of_cells(reader, linker, named, visible, first_new))
                meter.advance(len(np.unique(named.rows)))
                done += len(np.unique(named.rows))
            meter.advance(len(own) - done)
        return found

    def _of_cells(
        self, reader: IndexReader, linker: TableLinker, named: Named, visible: Numbers, first_new: int
    ) -> tuple[LinkArrays, Numbers]:
        """Links of the rows of a block of which a cell is decided anew; `visible` are the numbers of all its rows.

        Links of their other cells stay.
        """
        known = _links_of_rows(reader.graph, visible)
        cells = np.stack([named.rows, named.columns], axis=1)
        threshold = self.config.advanced.linking.threshold
        decided, new = linker.link_cells(named.table, cells, known, first_new=first_new, threshold=threshold)
        width = max(len(named.table.header), 1)
        again = np.isin(known.rows * width + known.columns, cells[decided] @ [width, 1])
        links = TableLinks.joined([known.keep(~again), new])
        sure = likely_links(named.table, links, reader.corpus.passages)
        sure[: len(links) - len(new)] = True  # what was known stays
        rows = np.unique(named.rows[decided])
        links = links.keep(sure & np.isin(links.rows, rows))
        columns = (visible[links.rows], links.passages, links.columns, links.starts, links.ends)
        return LinkArrays(*(column.astype(np.int64) for column in columns), links.scores), visible[rows]

    def _of_block(self, reader: IndexReader, part: PartFiles, block: Sequence[int], work: Path) -> LinkArrays:
        if self.source == "hyperlinks":
            return _hyperlinks(reader, part, block)
        linker = self._table_linker(reader, work)
        threshold = self.config.advanced.linking.threshold
        return link_block(part.corpus, linker, block, threshold=threshold, passages=reader.corpus.passages)

    def _table_linker(self, reader: IndexReader, work: Path) -> TableLinker:
        """The linker over all passages that the reader shows; made anew only where these have changed."""
        shown = [
            (part.view.part.name, part.view.part.corpus_sha256, passages.tobytes())
            for part, passages in zip(reader.parts, reader.numbering.passages, strict=True)
            if len(passages)
        ]
        if self._over is None or self._over[0] != shown:
            self._over = None
            words = joined(
                [
                    (self._words_of(part, reader.parts), own)
                    for part, own in zip(reader.parts, reader.numbering.passages, strict=True)
                ]
            )
            settings = self.config.advanced.linking
            routes = Routes(fuzzy=settings.fuzzy, dense=settings.dense)
            folder = work / "routes"
            routes.build(reader.corpus.passages, folder)
            self._over = shown, self.linker.over(words, routes.open(folder))
        return self._over[1]

    def _words_of(self, part: PartFiles, parts: Sequence[PartFiles]) -> PassageWords:
        """The words of one of the parts, from where they are kept, or read now and kept."""
        key = part.view.part.name, part.view.part.corpus_sha256
        if key not in self._words:
            path = words_path(self._kept, part.view.part)
            words = PassageWords.load(path)
            if words is None or words.passage_count != len(part.corpus.passages):
                words = words_of((passage.title, passage.text) for passage in part.corpus.passages)
                self._keep(words, path)
                forget_words(self._kept, [one.view.part for one in parts])
            self._words[key] = words
        return self._words[key]

    def _keep(self, words: PassageWords, path: Path) -> None:
        """Keep the words of a part for later processes."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        words.save(temporary)
        temporary.replace(path)


def new_edges(links: LinkArrays, reader: IndexReader) -> int:
    """How many pairs of rows and passages are linked that the reader does not link."""
    graph = reader.graph
    known = graph.edge_segments.astype(np.int64) * reader.passage_count + graph.edge_passages
    return int((~np.isin(np.unique(links.segments * reader.passage_count + links.passages), known)).sum())


def chosen(links: LinkArrays, mask: Iterable[bool]) -> LinkArrays:
    """The links where a mask (L) is true."""
    kept = np.asarray(mask, bool)
    return LinkArrays(
        links.segments[kept], links.passages[kept], links.columns[kept], links.starts[kept], links.ends[kept],
        links.scores[kept],
    )  # fmt: skip


def _visible(links: LinkArrays, numbers: Numbers) -> LinkArrays:
    """Links by rows of a part as links by visible rows; `numbers` has -1 for one that is hidden."""
    segments = _shown(numbers, links.segments)
    shown = LinkArrays(segments, links.passages, links.columns, links.starts, links.ends, links.scores)
    return chosen(shown, segments >= 0)


def _shown(numbers: Numbers, rows: Numbers) -> Numbers:
    """Visible numbers of rows of a part, -1 for a hidden one; those of `numbers` end with the last visible one."""
    return np.append(numbers, -1)[np.minimum(rows, len(numbers))]


def _outside(rows: Numbers, store: CorpusStore, blocks: Sequence[Sequence[int]]) -> Numbers:
    """Rows of a part that no block has."""
    inside = np.zeros(store.segment_count, bool)
    for number, start, stop in blocks:
        first = int(store.segment_offsets[number])
        inside[first + start : first + stop] = True
    return rows[~inside[rows]]


def _links_of_rows(graph: DataGraph, rows: Numbers) -> TableLinks:
    """The links of visible rows, ascending, by their places in `rows`, ordered by row; -1 has none."""
    places = np.flatnonzero(rows >= 0)
    spans = [(graph.segment_offsets[row], graph.segment_offsets[row + 1]) for row in rows[places].tolist()]
    first, last = (int(spans[0][0]), int(spans[-1][1])) if spans else (0, 0)
    edges = slice(first, last)
    counts = np.diff(graph.link_offsets[first : last + 1])
    links = slice(int(graph.link_offsets[first]), int(graph.link_offsets[last]))
    own = np.repeat(graph.edge_segments[edges], counts)
    return TableLinks(
        places[np.searchsorted(rows[places], own)], graph.link_columns[links].astype(np.int64),
        np.repeat(graph.edge_passages[edges], counts), graph.link_starts[links], graph.link_ends[links],
        graph.link_scores[links],
    )  # fmt: skip


def _rows_linked_to(part: PartFiles, wanted: set[str]) -> Numbers:
    """Rows of tables with a hyperlink to one of the passages, by their ids."""
    tables, offsets = part.corpus.tables, part.corpus.segment_offsets
    columns = zip(tables.column("link_passages"), tables.column("link_rows"), strict=True)
    rows = {
        int(offsets[number]) + row
        for number, (passages, own) in enumerate(columns)
        for passage, row in zip(passages, own, strict=True)
        if passage in wanted
    }
    return np.array(sorted(rows), np.int64)


def _hyperlinks(reader: IndexReader, part: PartFiles, block: Sequence[int]) -> LinkArrays:
    """A block's own links to passages that the reader shows."""
    number, start, stop = block
    table = part.corpus.tables.block(number, start, stop)
    first = int(part.corpus.segment_offsets[number]) + start
    rows = [
        (first + link.row, passage, link.column, 0, len(table.rows[link.row][link.column]), 1.0)
        for link in table.hyperlinks
        if (passage := reader.corpus.passages.find(link.passage_id)) is not None
    ]
    columns = [np.array(column) for column in zip(*rows, strict=True)] or [np.zeros(0)] * 6
    return LinkArrays(*(column.astype(np.int64) for column in columns[:5]), columns[5].astype(np.float32))
