"""Rerankers (HELIOS 4.1, 4.2): the best edges are read again with the question."""
