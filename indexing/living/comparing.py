"""How far two indexes of the same records agree on links: what a link decided later costs.

python -m indexing.living.comparing BUILT CHANGED
"""

from pathlib import Path
from typing import Annotated

import typer

from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot

LinkSet = set[tuple[str, str, int]]


def links_of(index: Path) -> LinkSet:
    """Row, passage and column of every link, by their ids."""
    with Snapshot.open(index) as snapshot:
        reader = IndexReader.of(snapshot)
        graph, corpus = reader.graph, reader.corpus
        found: LinkSet = set()
        for number in range(graph.edge_count):
            edge = graph.edge(number)
            if edge.segment is not None and edge.passage is not None:
                ends = str(corpus.segment_id(edge.segment)), corpus.passages.id(edge.passage)
                found |= {(*ends, link.column) for link in graph.links(number)}
        return found


def main(
    built: Annotated[Path, typer.Argument(help="Index of a build.")],
    changed: Annotated[Path, typer.Argument(help="Index of the same records that was changed.")],
) -> None:
    """Print how many links two indexes have, and the shares that both have."""
    one, other = links_of(built), links_of(changed)
    both = len(one & other)
    typer.echo(f"{len(one):,} links built, {len(other):,} links after changes, {both:,} the same")
    typer.echo(f"{both / max(1, len(one)):.1%} of the built ones, {both / max(1, len(one | other)):.1%} of all")


if __name__ == "__main__":
    typer.run(main)
