"""Property graphs in a ladybug database, asked in Cypher: guard → dialect → plan's operators → worker process.

The guard and the translation run in this process, the engine in a worker that can be killed. There the plan of a query
is read before it runs: it may hold operators that read, join and compute, no other.
"""

import json
import re
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Any

from helios.errors import QueryFailed, QueryRejected, SourceUnavailable
from helios.executors.base import Deadline, Language, Limits, NativeQuery, ResultSet
from helios.executors.cypher.catalog import KEY, OTHER, GraphCatalog, literal, quoted, read_catalog, table_labels
from helios.executors.cypher.dialect import WHOLE, LadybugRenderer
from helios.executors.cypher.guard import CheckedQuery, can_limit, check, nesting
from helios.executors.cypher.seen import SeenProperties
from helios.executors.pool import Engine, WorkerPool
from helios.executors.values import GraphNode, GraphPath, GraphRelationship, Value

CATALOG = "CATALOG"
"""Asks a worker for the tables; no query that passes the guard reads so."""
BUFFER_BYTES = 2**27
DATABASE_BYTES = 2**36
"""Virtual memory that ladybug reserves, and the largest database that it opens; no memory is used for it."""
LONGEST_PATH = 2**15 - 1
"""Relationships of an unbounded path; the deadline ends longer searches sooner."""
BATCH = 256
OPERATORS = frozenset(
    (
        "ACCUMULATE", "AGGREGATE", "COUNT_EXTEND_CHAIN", "COUNT_REL_TABLE", "CROSS_PRODUCT", "DISTINCT",
        "DUMMY_SCAN", "EMPTY_RESULT", "EXPRESSIONS_SCAN", "EXTEND", "FILTER", "FLATTEN", "HASH_JOIN", "INTERSECT",
        "LIMIT", "MULTIPLICITY_REDUCER", "NODE_LABEL_FILTER", "ORDER_BY", "PATH_PROPERTY_PROBE", "PROJECTION",
        "QUERY_PRIMARY_KEY_LOOKUP", "RECURSIVE_EXTEND", "SCAN_NODE_TABLE", "SEMI_MASKER", "UNION_ALL", "UNWIND",
    )
)  # fmt: skip
"""What a plan may do: read, join and compute."""


class PropertyGraphExecutor:
    """Runs Cypher against one ladybug database, read-only; threads may share it."""

    language = Language.CYPHER

    def __init__(
        self, path: Path, limits: Limits | None = None, *, workers: int = 2,
        seen: Mapping[str, Sequence[str]] | None = None,
    ) -> None:  # fmt: skip
        """`seen`: labels, types and properties to `include`, `exclude` and `mask`, where not all may be seen."""
        self.path = path.expanduser().resolve()
        self.limits = limits or Limits()
        options: dict[str, Any] = {"path": str(self.path)}
        if seen:
            options["seen"] = {**{name: list(patterns) for name, patterns in seen.items()}, "key": token_hex(16)}
        self._engine = Engine("helios.executors.property_graph:open_session", options)
        self._workers = workers
        self._pool = WorkerPool(self._engine, size=workers)
        self._catalog: GraphCatalog | None = None
        self._lock = threading.Lock()

    @property
    def catalog(self) -> GraphCatalog:
        """The tables, read once and kept until `refresh`; SourceUnavailable where the database cannot be opened."""
        with self._lock:
            if self._catalog is None:
                if not self.path.is_file():
                    raise SourceUnavailable(f"{self.path}: no ladybug database there")
                query = NativeQuery(Language.CYPHER, CATALOG)
                self._catalog = read_catalog(self._pool.run(query, self.limits).rows)
            return self._catalog

    def check(self, query: NativeQuery) -> None:
        """The guard alone: QueryRejected for anything that is not on the allow-list."""
        check(query, native=True)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Guard and run a query; `limits` are the source's own where None."""
        limits = limits or self.limits
        checked = check(query, native=True)
        catalog = self.catalog
        deadline = Deadline.after(limits.timeout)
        given = {name: query.parameters[name] for name in checked.parameters}
        text = translate(checked, catalog, given)
        if can_limit(checked):  # one row more than may be kept tells that there are more
            text += f" LIMIT {limits.max_rows + 1}"
        result = self._pool.run(NativeQuery(Language.CYPHER, text, given), limits, deadline)
        columns = checked.query.columns
        return result if columns is None else replace(result, columns=columns)

    def refresh(self) -> None:
        """Forget the tables and the open database: the file has changed."""
        with self._lock:
            self._catalog = None
            old, self._pool = self._pool, WorkerPool(self._engine, size=self._workers)
        old.close()

    def close(self) -> None:
        """End the worker processes."""
        self._pool.close()


