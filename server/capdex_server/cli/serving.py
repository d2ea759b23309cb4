"""The server's parts put together for commands: one search, or a live application."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from capdex_engine.errors import ConfigurationError
from capdex_server.build import Builder
from capdex_server.callers import LOCAL
from capdex_server.cli.options import Run
from capdex_server.cli.output import print_error, progress
from capdex_server.live import Live
from capdex_server.outbound import Outbound
from capdex_server.service import Service
from capdex_server.upstream.making import connected, upstreams_for

if TYPE_CHECKING:
    from capdex_engine.encode import Encoder
    from capdex_server.config import Settings
    from capdex_server.quotas import Quotas


def encoder_of(settings: Settings) -> Callable[[], Encoder]:
    """Return what loads the encoder that the settings name."""
    from capdex_engine.encode import load_encoder

    model = str(settings.model) if settings.model else None
    return partial(load_encoder, settings.cache, model=model, progress=progress)


def live_of(run: Run) -> Live:
    """Return the holder of the run's catalog; nothing is loaded yet."""
    return Live.from_settings(
        run.settings,
        outbound=Outbound.from_settings(run.settings),
        encoder=encoder_of(run.settings),
        environ=os.environ,
        credentials=run.credentials,
        upstreams=upstreams_for(run.settings, os.environ),
    )


def quotas_of(run: Run) -> Quotas:
    """Return the run's quotas; nothing is connected yet.

    Raises:
        ConfigurationError: Their backend's client or password is missing.
    """
    from capdex_server.quotas import Quotas

    return Quotas.from_settings(run.settings.quotas, os.environ)


def search_once(run: Run, wanted: dict[str, Any], *, explain: bool = False) -> dict[str, Any]:
    """Load the run's catalog and answer one search.

    Raises:
        CapdexError: The search's own, or a document's or the model's fault.
    """

    async def answer() -> dict[str, Any]:
        live = live_of(run)
        assert isinstance(live.build, Builder)  # noqa: S101 - live_of has made it
        async with connected(live.build.upstreams):
            await live.reload(raising=True)
            for error in live.current.failures.values():
                print_error(error.payload(), as_json=False)
            return await Service(live, run.settings).search(LOCAL, wanted, explain=explain)

    return anyio.run(answer)


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket that is bound before anything slow begins.

    Raises:
        ConfigurationError: The address is taken or is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio switches Nagle's algorithm off: without, each answer waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"Cannot listen on {host}:{port} ({error.strerror or error}). "
            "Choose another with --port; 0 takes a free one."
        ) from None
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the base URL of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
