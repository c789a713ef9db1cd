"""Small files that unpack, expand or nest to much more: each is a reject with its reason, and costs no more than 2 GB.

Every file lies between two good ones, whose records must be there.
"""

import base64
import gzip
import io
import json
import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.slow
MEBI = 2**20
RECORD = b'{"id": "p", "text": "x"}\n'


def sheet(*, cells: str = "", merged: str = "") -> bytes:
    """A workbook whose sheet holds this XML; openpyxl would not write it so."""
    book = openpyxl.Workbook()
    book.active["A1"] = "a"
    plain = io.BytesIO()
    book.save(plain)
    out = io.BytesIO()
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "xl/worksheets/sheet1.xml":
                content = content.replace(b"</sheetData>", cells.encode() + b"</sheetData>" + merged.encode())
            target.writestr(name, content)
    return out.getvalue()


def sheets_of_one_part(count: int, rows: int) -> bytes:
    """A workbook whose many sheets are all the same part, of one row over and over."""
    row = '<row r="1"><c r="A1"><v>1</v></c></row>'
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(sheet(cells=row * rows))) as source, zipfile.ZipFile(out, "w", 8) as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "xl/workbook.xml":
                one = content[content.index(b"<sheet ") : content.index(b"</sheets>")]
                more = (one.replace(b'"Sheet"', b'"S%d"' % n).replace(b'"1"', b'"%d"' % n) for n in range(2, count))
                content = content.replace(one, one + b"".join(more))
            target.writestr(name, content)
    return out.getvalue()


def zipped(content: Callable[[], bytes], *, times: int) -> bytes:
    """A workbook with one more part, of `times` the content."""
    out = io.BytesIO(sheet())
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as target:
        piece = content()
        with target.open("xl/worksheets/sheet2.xml", "w", force_zip64=True) as part:
            for _ in range(times):
                part.write(piece)
    return out.getvalue()


def packed(piece: bytes, *, times: int, begin: bytes = b"", end: bytes = b"") -> bytes:
    """`times` a piece, compressed."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(begin)
        for _ in range(times):
            file.write(piece)
        file.write(end)
    return out.getvalue()


def parquet(table: pa.Table, *, repeated: bool = True) -> bytes:
    """The file of a table; values that are `repeated` are written once."""
    out = io.BytesIO()
    whole = {"use_dictionary": repeated, "dictionary_pagesize_limit": 1 << 30}
    pq.write_table(table, out, compression="zstd", write_statistics=False, **whole)  # which would take seconds
    return out.getvalue()


def dictionary(value: str, *, rows: int, **columns: pa.Array) -> pa.Table:
    """One long value, which every row repeats."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([value]))
    return pa.table({"text": text, **columns})


def zeros(count: int) -> pa.Array:
    return pa.nulls(count, pa.int8()).fill_null(0)


def spans(*, rows: int, columns: int) -> bytes:
    """Cells that hang down to the end of the table, more of them in every row."""
    row = "<tr>" + "<td colspan=1000 rowspan=0>x" * columns + "</tr>"
    return f"<html><body><table>{row * rows}</table>".encode()


