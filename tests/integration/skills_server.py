"""MCP servers on loopback that have skills: sound ones, and ones that fail in every way."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import mcp_types as types
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from capdex_server.demo import run_in_thread

INDEX: Final = "skill://index.json"
ENTRIES: Final = [
    {
        "name": "pay-run",
        "title": "Pay run",
        "description": "Runs the payroll of a month.",
        "capability": "skill:pay-run",
        "url": "skill://pay-run/SKILL.md",
    },
    {
        "name": "trip",
        "description": "Books a trip.",
        "capability": "plugin:travel:trip",
        "url": "skill://trip/SKILL.md",
    },
]


@dataclass
class Skills:
    """A server that runs: what it answers may be changed, and what it was asked is kept."""

    index: str | bytes | None = field(default_factory=lambda: json.dumps({"skills": ENTRIES}))
    """Text, bytes, or None: it has none."""
    token: str | None = None
    """Needed where it is given."""
    result: types.CallToolResult | None = None
    """Of its ``execute_capability``; it says what it was given by default."""
    url: str = ""
    methods: list[str] = field(default_factory=list)
    """Methods of JSON-RPC, in the order they came."""
    calls: list[dict[str, Any]] = field(default_factory=list)
    """Arguments of its ``execute_capability``."""
    tokens: set[str] = field(default_factory=set)
    """Authorization headers that it has seen."""


@contextmanager
def skills_server(*, execute: bool = True, pages: int = 1, **parts: Any) -> Iterator[Skills]:
    """Run a server of the official SDK; without ``execute`` it has no tools at all."""
    state = Skills(**parts)
    manager = StreamableHTTPSessionManager(_server(state, execute, pages), json_response=True, stateless=True)

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        async with manager.run():
            yield

    endpoint = _Door(StreamableHTTPASGIApp(manager), state)
    app = Starlette(lifespan=lifespan, routes=[Route("/mcp", endpoint, methods=["GET", "POST", "DELETE"])])
    with run_in_thread(app) as url:
        state.url = f"{url}/mcp"
        yield state


def _server(state: Skills, execute: bool, pages: int) -> Server[Any]:
    async def read(_: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        if params.uri == INDEX and state.index is not None:
            return types.ReadResourceResult(contents=[_contents(params.uri, state.index)])
        if params.uri.startswith("skill://") and params.uri != INDEX:
            return types.ReadResourceResult(contents=[_contents(params.uri, f"# About {params.uri}")])
        raise MCPError(types.INVALID_PARAMS, "no such resource")

    async def tools(_: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        page = int((params and params.cursor) or 0)
        last = page + 1 >= pages
        names = ["execute_capability"] if last else [f"other_{page}"]
        found = [types.Tool(name=name, input_schema={"type": "object"}) for name in names]
        return types.ListToolsResult(tools=found, next_cursor=None if last else str(page + 1))

    async def call(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        state.calls.append(dict(params.arguments or {}))
        said = types.TextContent(text=json.dumps(params.arguments))
        return state.result or types.CallToolResult(content=[said], structured_content={"did": params.name})

    handlers = {"on_list_tools": tools, "on_call_tool": call} if execute else {}
    return Server("skills", version="1", on_read_resource=read, **handlers)


def _contents(uri: str, data: str | bytes) -> types.TextResourceContents | types.BlobResourceContents:
    if isinstance(data, str):
        return types.TextResourceContents(uri=uri, text=data)
    return types.BlobResourceContents(uri=uri, blob=base64.b64encode(data).decode())


class _Door:
    """Keeps what comes in, and asks for the token."""

    def __init__(self, app: ASGIApp, state: Skills) -> None:
        self._app, self._state = app, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        given = headers.get(b"authorization", b"").decode()
        self._state.tokens.add(given)
        if self._state.token is not None and given != f"Bearer {self._state.token}":
            return await Response(status_code=401)(scope, receive, send)

        async def kept() -> Any:
            message = await receive()
            if message.get("body"):
                self._state.methods.append(json.loads(message["body"])["method"])
            return message

        await self._app(scope, kept, send)


Answer = Callable[[str, Any], Any]
"""``(method, id)`` of a message -> a Starlette response, or the result of an answer in JSON."""
HELLO: Final = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"resources": {}, "tools": {}},
    "serverInfo": {"name": "raw", "version": "1"},
}


@contextmanager
def raw_server(answer: Answer) -> Iterator[str]:
    """Run a server that answers each message by hand; yield its URL."""

    async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        more = scope["method"] == "POST"
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        said = json.loads(body) if body else {}
        if "id" not in said:
            return await Response(status_code=202 if body else 405)(scope, receive, send)
        found = answer(said["method"], said["id"])
        if not isinstance(found, Response):
            text = json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": found})
            found = Response(text, media_type="application/json")
        await found(scope, receive, send)

    class App:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                while (message := await receive())["type"] != "lifespan.shutdown":
                    await send({"type": f"{message['type']}.complete"})
                return await send({"type": "lifespan.shutdown.complete"})
            await endpoint(scope, receive, send)

    with run_in_thread(App()) as url:
        yield f"{url}/mcp"


def about_index(then: Any) -> Answer:
    """Shake hands soundly; answer everything else with ``then``, or what it returns."""
    return lambda method, id_: HELLO if method == "initialize" else then() if callable(then) else then
