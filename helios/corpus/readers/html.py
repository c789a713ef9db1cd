"""HTML pages: tables with spans expanded, infoboxes, and the text around them as passages."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from lxml import etree
from lxml import html as lxml_html

from helios.config import CorpusBudget
from helios.corpus.budget import RecordShapeError, check
from helios.corpus.encoding import broken_reason, decode, is_broken
from helios.corpus.grid import has_header, join_header
from helios.corpus.page import Block, Heading, PageTable, Paragraph, page_records
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.source import SourceFile
from helios.errors import RecordError
from helios.types import TableKind

_SUFFIXES = (".html", ".htm", ".xhtml")
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_HIDDEN = {
    "script",
    "style",
    "noscript",
    "template",
    "head",
    "nav",
    "svg",
    "math",
    "select",
    "button",
    "form",
}
_INLINE = {
    *("a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd"),
    *("label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt"),
    *("u", "var", "wbr", "img", "data", "ruby", "rb", "rt", "rp"),
}
_MARK = re.compile(r"\s?\[(?:\d{1,3}|[a-z]|(?:note|lower-alpha|nb|n) ?\d{0,2})\](?!\()", re.IGNORECASE)
"""A footnote mark."""
_SITE = re.compile(r"(.+\S)\s+([-–—|·•»]|::)\s+(\S.*)")
_SITE_WORDS = 4
_SHORT = re.compile(r"[\[(]?(?:\d{1,3}|[a-z]|[*†‡§])[\])]?", re.IGNORECASE)
_LAYOUT_ROLES = {"presentation", "none"}
_NOTES = {"reference", "mw-editsection", "noprint"}
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_MAX_COLUMN_SPAN = 1000
_MAX_ROW_SPAN = 65534


def detect(source: SourceFile) -> bool:
    """By the ending, or by how the file begins."""
    start = source.head[:512].lstrip().lower()
    return source.suffix in _SUFFIXES or start.startswith((b"<!doctype html", b"<html"))


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Tables and passages in page order; a page that cannot be decoded is rejected as a whole."""
    try:
        data = source.read()
        declared = _CHARSET.search(data[:4096])
        text = decode(data, declared=declared.group(1).decode() if declared else None)
        if is_broken(text):
            raise RecordError(source.path, None, broken_reason(text), record_id=source.base_id)
        root = parse(text)
        if root is None:
            raise RecordShapeError("an empty page")
    except RecordError as error:
        rejection.reject(error)
        return
    except RecordShapeError as error:
        rejection.reject(source.error(error))
        return
    title = _page_title(root) or source.title
    url = next(iter(root.xpath("//link[@rel='canonical']/@href")), "")
    try:
        for record in page_records(source.base_id, title, blocks(root, source.budget), url=url, budget=source.budget):
            yield Parsed(record)
    except RecordShapeError as error:
        rejection.reject(source.error(error))


def parse(text: str) -> Any:
    """The tree of a page or a fragment, None if it is empty; RecordShapeError beyond the parser's limits."""
    parser = lxml_html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    try:
        root = lxml_html.document_fromstring(text.encode(), parser=parser)
    except etree.ParserError:
        return None
    for entry in parser.error_log:
        if entry.type_name == "ERR_RESOURCE_LIMIT":
            raise RecordShapeError(f"line {entry.line}: {entry.message.split(',')[0]}")
    return root


def blocks(root: Any, budget: CorpusBudget) -> Iterator[Block]:
    """Headings, paragraphs and tables in document order."""
    text: list[str] = []
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        tag = element.tag
        if event == "start" and (
            _is_hidden(element) or tag in _HEADINGS or (tag == "table" and not _is_layout(element))
        ):
            if not _is_hidden(element):
                yield from _paragraph(text)
                yield from _heading(element) if tag in _HEADINGS else _tables(element, budget)
            walk.skip_subtree()
            continue
        if tag not in _INLINE:
            yield from _paragraph(text)
        if event == "start":
            text.append(element.text or "")
        else:
            text.append(element.tail or "")
    yield from _paragraph(text)


