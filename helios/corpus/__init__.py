"""Reading corpora and storing them for random access by id."""
