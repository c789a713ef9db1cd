"""The files of a corpus and their checksums, remembered so that a resumed build need not read them again."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from helios.corpus.readers import FORMATS, recognise
from helios.corpus.source import SourceFile, corpus_files
from helios.errors import CorpusError
from helios.index.durable import sha256_file, write_atomically


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of the corpus as it was when looked at; `name` is its path inside the corpus."""

    name: str
    path: Path
    size: int
    modified_ns: int


def input_files(corpus: Path, *, follow_links: bool = False) -> list[InputFile]:
    """Every file that `read_corpus` would read, sorted by name; CorpusError where there is none."""
    files = [
        InputFile(name, path, path.stat().st_size, path.stat().st_mtime_ns)
        for name, path in corpus_files(corpus, follow_links=follow_links)
        if _is_corpus_file(path, name)
    ]
    if not files:
        names = ", ".join(known.name for known in FORMATS)
        raise CorpusError(f"{corpus}: nothing here is a corpus; known formats: {names}")
    return files


def inputs_sha256(corpus: Path, cache: Path | None = None, *, follow_links: bool = False) -> str:
    """SHA-256 over the names and contents of all files of a corpus.

    Checksums of files whose size and date have not changed come from `cache`, a JSON file that is updated.
    """
    known = _read_cache(cache) if cache else {}
    fresh: dict[str, list[int | str]] = {}
    digest = hashlib.sha256()
    for file in input_files(corpus, follow_links=follow_links):
        entry = known.get(file.name)
        if not entry or entry[:2] != [file.size, file.modified_ns]:
            entry = [file.size, file.modified_ns, _sha256(file.path)]
        fresh[file.name] = entry
        digest.update(json.dumps([file.name, entry[2]]).encode())
    if cache and fresh != known:
        write_atomically(cache, json.dumps(fresh, indent=1).encode())
    return digest.hexdigest()


def _is_corpus_file(path: Path, name: str) -> bool:
    """Whether a reader recognises the file; one that cannot be opened counts, so that reading reports it."""
    try:
        source = SourceFile.open(path, name)
    except CorpusError:
        return True
    return recognise(source) is not None


def _sha256(path: Path) -> str:
    try:
        return sha256_file(path)
    except OSError as error:
        return f"unreadable: {error.strerror}"


def _read_cache(cache: Path) -> dict[str, list[int | str]]:
    try:
        known = json.loads(cache.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
