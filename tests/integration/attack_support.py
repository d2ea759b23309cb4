"""A target that is served, and a wire that records: for the attacks.

Every connection ends at one upstream of ours on loopback, whatever address it was for.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpcore2
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from capdex_engine.encode.testing import HashEncoder
from capdex_server import addresses
from capdex_server.app import create_app
from capdex_server.config import Limits, Settings, SourceConfig
from capdex_server.live import Live, build_snapshot
from capdex_server.outbound import Outbound
from integration.recorder import Recorder, recording_upstream
from planted import planted

BASE: Final = "http://127.0.0.1:8000"
PUBLIC: Final = "93.184.215.14"
INVALID: Final = "invalid_capability_arguments"
KEYS: Final = {
    "inHeader": planted("header"),
    "inQuery": planted("query"),
    "inCookie": planted("cookie"),
    "token": planted("token"),
}
TEXT: Final = {"type": "string"}
OPEN: Final = {"type": "object", "additionalProperties": True}


def operation(name: str, *parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    declared = [{"schema": TEXT, "required": one["in"] == "path", **one} for one in parameters]
    return {"operationId": name, "parameters": declared, "responses": {"200": {"description": "ok"}}, **more}


def body(content_type: str, schema: Any) -> dict[str, Any]:
    return {"content": {content_type: {"schema": schema}}}


def at(location: str, name: str, **more: Any) -> dict[str, Any]:
    return {"in": location, "name": name, **more}


FILE: Final = {
    "type": "object",
    "properties": {"file": {"type": "string", "format": "binary"}, "title": TEXT},
}
NOTE: Final = {
    "type": "object",
    "properties": {"title": {"type": "string", "maxLength": 100}, "tags": {"type": "array", "maxItems": 9}},
    "additionalProperties": False,
}
PATHS: Final[dict[str, Any]] = {
    "/files/{id}/meta": {"get": operation("getFile", at("path", "id"))},
    "/tree/{path+}": {"get": operation("getTree", at("path", "path"))},
    "/pair/{a}{b}": {"get": operation("getPair", at("path", "a"), at("path", "b"))},
    "/matrix/{m}": {"get": operation("getMatrix", at("path", "m", style="matrix"))},
    "/find": {
        "get": operation(
            "find",
            at("query", "q"),
            at("query", "limit", schema={"type": "integer", "maximum": 10}),
            at("query", "filter", style="deepObject", explode=True, schema=OPEN),
            at("query", "free", schema=OPEN),
        )
    },
    "/head": {
        "get": operation(
            "head",
            at("header", "X-Trace"),
            at("header", "X-List", schema={"type": "array", "items": TEXT}),
            at("header", "Authorization"),
            at("header", "Host"),
        )
    },
    "/jar": {"get": operation("jar", at("cookie", "sid"), at("cookie", "free", schema=OPEN))},
    "/upload": {"post": operation("upload", requestBody=body("multipart/form-data", FILE))},
    "/raw": {"post": operation("raw", requestBody=body("application/octet-stream", {}))},
    "/note": {"post": operation("note", requestBody=body("application/json", NOTE))},
    "/any": {"post": operation("any", requestBody=body("application/json", OPEN))},
    **{
        f"/with/{scheme}": {
            "get": operation(
                f"with{scheme}",
                at("query", "free", schema=OPEN),
                at("cookie", "jar", schema=OPEN),
                at("query", "key"),
                at("cookie", "key"),
                at("header", "X-Key"),
                security=[{scheme: []}],
            )
        }
        for scheme in KEYS
    },
}
SCHEMES: Final = {
    "inHeader": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "inQuery": {"type": "apiKey", "in": "query", "name": "key"},
    "inCookie": {"type": "apiKey", "in": "cookie", "name": "key"},
    "token": {"type": "http", "scheme": "bearer"},
}


def document(server: str = "http://api.example/v1", **more: Any) -> bytes:
    servers = [{"url": server, **more}]
    parts = {"components": {"securitySchemes": SCHEMES}, "servers": servers, "paths": PATHS}
    return json.dumps({"openapi": "3.1.0", "info": {"title": "Target", "version": "1"}, **parts}).encode()


@dataclass
class Wire:
    """Every connection that is opened, and what a host name means."""

    upstream: Recorder
    connections: list[tuple[str, int]] = field(default_factory=list)
    names: dict[str, list[list[str]]] = field(default_factory=lambda: {"api.example": [[PUBLIC]]})
    """Host -> its addresses at each look-up; the last stays."""

    async def resolve(self, host: str, port: int) -> list[str]:
        answers = self.names.get(host)
        if answers is None:
            # The system reads addresses in every notation; no name leaves this machine.
            if not re.fullmatch(r"[0-9a-fA-FxX.:%]+|localhost", host):
                raise OSError("no such host")
            return await addresses.resolve(host, port)
        return answers.pop(0) if len(answers) > 1 else answers[0]


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    real = httpcore2.AnyIOBackend
    with recording_upstream() as upstream:
        recorded = Wire(upstream)

        class Backend(httpcore2.AsyncNetworkBackend):
            async def connect_tcp(self, host: str, port: int, *rest: Any, **more: Any) -> Any:
                recorded.connections.append((host, port))
                return await real().connect_tcp("127.0.0.1", int(upstream.url.rpartition(":")[2]))

        monkeypatch.setattr(addresses.httpcore2, "AnyIOBackend", Backend)
        yield recorded


@asynccontextmanager
async def served(wire: Wire, folder: Path, data: bytes, **source: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Serve one document; yield an HTTP client of the application."""
    (folder / "target.json").write_bytes(data)
    config = SourceConfig(location=str(folder / "target.json"), **source)
    limits = Limits(max_request_bytes=256 * 1024)
    settings = Settings(sources={"target": config}, cache=folder / "cache", limits=limits)
    outbound = Outbound.from_settings(settings)
    outbound._resolver = wire.resolve

    async def built(_: object = None) -> Any:
        return await build_snapshot(
            settings, outbound=outbound, encoder=HashEncoder, environ={}, credentials={"target": KEYS}
        )

    app = create_app(Live(built), settings)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=BASE) as http,
    ):
        yield http
    await outbound.aclose()


@asynccontextmanager
async def agent(wire: Wire, folder: Path, data: bytes | None = None, **source: Any) -> AsyncIterator[Any]:
    """Yield a function that executes a capability through MCP and returns what it answers."""
    async with served(wire, folder, data or document(), **source) as http:
        url = f"{BASE}/mcp/agent"
        async with Client(streamable_http_client(url, http_client=http)) as client:

            async def execute(name: str, **arguments: Any) -> dict[str, Any]:
                result = await client.call_tool("execute_capability", {"name": name, **arguments})
                content: dict[str, Any] = result.structured_content
                assert ("error" in content) <= result.is_error
                return content

            yield execute


async def refusal(wire: Wire, folder: Path, name: str, **arguments: Any) -> dict[str, Any]:
    """Return the error of a call that must be refused without any connection."""
    async with agent(wire, folder) as execute:
        answer = await execute(name, **arguments)
    assert "error" in answer, answer
    assert wire.connections == []
    assert not any(key in json.dumps(answer) for key in KEYS.values())
    error: dict[str, Any] = answer["error"]
    return error
