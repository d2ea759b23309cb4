"""The HTTP application: MCP at ``/mcp/agent``, REST twins beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from capdex_engine import __version__
from capdex_engine.errors import CapdexError
from capdex_server.agent import build_server
from capdex_server.callers import EXECUTE_SCOPE, Callers
from capdex_server.config import Settings
from capdex_server.live import Live
from capdex_server.logs import get_logger
from capdex_server.middleware import (
    HostGuard,
    LoopbackOnly,
    OneToken,
    ScopeGuard,
    WholeRequest,
    scope_of_call,
)
from capdex_server.quotas import Quotas
from capdex_server.rest import InsufficientScope, build_router, on_error, on_http_error, on_invalid
from capdex_server.service import Service
from capdex_server.shedding import Shedding
from capdex_server.tools import TOOL_SCOPES, tools_for
from capdex_server.trails import open_trails
from capdex_server.watch import keep_current

_log = get_logger(__name__)


def create_app(live: Live, settings: Settings, *, quotas: Quotas | None = None) -> FastAPI:
    """Return the application; it builds its first catalog once it has started, and keeps it current.

    Args:
        live: The holder of the catalog.
        settings: The configuration.
        quotas: Counted with; those of the settings, unless their backend needs the environment.

    Raises:
        ConfigurationError: No caller is configured and the host is not loopback; a trail cannot be written;
            or a quota's backend lacks something.
    """
    callers = Callers(settings)
    service = Service(
        live,
        settings,
        trails=open_trails(settings),
        quotas=quotas or Quotas.from_settings(settings.quotas, {}),
    )
    for caller, when in callers.expiring():
        _log.warning("token.expires", caller=caller, when=when)
    # Host and Origin are checked for every route by HostGuard, not by mcp's own settings.
    manager = StreamableHTTPSessionManager(
        build_server(service, callers.current),
        json_response=True,
        stateless=True,
        max_request_body_size=settings.limits.max_request_bytes,
    )
    app = FastAPI(
        title="capdex",
        version=__version__,
        description="Find API operations by what you want to do, and call them.",
        lifespan=_lifespan(live, settings, manager, service.quotas),
        redirect_slashes=False,
        # FastAPI's own pages load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
    )
    app.include_router(build_router(service, callers))
    app.add_exception_handler(CapdexError, on_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_invalid)
    _add_agent(app, service, callers, manager)
    _add_middleware(app, callers, settings)
    return app


def _lifespan(
    live: Live, settings: Settings, manager: StreamableHTTPSessionManager, quotas: Quotas
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with manager.run(), anyio.create_task_group() as tasks:
            tasks.start_soon(keep_current, live, settings)
            yield
            tasks.cancel_scope.cancel()
        await quotas.aclose()

    return lifespan


def _add_agent(
    app: FastAPI, service: Service, callers: Callers, manager: StreamableHTTPSessionManager
) -> None:
    endpoint: ASGIApp = AgentEndpoint(StreamableHTTPASGIApp(manager), service, callers)
    if callers.anonymous is None:
        endpoint = ScopeGuard(endpoint, scope_of_call(TOOL_SCOPES), _refused(service, callers))
        endpoint = RequireAuthMiddleware(endpoint, [])
    for path in ("/mcp/agent", "/mcp/agent/"):
        app.router.routes.append(Route(path, endpoint=endpoint, methods=["GET", "POST"]))


def _refused(service: Service, callers: Callers) -> Callable[[str], Awaitable[None]]:
    async def refused(scope: str) -> None:
        if scope == EXECUTE_SCOPE:
            await service.trails.audit.refused(callers.current(), InsufficientScope.code)

    return refused


def _add_middleware(app: FastAPI, callers: Callers, settings: Settings) -> None:
    """Add from the inside out."""
    app.add_middleware(AuthContextMiddleware)
    app.add_middleware(AuthenticationMiddleware, backend=BearerAuthBackend(callers))
    app.add_middleware(OneToken)
    app.add_middleware(WholeRequest, max_bytes=settings.limits.max_request_bytes)
    app.add_middleware(Shedding, max_in_flight=settings.limits.max_in_flight)
    own = f"[{settings.host}]" if ":" in settings.host else settings.host
    app.add_middleware(HostGuard, hosts=(own, *settings.allowed_hosts), origins=settings.allowed_origins)
    if callers.anonymous is not None:
        app.add_middleware(LoopbackOnly)


class AgentEndpoint:
    """``/mcp/agent``: POST speaks MCP; GET tells a program which tools there are."""

    def __init__(self, mcp: ASGIApp, service: Service, callers: Callers) -> None:
        self._mcp = mcp
        self._service = service
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Dispatch by method."""
        if scope["method"] == "POST":
            return await self._mcp(scope, receive, send)
        response = await self._discovery(Headers(scope=scope).get("accept", ""))
        await response(scope, receive, send)

    async def _discovery(self, accept: str) -> Response:
        kinds = {kind.partition(";")[0].strip().lower() for kind in accept.split(",")}
        if not kinds & {"", "*/*", "application/*", "application/json"}:
            # There is no stream to listen to: the server is stateless.
            status = 405 if "text/event-stream" in kinds else 406
            return Response(status_code=status, headers={"Allow": "POST"} if status == 405 else None)
        tools = tools_for(await self._service.sources(self._callers.current()))
        return JSONResponse(
            {"tools": [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]}
        )
