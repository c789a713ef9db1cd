"""Corpora as sources: a HELIOS index of tables and passages, or documents in BEIR layout; `helios.sources.opensearch`
has those of a server.

All are asked in plain text. `parameters={"k": 20}` of a query says how many results are wanted.
"""

import logging
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from helios.errors import HeliosError, QueryRejected, QueryTimeout, SourceUnavailable
from helios.executors.base import Language, Limits, NativeQuery, ResultSet
from helios.executors.rows import capped
from helios.executors.values import Value
from helios.once import once
from helios.sources.base import ValueHit
from helios.sources.cache import SourceCache
from helios.sources.deadline import within
from helios.sources.descriptor import CorpusSchema, Descriptor
from helios.sources.documents import Document, Fields, documents_file, read_documents
from helios.sources.lookup import LazyLookup, StoredValue
from helios.sources.spec import CorpusSpec, SourceSpec
from helios.sources.topics import style, topics

if TYPE_CHECKING:
    from helios.engine import Engine
    from helios.models.encoder import MiniLMEncoder
    from helios.reading.base import Answer
    from helios.sources.document_index import DocumentIndex
    from helios.types import Evidence

log = logging.getLogger(__name__)
Result = TypeVar("Result")

MAX_QUESTION = 20_000
"""Characters of a query; a rewritten question is a paragraph, not a book."""
DEFAULT_K = 20
READ_FOR_ONE = 8
"""Documents that are read again for each that is wanted: who wants three need not wait for a hundred."""
START_SECONDS = 30.0
"""Of an index's first search, which loads the models, besides its own time."""
SAMPLE = 2000
"""Documents that topics and style are told from."""
TITLES = 8
DOCUMENT_COLUMNS = ("document_id", "title", "text", "score")
EDGE_COLUMNS = ("table_id", "row", "passage_id", "title", "text", "score")


def open_source(name: str, spec: SourceSpec, folder: Path, cache: SourceCache) -> "Corpus":
    """A corpus from its registration."""
    assert isinstance(spec, CorpusSpec)
    (path,) = spec.paths(folder)
    if (path / "manifest.json").is_file():
        return IndexCorpus(name, spec, path, cache)
    return DocumentCorpus(name, spec, documents_file(path), cache)


class Corpus(ABC):
    """What all sorts share: the guard of text queries and the lookup of titles."""

    language = Language.TEXT

    def __init__(self, name: str, spec: SourceSpec, cache: SourceCache) -> None:
        self.name = name
        self.kind = spec.kind
        self.spec = spec
        self.cache = cache
        self._lookup = LazyLookup(lambda: (StoredValue(("title",), title) for title in self._titles()), cache)

    def find_values(self, phrases: Sequence[str], *, limit: int = 5) -> tuple[ValueHit, ...]:
        """The titles that resemble the phrases."""
        return self._lookup.find(phrases, limit=limit)

    def execute(self, query: NativeQuery, limits: Limits | None = None) -> ResultSet:
        """Search; QueryRejected for what is no question."""
        limits = self.spec.limits if limits is None else limits
        k = _checked(query)
        started = perf_counter()
        rows = self._search(query.text, min(k, limits.max_rows), limits.timeout)
        kept, truncated = capped(rows, max_rows=limits.max_rows, max_bytes=limits.max_bytes)
        if truncated is None and k > limits.max_rows == len(kept):
            truncated = "rows"
        return ResultSet(self._columns, tuple(kept), truncated, (perf_counter() - started) * 1e3)

    def refresh(self) -> None:
        """Forget what was read of the documents."""
        self._lookup.forget()

    _columns: tuple[str, ...] = ()

    @abstractmethod
    def _search(self, question: str, k: int, timeout: float) -> list[tuple[Value, ...]]:
        """The best `k` rows of `_columns`."""

    @abstractmethod
    def _titles(self) -> Sequence[str]:
        """All titles, for the lookup."""

    def _described(self, count: int, sample: Sequence[Document], form: str) -> Descriptor:
        titles = tuple(dict.fromkeys(document.title for document in sample if document.title))[:TITLES]
        schema = CorpusSchema(count, form, topics(sample, _vocabulary()), titles)
        return Descriptor(self.name, self.kind, self.language, schema, self.spec.description)


