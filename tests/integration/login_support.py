"""A login with a token endpoint and the API behind it, on loopback, and capdex serving that API."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote_plus

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from capdex_engine.encode.testing import HashEncoder
from capdex_server.app import create_app
from capdex_server.config import load_settings
from capdex_server.live import Live, build_snapshot
from capdex_server.outbound import Outbound

BASE: Final = "http://127.0.0.1:8000"


@dataclass
class Login:
    """Clients, the tokens that they got, and what the API behind saw."""

    url: str = ""
    clients: dict[str, str] = field(default_factory=dict)
    """Client id -> secret."""
    life: int | None = 3600
    asked: list[dict[str, Any]] = field(default_factory=list)
    """Each token request: its form, with how the client showed itself."""
    valid: dict[str, str] = field(default_factory=dict)
    """Token that the API takes -> client id."""
    stillborn: bool = False
    """The API takes no new token."""
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    """What the token endpoint says instead, one each."""
    calls: list[tuple[str, str | None]] = field(default_factory=list)
    """Method and Authorization of each call of the API."""

    def token(self, form: dict[str, str], authorization: str | None) -> tuple[int, dict[str, str], bytes]:
        shown = dict(form)
        if authorization is not None:
            pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
            shown["client_id"], shown["client_secret"] = map(unquote_plus, pair.split(":"))
            shown["method"] = "basic"
        self.asked.append(shown)
        if self.answers:
            return self.answers.pop(0)
        if self.clients.get(shown.get("client_id", "")) != shown.get("client_secret"):
            told = {"error": "invalid_client", "error_description": f"no: {shown['client_secret']}"}
            return 401, {}, json.dumps(told).encode()
        token = f"planted-token-{len(self.asked)}-{shown['client_id']}"
        if not self.stillborn:
            self.valid[token] = shown["client_id"]
        said = {"access_token": token, "token_type": "Bearer", "expires_in": self.life}
        return 200, {}, json.dumps(said).encode()

    def call(self, method: str, authorization: str | None) -> tuple[int, dict[str, str], bytes]:
        self.calls.append((method, authorization))
        token = (authorization or "").removeprefix("Bearer ")
        client = self.valid.get(token)
        told = {"client": client} if client else {"error": f"{token} is not valid here"}
        return (200 if client else 401), {}, json.dumps(told).encode()


@contextmanager
def login_server(**clients: str) -> Iterator[Login]:
    """Start the login on a free port; stop it at the end."""
    login = Login(clients=clients)

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            authorization = self.headers.get("Authorization")
            if self.path == "/token":
                form = {name: values[0] for name, values in parse_qs(body).items()}
                status, headers, payload = login.token(form, authorization)
            else:
                status, headers, payload = login.call(self.command, authorization)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = answer

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    login.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield login
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def document(login: Login, **flows: dict[str, Any]) -> str:
    """Return the API's document; by default with a login of its own that nothing may be sent to."""
    flows = flows or {"clientCredentials": {"tokenUrl": f"{login.url}/token", "scopes": {}}}
    answers = {"responses": {"200": {"description": "ok"}}}
    return json.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": "Stock", "version": "1"},
            "security": [{"login": ["stock:read"]}],
            "components": {"securitySchemes": {"login": {"type": "oauth2", "flows": flows}}},
            "paths": {
                "/stock": {
                    "get": {"operationId": "countStock", **answers},
                    "post": {"operationId": "addStock", **answers},
                }
            },
        }
    )


@dataclass
class Time:
    """Seconds that pass when told."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class House:
    """capdex in front of the API."""

    login: Login
    http: httpx2.AsyncClient
    time: Time

    async def call(self, name: str = "countStock", *, token: str = "", **arguments: Any) -> dict[str, Any]:
        """Execute a capability through ``/mcp/agent`` as the caller with this token."""
        self.http.headers["Authorization"] = f"Bearer {token}"
        url = f"{BASE}/mcp/agent"
        async with Client(streamable_http_client(url, http_client=self.http)) as client:
            result = await client.call_tool("execute_capability", {"name": name, **arguments})
        content: dict[str, Any] = result.structured_content
        return content


@asynccontextmanager
async def serving(
    login: Login, folder: Path, config: str, environ: dict[str, str], text: str | None = None
) -> AsyncIterator[House]:
    """Serve the API by a configuration whose ``{login}`` is the login's URL."""
    (folder / "stock.json").write_text(text or document(login))
    (folder / "capdex.toml").write_text(config.replace("{login}", login.url))
    settings = load_settings(folder / "capdex.toml", {"CAPDEX_CACHE": str(folder / "cache")})
    outbound, time = Outbound.from_settings(settings), Time()

    async def built(_: object = None) -> Any:
        return await build_snapshot(
            settings, outbound=outbound, encoder=HashEncoder, environ=environ, clock=time
        )

    app = create_app(Live(built), settings)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=BASE) as http,
    ):
        yield House(login, http, time)
    await outbound.aclose()


def caller(tenant: str, token: str) -> str:
    """Return a caller's table of the configuration."""
    digest = hashlib.sha256(token.encode()).hexdigest()
    return f'[[callers]]\nname = "{tenant}"\ntenant = "{tenant}"\ntoken_sha256 = "{digest}"\nallow = [{{}}]\n'
