"""Registers every source of the folder of public data, so that one bench can be run over all of them together.

    python -m helios.evaluation.sources.shared DATA OUT
    helios eval sources --sources OUT/sources.yaml --questions DATA --layout shared --sample 200

SQLite databases, RDF graphs and SciFact are read where they are; property graphs are imported into OUT, and OTT-QA's
tables are written there as documents. Sources get no description: selection sees what they publish themselves.
"""

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from helios.errors import EvaluationError
from helios.evaluation.sources.loaders.base import WIKIDATA_PREFIXES
from helios.evaluation.sources.loaders.rdf import SPIDER4SPARQL_PREFIXES
from helios.evaluation.sources.loaders.records import json_lines
from helios.evaluation.sources.loaders.shared import (
    OTTQA,
    SCIFACT,
    SPORTREASON,
    WIKIDATA,
    graph_source,
    table_document,
)  # fmt: skip
from helios.index.durable import write_atomically

FILE = "sources.yaml"

Import = Callable[[Path, Path, Path], object]
"""Writes a property graph: (file of nodes, file of edges, path of the database)."""
Spec = dict[str, Any]


def write_registry(data: Path, out: Path, *, import_graph: Import | None = None) -> Path:
    """Register what the folder has, and return the file of sources; what OUT already holds is kept.

    EvaluationError where there is nothing to register.
    """
    out.mkdir(parents=True, exist_ok=True)
    specs = {**_databases(data, out), **_rdf(data, out), **_graphs(data, out, import_graph), **_corpora(data, out)}
    if not specs:
        raise EvaluationError(f"{data}: none of spider, spider4sparql, wikidata_sq, graphs, ir, sportreason, ottqa9k")
    path = out / FILE
    write_atomically(path, yaml.safe_dump({"sources": specs}, sort_keys=False).encode())
    return path


def _databases(data: Path, out: Path) -> dict[str, Spec]:
    paths = sorted(data.glob("spider*/database/*/*.sqlite"))
    return {path.stem: {"kind": "sqlite", "path": _from(out, path)} for path in paths}


def _rdf(data: Path, out: Path) -> dict[str, Spec]:
    specs: dict[str, Spec] = {}
    for path in sorted(data.glob("spider4sparql*/kg/*.nt.gz")):
        name = graph_source(path.name.removesuffix(".nt.gz"))
        specs[name] = {"kind": "rdf", "path": _from(out, path), "prefixes": dict(SPIDER4SPARQL_PREFIXES)}
    wikidata = data / "wikidata_sq" / "kg.nt.gz"
    if wikidata.exists():
        known = {name: WIKIDATA_PREFIXES[name] for name in ("wd", "wdt", "rdfs")}
        specs[WIKIDATA] = {"kind": "rdf", "path": _from(out, wikidata), "prefixes": known}
    return specs


def _graphs(data: Path, out: Path, import_graph: Import | None) -> dict[str, Spec]:
    specs: dict[str, Spec] = {}
    for nodes in sorted((data / "graphs").glob("*/nodes.jsonl.gz")):
        path = out / "graphs" / f"{nodes.parent.name}.lbug"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            (import_graph or _import)(nodes, nodes.with_name("edges.jsonl.gz"), path)
        specs[nodes.parent.name] = {"kind": "property_graph", "path": _from(out, path)}
    return specs


def _import(nodes: Path, edges: Path, path: Path) -> None:
    from helios.sources.graph_import import import_graph

    import_graph(nodes, edges, path)


def _corpora(data: Path, out: Path) -> dict[str, Spec]:
    specs: dict[str, Spec] = {}
    scifact = data / "ir" / "scifact" / "corpus.jsonl.gz"
    if scifact.exists():
        specs[SCIFACT] = {"kind": "corpus", "path": _from(out, scifact)}
    units = data / "sportreason" / "corpus.jsonl.gz"
    if units.exists():
        fields = {"id_field": "id", "title_field": "title", "text_field": "content"}
        specs[SPORTREASON] = {"kind": "corpus", "path": _from(out, units), **fields}
    tables = data / "ottqa9k" / "tables.jsonl.gz"
    if tables.exists():
        path = out / "corpora" / f"{OTTQA}.jsonl.gz"
        if not path.exists():
            _write_documents(path, tables)
        specs[OTTQA] = {"kind": "corpus", "path": _from(out, path)}
    return specs


def _write_documents(path: Path, tables: Path) -> None:
    """Tables as documents with `_id`, `title` and `text`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{line}\n" for line in _documents(tables))
    write_atomically(path, gzip.compress(lines.encode(), compresslevel=6, mtime=0))


def _documents(tables: Path) -> Iterator[str]:
    for record in json_lines(tables):
        if isinstance(record, Exception):
            raise record
        document_id, title, text = table_document(record[1])
        yield json.dumps({"_id": document_id, "title": title, "text": text}, ensure_ascii=False)


def _from(out: Path, path: Path) -> str:
    """A path as the file of sources has it: relative to its folder where both move together, else whole."""
    path, out = path.resolve(), out.resolve()
    return os.path.relpath(path, out) if path.is_relative_to(out) else str(path)


def main(
    data: Annotated[Path, typer.Argument(help="The folder of public data.")],
    out: Annotated[Path, typer.Argument(help="Where the file of sources and the imported graphs go.")],
) -> None:
    """Register every source of the folder of public data."""
    path = write_registry(data, out)
    count = len(yaml.safe_load(path.read_text())["sources"])
    typer.echo(f"{path}: {count} sources")


if __name__ == "__main__":
    typer.run(main)
