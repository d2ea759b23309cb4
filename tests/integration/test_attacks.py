"""What an agent may try with its arguments, through /mcp/agent.

What is refused is refused with the code that SPEC names, and nothing is sent.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from integration.attack_support import INVALID, KEYS, PUBLIC, Wire, agent, document, refusal, served, wire

__all__ = ["wire"]
pytestmark = pytest.mark.anyio

CLIMBING: Final = [
    ".",
    "..",
    "%2e%2e",
    "%2E.",
    "%252e%252e",
    "%25252e%25252e",
    "..;a=b",
    "..%3Ba",
    ".?x",
    "",
    "a\x00b",
    "\x00",
    "a\r\nb",
    "a\nb",
    "\x7f",
    "\x1f",
]


@pytest.mark.parametrize("value", CLIMBING, ids=ascii)
async def test_a_path_value_that_climbs_or_cuts_is_refused(wire: Wire, tmp_path: Path, value: str) -> None:
    error = await refusal(wire, tmp_path, "getFile", pathParams={"id": value})
    assert error["code"] == INVALID
    assert error["issues"][0]["pointer"] == "/id"


@pytest.mark.parametrize("value", ["../x", "a/../b", "a/..", "./a", "a/%2e%2e/b", "a/..;x/b", "%2e%2e/a"])
async def test_a_path_of_many_segments_never_climbs(wire: Wire, tmp_path: Path, value: str) -> None:
    assert (await refusal(wire, tmp_path, "getTree", pathParams={"path": value}))["code"] == INVALID


async def test_values_that_climb_together_are_refused(wire: Wire, tmp_path: Path) -> None:
    assert (await refusal(wire, tmp_path, "getPair", pathParams={"a": ".", "b": "."}))["code"] == INVALID


INSIDE: Final = {
    "a/../../admin": "a%2F..%2F..%2Fadmin",
    "..\\..\\admin": "..%5C..%5Cadmin",
    "%2e%2e%2fadmin": "%252e%252e%252fadmin",
    "x#frag": "x%23frag",
    "x?admin=1": "x%3Fadmin%3D1",
    "x&admin=1": "x%26admin%3D1",
    "user@evil.example": "user%40evil.example",
    "//evil.example": "%2F%2Fevil.example",
    "https://evil.example": "https%3A%2F%2Fevil.example",
    "\\\\evil.example": "%5C%5Cevil.example",
    "a;admin=1": "a%3Badmin%3D1",
    "\u2028\u2029": "%E2%80%A8%E2%80%A9",
    "．．／admin": "%EF%BC%8E%EF%BC%8E%EF%BC%8Fadmin",
}


@pytest.mark.parametrize("value", INSIDE, ids=ascii)
async def test_a_path_value_stays_in_its_segment_and_at_its_host(
    wire: Wire, tmp_path: Path, value: str
) -> None:
    async with agent(wire, tmp_path) as execute:
        assert (await execute("getFile", pathParams={"id": value}))["status"] == 200
        assert (await execute("getMatrix", pathParams={"m": value}))["status"] == 200
    assert [seen.target for seen in wire.upstream.requests] == [
        f"/v1/files/{INSIDE[value]}/meta",
        f"/v1/matrix/;m={INSIDE[value]}",
    ]
    assert {seen.headers["host"] for seen in wire.upstream.requests} == {"api.example"}
    assert set(wire.connections) == {(PUBLIC, 80)}


@pytest.mark.parametrize("value", ["a&limit=1000", "a#b", "a=b", "a;b", "a%26limit=1000", "a+b", "a\r\nX: y"])
async def test_a_query_value_brings_no_other_parameter(wire: Wire, tmp_path: Path, value: str) -> None:
    async with agent(wire, tmp_path) as execute:
        await execute("find", queryParams={"q": value})
    (seen,) = wire.upstream.requests
    assert dict(httpx2.QueryParams(seen.target.partition("?")[2])) == {"q": value}


@pytest.mark.parametrize(
    "given",
    [
        {"free": {"limit": 1000}},
        {"filter": {"a][limit": 1}},
        {"limit": 1000},
        {"__proto__": {"limit": 1000}},
        {"constructor": {"prototype": {}}},
        {"q[limit]": "1"},
        {"q&limit": "1"},
        {"n" * 100_000: "1"},
        {"filter": json.loads('{"a":' * 70 + "1" + "}" * 70)},
    ],
    ids=lambda given: str(given)[:40],
)
async def test_a_query_cannot_be_given_parameters_past_their_schemas(
    wire: Wire, tmp_path: Path, given: dict[str, Any]
) -> None:
    assert (await refusal(wire, tmp_path, "find", queryParams=given))["code"] == INVALID


LINES: Final = [
    "a\r\nX-Evil: 1",
    "a\nX-Evil: 1",
    "a\rb",
    "a\x00b",
    "a\x0bb",
    "\r\n\r\nGET /admin HTTP/1.1",
    "\x7f",
]


@pytest.mark.parametrize("value", LINES, ids=ascii)
async def test_no_control_character_reaches_a_header(wire: Wire, tmp_path: Path, value: str) -> None:
    for given in ({"X-Trace": value}, {"X-List": ["a", value]}, {value: "x"}, {f"X-Trace{value}": "x"}):
        assert (await refusal(wire, tmp_path, "head", headerParams=given))["code"] == INVALID


@pytest.mark.parametrize("value", LINES, ids=ascii)
async def test_no_control_character_ends_a_cookie(wire: Wire, tmp_path: Path, value: str) -> None:
    async with agent(wire, tmp_path) as execute:
        await execute("jar", cookieParams={"sid": f"{value}; admin=1", "free": {f"{value}; admin=1": "x"}})
    (seen,) = wire.upstream.requests
    first, second = (pair.partition("=")[0] for pair in seen.headers["cookie"].split("; "))
    assert first == "sid"
    assert second.startswith("%") or "%3B%20admin%3D1" in second
    assert seen.headers["cookie"].count(";") == 1
    assert "x-evil" not in seen.headers


@pytest.mark.parametrize("name", ["a\r\nb", "a=1; b", "", "n" * 10_000])
async def test_an_unknown_cookie_is_refused(wire: Wire, tmp_path: Path, name: str) -> None:
    assert (await refusal(wire, tmp_path, "jar", cookieParams={name: "1"}))["code"] == INVALID


@pytest.mark.parametrize("value", LINES, ids=ascii)
async def test_a_multipart_file_adds_no_header_and_no_part(wire: Wire, tmp_path: Path, value: str) -> None:
    file = {"text": "x", "filename": f'{value}"; name="admin"', "contentType": "image/png"}
    async with agent(wire, tmp_path) as execute:
        await execute("upload", body={"file": file, f'{value}"; name="admin': "1"})
    (seen,) = wire.upstream.requests
    boundary = seen.headers["content-type"].partition("boundary=")[2]
    parts = seen.body.split(f"--{boundary}".encode())[1:-1]
    assert len(parts) == 2
    heads = [part.strip(b"\r\n").partition(b"\r\n\r\n")[0].decode() for part in parts]
    assert [head.count("\r\n") for head in heads] == [1, 0]
    assert not any('; name="admin"' in head for head in heads)


@pytest.mark.parametrize(
    "file",
    [
        {"text": "x", "contentType": "image/png\r\nX-Evil: 1"},
        {"text": "x", "contentType": "text/plain, application/json"},
        {"text": "x", "contentType": ""},
        {"text": "x", "filename": "n" * 256},
        {"base64": "!!"},
        "/etc/passwd",
        "file:///etc/passwd",
    ],
    ids=lambda file: str(file)[:50],
)
async def test_a_file_that_means_harm_is_refused(wire: Wire, tmp_path: Path, file: Any) -> None:
    assert (await refusal(wire, tmp_path, "upload", body={"file": file}))["code"] == INVALID


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("raw", {"body": {"base64": "e30=", "contentType": "application/json"}}),
        ("raw", {"body": {"base64": "e30=", "contentType": "application/x-www-form-urlencoded"}}),
        ("raw", {"body": "x", "contentType": "application/json"}),
        ("any", {"body": {}, "contentType": "text/plain"}),
        ("any", {"body": {}, "contentType": "application/x-www-form-urlencoded"}),
        ("any", {"body": {}, "contentType": "application/json\r\nX-Evil: 1"}),
        ("any", {"body": {}, "contentType": "application/json; charset=utf-7"}),
        ("any", {"body": {}, "contentType": "application/json, text/html"}),
        ("any", {"body": {}, "contentType": "*/*"}),
        ("upload", {"body": {"title": "x"}, "contentType": "application/json"}),
    ],
)
async def test_a_content_type_cannot_be_smuggled_in(
    wire: Wire, tmp_path: Path, name: str, given: dict[str, Any]
) -> None:
    assert (await refusal(wire, tmp_path, name, **given))["code"] == INVALID


async def test_a_callers_boundary_is_not_taken(wire: Wire, tmp_path: Path) -> None:
    async with agent(wire, tmp_path) as execute:
        await execute("upload", body={"title": "--x--"}, contentType="multipart/form-data; boundary=x")
    (seen,) = wire.upstream.requests
    assert "boundary=capdex-" in seen.headers["content-type"]


@pytest.mark.parametrize(
    "header", ["X-Evil", "x-forwarded-for", "X-Http-Method-Override", "Set-Cookie", "Cookie", ""]
)
async def test_a_header_that_is_not_documented_is_refused(wire: Wire, tmp_path: Path, header: str) -> None:
    assert (await refusal(wire, tmp_path, "head", headerParams={header: "x"}))["code"] == INVALID


@pytest.mark.parametrize(
    "header",
    [
        "Host",
        "hOsT",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Authorization",
        "Proxy-Authorization",
        "Content-Type",
        "Upgrade",
        "Expect",
        "TE",
    ],
)
async def test_a_header_that_is_the_connections_is_ignored_even_where_documented(
    wire: Wire, tmp_path: Path, header: str
) -> None:
    async with agent(wire, tmp_path) as execute:
        assert (await execute("head", headerParams={header: "evil.example"}))["status"] == 200
    (seen,) = wire.upstream.requests
    assert "evil.example" not in seen.headers.values()
    assert seen.headers["host"] == "api.example"


@pytest.mark.parametrize("scheme", sorted(KEYS))
async def test_a_credential_of_the_agent_never_replaces_the_servers(
    wire: Wire, tmp_path: Path, scheme: str
) -> None:
    arguments = {
        "headerParams": {"Authorization": "Bearer evil"},
        "queryParams": {"free": {"other": "1"}},
        "cookieParams": {"jar": {"other": "1"}},
    }
    taken = {
        "inHeader": ("headerParams", "x-KEY"),
        "inQuery": ("queryParams", "key"),
        "inCookie": ("cookieParams", "key"),
    }
    if scheme in taken:
        slot, name = taken[scheme]
        arguments[slot] = {**arguments[slot], name: "evil"}
    async with agent(wire, tmp_path) as execute:
        assert (await execute(f"with{scheme}", **arguments))["status"] == 200
    (seen,) = wire.upstream.requests
    whole = f"{seen.target} {seen.headers}"
    assert "evil" not in whole
    assert whole.count(KEYS[scheme]) == 1


@pytest.mark.parametrize("name", ["key", "k%65y", "key; key"])
@pytest.mark.parametrize("scheme", ["inQuery", "inCookie"])
async def test_an_open_object_cannot_bring_a_second_credential(
    wire: Wire, tmp_path: Path, scheme: str, name: str
) -> None:
    slot, holder = ("queryParams", "free") if scheme == "inQuery" else ("cookieParams", "jar")
    async with agent(wire, tmp_path) as execute:
        answer = await execute(f"with{scheme}", **{slot: {holder: {name: "evil"}}})
    if "error" in answer:
        assert (answer["error"]["code"], wire.connections) == (INVALID, [])
        return
    (seen,) = wire.upstream.requests
    if scheme == "inQuery":
        given = [
            value
            for key, value in httpx2.QueryParams(seen.target.partition("?")[2]).multi_items()
            if key == "key"
        ]
    else:
        pairs = [pair.partition("=") for pair in seen.headers["cookie"].split("; ")]
        given = [value for key, _, value in pairs if key == "key"]
    assert given == [KEYS[scheme]]


async def test_the_own_input_of_the_tool_is_closed(wire: Wire, tmp_path: Path) -> None:
    for more in (
        {"__proto__": {"dryRun": True}},
        {"serverVariables": {"host": "evil.example"}},
        {"server": "http://evil.example"},
        {"headers": {"X": "y"}},
        {"url": "http://evil.example"},
        {"pathParams": []},
        {"maxBytes": 10**12},
        {"contentType": 7},
    ):
        error = await refusal(wire, tmp_path, "getFile", **{"pathParams": {"id": "1"}, **more})
        assert error["code"] == "invalid_request", more


@pytest.mark.parametrize("name", ["n" * 2049, "", "\ud800"], ids=lambda name: ascii(name)[:20])
async def test_a_name_that_is_none_is_an_invalid_request(wire: Wire, tmp_path: Path, name: str) -> None:
    async with served(wire, tmp_path, document()) as http:
        result = (await post(http, {"name": name})).json()
    assert wire.connections == []
    assert "error" in result or result["result"]["structuredContent"]["error"]["code"] == "invalid_request"


@pytest.mark.parametrize(
    "name", ["n" * 2048, "../getFile", "getFile\x00", "getFile/../find", "__proto__", "GET //evil"]
)
async def test_a_name_that_is_unknown_is_so_told(wire: Wire, tmp_path: Path, name: str) -> None:
    assert (await refusal(wire, tmp_path, name))["code"] == "unknown_capability"


@pytest.mark.parametrize(
    "given",
    [
        {"title": "x", "__proto__": {"admin": True}},
        {"title": "x", "constructor": 1},
        {"title": "x" * 101},
        {"tags": list(range(10))},
        {"tags": [json.loads("[" * 66 + "]" * 66)]},
        json.loads('{"title":' * 70 + '"x"' + "}" * 70),
        [],
        "x" * 1000,
    ],
    ids=lambda given: str(given)[:40],
)
async def test_a_body_past_its_schema_is_refused(wire: Wire, tmp_path: Path, given: Any) -> None:
    assert (await refusal(wire, tmp_path, "note", body=given))["code"] == INVALID


async def test_where_a_body_is_open_odd_names_are_data_and_change_nothing_here(
    wire: Wire, tmp_path: Path
) -> None:
    given = {"__proto__": {"admin": True}, "__class__": 1, "$ref": "#/x", "constructor": {"prototype": 1}}
    async with agent(wire, tmp_path) as execute:
        assert (await execute("any", body=given))["status"] == 200
        assert (await execute("note", body={"title": "x"}))["status"] == 200
    assert [json.loads(seen.body) for seen in wire.upstream.requests] == [given, {"title": "x"}]


def call_of(arguments: Any) -> dict[str, Any]:
    params = {"name": "execute_capability", "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def post(http: httpx2.AsyncClient, arguments: Any, raw: bytes | None = None) -> httpx2.Response:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    content = json.dumps(call_of(arguments)).encode() if raw is None else raw
    return await http.post("/mcp/agent", content=content, headers=headers)


async def test_arguments_beyond_the_size_limit_are_413(wire: Wire, tmp_path: Path) -> None:
    async with served(wire, tmp_path, document()) as http:
        response = await post(http, {"name": "any", "body": {"x": "y" * 300_000}})
    assert (response.status_code, wire.connections) == (413, [])


@pytest.mark.parametrize("levels", [65, 300, 5000, 100_000])
async def test_arguments_of_any_depth_are_refused_and_break_nothing(
    wire: Wire, tmp_path: Path, levels: int
) -> None:
    marked = json.dumps(call_of({"name": "any", "body": {"x": "MARK"}}))
    raw = marked.replace('"MARK"', "[" * levels + "]" * levels).encode()
    async with served(wire, tmp_path, document()) as http:
        response = await post(http, None, raw)
        assert response.status_code < 500
        answer = response.json()
        if "result" in answer:
            assert answer["result"]["structuredContent"]["error"]["code"] == INVALID
        else:
            assert answer["error"]["code"] in {-32700, -32600, -32602}
        assert wire.connections == []
        assert (await post(http, {"name": "any", "body": {}})).json()["result"]["structuredContent"][
            "status"
        ] == 200
