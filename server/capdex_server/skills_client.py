"""Speaks MCP to servers that have skills: reads their index, and calls a skill.

A connection is made for one conversation and closed after it: an index is read twice a minute at most.
What a server says beyond the protocol is never passed on in an error, since it may hold a credential.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Final, TypeVar

import anyio
import httpcore2
import httpx2
import mcp_types as types
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from capdex_engine import __version__
from capdex_engine.call.masking import Masker
from capdex_engine.errors import CapdexError, UpstreamProtocolError, UpstreamTimeout, UpstreamUnreachable
from capdex_engine.skills import SkillIndex, SkillIndexError, read_index
from capdex_engine.skills.entries import INDEX_URL, MAX_INDEX_BYTES
from capdex_engine.skills.render import EXECUTE_TOOL
from capdex_server.addresses import GuardedBackend, Resolve, origin_of, resolve
from capdex_server.logs import get_logger, hush_mcp_clients
from capdex_server.streams import CleanPool

STEP: Final = 5.0
"""Seconds for each of ``initialize``, ``initialized`` and ``resources/read``."""
INDEX_WIRE_BYTES: Final = 3 * MAX_INDEX_BYTES + 64 * 1024
"""Of the answers that bring an index: as JSON in JSON its characters take three times the room at most."""
MAX_TOOL_PAGES: Final = 20
"""Of a server's list of tools that are looked at for its ``execute_capability``."""
Streams = tuple[Any, Any]
"""The SDK's pair of streams: to read messages from, and to write them to."""
Connect = Callable[[], AbstractAsyncContextManager[Streams]]
Tell = Callable[[BaseException], CapdexError]
T = TypeVar("T")
_log = get_logger(__name__)


class TooLarge(Exception):
    """A server sends more than is read."""


class Wire(httpx2.AsyncBaseTransport):
    """Sends one conversation's requests under the address policy, and reads so many bytes of answers.

    Args:
        url: The server's; its origin is configured, so it may be a private address.
        max_bytes: Of all answers together.
        resolver: How a host becomes addresses.
        ssl_context: For TLS.
    """

    def __init__(self, url: str, *, max_bytes: int, resolver: Resolve, ssl_context: ssl.SSLContext) -> None:
        origin = origin_of(url)
        configured = frozenset([origin[1:]]) if origin else frozenset()
        self._pool = CleanPool(ssl_context=ssl_context, network_backend=GuardedBackend(configured, resolver))
        self._room = max_bytes
        self.too_large = False
        self.status = 0
        """Of the last answer to a message that told of an error; 0 where none did."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; its answer's body is read as it is asked for."""
        assert isinstance(request.stream, httpx2.AsyncByteStream)  # noqa: S101 - the client is asynchronous
        url = httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        sent = httpcore2.Request(
            request.method,
            url,
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        answer = await self._pool.handle_async_request(sent)
        if request.method == "POST" and answer.status >= 400:
            self.status = answer.status
        response = httpx2.Response(
            answer.status, headers=answer.headers, stream=_Counted(answer.stream, self._take)
        )
        if response.headers.get("content-encoding", "identity") != "identity":
            # It was asked for as it is: what unpacks could be of any size.
            await response.aclose()
            raise UpstreamProtocolError("The answer is compressed, though that was not asked for.")
        return response

    def _take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            self.too_large = True
            raise TooLarge

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, take: Callable[[int], None]) -> None:
        self._stream, self._take = stream, take

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self._take(len(part))
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


async def converse(
    connect: Connect,
    work: Callable[[ClientSession], Awaitable[T]],
    *,
    step: float,
    seconds: float,
    tell: Tell,
) -> T:
    """Shake hands with a server (``initialize``, ``initialized``), and do some work with it.

    Args:
        connect: Opens the streams.
        work: What to do.
        step: Seconds for each request.
        seconds: For everything.
        tell: What was raised -> the error to raise instead.
    """
    done: list[T] = []
    info = types.Implementation(name="capdex", version=__version__)
    try:
        with anyio.fail_after(seconds):
            async with (
                connect() as (read, write),
                ClientSession(read, write, read_timeout_seconds=step, client_info=info) as session,
            ):
                await session.initialize()
                done.append(await work(session))
    except Exception as error:  # the SDK raises whatever its tasks met, in groups
        if not done:  # a failure while saying goodbye changes no answer
            raise tell(error) from None
    return done[0]


