"""Pages of tools as the server wrote them.

The client's own reading of a page fails as a whole where one tool is malformed; here that tool alone is put
in quarantine, so the pages are taken on their way to the client.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from mcp.client._transport import TransportStreams
    from mcp.shared._stream_protocols import ReadStream, WriteStream


class Tap:
    """A transport that keeps the last page of tools that came through.

    Args:
        transport: What it is about.
    """

    def __init__(self, transport: AbstractAsyncContextManager[TransportStreams]) -> None:
        self._transport = transport
        self._asked: Any = None
        self._page: dict[str, Any] | None = None

    def take(self) -> dict[str, Any] | None:
        """Return the page that came since it was last asked for one; None where none came."""
        page, self._page = self._page, None
        return page

    async def __aenter__(self) -> TransportStreams:
        read, write = await self._transport.__aenter__()
        return _Reading(read, self), _Writing(write, self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._transport.__aexit__(kind, error, trace)

    def sent(self, item: SessionMessage) -> None:
        """Look at what goes to the server."""
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.method == "tools/list":
            self._asked, self._page = message.id, None

    def received(self, item: SessionMessage | Exception) -> None:
        """Look at what comes from it."""
        message = item.message if isinstance(item, SessionMessage) else None
        # Compared as text: there are servers that answer 7 with "7".
        if isinstance(message, JSONRPCResponse) and str(message.id) == str(self._asked):
            self._asked, self._page = None, message.result


class _Reading:
    def __init__(self, stream: ReadStream[SessionMessage | Exception], tap: Tap) -> None:
        self._stream = stream
        self._tap = tap

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        item = await self._stream.receive()
        self._tap.received(item)
        return item

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        item = await self._stream.__anext__()
        self._tap.received(item)
        return item

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


class _Writing:
    def __init__(self, stream: WriteStream[SessionMessage], tap: Tap) -> None:
        self._stream = stream
        self._tap = tap

    async def send(self, item: SessionMessage, /) -> None:
        self._tap.sent(item)
        await self._stream.send(item)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)
