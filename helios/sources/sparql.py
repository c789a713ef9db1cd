"""SPARQL endpoints as sources: described by capped queries; small ones are indexed here, large ones are asked."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from helios.executors.base import Limits
from helios.executors.sparql_endpoint import SparqlEndpointExecutor
from helios.sources.base import ValueHit
from helios.sources.cache import SourceCache
from helios.sources.descriptor import RdfSchema
from helios.sources.rdf import PREFIXES, GraphSource
from helios.sources.rdf_values import ask_for_values
from helios.sources.spec import SourceSpec, SparqlSpec, secret

INDEXED_TRIPLES = 300_000
"""Endpoints with no more triples than this have their labels read and indexed here."""


class SparqlSource(GraphSource):
    """A graph behind an endpoint."""

    def __init__(
        self, name: str, url: str, *, prefixes: Mapping[str, str] | None = None, limits: Limits | None = None,
        user: str | None = None, password: str | None = None, token: str | None = None, description: str = "",
        cache: SourceCache | None = None, services: Sequence[str] = (),
    ) -> None:  # fmt: skip
        executor = SparqlEndpointExecutor(
            url,
            prefixes=PREFIXES | dict(prefixes or {}),
            limits=limits,
            user=user,
            password=password,
            token=token,
            services=services,
        )
        super().__init__(name, "sparql", executor, prefixes=prefixes or {}, description=description, cache=cache)

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        """Labels that resemble the phrases; from a large graph those alone that are the same but for capitals."""
        schema = self.descriptor().schema
        assert isinstance(schema, RdfSchema)
        if 0 < schema.triple_count <= INDEXED_TRIPLES and not schema.sampled:
            return super().find_values(phrases, limit=limit)
        return ask_for_values(self._read, phrases, limit=limit)


def open_source(name: str, spec: SourceSpec, folder: Path, cache: SourceCache) -> SparqlSource:
    """An endpoint from its registration; SourceUnavailable where a secret is not set."""
    assert isinstance(spec, SparqlSpec)
    return SparqlSource(
        name, spec.url, prefixes=spec.prefixes, limits=spec.limits, user=spec.user,
        password=secret(spec.password_env, source=name), token=secret(spec.token_env, source=name),
        description=spec.description, cache=cache, services=spec.service,
    )  # fmt: skip
