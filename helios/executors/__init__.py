"""Guarded executors: one contract, four languages (design: executors; docs/sources.md).

guard (parse, allow-list)  →  the engine's read-only mode  →  deadline  →  caps on rows, bytes and memory
"""
