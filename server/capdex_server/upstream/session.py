"""One connection to an upstream MCP server, of either era of the protocol."""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from capdex_engine import __version__
from capdex_engine.errors import UpstreamProtocolError, UpstreamTimeout
from capdex_server.upstream.tap import Tap

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

RELISTEN: Final = 5.0
"""Seconds until a lost stream of changes is asked for again."""
_RAW: Final[TypeAdapter[dict[str, Any]]] = TypeAdapter(dict[str, Any])
# What the client says of a server's messages may quote them, and every failure is told by us.
logging.getLogger("mcp.client").setLevel(logging.CRITICAL)


class Connection(Protocol):
    """What is done with a server while it is connected."""

    @property
    def server(self) -> Mapping[str, Any]:
        """What it says of itself: ``name``, ``title``, ``version``."""
        ...

    async def list_page(self, cursor: str | None, options: Mapping[str, Any]) -> Any:
        """Return one page of its tools, as :data:`capdex_engine.tools.ListPage` says."""
        ...

    async def call(self, tool: str, arguments: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Return a tool's result as the server wrote it."""
        ...

    async def ended(self) -> None:
        """Return once the connection has ended by itself; raise why, where that is known."""
        ...


Changed = Callable[[], None]
Connect = Callable[[Changed], AbstractAsyncContextManager[Connection]]
"""``changed`` -> a connection, which calls it whenever the server says that its tools have changed."""


class Session:
    """A connected client.

    Args:
        client: Connected.
        tap: What its transport goes through.
        ended: Returns, or raises why, once the connection has ended by itself.
    """

    def __init__(self, client: Client, tap: Tap, ended: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._client = client
        self._tap = tap
        self.ended = ended

    @property
    def server(self) -> Mapping[str, Any]:
        """What the server says of itself."""
        info = self._client.server_info
        return {} if info is None else {key: getattr(info, key) for key in ("name", "title", "version")}

    async def list_page(self, cursor: str | None, options: Mapping[str, Any]) -> Any:
        """Return one page of tools, as the server wrote it."""
        try:
            params = types.PaginatedRequestParams(cursor=cursor) if cursor is not None else None
            await self._client.session.list_tools(params=params)
        except ValidationError:
            pass  # it is for us to say what of it is malformed
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND and self._client.server_capabilities.tools is None:
                return {"tools": []}
            raise
        return self._tap.take()

    async def call(self, tool: str, arguments: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Return a tool's result, unread but for its kind.

        Raises:
            UpstreamProtocolError: It is no result, or asks for input.
        """
        params = types.CallToolRequestParams(name=tool, arguments=arguments)
        try:
            result: dict[str, Any] = await self._client.session.send_request(
                types.CallToolRequest(params=params),
                _RAW,  # type: ignore[type-var] # any type that pydantic reads will do
                request_read_timeout_seconds=timeout,
            )
        except ValidationError:
            raise UpstreamProtocolError(
                "The tool's answer is no result of a tool; the call may have taken effect."
            ) from None
        if result.get("resultType", "complete") != "complete" or not isinstance(result.get("content"), list):
            raise UpstreamProtocolError("The tool asks for input or for patience, which capdex cannot give.")
        return result


@asynccontextmanager
async def opened(
    transport: AbstractAsyncContextManager[TransportStreams],
    *,
    source: str,
    start_timeout: float,
    changed: Changed,
    ended: Callable[[], Coroutine[Any, Any, None]],
) -> AsyncIterator[Session]:
    """Connect over a transport, and follow what the server says of changes.

    Args:
        transport: Not yet entered.
        source: For messages.
        start_timeout: Seconds from starting the transport to the end of the handshake.
        changed: Called whenever the server says that its tools have changed.
        ended: As for :class:`Session`.

    Raises:
        UpstreamTimeout: It is not ready in time.
    """
    tap = Tap(transport)

    async def on_message(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed()

    client = Client(
        tap,
        cache=None,
        message_handler=on_message,
        client_info=types.Implementation(name="capdex", version=__version__),
        read_timeout_seconds=start_timeout,
    )
    # The time for connecting ends with the handshake; the scope itself has to close after the client.
    with anyio.CancelScope(deadline=anyio.current_time() + start_timeout) as connecting:
        async with client, anyio.create_task_group() as tasks:
            connecting.deadline = math.inf
            tasks.start_soon(_follow, client, changed)
            yield Session(client, tap, ended)
            tasks.cancel_scope.cancel()
    if connecting.cancelled_caught:
        raise UpstreamTimeout(
            f"The MCP server of {source} was not ready within {start_timeout:g} seconds.", retryable=True
        )


async def _follow(client: Client, changed: Changed) -> None:
    """Ask a server of the newer era, which says nothing unasked, to say when its tools change."""
    tools = client.server_capabilities.tools
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
        return
    while True:
        try:
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    changed()
        except (SubscriptionLost, MCPError, TimeoutError):
            pass
        await anyio.sleep(RELISTEN)
        changed()  # what happened meanwhile is not told again
