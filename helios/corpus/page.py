"""A page as headings, paragraphs and tables in order, turned into tables and passages with derived ids."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from helios.config import CorpusBudget
from helios.corpus.budget import STANDARD
from helios.corpus.shape import INFOBOX_HEADER, shaped_table
from helios.types import Passage, Table, TableKind

PASSAGE_WORDS = 100
"""Paragraphs under one heading are joined, and cut between sentences, into passages of about this size."""
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


Block = Heading | Paragraph | PageTable


def page_records(
    base_id: str, title: str, blocks: Iterator[Block], *, url: str = "", budget: CorpusBudget = STANDARD
) -> Iterator[Table | Passage]:
    """Tables (section = headings above and caption) and passages of a page, in page order.

    Ids are the page's with "#table-N" and "#passage-N", N counted from 1. A passage under a heading
    begins with it.
    """
    headings: dict[int, str] = {}
    paragraphs: list[str] = []
    tables = passages = 0

    def drain() -> Iterator[Passage]:
        nonlocal passages
        section = _section(headings, title)
        for chunk in split_passages(paragraphs):
            passages += 1
            text = f"{section}: {chunk}" if section else chunk
            yield Passage(f"{base_id}#passage-{passages}", title, text, url)
        paragraphs.clear()

    for block in blocks:
        match block:
            case Heading():
                yield from drain()
                headings = {level: text for level, text in headings.items() if level < block.level}
                headings[block.level] = block.text
            case Paragraph():
                paragraphs.append(block.text)
            case PageTable():
                tables += 1
                section = " -- ".join(filter(None, (_section(headings, title), block.caption)))
                header = INFOBOX_HEADER if block.kind is TableKind.INFOBOX else block.header
                table_id = f"{base_id}#table-{tables}"
                yield shaped_table(
                    table_id, title, header, block.rows, section=section, url=url, kind=block.kind, budget=budget
                )
    yield from drain()


def split_passages(paragraphs: Sequence[str], *, words: int = PASSAGE_WORDS) -> Iterator[str]:
    """Text in pieces of about `words` words, cut between sentences; only longer sentences are cut inside."""
    piece: list[str] = []
    size = 0
    for paragraph in paragraphs:
        for sentence in _SENTENCE_END.split(paragraph):
            tokens = sentence.split()
            while tokens:
                if size and size + len(tokens) > words:
                    yield " ".join(piece)
                    piece, size = [], 0
                piece.append(" ".join(tokens[:words]))
                size += min(len(tokens), words)
                tokens = tokens[words:]
    if piece:
        yield " ".join(piece)


def _section(headings: dict[int, str], title: str) -> str:
    """The headings above, outermost first, without one that only repeats the page's title."""
    return " -- ".join(text for _, text in sorted(headings.items()) if text and text != title)
