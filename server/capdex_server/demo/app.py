"""The demo API as an ASGI app: routes from the document, answers from the handlers."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from capdex_server.demo.answers import File, Handler
from capdex_server.demo.contract import Endpoint, load_contract
from capdex_server.demo.document import API_KEY_HEADER, demo_document
from capdex_server.demo.handlers import HANDLERS
from capdex_server.demo.problems import Problem, conflict
from capdex_server.demo.reading import Call, read_call
from capdex_server.demo.seed import seed
from capdex_server.demo.store import Store, Tables, utc_now


def create_demo_app(
    database: Path | str = ":memory:", *, api_key: str, now: Callable[[], datetime] = utc_now
) -> ASGIApp:
    """Build the Workforce API over a database.

    Args:
        database: SQLite file, kept between runs, or ``:memory:``. An empty one is filled with
            made-up people, shifts and bills around the present week.
        api_key: What callers have to send as ``X-Workforce-Key``.
        now: The clock.
    """
    store = Store(database, now=now)
    with store.transaction() as tables:
        seed(tables)
    return Starlette(
        routes=[_route(endpoint, store, api_key) for endpoint in load_contract(demo_document())],
        exception_handlers={Problem: _on_problem, HTTPException: _on_http_exception},
    )


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def _route(endpoint: Endpoint, store: Store, api_key: str) -> Route:
    handler = HANDLERS[endpoint.operation_id]

    async def serve(request: Request) -> Response:
        if not endpoint.public:
            _authorise(request, api_key)
        call = await read_call(endpoint, request)
        reply = await run_in_threadpool(_answer, endpoint, handler, store, call)
        return Response(reply.body, reply.status, dict(reply.headers))

    return Route(endpoint.path, serve, methods=[endpoint.method], name=endpoint.operation_id)


def _authorise(request: Request, api_key: str) -> None:
    given = request.headers.get(API_KEY_HEADER, "")
    if not hmac.compare_digest(given.encode(), api_key.encode()):
        raise Problem(401, "unauthorized", f"Send your account's key in the header {API_KEY_HEADER}.")


def _answer(endpoint: Endpoint, handler: Handler, store: Store, call: Call) -> _Reply:
    with store.transaction() as tables:
        key = call.values.get("Idempotency-Key")
        if key is None:
            return _reply(endpoint, handler(tables, call))
        return _once(tables, key, endpoint, handler, call)


def _once(tables: Tables, key: str, endpoint: Endpoint, handler: Handler, call: Call) -> _Reply:
    """Answer a request with an idempotency key: anew, or as it was answered before."""
    names = {"key": key, "operation": endpoint.operation_id}
    digest = hashlib.sha256(json.dumps([dict(call.values), call.body], sort_keys=True).encode()).hexdigest()
    kept = tables.find("SELECT * FROM replays WHERE key = :key AND operation = :operation", names)
    if kept and kept[0]["digest"] != digest:
        raise conflict("idempotency-key-reused", "The key was used before, for another request.")
    if kept:
        headers = {**json.loads(kept[0]["headers"]), "Idempotency-Replayed": "true"}
        return _Reply(kept[0]["status"], kept[0]["body"], headers)
    reply = _reply(endpoint, handler(tables, call))
    answer = {"status": reply.status, "headers": dict(reply.headers), "body": reply.body}
    tables.insert("replays", {**names, "digest": digest, **answer})
    return reply


def _reply(endpoint: Endpoint, value: Any) -> _Reply:
    if isinstance(value, File):
        disposition = f'attachment; filename="{value.name}"'
        headers = {"Content-Type": value.content_type, "Content-Disposition": disposition}
        # Uploaded bytes are never to be run as a page of this origin.
        return _Reply(endpoint.success, value.content, {**headers, "X-Content-Type-Options": "nosniff"})
    if endpoint.success == 204:
        return _Reply(204)
    headers = {"Content-Type": "application/json"}
    if endpoint.has_location:
        headers["Location"] = f"{endpoint.path}/{value['id']}"
    return _Reply(endpoint.success, _json(value), headers)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


async def _on_problem(request: Request, error: Exception) -> Response:
    if not isinstance(error, Problem):
        raise error
    return Response(_json(error.body()), error.status, media_type="application/problem+json")


async def _on_http_exception(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    code = {404: "no-such-path", 405: "method-not-allowed"}.get(error.status_code, "http-error")
    body = Problem(error.status_code, code, f"{request.method} {request.url.path}: {error.detail}.").body()
    return Response(
        _json(body), error.status_code, dict(error.headers or {}), media_type="application/problem+json"
    )
