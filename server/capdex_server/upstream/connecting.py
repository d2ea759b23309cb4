"""From a source's configuration to a connection: its program or its endpoint, and its secrets."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client

from capdex_engine.call.masking import Masker
from capdex_engine.catalog.texts import INVISIBLE
from capdex_server.addresses import Resolve, resolve
from capdex_server.config import SourceConfig
from capdex_server.logs import get_logger
from capdex_server.mcp_config import MissingSecret, SecretConfig, read_secret
from capdex_server.upstream.http import GuardedTransport
from capdex_server.upstream.session import Changed, Connection, opened
from capdex_server.upstream.stdio import Pipes, environment, stdio_transport

MAX_MESSAGE: Final = 16 * 1024 * 1024
"""Bytes of one message of a server; twice what a call may read where that is more."""
LINES_A_MINUTE: Final = 60
"""Of one server's standard error, and as many that are no message; further ones are counted."""
_log = get_logger(__name__)


class Secrets:
    """The secrets of one source, as they are when they are asked for; those that were used can be masked.

    Args:
        name: The source.
        config: Its configuration.
        environ: Environment variables.
    """

    def __init__(self, name: str, config: SourceConfig, environ: Mapping[str, str]) -> None:
        self._name = name
        self._config = config
        self._environ = environ
        self._used: dict[str, str] = {}

    def env(self) -> dict[str, str]:
        """Return the configured environment of the program."""
        return {name: self._value(value, f"env.{name}") for name, value in self._config.env.items()}

    def headers(self) -> dict[str, str]:
        """Return the configured headers."""
        found = {name: self._value(value, f"headers.{name}") for name, value in self._config.headers.items()}
        if self._config.token is not None:
            found["Authorization"] = f"Bearer {self._value(self._config.token, 'token')}"
        return found

    def masker(self) -> Masker:
        """Return what masks every secret that has been used."""
        return Masker(self._used.values())

    def _value(self, value: str | SecretConfig, key: str) -> str:
        if isinstance(value, str):
            return value
        secret = read_secret(value, self._environ, f"sources.{self._name}.{key}")
        if key.startswith(("headers", "token")) and not (secret.isascii() and secret.isprintable()):
            raise MissingSecret(f"sources.{self._name}.{key}: holds what no header may hold.")
        # An older value may still come back in an answer.
        self._used[f"{key}={hash(secret)}"] = secret
        return secret


class Lines:
    """Logs lines of a server, not too many of them.

    Args:
        event: Of the log.
        source: Whose lines.
        masked: Takes secrets out of a line.
        clock: Seconds.
    """

    def __init__(
        self, event: str, source: str, masked: Callable[[], Masker], clock: Callable[[], float]
    ) -> None:
        self._event, self._source, self._masked, self._clock = event, source, masked, clock
        self._since = clock()
        self._count = 0

    def __call__(self, line: bytes) -> None:
        """Log one line, unless there have been too many in this minute."""
        if self._clock() - self._since >= 60.0:
            if self._count > LINES_A_MINUTE:
                _log.info(self._event, source=self._source, left_out=self._count - LINES_A_MINUTE)
            self._since, self._count = self._clock(), 0
        self._count += 1
        if self._count <= LINES_A_MINUTE:
            text = self._masked().text(line.decode("utf-8", "replace").rstrip())
            _log.info(self._event, source=self._source, line=INVISIBLE.sub("", text))


def connector(
    name: str,
    config: SourceConfig,
    secrets: Secrets,
    environ: Mapping[str, str],
    *,
    max_response_bytes: int,
    resolver: Resolve = resolve,
) -> Callable[[Changed], AbstractAsyncContextManager[Connection]]:
    """Return what connects to a source's server.

    Args:
        name: The source.
        config: Its configuration.
        secrets: Its secrets.
        environ: Environment variables, of which its program gets a few.
        max_response_bytes: Of one call.
        resolver: ``(host, port) -> addresses``.
    """
    most = max(MAX_MESSAGE, 2 * max_response_bytes)
    if config.url is None:
        return lambda changed: _started(name, config, secrets, environ, most, changed)
    return lambda changed: _reached(name, config, secrets, most, resolver, changed)


@asynccontextmanager
async def _started(
    name: str,
    config: SourceConfig,
    secrets: Secrets,
    environ: Mapping[str, str],
    max_message: int,
    changed: Changed,
) -> AsyncIterator[Connection]:
    pipes = Pipes()
    transport = stdio_transport(
        (*config.command, *config.args),
        env=environment(secrets.env(), config.inherit, environ),
        cwd=config.cwd,
        pipes=pipes,
        source=name,
        max_line=max_message,
        say=Lines("upstream.stderr", name, secrets.masker, time.monotonic),
        complain=Lines("upstream.no_message", name, secrets.masker, time.monotonic),
    )

    async def ended() -> None:
        await pipes.ended.wait()
        if pipes.fault is not None:
            raise pipes.fault

    try:
        async with opened(
            transport, source=name, start_timeout=config.start_timeout, changed=changed, ended=ended
        ) as session:
            yield session
    except Exception:
        # That the process ended says more than that its stream did.
        if pipes.fault is not None:
            raise pipes.fault from None
        raise


@asynccontextmanager
async def _reached(
    name: str,
    config: SourceConfig,
    secrets: Secrets,
    max_message: int,
    resolver: Resolve,
    changed: Changed,
) -> AsyncIterator[Connection]:
    assert config.url is not None  # noqa: S101 - the only caller has looked
    secrets.headers()  # what is missing is told before anything is sent
    guarded = GuardedTransport(
        config.url, headers=secrets.headers, source=name, max_bytes=max_message, resolver=resolver
    )
    async with httpx2.AsyncClient(transport=guarded, trust_env=False, timeout=None) as client:
        transport = streamable_http_client(config.url, http_client=client, max_sse_event_size=max_message)
        async with opened(
            transport,
            source=name,
            start_timeout=config.start_timeout,
            changed=changed,
            ended=anyio.sleep_forever,
        ) as session:
            yield session
