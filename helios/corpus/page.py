"""A page as headings, paragraphs and tables in order, turned into tables and passages with derived ids."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from helios.config import CorpusBudget
from helios.corpus.budget import STANDARD
from helios.corpus.shape import INFOBOX_HEADER, shaped_table
from helios.types import Metadata, Passage, Table, TableKind

PASSAGE_WORDS = 100
"""Paragraphs under one heading are joined, and cut between sentences, into passages of about this size."""
BEFORE_WORDS = 60
"""Of the paragraph before a table its last sentences, up to so many words, say what the table is about."""
_NOTE = re.compile(r"[*†‡¹²³]|\[?\d{1,2}[\])]|[^\W\d_]{2,12}:\s")
"""How the paragraph after a table begins if it is a note to it: a mark, or a label such as `Source:`."""
_SENTENCE_END = re.compile(r"(?<=[.!?。])[\"'”’)\]]*\s+(?=[^a-z\s])")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 to 6."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table of a page, its rows without the header."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    kind: TableKind = TableKind.TABLE
    notes: Sequence[str] = ()
    """Lines above or below it that are about it."""


@dataclass(frozen=True, slots=True)
class Place:
    """What follows lies here: its metadata, such as a page number, and its title where that is not the page's."""

    metadata: Metadata = ()
    title: str = ""


Block = Heading | Paragraph | PageTable | Place


def page_records(
    base_id: str, title: str, blocks: Iterator[Block], *, url: str = "", budget: CorpusBudget = STANDARD
) -> Iterator[Table | Passage]:
    """Tables and passages of a page, in page order.

    A table's section is the headings above and its caption, its intro the text around it. Ids are the page's with
    "#table-N" and "#passage-N", N counted from 1. A passage under a heading begins with it.
    """
    page = _Page(base_id, title, url, budget)
    for block in blocks:
        yield from page.add(block)
    yield from page.end()


@dataclass(slots=True)
class _Page:
    """What is known of a page so far: the headings above, the text since the last one, a table that awaits a note."""

    base_id: str
    title: str
    url: str
    budget: CorpusBudget
    place: Place = Place()
    headings: dict[int, str] = field(default_factory=dict)
    paragraphs: list[tuple[Place, str]] = field(default_factory=list)
    last_text: str = ""
    waiting: Table | None = None
    tables: int = 0
    passages: int = 0

    def add(self, block: Block) -> Iterator[Table | Passage]:
        if not isinstance(block, Place):
            yield from self._waiting(block)
        match block:
            case Heading():
                yield from self._drain()
                self.headings = {level: text for level, text in self.headings.items() if level < block.level}
                self.headings[block.level] = block.text
            case Paragraph():
                self.paragraphs.append((self.place, block.text))
                self.last_text = block.text
            case Place():
                if block.title != self.place.title:
                    yield from self._waiting(None)
                    yield from self._drain()
                self.place = block
            case PageTable():
                self.waiting = self._table(block)
                self.last_text = ""

    def end(self) -> Iterator[Table | Passage]:
        yield from self._waiting(None)
        yield from self._drain()

    def _table(self, block: PageTable) -> Table:
        self.tables += 1
        title = self.place.title or self.title
        section = " -- ".join(filter(None, (_section(self.headings, title), block.caption)))
        header = INFOBOX_HEADER if block.kind is TableKind.INFOBOX else block.header
        notes = "\n".join(filter(None, (_last_sentences(self.last_text), *block.notes)))
        table = shaped_table(
            f"{self.base_id}#table-{self.tables}", title, header, block.rows,
            section=section, intro=notes, url=self.url, kind=block.kind, budget=self.budget,
        )  # fmt: skip
        return replace(table, metadata=self.place.metadata)

    def _waiting(self, block: Block | None) -> Iterator[Table]:
        """The table that waits, with the paragraph after it if that is a note."""
        if self.waiting is None:
            return
        table, self.waiting = self.waiting, None
        if isinstance(block, Paragraph) and _NOTE.match(block.text):
            table = replace(table, intro="\n".join(filter(None, (table.intro, block.text))))
        yield table

    def _drain(self) -> Iterator[Passage]:
        """The paragraphs under one heading as passages, each at the place where it begins."""
        title = self.place.title or self.title
        section = _section(self.headings, title)
        for number, chunk in _pieces([text for _, text in self.paragraphs]):
            self.passages += 1
            text = f"{section}: {chunk}" if section else chunk
            passage_id, metadata = f"{self.base_id}#passage-{self.passages}", self.paragraphs[number][0].metadata
            yield Passage(passage_id, title, text, self.url, metadata=metadata)
        self.paragraphs.clear()
        self.last_text = ""


def split_passages(paragraphs: Sequence[str], *, words: int = PASSAGE_WORDS) -> Iterator[str]:
    """Text in pieces of about `words` words, cut between sentences; only longer sentences are cut inside."""
    return (piece for _, piece in _pieces(paragraphs, words=words))


def _pieces(paragraphs: Sequence[str], *, words: int = PASSAGE_WORDS) -> Iterator[tuple[int, str]]:
    """Pieces with the number of the paragraph in which they begin."""
    piece: list[str] = []
    size = begin = 0
    for number, paragraph in enumerate(paragraphs):
        for sentence in _SENTENCE_END.split(paragraph):
            tokens = sentence.split()
            while tokens:
                if size and size + len(tokens) > words:
                    yield begin, " ".join(piece)
                    piece, size = [], 0
                begin = begin if piece else number
                piece.append(" ".join(tokens[:words]))
                size += min(len(tokens), words)
                tokens = tokens[words:]
    if piece:
        yield begin, " ".join(piece)


def _last_sentences(text: str) -> str:
    """The end of a text, whole sentences of it, as many as are good for a table's intro."""
    kept: list[str] = []
    size = 0
    for sentence in reversed(_SENTENCE_END.split(text)):
        size += len(sentence.split())
        if size > BEFORE_WORDS:
            break
        kept.insert(0, sentence)
    return " ".join(kept)


def _section(headings: dict[int, str], title: str) -> str:
    """The headings above, outermost first, without one that only repeats the page's title."""
    return " -- ".join(text for _, text in sorted(headings.items()) if text and text != title)
