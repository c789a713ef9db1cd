"""Kinds of sources: one record each, of this package or of another that is installed.

A package brings a kind through an entry point whose name is the kind's and whose value is a `Kind`:

    [project.entry-points."helios.sources"]
    ledger = "ledger.source:KIND"

The record says all that the rest of HELIOS asks about a kind: how it is registered, what it is asked in, who opens it,
what stands between a query and its data, and how `helios sources add` tells it by a file or an address. A record is
loaded when its kind is used; one that cannot be loaded leaves the other kinds as they are.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from helios.errors import ConfigError
from helios.executors.base import Language

if TYPE_CHECKING:
    from helios.sources.base import Source
    from helios.sources.cache import SourceCache
    from helios.sources.spec import SourceSpec

    Opener = Callable[[str, SourceSpec, Path, SourceCache], Source]

log = logging.getLogger(__name__)

GROUP = "helios.sources"
"""The group of entry points that other packages add kinds by."""


@dataclass(frozen=True, slots=True)
class Kind:
    """All that is particular to a kind of source."""

    name: str
    spec: "type[SourceSpec]"
    """Which keys its registration has; unknown keys are refused by it."""
    language: Language
    """What it is asked in; questions are put into that language by HELIOS."""
    opener: str
    """`module:function` that opens a source from its name, its registration, the folder of its paths and its cache."""
    guards: tuple[str, ...]
    """What stands between a query and the data, in words, in the order in which it is met."""
    modules: tuple[str, ...] = ()
    """Modules that it needs and that may not be installed; looked for before a source is opened."""
    install: str = ""
    """The command that installs them; empty for those that come with an extra of this package."""
    endings: tuple[str, ...] = ()
    """Endings of files that are of this kind."""
    schemes: tuple[str, ...] = ()
    """Schemes of URLs that are of this kind."""
    looks_like: Callable[[Path, bytes], bool] | None = None
    """Whether a file or folder is of this kind, told from its path and its first 16 bytes (none of a folder)."""

    def open(self) -> "Opener":
        """The function that opens a source of this kind."""
        module, _, function = self.opener.partition(":")
        opener: Opener = getattr(import_module(module), function)
        return opener


def kind_names() -> tuple[str, ...]:
    """Every kind that can be registered: those of this package, then those of others."""
    return (*_own(), *_others())


def kind_named(name: str) -> Kind:
    """A kind by its name; ConfigError for one that is unknown, or whose package cannot be loaded."""
    own, others = _own(), _others()
    if name in own:
        return own[name]
    if name not in others:
        raise ConfigError(f"there is no kind of source {name!r}; there are {', '.join(kind_names())}")
    return _loaded(others[name])


def all_kinds() -> tuple[Kind, ...]:
    """Every kind that can be loaded; what cannot is logged."""
    found = list(_own().values())
    for point in _others().values():
        try:
            found.append(_loaded(point))
        except ConfigError as error:
            log.warning("%s", error)
    return tuple(found)


def _own() -> Mapping[str, Kind]:
    from helios.sources.builtin import BUILT_IN

    return BUILT_IN


@lru_cache(1)
def _others() -> Mapping[str, EntryPoint]:
    """Entry points by the kind that they bring; none replaces a kind of this package."""
    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        if point.name in _own() or point.name in found:
            log.warning("%s: the kind of source %r is taken; this one is passed over", _provider(point), point.name)
        else:
            found[point.name] = point
    return found


def _loaded(point: EntryPoint) -> Kind:
    try:
        kind = point.load()
    except Exception as error:  # noqa: BLE001 - another package's code runs here
        raise ConfigError(
            f"{_provider(point)}: its kind of source {point.name!r} cannot be loaded from {point.value} "
            f"({type(error).__name__}: {error})"
        ) from None
    if not isinstance(kind, Kind) or kind.name != point.name:
        raise ConfigError(
            f"{_provider(point)}: {point.value} is not the kind of source {point.name!r}; expected a "
            "helios.sources.kinds.Kind of that name"
        )
    return kind


def _provider(point: EntryPoint) -> str:
    return f"the package {point.dist.name if point.dist else point.module}"
