"""The corpus store on disk: file names, Arrow schemas and the id hash. Knows nothing of reading or writing.

A store is a directory:

    corpus.json            format, version, counts and file sizes; written last, its presence means "complete"
    tables.arrow           one record a table; cells are flattened row by row
    tables.batches.npy     int64[B+1] number of the first record of every Arrow record batch
    tables.hashes.npy      uint64[N] sorted id hashes
    tables.numbers.npy     uint32[N] the record number that belongs to each hash
    passages.*             the same four for passages
    segments.npy           int64[T+1] first segment number of every table

Arrow bodies are not compressed: a compressed batch would have to be unpacked whole for one record,
while a plain one is read in place through the memory map.
"""

import hashlib

import pyarrow as pa

FORMAT = "helios-corpus"
VERSION = 2
READABLE = (1, 2)
"""Version 1 had neither `source` nor `metadata`."""
MANIFEST = "corpus.json"
SEGMENTS = "segments.npy"
TABLES = "tables"
PASSAGES = "passages"
BATCH_RECORDS = 4096
BATCH_BYTES = 4 << 20
"""A batch is closed when it holds this many records or bytes of text, whichever comes first."""

TABLE_SCHEMA = pa.schema(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("title", pa.utf8(), nullable=False),
        pa.field("section", pa.utf8(), nullable=False),
        pa.field("intro", pa.utf8(), nullable=False),
        pa.field("url", pa.utf8(), nullable=False),
        pa.field("kind", pa.utf8(), nullable=False),
        pa.field("header", pa.list_(pa.utf8()), nullable=False),
        pa.field("cells", pa.list_(pa.utf8()), nullable=False),
        pa.field("link_rows", pa.list_(pa.int32()), nullable=False),
        pa.field("link_columns", pa.list_(pa.int32()), nullable=False),
        pa.field("link_passages", pa.list_(pa.utf8()), nullable=False),
        pa.field("source", pa.utf8(), nullable=False),
        pa.field("metadata", pa.utf8(), nullable=False),  # JSON, empty for none
    ]
)
PASSAGE_SCHEMA = pa.schema(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("title", pa.utf8(), nullable=False),
        pa.field("text", pa.utf8(), nullable=False),
        pa.field("url", pa.utf8(), nullable=False),
        pa.field("source", pa.utf8(), nullable=False),
        pa.field("metadata", pa.utf8(), nullable=False),
    ]
)

SCHEMAS = {TABLES: TABLE_SCHEMA, PASSAGES: PASSAGE_SCHEMA}
LATER = ("source", "metadata")
"""Columns that version 1 does not have."""


def id_hash(record_id: str) -> int:
    """64-bit hash of an id, the same on every machine and in every process; any text may be looked for."""
    encoded = record_id.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "little")


def record_files(kind: str) -> tuple[str, str, str, str]:
    """Names of the Arrow file and of the batches, hashes and numbers arrays of `tables` or `passages`."""
    return f"{kind}.arrow", f"{kind}.batches.npy", f"{kind}.hashes.npy", f"{kind}.numbers.npy"
