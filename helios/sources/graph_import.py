"""A ladybug database from files of nodes and edges (JSON lines, gzip by their name).

nodes  {"id": "n1", "labels": ["Person"], "properties": {...}}
edges  {"src": "n1", "dst": "n2", "type": "KNOWS", "properties": {...}}

Ladybug wants tables with types. Each set of labels becomes a table, each relationship type one over all the pairs of
tables that it joins, each property a column of the type that most of its values have (whole numbers among fractions
become fractions). Values that fit no column are kept, as JSON beside them: they come back with a whole node or
relationship, and read as null in an expression, as in Neo4j a value of another type compares as null. That is what is
lost: such values cannot be searched. Maps, lists of mixed values and of lists are of that kind.
"""

import gzip
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any

from helios.errors import CorpusError, RecordError
from helios.executors.cypher.catalog import KEY, OTHER, literal, quoted
from helios.sources.kinds import kind_named
from helios.sources.modules import require_modules

UNLABELLED = "unlabelled"
RESERVED = ("_id", "_label", "_src", "_dst", "_nodes", "_rels", KEY, OTHER)
"""Names that ladybug or the import itself has taken."""
BUFFER_BYTES = 2**28
DATABASE_BYTES = 2**36
MAX_INTEGER = 2**63
MAX_DEPTH = 30
"""Levels of a record."""


@dataclass(frozen=True, slots=True)
class GraphImport:
    """What an import wrote."""

    nodes: int
    relationships: int
    tables: int
    beside: Mapping[str, int]
    """Values that fit no column, counted by `table.property`."""


@dataclass(slots=True)
class _Table:
    """Rows of one table on their way in; `ends` are its rows' start and end for relationships."""

    name: str
    comment: str = ""
    rows: list[tuple[tuple[str, ...], Mapping[str, Any]]] = field(default_factory=list)


def import_graph(nodes: Path, edges: Path, out: Path, *, overwrite: bool = False) -> GraphImport:
    """Build a database at `out`.

    RecordError for a line that cannot be used, CorpusError where `out` exists, SourceUnavailable without ladybug.
    """
    require_modules(kind_named("property_graph").modules, wanted_by="import-graph")
    if out.exists() and not overwrite:
        raise CorpusError(f"{out}: exists already; remove it, or allow overwriting")
    tables, places = _read_nodes(nodes)
    relationships = _read_edges(edges, places)
    _name_tables(tables, relationships)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".import-") as directory:
        beside = _write(Path(directory), tables, relationships)
        os.replace(Path(directory) / "graph", out)
    edge_count = sum(len(table.rows) for pairs in relationships.values() for table in pairs.values())
    return GraphImport(len(places), edge_count, len(tables) + len(relationships), beside)


def _read_nodes(path: Path) -> tuple[dict[tuple[str, ...], _Table], dict[str, tuple[str, ...]]]:
    """Tables by their labels, and the labels of each node."""
    tables: dict[tuple[str, ...], _Table] = {}
    places: dict[str, tuple[str, ...]] = {}
    for line, record in _records(path):
        node_id, labels = record.get("id"), record.get("labels", [])
        if not isinstance(node_id, str | int) or isinstance(node_id, bool) or not isinstance(labels, list):
            raise RecordError(path, line, "a node needs an `id` and a list of `labels`")
        if not all(isinstance(label, str | int) for label in labels):
            raise RecordError(path, line, "a label is neither text nor a whole number", record_id=str(node_id))
        if str(node_id) in places:
            raise RecordError(path, line, "a node with this id came before", record_id=str(node_id))
        key = tuple(sorted(map(str, labels)))
        places[str(node_id)] = key
        comment = json.dumps({"labels": list(map(str, labels))}, ensure_ascii=False)
        table = tables.setdefault(key, _Table(":".join(key) or UNLABELLED, comment))
        table.rows.append(((str(node_id),), _properties(path, line, record)))
    return tables, places


