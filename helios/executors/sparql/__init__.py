"""SPARQL as executors use it: tokens, the guard, and terms as values."""
