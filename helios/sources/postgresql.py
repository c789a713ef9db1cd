"""PostgreSQL databases as sources.

The catalogue is read over a connection of its own: read-only transactions, a deadline at the server for every
statement and one here for the connection. Only what the role may SELECT is described.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from helios.errors import ConfigError, QueryFailed, QueryTimeout, SourceUnavailable
from helios.executors.address import read_address, shown
from helios.executors.base import Executor
from helios.executors.values import Value
from helios.sources.cache import SourceCache
from helios.sources.descriptor import Column, ForeignKey, TableSchema
from helios.sources.relational import STATEMENT_SECONDS, Catalogue, Reader, RelationalSource, Row, quoted
from helios.sources.spec import PostgresqlSpec, SourceSpec, secret

if TYPE_CHECKING:
    from helios.executors.postgresql import PostgresqlAddress

CONNECT_SECONDS = 10
COLUMNS = """
SELECT c.oid, c.relname, coalesce(obj_description(c.oid, 'pg_class'), ''), a.attnum, a.attname,
       format_type(a.atttypid, a.atttypmod), coalesce(col_description(c.oid, a.attnum), ''),
       t.typcategory::text, c.relkind::text
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid
WHERE n.nspname = %s AND c.relkind IN ('r', 'v', 'm', 'p', 'f') AND NOT c.relispartition
  AND pg_table_is_visible(c.oid) AND has_table_privilege(c.oid, 'SELECT')
ORDER BY c.relname, a.attnum"""
CONSTRAINTS = """
SELECT k.conrelid, k.contype::text, k.conkey::int[], f.relname, k.confrelid, k.confkey::int[]
FROM pg_constraint k LEFT JOIN pg_class f ON f.oid = k.confrelid
WHERE k.contype IN ('p', 'f') ORDER BY k.conname"""
WORD_TYPES = ("text", "character", "citext", "name", "uuid")


def open_source(name: str, spec: SourceSpec, folder: Path, cache: SourceCache) -> RelationalSource:
    """A PostgreSQL source from its registration."""
    assert isinstance(spec, PostgresqlSpec)
    address = address_of(name, spec)
    catalogue = Catalogue("postgres", lambda reader: tables(reader, spec.namespace), _text, _words)

    def executor() -> Executor:
        from helios.executors.postgresql import PostgresqlExecutor

        return PostgresqlExecutor(address, limits=spec.limits, system_tables=spec.system_tables)

    def reader() -> Reader:
        return PostgresqlReader(address, secret(spec.password_env, source=name))

    return RelationalSource(
        name, spec, catalogue=catalogue, reader=reader, executor=executor, cache=cache, schemas=(spec.namespace,)
    )


def address_of(name: str, spec: PostgresqlSpec) -> "PostgresqlAddress":
    """Where the server of a registration is; ConfigError where the URL lacks something."""
    from helios.executors.postgresql import PostgresqlAddress

    url = read_address(spec.url, schemes=("postgresql", "postgres"), user=True, parameters=("sslmode",))
    user = spec.user or unquote(url.username or "")
    database = unquote(url.path.removeprefix("/"))
    if not url.hostname or not database or not user:
        raise ConfigError(f"source {name!r}: url: expected postgresql://user@host:port/database, got {shown(spec.url)}")
    return PostgresqlAddress(
        host=url.hostname, port=url.port or 5432, database=database, user=user, password_env=spec.password_env,
        schema=spec.namespace, sslmode=dict(parse_qsl(url.query)).get("sslmode", "prefer"),
        trusted_role=spec.trusted_role,
    )  # fmt: skip


class PostgresqlReader:
    """One read-only connection, opened by the first statement."""

    def __init__(self, address: "PostgresqlAddress", password: str | None) -> None:
        self._address = address
        self._password = password
        self._connection: Any = None

    def rows(self, statement: str, parameters: Sequence[Value] = (), *, limit: int = 100_000) -> Sequence[Row]:
        import psycopg

        if self._connection is None:
            self._connection = self._connect()
        try:
            cursor = self._connection.execute(statement, list(parameters) or None)
            return [tuple(row) for row in cursor.fetchmany(limit)]
        except psycopg.errors.QueryCanceled:
            raise QueryTimeout(STATEMENT_SECONDS) from None
        except psycopg.OperationalError as error:
            raise SourceUnavailable(f"{self._where}: the connection broke ({_brief(error)})") from None
        except psycopg.Error as error:
            raise QueryFailed(_brief(error)) from None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _connect(self) -> Any:
        import psycopg

        address = self._address
        options = f"-c default_transaction_read_only=on -c statement_timeout={int(STATEMENT_SECONDS * 1000)}"
        try:
            connection = psycopg.connect(
                host=address.host, port=address.port, dbname=address.database, user=address.user,
                password=self._password, sslmode=address.sslmode, connect_timeout=CONNECT_SECONDS,
                options=options, autocommit=True, application_name="helios",
                tcp_user_timeout=int(STATEMENT_SECONDS * 2000),
            )  # fmt: skip
            connection.execute(f"SET search_path = {quoted(address.schema)}")
        except psycopg.Error as error:
            raise SourceUnavailable(
                f"{self._where}: cannot connect ({_brief(error)}); "
                "is the server up, and are user and password_env right?"
            ) from None
        return connection

    @property
    def _where(self) -> str:
        return f"postgresql://{self._address.host}:{self._address.port}/{self._address.database}"


def tables(reader: Reader, schema: str) -> list[TableSchema]:
    """Tables, views and materialised views that the role may read, of one schema."""
    names: dict[Value, tuple[str, str, bool]] = {}
    columns: dict[Value, dict[Value, tuple[str, str, str]]] = {}
    for oid, table, comment, number, column, kind, note, category, sort in reader.rows(COLUMNS, [schema]):
        names[oid] = (str(table), str(comment), sort in ("v", "m"))
        shown = f"{kind!s} (enum)" if category == "E" else str(kind)
        columns.setdefault(oid, {})[number] = (str(column), shown, str(note))
    keys: dict[Value, set[str]] = {}
    foreign: dict[Value, list[ForeignKey]] = {}
    for oid, kind, numbers, other, other_oid, referred in reader.rows(CONSTRAINTS):
        own = _columns(columns.get(oid, {}), numbers)
        if kind == "p":
            keys[oid] = set(own)
        elif other_oid in names and oid in names:
            foreign.setdefault(oid, []).append(ForeignKey(own, str(other), _columns(columns[other_oid], referred)))
    return [
        TableSchema(
            table,
            tuple(
                Column(name, kind, note, primary_key=name in keys.get(oid, ()))
                for name, kind, note in columns[oid].values()
            ),
            tuple(foreign.get(oid, ())),
            comment=comment,
            view=view,
        )
        for oid, (table, comment, view) in names.items()
    ]


def _columns(columns: Mapping[Value, tuple[str, str, str]], numbers: Value) -> tuple[str, ...]:
    chosen = numbers if isinstance(numbers, (list, tuple)) else ()
    return tuple(columns[number][0] for number in chosen if number in columns)


def _text(column: str, described: Column) -> str | None:
    return None if described.type == "bytea" else f"CAST({column} AS text)"


def _words(column: str, described: Column) -> str | None:
    named = described.type.startswith(WORD_TYPES) or described.type.endswith("(enum)")
    return f"CAST({column} AS text)" if named and not described.type.endswith("[]") else None


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
