"""REST twins of the two tools, one capability in full, and the health of the server."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, ClassVar, Final, Literal

from fastapi import APIRouter, Depends, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from capdex_engine.call.issues import issue
from capdex_engine.call.tool import EXECUTE_INPUT
from capdex_engine.errors import CapdexError, InvalidRequest
from capdex_engine.rank.tool import SEARCH_INPUT
from capdex_server.audit import Audit
from capdex_server.callers import EXECUTE_SCOPE, SEARCH_SCOPE, Caller, Callers
from capdex_server.service import Service
from capdex_server.skills_resource import SKILLS_OUTPUT
from capdex_server.tools import EXECUTE_OUTPUT, SEARCH_OUTPUT


class JsonAnswer(JSONResponse):
    """JSON whose texts may hold halves of surrogate pairs, which UTF-8 cannot carry: they become "?"."""

    def render(self, content: Any) -> bytes:
        """Return the bytes to send."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


class Unauthorized(CapdexError):
    """The token is missing or wrong."""

    code: ClassVar[str] = "unauthorized"
    http_status: ClassVar[int] = 401

    def __init__(self) -> None:
        super().__init__("Send a valid token: 'Authorization: Bearer TOKEN'.")


class InsufficientScope(CapdexError):
    """The token is right, but not for this."""

    code: ClassVar[str] = "insufficient_scope"
    http_status: ClassVar[int] = 403

    def __init__(self, scope: str) -> None:
        super().__init__(f"Your token lacks the scope {scope!r}.", scope=scope)


class ErrorBody(BaseModel):
    """What went wrong and what to do next."""

    model_config = ConfigDict(extra="allow")

    code: str
    message: str
    retryable: bool
    capability: str | None = None


class ErrorAnswer(BaseModel):
    """Every error's shape."""

    error: ErrorBody


class Health(BaseModel):
    """The process is up."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """Whether there is a catalog to answer from."""

    status: Literal["ok", "degraded", "starting", "failed"]
    revision: str | None = None
    """Of the live catalog."""
    operations: int | None = None
    """In search, for you."""
    reasons: dict[str, str] | None = Field(
        default=None, description="Source (or part of the server) -> what failed."
    )


_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": ErrorAnswer} for status in (400, 401, 403, 404, 413, 421, 500, 503)
}
_CALL_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    **_ERRORS,
    **{status: {"model": ErrorAnswer} for status in (409, 422, 424, 429, 502, 504)},
}


_ROUTING: Final = {
    404: ("not_found", "There is nothing at this path. GET /openapi.json lists what there is."),
    405: ("method_not_allowed", "This path has no such method. GET /openapi.json lists what there is."),
}


def _json_schema(schema: Any, description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": dict(schema)}}}


def _body(schema: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": dict(schema)}}}}


def build_router(service: Service, callers: Callers) -> APIRouter:
    """Return the routes; every input schema is the tools' own."""
    router = APIRouter()
    searcher = Depends(_with_scope(callers, SEARCH_SCOPE))
    executor = Depends(_with_scope(callers, EXECUTE_SCOPE, service.trails.audit))

    async def read(request: Request, caller: Caller, tool: str) -> Any:
        try:
            return await _input(request)
        except InvalidRequest:
            await service.quotas.wrong(caller.tenant, tool)
            raise

    @router.post(
        "/search",
        summary="Find API operations by what you want to do",
        responses={**_ERRORS, 200: _json_schema(SEARCH_OUTPUT, "The matches, best first")},
        openapi_extra=_body(SEARCH_INPUT),
    )
    async def search(request: Request, caller: Caller = searcher) -> Response:
        return JsonAnswer(await service.search(caller, await read(request, caller, SEARCH_SCOPE)))

    @router.post(
        "/execute",
        summary="Call one operation",
        responses={**_CALL_ERRORS, 200: _json_schema(EXECUTE_OUTPUT, "The upstream's response")},
        openapi_extra=_body(EXECUTE_INPUT),
    )
    async def execute(request: Request, caller: Caller = executor) -> Response:
        try:
            arguments = await read(request, caller, EXECUTE_SCOPE)
        except InvalidRequest as error:
            await service.trails.audit.refused(caller, error.code)
            raise
        return JsonAnswer(await service.execute(caller, arguments))

    @router.get(
        "/capabilities/{name:path}",
        summary="Everything about one capability, with its response schemas",
        responses={
            **_ERRORS,
            409: {"model": ErrorAnswer},
            # In place of FastAPI's own 422, which is never sent.
            "default": {"model": ErrorAnswer},
            200: _json_schema({"type": "object"}, "The capability"),
        },
    )
    async def capability(
        name: Annotated[str, Path(description="A name, or METHOD /path.", max_length=2000)],
        caller: Caller = searcher,
    ) -> Response:
        return JsonAnswer(await service.capability(caller, name))

    @router.get(
        "/skills",
        summary="The remote skills you may use, and the text about them for a prompt",
        responses={**_ERRORS, 200: _json_schema(SKILLS_OUTPUT, "The skills")},
    )
    async def skills(caller: Caller = searcher) -> Response:
        return JsonAnswer(await service.skills(caller))

    _add_health(router, service, callers)
    return router


