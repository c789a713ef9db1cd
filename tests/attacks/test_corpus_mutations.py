"""Files of every format with some bytes changed: reading ends in records or rejects, and never touches other files.

`HELIOS_FUZZ=100000 pytest tests/attacks/test_corpus_mutations.py` tries so many files of each format; a failure names
the seed, which `HELIOS_FUZZ_SEED` starts with.
"""

import gzip
import io
import json
import os
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helios.corpus import CorpusWriter, read_corpus
from helios.types import Passage

FILES = int(os.environ.get("HELIOS_FUZZ", "20"))
FIRST_SEED = int(os.environ.get("HELIOS_FUZZ_SEED", "0"))
TABLE = {"id": "t", "title": "Rivers", "header": ["River", "km"], "rows": [["Rhine", 1230], ["Po", 652.5]],
         "links": [[0, 0, "p"]], "metadata": {"year": 2025, "author": {"name": "Moe"}}}  # fmt: skip
PASSAGE = {"id": "p", "title": "Rhine", "text": "It flows \u00e0 la mer.", "url": "https://example.org"}
OTTQA = {"uid": "Rivers_0", "header": [["River", []]], "data": [[["Rhine", ["/wiki/Rhine"]]]], "title": "Rivers"}
PIECES = [
    *(b"[", b"]", b"{", b"}", b'"', b"\\", b",", b":", b"\0", b"\n", b"\r", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf"),
    *(b"9" * 5000, b"-1", b"1e999", b"NaN", b"null", b"\\ud800", b"[" * 2000, b'{"a":' * 500, b"99999999999"),
    *(b"<table>", b"<td colspan=1000 rowspan=0>", b"</", b"<!--", b"<![CDATA[", b"&#0;", b"&#xd800;", b"&lt;" * 100),
    *(b"<meta charset=utf-16>", b"|", b"---", b"```", b"> " * 200, b"- " * 200, b"XFD1048576", b"A1:XFD1048576"),
]


def workbook() -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["River", "km", "share"], ["Rhine", 1230, 0.5], ["Po", 652, None]):
        sheet.append(row)
    sheet.merge_cells("A2:A3")
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def parquet(columns: dict) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def lines(*records: dict) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


PAGE = (
    b"<!doctype html><html><head><meta charset=utf-8><title>Rivers</title></head><body><h1>Rivers</h1><p>Text here."
    b"<table class=infobox><tr><th>Length<td>1230</table><table><tr><th rowspan=2>River<th colspan=2>Size"
    b"<tr><th>km<th>m3<tr><td>Rhine<td>1230<td>2900</table></body></html>"
)
SEEDS: dict[str, bytes] = {
    "records.jsonl": lines(TABLE, PASSAGE),
    "beir.jsonl": lines({"_id": "1", "title": "T", "text": "x"}, {"_id": "2", "title": "U", "text": "y"}),
    "units.jsonl": lines({"id": "c", "type": "infobox", "content": {"A": "1", "B": {"C": ["2", "3"]}}}),
    "array.json": json.dumps([TABLE, PASSAGE]).encode(),
    "ottqa.json": json.dumps(OTTQA).encode(),
    "passages.json": json.dumps({"/wiki/Rhine": "It flows.", "/wiki/Po": "Too."}).encode(),
    "table.csv": b"River,km\nRhine,1230\nPo,\"652,5\"\n",
    "table.tsv": "River\tkm\nRhône\t812\n".encode("latin-1"),
    "page.html": PAGE,
    "page.md": b"---\ntitle: Rivers\n---\n# Rivers\n\n*Text*\n\n| River | km |\n|---|---|\n| Rhine | 1230 |\n\n" + PAGE,
    "book.xlsx": workbook(),
    "table.parquet": parquet({"name": ["a", None], "n": [1, 2], "tags": [["x"], []], "raw": [b"a", b"\xff"]}),
    "passages.parquet": parquet({"id": ["1", "2"], "text": ["x", "y"], "title": ["A", "B"]}),
}  # fmt: skip


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, cut out, repeated, or put in."""
    for _ in range(chance.choice([1, 1, 2, 4, 16])):
        start = chance.randrange(len(data) + 1)
        end = min(len(data), start + chance.choice([1, 1, 2, 8, 64, len(data)]))
        piece = chance.choice(
            [b"", bytes([chance.randrange(256)]), data[start:end] * 2, chance.choice(PIECES), b"\0" * 8]
        )
        data = data[:start] + piece + data[end:]
    return data


def of_parts(data: bytes, chance: random.Random) -> bytes:
    """A workbook with one part changed and its checksums right."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w") as target:
        chosen = chance.choice(source.namelist())
        for name in source.namelist():
            content = source.read(name)
            target.writestr(name, mutated(content, chance) if name == chosen else content)
    return out.getvalue()


WAYS: dict[str, tuple[str, Callable[[bytes, random.Random], bytes]]] = {
    "plain": ("", mutated),
    "within gzip": (".gz", lambda data, chance: gzip.compress(mutated(data, chance))),
    "gzip": (".gz", lambda data, chance: mutated(gzip.compress(data, mtime=0), chance)),
}
CASES = [
    (name, way) for name in SEEDS for way in WAYS if way == "plain" or name.endswith(("jsonl", "json", "csv", "html"))
]


@pytest.mark.parametrize(("name", "way"), [*CASES, ("book.xlsx", "parts")])
def test_a_damaged_file_loses_nothing_but_itself(tmp_path: Path, name: str, way: str):
    ending, mutate = WAYS.get(way, ("", of_parts))
    (tmp_path / "corpus").mkdir()
    for good in ("a", "z"):
        (tmp_path / "corpus" / f"{good}.jsonl").write_bytes(lines({"id": f"good {good}", "text": "x"}))
    writer = CorpusWriter(tmp_path / "store")
    for seed in range(FIRST_SEED, FIRST_SEED + FILES):
        (tmp_path / "corpus" / (name + ending)).write_bytes(mutate(SEEDS[name], random.Random(seed)))
        try:
            ids = read_and_store(tmp_path / "corpus", writer)
        except Exception as error:
            raise AssertionError(f"{name}, {way}, seed {seed}") from error
        assert {"good a", "good z"} <= ids, f"{name}, {way}, seed {seed}"
    writer.discard()


def read_and_store(corpus: Path, writer: CorpusWriter) -> set[str]:
    """The ids of all passages; every record must be one that a store takes."""
    ids = set()
    for record in read_corpus(corpus, on_error="skip"):
        writer.add(record)
        if isinstance(record, Passage):
            ids.add(record.passage_id)
    return ids
