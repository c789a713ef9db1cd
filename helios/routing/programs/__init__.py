"""Questions to SQL by the reader of tables: a small database is read as a folder of tables is.

tables of the database → the likeliest programs over them (`helios.reading.tables`) → plans → SQL, checked by running it
"""
