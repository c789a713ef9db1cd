"""Property graphs behind Bolt as sources: Neo4j, ArcadeDB and others."""

import os
from pathlib import Path

from helios.errors import SourceUnavailable
from helios.executors.bolt import BoltExecutor
from helios.sources.cache import SourceCache
from helios.sources.property_graph import CypherSource
from helios.sources.spec import BoltSpec, SourceSpec


class BoltSource(CypherSource):
    """A database of a Bolt server."""

    def __init__(
        self, name: str, executor: BoltExecutor, *, description: str = "", cache: SourceCache | None = None
    ) -> None:
        super().__init__(name, "bolt", executor, description=description, cache=cache)


def open_source(name: str, spec: SourceSpec, folder: Path, cache: SourceCache) -> BoltSource:
    """A Bolt source from its registration; the password is read from the environment."""
    assert isinstance(spec, BoltSpec)
    password = ""
    if spec.password_env is not None:
        if spec.password_env not in os.environ:
            raise SourceUnavailable(
                f"source {name!r}: set the environment variable {spec.password_env} to its password"
            )
        password = os.environ[spec.password_env]
    executor = BoltExecutor(
        spec.url, user=spec.user or "", password=password, database=spec.database, limits=spec.limits
    )
    return BoltSource(name, executor, description=spec.description, cache=cache)
