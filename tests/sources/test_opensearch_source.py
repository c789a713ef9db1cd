"""An index of an OpenSearch server as a source.

No OpenSearch server can be had here (it is a download of its own), so a small HTTP server stands in for one. It
answers as the documented API does, and its ranking counts common words; the client is the real one.
"""

import base64
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep

import pytest

from helios.errors import ConfigError, QueryFailed, QueryRejected, QueryTimeout, SourceUnavailable
from helios.executors.base import Language, NativeQuery
from helios.sources.cache import SourceCache
from helios.sources.descriptor import CorpusSchema
from helios.sources.opensearch import OpenSearchCorpus, open_source
from helios.sources.spec import read_spec

DOCUMENTS = {
    "7": {"title": "Myelin sheaths", "text": "Myelin sheaths speed up action potentials along axons."},
    "8": {"title": "Axons in the cortex", "text": ["Axons of cortical neurons", "form synapses."]},
    "9": {"title": "Cortical neurons", "text": "Cortical neurons fire action potentials."},
    "10": {"title": "Bread", "text": "Sourdough bread needs flour, water and salt, and a long rest."},
}
LOGIN = "Basic " + base64.b64encode(b"reader:open sesame").decode()


class StandIn(BaseHTTPRequestHandler):
    """The parts of the server's API that a reader needs; `mood` of the server says how it behaves."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(content) if content else {}
        self.server.asked.append((self.path, body))
        if self.server.mood == "slow":
            sleep(3)
        if self.server.mood == "nonsense":
            self.reply(200, {"took": 1})
        elif self.server.mood == "broken":
            self.reply(500, {"error": {"type": "x", "reason": "all shards failed"}, "status": 500})
        elif self.headers.get("Authorization") != LOGIN:
            self.reply(401, {"error": "unauthorized", "status": 401})
        elif not self.path.startswith("/papers/"):
            self.reply(404, {"error": {"type": "index_not_found_exception", "reason": "no such index"}, "status": 404})
        elif "/_count" in self.path:
            self.reply(200, {"count": len(DOCUMENTS)})
        else:
            self.reply(200, {"took": 1, "timed_out": False, "hits": {"hits": self.hits(body)}})

    def hits(self, body: dict) -> list[dict]:
        said = body["query"].get("multi_match", {}).get("query")
        asked = words(said) if said is not None else None
        found = []
        for number, document in DOCUMENTS.items():
            score = 1.0 if asked is None else float(len(asked & words(json.dumps(document))))
            if score:
                found.append({"_id": number, "_score": score, "_source": document})
        return sorted(found, key=lambda hit: -hit["_score"])[: body["size"]]

    def reply(self, status: int, body: dict) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        pass


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    server.daemon_threads = True
    server.asked, server.mood = [], ""
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def opened(server, monkeypatch):
    """What opens the source with some settings changed."""
    monkeypatch.setenv("PAPERS_PASSWORD", "open sesame")
    corpora = []

    def opening(**values) -> OpenSearchCorpus:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        plain = {"kind": "opensearch", "url": url, "index": "papers", "user": "reader"}
        spec = read_spec("papers", plain | {"password_env": "PAPERS_PASSWORD"} | values, where="test")
        corpora.append(open_source("papers", spec, None, SourceCache(None, "papers", "now")))
        return corpora[-1]

    yield opening
    for corpus in corpora:
        corpus.close()


def asked(text: str, **parameters) -> NativeQuery:
    return NativeQuery(Language.TEXT, text, parameters)


@pytest.mark.parametrize("rerank", [0, 50])
def test_documents_are_found_and_described(opened, rerank):
    corpus = opened(rerank=rerank)
    result = corpus.execute(asked("what makes action potentials fast?", k=2))
    assert result.columns == ("document_id", "title", "text", "score")
    assert [row[0] for row in result.rows] == ["7", "9"]
    assert result.rows[0][3] >= result.rows[1][3]
    assert corpus.execute(asked("synapses")).rows[0][2] == "Axons of cortical neurons form synapses."
    assert not corpus.execute(asked("zebra")).rows
    assert corpus.find_values(["bread"])[0].value == "Bread"
    schema = corpus.descriptor().schema
    assert isinstance(schema, CorpusSchema)
    assert schema.document_count == 4
    corpus.check()


def test_late_interaction_puts_the_servers_best_in_order(opened):
    """The server counts words; what means the same without sharing a word comes first only when it is read again."""
    question = "which loaf has water and salt and a rest in the long cortical neurons"
    plain = [row[0] for row in opened(rerank=0).execute(asked(question)).rows]
    read = [row[0] for row in opened().execute(asked(question)).rows]
    assert set(plain) == set(read)
    assert read[0] == "10"


@pytest.mark.parametrize(
    "question",
    [
        "title:* OR _exists_:x",
        '{"query": {"match_all": {}}}',
        'a" } } , "script": {',
        "*",
        "/.*/",
        "../_cluster/settings",
    ],
)
def test_a_question_is_words_and_nothing_else(server, opened, question):
    corpus = opened(fields=["title^2", "text"])
    corpus.execute(asked(question))
    path, body = server.asked[-1]
    assert path.partition("?")[0] == "/papers/_search"
    assert body["query"] == {
        "multi_match": {"query": question, "fields": ["title^2", "text"], "type": "best_fields", "lenient": True}
    }
    assert set(body) == {"query", "size", "track_total_hits", "timeout", "_source"}


@pytest.mark.parametrize(
    ("mood", "values", "error", "said"),
    [
        ("", {"index": "others"}, SourceUnavailable, "no index 'others'"),
        ("", {"user": None}, SourceUnavailable, "refuses the login"),
        ("broken", {}, QueryFailed, "500"),
        ("nonsense", {}, QueryFailed, "no hits"),
        ("slow", {"limits": {"timeout": 0.5}}, QueryTimeout, "0.5 s"),
    ],
)
def test_what_goes_wrong_is_said(server, opened, within, mood, values, error, said):
    server.mood = mood
    corpus = opened(**values)
    with within(2.5), pytest.raises(error, match=said):
        corpus.execute(asked("bread"))


def test_a_server_that_is_gone_is_said_once(server, opened, caplog):
    corpus = opened()
    server.shutdown()
    server.server_close()
    with pytest.raises(SourceUnavailable, match="cannot be reached"):
        corpus.execute(asked("bread"))
    assert caplog.records == []


def test_no_other_language_and_no_pattern_of_indexes(opened):
    with pytest.raises(QueryRejected):
        opened().execute(NativeQuery(Language.SQL, "SELECT 1"))
    for index in ("*", "a,b", "-a", "_all", "A"):
        with pytest.raises(ConfigError, match="index"):
            opened(index=index)
    with pytest.raises(ConfigError, match="password"):
        opened(url="http://reader:secret@127.0.0.1:9200")
