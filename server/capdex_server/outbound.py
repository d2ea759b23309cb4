"""Everything that capdex sends: calls of capabilities, and documents that it fetches.

httpcore2 is used directly: URLs go out byte for byte as the engine wrote them, no cookie is kept
between callers, redirects and decompression stay bounded, and the network backend connects to the
very address that was checked. TLS names and ``Host`` stay those of the URL.
"""

from __future__ import annotations

import re
import ssl
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

import anyio
import anyio.lowlevel
import httpcore2
import httpx2

from capdex_engine import __version__
from capdex_engine.call import Request, Response
from capdex_engine.call.transport import REPEATABLE_METHODS, SAFE_METHODS
from capdex_engine.errors import (
    CapdexError,
    UpstreamProtocolError,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from capdex_server.addresses import GuardedBackend, Resolve, WrongTarget, origin_of, resolve
from capdex_server.config import DocumentLimits, Settings, SourceConfig
from capdex_server.decoding import BodyReader
from capdex_server.fetching import MAX_REDIRECTS, fetch_document, redirect_target
from capdex_server.pieces import Piece
from capdex_server.reach import Origin, allowed_origins
from capdex_server.streams import CleanPool

CONNECT_TIMEOUT: Final = 10.0
"""Seconds for one connection, within the call's own limit."""
PAUSES: Final = (0.1, 0.4)
"""Seconds before each further attempt at a call that found no connection."""
MAX_CONNECTIONS: Final = 256
"""Of one source; further calls wait within their time."""
_AT_ONCE: Final = 4
"""Steps until others may go on: one read may bring thousands of chunks, or inflate to megabytes."""
_IN_A_ROW: Final = 64
"""Steps after which a body rests: one of thousands of tiny chunks would take every other turn of the loop."""
_REST: Final = 0.004
"""Seconds."""
_HOP_BY_HOP: Final = frozenset(
    {"host", "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
    | {"content-length"}
)
_PRINTABLE: Final = "".join(map(chr, range(33, 127)))


@dataclass(slots=True)
class _Received:
    """What has arrived so far; kept when the rest fails."""

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: BodyReader | None = None

    def response(self, *, truncated: bool) -> Response:
        assert self.body is not None  # noqa: S101 - set together with status
        headers = tuple(pair for pair in self.headers if not self.body.hides(pair[0]))
        return Response(self.status, headers, self.body.data, truncated or self.body.truncated)


class Outbound:
    """The engine's ``Transport``, and the fetcher of documents. One per event loop.

    Args:
        origins: Source -> the ``(host, port)`` pairs that its configuration names; these alone may
            be private addresses.
        documents: Source -> the origins that its documents may come from, which may be private too, but
            for documents alone; by default its documents may come from where it may be called.
        resolver: ``(host, port) -> addresses``; DNS unless a test hands in another.
        ssl_context: For private certificate authorities; the system's by default.
        pauses: Seconds before each further attempt, as many as there are.
    """

    def __init__(
        self,
        origins: Mapping[str, frozenset[tuple[str, int]]],
        *,
        documents: Mapping[str, frozenset[Origin]] | None = None,
        resolver: Resolve = resolve,
        ssl_context: ssl.SSLContext | None = None,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self._origins = origins
        self._documents = documents or {}
        self._resolver = resolver
        self._ssl_context = ssl_context
        self._pauses = pauses
        self._pools: dict[tuple[str, bool], httpcore2.AsyncConnectionPool] = {}

    @classmethod
    def from_settings(cls, settings: Settings) -> Outbound:
        """Return one that may reach what the settings name."""
        return cls(
            {name: configured_origins(source) for name, source in settings.sources.items()},
            documents={name: allowed_origins(source) for name, source in settings.sources.items()},
        )

    async def __call__(self, request: Request, *, source: str, timeout: float, max_bytes: int) -> Response:
        """Send one request and read at most ``max_bytes`` of the decoded body, all within ``timeout``.

        Same-origin redirects of GET and HEAD are followed, at most three; others are the answer.
        An idempotent method is tried again where no connection could be made, and one that changes
        nothing also where the connection was lost before an answer's head had come.
        When the answer breaks off, a safe method fails (it can be repeated); any other returns
        what arrived as ``truncated``, so that a call that took effect does not look failed.

        Raises:
            UpstreamUnreachable, UpstreamTimeout, UpstreamProtocolError, AddressRefused.
        """
        ends = anyio.current_time() + timeout
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._one(
                request, source=source, timeout=timeout, max_bytes=max_bytes, ends=ends, pauses=self._pauses
            )
            target = _redirect(request, response)
            if target is None:
                return response
            request = Request(request.method, target, request.headers, None)
        return response

    async def fetch(
        self,
        url: str,
        *,
        source: str,
        since: Piece | None = None,
        limits: DocumentLimits | None = None,
    ) -> Piece:
        """Return a document, or ``since`` itself when it has not changed; see :func:`fetch_document`.

        Raises:
            DocumentError: It cannot be had, and the message says why; ``FetchFailed`` if not now.
        """
        limits = limits or DocumentLimits()

        async def send(request: Request) -> Response:
            return await self._one(
                request,
                source=source,
                timeout=limits.timeout,
                max_bytes=limits.max_bytes,
                documents=True,
            )

        allowed = self._documents.get(source, frozenset())
        return await fetch_document(send, url, allowed=allowed, since=since, limits=limits)

    async def aclose(self) -> None:
        """Close all connections."""
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.aclose()

    def _pool(self, source: str, documents: bool) -> httpcore2.AsyncConnectionPool:
        # One pool per source: a connection that one source's settings permit must not serve another's.
        key = (source, documents)
        if key not in self._pools:
            self._ssl_context = self._ssl_context or httpx2.create_ssl_context(trust_env=False)
            self._pools[key] = CleanPool(
                ssl_context=self._ssl_context,
                network_backend=GuardedBackend(self._private(source, documents), self._resolver),
                max_connections=MAX_CONNECTIONS,
                max_keepalive_connections=20,
                keepalive_expiry=15.0,
            )
        return self._pools[key]

    def _private(self, source: str, documents: bool) -> frozenset[tuple[str, int]]:
        """Return what may be at a private address."""
        if documents and source in self._documents:
            return frozenset((host, port) for _, host, port in self._documents[source])
        return self._origins.get(source, frozenset())

    async def _one(
        self,
        request: Request,
        *,
        source: str,
        timeout: float,
        max_bytes: int,
        documents: bool = False,
        ends: float | None = None,
        pauses: Sequence[float] = (),
    ) -> Response:
        """Send one request, with further attempts as ``pauses`` say; redirects are the answer.

        Args:
            request: What to send.
            source: Whose connections and addresses are used.
            timeout: Seconds, for messages too.
            max_bytes: Of the decoded body.
            documents: A document is fetched, no capability called.
            ends: When the time is up, by the event loop's clock; ``timeout`` from now by default.
            pauses: Seconds before each further attempt.
        """
        ends = anyio.current_time() + timeout if ends is None else ends
        pool, waits = self._pool(source, documents), list(pauses)
        while True:
            received = _Received()
            try:
                with anyio.fail_after(ends - anyio.current_time()):
                    await _exchange(pool, request, received, timeout, max_bytes)
                return received.response(truncated=False)
            except CapdexError:
                raise
            except _FAILURES as error:
                if received.status and request.method not in SAFE_METHODS:
                    return received.response(truncated=True)
                if not waits or received.status or not _worth_another(error, request.method):
                    raise _failure(error, source, timeout, request.method) from None
                if anyio.current_time() + waits[0] >= ends:
                    raise _failure(error, source, timeout, request.method) from None
            await anyio.sleep(waits.pop(0))


_FAILURES: Final = (
    TimeoutError,
    OSError,
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    zlib.error,
)


async def _exchange(
    pool: httpcore2.AsyncConnectionPool,
    request: Request,
    received: _Received,
    timeout: float,
    max_bytes: int,
) -> None:
    connect = min(timeout, CONNECT_TIMEOUT)
    timeouts = {"connect": connect, "read": timeout, "write": timeout, "pool": timeout}
    url = _url(request.url)
    async with pool.stream(
        request.method.encode("ascii"),
        url,
        headers=_headers(request, url),
        content=request.body,
        extensions={"timeout": timeouts},
    ) as answer:
        headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in answer.headers]
        received.body = BodyReader(headers, max_bytes)
        received.headers, received.status = headers, answer.status
        steps = 0
        async for chunk in answer.aiter_stream():
            for _ in received.body.steps(chunk):
                steps += 1
                if steps % _IN_A_ROW == 0:
                    await anyio.sleep(_REST)
                elif steps % _AT_ONCE == 0:
                    await anyio.lowlevel.checkpoint()
            if received.body.truncated:
                break
        else:
            received.body.finish()


def configured_origins(source: SourceConfig) -> frozenset[tuple[str, int]]:
    """Return the ``(host, port)`` pairs that a source's own configuration names.

    Its location, its MCP endpoint and its server, and the token endpoints of its own schemes; never the
    document's.
    """
    server = source.server
    for variable, value in source.server_variables.items():
        server = server and server.replace(f"{{{variable}}}", value)
    tokens = [scheme.token_url for scheme in source.security_schemes.values()]
    found = (origin_of(url) for url in (source.location, source.url, server, *tokens))
    return frozenset((origin[1], origin[2]) for origin in found if origin)


def _url(text: str) -> httpcore2.URL:
    """Return host and port as httpx2 reads them (IDNA), and the target byte for byte."""
    if origin_of(text) is None:
        raise WrongTarget("The call's address is no http(s) URL; check the source's server.")
    url = httpx2.URL(text)
    authority_and_target = text.partition("://")[2].partition("#")[0]
    target = re.sub(r"^[^/?]*", "", authority_and_target)
    target = target if target.startswith("/") else f"/{target}"
    return httpcore2.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=quote(target, safe=_PRINTABLE)
    )


def _headers(request: Request, url: httpcore2.URL) -> list[tuple[bytes, bytes]]:
    host = url.host if b":" not in url.host else b"[" + url.host + b"]"
    headers = [(b"Host", host if url.port is None else host + b":%d" % url.port)]
    headers += [
        (name.encode("ascii", "replace"), value.encode("utf-8"))
        for name, value in request.headers
        if name.lower() not in _HOP_BY_HOP
    ]
    given = {name.lower() for name, _ in headers}
    defaults = {
        b"Accept": b"*/*",
        b"Accept-Encoding": b"gzip, deflate",
        b"User-Agent": f"capdex/{__version__}".encode("ascii"),
    }
    headers += [(name, value) for name, value in defaults.items() if name.lower() not in given]
    if request.body is not None or request.method in {"POST", "PUT", "PATCH"}:
        headers.append((b"Content-Length", b"%d" % len(request.body or b"")))
    return headers


def _redirect(request: Request, response: Response) -> str | None:
    """Return where a redirect leads, when a call may follow it."""
    target = redirect_target(request, response) if request.method in {"GET", "HEAD"} else None
    same = target is not None and origin_of(target) == origin_of(request.url)
    return target if same else None


def _is_tls(error: Exception) -> bool:
    return isinstance(error, httpcore2.ConnectError) and isinstance(error.__context__, ssl.SSLError)


def _worth_another(error: Exception, method: str) -> bool:
    """Return whether another attempt may find a connection, and does no harm.

    A DELETE or PUT that was sent is not repeated unasked: the second answer (404, 409) would hide what the
    first did.
    """
    if isinstance(error, httpcore2.ConnectError):
        return method in REPEATABLE_METHODS and not _is_tls(error)
    if isinstance(error, httpcore2.RemoteProtocolError):
        return method in SAFE_METHODS and "disconnected without" in str(error)
    return method in SAFE_METHODS and isinstance(error, (httpcore2.ReadError, httpcore2.WriteError))


def _failure(error: Exception, source: str, timeout: float, method: str) -> CapdexError:
    """Map a failure of the network to SPEC's error, without addresses."""
    retryable = method in REPEATABLE_METHODS
    if isinstance(error.__context__, ssl.SSLCertVerificationError):
        return WrongTarget(
            f"The TLS certificate of the API of {source} is not accepted; check the source's server."
        )
    if _is_tls(error):
        return WrongTarget(
            f"No TLS connection to the API of {source} could be made: its port may speak plain http. "
            "Check the source's server."
        )
    if isinstance(error, (httpcore2.ConnectTimeout, httpcore2.ConnectError)):
        return UpstreamUnreachable(
            f"No connection to the API of {source} could be made, so nothing was sent. "
            + ("Try again later, or check its server." if retryable else "Check its server."),
            retryable=retryable,
        )
    if isinstance(error, httpcore2.PoolTimeout):
        return UpstreamTimeout(
            f"Too many calls to the API of {source} are under way, so nothing was sent. Try again later.",
            retryable=retryable,
        )
    if isinstance(error, (TimeoutError, httpcore2.TimeoutException)):
        return UpstreamTimeout(
            f"The API of {source} did not answer within {timeout:g} seconds.{_effect(method)}",
            retryable=retryable,
        )
    if isinstance(error, httpcore2.LocalProtocolError):
        return UpstreamProtocolError(
            "The request cannot be sent as HTTP: a header or the URL holds characters that are not allowed."
        )
    return UpstreamProtocolError(
        f"The API of {source} closed the connection or sent no valid HTTP.{_effect(method)}",
        retryable=retryable,
    )


def _effect(method: str) -> str:
    """Return what to think of a call that was sent and not answered."""
    if method in SAFE_METHODS:
        return ""
    if method in REPEATABLE_METHODS:
        return f" The call may have taken effect; a {method} can be repeated safely."
    return " The call may have taken effect: check before repeating it."
