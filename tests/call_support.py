"""Hand-made capabilities, so that calls are tested without documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from capdex_engine.call import Executor, Request, Response
from capdex_engine.operation import SLOTS, Body, MediaType, Operation, OperationDetails, Parameter

STYLES = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}


def parameter(name: str, location: str = "query", schema: Any = True, **more: Any) -> Parameter:
    style = more.pop("style", STYLES[location])
    more.setdefault("explode", style in {"form", "deepObject"})
    more.setdefault("required", location == "path")
    return Parameter(name=name, location=location, schema=schema, style=style, **more)


def json_body(schema: Any = True, *, required: bool = True, content_type: str = "application/json") -> Body:
    return Body(required=required, media_types=(MediaType(content_type, schema),))


def details(*parameters: Parameter, body: Body | None = None, **more: Any) -> OperationDetails:
    more.setdefault("base_url", "https://api.test")
    return OperationDetails(parameters=parameters, body=body, **more)


def operation(method: str = "GET", path: str = "/x", **more: Any) -> Operation:
    more.setdefault("name", "op")
    more.setdefault("source", "src")
    more.setdefault("schema_digest", "sha256:new")
    return Operation(method=method, path=path, **more)


class FakeCatalog:
    """Capabilities by name; ``near`` answers every permitted name."""

    revision = "r1"

    def __init__(self, capabilities: Mapping[Operation, OperationDetails]) -> None:
        self.capabilities = dict(capabilities)

    def get(self, name: str, *, allowed: Callable[[Operation], bool] | None = None) -> Operation | None:
        return next((each for each in self.capabilities if each.name == name), None)

    def details(self, operation: Operation) -> OperationDetails:
        return self.capabilities[operation]

    def arguments_schema(self, operation: Operation, *, with_body: bool = False) -> dict[str, Any]:
        return {"type": "object", "properties": {slot: {} for slot in SLOTS.values()}}

    def near(
        self, name: str, *, limit: int = 3, allowed: Callable[[Operation], bool] | None = None
    ) -> list[str]:
        return [each.name for each in self.capabilities if allowed is None or allowed(each)][:limit]


class Upstream:
    """A transport that records requests and answers what it was given."""

    def __init__(self, answer: Response | Exception | None = None) -> None:
        self.answer = answer or Response(200, (("Content-Type", "application/json"),), b"{}", False)
        self.requests: list[Request] = []
        self.options: list[dict[str, Any]] = []

    async def __call__(self, request: Request, **options: Any) -> Response:
        self.requests.append(request)
        self.options.append(options)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Clock:
    """Advances by a quarter second a look."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        self.now += 0.25
        return self.now


def executor(
    found: OperationDetails, of: Operation | None = None, *, upstream: Upstream | None = None, **more: Any
) -> Executor:
    catalog = FakeCatalog({of or operation(): found})
    return Executor(catalog, transport=upstream or Upstream(), clock=Clock(), **more)


def prepared(found: OperationDetails, of: Operation | None = None, **call: Any) -> dict[str, Any]:
    """Return what a dry run shows, credentials in clear."""
    return executor(found, of).prepare({"name": "op", **call}, show_credentials=True)
