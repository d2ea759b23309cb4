from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from mcp import Client, MCPError

from capdex_engine.call import Response
from capdex_engine.errors import UpstreamTimeout
from capdex_server.agent import build_server
from capdex_server.callers import LOCAL
from capdex_server.live import SourceSummary
from capdex_server.service import Service
from capdex_server.tools import INSTRUCTIONS, tools_for
from planted import planted

pytestmark = pytest.mark.anyio
MODES = ["auto", "legacy", "2026-07-28"]


@pytest.fixture(params=MODES)
def mode(request) -> str:
    return request.param


@pytest.fixture
def connect(make_settings, make_live):
    """A session of the official client with a freshly built catalog."""

    @asynccontextmanager
    async def connected(mode: str = "auto", caller=LOCAL, **fields):
        settings = make_settings(**fields)
        live = make_live(settings)
        assert await live.reload()
        async with Client(build_server(Service(live, settings), lambda: caller), mode=mode) as client:
            yield client

    return connected


def error_of(result) -> dict:
    assert result.is_error
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content["error"]


async def test_there_are_exactly_two_tools_with_schemas_and_annotations(connect, mode):
    async with connect(mode) as client:
        search, execute = (await client.list_tools()).tools
    assert [search.name, execute.name] == ["search_capabilities", "execute_capability"]
    assert search.annotations.read_only_hint and search.annotations.idempotent_hint
    assert execute.annotations.open_world_hint and not execute.annotations.read_only_hint
    assert search.output_schema
    # A tool of an MCP server answers as it likes, and its result passes through.
    assert execute.output_schema is None
    assert "mail" in search.description and "shop (Shop API)" in search.description


async def test_search_answers_text_and_the_same_as_structure(connect, mode):
    async with connect(mode) as client:
        await client.list_tools()
        found = await client.call_tool("search_capabilities", {"query": "create an order", "limit": 2})
    assert not found.is_error
    assert json.loads(found.content[0].text) == found.structured_content
    assert found.structured_content["matches"][0]["name"] == "createOrder"


async def test_what_was_found_can_be_executed(connect, mode, upstream):
    async with connect(mode) as client:
        await client.list_tools()
        found = await client.call_tool("search_capabilities", {"query": "createOrder", "limit": 1})
        match = found.structured_content["matches"][0]
        done = await client.call_tool(
            "execute_capability",
            {"name": match["name"], "schemaDigest": match["schemaDigest"], "body": {"item": "tea"}},
        )
    assert not done.is_error
    assert (done.structured_content["status"], done.structured_content["body"]) == (200, {"source": "shop"})
    sent = upstream.requests[0]
    assert (sent.method, sent.url) == ("POST", "https://shop.example/v1/orders")
    assert json.loads(sent.body) == {"item": "tea"}
    assert ("X-Key", planted("shop key")) in sent.headers


async def test_a_dry_run_fits_the_output_schema_and_sends_nothing(connect, mode, upstream):
    async with connect(mode) as client:
        await client.list_tools()
        shown = await client.call_tool(
            "execute_capability", {"name": "createOrder", "body": {"item": "tea"}, "dryRun": True}
        )
    assert shown.structured_content["method"] == "POST"
    assert planted("shop key") not in shown.content[0].text
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("search_capabilities", {}, "invalid_request"),
        ("search_capabilities", {"query": "  "}, "invalid_request"),
        ("search_capabilities", {"query": "x", "limit": 99}, "invalid_request"),
        ("search_capabilities", {"query": "x", "unknown": 1}, "invalid_request"),
        ("execute_capability", {}, "invalid_request"),
        ("execute_capability", {"name": "nope"}, "unknown_capability"),
        ("execute_capability", {"name": "getOrder"}, "invalid_capability_arguments"),
    ],
)
async def test_errors_are_results(connect, mode, tool, arguments, code):
    async with connect(mode) as client:
        error = error_of(await client.call_tool(tool, arguments))
    assert error["code"] == code
    assert code == "unknown_capability" or error["issues"]


