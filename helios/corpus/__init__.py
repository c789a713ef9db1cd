"""Reading corpora and storing them for random access by id.

The readers, with the libraries that they need, are loaded when `read_corpus` is first used.
"""

from typing import TYPE_CHECKING, Any

from helios.corpus.rejects import RejectsWriter
from helios.corpus.store import CorpusStore
from helios.corpus.writer import CorpusWriter

if TYPE_CHECKING:
    from helios.corpus.readers import read_corpus

__all__ = ["CorpusStore", "CorpusWriter", "RejectsWriter", "read_corpus"]


def __getattr__(name: str) -> Any:
    if name == "read_corpus":
        from helios.corpus.readers import read_corpus

        return read_corpus
    raise AttributeError(f"module 'helios.corpus' has no attribute {name!r}")
