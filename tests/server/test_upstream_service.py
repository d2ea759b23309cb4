"""Tools of MCP servers through the endpoint: permission, results unchanged, errors as for operations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from capdex_engine.encode.testing import HashEncoder
from capdex_engine.errors import DocumentError, UnknownCapability
from capdex_server.agent import build_server
from capdex_server.callers import Caller
from capdex_server.config import CallerConfig, Settings, SourceConfig
from capdex_server.live import Live
from capdex_server.outbound import Outbound
from capdex_server.pieces import ToolsPiece
from capdex_server.service import Service
from capdex_server.sources import read_source
from capdex_server.upstream.upstreams import Upstreams

pytestmark = pytest.mark.anyio
ERAS = ("legacy", "2026-07-28")
TOOLS: list[dict[str, Any]] = [
    {"name": "read_note", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "burn_note", "inputSchema": {"type": "object", "required": ["id"], "properties": {"id": {}}}},
]


class Notes:
    """A server of notes that answers what the test says."""

    server: Any = {"name": "notes"}  # noqa: RUF012

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def list_page(self, _: Any, __: Any) -> Any:
        return {"tools": TOOLS}

    async def call(self, tool: str, arguments: dict[str, Any], timeout: float) -> dict[str, Any]:
        self.calls.append((tool, arguments))
        return self.answer

    async def ended(self) -> None:
        import anyio

        await anyio.sleep_forever()

    @asynccontextmanager
    async def connect(self, _: Callable[[], None]) -> AsyncIterator[Any]:
        yield self


@asynccontextmanager
async def service_of(
    tmp_path: Path, notes: Notes, *, trusted: bool = True, read_only: bool = False
) -> AsyncIterator[Service]:
    source = SourceConfig(location="mcp://notes", kind="mcp", command=("x",), trusted=trusted)
    settings = Settings(sources={"notes": source}, cache=tmp_path, read_only=read_only)
    upstreams = Upstreams(settings, {}, connect=lambda *_: notes.connect)
    live = Live.from_settings(
        settings,
        outbound=Outbound.from_settings(settings),
        encoder=HashEncoder,
        environ={},
        upstreams=upstreams,
    )
    async with upstreams:
        await live.reload()
        yield Service(live, settings)


def caller(*allow: dict[str, Any]) -> Caller:
    config = CallerConfig.model_validate(
        {"name": "c", "tenant": "t", "token_sha256": "0" * 64, "allow": list(allow or ({},))}
    )
    return Caller(config.name, config.tenant, config.scopes, config.allow, config.deny)


def seen(service: Service, who: Caller) -> set[str]:
    snapshot = service.live.current
    return {one.name for one in snapshot.catalog.operations if snapshot.allows(who, service.policy)(one)}


async def test_rules_hold_for_tools_as_for_operations(tmp_path: Path) -> None:
    reader = caller({"source": "notes", "readOnly": True})
    async with service_of(tmp_path, Notes({"content": []})) as service:
        assert seen(service, reader) == {"read_note"}
        assert seen(service, caller({"method": "mcp"})) == {"read_note", "burn_note"}
        assert seen(service, caller({"path": "mcp://other/*"})) == set()
        with pytest.raises(UnknownCapability):
            await service.execute(reader, {"name": "burn_note", "body": {"id": 1}})
        found = (await service.search(reader, {"query": "burn note read note"}))["matches"]
        assert [one["name"] for one in found] == ["read_note"]
    async with service_of(tmp_path, Notes({"content": []}), trusted=False) as service:
        assert seen(service, reader) == set()
    async with service_of(tmp_path, Notes({"content": []}), read_only=True) as service:
        assert seen(service, caller()) == {"read_note"}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "answer",
    [
        {"content": [{"type": "text", "text": "hello"}]},
        {"content": [{"type": "text", "text": "no"}], "isError": True},
        {"content": [], "structuredContent": {"status": 500, "deep": [{"a": None}]}},
        {
            "content": [
                {"type": "image", "data": "QUJD", "mimeType": "image/png", "annotations": {"priority": 0.5}},
                {"type": "resource_link", "uri": "note://1", "name": "one"},
                {"type": "resource", "resource": {"uri": "note://1", "text": "t", "mimeType": "text/plain"}},
            ],
            "_meta": {"own/key": 1},
        },
    ],
    ids=["text", "error", "structured", "blocks"],
)
async def test_a_tools_result_reaches_the_agent_unchanged(
    tmp_path: Path, era: str, answer: dict[str, Any]
) -> None:
    async with (
        service_of(tmp_path, Notes(answer)) as service,
        Client(build_server(service, caller), mode=era) as client,
    ):
        await client.list_tools()
        result = await client.call_tool("execute_capability", {"name": "read_note"})
    shown = result.model_dump(by_alias=True, mode="json", exclude_unset=True)
    assert shown["content"] == answer["content"]
    assert shown.get("structuredContent") == answer.get("structuredContent")
    assert shown.get("isError", False) == answer.get("isError", False)
    assert shown["_meta"].keys() >= {*answer.get("_meta", {}), "elapsedMs", "revision"}


@pytest.mark.parametrize("era", ERAS)
async def test_errors_before_the_call_are_error_objects(tmp_path: Path, era: str) -> None:
    notes = Notes({"content": []})
    async with (
        service_of(tmp_path, notes) as service,
        Client(build_server(service, caller), mode=era) as client,
    ):
        result = await client.call_tool("execute_capability", {"name": "burn_note"})
        dry = await client.call_tool("execute_capability", {"name": "read_note", "dryRun": True})
    assert result.is_error and result.structured_content["error"]["code"] == "invalid_capability_arguments"
    assert dry.structured_content == {"tool": "read_note", "source": "notes", "arguments": {}}
    assert notes.calls == []


def test_what_is_wrong_with_a_server_stands_beside_its_tools() -> None:
    config = SourceConfig(location="mcp://notes", kind="mcp", command=("x",))
    data = b'{"server":{},"tools":[],"quarantine":[]}'
    limits = Settings().documents
    up = read_source("notes", config, ToolsPiece(data), limits)
    down = read_source("notes", config, ToolsPiece(data, down="It ended."), limits)
    odd = read_source("notes", config, ToolsPiece(data, problem="It lists too much."), limits)
    assert (up.trouble, up.docs[0].down) == (None, None)
    assert ("cannot be called" in str(down.trouble), down.docs[0].down) == (True, "It ended.")
    assert ("stay in use" in str(odd.trouble), odd.docs[0].down) == (True, None)
    assert not up.same_as(down) and not up.same_as(odd) and up.docs[0].same_as(odd.docs[0])
    failed = read_source("notes", config, DocumentError("never"), limits)
    assert failed.error is not None and failed.docs == []
