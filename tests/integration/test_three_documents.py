"""Three real documents as one catalog: an agent's session through the endpoint, in both protocol eras."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import yaml
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from capdex_engine.call import Request, Response
from capdex_engine.encode import Encoder
from capdex_server.app import create_app
from capdex_server.config import Settings, sources_for
from capdex_server.live import Live, Snapshot, build_snapshot
from capdex_server.outbound import Outbound
from integration.recorder import Recorder, recording_upstream
from planted import planted

DOCUMENTS = ("github-rest.json", "slack-web.swagger2.json", "docker-engine.swagger2.yaml")
METHODS = {"get", "put", "post", "delete", "patch", "head", "options"}
TOKEN = planted("orchard token")
ERAS = ("legacy", "2026-07-28")


@pytest.fixture(scope="module")
def upstream() -> Iterator[Recorder]:
    with recording_upstream() as recorder:
        yield recorder


@pytest.fixture(scope="module")
def settings(specs: Path, upstream: Recorder, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    sources = sources_for([str(specs / name) for name in DOCUMENTS], server=f"{upstream.url}/base")
    return Settings(sources=sources, cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def snapshot(settings: Settings, encoder: Encoder) -> Snapshot:
    async def send(request: Request, *, source: str, timeout: float, max_bytes: int) -> Response:
        # Each test has an event loop of its own, and connections belong to one loop.
        outbound = Outbound.from_settings(settings)
        try:
            return await outbound(request, source=source, timeout=timeout, max_bytes=max_bytes)
        finally:
            await outbound.aclose()

    async def build() -> Snapshot:
        return await build_snapshot(
            settings,
            outbound=Outbound.from_settings(settings),
            encoder=lambda: encoder,
            environ={},
            credentials={"slack-web.swagger2": {"slackAuth": {"token": TOKEN}}},
            transport=send,
        )

    return anyio.run(build)


@asynccontextmanager
async def session(snapshot: Snapshot, settings: Settings, era: str) -> AsyncIterator[Client]:
    async def built(_: object = None) -> Snapshot:
        return snapshot

    app = create_app(Live(built), settings)
    base = "http://127.0.0.1:8000"
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=base) as http,
        Client(streamable_http_client(f"{base}/mcp/agent", http_client=http), mode=era) as client,
    ):
        yield client


async def search(client: Client, query: str) -> list[dict[str, Any]]:
    result = await client.call_tool("search_capabilities", {"query": query, "limit": 5})
    assert not result.is_error, result
    return result.structured_content["matches"]


def test_the_catalog_holds_every_operation_of_the_three(snapshot: Snapshot, specs: Path) -> None:
    documents = [yaml.load((specs / name).read_bytes(), yaml.CSafeLoader) for name in DOCUMENTS]
    expected = {
        (method.upper(), path)
        for document in documents
        for path, item in document["paths"].items()
        for method in METHODS & set(item)
    }
    assert not snapshot.failures
    assert {(one.method, one.path) for one in snapshot.catalog.operations} == expected
    assert not snapshot.catalog.kept_out


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_there_are_exactly_two_tools(snapshot: Snapshot, settings: Settings, era: str) -> None:
    async with session(snapshot, settings, era) as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == ["search_capabilities", "execute_capability"]


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("query", "right"),
    [
        (
            "stop someone from writing in our channel",
            {"POST /conversations.kick", "POST /admin.conversations.setConversationPrefs"},
        ),
        ("who starred my repo", {"GET /repos/{owner}/{repo}/stargazers"}),
        ("free up disk space from stopped containers", {"POST /containers/prune"}),
    ],
)
async def test_a_need_in_ones_own_words_is_found_in_the_top_five(
    snapshot: Snapshot, settings: Settings, era: str, query: str, right: set[str]
) -> None:
    async with session(snapshot, settings, era) as client:
        found = {f"{match['method']} {match['path']}" for match in await search(client, query)}
    assert found & right, found


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_a_call_reaches_the_upstream_as_its_document_says(
    snapshot: Snapshot, settings: Settings, upstream: Recorder, era: str
) -> None:
    async with session(snapshot, settings, era) as client:
        (match, *_) = await search(client, "POST /repos/{owner}/{repo}/issues")
        assert match["required"] == {"pathParams": ["owner", "repo"], "queryParams": [], "body": True}
        result = await client.call_tool(
            "execute_capability",
            {
                "name": match["name"],
                "pathParams": {"owner": "octo org", "repo": "a/b"},
                "body": {"title": "Ünïcode", "assignee": None},
                "schemaDigest": match["schemaDigest"],
            },
        )
    assert not result.is_error
    assert result.structured_content["status"] == 200
    request = upstream.requests[-1]
    assert (request.method, request.target) == ("POST", "/base/repos/octo%20org/a%2Fb/issues")
    assert request.headers["content-type"] == "application/json"
    assert json.loads(request.body) == {"title": "Ünïcode", "assignee": None}


@pytest.mark.anyio
async def test_a_credential_is_added_on_the_server_and_never_shown(
    snapshot: Snapshot, settings: Settings, upstream: Recorder
) -> None:
    async with session(snapshot, settings, "legacy") as client:
        match = next(row for row in await search(client, "conversations.archive") if row["executable"])
        call = {"name": match["name"], "body": {"channel": "C1"}}
        dry = await client.call_tool("execute_capability", {**call, "dryRun": True})
        result = await client.call_tool("execute_capability", call)
    assert TOKEN not in json.dumps([dry.structured_content, result.structured_content])
    request = upstream.requests[-1]
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.target == "/base/conversations.archive"
