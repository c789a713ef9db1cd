"""Measures over sources: do the rows of two queries agree, and was the right source asked."""