def _paragraph(text: list[str]) -> Iterator[Paragraph]:
    joined = " ".join("".join(text).split())
    text.clear()
    if joined:
        yield Paragraph(joined)


def _heading(element: Any) -> Iterator[Heading]:
    text = _text(element)
    if text:
        yield Heading(_HEADINGS[element.tag], text)


def _tables(element: Any, budget: CorpusBudget) -> Iterator[PageTable]:
    """The table, then those nested in its cells."""
    caption = " ".join(_cell_text(node) for node in element.iterchildren("caption"))
    rows = _expand(element, budget)
    if any(cell for row, _ in rows for cell in row):
        if "infobox" in (element.get("class") or "").lower():
            yield PageTable((), list(_attributes(element, caption)), kind=TableKind.INFOBOX)
        else:
            yield _plain_table(rows, caption)
    for nested in element.iterdescendants("table"):
        if next(nested.iterancestors("table")) is element:
            yield from _tables(nested, budget)


def _plain_table(rows: list[tuple[tuple[str, ...], bool]], caption: str) -> PageTable:
    """Leading rows of header cells are the header; without any, the first row is where it looks like one."""
    depth = 0
    while depth < len(rows) and rows[depth][1]:
        depth += 1
    cells = [row for row, _ in rows]
    if not depth:
        depth = int(len(cells) > 1 and has_header(cells))
    elif depth == len(rows):
        depth = 1
    while depth > 1 and len(set(cells[0])) == 1 and len(cells[0]) > 1:
        caption = " -- ".join(filter(None, (caption, cells[0][0])))
        cells, depth = cells[1:], depth - 1
    return PageTable(join_header(cells[:depth]), cells[depth:], caption)


def _expand(table: Any, budget: CorpusBudget) -> list[tuple[tuple[str, ...], bool]]:
    """Rows as (cells with spans repeated, whether its own cells are header cells), blank ones left out."""
    rows = []
    hanging: dict[int, tuple[int, str]] = {}
    count = 0
    for row in _own_rows(table):
        cells: list[str] = []
        below: dict[int, tuple[int, str]] = {}
        own = [cell for cell in row if cell.tag in ("td", "th")]
        for cell in own:
            _hang(cells, hanging, below)
            text, height = _cell_text(cell), _span(cell, "rowspan", _MAX_ROW_SPAN)
            for _ in range(_span(cell, "colspan", _MAX_COLUMN_SPAN)):
                if height > 1:
                    below[len(cells)] = (height - 1, text)
                cells.append(text)
        count += len(cells)
        check(budget, "cells", count, "cells of a table, spans expanded")
        for column in sorted(hanging):
            if column >= len(cells):
                cells.extend([""] * (column - len(cells)))
                _hang(cells, hanging, below)
            elif column in hanging and hanging[column][0] > 1:
                left, text = hanging[column]
                below.setdefault(column, (left - 1, text))
        hanging = below
        is_header = bool(own) and (all(cell.tag == "th" for cell in own) or row.getparent().tag == "thead")
        if any(cells):
            rows.append((tuple(cells), is_header))
    return rows


def _hang(cells: list[str], hanging: dict[int, tuple[int, str]], below: dict[int, tuple[int, str]]) -> None:
    """Append the cells that hang down from rows above here: column → (rows left, text)."""
    while (span := hanging.pop(len(cells), None)) is not None:
        left, text = span
        if left > 1:
            below[len(cells)] = (left - 1, text)
        cells.append(text)


def _own_rows(table: Any) -> Iterator[Any]:
    """Rows of the table itself: head first, foot last."""
    for path in ("./thead/tr", "./tr|./tbody/tr", "./tfoot/tr"):
        yield from table.xpath(path)


def _span(cell: Any, name: str, most: int) -> int:
    value = (cell.get(name) or "1").strip()
    if not value.isdecimal():
        return 1
    number = int(value[:9])
    return most if number == 0 and name == "rowspan" else max(1, min(number, most))


