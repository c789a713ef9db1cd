"""Questions to SQL and Cypher by the reader of tables: a small database or graph is read as a folder of tables is.

its tables → the likeliest programs over them (`helios.reading.tables`) → plans → queries, checked by running them
"""
