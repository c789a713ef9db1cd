"""Question files as the recipes write them."""

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from helios.index.durable import write_atomically


def write_records(records: Iterable[Mapping[str, Any]], path: Path) -> int:
    """Write a question file (.jsonl or .jsonl.gz), the same bytes for the same records; how many there are."""
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    content = "".join(lines).encode()
    write_atomically(path, gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return len(lines)
