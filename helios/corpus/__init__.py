"""Reading corpora and storing them for random access by id.

The readers, with the libraries that they need, are loaded when `read_corpus` is first used.
"""

from typing import TYPE_CHECKING, Any

from helios.corpus.mapping import FieldMap
from helios.corpus.rejects import RejectsWriter
from helios.corpus.store import CorpusStore
from helios.corpus.writer import CorpusWriter

if TYPE_CHECKING:
    from helios.corpus.readers import read_corpus, read_pieces

__all__ = ["CorpusStore", "CorpusWriter", "FieldMap", "RejectsWriter", "read_corpus", "read_pieces"]


def __getattr__(name: str) -> Any:
    if name in ("read_corpus", "read_pieces"):
        from helios.corpus import readers

        return getattr(readers, name)
    raise AttributeError(f"module 'helios.corpus' has no attribute {name!r}")
