"""What Prometheus reads at /metrics. Every label has few values: routes by their pattern, stages, codes."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counters of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own: Any = {"registry": self.registry}
        self.requests = Counter("helios_requests", "Requests that were replied to.", ["route", "status"], **own)
        self.seconds = Histogram("helios_request_seconds", "From request to reply.", ["route"], buckets=SECONDS, **own)
        self.problems = Counter("helios_problems", "Replies that are problems, by their code.", ["code"], **own)
        self.questions = Counter("helios_questions", "Questions that were worked on.", ["kind", "rank"], **own)
        self.stages = Histogram("helios_stage_seconds", "Work by stage.", ["stage"], buckets=SECONDS, **own)
        self.waited = Histogram("helios_queue_seconds", "Waiting for a permit.", buckets=SECONDS, **own)
        self.abstained = Counter("helios_abstentions", "Questions without an answer.", **own)
        self.degraded = Counter("helios_degraded", "Questions for which something stood in.", **own)
        self.incomplete = Counter("helios_incomplete", "Questions for which a stage had no time.", **own)
        self.calls = Counter("helios_model_calls", "Calls of a language model.", **own)
        self.tokens = Counter("helios_model_tokens", "Tokens of their prompts and replies.", **own)
        self.tasks = Counter("helios_tasks", "Changes of indexes that ended.", ["operation", "state"], **own)
        self.waiting = Gauge("helios_queue_waiting", "Questions that wait for a permit.", ["rank"], **own)
        self.permits = Gauge("helios_permits", "Permits in all.", ["of"], **own)
        self.working = Gauge("helios_permits_held", "Permits that are held.", ["of"], **own)
        self.snapshot = Gauge("helios_index_generation", "The snapshot that is served.", ["index"], **own)
        self.nodes = Gauge("helios_index_nodes", "Rows and passages that are served.", ["index", "kind"], **own)
        self.ready = Gauge("helios_ready", "1 while the server takes questions.", **own)

    def replied(self, route: str, status: int, seconds: float) -> None:
        """A reply is out."""
        self.requests.labels(route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def answered(self, found: dict[str, Any], rank: str) -> None:
        """A search or an answer came to its end."""
        self.questions.labels("ask" if "answer" in found else "search", rank).inc()
        for stage, spent in found["timings_ms"].items():
            if stage not in ("queue", "total"):
                self.stages.labels(stage).observe(spent / 1e3)
        self.waited.observe(found["timings_ms"]["queue"] / 1e3)
        self.degraded.inc(found["degraded"])
        self.incomplete.inc(not found["coverage"]["complete"])
        if "answer" in found:
            self.abstained.inc(found["answer"]["abstained"])
            self.calls.inc(found["calls"])
            self.tokens.inc(found["tokens"])

    def text(self) -> bytes:
        """All of them as Prometheus reads them."""
        return generate_latest(self.registry)
