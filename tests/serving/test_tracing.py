"""Spans for OpenTelemetry: a real server, its spans kept in memory; and sent by OTLP to a real receiver."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed (extra otel)")
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from serving.tracing import Tracing

QUESTION = {"question": "Which is the longest river of Europe?", "limit": 1}
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_requests_and_stages_are_spans(start_server):
    kept, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    server = start_server()
    server.serving.tracing = server.serving.questions.tracing = Tracing(provider)
    with httpx.Client(base_url=server.address, timeout=60) as client:
        client.post("/v1/ask", json=QUESTION, headers={"traceparent": f"00-{TRACE}-{PARENT}-01"})
        client.post("/v1/search", json={"question": "private words", "where": "title ="})
        client.get("/livez")
    server.serving.tracing = server.serving.questions.tracing = Tracing()
    spans = kept.get_finished_spans()
    (asked,) = [span for span in spans if span.name == "POST /v1/ask"]
    assert f"{asked.context.trace_id:032x}" == TRACE
    assert f"{asked.parent.span_id:016x}" == PARENT
    assert asked.attributes["http.response.status_code"] == 200
    assert asked.attributes["helios.index"] == "sample"
    stages = [span for span in spans if span.parent and span.parent.span_id == asked.context.span_id]
    assert [span.name for span in stages][:3] == ["queue", "retrieve", "rank"]
    assert stages[-1].name == "read"
    assert all(asked.start_time <= span.start_time <= span.end_time <= asked.end_time + 10**7 for span in stages)
    (refused,) = [span for span in spans if span.name == "POST /v1/search"]
    assert refused.attributes["error.type"] == "where_invalid"
    assert "private words" not in "".join(span.to_json() for span in spans)
    provider.shutdown()


def test_spans_are_sent_where_the_environment_says(monkeypatch):
    received = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, args=(0.05,), daemon=True).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{receiver.server_address[1]}")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "ours")
    tracing = Tracing.open()
    with tracing.request({}) as fields:
        fields["name"] = "GET /livez"
    tracing.close()
    receiver.shutdown()
    receiver.server_close()
    ((path, body),) = received
    assert path == "/v1/traces"
    assert b"GET /livez" in body
    assert b"ours" in body
