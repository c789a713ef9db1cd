"""A real HTTP server on loopback that behaves, or misbehaves, as a test scripts it."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Response:
    """What to send back: after a pause, in slow pieces, or not at all."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0
    piece_pause: float = 0.0
    """Seconds between the bytes of the body."""
    together: int = 0
    """Wait until so many requests are under way, ten seconds at most."""
    drop: bool = False
    """Close the connection without a word."""


def completion(content: str | None, *, refusal: str | None = None, finish: str = "stop", **how: Any) -> Response:
    """A chat completion that used 10 tokens and made 5."""
    message = {"role": "assistant", "content": content, "refusal": refusal}
    body = {
        "id": "1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
    return Response(json.dumps(body).encode(), **how)


def as_json(value: Any, **how: Any) -> Response:
    """A chat completion whose content is this value."""
    return completion(json.dumps(value), **how)


class ScriptedServer:
    """`script` maps the body of a request to a Response; `say` scripts a fixed sequence, its last one repeated."""

    Response, completion, as_json = Response, staticmethod(completion), staticmethod(as_json)

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.gets = 0
        self.headers: list[dict[str, str]] = []
        self.models: list[str] | None = ["scripted"]
        self.peak = 0
        """The most requests that were under way at the same moment."""
        self.script: Callable[[dict[str, Any]], Response] = lambda body: Response(status=500)
        self._open = 0
        self._arrived = threading.Condition()
        self._ending = threading.Event()
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def say(self, *responses: Response) -> None:
        """Reply with these in turn, then with the last one."""
        waiting = list(responses)
        self.script = lambda body: waiting.pop(0) if len(waiting) > 1 else waiting[0]

    def __enter__(self) -> "ScriptedServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        """One request."""
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._arrived:
            self.requests.append(body)
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            self._open += 1
            self.peak = max(self.peak, self._open)
            self._arrived.notify_all()
            response = self.script(body)
        try:
            self._send(handler, response)
        finally:
            with self._arrived:
                self._open -= 1

    def list_models(self, handler: BaseHTTPRequestHandler) -> None:
        """`models` as a server lists them; 404 where it is None."""
        self.gets += 1
        if self.models is None:
            self._send(handler, Response(status=404))
            return
        listed = {"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]}
        self._send(handler, Response(json.dumps(listed).encode()))

    def _send(self, handler: BaseHTTPRequestHandler, response: Response) -> None:
        with self._arrived:
            self._arrived.wait_for(lambda: self._open >= response.together, timeout=10.0)
        self._ending.wait(response.pause)
        if response.drop:
            handler.close_connection = True
            return
        handler.send_response(response.status)
        for name, value in {"Content-Type": "application/json", **response.headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(response.body)))
        handler.end_headers()
        if not response.piece_pause:
            handler.wfile.write(response.body)
            return
        for byte in response.body:
            if self._ending.wait(response.piece_pause):
                return
            handler.wfile.write(bytes([byte]))


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: ScriptedServer) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                script.serve(self)

            def do_GET(self) -> None:
                script.list_models(self)

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hung up are part of the tests."""
