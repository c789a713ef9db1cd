"""Retrieval stages: from a question to a ranked subgraph."""
