"""MCP over Streamable HTTP: both eras, changes, credentials, and answers that are none."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
import uvicorn
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged

from capdex_engine.errors import UpstreamError, UpstreamProtocolError, UpstreamUnreachable
from capdex_server.config import load_settings
from capdex_server.upstream.http import GuardedTransport
from capdex_server.upstream.upstreams import Upstreams
from integration.upstreams import npm_program, started

pytestmark = pytest.mark.anyio
TOKEN = "planted-token-2718"


class Team:
    """A server in the SDK's own words, whose tools can change; it wants a token."""

    def __init__(self) -> None:
        self.tools = ["greet"]
        self.bus = InMemorySubscriptionBus()
        self.headers: list[dict[str, str]] = []
        self.server: Server[Any] = Server(
            "team",
            on_list_tools=self.listed,
            on_call_tool=self.called,
            on_subscriptions_listen=ListenHandler(self.bus),
        )

    async def listed(self, _: Any, __: Any) -> types.ListToolsResult:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        return types.ListToolsResult(
            tools=[types.Tool(name=name, input_schema=schema) for name in self.tools]
        )

    async def called(self, _: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        text = f"Hello {(params.arguments or {}).get('name')}, your token is {TOKEN}"
        return types.CallToolResult(content=[types.TextContent(text=text)])

    async def change(self, *tools: str) -> None:
        self.tools = list(tools)
        await self.bus.publish(ToolsListChanged())


@asynccontextmanager
async def serving(team: Team) -> AsyncIterator[str]:
    manager = StreamableHTTPSessionManager(team.server, stateless=True)
    inner = StreamableHTTPASGIApp(manager)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        team.headers.append(headers)
        if headers.get("authorization") != f"Bearer {TOKEN}":
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"no"})
            return
        await inner(scope, receive, send)

    config = uvicorn.Config(app, port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    async with manager.run(), anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve)
        while not server.started:
            await anyio.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
        server.should_exit = True


def upstreams_of(folder: Path, url: str, environ: dict[str, str] | None = None) -> Upstreams:
    config = folder / "capdex.toml"
    config.write_text(
        f'cache = "cache"\n[sources.team]\nkind = "mcp"\nurl = "{url}"\n'
        'token = { env = "TEAM_TOKEN" }\nstart_timeout = 5\n'
    )
    environ = {"TEAM_TOKEN": TOKEN} if environ is None else environ
    return Upstreams(load_settings(config, {}), environ)


async def until(true: Callable[[], Any]) -> None:
    with anyio.fail_after(30):
        while not true():
            await anyio.sleep(0.02)


def names(upstreams: Upstreams) -> list[str]:
    return [tool["name"] for tool in json.loads(upstreams.now("team").data)["tools"]]


async def test_tools_are_listed_and_called_with_the_token_which_no_result_shows(tmp_path: Path) -> None:
    team = Team()
    async with serving(team) as url, upstreams_of(tmp_path, url) as upstreams:
        await upstreams.page("team")
        assert names(upstreams) == ["greet"]
        result = await upstreams("greet", {"name": "Ada"}, source="team", timeout=5.0)
    assert result["content"][0]["text"] == "Hello Ada, your token is ***"
    assert {one["accept-encoding"] for one in team.headers} == {"identity"}


async def test_a_change_is_followed_in_the_newer_era(tmp_path: Path) -> None:
    team = Team()
    async with serving(team) as url, upstreams_of(tmp_path, url) as upstreams:
        await upstreams.page("team")
        await until(lambda: team.bus._listeners)
        await team.change("greet", "part")
        await until(lambda: names(upstreams) == ["greet", "part"])


@pytest.mark.parametrize(
    ("environ", "told"),
    [({}, "TEAM_TOKEN is not set"), ({"TEAM_TOKEN": "wrong-token-1"}, "refuses the credential (HTTP 401)")],
)
async def test_a_missing_and_a_wrong_token_are_told(
    tmp_path: Path, environ: dict[str, str], told: str
) -> None:
    async with serving(Team()) as url, upstreams_of(tmp_path, url, environ) as upstreams:
        await until(upstreams.servers["team"].tried.is_set)
        down = str(upstreams.servers["team"].listing.down)
    assert told in down and "wrong-token-1" not in down


async def test_nobody_there_is_told_without_an_address(tmp_path: Path) -> None:
    async with upstreams_of(tmp_path, "http://127.0.0.1:9/mcp") as upstreams:
        await until(upstreams.servers["team"].tried.is_set)
        down = str(upstreams.servers["team"].listing.down)
    assert "cannot be reached" in down and "127.0.0.1" not in down


Reply = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


