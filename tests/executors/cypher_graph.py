"""A small graph for tests of executors and sources that are asked in Cypher."""

import gzip
import json
from pathlib import Path

NODES = [
    {"id": "ann", "labels": ["Person"], "properties": {"name": "Ann", "born": 1970}},
    {"id": "bob", "labels": ["Person"], "properties": {"name": "Bob", "born": 1960}},
    {"id": "cid", "labels": ["Person"], "properties": {"name": "Cid", "born": 1980}},
    {"id": "dora", "labels": ["Person"], "properties": {"name": "Dora"}},
    {"id": "alpha", "labels": ["Movie"], "properties": {"title": "Alpha", "released": 1999}},
    {"id": "beta", "labels": ["Movie"], "properties": {"title": "Beta", "released": 2005}},
    {"id": "gamma", "labels": ["Movie"], "properties": {"title": "Create or DELETE", "released": 2010}},
]
EDGES = [
    {"src": "ann", "dst": "alpha", "type": "ACTED_IN", "properties": {"roles": ["Queen", "Maid"]}},
    {"src": "ann", "dst": "beta", "type": "ACTED_IN", "properties": {"roles": ["Spy"]}},
    {"src": "bob", "dst": "alpha", "type": "ACTED_IN", "properties": {"roles": ["King"]}},
    {"src": "cid", "dst": "gamma", "type": "DIRECTED", "properties": {}},
    {"src": "ann", "dst": "bob", "type": "FOLLOWS", "properties": {"since": 2001}},
    {"src": "bob", "dst": "cid", "type": "FOLLOWS", "properties": {"since": 2002}},
]


def write_files(folder: Path, nodes: list[dict[str, object]] = NODES, edges: list[dict[str, object]] = EDGES) -> None:
    """Write `nodes.jsonl.gz` and `edges.jsonl.gz`."""
    for name, records in (("nodes", nodes), ("edges", edges)):
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as lines:
            lines.writelines(json.dumps(record) + "\n" for record in records)
