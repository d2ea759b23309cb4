"""One capdex over MCP tools, skills of two tenants and a document, with rules, quotas and a trail."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from capdex_engine.encode.testing import HashEncoder
from capdex_server.app import create_app
from capdex_server.config import load_settings
from capdex_server.live import Live
from capdex_server.outbound import Outbound
from capdex_server.upstream.upstreams import Upstreams

BASE = "http://127.0.0.1:8000"
TOOLS: list[dict[str, Any]] = [
    {
        "name": "read_note",
        "description": "Read a note.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "burn_note",
        "description": "Burn a note.",
        "inputSchema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}},
    },
]


class Notes:
    """An MCP server of notes; what it answers may be changed, and its calls are kept."""

    def __init__(self) -> None:
        self.server = {"name": "notes"}
        self.tools = TOOLS
        self.answer: Any = {"content": [{"type": "text", "text": "hello"}]}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.hold: anyio.Event | None = None
        """Calls wait for it."""

    async def list_page(self, _: Any, __: Any) -> Any:
        """Return all tools on one page."""
        return {"tools": self.tools}

    async def call(self, tool: str, arguments: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Keep a call and answer it."""
        self.calls.append((tool, arguments))
        if self.hold is not None:
            await self.hold.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: dict[str, Any] = self.answer
        return answer

    async def ended(self) -> None:
        """Never end."""
        await anyio.sleep_forever()

    @asynccontextmanager
    async def connect(self, _: Callable[[], None]) -> AsyncIterator[Any]:
        """Be connected to."""
        yield self


class Served:
    """The application that runs, its trail, and agents of its callers."""

    def __init__(self, app: Any, live: Live, trail: Path, queries: Path) -> None:
        self.live, self._app, self._trail, self._queries = live, app, trail, queries

    async def rest(self, who: str, method: str, path: str, **fields: Any) -> httpx2.Response:
        """Send a request of a program."""
        async with self._http(who) as http:
            return await http.request(method, path, **fields)

    @asynccontextmanager
    async def agent(self, who: str) -> AsyncIterator[Client]:
        """Yield a client of the SDK."""
        async with (
            self._http(who) as http,
            Client(streamable_http_client(f"{BASE}/mcp/agent", http_client=http)) as one,
        ):
            yield one

    async def execute(self, who: str, name: str, **fields: Any) -> Any:
        """Call a capability as an agent."""
        async with self.agent(who) as agent:
            return await agent.call_tool("execute_capability", {"name": name, **fields})

    async def search(self, who: str, query: str, **fields: Any) -> dict[str, Any]:
        """Search as an agent."""
        async with self.agent(who) as agent:
            found = await agent.call_tool("search_capabilities", {"query": query, **fields})
            return found.structured_content  # type: ignore[no-any-return]

    @property
    def trail(self) -> list[dict[str, Any]]:
        """The audit trail's lines."""
        return _lines(self._trail)

    @property
    def queries(self) -> list[dict[str, Any]]:
        """The query log's lines."""
        return _lines(self._queries)

    def _http(self, who: str) -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {who}-token"}
        transport = httpx2.ASGITransport(app=self._app)
        return httpx2.AsyncClient(transport=transport, base_url=BASE, headers=headers, timeout=60)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def caller(name: str, tenant: str, rules: str = "allow = [{}]") -> str:
    """Return a caller's table."""
    digest = hashlib.sha256(f"{name}-token".encode()).hexdigest()
    return f'[[callers]]\nname = "{name}"\ntenant = "{tenant}"\ntoken_sha256 = "{digest}"\n{rules}\n'


def workspace(name: str, tenant: str, url: str) -> str:
    """Return a workspace's table."""
    return f'[workspaces.{name}]\ntenant = "{tenant}"\n[workspaces.{name}.skills]\nurl = "{url}"\n'


NOTES = '[sources.notes]\nkind = "mcp"\ncommand = "x"\ntrusted = true\n'


@asynccontextmanager
async def governed(
    folder: Path, text: str, notes: Notes | None = None, *, more: str = ""
) -> AsyncIterator[Served]:
    """Serve a configuration; with ``notes``, these stand for the source ``notes``, with ``more`` settings."""
    trail, queries = folder / "audit.jsonl", folder / "queries.jsonl"
    head = f'cache = "{folder / "cache"}"\n'
    tables = f'[audit]\nto = "{trail}"\n[query_log]\npath = "{queries}"\n'
    path = folder / "capdex.toml"
    path.write_text(head + text + tables + (NOTES + more if notes else ""))
    settings = load_settings(path, {})
    outbound = Outbound.from_settings(settings)
    upstreams = Upstreams(settings, {}, connect=lambda *_: notes.connect) if notes else None
    live = Live.from_settings(
        settings, outbound=outbound, encoder=HashEncoder, environ={}, upstreams=upstreams
    )
    app = create_app(live, settings)
    async with app.router.lifespan_context(app):
        await live.wait(30)
        yield Served(app, live, trail, queries)
    await outbound.aclose()
