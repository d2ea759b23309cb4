"""A small catalog, live and in memory, whose upstream is a function."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from capdex_engine.call import Request, Response
from capdex_engine.encode.testing import HashEncoder
from capdex_server.config import CallerConfig, Settings, SourceConfig
from planted import planted

SHOP_KEY = planted("shop key")
ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
ORDER = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
    "required": ["item"],
}
SHOP: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Shop API", "version": "1"},
    "servers": [{"url": "https://shop.example/v1"}],
    "paths": {
        "/orders": {
            "get": {
                "operationId": "listOrders",
                "summary": "List orders",
                "tags": ["orders"],
                "parameters": [{"name": "status", "in": "query", "schema": {"type": "string"}}],
                "responses": {"200": {"description": "ok"}},
            },
            "post": {
                "operationId": "createOrder",
                "summary": "Create an order",
                "tags": ["orders"],
                "security": [{"api_key": []}],
                "requestBody": {"required": True, "content": {"application/json": {"schema": ORDER}}},
                "responses": {"201": {"description": "made"}},
            },
        },
        "/orders/{id}": {
            "get": {
                "operationId": "getOrder",
                "summary": "Get one order",
                "tags": ["orders"],
                "parameters": [ID],
                "responses": {
                    "200": {"description": "ok", "content": {"application/json": {"schema": ORDER}}}
                },
            },
            "delete": {
                "operationId": "deleteOrder",
                "summary": "Delete an order",
                "tags": ["admin"],
                "parameters": [ID],
                "responses": {"204": {"description": "gone"}},
            },
        },
    },
    "components": {"securitySchemes": {"api_key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
}
MAIL: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Mail", "version": "1"},
    "servers": [{"url": "https://mail.example"}],
    "paths": {
        "/send": {
            "post": {
                "operationId": "sendMail",
                "summary": "Send a mail",
                "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
                "responses": {"202": {"description": "sent"}},
            }
        }
    },
}


@dataclass
class Upstream:
    """The engine's transport: keeps requests, answers what it is told to."""

    requests: list[Request] = field(default_factory=list)
    answer: Callable[[Request], Awaitable[Response]] | None = None

    async def __call__(self, request: Request, *, source: str, timeout: float, max_bytes: int) -> Response:
        self.requests.append(request)
        if self.answer is not None:
            return await self.answer(request)
        body = json.dumps({"source": source}).encode()
        return Response(200, (("Content-Type", "application/json"),), body, truncated=False)


@pytest.fixture
def upstream() -> Upstream:
    return Upstream()


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    for name, document in (("shop", SHOP), ("mail", MAIL)):
        (folder / f"{name}.json").write_text(json.dumps(document))
    return folder


def configured_caller(name: str, **fields: Any) -> CallerConfig:
    """A caller whose token is its name followed by "-token"."""
    digest = hashlib.sha256(f"{name}-token".encode()).hexdigest()
    fields = {"allow": [{}], "tenant": "acme", **fields}
    return CallerConfig.model_validate({"name": name, "token_sha256": digest, **fields})


@pytest.fixture
def make_settings(documents: Path, tmp_path: Path) -> Callable[..., Settings]:
    """Settings over both documents; callers are given as name -> fields."""

    def make(callers: dict[str, dict[str, Any]] | None = None, **fields: Any) -> Settings:
        sources = {name: SourceConfig(location=str(documents / f"{name}.json")) for name in ("shop", "mail")}
        configs = tuple(configured_caller(name, **one) for name, one in (callers or {}).items())
        return Settings(**{"sources": sources, "cache": tmp_path / "cache", "callers": configs, **fields})

    return make


@pytest.fixture
def make_live(upstream: Upstream) -> Callable[..., Any]:
    """A holder over settings that has built nothing yet."""
    from capdex_server.live import Live
    from capdex_server.outbound import Outbound

    def make(settings: Settings, environ: dict[str, str] | None = None, **parts: Any) -> Live:
        held = {"CAPDEX_CREDENTIAL_SHOP_API_KEY": SHOP_KEY} if environ is None else environ
        parts = {"encoder": HashEncoder, "outbound": Outbound({}), "transport": upstream, **parts}
        return Live.from_settings(settings, environ=held, **parts)

    return make
