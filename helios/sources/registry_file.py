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
from helios.index.durable import read_whole, write_atomically
from helios.sources.spec import SourceSpec, plain_spec, read_spec

DEFAULT_FILE = "helios-sources.yaml"
MAX_LENGTH = 4 * 2**20
MAX_DEPTH = 20
MAX_PARTS = 100_000
"""Characters, levels and values of a file of sources."""
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


def read_yaml(text: str, *, where: str) -> Any:
    """The document in a YAML text; ConfigError, which repeats none of its values, for what is none or too much."""
    if len(text) > MAX_LENGTH:
        raise ConfigError(f"{where}: has {len(text):,} characters, more than the {MAX_LENGTH:,} that it may have")
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}:{mark.line + 1}" if mark else where
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
        raise ConfigError(f"{place}: not valid YAML ({problem})") from None
    except (ValueError, TypeError, OverflowError):  # dates that are none, whole numbers of 5,000 digits
        raise ConfigError(f"{where}: not valid YAML (a date or a number that is none, or one too long)") from None


def _checked(text: str, path: Path) -> dict[str, SourceSpec]:
    document = read_yaml(text, where=str(path))
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
        return read_whole(path, most=4 * MAX_LENGTH).decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no file of sources; `helios sources add` makes one") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the file of sources ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text ({error.reason})") from None


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Refuses a key that stands twice, of which one would silently win, and what makes much of little."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._parts: dict[int, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        """One node; its parts are counted as often as aliases repeat them."""
        self._depth += 1
        mark = self.peek_event().start_mark
        if self._depth > MAX_DEPTH:
            raise yaml.composer.ComposerError(None, None, f"nests more than {MAX_DEPTH} levels deep", mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if id(node) not in self._parts:
            inner = node.value if isinstance(node, yaml.CollectionNode) else ()
            parts = [part for item in inner for part in (item if isinstance(item, tuple) else (item,))]
            self._parts[id(node)] = 1 + sum(self._parts.get(id(part), MAX_PARTS) for part in parts)
        if self._parts[id(node)] > MAX_PARTS:
            raise yaml.composer.ComposerError(None, None, f"has more than {MAX_PARTS:,} parts", mark)
        return node

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
    document = yaml.compose(text, Loader=_Loader)
    if not isinstance(document, yaml.MappingNode) or not document.value:
        return None
    node = document.value[0][1]
    return node if isinstance(node, yaml.MappingNode) and node.value else None


def _last_line(lines: list[str], node: Any) -> int:
    """The last line of a node: that of its last scalar, since a block's own end mark stands at what follows it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    end: int = node.end_mark.line
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        end -= 1
    while end > node.start_mark.line and not lines[min(end, len(lines) - 1)].strip():
        end -= 1
    return min(end, len(lines) - 1)


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
