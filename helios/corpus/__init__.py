"""Reading corpora and storing them for random access by id."""

from helios.corpus.readers import read_corpus
from helios.corpus.rejects import RejectsWriter
from helios.corpus.store import CorpusStore
from helios.corpus.writer import CorpusWriter

__all__ = ["CorpusStore", "CorpusWriter", "RejectsWriter", "read_corpus"]
