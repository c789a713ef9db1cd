"""The bipartite graph segment-passage: the whole one on disk, and a question's part of it."""

from helios.graph.data import DataGraph
from helios.graph.subgraph import Nodes, Subgraph

__all__ = ["DataGraph", "Nodes", "Subgraph"]
