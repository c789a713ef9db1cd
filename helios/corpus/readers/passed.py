"""Which files are no corpus though a reader could read them, or cannot be read by any, and why."""

import mimetypes
import re
from collections.abc import Iterator
from itertools import islice

from helios.corpus.record import first_object
from helios.corpus.source import SourceFile

_MEDIA = ("image", "audio", "video", "font")
_LOCK_PREFIXES = ("~$", ".~lock")
_SETTINGS = re.compile(r"(.*[-_. ])?(config|configuration|settings|preferences)")
_SETTINGS_SUFFIXES = {".toml", ".ini", ".cfg", ".conf", ".env", ".lock", ".properties"}
_DATA_SUFFIXES = {".json", ".jsonl", ".ndjson", ".yaml", ".yml"}
_JUDGEMENTS = (b"query-id\tcorpus-id", b"query_id\tcorpus_id", b"qid\t0\t")
_NAME = re.compile(r'"((?:[^"\\]|\\.){1,80})"\s*:')
_ID = re.compile(r"(.*_)?q?u?id")
_PROBED_NAMES = 40
_SAVE_AS = {
    ".doc": "DOCX", ".odt": "DOCX", ".rtf": "DOCX", ".pages": "DOCX", ".ppt": "PPTX", ".odp": "PPTX", ".key": "PPTX",
    ".numbers": "XLSX", ".msg": "EML", ".rar": "ZIP", ".7z": "ZIP", ".tar": "ZIP", ".tgz": "ZIP", ".epub": "HTML",
}  # fmt: skip
_DATABASES = {".sqlite", ".sqlite3", ".db", ".duckdb"}


def passed_over(source: SourceFile) -> str:
    """Why a file is not to be read; empty where a reader may have it."""
    kind = mimetypes.guess_type(f"file{source.suffix}")[0] or ""
    if source.size == 0 or (not source.head.strip() and source.size <= len(source.head)):
        return "empty"
    if source.path.name.startswith(_LOCK_PREFIXES):
        return "a lock file of an office program"
    if kind.partition("/")[0] in _MEDIA:
        return f"{kind.partition('/')[0]}: no text to read"
    if source.head.lower().startswith(_JUDGEMENTS):
        return "relevance judgements"
    if source.suffix in _DATA_SUFFIXES and _is_questions(source):
        return "questions for an evaluation"
    if source.suffix in _SETTINGS_SUFFIXES:
        return "settings"
    if source.suffix in _DATA_SUFFIXES and _SETTINGS.fullmatch(source.stem.lower()):
        return "settings, by its name"
    return ""


def unknown(source: SourceFile) -> str:
    """Why no reader takes a file."""
    if source.suffix in _DATABASES:
        return "a database, which is asked where it lies: helios sources add NAME --path FILE"
    if source.suffix in _SAVE_AS:
        return f"{source.suffix} is not a format that is read; save it as {_SAVE_AS[source.suffix]}"
    return "not a format that is read" + (f": {source.suffix}" if source.suffix else "")


def _is_questions(source: SourceFile) -> bool:
    """The queries that lie beside a BEIR corpus, or records of a question with an id (without one: a list of FAQ)."""
    names = ("corpus.jsonl", "corpus.jsonl.gz")
    if source.stem.lower() == "queries" and any((source.path.parent / name).exists() for name in names):
        return True
    if source.suffix in (".yaml", ".yml"):
        return False
    record = first_object(source.head)
    keys = set(record) if record is not None else set(_names(source))
    return "question" in keys and any(_ID.fullmatch(key.lower()) for key in keys)


def _names(source: SourceFile) -> Iterator[str]:
    """The first names of fields, at whatever depth."""
    found = _NAME.finditer(source.head.decode("utf-8", "replace"))
    return (match.group(1) for match in islice(found, _PROBED_NAMES))