async def read_skill_index(
    connect: Connect, *, name: str = "skills", step: float = STEP, tell: Tell | None = None
) -> SkillIndex:
    """Read a server's ``skill://index.json``; bad entries are dropped and in its ``faults``.

    Args:
        connect: Opens the streams to the server.
        name: Of the configuration, for errors.
        step: Seconds for each of the three steps.
        tell: What was raised -> what to say of it.

    Raises:
        SkillIndexError: There is no index to be had, or what is there is none.
        UpstreamError, AddressRefused: The server cannot be spoken to.
    """

    async def work(session: ClientSession) -> SkillIndex:
        return read_index(_bytes_of(await session.read_resource(INDEX_URL), name), location=name)

    return await converse(connect, work, step=step, seconds=3 * step, tell=tell or Teller(name, step))


class SkillClient:
    """Speaks to servers over Streamable HTTP. One per event loop.

    Args:
        resolver: ``(host, port) -> addresses``; DNS unless a test hands in another.
        step: Seconds for each step of reading an index.
    """

    def __init__(self, *, resolver: Resolve = resolve, step: float = STEP) -> None:
        hush_mcp_clients()
        self._resolver = resolver
        self._step = step
        self._ssl_context: ssl.SSLContext | None = None

    async def index(self, name: str, url: str, token: str | None) -> SkillIndex:
        """Read the index of a server.

        Args:
            name: Of the configuration, for errors.
            url: Where its MCP endpoint is.
            token: Sent as a bearer token.

        Raises:
            SkillIndexError, UpstreamError, AddressRefused: It cannot be had; the message says why.
        """
        wire = self._wire(name, url, INDEX_WIRE_BYTES)
        tell = Teller(name, self._step, wire)
        connect = partial(_connected, wire, url, token, self._step, INDEX_WIRE_BYTES)
        return await read_skill_index(connect, name=name, step=self._step, tell=tell)

    async def call(
        self,
        name: str,
        url: str,
        token: str | None,
        *,
        arguments: Mapping[str, Any],
        resource: str,
        timeout: float,
        max_bytes: int,
    ) -> dict[str, Any]:
        """Forward a call to the server's own ``execute_capability``, or read the skill's resource.

        Args:
            name: Of the configuration, for errors.
            url: Where the server's MCP endpoint is.
            token: Sent as a bearer token.
            arguments: Of ``execute_capability``, the name included.
            resource: The skill's URL, which is read where the server has no such tool.
            timeout: Seconds for everything.
            max_bytes: Of the server's answers together.

        Returns:
            The tool's result as MCP writes it: ``{"content", "structuredContent"?, "isError", "_meta"?}``.

        Raises:
            UpstreamError, AddressRefused: The call failed before a result.
        """
        wire = self._wire(name, url, max_bytes)

        async def work(session: ClientSession) -> types.CallToolResult:
            if await _has_execute(session):
                return await _forwarded(session, arguments)
            read = await session.read_resource(resource)
            return types.CallToolResult(
                content=[types.EmbeddedResource(resource=one) for one in read.contents]
            )

        connect = partial(_connected, wire, url, token, timeout, max_bytes)
        tell = Teller(name, timeout, wire)
        result = await converse(connect, work, step=timeout, seconds=timeout, tell=tell)
        written: dict[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        # Whatever else a result holds passes through; the token that was sent does not come back.
        masked: dict[str, Any] = Masker([token] if token else []).json(written)
        return masked

    def _wire(self, name: str, url: str, max_bytes: int) -> Wire:
        if origin_of(url) is None:
            raise UpstreamUnreachable(f"The url of [{name}] is no http(s) URL. Correct it in capdex.toml.")
        self._ssl_context = self._ssl_context or httpx2.create_ssl_context(trust_env=False)
        return Wire(url, max_bytes=max_bytes, resolver=self._resolver, ssl_context=self._ssl_context)


@asynccontextmanager
async def _connected(
    wire: Wire, url: str, token: str | None, seconds: float, max_bytes: int
) -> AsyncIterator[Streams]:
    headers = {"Accept-Encoding": "identity", "User-Agent": f"capdex/{__version__}"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    async with (
        httpx2.AsyncClient(transport=wire, headers=headers, timeout=seconds, trust_env=False) as http,
        streamable_http_client(url, http_client=http, max_sse_event_size=max_bytes) as streams,
    ):
        yield streams


async def _has_execute(session: ClientSession) -> bool:
    offers = session.server_capabilities
    if offers is None or offers.tools is None:
        return False
    cursor: str | None = None
    for _ in range(MAX_TOOL_PAGES):
        page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        if any(tool.name == EXECUTE_TOOL for tool in page.tools):
            return True
        cursor = page.next_cursor
        if cursor is None:
            break
    return False


async def _forwarded(session: ClientSession, arguments: Mapping[str, Any]) -> types.CallToolResult:
    # Not session.call_tool: it checks what comes back, and a result passes through as it is.
    call = types.CallToolRequest(
        params=types.CallToolRequestParams(name=EXECUTE_TOOL, arguments=dict(arguments))
    )
    return await session.send_request(call, types.CallToolResult)


def _bytes_of(read: types.ReadResourceResult, name: str) -> bytes:
    """Return the index's bytes: of the part with its address, else of the only part."""
    named = [part for part in read.contents if part.uri == INDEX_URL] or read.contents
    if len(named) != 1:
        text = f"The answer to {INDEX_URL} has {len(named)} contents, not one."
        raise SkillIndexError(text, location=name)
    part = named[0]
    if isinstance(part, types.TextResourceContents):
        return part.text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(part.blob, validate=True)
    except ValueError:
        raise SkillIndexError("The skill index is no valid base64.", location=name) from None


class Teller:
    """Says what went wrong in a conversation, with words of our own alone.

    Args:
        name: Of the configuration.
        seconds: That a step was given.
        wire: What the conversation went over.
    """

    def __init__(self, name: str, seconds: float, wire: Wire | None = None) -> None:
        self._who = f"The skills server of [{name}]"
        self._seconds = seconds
        self._wire = wire

    def __call__(self, error: BaseException) -> CapdexError:
        """Return the error to raise."""
        leaves = list(_leaves(error))
        own = next((leaf for leaf in leaves if isinstance(leaf, CapdexError)), None)
        status = self._wire.status if self._wire else 0
        if own is not None:
            return own
        if self._wire is not None and self._wire.too_large:
            return UpstreamProtocolError(f"{self._who} sends more than is read. Nothing of it is used.")
        if status in {401, 403}:
            text = f"{self._who} does not accept the token (it answers {status}). Check its token setting."
            return UpstreamProtocolError(text)
        if any(_is_timeout(leaf) for leaf in leaves):
            return UpstreamTimeout(f"{self._who} did not answer within {self._seconds:g} seconds.")
        if any(isinstance(leaf, (OSError, httpcore2.NetworkError)) for leaf in leaves):
            return UpstreamUnreachable(f"{self._who} cannot be reached. Check its url, and that it runs.")
        return self._protocol(leaves, status)

    def _protocol(self, leaves: list[BaseException], status: int) -> UpstreamProtocolError:
        code = next((leaf.code for leaf in leaves if isinstance(leaf, MCPError)), None)
        _log.debug("skills.conversation_failed", kinds=[type(leaf).__name__ for leaf in leaves])
        said = f"answers {status}" if status else f"answers error {code}" if code else "sends no valid MCP"
        return UpstreamProtocolError(f"{self._who} {said}. Check that its url is that of an MCP endpoint.")


def _is_timeout(error: BaseException) -> bool:
    timed_out = isinstance(error, MCPError) and error.code == types.REQUEST_TIMEOUT
    return timed_out or isinstance(error, (TimeoutError, httpcore2.TimeoutException))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error
