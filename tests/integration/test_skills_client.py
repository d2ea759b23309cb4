"""Reading an index and calling a skill, against servers on loopback."""

from __future__ import annotations

import gzip
import json
import socket

import anyio
import pytest
from mcp.client._memory import InMemoryTransport
from mcp_types import CallToolResult, TextContent
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse

from capdex_engine.errors import (
    AddressRefused,
    CapdexError,
    UpstreamProtocolError,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from capdex_engine.skills import SkillIndexError
from capdex_engine.skills.entries import MAX_INDEX_BYTES
from capdex_server.skills_client import SkillClient, read_skill_index
from integration.skills_server import ENTRIES, INDEX, Skills, _server, about_index, raw_server, skills_server

pytestmark = pytest.mark.anyio
TOKEN = "S3CRET-token-of-acme"
DATA = json.dumps({"skills": ENTRIES})


def contents(**part: object) -> dict:
    return {"contents": [{"uri": INDEX, **part}]}


async def index(url: str, token: str | None = TOKEN, **parts: object):
    return await SkillClient(**parts).index("skills.a", url, token)


async def call(url: str, **parts: object) -> dict:
    given = {"arguments": {"name": "skill:pay-run"}, "resource": "skill://pay-run/SKILL.md"}
    limits = {"timeout": 10.0, "max_bytes": 100_000}
    return await SkillClient().call("skills.a", url, TOKEN, **{**given, **limits, **parts})


async def test_an_index_is_read_in_three_steps():
    with skills_server(token=TOKEN) as server:
        found = await index(server.url)
    assert [skill.capability for skill in found.skills] == ["skill:pay-run", "plugin:travel:trip"]
    assert server.methods == ["initialize", "notifications/initialized", "resources/read"]
    assert server.tokens == {f"Bearer {TOKEN}"}


async def test_without_a_token_none_is_sent():
    with skills_server() as server:
        assert (await index(server.url, None)).skills
    assert server.tokens == {""}


async def test_any_transport_will_do():
    found = await read_skill_index(lambda: InMemoryTransport(_server(Skills(), False, 1)))
    assert len(found.skills) == 2


@pytest.mark.parametrize("data", [DATA.encode(), DATA])
async def test_text_and_base64_are_both_read(data):
    with skills_server(index=data) as server:
        assert len((await index(server.url)).skills) == 2


async def test_good_and_bad_entries_are_told_apart():
    entries = [*ENTRIES, {**ENTRIES[0], "name": "No!"}, 7]
    with skills_server(index=json.dumps(entries)) as server:
        found = await index(server.url)
    assert len(found.skills) == 2 and [fault.index for fault in found.faults] == [2, 3]


@pytest.mark.parametrize("ensure_ascii", [True, False])
async def test_exactly_the_size_limit_passes(ensure_ascii):
    # Each of these characters takes three bytes here and six on the wire.
    entries = [{**ENTRIES[0], "note": "漢" * 100_000}]
    text = json.dumps({"skills": entries}, ensure_ascii=ensure_ascii)
    text += " " * (MAX_INDEX_BYTES - len(text.encode())) if len(text) < MAX_INDEX_BYTES else ""
    with skills_server(index=text) as server:
        if ensure_ascii:
            with pytest.raises(SkillIndexError):
                await index(server.url)
        else:
            assert len((await index(server.url)).skills) == 1
            server.index = text + " "
            with pytest.raises(SkillIndexError):
                await index(server.url)


async def endless():
    while True:
        yield b" " * 65536
        await anyio.sleep(0.001)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_server_that_sends_without_end_is_left_while_it_sends(kind):
    with (
        raw_server(about_index(lambda: StreamingResponse(endless(), media_type=kind))) as url,
        pytest.raises(UpstreamProtocolError) as error,
    ):
        await index(url, step=30)
    assert "more than is read" in error.value.message


BOMB = gzip.compress(b" " * 10_000_000)
FAULTS = {
    "no index": (contents(text="nothing"), SkillIndexError),
    "bad UTF-8": (contents(blob="gP8="), SkillIndexError),
    "bad base64": (contents(blob="%%%"), SkillIndexError),
    "no contents": ({"contents": []}, SkillIndexError),
    "two contents": ({"contents": [{"uri": "a", "text": "[]"}, {"uri": "b", "text": "[]"}]}, SkillIndexError),
    "another result": ({"tools": []}, UpstreamProtocolError),
    "no result": (None, UpstreamProtocolError),
    "no JSON": (lambda: Response(f"{{{TOKEN}", media_type="application/json"), UpstreamProtocolError),
    "broken UTF-8": (lambda: Response(b'{"\xff', media_type="application/json"), UpstreamProtocolError),
    "a page": (lambda: PlainTextResponse(f"hello {TOKEN}"), UpstreamProtocolError),
    "accepted": (lambda: Response(status_code=202), UpstreamProtocolError),
    "an error": (lambda: PlainTextResponse(f"no {TOKEN}", 500), UpstreamProtocolError),
    "no such page": (lambda: Response(status_code=404), UpstreamProtocolError),
    "unauthorized": (lambda: Response(status_code=401), UpstreamProtocolError),
    "forbidden": (lambda: Response(status_code=403), UpstreamProtocolError),
    "another place": (lambda: RedirectResponse("http://evil.example/", 307), UpstreamProtocolError),
    "compressed": (
        lambda: Response(BOMB, headers={"content-encoding": "gzip"}, media_type="application/json"),
        UpstreamProtocolError,
    ),
    "a stream that ends": (lambda: Response("", media_type="text/event-stream"), UpstreamProtocolError),
    "an event that is none": (
        lambda: Response(f"data: {{{TOKEN}\n\n", media_type="text/event-stream"),
        UpstreamProtocolError,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_fault_has_its_error_and_no_secret_comes_out(fault, caplog):
    caplog.set_level("WARNING")
    answer, kind = FAULTS[fault]
    with raw_server(about_index(answer)) as url, pytest.raises(kind) as error:
        await index(url)
    assert error.value.message.endswith(".")
    assert TOKEN not in f"{error.value.payload()}{caplog.text}"


@pytest.mark.parametrize("silent", ["initialize", "resources/read"])
async def test_a_server_that_never_answers_is_left_in_time(silent):
    async def never():
        await anyio.sleep_forever()
        yield b""

    def answer(method, _):
        quiet = method == silent
        return (
            StreamingResponse(never(), media_type="application/json") if quiet else about_index({})(method, 1)
        )

    with raw_server(answer) as url, pytest.raises(UpstreamTimeout):
        await index(url, step=0.3)


@pytest.mark.parametrize(
    "url", ["", "skills.example", "ftp://x/mcp", "http://", "http://[::1/mcp", "mcp://x"]
)
async def test_what_is_no_url_is_told(url):
    with pytest.raises(UpstreamUnreachable) as error:
        await index(url)
    assert "[skills.a]" in error.value.message


async def test_a_server_that_is_not_there():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(UpstreamUnreachable):
            await index(f"http://127.0.0.1:{held.getsockname()[1]}/mcp")


async def test_a_host_that_is_not_there():
    async def nowhere(host: str, port: int) -> list[str]:
        raise OSError

    with pytest.raises(UpstreamUnreachable):
        await index("http://skills.example/mcp", resolver=nowhere)


async def test_a_redirect_within_the_origin_is_followed_and_never_beyond_it():
    with skills_server() as target:

        def answer(method, _):
            return RedirectResponse(target.url, 307)

        with raw_server(answer) as url, pytest.raises(CapdexError):
            await index(url)
        assert target.methods == [] and target.tokens == set()


async def test_a_call_is_forwarded_to_the_servers_own_tool():
    arguments = {"name": "skill:pay-run", "body": {"month": "May"}}
    with skills_server(token=TOKEN, pages=3) as server:
        result = await call(server.url, arguments=arguments)
    assert server.calls == [arguments]
    assert result["structuredContent"] == {"did": "execute_capability"} and not result["isError"]
    assert json.loads(result["content"][0]["text"]) == arguments


async def test_a_result_passes_through_whatever_it_is():
    odd = CallToolResult(content=[TextContent(text="no")], is_error=True, _meta={"k": [1]})
    with skills_server(result=odd) as server:
        result = await call(server.url)
    assert result["isError"] and result["_meta"] == {"k": [1]} and "structuredContent" not in result


async def test_a_token_that_a_server_says_back_is_masked():
    told = CallToolResult(content=[TextContent(text=f"I was sent {TOKEN}.")], structured_content={"t": TOKEN})
    with skills_server(result=told) as server:
        result = await call(server.url)
    assert server.tokens == {f"Bearer {TOKEN}"} and TOKEN not in json.dumps(result)
    assert result["content"][0]["text"].startswith("I was sent *")


async def test_without_such_a_tool_the_resource_is_read():
    with skills_server(execute=False) as server:
        result = await call(server.url)
    assert server.methods[-1] == "resources/read" and "tools/list" not in server.methods
    (part,) = result["content"]
    assert part["type"] == "resource" and not result["isError"]
    assert part["resource"]["text"] == "# About skill://pay-run/SKILL.md"


async def test_a_list_of_tools_without_end_is_left():
    listed = []

    def answer(method, _):
        if method == "tools/list":
            listed.append(method)
            return {"tools": [], "nextCursor": str(len(listed))}
        read = {"contents": [{"uri": "skill://x", "text": "x"}]}
        return read if method == "resources/read" else about_index({})(method, 1)

    with raw_server(answer) as url:
        assert (await call(url))["content"][0]["resource"]["text"] == "x"
    assert len(listed) == 20


async def test_a_call_that_lasts_too_long_or_brings_too_much_fails():
    huge = CallToolResult(content=[TextContent(text="x" * 200_000)])
    with skills_server(result=huge) as server, pytest.raises(UpstreamProtocolError):
        await call(server.url)

    async def never():
        await anyio.sleep_forever()
        yield b""

    quiet = about_index(lambda: StreamingResponse(never(), media_type="application/json"))
    with raw_server(quiet) as url, pytest.raises(UpstreamTimeout):
        await call(url, timeout=0.3)


async def test_an_address_inside_is_refused_where_the_configuration_does_not_name_it():
    async def inside(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    def answer(method, _):
        return RedirectResponse("http://other.example/mcp", 307)

    with raw_server(answer) as url, pytest.raises((UpstreamProtocolError, AddressRefused)):
        await index(url, resolver=inside)
