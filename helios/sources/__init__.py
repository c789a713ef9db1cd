"""Sources: databases, RDF graphs, property graphs and corpora, each described and asked in its own language."""
