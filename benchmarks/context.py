"""What a question's context costs: gathering it, and its vectors without and with what was kept.

    python -m benchmarks.context quantumcomputing.sqlite posts --rows 5

Rows that give less than `--attributes` values are passed over.
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from helios.augment.augmenter import Augmenter
from helios.augment.encoding import AttributeVectors, PooledTokens
from helios.augment.settings import AugmentSettings
from helios.executors.base import Language, NativeQuery
from helios.models.encoder import MiniLMEncoder
from helios.sources.registry import Registry


def main(
    database: Annotated[Path, typer.Argument(help="A SQLite file.")],
    table: Annotated[str, typer.Argument(help="The table of the questions; its key is the column `id`.")],
    rows: Annotated[int, typer.Option(help="Rows that are measured.")] = 5,
    attributes: Annotated[int, typer.Option(help="Values that each must give.")] = 200,
    exclude: Annotated[list[str] | None, typer.Option(help="Tables and columns that are left out.")] = None,
) -> None:
    """Print medians in milliseconds."""
    encoder = MiniLMEncoder.load()
    list(encoder.encode_documents(["the first text loads the model"] * 8))
    settings = AugmentSettings(exclude=tuple(exclude or ()), per_column=60, attributes=attributes, seconds=30.0)
    times: dict[str, list[float]] = {"gather": [], "encode": [], "encode again": []}
    lengths = []
    with tempfile.TemporaryDirectory() as folder, Registry.open(Path(folder) / "s.yaml", create=True) as registry:
        registry.add("db", {"kind": "sqlite", "path": str(database.resolve())})
        source = registry.source("db")
        augmenter = Augmenter(source, settings)
        found = source.execute(
            NativeQuery(Language.SQL, f'SELECT id FROM "{table}" ORDER BY id * 7919 % 10007 LIMIT 1000')
        )
        for (key,) in found.rows:
            texts = augmenter.of_row(table, key).texts()
            if len(texts) < attributes:
                continue
            vectors = AttributeVectors(PooledTokens(encoder))
            lengths.append(sum(map(len, texts)))
            for name, work in (
                ("gather", lambda key=key: augmenter.of_row(table, key)),
                ("encode", lambda vectors=vectors, texts=texts: vectors.of(texts)),
                ("encode again", lambda vectors=vectors, texts=texts: vectors.of(texts)),
            ):
                started = time.perf_counter()
                work()
                times[name].append((time.perf_counter() - started) * 1e3)
            if len(lengths) == rows:
                break
    typer.echo(f"{len(lengths)} rows of {attributes} values, {statistics.median(lengths):,.0f} characters (median)")
    for name, own in times.items():
        typer.echo(f"{name:14s} {statistics.median(own):8.1f} ms")


if __name__ == "__main__":
    typer.run(main)
