"""Query-relevant node expansion (HELIOS 4.2): edges that the data graph lacks."""