def _read_edges(path: Path, places: Mapping[str, tuple[str, ...]]) -> dict[str, dict[tuple[Any, Any], _Table]]:
    """For each type, its relationships by the labels of their ends."""
    types: dict[str, dict[tuple[Any, Any], _Table]] = {}
    for line, record in _records(path):
        start, end, type_ = str(record.get("src")), str(record.get("dst")), record.get("type")
        if not isinstance(type_, str) or not type_:
            raise RecordError(path, line, "an edge needs a `type`")
        for node_id in (start, end):
            if node_id not in places:
                raise RecordError(path, line, f"no node has the id {node_id}")
        pair = (places[start], places[end])
        table = types.setdefault(type_, {}).setdefault(pair, _Table(type_))
        table.rows.append(((start, end), _properties(path, line, record)))
    return types


def _name_tables(tables: Mapping[tuple[str, ...], _Table], relationships: Mapping[str, Any]) -> None:
    """Give every table a name of its own: ladybug has one room for all, and takes `Person` and `PERSON` for one."""
    taken: dict[str, str] = {}
    for type_ in relationships:
        if type_.casefold() in taken:
            raise CorpusError(f"the relationship types {taken[type_.casefold()]} and {type_} differ in case only")
        taken[type_.casefold()] = type_
    for table in tables.values():
        table.name = table.name.replace("`", "_")
        while table.name.casefold() in taken:
            table.name += "_"
        taken[table.name.casefold()] = table.name


def _write(
    directory: Path,
    tables: Mapping[tuple[str, ...], _Table],
    relationships: Mapping[str, dict[tuple[Any, Any], _Table]],
) -> dict[str, int]:
    """Write and load everything; returns how many values lie beside their column."""
    import ladybug

    beside: Counter[str] = Counter()
    try:
        database = ladybug.Database(directory / "graph", buffer_pool_size=BUFFER_BYTES, max_db_size=DATABASE_BYTES)
    except RuntimeError as error:
        raise CorpusError(f"ladybug cannot make a database ({error}); it reserves 64 GB of addresses") from error
    connection = ladybug.Connection(database, num_threads=1)
    try:
        for table in tables.values():
            types = _column_types(table.rows)
            columns = "".join(f", {quoted(name)} {type_}" for name, type_ in types.items())
            connection.execute(
                f"CREATE NODE TABLE {quoted(table.name)} ({KEY} STRING PRIMARY KEY{columns}, {OTHER} STRING)"
            )
            connection.execute(f"COMMENT ON TABLE {quoted(table.name)} IS {literal(table.comment)}")
            data = _parquet(directory / "rows.parquet", table, types, (KEY,), beside)
            connection.execute(f"COPY {quoted(table.name)} FROM {literal(str(data))}")
        for type_, pairs in relationships.items():
            rows = list(chain.from_iterable(table.rows for table in pairs.values()))
            types = _column_types(rows, reserved=(*RESERVED, "from", "to"))
            ends = {pair: tuple(tables[labels].name for labels in pair) for pair in pairs}
            joined = ", ".join(f"FROM {quoted(start)} TO {quoted(end)}" for start, end in ends.values())
            columns = "".join(f", {quoted(name)} {column}" for name, column in types.items())
            connection.execute(f"CREATE REL TABLE {quoted(type_)} ({joined}{columns}, {OTHER} STRING)")
            for pair, table in pairs.items():
                data = _parquet(directory / "rows.parquet", table, types, ("_src", "_dst"), beside)
                start, end = map(literal, ends[pair])
                connection.execute(f"COPY {quoted(type_)} FROM {literal(str(data))} (from={start}, to={end})")
    except RuntimeError as error:
        raise CorpusError(f"ladybug cannot take the graph ({error})") from error
    finally:
        connection.close()
        database.close()
    return dict(beside)


def _column_types(
    rows: Sequence[tuple[tuple[str, ...], Mapping[str, Any]]], *, reserved: Sequence[str] = RESERVED
) -> dict[str, str]:
    """Properties that become columns, with ladybug's types."""
    counts: dict[str, Counter[str]] = {}
    for _, properties in rows:
        for name, value in properties.items():
            type_ = _type(value)
            if type_ is not None:
                counts.setdefault(name, Counter())[type_] += 1
    types: dict[str, str] = {}
    taken = {name.casefold() for name in reserved}
    for name, found in counts.items():
        if name.casefold() in taken or "`" in name or not name:
            continue
        taken.add(name.casefold())
        types[name] = _majority(found)
    return types


