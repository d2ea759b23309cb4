"""Streamable HTTP under capdex's own rules: address policy, bounded answers, secrets read when they are sent.

A failure of the network becomes the answer to the one request that met it, as a JSON-RPC error with a code
of ours; raised, it would end the session with all its calls.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

import httpcore2
import httpx2

from capdex_engine.errors import AddressRefused, CapdexError
from capdex_server.addresses import GuardedBackend, Resolve, origin_of, resolve
from capdex_server.streams import CleanPool
from capdex_server.upstream.faults import PROTOCOL, REFUSED, TIMEOUT, UNREACHABLE

CONNECT: Final = 10.0
READ: Final = 600.0
"""Seconds between two pieces of an answer; a call has a time of its own."""
Headers = Callable[[], Mapping[str, str]]


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends what the MCP client sends.

    Args:
        url: The configured endpoint, the only origin that may be at a private address.
        headers: Gives the headers to add to each request, secrets among them.
        source: For messages.
        max_bytes: Of one answer that is no stream of events.
        resolver: ``(host, port) -> addresses``.
    """

    def __init__(
        self, url: str, *, headers: Headers, source: str, max_bytes: int, resolver: Resolve = resolve
    ) -> None:
        origin = origin_of(url)
        assert origin is not None  # noqa: S101 - the configuration has been checked
        self._origin = origin
        self._headers = headers
        self._source = source
        self._max_bytes = max_bytes
        self._pool = CleanPool(
            ssl_context=httpx2.create_ssl_context(trust_env=False),
            network_backend=GuardedBackend(frozenset({origin[1:]}), resolver),
            max_connections=64,
            max_keepalive_connections=8,
            keepalive_expiry=15.0,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; its answer, or what went wrong as one."""
        try:
            answer = await self._pool.handle_async_request(self._outgoing(request))
        except AddressRefused as error:
            return _failed(request, REFUSED, error.message)
        except CapdexError as error:
            return _failed(request, PROTOCOL, error.message)
        except (httpcore2.TimeoutException, TimeoutError):
            return _failed(request, TIMEOUT, f"The MCP server of {self._source} did not answer in time.")
        except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError):
            return _failed(request, UNREACHABLE, f"The MCP server of {self._source} cannot be reached.")
        response = httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Bounded(answer, self._max_bytes),
            extensions=answer.extensions,
        )
        return await self._judged(request, response)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    def _outgoing(self, request: httpx2.Request) -> httpcore2.Request:
        if origin_of(str(request.url)) != self._origin:
            raise AddressRefused(
                f"The MCP server of {self._source} leads to another address than it is configured with."
            )
        # What is coded could be of any size once it is decoded.
        added = {**self._headers(), "Accept-Encoding": "identity"}
        headers = request.headers.copy()
        for name, value in added.items():
            headers[name] = value
        stays_open = request.method == "GET"
        timeouts = {
            "connect": CONNECT,
            "write": CONNECT,
            "pool": CONNECT,
            "read": None if stays_open else READ,
        }
        return httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=headers.raw,
            content=request.stream,
            extensions={"timeout": timeouts},
        )

    async def _judged(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Return an answer that the client would misread as one that says what is wrong."""
        told = None
        if response.status_code in {401, 403} and request.method == "POST":
            told = f"The MCP server of {self._source} refuses the credential (HTTP {response.status_code})."
        elif response.status_code >= 500:
            told = f"The MCP server of {self._source} failed (HTTP {response.status_code})."
        elif response.headers.get("content-encoding", "identity").lower() != "identity":
            told = f"The MCP server of {self._source} sent a coded answer, which was not asked for."
        if told is None:
            return response
        await response.aclose()
        return _failed(request, UNREACHABLE if response.status_code >= 500 else PROTOCOL, told)


def _failed(request: httpx2.Request, code: int, message: str) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    headers = {"Content-Type": "application/json"}
    return httpx2.Response(502, headers=headers, content=json.dumps(body).encode(), request=request)


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer; one that breaks off or is too large fails its own request alone."""

    def __init__(self, answer: httpcore2.Response, max_bytes: int) -> None:
        self._answer = answer
        kinds = [value for name, value in answer.headers if name.lower() == b"content-type"]
        endless = any(kind.lower().startswith(b"text/event-stream") for kind in kinds)
        self._left = None if endless else max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._answer.aiter_stream():
                if self._left is not None:
                    self._left -= len(chunk)
                    if self._left < 0:
                        raise httpx2.StreamError("the answer is too large")
                yield chunk
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException, OSError):
            raise httpx2.StreamError("the answer broke off") from None

    async def aclose(self) -> None:
        await self._answer.aclose()
