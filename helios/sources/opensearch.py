"""Documents of an OpenSearch server as a source: the server's BM25 finds, late interaction puts the best in order.

Only searches of the registered index are sent, and the words of a question go into them as words: nothing of a
question is read as the server's query language. What is sent follows OpenSearch's documented search API.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from helios.errors import QueryFailed, QueryTimeout, SourceUnavailable
from helios.executors.values import Value
from helios.once import once
from helios.sources.cache import SourceCache
from helios.sources.corpus import DOCUMENT_COLUMNS, READ_FOR_ONE, SAMPLE, Corpus
from helios.sources.descriptor import Descriptor
from helios.sources.document_index import LANES, in_both_orders, whole_text
from helios.sources.documents import Document
from helios.sources.spec import OpenSearchSpec, SourceSpec, secret
from helios.sources.topics import style

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

    from helios.models.encoder import MiniLMEncoder

Result = TypeVar("Result")
ENCODING_SHARE = 0.5
"""Share of a question's time in which documents are read again."""


def open_source(name: str, spec: SourceSpec, folder: Path, cache: SourceCache) -> "OpenSearchCorpus":
    """An index of a server from its registration; SourceUnavailable where its password is not set."""
    assert isinstance(spec, OpenSearchSpec)
    return OpenSearchCorpus(name, spec, cache, password=secret(spec.password_env, source=name))


class OpenSearchCorpus(Corpus):
    """Documents of one index of a server; threads may share it."""

    _columns = DOCUMENT_COLUMNS
    spec: OpenSearchSpec

    def __init__(self, name: str, spec: OpenSearchSpec, cache: SourceCache, *, password: str | None = None) -> None:
        super().__init__(name, spec, cache)
        self._password = password

    @once
    def client(self) -> "OpenSearch":
        """The client; it sends nothing until it is asked."""
        from opensearchpy import OpenSearch

        logging.getLogger("opensearch").setLevel(logging.CRITICAL)  # it logs, with a traceback, what it raises
        login = (self.spec.user, self._password or "") if self.spec.user else None
        return OpenSearch([self.spec.url], http_auth=login, max_retries=0, timeout=self.spec.limits.timeout)

    def descriptor(self) -> Descriptor:
        """Count, form, topics and titles, told from the first documents."""
        timeout = self.spec.limits.timeout
        count = int(
            self._asked(lambda: self.client.count(index=self.spec.index, params={"request_timeout": timeout}))["count"]
        )
        sample = [document for document, _ in self._hits({"match_all": {}}, SAMPLE, timeout)]
        return self._described(count, sample, self.spec.style or style(sample))

    def check(self) -> None:
        """Read one document; SourceUnavailable or QueryFailed says what to mend."""
        self._hits({"match_all": {}}, 1, self.spec.limits.timeout)

    def close(self) -> None:
        """Close the connections."""
        if "client" in self.__dict__:
            self.client.close()

    def _search(self, question: str, k: int, timeout: float) -> list[tuple[Value, ...]]:
        began = monotonic()
        rerank = min(self.spec.rerank, READ_FOR_ONE * k)
        said = {"query": question, "fields": list(self.spec.fields) or ["*"], "type": "best_fields", "lenient": True}
        hits = self._hits({"multi_match": said}, max(k, rerank), timeout)
        late = self._late(question, [document for document, _ in hits[:rerank]], began + ENCODING_SHARE * timeout)
        order = [(at, score) for at, (_, score) in enumerate(hits)]
        if late:
            order = in_both_orders(late, np.array([score for _, score in hits], np.float32))
        found = [(hits[at][0], score) for at, score in order[:k]]
        return [(document.document_id, document.title, document.text, score) for document, score in found]

    def _late(self, question: str, documents: Sequence[Document], deadline: float) -> list[float]:
        """Sum over the question's tokens of their best match in each document, for as many as time allows."""
        found: list[float] = []
        if not documents:
            return found
        asked = self._encoder.encode_question(question).vectors.T
        for start in range(0, len(documents), LANES):
            if monotonic() > deadline:
                break
            texts = [whole_text(document) for document in documents[start : start + LANES]]
            found += [
                float((tokens.vectors @ asked).max(axis=0).sum()) for tokens in self._encoder.encode_documents(texts)
            ]
        return found

    def _hits(self, query: Mapping[str, Any], size: int, timeout: float) -> list[tuple[Document, float]]:
        """The best documents of the index with the server's scores."""
        body = {
            "query": query, "size": size, "track_total_hits": False, "timeout": f"{max(1, int(timeout * 1e3))}ms",
            "_source": [self.spec.title_field, self.spec.text_field],
        }  # fmt: skip
        reply = self._asked(
            lambda: self.client.search(index=self.spec.index, body=body, params={"request_timeout": timeout})
        )
        try:
            hits = [(self._document(hit), float(hit.get("_score") or 0.0)) for hit in reply["hits"]["hits"]]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise QueryFailed(f"source {self.name!r}: the server's reply has no hits ({error})") from error
        return hits

    def _document(self, hit: Mapping[str, Any]) -> Document:
        fields = hit.get("_source") or {}
        title, text = (fields.get(name) or "" for name in (self.spec.title_field, self.spec.text_field))
        return Document(str(hit["_id"]), _text(title), _text(text))

    def _asked(self, ask: Callable[[], Any]) -> Any:
        """What the server says; its errors in our words."""
        from opensearchpy import exceptions

        try:
            return ask()
        except exceptions.ConnectionTimeout:
            raise QueryTimeout(self.spec.limits.timeout) from None
        except exceptions.NotFoundError:
            raise SourceUnavailable(
                f"source {self.name!r}: the server has no index {self.spec.index!r}; mend its registration"
            ) from None
        except (exceptions.AuthenticationException, exceptions.AuthorizationException):
            raise SourceUnavailable(
                f"source {self.name!r}: the server refuses the login; it needs the right to read {self.spec.index!r}"
            ) from None
        except exceptions.ConnectionError as error:
            raise SourceUnavailable(f"source {self.name!r}: the server cannot be reached ({error.error})") from None
        except exceptions.TransportError as error:
            raise QueryFailed(f"source {self.name!r}: the server says {error.status_code}: {error.error}") from None
        except exceptions.OpenSearchException as error:
            raise QueryFailed(f"source {self.name!r}: {error}") from None

    def _titles(self) -> Sequence[str]:
        documents = self._hits({"match_all": {}}, SAMPLE, self.spec.limits.timeout)
        return [document.title for document, _ in documents if document.title]

    @once
    def _encoder(self) -> "MiniLMEncoder":
        from helios.models.encoder import MiniLMEncoder

        return MiniLMEncoder.load()


def _text(value: Any) -> str:
    """A field as text; lists of texts are put together."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
