"""A recording upstream on loopback: keeps each request as it came and answers JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Recorded:
    """One request as it stood on the wire."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Recorder:
    """The upstream's address and the requests it has seen."""

    url: str
    requests: list[Recorded] = field(default_factory=list)
    redirects: list[str] = field(default_factory=list)
    """Where the next requests are sent on to, one each."""


@contextmanager
def recording_upstream(status: int = 200) -> Iterator[Recorder]:
    """Start the upstream on a free port; stop it at the end."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            recorder.requests.append(Recorded(self.command, self.path, headers, body))
            payload = json.dumps({"ok": status < 400}).encode()
            self.send_response(302 if recorder.redirects else status)
            if recorder.redirects:
                self.send_header("Location", recorder.redirects.pop(0))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    recorder = Recorder(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield recorder
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
