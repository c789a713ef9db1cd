"""Reading corpora: one function over a registry of formats, one file a format."""

from helios.corpus.readers.registry import (
    FORMATS,
    Format,
    read_corpus,
    read_file,
    read_pieces,
    recognise,
    why_passed_over,
)

__all__ = ["FORMATS", "Format", "read_corpus", "read_file", "read_pieces", "recognise", "why_passed_over"]
