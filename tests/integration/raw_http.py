"""HTTP byte by byte: requests written by hand, and an upstream that keeps each head as it came."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answer:
    """One response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(port: int, lines: list[str | bytes], body: bytes = b"") -> Answer:
    """Send these lines and this body, and nothing that makes them right; read to the end."""
    head = b"\r\n".join(line.encode("latin-1") if isinstance(line, str) else line for line in lines)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(head + b"\r\n\r\n" + body)
        received = b""
        while not _whole(received) and (chunk := connection.recv(65536)):
            received += chunk
    top, _, rest = received.partition(b"\r\n\r\n")
    status, *fields = top.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in fields)
    return Answer(int(status.split(" ")[1]), {name.lower(): value.strip() for name, _, value in pairs}, rest)


def _whole(received: bytes) -> bool:
    head, end, body = received.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return bool(end) and len(body) >= int(line.split(b":")[1])
    return False


@dataclass
class RawUpstream:
    """Its port, and the head of each request as bytes."""

    port: int
    heads: list[bytes] = field(default_factory=list)

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Return the header fields of the only request, names in lower case."""
        (head,) = self.heads
        pairs = (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])
        return [(name.lower(), value.strip()) for name, _, value in pairs]


@contextmanager
def raw_upstream() -> Iterator[RawUpstream]:
    """Answer every connection with an empty object, whatever it says."""
    listener = socket.create_server(("127.0.0.1", 0))
    upstream = RawUpstream(listener.getsockname()[1])

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                received = b""
                while b"\r\n\r\n" not in received and (chunk := connection.recv(65536)):
                    received += chunk
                if received:
                    upstream.heads.append(received.partition(b"\r\n\r\n")[0])
                    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    connection.sendall(head + b"Content-Length: 2\r\nConnection: close\r\n\r\n{}")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield upstream
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
