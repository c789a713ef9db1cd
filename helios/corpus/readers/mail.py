"""EML: a message's headers as attributes, its text as passages, its attachments as files of their own."""

import email
import email.policy
from collections.abc import Iterator
from email.message import EmailMessage, Message, MIMEPart
from pathlib import PurePosixPath

from helios.corpus.budget import RecordShapeError
from helios.corpus.encoding import decode, readable
from helios.corpus.page import Block, Heading, PageTable, Place, page_records
from helios.corpus.readers import html
from helios.corpus.readers.archive import read_within
from helios.corpus.readers.extra import parsing
from helios.corpus.readers.text import text_blocks
from helios.corpus.record import Parsed
from helios.corpus.rejects import Rejection
from helios.corpus.source import SourceFile
from helios.types import TableKind

_HEADERS = ("From", "To", "Cc", "Date", "Subject", "Reply-To")
_METADATA = ("From", "To", "Date")


def detect(source: SourceFile) -> bool:
    """By the file name's ending."""
    return source.suffix in (".eml", ".mht", ".mhtml")


def read(source: SourceFile, rejection: Rejection) -> Iterator[Parsed]:
    """The message, then its attachments, named by their file names."""
    with parsing("EML"):
        message = email.message_from_bytes(source.read(), policy=email.policy.default)
        headers = {name: text for name in _HEADERS if (text := _header(message, name))}
        page = [*_blocks(message, headers, source)]
        attachments = [*_attachments(message)]
    if not headers:
        raise RecordShapeError("not a message: it has neither sender nor receiver, date nor subject")
    for record in page_records(
        source.base_id, headers.get("Subject") or source.title, iter(page), budget=source.budget
    ):
        yield Parsed(record)
    for name, content in attachments:
        yield from read_within(source.within(name, content), rejection)


def _blocks(message: EmailMessage, headers: dict[str, str], source: SourceFile) -> Iterator[Block]:
    yield Place(tuple(sorted((name.lower(), headers[name]) for name in _METADATA if name in headers)))
    yield PageTable((), list(headers.items()), kind=TableKind.INFOBOX)
    yield Heading(1, headers.get("Subject", ""))
    body = message.get_body(("plain", "html"))
    if body is None:
        return
    text = _decoded(body)
    if body.get_content_subtype() == "html":
        root = html.parse(text)
        yield from html.blocks(root, source.budget) if root is not None else ()
    else:
        for block in text_blocks(text):
            yield Heading(6, block.text) if isinstance(block, Heading) else block


def _decoded(part: MIMEPart) -> str:
    content = part.get_payload(decode=True)
    return readable(decode(content, declared=part.get_content_charset())) if isinstance(content, bytes) else ""


def _header(message: EmailMessage, name: str) -> str:
    """A header on one line; what the parser cannot make sense of is left out."""
    try:
        value = message.get(name)
    except (ValueError, TypeError, IndexError, AttributeError, KeyError):  # what email.headerregistry has raised
        return ""
    return readable(" ".join(str(value).split())) if value is not None else ""


def _attachments(message: EmailMessage) -> Iterator[tuple[str, bytes]]:
    """(file name, content) of every part that has a name, and of messages within the message."""
    used: set[str] = set()
    for number, part in enumerate(_leaves(message), 1):
        own = PurePosixPath(readable(part.get_filename() or "").replace("\\", "/")).name.strip(". ")
        if part.get_content_type() == "message/rfc822":
            inner = part.get_payload()
            first = inner[0] if isinstance(inner, list) and inner else None
            content = first.as_bytes() if isinstance(first, Message) else b""
            own = own or f"message-{number}.eml"
        elif own:
            payload = part.get_payload(decode=True)
            content = payload if isinstance(payload, bytes) else b""
        else:
            continue
        name = own if own not in used else f"{number}-{own}"
        used.add(name)
        yield name, content


def _leaves(part: MIMEPart) -> Iterator[MIMEPart]:
    """The parts of a message that have no parts, or are messages themselves."""
    if not part.is_multipart():
        yield part
        return
    for inner in part.iter_parts():
        if inner.get_content_type() == "message/rfc822":
            yield inner
        else:
            yield from _leaves(inner)
