"""Star-based refinement (HELIOS 4.3): column-wise aggregation and passage verification."""
