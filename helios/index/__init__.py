"""The on-disk index: its format, reader, writer and search."""