class DocumentCorpus(Corpus):
    """Documents, searched by BM25 and late interaction; the index is made on first use and kept in the cache."""

    _columns = DOCUMENT_COLUMNS
    _scratch: tempfile.TemporaryDirectory[str] | None = None
    spec: CorpusSpec

    def __init__(self, name: str, spec: CorpusSpec, path: Path, cache: SourceCache) -> None:
        super().__init__(name, spec, cache)
        self.path = path

    @once
    def index(self) -> "DocumentIndex":
        """The open index, made now if the cache has none for this state of the documents."""
        from helios.sources.document_index import DocumentIndex, build_documents

        folder = self._folder()
        if not (folder / "documents.arrow").is_file():
            fields = Fields(self.spec.id_field, self.spec.title_field, self.spec.text_field)
            count = build_documents(read_documents(self.path, fields), folder)
            log.info("%s: indexed %d documents", self.name, count)
        return DocumentIndex(folder, lambda: self._encoder)

    def descriptor(self) -> Descriptor:
        """Count, form, topics and titles, told from documents all over the corpus."""
        numbers = np.unique(np.linspace(0, len(self.index) - 1, min(SAMPLE, len(self.index))).astype(int))
        sample = [self.index[int(number)] for number in numbers]
        return self._described(len(self.index), sample, self.spec.style or style(sample))

    def store_vectors(self, progress: Callable[[int], None] | None = None) -> int:
        """Encode all documents once, so that a search encodes only its question; returns the number of tokens.

        Takes seconds for a thousand documents. The running source goes on as it is; the next opening uses them.
        """
        from helios.sources.document_index import add_vectors

        return add_vectors(self.index, self._encoder, progress=progress)

    def check(self) -> None:
        """Read one document."""
        next(iter(read_documents(self.path, Fields(self.spec.id_field, self.spec.title_field, self.spec.text_field))))

    def close(self) -> None:
        """Delete an index that could not be kept; memory maps end with their last reader."""
        scratch, self._scratch = self._scratch, None
        if scratch is not None:
            scratch.cleanup()

    def _search(self, question: str, k: int, timeout: float) -> list[tuple[Value, ...]]:
        rerank = min(self.spec.rerank, READ_FOR_ONE * k)
        found = self.index.search(question, k=k, rerank=rerank, timeout=timeout)
        return [(hit.document.document_id, hit.document.title, hit.document.text, hit.score) for hit in found]

    def _titles(self) -> Sequence[str]:
        return [title for i in range(len(self.index)) if (title := self.index[i].title)]

    def _folder(self) -> Path:
        """Where the index is kept; the name tells the state of the documents."""
        path = self.cache.path(f"documents-{self.cache.fingerprint[:16]}")
        if path is not None:
            with self.cache.writing(path.parent):
                path.parent.mkdir(parents=True, exist_ok=True)
                return path
        self._scratch = tempfile.TemporaryDirectory(prefix="helios-documents-")
        return Path(self._scratch.name) / "documents"

    @once
    def _encoder(self) -> "MiniLMEncoder":
        from helios.models.encoder import MiniLMEncoder

        return MiniLMEncoder.load()