@contextmanager
def scripted(reply: Reply) -> Iterator[str]:
    """A server that speaks MCP well until it is called, and then does something else."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if request["method"] == "initialize":
                about = {"name": "scripted", "version": "1"}
                result: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
                self.say(200, json.dumps(self.result(request, {**result, "serverInfo": about})).encode())
            elif request["method"] == "tools/list":
                tools = [{"name": "odd", "inputSchema": {"type": "object"}}]
                self.say(200, json.dumps(self.result(request, {"tools": tools})).encode())
            elif request["method"] == "tools/call":
                reply(self, request)
            elif "id" in request:
                error = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}}
                self.say(200, json.dumps(error).encode())
            else:
                self.say(202, b"")

        @staticmethod
        def result(request: dict[str, Any], result: Any) -> dict[str, Any]:
            return {"jsonrpc": "2.0", "id": request["id"], "result": result}

        def say(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def breaks_off(handler: Any, request: dict[str, Any]) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "100")
    handler.end_headers()
    handler.wfile.write(b'{"jsonrpc"')
    handler.close_connection = True


def is_bomb(handler: Any, request: dict[str, Any]) -> None:
    handler.say(200, gzip.compress(b"x" * 1_000_000), Content_Encoding="gzip")


def huge(handler: Any, request: dict[str, Any]) -> None:
    handler.say(200, b"x" * (17 * 1024 * 1024))


REPLIES: dict[str, tuple[Reply, type[UpstreamError]]] = {
    "broken off": (breaks_off, UpstreamProtocolError),
    "coded": (is_bomb, UpstreamProtocolError),
    "too large": (huge, UpstreamProtocolError),
    "no json": (lambda handler, _: handler.say(200, b"<html>"), UpstreamProtocolError),
    "a page": (
        lambda handler, _: handler.say(200, b"<html>", Content_Type="text/html"),
        UpstreamProtocolError,
    ),
    "accepted": (lambda handler, _: handler.say(202, b""), UpstreamProtocolError),
    "failed": (lambda handler, _: handler.say(503, b"later"), UpstreamUnreachable),
    "forbidden": (lambda handler, _: handler.say(403, b"no"), UpstreamProtocolError),
    "gone": (lambda handler, _: handler.say(404, b"no"), UpstreamProtocolError),
    "elsewhere": (
        lambda handler, _: handler.say(307, b"", Location="http://169.254.169.254/latest"),
        UpstreamProtocolError,
    ),
}


@pytest.mark.parametrize("name", REPLIES)
async def test_an_answer_that_is_none_fails_its_own_call_alone(tmp_path: Path, name: str) -> None:
    reply, kind = REPLIES[name]
    with scripted(reply) as url:
        async with upstreams_of(tmp_path, url) as upstreams:
            await upstreams.page("team")
            session = upstreams.servers["team"]
            with pytest.raises(kind) as caught:
                await upstreams("odd", {}, source="team", timeout=5.0)
            assert session.state == "up"
            with pytest.raises(kind):
                await upstreams("odd", {}, source="team", timeout=5.0)
    assert TOKEN not in str(caught.value)


async def test_another_origin_than_the_configured_one_is_not_sent_to() -> None:
    import httpx2

    def headers() -> dict[str, str]:
        raise AssertionError("no secret is read for another origin")

    transport = GuardedTransport("https://a.example/mcp", headers=headers, source="odd", max_bytes=1000)
    async with httpx2.AsyncClient(transport=transport) as client:
        for url in (
            "http://a.example/mcp",
            "https://a.example:444/mcp",
            "http://127.0.0.1/",
            "https://b.example/mcp",
        ):
            response = await client.post(url, json={})
            assert response.status_code == 502
            assert response.json()["error"]["code"] == -31903


async def test_the_address_of_a_name_is_checked_by_what_the_configuration_names(tmp_path: Path) -> None:
    """A configured endpoint may be private; what is resolved for it is what is connected to."""
    asked: list[tuple[str, int]] = []

    async def resolver(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return []

    config = tmp_path / "capdex.toml"
    config.write_text('cache = "cache"\n[sources.team]\nkind = "mcp"\nurl = "http://team.internal/mcp"\n')
    async with Upstreams(load_settings(config, {}), {}, resolver=resolver) as upstreams:
        await until(upstreams.servers["team"].tried.is_set)
    assert asked[0] == ("team.internal", 80)


@contextmanager
def everything(port: int) -> Iterator[None]:
    """A server that others wrote, which keeps sessions."""
    command = [npm_program("mcp-server-everything"), "streamableHttp"]
    with started(command, {"PORT": str(port)}, stderr=subprocess.DEVNULL):
        for _ in range(200):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            time.sleep(0.05)
        yield


async def test_a_server_that_was_started_anew_and_knows_no_session_is_connected_to_again(
    tmp_path: Path,
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    arguments: dict[str, Any] = {"a": 1, "b": 2}
    url = f"http://127.0.0.1:{port}/mcp"
    with contextlib.ExitStack() as before:
        before.enter_context(everything(port))
        async with upstreams_of(tmp_path, url) as upstreams:
            server = upstreams.servers["team"]
            await upstreams.page("team")
            assert "3" in str(await upstreams("get-sum", arguments, source="team", timeout=5.0))
            before.close()
            with pytest.raises(UpstreamUnreachable):
                await upstreams("get-sum", arguments, source="team", timeout=5.0)
            await until(lambda: server.state == "down")
            with everything(port):
                await until(lambda: server.state == "up")
                assert "3" in str(await upstreams("get-sum", arguments, source="team", timeout=5.0))
