"""Connections that keep to HTTP's order: a bounded head, and nothing left over for the next call."""

from __future__ import annotations

import ssl
from typing import Any, Final

import anyio
import httpcore2

HEAD_BYTES: Final = 256 * 1024
"""Most bytes before an answer's body."""
INTERIM: Final = 20
"""Most interim answers (1xx) before the answer."""
_HEAD_READ: Final = 4 * 1024
"""Bytes read at once until then: parsing hundreds of interim answers holds up everybody else."""


class HeadBound(httpcore2.AsyncNetworkStream):
    """A stream that fails when an answer's head does not end.

    Each write begins a new head; :meth:`head_ended` says that it has come.
    """

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._room: int | None = None
        self._blanks = 0

    def head_ended(self) -> None:
        """Let the body pass, whose reader has a limit of its own."""
        self._room = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what has come.

        Raises:
            httpcore2.RemoteProtocolError: The head is longer than :data:`HEAD_BYTES`, or comes after more
                than :data:`INTERIM` others.
        """
        if self._room is None:
            return await self._stream.read(max_bytes, timeout)
        # The head is still to come, so each blank line so far has ended an interim answer.
        if self._blanks > INTERIM:
            raise httpcore2.RemoteProtocolError("too many interim answers")
        data = await self._stream.read(min(max_bytes, _HEAD_READ), timeout)
        self._room -= len(data)
        self._blanks += data.count(b"\n\r\n") + data.count(b"\n\n")
        if self._room < 0:
            raise httpcore2.RemoteProtocolError("the head of the answer does not end")
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send a piece of a request."""
        self._room, self._blanks = HEAD_BYTES, 0
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """Return the same over TLS; a handshake that is given up leaves no connection open."""
        try:
            return HeadBound(await self._stream.start_tls(ssl_context, server_hostname, timeout))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._stream.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        """Return what the stream says."""
        return self._stream.get_extra_info(info)


class CleanPool(httpcore2.AsyncConnectionPool):
    """Bounds heads alone, and uses no connection again on which more has come than one answer.

    The surplus would be taken for the answer to the next call, which may be another caller's.
    """

    async def handle_async_request(self, request: httpcore2.Request) -> httpcore2.Response:
        """Return the answer once its head has come."""
        answer = await super().handle_async_request(request)
        if isinstance(stream := answer.extensions.get("network_stream"), HeadBound):
            stream.head_ended()
        return answer

    def create_connection(self, origin: httpcore2.Origin) -> httpcore2.AsyncConnectionInterface:
        """Return a connection that counts as expired once something is left over."""
        made = super().create_connection(origin)
        made.has_expired = _expiry(made)  # type: ignore[method-assign]
        return made


def _expiry(connection: Any) -> Any:
    expired = connection.has_expired

    def has_expired() -> bool:
        # h11 keeps what it read beyond the answer, and the pool looks at the socket alone.
        state = getattr(connection._connection, "_h11_state", None)
        return bool(expired() or (state is not None and connection.is_idle() and state.trailing_data[0]))

    return has_expired
