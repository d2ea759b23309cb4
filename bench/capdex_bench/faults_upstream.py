"""The faulty upstream: plays :mod:`capdex_bench.faults_cases` on raw connections of loopback.

``python -m capdex_bench.faults_upstream FOLDER`` prints its addresses as JSON and serves until its
standard input ends.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import socket
import ssl
import struct
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from .faults_cases import (
    FAULTS,
    KEY_HEADER,
    PLACES,
    REDIRECTS,
    SOUND,
    Echo,
    Fault,
    Hang,
    Reset,
    Step,
    whole,
)
from .faults_tls import Authority

_HANDSHAKE: Final = 0x16
"""First byte of TLS."""
_NAMED: Final = {fault.name: fault for fault in (*FAULTS, *SOUND)}


class FaultUpstream:
    """Counts what it was asked for, and whose connections the other side has closed."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority.create(folder)
        self.urls: dict[str, str] = {}
        """Address -> base URL."""
        self.requests: Counter[str] = Counter()
        """``METHOD name`` -> requests."""
        self.gone: Counter[str] = Counter()
        """``METHOD name`` -> connections that the other side closed during the fault; ``TLS`` counts
        those that waited for a handshake."""
        self._changed = threading.Condition()
        self._servers: list[asyncio.Server] = []
        self._closed = socket.socket()

    async def start(self) -> None:
        """Listen on a free port for each address."""
        trusted = self.authority.context
        contexts: dict[str, ssl.SSLContext | None] = {
            "plain": None,
            "tls_hang": None,
            "self_signed": trusted(own=True),
            "expired": trusted(expired=True),
            "wrong_host": trusted("other.example"),
            "http_to_tls": trusted(),
        }
        ports = {}
        for place, context in contexts.items():
            play = self._silent if place == "tls_hang" else self._serve
            server = await asyncio.start_server(play, "127.0.0.1", 0, ssl=context)
            self._servers.append(server)
            ports[place] = server.sockets[0].getsockname()[1]
        self._closed.bind(("127.0.0.1", 0))  # and never listens
        ports["closed"] = self._closed.getsockname()[1]
        ports["https_to_plain"] = ports["plain"]
        self.urls = {place: f"{scheme}://127.0.0.1:{ports[place]}" for place, scheme in PLACES.items()}

    def wait_for(self, counter: Counter[str], key: str, *, seconds: float = 10) -> bool:
        """Wait until something has been counted; for threads other than the server's."""
        with self._changed:
            return self._changed.wait_for(lambda: counter[key] > 0, seconds)

    async def close(self) -> None:
        """End everything that is under way, and listen no more."""
        for server in self._servers:
            server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._closed.close()

    def _count(self, counter: Counter[str], key: str) -> None:
        with self._changed:
            counter[key] += 1
            self._changed.notify_all()

    async def _silent(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A cancelled handler is an error to asyncio's streams.
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await reader.read(-1)
            self._count(self.gone, "TLS")
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(high=0)
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # a cancelled handler is an error to asyncio's streams
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Play one request's fault; return whether another request may follow."""
        first = await reader.read(1)
        if not first or first[0] == _HANDSHAKE:
            writer.write(whole(b"{}", status="400 Bad Request"))
            return False
        request = first + await reader.readuntil(b"\r\n\r\n")
        method, target = request.decode("latin-1").split(" ", 2)[:2]
        name = target.lstrip("/").partition("?")[0]
        key = f"{method} {name}"
        self._count(self.requests, key)
        fault = _NAMED.get(name)
        if fault is None:
            writer.write(whole(b"{}", status="404 Not Found"))
            return False
        try:
            await self._play(fault, request, reader, writer)
        except OSError:
            self._count(self.gone, key)
            return False
        if Hang() in fault.steps:
            self._count(self.gone, key)
        return fault in SOUND

    async def _play(
        self, fault: Fault, request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if fault.name in REDIRECTS:
            writer.write(whole(b"", f"Location: {REDIRECTS[fault.name]}", status="302 Found"))
        for step in fault.steps:
            await _step(step, request, reader, writer)
            await writer.drain()


async def _step(
    step: Step, request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    if isinstance(step, bytes):
        writer.write(step)
    elif isinstance(step, Echo):
        writer.write(_echo(request))
    elif isinstance(step, Hang):
        await reader.read(-1)
    elif isinstance(step, Reset):
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()
    else:
        sent = 0
        while step.times is None or sent < step.times:
            writer.write(step.piece)
            await writer.drain()
            await asyncio.sleep(step.pause)
            sent += 1


def _echo(request: bytes) -> bytes:
    """Answer with the whole request, and its credential in further forms."""
    text = request.decode("latin-1")
    lines = dict(line.split(": ", 1) for line in text.split("\r\n")[1:] if ": " in line)
    key = next((value for name, value in lines.items() if name.lower() == KEY_HEADER.lower()), "")
    coded = base64.b64encode(key.encode()).decode()
    body = {"request": text, "base64": coded, "url": quote(key, safe=""), key: [key, f"x{key}y"]}
    raw = json.dumps(body).encode()
    return whole(raw, f"X-Echo: {key}", f"X-Coded: {coded}", f"Link: </?key={quote(key, safe='')}>")


@contextmanager
def fault_upstream(folder: Path) -> Iterator[FaultUpstream]:
    """Run the upstream in a thread of this process."""
    upstream = FaultUpstream(folder)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(upstream.start(), loop).result(10)
        yield upstream
    finally:
        asyncio.run_coroutine_threadsafe(upstream.close(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def main() -> None:
    """Serve in this process until standard input ends; the second argument is its niceness."""
    os.nice(int(sys.argv[2]))
    with fault_upstream(Path(sys.argv[1])) as upstream:
        addresses = {**upstream.urls, "authority": str(upstream.authority.path)}
        sys.stdout.write(json.dumps(addresses) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
