"""Property graphs behind Bolt as sources: Neo4j, ArcadeDB and others."""

from pathlib import Path

from helios.executors.bolt import BoltExecutor
from helios.sources.cache import SourceCache
from helios.sources.property_graph import CypherSource
from helios.sources.spec import BoltSpec, SourceSpec, secret


class BoltSource(CypherSource):
    """A database of a Bolt server."""

    def __init__(
        self, name: str, executor: BoltExecutor, *, description: str = "", cache: SourceCache | None = None
    ) -> None:
        super().__init__(name, "bolt", executor, description=description, cache=cache)


def open_source(name: str, spec: SourceSpec, folder: Path, cache: SourceCache) -> BoltSource:
    """A Bolt source from its registration; the password is read from the environment."""
    assert isinstance(spec, BoltSpec)
    password = secret(spec.password_env, source=name) or ""
    executor = BoltExecutor(
        spec.url, user=spec.user or "", password=password, database=spec.database, limits=spec.limits
    )
    return BoltSource(name, executor, description=spec.description, cache=cache)
