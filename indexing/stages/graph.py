"""Graph: links become the bipartite graph of segments and passages."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from helios.corpus import CorpusStore
from helios.graph.data import DataGraph
from indexing.stage import BuildRequest, StageContext, StageResult
from indexing.stages.link import LINK_COLUMNS


@dataclass(frozen=True)
class GraphStage:
    """Links → CSR arrays in both directions."""

    name: str = "graph"
    version: int = 1
    component: str | None = "graph"
    inputs: tuple[str, ...] = ("ingest", "link")
    settings: tuple[str, ...] = ()

    def fingerprint(self, request: BuildRequest) -> dict[str, Any]:
        """Nothing besides its inputs."""
        return {}

    def run(self, context: StageContext) -> StageResult:
        """Write the graph of all links."""
        store = CorpusStore.open(context.inputs["ingest"])
        links = [np.load(context.inputs["link"] / f"{name}.npy") for name in LINK_COLUMNS]
        context.meter.start(len(links[0]), "links")
        graph = DataGraph.write(
            context.out,
            *links,
            segment_count=store.segment_count,
            passage_count=len(store.passages),
        )
        context.meter.advance(len(links[0]))
        return StageResult(counts={"edges": graph.edge_count, "links": graph.link_count})
