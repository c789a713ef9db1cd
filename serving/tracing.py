"""Spans of requests, and of the stages of their questions, for OpenTelemetry (extra `otel`, `helios serve --otel`).

Where they go is what the variables of OpenTelemetry say (OTEL_EXPORTER_OTLP_ENDPOINT and so on). A request that comes
with a `traceparent` continues its trace. Spans hold no question, no answer and no key.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from serving.watch import Watch


class Tracing:
    """Gives spans to a provider of OpenTelemetry's SDK; without one it does nothing."""

    def __init__(self, provider: Any = None) -> None:
        self._provider = provider
        self._tracer = None if provider is None else provider.get_tracer("helios.serving")

    @classmethod
    def open(cls) -> "Tracing":
        """Spans go in batches where the environment says, by OTLP over HTTP."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        resource = Resource.create({SERVICE_NAME: "helios"}).merge(OTELResourceDetector().detect())
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    @contextmanager
    def request(self, headers: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """The span of a request; what is put into the yielded fields becomes its name (`name`) and attributes."""
        fields: dict[str, Any] = {}
        if self._tracer is None:
            yield fields
            return
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        before = TraceContextTextMapPropagator().extract(
            {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        )
        span = self._tracer.start_span("request", before, kind=trace.SpanKind.SERVER)
        fields["trace_id"] = trace.format_trace_id(span.get_span_context().trace_id)
        try:
            with trace.use_span(span, end_on_exit=False, record_exception=False):
                yield fields
        finally:
            fields.pop("trace_id")
            span.update_name(fields.pop("name", "request"))
            if fields.get("http.response.status_code", 0) >= 500:
                span.set_status(trace.StatusCode.ERROR)
            span.set_attributes({name: value for name, value in fields.items() if value not in ("", None)})
            span.end()

    def stages(self, watch: Watch) -> None:
        """A span for the time in the queue and for each stage of a question that has ended, within the request's."""
        if self._tracer is None:
            return
        offset = time.time_ns() - time.monotonic_ns()
        begun = [("queue", watch.arrived), *watch.stages, ("end", time.monotonic())]
        for (name, start), (_, end) in zip(begun, begun[1:], strict=False):
            span = self._tracer.start_span(name, start_time=offset + round(start * 1e9))
            span.end(offset + round(end * 1e9))

    def close(self) -> None:
        """Send what is left; no more than a few seconds."""
        if self._provider is not None:
            self._provider.force_flush(3000)
            self._provider.shutdown()
