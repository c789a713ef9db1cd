"""Which settings an index fixes, and which are a query's own.

The manifest records every setting of the build. Searches take from it those that the files depend on; all others
are this version's defaults, a config file's or the command line's, so that an old index is searched in the best
way that is known now.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from helios.config import Config, CorpusBudget, Section, known_keys, lookup, store
from helios.errors import ConfigError, IndexFormatError
from helios.index.snapshot import Snapshot

BUILT = (
    "linking", "encoder", "tokens", "advanced.corpus", "advanced.linking", "advanced.encoder",
)  # fmt: skip
"""Sections that an index takes from its build."""
MOVABLE = (
    "encoder.model", "encoder.adapter", "encoder.runtime", "encoder.device", "advanced.encoder.batch_tokens",
)  # fmt: skip
"""Settings of those that a query may set: where a model lies (that it is the same one is checked) and how it runs."""
WITHOUT_EFFECT = (
    "advanced.linking.chunk", "advanced.encoder.chunk",
    *(f"advanced.corpus.{name}" for name in CorpusBudget.model_fields),
)  # fmt: skip
"""Settings of those that say how a build is cut into pieces and what it refuses; a search has no use for them."""
RENAMED = {
    "linking.model": "advanced.linking.model",
    "linking.threshold": "advanced.linking.threshold",
    "linking.fuzzy": "advanced.linking.fuzzy",
    "linking.dense": "advanced.linking.dense",
    "encoder.max_tokens": "advanced.encoder.max_tokens",
    "encoder.batch_tokens": "advanced.encoder.batch_tokens",
    "tokens.centroids": "advanced.encoder.centroids",
}
"""Settings of indexes of format 1, by their names of now."""


def search_settings(snapshot: Snapshot, asked: Config) -> Config:
    """The settings of searches: those that were asked for, with the build's own where files depend on them.

    Raises ConfigError where `asked` sets one of the latter to another value, IndexFormatError for a build with a
    setting that this code does not know.
    """
    built, wanted = built_with(snapshot).resolved(), asked.resolved()
    given = _set_keys(asked, "")
    changed = asked.model_dump(exclude_unset=True)
    for key in (key for key in known_keys() if _of_build(key)):
        of_build, of_query = lookup(built, key), lookup(wanted, key)
        if key not in given:
            store(changed, key, of_build)
        elif key not in (*MOVABLE, *WITHOUT_EFFECT) and of_query != of_build:
            raise ConfigError(_contradiction(snapshot, key, of_build, of_query))
    _check_at_hand(snapshot, built["encoder"]["model"], asked="encoder.model" in given)
    return Config.model_validate(changed)


def _check_at_hand(snapshot: Snapshot, model: str | None, *, asked: bool) -> None:
    """Refuse to fetch from a network what only the index names: it may be a stranger's."""
    if model is None or asked:
        return
    from helios.models.base import is_at_hand

    if not is_at_hand(model):
        raise ConfigError(
            f"{snapshot.directory}: was built with encoder.model={model}, which is not on this machine, and HELIOS "
            f"does not download what an index names; if you trust it, set encoder.model={model} yourself, or run "
            f"`hf download {model}`"
        )


def built_with(snapshot: Snapshot) -> Config:
    """The settings that the index's files depend on, all others default; IndexFormatError for an unknown one."""
    recorded: dict[str, Any] = {}
    for key, value in _leaves(snapshot.manifest.config, ""):
        name = RENAMED.get(key, key)
        if _of_build(name):
            store(recorded, name, value)
    advanced = recorded.setdefault("advanced", {}).setdefault("encoder", {})
    advanced.setdefault("windows", 1)  # of format 1: longer texts were cut
    try:
        return Config.model_validate(recorded)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise IndexFormatError(
            f"{snapshot.directory}: built by HELIOS {snapshot.manifest.code_version} with a setting that this code "
            f"does not know ({where}): {error.errors()[0]['msg']}; use that version, or build the index again"
        ) from None


def _of_build(key: str) -> bool:
    return key.rpartition(".")[0] in BUILT


def _set_keys(section: Section, prefix: str) -> set[str]:
    """Dotted names of the settings that somebody gave."""
    keys: set[str] = set()
    for name in section.model_fields_set:
        value = getattr(section, name)
        keys |= _set_keys(value, f"{prefix}{name}.") if isinstance(value, Section) else {f"{prefix}{name}"}
    return keys


def _leaves(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _contradiction(snapshot: Snapshot, key: str, built: Any, wanted: Any) -> str:
    return (
        f"{key}={_shown(wanted)}: {snapshot.directory} was built with {key}={_shown(built)}, and its files depend on "
        f"it; leave it out, or build another index: `helios index build CORPUS --out NEW {key}={_shown(wanted)}`"
    )


def _shown(value: Any) -> str:
    """A value as it is written in YAML."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
