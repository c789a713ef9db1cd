"""Real HTTP servers on loopback whose POST is a test's own function."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def servers() -> Iterator[Callable[[Answer], str]]:
    """What starts a server and gives its address; they end with the context. The request's fields are in `form`."""
    started = []

    def start(answer: Answer) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                try:
                    answer(self)
                except OSError:
                    self.close_connection = True

            def log_message(self, *arguments: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        started.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}/sparql"

    yield start
    for server in started:
        server.shutdown()
        server.server_close()
