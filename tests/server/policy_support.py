"""Catalogs for questions of who may call what, and the whole service over them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capdex_engine.call import Executor, Request, Response
from capdex_engine.catalog import Catalog, Source, build_catalog
from capdex_engine.encode import Encoder
from capdex_engine.encode.testing import HashEncoder
from capdex_engine.errors import CapdexError
from capdex_engine.rank import Searcher
from capdex_server.aliases import Aliases
from capdex_server.callers import ALL_SCOPES, Caller
from capdex_server.config import RuleConfig, Settings
from capdex_server.live import Live
from capdex_server.service import Service
from capdex_server.snapshot import Snapshot
from capdex_server.tools import tools_for


@dataclass(frozen=True)
class Row:
    """One operation of a generated document."""

    source: str
    method: str
    path: str
    name: str
    summary: str
    tag: str
    broken: bool = False
    """Kept out of search: it refers to what is not there."""

    def written(self) -> dict[str, Any]:
        """Return the operation as a document has it."""
        lost = [{"$ref": "#/components/parameters/none"}] if self.broken else []
        key = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
        return {
            "operationId": self.name,
            "summary": self.summary,
            "tags": [self.tag],
            "parameters": [key, *lost] if "{id}" in self.path else lost,
            "responses": {"200": {"description": "ok"}},
        }


def documents_of(rows: Iterable[Row]) -> list[Source]:
    """Return one document per source that has a row."""
    paths: defaultdict[str, defaultdict[str, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        paths[row.source][row.path][row.method.lower()] = row.written()
    head = {"openapi": "3.0.3", "servers": [{"url": "https://api.example"}]}
    return [
        Source(
            name,
            f"{name}.json",
            json.dumps(
                {**head, "info": {"title": f"The {name} API", "version": "1"}, "paths": tree}
            ).encode(),
        )
        for name, tree in paths.items()
    ]


def caller(
    allow: Sequence[Mapping[str, Any]] = (), deny: Sequence[Mapping[str, Any]] = (), name: str = "c"
) -> Caller:
    """Return a caller with rules as the configuration writes them."""
    rules = [tuple(map(RuleConfig.model_validate, given)) for given in (allow, deny)]
    return Caller(name, "t", ALL_SCOPES, *rules)


async def unsent(request: Request, **_: Any) -> Response:
    """The network, which nothing here may reach."""
    raise AssertionError(f"sent {request.method} {request.url}")


def snapshot_of(catalog: Catalog, encoder: Encoder | None = None) -> Snapshot:
    """Return a snapshot without a server, an upstream or a disk."""
    executor = Executor(catalog, transport=unsent, clock=lambda: 0.0)
    searcher = Searcher.build(catalog.operations, encoder or HashEncoder())
    aliases = Aliases({}, (*catalog.operations, *catalog.kept_out))
    return Snapshot(catalog, executor, searcher, aliases=aliases)


async def service_of(snapshot: Snapshot, *, read_only: bool = False) -> Service:
    """Return the service that both front ends call."""

    async def build(_: object) -> Snapshot:
        return snapshot

    live = Live(build)
    await live.reload()
    return Service(live, Settings(read_only=read_only))


async def everything_said(
    service: Service, who: Caller, queries: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> dict[str, Any]:
    """Return all that a caller can hear: searches, dry runs, capabilities in full, and the tools' texts."""
    said: dict[str, Any] = {}
    for query in queries:
        said[f"search {dict(query)}"] = await service.search(who, query, explain=True)
    for name in names:
        said[f"execute {name}"] = await told(service.execute(who, {"name": name, "dryRun": True}))
        said[f"capability {name}"] = await told(service.capability(who, name))
    tools = tools_for(await service.sources(who))
    said["tools"] = [tool.model_dump(mode="json") for tool in tools]
    return said


async def told(work: Any) -> Any:
    """Return a result, or the error object."""
    try:
        return await work
    except CapdexError as error:
        return error.payload()


def catalog_of(rows: Iterable[Row]) -> Catalog:
    """Return the rows' catalog."""
    return build_catalog(documents_of(rows))