def _attributes(table: Any, caption: str) -> Iterator[tuple[str, str]]:
    """Rows of an infobox as (attribute, value); an attribute under a group is "group / attribute".

    Its caption, or else a first row that is a header cell, is what it is about.
    """
    group = ""
    if caption:
        yield "name", caption
    for number, row in enumerate(_own_rows(table), int(bool(caption))):
        cells = [(cell.tag, _cell_text(cell)) for cell in row if cell.tag in ("td", "th")]
        cells = [(tag, text) for tag, text in cells if text]
        if len(cells) == 1 and cells[0][0] == "th":
            group = cells[0][1] if number else ""
            if not number:
                yield "name", cells[0][1]
        elif len(cells) == 1:
            yield group, cells[0][1]
        elif cells:
            name = " / ".join(filter(None, (group, cells[0][1])))
            yield name, " ; ".join(text for _, text in cells[1:])


def _cell_text(element: Any) -> str:
    """Visible text of a cell without footnote marks, unless it is nothing but such a mark."""
    text = _text(element)
    return _MARK.sub("", text).strip() or text


def _is_layout(table: Any) -> bool:
    """Whether a table only arranges a page: by its role, or because others are in it and it names no column."""
    if (table.get("role") or "").lower() in _LAYOUT_ROLES:
        return True
    if "infobox" in (table.get("class") or "").lower() or next(table.iterdescendants("table"), None) is None:
        return False
    return next(table.iterchildren("caption", "thead"), None) is None and not any(
        cell.tag == "th" for row in _own_rows(table) for cell in row
    )


def _text(element: Any) -> str:
    """Visible text of an element, nested tables left out, white space collapsed."""
    parts = [element.text or ""]
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, node in walk:
        if node is element:
            continue
        if event == "start" and (node.tag == "table" or _is_hidden(node)):
            walk.skip_subtree()
        elif event == "start":
            parts.append(("" if node.tag in _INLINE else " ") + (node.text or ""))
        if event == "end":
            parts.append(("" if node.tag in _INLINE else " ") + (node.tail or ""))
    return " ".join("".join(parts).split())


def _is_hidden(element: Any) -> bool:
    if element.tag in _HIDDEN or not isinstance(element.tag, str):
        return True
    if not _NOTES.isdisjoint((element.get("class") or "").split()) or _is_note_mark(element):
        return True
    return "display:none" in (element.get("style") or "").replace(" ", "").lower()


def _is_note_mark(element: Any) -> bool:
    """Whether this is a short mark that leads to a note on the same page, raised or in brackets."""
    if element.tag not in ("sup", "a"):
        return False
    link = element if element.tag == "a" else next(element.iterchildren("a"), None)
    text = "".join(element.itertext()).strip()
    is_raised = element.tag == "sup" or text.startswith(("[", "("))
    return link is not None and is_raised and (link.get("href") or "").startswith("#") and bool(_SHORT.fullmatch(text))


def _page_title(root: Any) -> str:
    """The <title> without the name of the site, else the first h1."""
    titles = [" ".join("".join(element.itertext()).split()) for element in root.xpath("//head/title")]
    headings = [" ".join("".join(element.itertext()).split()) for element in root.xpath("//h1")]
    sites = root.xpath("//meta[@property='og:site_name' or @name='application-name']/@content")
    title = next(filter(None, titles), "")
    return _without_site(title, headings, sites) or next(filter(None, headings), "")


def _without_site(title: str, headings: Sequence[str], sites: Sequence[str]) -> str:
    """A title up to the site's name: known as such, behind what the page's heading says, or short and behind a bar."""
    parts = _SITE.fullmatch(title)
    if parts is None:
        return title
    name, mark, site = parts.groups()
    is_site = site.lower() in {"wikipedia", "wikipédia", *map(str.lower, map(str.strip, sites))} or site.startswith(
        "Wikipedia,"
    )
    is_short = mark in "|»::" and len(site.split()) <= _SITE_WORDS
    return name if is_site or is_short or name in headings else title
