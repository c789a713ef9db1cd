"""The registry: which sources there are, and one open source for each, made on first use.

    with Registry.open("helios-sources.yaml") as registry:
        registry.source("singers").descriptor()

A registry that stays open (in a server) sees what others add to the file or take out of it: every look at the
registry compares the file's time. Sources whose registration is the same stay open.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from threading import RLock
from types import TracebackType

from helios.errors import ConfigError, HeliosError, QueryRejected, SourceUnavailable
from helios.executors.base import Limits, NativeQuery, Outcome, ResultSet, execute_many
from helios.sources.base import Source, ValueHit
from helios.sources.cache import SourceCache
from helios.sources.descriptor import Descriptor
from helios.sources.kinds import kind_named
from helios.sources.knowledge import Knowledge, applied, read_knowledge, recalled
from helios.sources.modules import require_modules
from helios.sources.registry_file import DEFAULT_FILE, read_sources, write_source
from helios.sources.spec import SourceSpec, plain_spec, read_spec

__all__ = ["Registry", "RegisteredSource", "SourceSpec"]

log = logging.getLogger(__name__)

SAME_VALUE = 0.97
"""Score of a stored value that is said by a phrase."""


class Registry:
    """The sources of one file; threads may share it."""

    def __init__(self, path: Path, specs: dict[str, SourceSpec]) -> None:
        self.path = path
        self._specs = specs
        self._sources: dict[str, RegisteredSource] = {}
        self._stamp = _stamp(path)
        self._lock = RLock()

    @classmethod
    def open(cls, path: Path | str = DEFAULT_FILE, *, create: bool = False) -> "Registry":
        """Read a file of sources, opening none; ConfigError for one that is absent (unless `create`) or wrong."""
        path = Path(path).expanduser().resolve()
        stamp = _stamp(path)
        registry = cls(path, {} if create and not path.exists() else read_sources(path))
        registry._stamp = stamp
        return registry

    def names(self) -> tuple[str, ...]:
        """All registered sources, in the file's order."""
        with self._lock:
            self.reload()
            return tuple(self._specs)

    def spec(self, name: str) -> SourceSpec:
        """How a source is registered; ConfigError for an unknown name."""
        with self._lock:
            self.reload()
            if name not in self._specs:
                known = ", ".join(self._specs) or "none"
                raise ConfigError(f"{self.path}: no source {name!r}; registered: {known}")
            return self._specs[name]

    def source(self, name: str) -> "RegisteredSource":
        """A source, the same object each time; its engine starts when it is first asked something."""
        with self._lock:
            spec = self.spec(name)
            if name not in self._sources:
                self._sources[name] = RegisteredSource(name, spec, self.path.parent, self.cache_folder)
            return self._sources[name]

    def sources(self) -> "tuple[RegisteredSource, ...]":
        """All sources, in the file's order."""
        with self._lock:
            return tuple(self.source(name) for name in self.names())

    def add(self, name: str, values: SourceSpec | dict[str, object], *, replace: bool = False) -> bool:
        """Register a source in the file; False where comments of the file were lost (`registry_file`).

        ConfigError for wrong values, and for a name that is taken, unless `replace`.
        """
        spec = values if isinstance(values, SourceSpec) else read_spec(name, values, where=str(self.path))
        read_spec(name, plain_spec(spec), where=str(self.path))
        with self._lock:
            self.reload()
            if name in self._specs and not replace:
                raise ConfigError(f"{self.path}: source {name!r} exists; give another name, or replace it")
            kept = write_source(self.path, name, spec)
            self.reload()
            return kept

    def remove(self, name: str) -> bool:
        """Take a source out of the file and close it; what is cached of it goes too. False as for `add`."""
        with self._lock:
            spec = self.spec(name)
            kept = write_source(self.path, name, None)
            self.reload()
            SourceCache(self.cache_folder, name, spec.fingerprint(self.path.parent)).clear()
            return kept

    def refresh(self, name: str) -> Descriptor:
        """Read a source's descriptor again: its data has changed. Other processes see it at their next look."""
        source = self.source(name)
        source.refresh()
        return source.descriptor()

    def reload(self) -> bool:
        """Follow a change of the file; True where there was one. A file that cannot be used leaves all as it is."""
        with self._lock:
            stamp = _stamp(self.path)
            if stamp == self._stamp:
                return False
            self._stamp = stamp
            try:
                specs = read_sources(self.path)
            except ConfigError as error:
                log.warning("the sources stay as they were: %s", error)
                return False
            self._specs = specs
            gone = [name for name, source in self._sources.items() if specs.get(name) != source.spec]
            closing = [self._sources.pop(name) for name in gone]
        for source in closing:
            source.close()
        return True

    def close(self) -> None:
        """Close every source that was opened."""
        with self._lock:
            sources, self._sources = list(self._sources.values()), {}
        for source in sources:
            source.close()

    @property
    def cache_folder(self) -> Path:
        """Where descriptors and lookups are kept; see `helios.sources.cache`."""
        return self.path.with_suffix(".cache")

    def __enter__(self) -> "Registry":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RegisteredSource:
    """A source of a registry: its descriptor comes from disk where that is current, its engine starts when needed."""

    def __init__(self, name: str, spec: SourceSpec, folder: Path, cache_folder: Path | None) -> None:
        self.name = name
        self.spec = spec
        self.kind = spec.kind
        self.language = kind_named(spec.kind).language
        self._folder = folder
        self._cache_folder = cache_folder
        self._cache: SourceCache | None = None
        self._opened: Source | None = None
        self._descriptor: Descriptor | None = None
        self._knowledge: Knowledge | None = None
        self._knowledge_stamp = (0, 0, 0)
        self._told: tuple[Descriptor, Knowledge, Descriptor] | None = None
        self._stamp = 0
        self._closed = False
        self._lock = RLock()

    @property
    def opened(self) -> Source:
        """The source of its kind itself, opened now if it was not; SourceUnavailable says why it cannot be."""
        with self._lock:
            if self._closed:
                raise SourceUnavailable(f"source {self.name!r} was closed")
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def descriptor(self) -> Descriptor:
        """The schema with counts and samples, and what people know of it: from memory, disk, or the source."""
        with self._lock:
            descriptor, knowledge = self._read_descriptor(), self._known()
            if self._told is None or self._told[0] is not descriptor or self._told[1] is not knowledge:
                told = descriptor if knowledge == Knowledge() else applied(descriptor, knowledge)
                self._told = (descriptor, knowledge, told)
            return self._told[2]

    def _read_descriptor(self) -> Descriptor:
        """The same without what people know."""
        with self._lock:
            cache = self._current_cache()
            if self._descriptor is not None and cache.stamp() == self._stamp:
                return self._descriptor
            if self._descriptor is not None and self._opened is not None:
                self._opened.refresh()  # another process has read the source again: so does this one
            descriptor = cache.descriptor()
            if descriptor is None:
                descriptor = self.opened.descriptor()
                cache.keep(descriptor)
            self._descriptor, self._stamp = descriptor, cache.stamp()
            return descriptor

    @property
    def knowledge_path(self) -> Path:
        """Where what people know of the source stands."""
        folder = self._cache_folder or self._folder / "helios-sources.cache"
        return folder.with_suffix(".knowledge") / f"{self.name}.yaml"

    def knowledge(self) -> Knowledge:
        """What people know of the source, as the file is now; ConfigError for one that is wrong."""
        stamp = _stamp(self.knowledge_path)
        with self._lock:
            if self._knowledge is None or stamp != self._knowledge_stamp:
                self._knowledge, self._knowledge_stamp = read_knowledge(self.knowledge_path), stamp
            return self._knowledge

    def examples(self, question: str) -> tuple[tuple[str, str], ...]:
        """Questions and queries that were taught and resemble the question; those that the guard passes today."""
        return tuple(
            (example.question, example.query)
            for example in self._known().similar(question)
            if self._passes(NativeQuery(self.language, example.query))
        )

    def recall(self, question: str) -> NativeQuery | None:
        """The query of a taught question that this one is, up to the literals of the query."""

        def stored(text: str) -> str | None:
            hits = self.find_values([text], limit=1)
            return hits[0].value if hits and hits[0].score >= SAME_VALUE else None

        found = recalled(question, self._known(), self.language, stored)
        return None if found is None else NativeQuery(self.language, found.query)

    def _known(self) -> Knowledge:
        """What people know; nothing, and a warning, where the file is wrong."""
        try:
            return self.knowledge()
        except ConfigError as error:
            log.warning("what is known of the source is left out: %s", error)
            return Knowledge()

    def _passes(self, query: NativeQuery) -> bool:
        check = getattr(getattr(self.opened, "executor", None), "check", None)
        try:
            if check is not None:
                check(query)
        except QueryRejected:
            return False
        return True

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        """The stored values that resemble each phrase best."""
        return self.opened.find_values(phrases, limit=limit)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Run a query through the guarded executor."""
        return self.opened.execute(query, limits)

    def execute_many(self, queries: Sequence[NativeQuery], limits: Limits, seconds: float) -> list[Outcome]:
        """Run queries that do not need each other's rows, within `seconds`; what became of each, in their order.

        SourceUnavailable may also be raised.
        """
        return execute_many(self.opened, queries, limits, seconds)

    def refresh(self) -> None:
        """Forget descriptor and lookup, here and on disk; the engine starts again, on the data as it is now."""
        with self._lock:
            self._current_cache().clear()
            opened, self._opened = self._opened, None
            self._cache = self._descriptor = None
        if opened is not None:
            opened.close()

    def check(self) -> None:
        """Open the source and read one thing; SourceUnavailable says what to mend."""
        self.opened.check()

    def close(self) -> None:
        """End processes and connections; the source cannot be opened again."""
        with self._lock:
            self._closed = True
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _open(self) -> Source:
        for path in self.spec.paths(self._folder):
            if not path.exists():
                raise SourceUnavailable(f"source {self.name!r}: {path}: no such file or folder; mend its registration")
        kind = kind_named(self.kind)
        require_modules(kind.modules, wanted_by=f"source {self.name!r}", install=kind.install)
        try:
            return kind.open()(self.name, self.spec, self._folder, self._current_cache())
        except SourceUnavailable:
            raise
        except HeliosError as error:
            raise SourceUnavailable(f"source {self.name!r} cannot be opened: {error}") from error

    def _current_cache(self) -> SourceCache:
        if self._cache is None:
            self._cache = SourceCache(self._cache_folder, self.name, self.spec.fingerprint(self._folder))
        return self._cache


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        status = path.stat()
    except OSError:
        return (0, 0, 0)
    return (status.st_mtime_ns, status.st_size, status.st_ino)