def translate(checked: CheckedQuery, catalog: GraphCatalog, parameters: Mapping[str, Value] | None = None) -> str:
    """A checked query in ladybug's dialect; QueryFailed for what ladybug cannot do."""
    with nesting():
        return LadybugRenderer(catalog, parameters).query(checked.query)


def open_session(options: Mapping[str, Any]) -> "LadybugSession":
    """Open a ladybug database, or a copy of what may be seen of it, in a worker; SourceUnavailable otherwise."""
    import ladybug

    path = options["path"]
    try:
        database = ladybug.Database(
            path, read_only=True, buffer_pool_size=BUFFER_BYTES, max_db_size=DATABASE_BYTES, max_num_threads=1
        )
        session = LadybugSession(database)
        if not options.get("seen"):
            return session
        catalog = read_catalog(session.run(CATALOG, {})[1])
        seen = LadybugSession(SeenProperties.of(options["seen"]).copied(session.connection, catalog))
        database.close()
        return seen
    except (RuntimeError, OSError, ValueError) as error:
        raise SourceUnavailable(f"{path}: ladybug cannot open it ({error})") from error


class LadybugSession:
    """An open ladybug database inside a worker."""

    def __init__(self, database: Any) -> None:
        import ladybug

        self.connection: Any = ladybug.Connection(database, num_threads=1)
        self._lookups: Any = ladybug.Connection(database, num_threads=1)
        self.connection.execute(f"CALL var_length_extend_max_depth={LONGEST_PATH}")
        # ladybug 0.22 pushes a join's mask below WITH … LIMIT, which then counts other rows
        self.connection.execute("CALL enable_semi_mask=false")
        self._labels: dict[str, tuple[str, ...]] = {}
        self._keys: dict[str, str] = {}
        self._tables: dict[int, str] = {}
        self._spelled: dict[str, dict[str, str]] = {}
        self._ids: dict[tuple[int, int], str] = {}
        self._catalog = list(self._read_catalog())
        self._passed = lru_cache(512)(self._check_plan)

    def run(self, text: str, parameters: Mapping[str, Value]) -> tuple[Sequence[str], Iterable[Sequence[Value]]]:
        """Columns and rows; QueryRejected for a plan that does more than read, QueryFailed with ladybug's message."""
        if text == CATALOG:
            return ("kind", "number", "name", "comment", "properties", "key", "pairs"), self._catalog
        given = {name: list(value) if isinstance(value, tuple) else value for name, value in parameters.items()}
        try:
            self._passed(text)
            result = self._executed(text, given)
            return result.get_column_names(), self._rows(result)
        except (RuntimeError, ValueError, TypeError, OverflowError) as error:
            raise QueryFailed(str(error).strip()) from error

    def _executed(self, text: str, given: Mapping[str, Value]) -> Any:
        """A statement of its own for each query: ladybug 0.22 keeps those that it prepares itself, with their buffers.

        It calls this way of asking deprecated, but has no other that gives them back.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return self.connection.execute(self.connection.prepare(text, given), given)

    def _check_plan(self, text: str) -> None:
        with closing(self.connection.execute("EXPLAIN LOGICAL " + text)) as result:
            plan = result.get_next()[0]
        for operator in operators(plan):
            if operator not in OPERATORS:
                raise QueryRejected("the query's plan has an operator that is not allowed", operator)

    def _rows(self, result: Any) -> Iterator[list[Value]]:
        """Rows in batches: the ids of relationships' ends are looked up for many at once.

        The connection keeps every result that is not closed, and with it the buffers of its query.
        """
        with closing(result):
            pending = iter(result.get_next, None)
            while batch := list(islice((next(pending) for _ in range(BATCH) if result.has_next()), BATCH)):
                self._look_up_ends(batch)
                yield from ([self._value(value) for value in row] for row in batch)

    def _value(self, value: Any) -> Value:
        match value:
            case {"_NODES": nodes, "_RELS": relationships}:
                steps = tuple(self._relationship(step) for step in relationships)
                return GraphPath(tuple(self._node(node) for node in nodes), steps)
            case {"_SRC": _, "_DST": _}:
                return self._relationship(value)
            case {"_ID": _, "_LABEL": _}:
                return self._node(value)
            case {"offset": int(offset), "table": int(table), **rest} if not rest:
                return f"{table}:{offset}"
            case dict():
                left_out = (KEY, OTHER, WHOLE, *(key for key in value.get(WHOLE, ()) if value[key] is None))
                return {str(key): self._value(item) for key, item in value.items() if key not in left_out}
            case list() | tuple():
                return [self._value(item) for item in value]
            case Decimal() if value == value.to_integral_value():
                return int(value)
        return value  # type: ignore[no-any-return]

    def _node(self, node: Mapping[str, Any]) -> GraphNode:
        table = node["_LABEL"]
        return GraphNode(self._remember(node), self._labels.get(table, (table,)), self._properties(node))

    def _remember(self, node: Mapping[str, Any]) -> str:
        """A node's id: what the files called it, or its primary key."""
        place = (node["_ID"]["table"], node["_ID"]["offset"])
        return self._ids.setdefault(place, str(node[self._keys[node["_LABEL"]]]))

    def _relationship(self, relationship: Mapping[str, Any]) -> GraphRelationship:
        start, end = (self._ids[relationship[side]["table"], relationship[side]["offset"]] for side in ("_SRC", "_DST"))
        return GraphRelationship(relationship["_LABEL"], start, end, self._properties(relationship))

    def _properties(self, of: Mapping[str, Any]) -> dict[str, Value]:
        # over several tables ladybug gives a property the spelling of one of them
        spelled = self._spelled.get(of["_LABEL"], {})
        properties = {
            spelled.get(key.casefold(), key): self._value(value)
            for key, value in of.items()
            if value is not None and key not in ("_ID", "_LABEL", "_SRC", "_DST", KEY, OTHER)
        }
        return properties | (json.loads(of[OTHER]) if of.get(OTHER) else {})

    def _look_up_ends(self, rows: list[Any]) -> None:
        """Read the ids of all nodes that relationships in these rows start or end at."""
        wanted: dict[int, set[int]] = {}
        pending: list[Any] = list(rows)
        while pending:
            match pending.pop():
                case {"_SRC": start, "_DST": end}:
                    for place in (start, end):
                        if (place["table"], place["offset"]) not in self._ids:
                            wanted.setdefault(place["table"], set()).add(place["offset"])
                case dict() as mapping:
                    pending.extend(value for value in mapping.values() if isinstance(value, dict | list))
                case list() as items:
                    pending.extend(item for item in items if isinstance(item, dict | list))
        for table, offsets in wanted.items():
            self._look_up(table, sorted(offsets))

    def _look_up(self, table: int, offsets: list[int]) -> None:
        written = self._tables[table]
        result = self._lookups.execute(
            f"MATCH (n:`{written}`) WHERE offset(id(n)) IN $offsets RETURN offset(id(n)), n.`{self._keys[written]}`",
            {"offsets": offsets},
        )
        while result.has_next():
            offset, key = result.get_next()
            self._ids[table, offset] = str(key)

    def _read_catalog(self) -> Iterator[tuple[Value, ...]]:
        for number, table, kind, _, comment in self._all(
            "CALL show_tables() RETURN id, name, type, `database name`, comment"
        ):
            if kind not in ("NODE", "REL"):
                continue
            columns = list(self._all(f"CALL table_info({literal(table)}) RETURN *"))
            properties = {column[1]: column[2] for column in columns if column[1] not in (KEY, OTHER)}
            self._spelled[table] = {column.casefold(): column for column in properties}
            key = next((column[1] for column in columns if kind == "NODE" and column[4]), "")
            pairs: list[list[str]] = []
            if kind == "NODE":
                self._labels[table], self._keys[table] = table_labels(table, comment), key
                self._tables[self._number(table)] = table
            else:
                pairs = [row[:2] for row in self._all(f"CALL show_connection({literal(table)}) RETURN *")]
            yield kind, number, table, comment, json.dumps(properties), key, json.dumps(pairs)

    def _number(self, table: str) -> int:
        """The number that internal ids have for a table; -1 for one without nodes."""
        rows = self._all(f"MATCH (n:{quoted(table)}) RETURN id(n) LIMIT 1")
        return int(next((row[0]["table"] for row in rows), -1))

    def _all(self, text: str) -> Iterator[list[Any]]:
        result = self._lookups.execute(text)
        while result.has_next():
            yield result.get_next()


def operators(plan: str) -> set[str]:
    """The names of the operators in a plan as EXPLAIN draws it: the first line of each box."""
    lines = plan.splitlines()
    found: set[str] = set()
    for above, line in zip(lines, lines[1:], strict=False):
        for match in re.finditer(r"┌[─┴]+┐", above):
            title = line[match.start() + 1 : match.end() - 1].strip(" │┌┐─")
            if title:
                found.add(re.sub(r"\[\d+\]$", "", title).strip().replace(" ", "_"))
    return found - {"Logical_Plan", "Physical_Plan"}
