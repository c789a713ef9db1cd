"""Markdown: pipe tables and the text around them."""

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from helios.config import CorpusBudget
from helios.corpus.budget import RecordShapeError
from helios.corpus.encoding import broken_reason, decode, is_broken
from helios.corpus.page import Block, Heading, PageTable, Paragraph, page_records
from helios.corpus.readers import html
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.source import SourceFile
from helios.errors import RecordError

_SUFFIXES = (".md", ".markdown")
_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n(?:---|\.\.\.)\s*(?:\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:\s*[\"']?(.+?)[\"']?\s*$", re.MULTILINE)
_LIST_MARKS = re.compile(r"^(?:[\s>]|(?:[-*+]|\d{1,9}[.)])\s+)+")
_PIPE = re.compile(r"(?<!\\)((?:\\\\)*)\|")


def detect(source: SourceFile) -> bool:
    """By the file name's ending."""
    return source.suffix in _SUFFIXES


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Tables and passages in page order; a page that cannot be decoded is rejected as a whole."""
    try:
        text = decode(source.read())
        if is_broken(text):
            raise RecordError(source.path, None, broken_reason(text), record_id=source.base_id)
        front = _FRONT_MATTER.match(text)
        page = list(blocks(text[front.end() :] if front else text, source.budget))
    except RecordError as error:
        rejection.reject(error)
        return
    except RecordShapeError as error:
        rejection.reject(source.error(error))
        return
    named = _FRONT_TITLE.search(front.group(1)) if front else None
    first = next((block.text for block in page if isinstance(block, Heading) and block.level == 1), "")
    title = (named.group(1) if named else "") or first or source.title
    try:
        for record in page_records(source.base_id, title, iter(page), budget=source.budget):
            yield Parsed(record)
    except RecordShapeError as error:
        rejection.reject(source.error(error))


def blocks(text: str, budget: CorpusBudget) -> Iterator[Block]:
    """Headings, paragraphs and tables in order."""
    markdown = MarkdownIt("commonmark").enable("table")
    lines = text.splitlines()
    tokens = markdown.parse("\n".join(lines))
    heading = 0
    in_table = False
    for token in tokens:
        match token.type:
            case "heading_open":
                heading = int(token.tag[1])
            case "heading_close":
                heading = 0
            case "table_open":
                in_table = True
                assert token.map is not None
                yield _table(markdown, lines[token.map[0] : token.map[1]])
            case "table_close":
                in_table = False
            case "html_block":
                root = html.parse(token.content)
                if root is not None:
                    yield from html.blocks(root, budget)
            case "fence" | "code_block" if token.content.strip():
                yield Paragraph(" ".join(token.content.split()))
            case "inline" if not in_table:
                plain = _plain(token.children or ())
                if plain:
                    yield Heading(heading, plain) if heading else Paragraph(plain)


def _table(markdown: MarkdownIt, lines: Sequence[str]) -> PageTable:
    """A pipe table from its lines; cells beyond the header's are kept."""
    header, rows = _LIST_MARKS.sub("", lines[0]), lines[2:]
    return PageTable(_cells(markdown, header), [_cells(markdown, row) for row in rows])


def _cells(markdown: MarkdownIt, line: str) -> list[str]:
    line = re.sub(r"^[\s>]+", "", line).rstrip()
    line = line.removeprefix("|")
    pieces = _PIPE.sub("\\1\0", line).split("\0")
    if len(pieces) > 1 and not pieces[-1].strip():
        pieces.pop()
    return [_inline(markdown, piece.replace("\\|", "|").strip()) for piece in pieces]


def _inline(markdown: MarkdownIt, text: str) -> str:
    if text.isalnum():
        return text
    return " ".join(_plain(token.children or ()) for token in markdown.parseInline(text))


def _plain(tokens: Sequence[Token]) -> str:
    """Text without markup; images give their description, inline HTML tags vanish."""
    parts = []
    for token in tokens:
        match token.type:
            case "text" | "code_inline" | "image":
                parts.append(token.content)
            case "softbreak" | "hardbreak":
                parts.append(" ")
            case "html_inline" if token.content.lower().startswith("<br"):
                parts.append(" ")
    return " ".join("".join(parts).split())
