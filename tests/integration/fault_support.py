"""An application whose sources are the faulty upstream's addresses."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
from fastapi import FastAPI
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from capdex_bench.faults_cases import serialised
from capdex_bench.faults_upstream import FaultUpstream
from capdex_engine.encode.testing import HashEncoder
from capdex_server.app import create_app
from capdex_server.config import Limits, Settings, SourceConfig
from capdex_server.live import Live, build_snapshot
from capdex_server.outbound import Outbound
from planted import planted

BASE: Final = "http://127.0.0.1:8000"
KEY: Final = planted("fault upstream's key")
Execute = Callable[..., Awaitable[dict[str, Any]]]


def fault_app(upstream: FaultUpstream, folder: Path, **limits: Any) -> FastAPI:
    """Return an application over every address of the upstream."""
    sources = {}
    for place, url in upstream.urls.items():
        (folder / f"{place}.json").write_bytes(serialised(place, url))
        sources[place] = SourceConfig(location=str(folder / f"{place}.json"), server=url)
    settings = Settings(sources=sources, cache=folder / "cache", limits=Limits(**limits))
    outbound = Outbound.from_settings(settings)
    outbound._ssl_context = ssl.create_default_context(cafile=upstream.authority.path)
    held = {place: {"key": KEY} for place in sources}

    async def built(_: object = None) -> Any:
        return await build_snapshot(
            settings, outbound=outbound, encoder=HashEncoder, environ={}, credentials=held
        )

    app = create_app(Live(built), settings)
    lifespan = app.router.lifespan_context

    @asynccontextmanager
    async def closing(app: FastAPI) -> AsyncIterator[None]:
        async with lifespan(app):
            yield
        await outbound.aclose()

    app.router.lifespan_context = closing
    return app


@asynccontextmanager
async def agent(upstream: FaultUpstream, folder: Path, **limits: Any) -> AsyncIterator[Execute]:
    """Yield a function that executes a capability through MCP and returns what it answers."""
    app = fault_app(upstream, folder, **limits)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=BASE) as http,
        Client(streamable_http_client(f"{BASE}/mcp/agent", http_client=http)) as client,
    ):

        async def execute(name: str, **arguments: Any) -> dict[str, Any]:
            result = await client.call_tool("execute_capability", {"name": name, **arguments})
            content: dict[str, Any] = result.structured_content
            assert json.loads(result.content[0].text) == content
            assert result.is_error == ("error" in content or content["status"] >= 400)
            return content

        yield execute
