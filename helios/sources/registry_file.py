"""The YAML file of sources: read, and changed one source at a time.

    sources:
      singers:
        kind: sqlite
        path: singers.sqlite

A change edits the lines of one source and leaves all others, with their comments, as they are. Where the file is
written in a way that this cannot do (flow style, anchors across sources), the whole file is written anew and its
comments are lost; `write` says so.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from helios.errors import ConfigError
from helios.index.durable import write_atomically
from helios.sources.spec import SourceSpec, plain_spec, read_spec

DEFAULT_FILE = "helios-sources.yaml"
HEADER = "# Sources that HELIOS may ask; secrets stand in environment variables, only their names here.\n"


def read_sources(path: Path) -> dict[str, SourceSpec]:
    """Every registration of a file, in its order; ConfigError says which file, source and key are wrong."""
    return _checked(_text(path), path)


def write_source(path: Path, name: str, spec: SourceSpec | None) -> bool:
    """Set one source, or take it out where `spec` is None; False where comments of the file were lost.

    The file is made where there is none. Writers in other processes wait for each other.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path):
        text = _text(path) if path.exists() else f"{HEADER}sources: {{}}\n"
        wanted = {other: plain_spec(old) for other, old in _checked(text, path).items()}
        if spec is None:
            wanted.pop(name, None)
        else:
            wanted[name] = plain_spec(spec)
        changed = _edited(text, name, wanted.get(name))
        kept = changed is not None and _same(changed, wanted, path)
        if not kept or changed is None:
            changed = HEADER + _dump({"sources": wanted})
        write_atomically(path, changed.encode())
        return kept or "#" not in text.removeprefix(HEADER)


def _checked(text: str, path: Path) -> dict[str, SourceSpec]:
    try:
        document = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise ConfigError(f"{where}: not valid YAML ({getattr(error, 'problem', None) or error})") from None
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise ConfigError(f"{path}: expected a mapping with `sources:`, got {type(document).__name__}")
    unknown = [str(key) for key in document if key != "sources"]
    if unknown:
        raise ConfigError(f"{path}: unknown key {unknown[0]!r}; the file has one key, `sources:`")
    sources = document.get("sources") or {}
    if not isinstance(sources, Mapping):
        raise ConfigError(f"{path}: sources: expected names with settings, got {type(sources).__name__}")
    return {name: read_spec(name, values, where=str(path)) for name, values in sources.items()}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no file of sources; `helios sources add` makes one") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the file of sources ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text ({error.reason})") from None


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Refuses a key that stands twice: one of the two would silently win."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen and key.value != "<<":
                    raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} twice", key.start_mark)
                seen.add(key.value)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def _edited(text: str, name: str, values: Mapping[str, Any] | None) -> str | None:
    """The text with one source's lines set or taken out; None where its lines cannot be told."""
    sources = _sources_node(text)
    if sources is None or sources.flow_style:
        return None
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    indent = sources.value[0][0].start_mark.column
    block = [] if values is None else _block(name, values, indent)
    place = next((i for i, (key, _) in enumerate(sources.value) if key.value == name), None)
    if place is None:
        end = _last_line(lines, sources.value[-1][1]) + 1
        return "".join([*lines[:end], *block, *lines[end:]])
    if values is None and len(sources.value) == 1:
        return None
    key, node = sources.value[place]
    start, end = key.start_mark.line, _last_line(lines, node) + 1
    return "".join([*lines[:start], *block, *lines[end:]])


def _sources_node(text: str) -> Any:
    document = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(document, yaml.MappingNode) or not document.value:
        return None
    node = document.value[0][1]
    return node if isinstance(node, yaml.MappingNode) and node.value else None


def _last_line(lines: list[str], node: Any) -> int:
    """The last line with anything of a node on it: a block's end mark lies behind the comments that follow it."""
    last = node.end_mark.line if node.end_mark.column else node.end_mark.line - 1
    last = min(last, len(lines) - 1)
    while last > node.start_mark.line and (not lines[last].strip() or lines[last].lstrip().startswith("#")):
        last -= 1
    return int(last)


def _block(name: str, values: Mapping[str, Any], indent: int) -> list[str]:
    return [" " * indent + line for line in _dump({name: dict(values)}).splitlines(keepends=True)]


def _dump(document: Any) -> str:
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10_000))


def _same(text: str, wanted: Mapping[str, Any], path: Path) -> bool:
    try:
        return {name: plain_spec(spec) for name, spec in _checked(text, path).items()} == wanted
    except ConfigError:
        return False


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One writer at a time; the kernel frees the lock when its process ends."""
    descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
