"""The bipartite graph of segments and passages: on disk (DataGraph) and of one query (Subgraph)."""
