"""Models that query time and indexing share, each behind a small protocol."""
