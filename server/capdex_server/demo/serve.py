"""Run an ASGI app on a loopback port of its own, beside whatever else the process does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

START_TIMEOUT: Final = 10.0
"""Seconds within which the app has to start."""


@contextmanager
def run_in_thread(app: ASGIApp, *, port: int = 0) -> Iterator[str]:
    """Serve ``app`` on 127.0.0.1 for the length of the block; yield its URL without a slash at the end.

    Args:
        app: What to serve.
        port: The port to take; a free one when it is 0 or taken already.

    Raises:
        RuntimeError: The app did not start.
    """
    started = threading.Event()
    server = _server(app, started)
    with _loopback_socket(port) as listener:
        thread = threading.Thread(
            target=_serve, args=(server, listener, started), name="capdex-demo", daemon=True
        )
        thread.start()
        try:
            _wait(server, started)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def _loopback_socket(port: int) -> socket.socket:
    # Bound here and handed over: no other process can take the port in between.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for wanted in dict.fromkeys((port, 0)):
        with suppress(OSError):
            listener.bind(("127.0.0.1", wanted))
            return listener
    listener.close()
    raise RuntimeError("No port of 127.0.0.1 is free.")


def _server(app: ASGIApp, started: threading.Event) -> uvicorn.Server:
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started.set()

    # Off the main thread uvicorn installs no signal handlers; log_config=None leaves logging alone.
    return Server(
        uvicorn.Config(
            app, log_config=None, log_level="warning", access_log=False, timeout_graceful_shutdown=2
        )
    )


def _serve(server: uvicorn.Server, listener: socket.socket, started: threading.Event) -> None:
    try:
        server.run([listener])
    except SystemExit:
        # How uvicorn says that the app's lifespan failed; ``_wait`` reports it.
        pass
    finally:
        started.set()


def _wait(server: uvicorn.Server, started: threading.Event) -> None:
    if not started.wait(START_TIMEOUT) or not server.started:
        raise RuntimeError("The app did not start on a loopback port; its log says why.")