def _add_health(router: APIRouter, service: Service, callers: Callers) -> None:
    @router.get("/healthz", summary="Whether the process is up")
    async def healthz() -> Health:
        return Health()

    @router.get(
        "/readyz",
        summary="Whether there is a catalog to answer from",
        response_model=Readiness,
        response_model_exclude_none=True,
        responses={503: {"model": Readiness}},
    )
    async def readyz(request: Request) -> Response:
        readiness = _readiness(service, _known(request, callers), await service.quotas.problem())
        body = readiness.model_dump(exclude_none=True)
        return JsonAnswer(body, 200 if readiness.status in {"ok", "degraded"} else 503)


def on_error(_: Request, error: Exception) -> Response:
    """Answer a :class:`CapdexError` with its own status."""
    assert isinstance(error, CapdexError)  # noqa: S101 - registered for this class
    response = JsonAnswer(error.payload(), error.http_status)
    if isinstance(error, Unauthorized):
        response.headers["WWW-Authenticate"] = 'Bearer error="invalid_token"'
    elif isinstance(error, InsufficientScope):
        scope = error.details["scope"]
        response.headers["WWW-Authenticate"] = f'Bearer error="insufficient_scope", scope="{scope}"'
    if "retryAfter" in error.details:
        response.headers["Retry-After"] = str(error.details["retryAfter"])
    return response


def on_http_error(_: Request, error: Exception) -> Response:
    """Answer what the router refuses in the shape of all errors."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class
    code, message = _ROUTING.get(error.status_code, ("http_error", str(error.detail)))
    body = {"error": {"code": code, "message": message, "retryable": False}}
    return JsonAnswer(body, error.status_code, headers=error.headers)


def on_invalid(_: Request, error: Exception) -> Response:
    """Answer a path that does not fit its route; what was sent is not echoed."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class
    issues = [
        issue(str(one["loc"][0]), tuple(one["loc"][1:]), one["type"], one["msg"]) for one in error.errors()
    ]
    refusal = InvalidRequest(f"The request does not fit this route: {issues[0]['message']}.", issues=issues)
    return on_error(_, refusal)


async def _input(request: Request) -> Any:
    try:
        return json.loads(await request.body())
    except (ValueError, RecursionError):
        issue = {"in": "input", "pointer": "", "keyword": "json", "message": "the body is not valid JSON"}
        raise InvalidRequest("The body is not valid JSON. Send one JSON object.", issues=[issue]) from None


def _known(request: Request, callers: Callers) -> Caller | None:
    """Return the caller of a request, or None without a valid token."""
    if callers.anonymous is not None or isinstance(request.scope.get("user"), AuthenticatedUser):
        return callers.current()
    return None


def _with_scope(
    callers: Callers, scope: str, audit: Audit | None = None
) -> Callable[[Request], Awaitable[Caller]]:
    async def caller(request: Request) -> Caller:
        known = _known(request, callers)
        if known is None:
            raise Unauthorized
        if scope not in known.scopes:
            if audit is not None:
                await audit.refused(known, InsufficientScope.code)
            raise InsufficientScope(scope)
        return known

    return caller


def _readiness(service: Service, caller: Caller | None, quotas: str | None) -> Readiness:
    """Return the state, with reasons for the sources that the caller may know of."""
    live, audit = service.live, service.trails.audit
    troubled = bool(service.problems()) or live.failure is not None or audit.problem is not None
    if live.ready:
        healthy = not troubled and quotas is None
        status: Literal["ok", "degraded", "starting", "failed"] = "ok" if healthy else "degraded"
    else:
        status = "failed" if live.problems or live.failure else "starting"
    if caller is None:
        return Readiness(status=status)
    permitted = live.current.permissions(caller, service.policy) if live.ready else None
    reasons = service.problems(caller)
    if live.failure:
        hidden = "The catalog could not be built anew; the server's log says why."
        reasons["catalog"] = live.failure if service.policy.may_know_all(caller) else hidden
    if audit.problem:
        reasons["audit"] = audit.problem
    if quotas:
        reasons["quotas"] = quotas
    return Readiness(
        status=status,
        revision=permitted.revision if permitted else None,
        operations=int(permitted.mask.sum()) if permitted else None,
        reasons=reasons or None,
    )
