"""Databases of other servers as sources, through SQLAlchemy: MariaDB and MySQL, and whatever has a dialect there.

The catalogue is what SQLAlchemy's inspector says. It is read in a worker process over a connection that may only read;
counts, samples and values are statements of this package, in the server's dialect.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from helios.errors import ConfigError
from helios.executors.address import read_address, shown
from helios.executors.base import Executor
from helios.executors.pool import Engine
from helios.executors.values import Value
from helios.sources.access import Access
from helios.sources.cache import SourceCache
from helios.sources.descriptor import Column, ForeignKey, TableSchema
from helios.sources.modules import require_modules
from helios.sources.relational import Catalogue, Reader, RelationalSource, WorkerReader
from helios.sources.spec import EnvironmentName, SourceSpec, resolve, secret

CATALOGUE_STATEMENT = "catalogue"
"""What the reader's process is asked for the whole catalogue."""
NO_WORDS = ("INT", "DECIMAL", "NUMERIC", "DOUBLE", "FLOAT", "REAL", "BOOL", "DATE", "TIME", "YEAR", "BIT", "NUMBER")
NO_TEXT = ("BLOB", "BINARY", "BYTEA", "IMAGE", "GEOMETRY", "POINT", "POLYGON")


@dataclass(frozen=True, slots=True)
class SqlEngine:
    """A server that SQLAlchemy reaches by a scheme."""

    dialect: str
    """sqlglot's name for what it speaks."""
    modules: tuple[str, ...]
    parameters: tuple[str, ...] | None = None
    """Parameters that its address may have; None for any but secrets."""
    credentials: str = ""
    """The parameter that names a file of credentials, where it has one."""


MYSQL = SqlEngine("mysql", ("sqlglot", "sqlalchemy", "pymysql"), ("unix_socket", "ssl_ca", "ssl_verify_identity"))
ENGINES = {
    "mysql+pymysql": MYSQL,
    "mariadb+pymysql": MYSQL,
    "mssql+pyodbc": SqlEngine("tsql", ("sqlglot", "sqlalchemy", "pyodbc")),
    "snowflake": SqlEngine("snowflake", ("sqlglot", "sqlalchemy", "snowflake")),
    "bigquery": SqlEngine("bigquery", ("sqlglot", "sqlalchemy", "sqlalchemy_bigquery"), None, "credentials_path"),
    "clickhousedb": SqlEngine("clickhouse", ("sqlglot", "sqlalchemy", "clickhouse_connect")),
}
"""By the scheme of the address."""


def _address(url: str) -> str:
    engine = ENGINES.get(url.partition("://")[0].lower())
    read_address(url, schemes=tuple(ENGINES), user=True, parameters=None if engine is None else engine.parameters)
    return url


class SqlSpec(SourceSpec):
    """A database of a server that SQLAlchemy reaches; the role should have SELECT alone."""

    remote: ClassVar[bool] = True
    url: Annotated[str, AfterValidator(_address)]
    user: str | None = None
    password_env: EnvironmentName | None = None
    credentials_file: str | None = None
    """A file that says who asks, for servers that have no password (BigQuery)."""
    namespace: str | None = Field(default=None, alias="schema")
    """The schema whose tables are described; None for the one of the address."""
    trusted_role: str | None = None
    """The user's name again, where it is meant to have more than SELECT."""
    system_tables: bool = False
    """Whether queries may read the tables and columns that the database lists of itself."""
    access: Access = Access()
    """Which tables, columns and rows may be seen."""


def open_source(name: str, spec: SourceSpec, folder: Path, cache: SourceCache) -> RelationalSource:
    """A server's database from its registration."""
    assert isinstance(spec, SqlSpec)
    engine = ENGINES[spec.url.partition("://")[0].lower()]
    require_modules(engine.modules, wanted_by=f"source {name!r}")
    from sqlalchemy import make_url

    url = make_url(spec.url)
    if spec.user is not None:
        url = url.set(username=spec.user)
    if spec.credentials_file is not None:
        if not engine.credentials:
            raise ConfigError(f"source {name!r}: credentials_file: this server is asked with user and password_env")
        url = url.update_query_dict({engine.credentials: str(resolve(spec.credentials_file, folder))})
    address, where = url.render_as_string(), shown(spec.url)

    def executor() -> Executor:
        from helios.executors.alchemy import AlchemyExecutor

        return AlchemyExecutor(
            address, engine.dialect, password=secret(spec.password_env, source=name), where=where, limits=spec.limits,
            system_tables=spec.system_tables, trusted_role=spec.trusted_role,
        )  # fmt: skip

    def reader() -> Reader:
        options = {
            "url": address, "password": secret(spec.password_env, source=name), "dialect": engine.dialect,
            "where": where, "trusted_role": spec.trusted_role, "schema": spec.namespace,
        }  # fmt: skip
        return WorkerReader(Engine("helios.sources.sql_reading:open_reading", options, network=True))

    def standard(condition: str) -> str:
        """A condition of the registration as the reader takes it."""
        from sqlglot import transpile

        return transpile(condition, read=engine.dialect, write="postgres")[0]

    catalogue = Catalogue(engine.dialect, tables, _text, _words, standard=standard)
    schemas = tuple(filter(None, (spec.namespace, url.database)))
    return RelationalSource(
        name, spec, catalogue=catalogue, reader=reader, executor=executor, cache=cache, schemas=schemas
    )


def tables(reader: Reader) -> list[TableSchema]:
    """Tables and views of the schema, with keys and comments, as SQLAlchemy's inspector has them."""
    found = []
    for table, comment, view, columns, keys in reader.rows(CATALOGUE_STATEMENT):
        described = tuple(
            Column(str(name), str(kind), str(note), primary_key=bool(key)) for name, kind, note, key in _listed(columns)
        )
        foreign = tuple(ForeignKey(_names(own), str(other), _names(referred)) for own, other, referred in _listed(keys))
        found.append(TableSchema(str(table), described, foreign, comment=str(comment), view=bool(view)))
    return found


def _listed(value: Value) -> Sequence[Sequence[Value]]:
    return value if isinstance(value, list | tuple) else ()


def _names(value: Value) -> tuple[str, ...]:
    return tuple(str(name) for name in value) if isinstance(value, list | tuple) else ()


def _text(column: str, described: Column) -> str | None:
    kind = described.type.upper()
    return None if any(part in kind for part in NO_TEXT) else f"CAST({column} AS TEXT)"


def _words(column: str, described: Column) -> str | None:
    kind = described.type.upper()
    return None if kind.startswith(NO_WORDS) or any(part in kind for part in NO_WORDS[:1]) else _text(column, described)