def _majority(found: Counter[str]) -> str:
    """The type of most values; whole numbers count as fractions where there are some."""
    for whole, fraction in (("INT64", "DOUBLE"), ("INT64[]", "DOUBLE[]")):
        if found[whole] and found[fraction]:
            found[fraction] += found.pop(whole)
    return max(found, key=lambda type_: (found[type_], type_))


def _type(value: Any) -> str | None:
    """Ladybug's type for a value; None for what only fits beside a column."""
    match value:
        case bool():
            return "BOOL"
        case int() if -MAX_INTEGER <= value < MAX_INTEGER:
            return "INT64"
        case float():
            return "DOUBLE"
        case str():
            return "STRING"
        case [*items] if items and not any(isinstance(item, list | dict) or item is None for item in items):
            types = {_type(item) for item in items}
            if types == {"INT64", "DOUBLE"}:
                return "DOUBLE[]"
            return f"{next(iter(types))}[]" if len(types) == 1 and None not in types else None
    return None


def _parquet(path: Path, table: _Table, types: Mapping[str, str], keys: tuple[str, ...], beside: Counter[str]) -> Path:
    """Write a table's rows: keys, a column for each property, and what fits none of them."""
    import pyarrow
    import pyarrow.parquet

    fields = {
        "BOOL": pyarrow.bool_(), "INT64": pyarrow.int64(), "DOUBLE": pyarrow.float64(), "STRING": pyarrow.string(),
    }  # fmt: skip
    columns = {key: pyarrow.array([row[0][place] for row in table.rows]) for place, key in enumerate(keys)}
    fitting = [{name: value for name, value in row[1].items() if _fits(value, types.get(name))} for row in table.rows]
    for name, type_ in types.items():
        element = fields[type_.removesuffix("[]")]
        values = [_converted(row.get(name), type_) for row in fitting]
        columns[name] = pyarrow.array(values, pyarrow.list_(element) if type_.endswith("[]") else element)
    others: list[str | None] = []
    for (_, properties), row in zip(table.rows, fitting, strict=True):
        left = {name: value for name, value in properties.items() if name not in row and value is not None}
        beside.update(f"{table.name}.{name}" for name in left)
        others.append(json.dumps(left, ensure_ascii=False) if left else None)
    columns[OTHER] = pyarrow.array(others, pyarrow.string())
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def _fits(value: Any, type_: str | None) -> bool:
    if type_ is None or value is None:
        return False
    if value == []:
        return type_.endswith("[]")
    own = _type(value)
    if own == "INT64" and type_ == "DOUBLE" and int(float(value)) != value:
        return False  # a fraction has 53 bits
    return own == type_ or (own, type_) in (("INT64", "DOUBLE"), ("INT64[]", "DOUBLE[]"))


def _converted(value: Any, type_: str) -> Any:
    if value is None:
        return None
    if type_ == "DOUBLE":
        return float(value)
    return [float(item) for item in value] if type_ == "DOUBLE[]" else value


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Lines and their records."""
    try:
        with _open(path) as lines:
            for line, text in enumerate(lines, start=1):
                if not text.strip():
                    continue
                yield line, _record(path, line, text)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}: cannot be read ({error})") from error


def _record(path: Path, line: int, text: str) -> dict[str, Any]:
    """A line's object; RecordError for what is none, nests too deep or has half a character."""
    try:
        record = json.loads(text)
        if "\\u" in text:
            json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RecordError(path, line, "half of a pair of surrogates, which is no character") from None
    except RecursionError:
        raise RecordError(path, line, f"nests more than {MAX_DEPTH} levels deep") from None
    except ValueError as error:
        raise RecordError(path, line, f"not JSON ({error})") from None
    if not isinstance(record, dict):
        raise RecordError(path, line, "not a JSON object")
    level: list[Any] = [record]
    for _ in range(MAX_DEPTH):
        level = [part for value in level for part in (value.values() if isinstance(value, dict) else value)]
        level = [part for part in level if isinstance(part, dict | list)]
    if level:
        raise RecordError(path, line, f"nests more than {MAX_DEPTH} levels deep")
    return record


def _properties(path: Path, line: int, record: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = record.get("properties") or {}
    if not isinstance(properties, dict):
        raise RecordError(path, line, "`properties` is no object of names and values")
    return properties


def _open(path: Path) -> IO[str]:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