async def test_an_unknown_tool_is_a_protocol_error(connect, mode):
    async with connect(mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("other", {})
    assert caught.value.code == -32602


async def test_an_upstream_that_fails_is_said_as_it_is(connect, upstream):
    async def fail(request):
        raise UpstreamTimeout("slow", retryable=True)

    upstream.answer = fail
    async with connect() as client:
        error = error_of(await client.call_tool("execute_capability", {"name": "listOrders"}))
    assert (error["code"], error["retryable"], error["capability"]) == (
        "upstream_timeout",
        True,
        "listOrders",
    )


@pytest.mark.parametrize(("status", "is_error"), [(204, False), (302, False), (404, True), (503, True)])
async def test_a_response_from_400_on_is_an_error_result_with_the_response(
    connect, upstream, status, is_error
):
    async def answer(request):
        return Response(status, (), b"", truncated=False)

    upstream.answer = answer
    async with connect() as client:
        done = await client.call_tool("execute_capability", {"name": "listOrders"})
    assert (done.is_error, done.structured_content["status"]) == (is_error, status)


async def test_a_bug_of_ours_shows_a_reference_and_nothing_else(connect, mode, upstream, caplog):
    async def fail(request):
        raise RuntimeError("secret detail")

    upstream.answer = fail
    async with connect(mode) as client:
        result = await client.call_tool("execute_capability", {"name": "listOrders"})
    error = error_of(result)
    assert error["code"] == "internal_error"
    assert "secret detail" not in result.content[0].text
    assert error["referenceId"] in caplog.text


async def test_a_failing_lookup_of_the_caller_leaks_nothing(make_settings, make_live, mode):
    def current():
        raise RuntimeError("secret detail")

    settings = make_settings()
    async with Client(build_server(Service(make_live(settings), settings), current), mode=mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.list_tools()
        result = await client.call_tool("execute_capability", {"name": "x"})
    assert "secret" not in caught.value.message
    assert error_of(result)["code"] == "internal_error"


async def test_a_caller_sees_and_calls_only_what_it_may(connect, mode, make_settings):
    settings = make_settings({"reader": {"allow": [{"source": "shop", "readOnly": True}]}})
    from capdex_server.callers import Callers

    reader = Callers(settings).authenticate("reader-token")
    async with connect(mode, caller=reader) as client:
        search, _ = (await client.list_tools()).tools
        found = await client.call_tool(
            "search_capabilities", {"query": "create an order or send mail", "limit": 20}
        )
        error = error_of(await client.call_tool("execute_capability", {"name": "createOrder", "body": {}}))
    assert "mail" not in search.description
    assert {match["name"] for match in found.structured_content["matches"]} <= {"listOrders", "getOrder"}
    assert error["code"] == "unknown_capability"
    assert not {"createOrder", "deleteOrder", "sendMail"} & set(error["suggestions"])


async def test_a_tool_outside_the_scopes_is_refused_in_memory_too(connect):
    async with connect(caller=replace(LOCAL, scopes=frozenset({"search"}))) as client:
        with pytest.raises(MCPError):
            await client.call_tool("execute_capability", {"name": "listOrders"})


async def test_before_the_first_catalog_an_agent_is_told_to_come_back(make_settings, make_live, monkeypatch):
    monkeypatch.setattr("capdex_server.service.FIRST_CATALOG_WAIT", 0.01)
    settings = make_settings()
    async with Client(build_server(Service(make_live(settings), settings), lambda: LOCAL)) as client:
        error = error_of(await client.call_tool("search_capabilities", {"query": "x"}))
    assert (error["code"], error["retryable"]) == ("not_ready", True)


def test_the_texts_stay_short_at_twenty_sources():
    sources = [
        SourceSummary(f"source-number-{n}", "A rather long title of an API " * 3, 9) for n in range(20)
    ]
    search, execute = tools_for(sources)
    assert len(INSTRUCTIONS) + len(search.description) + len(execute.description) < 1500
    assert "source-number-19" in search.description


def test_more_sources_than_fit_are_counted():
    search, _ = tools_for([SourceSummary(f"source-number-{n:03}", "", 1) for n in range(100)])
    assert "more." in search.description
    assert len(search.description) < 900


def test_without_sources_the_description_says_so():
    assert "No source" in tools_for([])[0].description
