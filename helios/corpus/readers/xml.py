"""XML: elements that repeat become tables, their attributes and elements its columns (helios.corpus.fields)."""

from collections.abc import Iterator
from typing import Any

from lxml import etree

from helios.corpus.budget import RecordShapeError
from helios.corpus.fields import checked, data_blocks, title_of
from helios.corpus.page import page_records
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.source import SourceFile

_SUFFIXES = (".xml", ".rss", ".atom", ".kml", ".gpx")
_VALUE = "value"
"""Name of the text of an element that has attributes too."""


def detect(source: SourceFile) -> bool:
    """By the file name's ending, or by how the file begins."""
    return source.suffix in _SUFFIXES or source.head.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<?xml")


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """Tables, attributes and texts in the order of the file; files that it names are not opened."""
    parser = etree.XMLParser(resolve_entities="internal", no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(source.read(), parser)
    except etree.XMLSyntaxError as error:
        raise RecordShapeError(f"not valid XML: {' '.join(str(error).split())}") from None
    value = checked(_value(root, _repeated(root), source.budget.depth), source.budget, size=source.size)
    title = title_of(value) or source.title
    for record in page_records(source.base_id, title, data_blocks(value, source.budget), budget=source.budget):
        yield Parsed(record)


def _repeated(root: Any) -> set[tuple[str, str]]:
    """(element, element within) where somewhere in the file the second stands more than once in the first."""
    found = set()
    for element in root.iter(etree.Element):
        seen: set[str] = set()
        for child in element.iterchildren(etree.Element):
            if child.tag in seen:
                found.add((element.tag, child.tag))
            seen.add(child.tag)
    return found


def _value(element: Any, repeated: set[tuple[str, str]], depth: int) -> Any:
    """An element as text, a list of the elements that it wraps, or an object of its attributes and elements."""
    if depth < 0:
        raise RecordShapeError("nested too deeply: see advanced.corpus.depth")
    fields: dict[str, Any] = {_name(name): value for name, value in element.attrib.items()}
    children = list(element.iterchildren(etree.Element))
    texts = [element.text or "", *(child.tail or "" for child in children)]
    if not children or any(map(str.strip, texts)):
        text = " ".join("".join(element.itertext()).split())
        return fields | {_VALUE: text} if fields and text else fields or text
    for child in children:
        value = _value(child, repeated, depth - 1)
        if (element.tag, child.tag) not in repeated:
            fields[_name(child.tag)] = value
        else:
            fields.setdefault(_name(child.tag), []).append(value)
    is_wrapper = len(fields) == 1 and (element.tag, children[0].tag) in repeated
    return fields[_name(children[0].tag)] if is_wrapper else fields


def _name(tag: str) -> str:
    return str(etree.QName(tag).localname)
