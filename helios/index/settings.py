"""Which settings an index fixes, and which are a query's own.

The manifest records every setting of the build. Searches take from it those that the files depend on; all others
are this version's defaults, a config file's or the command line's, so that an old index is searched in the best
way that is known now.
"""

from typing import Any

from pydantic import ValidationError

from helios.config import Config, Section
from helios.errors import ConfigError, IndexFormatError
from helios.index.snapshot import Snapshot

BUILD_SECTIONS = ("linking", "encoder", "tokens")
"""Sections that an index takes from its build."""
MOVABLE = ("encoder.model", "encoder.adapter", "encoder.runtime", "encoder.batch_tokens")
"""Settings of those that a query may set: where a model lies (that it is the same one is checked) and how it runs."""


def search_settings(snapshot: Snapshot, asked: Config) -> Config:
    """The settings of searches: those that were asked for, with the build's own where files depend on them.

    Raises ConfigError where `asked` sets one of the latter to another value, IndexFormatError for a build with a
    setting that this code does not know.
    """
    built = built_with(snapshot)
    sections: dict[str, Section] = {}
    for name in BUILD_SECTIONS:
        section, wanted = getattr(built, name), getattr(asked, name)
        chosen = {key: getattr(wanted, key) for key in sorted(wanted.model_fields_set)}
        for key, value in chosen.items():
            if f"{name}.{key}" not in MOVABLE and value != getattr(section, key):
                raise ConfigError(_contradiction(snapshot, f"{name}.{key}", getattr(section, key), value))
        sections[name] = section.model_copy(update=chosen)
    return asked.model_copy(update=sections)


def built_with(snapshot: Snapshot) -> Config:
    """The settings that the index's files depend on, all others default; IndexFormatError for an unknown one."""
    recorded = snapshot.manifest.config
    try:
        return Config.model_validate({name: recorded[name] for name in BUILD_SECTIONS if name in recorded})
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise IndexFormatError(
            f"{snapshot.directory}: built by HELIOS {snapshot.manifest.code_version} with a setting that this code "
            f"does not know ({where}): {error.errors()[0]['msg']}; use that version, or build the index again"
        ) from None


def _contradiction(snapshot: Snapshot, key: str, built: Any, wanted: Any) -> str:
    return (
        f"{key}={_shown(wanted)}: {snapshot.directory} was built with {key}={_shown(built)}, and its files depend on "
        f"it; leave it out, or build another index: `helios index build CORPUS --out NEW {key}={_shown(wanted)}`"
    )


def _shown(value: Any) -> str:
    """A value as it is written in YAML."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