def archive(*members: tuple[str, bytes]) -> bytes:
    """A ZIP file of members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members:
            target.writestr(name, content)
    return out.getvalue()


@cache
def archive_of_spaces(name: str, size: int) -> bytes:
    """A ZIP file of one member of spaces, which several bombs hold: packing hundreds of megabytes takes seconds."""
    return archive((name, b" " * size))


def spaces_in_pdf(size: int) -> bytes:
    """A page whose content is spaces, compressed."""
    content = zlib.compress(b" " * size)
    return (
        b"%%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n"
        b"2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n"
        b"3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<<>>>>\nendobj\n4 0 obj\n"
        b"<</Filter/FlateDecode/Length %d>>\nstream\n%s\nendstream\nendobj\ntrailer\n<</Root 1 0 R>>\n%%%%EOF"
    ) % (len(content), content)


def object_that_is_itself() -> bytes:
    """A PDF whose root refers to itself, which its parser follows for ever."""
    body = b"%PDF-1.5\n1 0 obj\n1 0 R\nendobj\n"
    table = b"xref\n0 2\n0000000000 65535 f \n%010d 00000 n \n" % 9
    return body + table + b"trailer\n<</Size 2 /Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % len(body)


def repeated_cells() -> bytes:
    """A sheet of one cell that is said to be all over it."""
    names = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table"))
    cell = '<table:table-cell office:value-type="float" office:value="1" table:number-columns-repeated="16384"/>'
    content = (
        f"<office:document-content {names}><office:body><office:spreadsheet><table:table table:name='S'>"
        f"<table:table-row table:number-rows-repeated='1048576'>{cell}</table:table-row></table:table>"
        "</office:spreadsheet></office:body></office:document-content>"
    )
    kind = b"application/vnd.oasis.opendocument.spreadsheet"
    return archive(("mimetype", kind), ("META-INF/manifest.xml", b"<manifest/>"), ("content.xml", content.encode()))


def entities(levels: int) -> bytes:
    """Each entity is ten of the one before."""
    more = "".join(f'<!ENTITY e{level} "{f"&e{level - 1};" * 10}">' for level in range(1, levels))
    return f'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY e0 "text">{more}]><a>&e{levels - 1};</a>'.encode()


def aliases(levels: int) -> bytes:
    """Each list is ten of the one before."""
    more = "".join(f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 10)}]\n" for level in range(1, levels))
    return f"l0: &l0 [x]\n{more}".encode()


def deep_names(depth: int, length: int) -> str:
    inner: object = 1
    for level in range(depth):
        inner = {chr(97 + level % 26) * length: inner}
    return json.dumps({"id": "x", "text": "y", "metadata": inner})


BOMBS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "one cell at the far corner": (
        "bomb.xlsx",
        lambda: sheet(cells='<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
        "advanced.corpus.cells",
    ),
    "one merged range": (
        "bomb.xlsx",
        lambda: sheet(merged='<mergeCells count="1"><mergeCell ref="A1:XFD1048576"/></mergeCells>'),
        "advanced.corpus.cells",
    ),
    "zip": ("bomb.xlsx", lambda: zipped(lambda: b" " * MEBI, times=600), "advanced.corpus.file_mb"),
    "zip of cells": (
        "bomb.xlsx",
        lambda: sheet(cells='<row r="9">' + "<c><v>1</v></c>" * 5_000_000 + "</row>"),
        "advanced.corpus.expansion",
    ),
    "column and row spans": ("bomb.html", lambda: spans(rows=300, columns=5), "advanced.corpus.cells"),
    "spans of a long text": (
        "bomb.html",
        lambda: b"<table><tr><td colspan=1000>" + b"x" * 2**18 + b"<tr><td>y</table>",
        "advanced.corpus.expansion",
    ),
    "spans in markdown": ("bomb.md", lambda: spans(rows=300, columns=5), "advanced.corpus.cells"),
    "a heading that every passage repeats": (
        "bomb.html",
        lambda: b"<h1>" + b"h" * 2**18 + b"</h1>" + b"<p>" + b"word " * 100_000,
        "advanced.corpus.expansion",
    ),
    "many small tags": ("bomb.html", lambda: b"<html><body>" + b"<b>" * 8 + b"<p a b>" * 8_000_000, "memory"),
    "gzip of one line": ("bomb.jsonl.gz", lambda: packed(b" " * MEBI, times=100, begin=RECORD), "advanced.corpus."),
    "gzip of blank lines": (
        "bomb.jsonl.gz",
        lambda: packed((b" " * 1023 + b"\n") * 1024, times=100, begin=RECORD),
        "advanced.corpus.expansion",
    ),
    "gzip of a page": ("bomb.html.gz", lambda: packed(b"<p>x" * 2**18, times=100), "advanced.corpus."),
    "gzip of commas": ("bomb.csv.gz", lambda: packed(b"," * MEBI, times=100), "advanced.corpus."),
    "gzip of one JSON text": (
        "bomb.json.gz",
        lambda: packed(b"x" * MEBI, times=100, begin=b'{"/wiki/a": "x", "/wiki/b": "', end=b'"}'),
        "advanced.corpus.",
    ),
    "wide row over short ones": (
        "bomb.csv",
        lambda: b",".join(b"c%d" % column for column in range(20_000)) + b"\n1\n" * 20_000,
        "advanced.corpus.cells",
    ),
    "commas": ("bomb.csv", lambda: b"," * 20_000_000, "advanced.corpus.cells"),
    "rows of nothing": (
        "bomb.jsonl",
        lambda: json.dumps({"id": "x", "header": ["a"] * 10_000, "rows": [[]] * 100_000}).encode(),
        "advanced.corpus.cells",
    ),
    "a long line of empty lists": (
        "bomb.jsonl",
        lambda: b'{"id": "x", "header": ["a"], "rows": [' + b"[]," * 15_000_000 + b"[]]}",
        "advanced.corpus.record_mb",
    ),
    "a name that every field repeats": (
        "bomb.jsonl",
        lambda: json.dumps(
            {"id": "x", "type": "infobox", "content": {"n" * 60_000: dict.fromkeys(map(str, range(100_000)), 1)}}
        ).encode(),
        "advanced.corpus.text_mb",
    ),
    "names within names": ("bomb.jsonl", lambda: deep_names(400, 60_000).encode(), "name"),
    "dictionary": ("bomb.parquet", lambda: parquet(dictionary("x" * MEBI, rows=200_000)), "advanced.corpus."),
    "dictionary of passages": (
        "bomb.parquet",
        lambda: parquet(dictionary("x" * MEBI, rows=200_000, id=pa.array(range(200_000)))),
        "advanced.corpus.",
    ),
    "run lengths": (
        "bomb.parquet",
        lambda: parquet(pa.table({"n": zeros(10**8)})),
        "advanced.corpus.cells",
    ),
    "one long list": (
        "bomb.parquet",
        lambda: parquet(pa.table({"n": pa.ListArray.from_arrays([0, 10**8], zeros(10**8))}), repeated=False),
        "memory",
    ),
    "brackets": ("bomb.json", lambda: b"[" * 200_000, "nested"),
    "brackets in an array of records": (
        "bomb.json",
        lambda: b'[{"id": "p", "text": "x"}, {"id": "q", "text": ' + b"[" * 200_000,
        "nested",
    ),
    "brackets in a line": ("bomb.jsonl", lambda: b"[" * 100_000, "nested"),
    "brackets in every line": ("bomb.jsonl", lambda: (b"[" * 100_000 + b"\n") * 30, "nested"),
    "objects in objects": ("bomb.json", lambda: b'{"a":' * 100_000, "nested"),
    "digits in a line": ("bomb.jsonl", lambda: b'{"id": "x", "text": "y", "n": ' + b"9" * 5000 + b"}", "digits"),
    "digits": ("bomb.json", lambda: b'[{"id": "x", "text": "y", "n": ' + b"9" * 5000 + b"}]", "integer overflow"),
    "digits in the id": ("bomb.jsonl", lambda: b'{"id": ' + b"9" * 5000 + b', "text": "y"}', "digits"),
    "zip of spaces": ("bomb.zip", lambda: archive_of_spaces("a.txt", 600 * MEBI), "advanced.corpus.file_mb"),
    "zips in a zip": (
        "bomb.zip",
        lambda: archive(*((f"{n}.zip", archive_of_spaces("a.bin", 60 * MEBI)) for n in range(10))),
        "advanced.corpus.",
    ),
    "parts of a document": (
        "bomb.docx",
        lambda: archive(("word/document.xml", b" " * (200 * MEBI))),
        "advanced.corpus.",
    ),
    "parts of slides": (
        "bomb.pptx",
        lambda: archive(("ppt/presentation.xml", b" " * (200 * MEBI))),
        "advanced.corpus.",
    ),
    "an object that is itself": ("bomb.pdf", object_that_is_itself, "took more processor time"),
    "empty lines": (
        "bomb.jsonl.gz",
        lambda: packed(b"\n" * MEBI, times=60, begin=RECORD),
        "the rest of the file is not read",
    ),
    "one id for ever": (
        "bomb.jsonl.gz",
        lambda: packed(RECORD * 1000, times=5000),
        "the rest of the file is not read",
    ),
    "content of a page": ("bomb.pdf", lambda: spaces_in_pdf(200 * MEBI), "advanced.corpus.expansion"),
    "sheets of one part": ("bomb.xlsx", lambda: sheets_of_one_part(300, 40_000), "advanced.corpus."),
    "repeated cells": ("bomb.ods", repeated_cells, "not a readable ODS file"),
    "entities": ("bomb.xml", lambda: entities(12), "not valid XML"),
    "deep elements": ("bomb.xml", lambda: b"<a>" * 200_000, "not valid XML"),
    "many levels of elements": ("bomb.xml", lambda: b"<a>" * 150 + b"x" + b"</a>" * 150, "nested too deeply"),
    "aliases": ("bomb.yaml", lambda: aliases(12), "its references expand"),
    "brackets in YAML": ("bomb.yaml", lambda: b"[" * 100_000, ""),
    "fields that no two records share": (
        "bomb.json",
        lambda: json.dumps([{f"f{n}-{m}": 1 for m in range(10)} for n in range(5000)]).encode(),
        "advanced.corpus.cells",
    ),
    "names within names of any JSON": (
        "bomb.json",
        lambda: json.dumps([{"n" * 60_000: dict.fromkeys(map(str, range(50_000)), 1)}] * 2).encode(),
        "advanced.corpus.text_mb",
    ),
    "an attached archive": (
        "bomb.eml",
        lambda: (
            b"Subject: x\nContent-Type: application/zip; name=a.zip\nContent-Disposition: attachment; filename=a.zip\n"
            b"Content-Transfer-Encoding: base64\n\n" + base64.encodebytes(archive_of_spaces("a.txt", 600 * MEBI))
        ),
        "advanced.corpus.file_mb",
    ),
    "nested tables": ("bomb.html", lambda: b"<table><tr><td>x" * 3000, ""),
}

ENDLESS = ("an object that is itself",)
"""What is read until its time is over, which is short for them."""
LIMIT = 2 << 30
READ = """
import json, sys, time
from pathlib import Path
from helios.config import CorpusBudget
from helios.corpus import RejectsWriter, read_corpus
for folder in map(Path, sys.argv[1:]):
    began = time.monotonic()
    budget = CorpusBudget(seconds=30.0) if folder.name.startswith("endless") else CorpusBudget()
    with RejectsWriter(folder.with_suffix(".rejects")) as rejects:
        records = read_corpus(folder, on_error="skip", rejects=rejects, budget=budget)
        ids = [getattr(record, "passage_id", None) for record in records]
    reasons = [json.loads(line)["reason"] for line in folder.with_suffix(".rejects").open()]
    seconds = round(time.monotonic() - began, 1)
    print(json.dumps({"ends": ids[:1] + ids[-1:], "reasons": reasons, "seconds": seconds}), flush=True)
