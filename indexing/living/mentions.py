"""Which old rows may name a new passage: the inverted index from mentions to cells.

The postings of every part have the words of all rows already. The rows that hold all words of one of a passage's keys
(its title, its title without a disambiguator or before its comma, its initials, what hyperlinks taught people to call
it) are read, and those that have the key in a cell are concerned. Nothing more is kept on the disk.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from helios.corpus import CorpusStore
from helios.index.lexical import Postings, term_hash
from helios.index.reader import PartFiles
from helios.models.linker.aliases import NIL, AliasTable
from helios.models.linker.candidates import MAX_NGRAM
from helios.models.linker.passages import ACRONYM, title_keys
from helios.models.linker.text import TOKEN, fold, normalise
from helios.types import Table
from indexing.living.draft import Numbers

LEAST_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Key:
    """Folded words that stand for a passage where a cell has them in this order."""

    words: str
    is_acronym: bool = False

    def is_in(self, cell: str) -> bool:
        """Whether a cell names the key: a single word must begin with a capital or a digit, or be the whole cell."""
        folded = normalise(cell)
        if f" {self.words} " not in f" {folded} ":
            return False
        if " " in self.words or folded == self.words:
            return True
        tokens = [token for token in TOKEN.findall(cell) if fold(token) == self.words]
        if self.is_acronym:
            return any(len(token) > 1 and token.isupper() for token in tokens)
        return any(token[0].isupper() or token[0].isdigit() for token in tokens)


def keys_of(titles: Iterable[str], aliases: Mapping[str, Sequence[str]]) -> set[Key]:
    """The keys of some titles; `aliases` has the mentions of titles by their folded words."""
    found: set[Key] = set()
    for title in titles:
        found |= {Key(words, is_acronym=kind == ACRONYM) for kind, words in title_keys(title)}
        found |= {Key(mention) for mention in aliases.get(normalise(title), ())}
    return {key for key in found if key.words.count(" ") < MAX_NGRAM}


def mentions_by_title(table: AliasTable) -> dict[str, list[str]]:
    """What titles were often called in hyperlinks, by the folded words of the title.

    A mention counts where at least LEAST_SHARE of the tables that have it mean the title by it.
    """
    totals: dict[str, int] = {}
    for (mention, _), count in table.aliases.items():
        totals[mention] = totals.get(mention, 0) + count
    found: dict[str, list[str]] = {}
    for (mention, title), count in table.aliases.items():
        if title != NIL and count >= LEAST_SHARE * totals[mention]:
            found.setdefault(title, []).append(mention)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """A block of a table's rows with the cells in it that have one of some keys."""

    block: tuple[int, int, int]
    """Table, first row, row after the last."""
    table: Table
    """The rows of the block."""
    rows: Numbers
    """Of each cell, counted from the block's first row: ascending."""
    columns: Numbers


def rows_with_words(part: PartFiles, keys: Iterable[Key], alive: Numbers) -> dict[int, list[Key]]:
    """Rows of a part, of those alive, that hold all words of some keys, wherever they stand; and these keys."""
    found: dict[int, list[Key]] = {}
    is_alive = np.zeros(part.postings.segment_count, bool)
    is_alive[alive] = True
    for key in keys:
        rows = _holding(part.postings, key)
        for row in rows[is_alive[rows]].tolist():
            found.setdefault(row, []).append(key)
    return found


def named_cells(store: CorpusStore, rows: Mapping[int, Sequence[Key]]) -> Iterator[Named]:
    """The blocks with a cell that has one of the keys of its row."""
    offsets, numbers = store.segment_offsets, np.array(sorted(rows), np.int64)
    for number, start, stop in blocks_of(store, numbers):
        first = int(offsets[number]) + start
        own = numbers[np.searchsorted(numbers, first) : np.searchsorted(numbers, first + stop - start)]
        table = store.tables.block(number, start, stop)
        cells = [
            (row - first, column)
            for row in own.tolist()
            for column, cell in enumerate(table.rows[row - first])
            if any(key.is_in(cell) for key in rows[row])
        ]
        if cells:
            places = np.array(cells, np.int64)
            yield Named((number, start, stop), table, places[:, 0], places[:, 1])


def _holding(postings: Postings, key: Key) -> Numbers:
    """Rows that hold every term of a key."""
    terms = list(dict.fromkeys(postings.analysis.terms(key.words)))
    numbers = postings.numbers(np.array([term_hash(term) for term in terms], np.uint64))
    if not len(numbers) or numbers.min() < 0:
        return np.zeros(0, np.int64)
    spans = sorted(
        ((int(postings.offsets[number]), int(postings.offsets[number + 1])) for number in numbers.tolist()),
        key=lambda span: span[1] - span[0],
    )
    rows: Numbers | None = None
    for first, last in spans:
        nodes = postings.nodes[first:last]
        own = np.asarray(nodes[: np.searchsorted(nodes, postings.segment_count)], np.int64)
        rows = own if rows is None else rows[np.append(own, -1)[np.searchsorted(own, rows)] == rows]
        if not len(rows):
            break
    return np.zeros(0, np.int64) if rows is None else rows


def blocks_of(store: CorpusStore, rows: Numbers) -> Iterator[list[int]]:
    """(table, first row, row after the last) of the blocks that hold some rows, each once."""
    blocks = store.blocks()
    starts = store.segment_offsets[blocks[:, 0]] + blocks[:, 1]
    filled = np.flatnonzero(blocks[:, 2] > blocks[:, 1])
    for number in np.unique(np.searchsorted(starts[filled], rows, side="right") - 1).tolist():
        yield blocks[filled[number]].tolist()
