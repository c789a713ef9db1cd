"""The files of a corpus and their checksums, remembered so that a resumed build need not read them again."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from helios.corpus.files import FileList
from helios.corpus.readers import FORMATS, recognise, why_passed_over
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
    files, others = _looked_at(corpus, follow_links=follow_links)
    if not files:
        reason = others[0][1] if corpus.is_file() else _why_nothing(corpus, others)
        raise CorpusError(f"{corpus}: {reason}; known formats: {', '.join(known.name for known in FORMATS)}")
    return files


def _why_nothing(folder: Path, others: list[tuple[str, str]]) -> str:
    """Why no file of a folder is read."""
    try:
        is_empty = not any(folder.iterdir())
    except OSError as error:
        raise CorpusError(f"{folder}: the folder cannot be read ({error.strerror})") from None
    if is_empty:
        return "the folder is empty"
    named = f" ({others[0][0]}: {others[0][1]})" if others else ""
    return f"nothing here is a corpus{named}"


def list_files(corpus: Path, kept: Path, out: Path, *, follow_links: bool = False) -> FileList:
    """Write to `out` what became of every file: those read as `kept` has them, the others as they are now."""
    files, others = _looked_at(corpus, follow_links=follow_links)
    names = {file.name for file in files}
    entries = [
        entry
        for entry in FileList.load(kept)
        if not names.isdisjoint([entry.file, *map(str, PurePosixPath(entry.file).parents)])
    ]
    listed = FileList(sorted(entries, key=lambda entry: entry.file))
    for name, reason in others:
        listed.pass_over(name, reason)
    listed.write(out)
    return listed


def _looked_at(corpus: Path, *, follow_links: bool) -> tuple[list[InputFile], list[tuple[str, str]]]:
    """The files that a reader recognises, and the names of the others with the reason.

    A file that cannot be opened counts as recognised, so that reading reports it.
    """
    files, others = [], []
    for name, path, hidden in corpus_files(corpus, follow_links=follow_links):
        reason = hidden or _why_not(path, name)
        if reason:
            others.append((name, reason))
        else:
            about = path.stat()
            files.append(InputFile(name, path, about.st_size, about.st_mtime_ns))
    return files, others


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


def _why_not(path: Path, name: str) -> str:
    try:
        source = SourceFile.open(path, name)
    except CorpusError:
        return ""
    return "" if recognise(source) else why_passed_over(source)


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