"""

MEASURE = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def written(folder: Path) -> list[Path]:
    """A folder for each bomb, between two good files; made in a child, so that this process stays small."""
    folders = [folder / f"{'endless' if bomb in ENDLESS else ''}{number}" for number, bomb in enumerate(BOMBS)]
    if not (child := os.fork()):
        code = 1
        try:
            for place, (name, content, _) in zip(folders, BOMBS.values(), strict=True):
                place.mkdir()
                (place / "a.jsonl").write_text('{"id": "first", "text": "one"}\n')
                (place / "z.jsonl").write_text('{"id": "last", "text": "one"}\n')
                (place / name).write_bytes(content())
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0
    return folders


def read_all(*folders: Path) -> tuple[list[dict], int]:
    """What one process gets of the folders, and the peak memory of it and of the process that reads for it.

    A small process starts it and measures: to the child of a large one its parent's memory is counted.
    """
    command = [sys.executable, "-c", MEASURE, sys.executable, "-c", READ, *map(str, folders)]
    *results, peak = map(json.loads, subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines())
    return results, peak << 10


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, dict], int]:
    results, peak = read_all(*written(tmp_path_factory.mktemp("bombs")))
    return dict(zip(BOMBS, results, strict=True)), peak


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_rejected_and_its_neighbours_are_read(outcome, bomb):
    results, _ = outcome
    assert results[bomb]["ends"] == ["first", "last"]
    assert results[bomb]["reasons"]
    assert BOMBS[bomb][2] in results[bomb]["reasons"][-1]


def test_no_bomb_needs_more_than_two_gigabytes(outcome):
    _, peak = outcome
    assert peak < LIMIT
