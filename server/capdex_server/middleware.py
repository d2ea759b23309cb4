"""Pure ASGI middleware: what every HTTP request passes before it reaches a route."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import anyio
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from capdex_server.callers import is_loopback

LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")
Wanted = Callable[[bytes], str | None]
"""Request body -> the scope that it needs, or None."""
Refused = Callable[[str], Awaitable[None]]


class LoopbackOnly:
    """Refuses peers on other machines; in place when no caller is configured."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403, or pass on."""
        client = scope.get("client")
        if scope["type"] != "http" or (client and is_loopback(client[0])):
            return await self._app(scope, receive, send)
        text = "No caller is configured, so only this machine is served. Add [[callers]] to capdex.toml."
        await refusal(403, "forbidden", text)(scope, receive, send)


class HostGuard:
    """Serves known Host and Origin headers alone, against DNS rebinding and foreign pages.

    Args:
        app: What follows.
        hosts: ``"name"`` for any port, or ``"name:port"``; loopback's names are always served.
        origins: Origins of other pages that may call; a page of a served host itself always may.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in (*LOOPBACK_HOSTS, *hosts))
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 421 or 403, or pass on."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._serves(hosts[0]):
            text = "This Host is not served here. Its operator can add it to allowed_hosts."
            return await refusal(421, "misdirected_request", text)(scope, receive, send)
        if not all(self._trusts(origin, hosts[0]) for origin in origins):
            text = "Pages of this origin may not call. The operator can add it to allowed_origins."
            return await refusal(403, "forbidden", text)(scope, receive, send)
        await self._app(scope, receive, send)

    def _serves(self, host: str) -> bool:
        host = host.lower()
        name = re.sub(r":[0-9]*\Z", "", host)
        return host in self._hosts or name in self._hosts

    def _trusts(self, origin: str, host: str) -> bool:
        own = {f"{scheme}://{host.lower()}" for scheme in ("http", "https")}
        return origin.lower() in self._origins or origin.lower() in own


class OneToken:
    """Takes a request with several Authorization headers for one without: parsers differ in which counts."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on."""
        headers = scope.get("headers", ())
        if sum(name.lower() == b"authorization" for name, _ in headers) > 1:
            kept = [(name, value) for name, value in headers if name.lower() != b"authorization"]
            scope = {**scope, "headers": kept}
        await self._app(scope, receive, send)


class WholeRequest:
    """Reads the body up to a limit, then runs the rest until the client goes away.

    When the client disconnects before the answer is complete, the work is cancelled, and with it
    an upstream call that is on its way.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 413, or pass on with the body in one message."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        declared = Headers(scope=scope).get("content-length", "")
        too_large = declared.isdigit() and int(declared) > self._max_bytes
        body = None if too_large else await self._read(receive)
        if body is None:
            text = f"The request is larger than {self._max_bytes} bytes."
            return await refusal(413, "payload_too_large", text)(scope, receive, send)
        await _Exchange(self._app, body, receive, send).run(scope)

    async def _read(self, receive: Receive) -> bytes | None:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return bytes(body)
            body += message.get("body", b"")
            if len(body) > self._max_bytes:
                return None
            if not message.get("more_body", False):
                return bytes(body)


class _Exchange:
    """One request whose body has been read."""

    def __init__(self, app: ASGIApp, body: bytes, receive: Receive, send: Send) -> None:
        self._app, self._body, self._receive, self._send = app, body, receive, send
        self._read = self._answered = False
        self._gone = anyio.Event()

    async def run(self, scope: Scope) -> None:
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, tasks.cancel_scope)
            try:
                await self._app(scope, self.receive, self.send)
            except Exception as error:
                failure = error  # raised below, so that it is not wrapped in a group
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def receive(self) -> Message:
        if not self._read:
            self._read = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._answered = True
        await self._send(message)

    async def _watch(self, work: anyio.CancelScope) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone.set()
        if not self._answered:
            work.cancel()


class ScopeGuard:
    """Answers 403 when the token's scopes do not cover what the request's body asks for.

    Args:
        app: What follows.
        wanted: What finds the scope that a request needs.
        refused: Told of the scope that was missing.
    """

    def __init__(self, app: ASGIApp, wanted: Wanted, refused: Refused | None = None) -> None:
        self._app = app
        self._wanted = wanted
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request whose body is one message (see :class:`WholeRequest`)."""
        message = await receive()
        granted = scope["auth"].scopes if "auth" in scope else ()
        needed = self._wanted(message.get("body", b""))
        if not granted or (needed is not None and needed not in granted):
            needed = needed or "search"
            if self._refused is not None:
                await self._refused(needed)
            response = refusal(403, "insufficient_scope", f"Your token lacks the scope {needed!r}.")
            response.headers["WWW-Authenticate"] = f'Bearer error="insufficient_scope", scope="{needed}"'
            return await response(scope, receive, send)
        pending = [message]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        await self._app(scope, replay, send)


def scope_of_call(tool_scopes: Mapping[str, str]) -> Wanted:
    """Return what finds the scope that a JSON-RPC message needs: that of the tool it calls."""

    def wanted(body: bytes) -> str | None:
        try:
            message: Any = json.loads(body)
        except (ValueError, RecursionError):
            return None
        params = message.get("params") if isinstance(message, dict) else None
        if not isinstance(params, dict) or message.get("method") != "tools/call":
            return None
        name = params.get("name")
        return tool_scopes.get(name) if isinstance(name, str) else None

    return wanted


def refusal(status: int, code: str, message: str, *, retryable: bool = False) -> JSONResponse:
    """Return an error of the HTTP level, shaped like all others."""
    return JSONResponse({"error": {"code": code, "message": message, "retryable": retryable}}, status)