class IndexCorpus(Corpus):
    """A HELIOS index folder; opened on first use. A search that is late is given up and ends by itself."""

    _columns = EDGE_COLUMNS
    _warm = False
    _late = False
    spec: CorpusSpec

    def __init__(self, name: str, spec: CorpusSpec, path: Path, cache: SourceCache) -> None:
        super().__init__(name, spec, cache)
        self.path = path

    @once
    def engine(self) -> "Engine":
        """The engine over the index."""
        from helios.engine import Engine

        try:
            return Engine.open(self.path)
        except HeliosError as error:
            raise SourceUnavailable(f"source {self.name!r}: {error}") from error

    def descriptor(self) -> Descriptor:
        """Counts of tables and passages; topics from both."""
        corpus = self.engine.corpus
        tables, passages = len(corpus.tables), len(corpus.passages)
        sample = [corpus.passages[int(i)] for i in _spread(passages, SAMPLE // 2)]
        rows = [corpus.tables[int(i)] for i in _spread(tables, SAMPLE // 2)]
        documents = [
            Document(
                table.table_id, table.title, " ".join([table.section, *table.header, *map(" ".join, table.rows[:5])])
            )
            for table in rows
        ]
        documents += [Document(passage.passage_id, passage.title, passage.text) for passage in sample]
        form = self.spec.style or f"{tables:,} tables and {passages:,} passages, linked to each other"
        return self._described(tables + passages, documents, form)

    def check(self) -> None:
        """Open the index and read its first text."""
        corpus = self.engine.corpus
        if len(corpus.passages):
            _ = corpus.passages[0]

    def close(self) -> None:
        """Close the engine; after a late search that is left to the end of the process, it would be waited for."""
        if "engine" in self.__dict__ and not self._late:
            self.engine.close()

    def read(self, question: str) -> "Answer":
        """A short answer with citations that the store confirms, or an abstention; QueryTimeout when it is late."""

        def read() -> "Answer":
            return self.engine.ask(question, k=DEFAULT_K)

        return self._timed(read, self.spec.limits.timeout)

    def _search(self, question: str, k: int, timeout: float) -> list[tuple[Value, ...]]:
        from helios.models.text import segment_text

        def search() -> "Evidence":
            return self.engine.search(question, k=k)

        rows: list[tuple[Value, ...]] = []
        for edge in self._timed(search, timeout).edges:
            segment, passage = edge.segment, edge.passage
            texts = [segment_text(segment).text] if segment else []
            texts += [f"{passage.title}. {passage.text}"] if passage else []
            rows.append((
                segment.segment_id.table_id if segment else None, segment.segment_id.row if segment else None,
                passage.passage_id if passage else None, segment.title if segment else passage.title if passage else "",
                "\n".join(texts), edge.score,
            ))  # fmt: skip
        return rows

    def _timed(self, work: Callable[[], Result], seconds: float) -> Result:
        """The engine knows no deadline: its work is waited for so long, and so much longer while it starts."""
        try:
            result = within(seconds if self._warm else seconds + START_SECONDS, work)
        except QueryTimeout:
            self._late = True
            raise
        self._warm = True
        return result

    def _titles(self) -> Sequence[str]:
        corpus = self.engine.corpus
        tables = (corpus.tables[i].title for i in range(len(corpus.tables)))
        passages = (corpus.passages[i].title for i in range(len(corpus.passages)))
        return list(dict.fromkeys(title for titles in (tables, passages) for title in titles if title))


def _checked(query: NativeQuery) -> int:
    """The guard of text: how many results are asked for, or QueryRejected."""
    if query.language is not Language.TEXT:
        raise QueryRejected("a corpus is asked in plain text", str(query.language))
    if not query.text.strip():
        raise QueryRejected("the question is empty")
    if len(query.text) > MAX_QUESTION:
        raise QueryRejected(f"the question has {len(query.text)} characters, more than {MAX_QUESTION}")
    for name in query.parameters:
        if name != "k":
            raise QueryRejected("unknown parameter; a corpus knows k", name)
    k = query.parameters.get("k", DEFAULT_K)
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise QueryRejected("expected a number of results of 1 or more", f"k={k!r}")
    return k


def _spread(count: int, wanted: int) -> Sequence[int]:
    """Numbers all over a range."""
    return [int(i) for i in np.unique(np.linspace(0, count - 1, min(wanted, count)).astype(int))] if count else []


def _vocabulary() -> list[str]:
    """The encoder's vocabulary in its order."""
    from helios.models.base import find_base_model
    from helios.models.vocabulary import Vocabulary

    numbers = Vocabulary.of(find_base_model().folder).numbers
    return sorted(numbers, key=lambda word: numbers[word])
