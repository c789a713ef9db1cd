"""The worker's side of reading a server's catalogue through SQLAlchemy: the inspector, and statements of this package.

Statements come as standard SQL and are put into the server's dialect here, which quotes names and limits rows its own
way.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from helios.errors import QueryFailed
from helios.executors.sql.alchemy_session import Server, explained, value_of
from helios.executors.values import Value
from helios.sources.sql import CATALOGUE_STATEMENT

if TYPE_CHECKING:
    from sqlalchemy import Connection, Inspector

STATEMENT_SECONDS = 10.0
STANDARD = "postgres"
"""The dialect of the statements of `helios.sources.relational`."""


def open_reading(options: Mapping[str, Any]) -> "AlchemyReading":
    """Inside the worker: connected, or SourceUnavailable."""
    server = Server(**{key: value for key, value in options.items() if key != "schema"})
    connection, _ = server.connect(STATEMENT_SECONDS)
    return AlchemyReading(server, connection, options["schema"])


class AlchemyReading:
    """Runs catalogue statements."""

    def __init__(self, server: Server, connection: "Connection", schema: str | None) -> None:
        self._server = server
        self._connection = connection
        self._schema = schema

    def run(self, text: str, parameters: Mapping[str, Value]) -> tuple[Sequence[str], Iterable[Sequence[Value]]]:
        import sqlglot
        from sqlalchemy.exc import SQLAlchemyError
        from sqlglot.errors import SqlglotError

        try:
            if text == CATALOGUE_STATEMENT:
                return ["table", "comment", "view", "columns", "foreign keys"], self._tables()
            (statement,) = sqlglot.transpile(text, read=STANDARD, write=self._server.dialect)
            result = self._connection.execution_options(no_parameters=True).exec_driver_sql(statement)
            rows = [[value_of(value) for value in row] for row in result]
            return list(result.keys()), rows
        except SqlglotError as error:
            raise QueryFailed(f"{text[:100]} cannot be put into {self._server.dialect} ({error})") from None
        except (SQLAlchemyError, OSError) as error:
            raise explained(error, self._server.where, STATEMENT_SECONDS) from None

    def _tables(self) -> list[Sequence[Value]]:
        from sqlalchemy import inspect

        inspector = inspect(self._connection)
        names = dict.fromkeys(inspector.get_table_names(self._schema), False)
        names |= dict.fromkeys(inspector.get_view_names(self._schema), True)
        return [row for name, view in names.items() if (row := self._table(inspector, name, view=view)) is not None]

    def _table(self, inspector: "Inspector", name: str, *, view: bool) -> Sequence[Value] | None:
        """One table; None for one that cannot be read, such as a view over a table that is gone."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            keys = set(inspector.get_pk_constraint(name, self._schema)["constrained_columns"])
            columns = [
                [column["name"], self._type(column["type"]), column.get("comment") or "", column["name"] in keys]
                for column in inspector.get_columns(name, self._schema)
            ]
            foreign = [
                [key["constrained_columns"], key["referred_table"], key["referred_columns"]]
                for key in inspector.get_foreign_keys(name, self._schema)
                if key.get("referred_schema") in (None, self._schema)
            ]
        except SQLAlchemyError:
            columns, foreign = self._view_columns(name), []
        return [name, self._comment(inspector, name), view, columns, foreign] if columns else None

    def _view_columns(self, name: str) -> list[list[Any]]:
        """Of a view whose definition the role may not see; none where the view cannot be read at all."""
        from sqlalchemy import text
        from sqlalchemy.exc import SQLAlchemyError

        asked = text(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_name = :name AND table_schema = :namespace ORDER BY ordinal_position"
        )
        namespace = self._schema or self._connection.dialect.default_schema_name
        try:
            rows = self._connection.execute(asked, {"name": name, "namespace": namespace}).all()
        except SQLAlchemyError:
            return []
        return [[str(column), str(kind).upper(), "", False] for column, kind in rows]

    def _comment(self, inspector: "Inspector", name: str) -> str:
        from sqlalchemy.exc import SQLAlchemyError

        try:
            return inspector.get_table_comment(name, self._schema)["text"] or ""
        except (SQLAlchemyError, NotImplementedError):
            return ""

    def _type(self, kind: Any) -> str:
        from sqlalchemy.exc import SQLAlchemyError

        try:
            return str(kind.compile(self._connection.dialect)).partition(" COLLATE ")[0]
        except SQLAlchemyError:
            return type(kind).__name__
