"""Plain text: paragraphs at blank lines, headings (underlined, numbered or in capitals), lists, tables by tabs."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from helios.corpus.budget import RecordShapeError
from helios.corpus.encoding import broken_reason, decode, is_broken
from helios.corpus.page import Block, Heading, Paragraph, page_records
from helios.corpus.readers.delimited import sniff_delimiter, table_records
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.source import SourceFile

_SUFFIXES = (".txt", ".text", ".asc", ".rst", ".log")
_TITLE_WORDS = 12
_UNDERLINE = re.compile(r"([=\-~*#_^])\1{2,}")
_NUMBERED = re.compile(r"(?:\d{1,2}\.)*\d{1,2}\.?\s+\S.*")
_ITEM = re.compile(r"(?:[-*+•–]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s+\S")
_STANDS = re.compile(rf"{_ITEM.pattern}|[^:]{{1,40}}:(?:\s+\S|$)")
"""An item of a list, or a label with its value."""
_GAP = re.compile(r"\S(?:\s{2,}|\t)\S")
_CUT = re.compile(r"[^\W\d_][-\xad]$")
_CJK = "　-〿぀-ヿ㐀-鿿！-～"
_UNSPACED = re.compile(rf"[{_CJK}][{_CJK}\d]|\d[{_CJK}]")
"""Characters of Chinese or Japanese with nothing between them."""
_FULL, _NARROW = 0.7, 30
"""Share of the longest line that a line has if it was wrapped; where no line has so many characters, none was."""
_TABLE_DELIMITERS = "\t;|"
_TABLE_LINES = 3


def detect(source: SourceFile) -> bool:
    """By the file name's ending; a file without one if its beginning is text."""
    return source.suffix in _SUFFIXES or (not source.suffix and _is_text(source.head))


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Passages in order; a file whose lines are all cells of a table is read as one."""
    text = decode(source.read())
    if is_broken(text):
        raise RecordShapeError(broken_reason(text))
    if _is_table(text):
        yield from table_records(source, text, rejection)
        return
    page = list(text_blocks(text))
    title = source.title
    if page and isinstance(page[0], Heading):
        title = page[0].text
    for record in page_records(source.base_id, title, iter(page), budget=source.budget):
        yield Parsed(record)


def text_blocks(text: str) -> Iterator[Block]:
    """Headings and paragraphs; the first line is a heading if it looks like a title."""
    blocks = re.split(r"\n(?:[ \t\f\v]*\n)+", text.replace("\r\n", "\n").replace("\r", "\n"))
    for number, block in enumerate(block for block in blocks if block.strip()):
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        while lines:
            if _UNDERLINE.fullmatch(lines[0]):
                lines = lines[1:]
            elif len(lines) > 1 and _UNDERLINE.fullmatch(lines[1]) and _is_title(lines[0]):
                yield Heading(1 if lines[1][0] == "=" else 2, lines[0])
                lines = lines[2:]
            elif len(lines) == 1 and _is_title(lines[0]) and (number == 0 or _stands_out(lines[0])):
                yield Heading(1 if number == 0 else 2, lines[0].rstrip(":"))
                lines = []
            else:
                end = next((at for at, line in enumerate(lines[1:]) if _UNDERLINE.fullmatch(line)), len(lines))
                yield Paragraph(join_lines(lines[: max(end, 1)]))
                lines = lines[max(end, 1) :]


def join_lines(lines: Sequence[str], *, wrapped: bool = False) -> str:
    """Lines that go on joined by spaces (by none in Chinese and Japanese), those that stand for themselves by
    semicolons; words cut in two are mended.

    `wrapped` says that a short line alone does not mean that it stands for itself.
    """
    longest = max(map(len, lines))
    full = 0 if wrapped else longest * _FULL if longest >= _NARROW else longest + 1
    text, stands = lines[0], bool(_STANDS.match(lines[0]))
    for before, line in pairwise(lines):
        begins = _STANDS.match(line) or _GAP.search(line) or (len(before) < full and not line[0].islower())
        if _CUT.search(text) and line[0].islower():
            text = text[:-1] + line
        elif begins and text[-1] not in ".,;:!?":
            text, stands = f"{text}; {line}", True
        else:
            text = f"{text}{'' if _UNSPACED.fullmatch(text[-1] + line[0]) else ' '}{line}"
    return ended(text) if stands and len(lines) > 1 else text


def ended(text: str) -> str:
    """A text that what follows does not run into."""
    return text if text[-1] in ".,;:!?" else f"{text}."


def _is_title(line: str) -> bool:
    has_words = len(line.split()) <= _TITLE_WORDS and any(map(str.isalpha, line))
    return has_words and line[-1] not in ".,;!?" and not _ITEM.match(line)


def _stands_out(line: str) -> bool:
    """A line of its own that is in capitals, numbered, or ends with a colon."""
    return line.isupper() or _NUMBERED.fullmatch(line) is not None or line.endswith(":")


def _is_table(text: str) -> bool:
    """Whether all lines have the same cells, by a delimiter that prose does not have."""
    lines = [line for line in text.splitlines() if line.strip()]
    delimiter = sniff_delimiter(text[: 1 << 16], suffix=".tsv")
    if len(lines) < _TABLE_LINES or delimiter not in _TABLE_DELIMITERS:
        return False
    try:
        widths = {len(row) for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row}
    except csv.Error:
        return False
    return len(widths) == 1 and widths != {1}


def _is_text(head: bytes) -> bool:
    return b"\0" not in head and not is_broken(head[: len(head) - 4].decode("utf-8", "surrogateescape"))
