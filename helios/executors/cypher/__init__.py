"""Cypher: a strict reader of it, and what writes it anew for an engine."""
