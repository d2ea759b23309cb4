"""What a stranger, a web page and a caller with too few scopes may try at every way in.

The server is a real one on loopback; what is asserted is what the upstream received and what the trail says.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from capdex_engine.encode.testing import HashEncoder
from capdex_server.app import create_app
from capdex_server.config import CallerConfig, Settings, SourceConfig
from capdex_server.demo import run_in_thread
from capdex_server.live import Live
from capdex_server.outbound import Outbound
from integration.raw_http import Answer, RawUpstream, ask, raw_upstream

TEXT: Final = {"type": "string"}
DECLARED: Final = [
    "Authorization", "HOST", "content-length", "Transfer-Encoding", "Cookie", "Proxy-Authorization",
    "Proxy-Connection", "Connection", "Keep-Alive", "Upgrade", "TE", "Trailer", "Expect", "X-Forwarded-Host",
    "X-Forwarded-For", "Forwarded", "X-Key", "X-Fine", "Transfer-Encoding ", "Content-Length\t", "X Odd",
    "X-Colon: a", "X-Line\r\nEvil: 1", "",
]  # fmt: skip
"""Header parameters of a document that means no good."""
ROUTES: Final = [
    ("GET", "/mcp/agent"),
    ("POST", "/mcp/agent"),
    ("POST", "/search"),
    ("POST", "/execute"),
    ("GET", "/capabilities/getIt"),
    ("GET", "/openapi.json"),
    ("GET", "/readyz"),
    ("GET", "/healthz"),
    ("GET", "/nothing"),
]
GUARDED: Final = ROUTES[:5]
BOTH: Final = "Accept: application/json, text/event-stream"
JSON: Final = "Content-Type: application/json"
KEY: Final = "K-upstream-1"


def document(port: int) -> dict[str, Any]:
    parameters = [{"in": "header", "name": name, "schema": TEXT} for name in DECLARED]
    answers = {"responses": {"200": {"description": "ok"}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Target", "version": "1"},
        "servers": [{"url": f"http://127.0.0.1:{port}"}],
        "components": {"securitySchemes": {"jar": {"type": "apiKey", "in": "cookie", "name": "key"}}},
        "paths": {
            "/it": {"get": {"operationId": "getIt", "parameters": parameters, **answers}},
            "/kept": {
                "post": {
                    "operationId": "keep",
                    "parameters": parameters,
                    "security": [{"jar": []}],
                    **answers,
                }
            },
        },
    }


@dataclass
class Target:
    """A server that runs, its upstream, and its trail."""

    port: int
    upstream: RawUpstream
    trail: Path

    def ask(self, method: str, path: str, *headers: str | bytes, body: Any = None, host: str = "") -> Answer:
        content = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        own = [f"{method} {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{self.port}'}"]
        length = [f"Content-Length: {len(content)}"] if content else []
        return ask(self.port, [*own, *headers, *length, "Connection: close"], content)

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.trail.read_text().splitlines()]

    def refused(self, answer: Answer) -> bool:
        """Whether nothing was sent, and nothing that looks like a result came back."""
        return self.upstream.heads == [] and not re.search(rb'"elapsedMs\\?":\s*\d', answer.body)


def caller(name: str, *tokens: str, **fields: Any) -> CallerConfig:
    hashes = [hashlib.sha256(token.encode()).hexdigest() for token in tokens]
    return CallerConfig.model_validate(
        {"name": name, "tenant": "acme", "token_sha256": hashes, "allow": [{}], **fields}
    )


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("attacks")
    with raw_upstream() as upstream:
        (folder / "target.json").write_text(json.dumps(document(upstream.port)))
        location = str(folder / "target.json")
        server = f"http://127.0.0.1:{upstream.port}"
        settings = Settings(
            sources={"target": SourceConfig(location=location, server=server)},
            cache=folder / "cache",
            callers=(
                caller("full", "full-token", "tökén"),
                caller("finder", "finder-token", scopes=["search"]),
                caller("gone", "gone-token", expires="2020-01-01T00:00:00Z"),
            ),
            audit={"to": str(folder / "audit.jsonl")},
            allowed_hosts=("capdex.example", "ported.example:8443"),
            allowed_origins=("https://app.example",),
        )
        live = Live.from_settings(
            settings,
            outbound=Outbound.from_settings(settings),
            encoder=HashEncoder,
            environ={"CAPDEX_CREDENTIAL_TARGET_JAR": KEY},
        )
        with run_in_thread(create_app(live, settings)) as url:
            yield Target(int(url.rpartition(":")[2]), upstream, folder / "audit.jsonl")


@pytest.fixture
def target(running: Target) -> Target:
    running.upstream.heads.clear()
    running.trail.write_text("")
    return running


def bearer(token: str) -> str:
    return f"Authorization: Bearer {token}"


def call(arguments: Any, tool: str = "execute_capability") -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def every_way(target: Target, *headers: str | bytes, arguments: Any = None) -> list[Answer]:
    """Try to execute at both ways in."""
    arguments = arguments or {"name": "getIt"}
    return [
        target.ask("POST", "/execute", JSON, *headers, body=arguments),
        target.ask("POST", "/mcp/agent", JSON, BOTH, *headers, body=call(arguments)),
    ]


AUTHORIZATIONS: Final = [
    [],
    ["Authorization:"],
    ["Authorization: Bearer"],
    ["Authorization: Bearer "],
    ["Authorization: full-token"],
    ["Authorization: Basic ZnVsbC10b2tlbg=="],
    ["Authorization: Token full-token"],
    ["Authorization: Bearer  full-token"],
    ["Authorization: Bearer full-token, Bearer full-token"],
    ['Authorization: Bearer "full-token"'],
    ["Authorization: Bearer full-token full-token"],
    ["Authorization: Bearer full-tokem"],
    ["Authorization: Bearer FULL-TOKEN"],
    ["Authorization: Bearer full-token%00"],
    ["Authorization: Bearer full-toke"],
    [b"Authorization: Bearer \xff\xfe"],
    [b"Authorization: Bearer full-token\xc2\xa0"],
    ["Authorization: Bearer " + "x" * 60_000],
    ["Authorization: Bearer " + hashlib.sha256(b"full-token").hexdigest()],
    ["Authorization: Bearer gone-token"],
    ["X-Authorization: Bearer full-token"],
    ["Proxy-Authorization: Bearer full-token"],
    ["Cookie: Authorization=Bearer full-token"],
    ["Authorization: Bearer full-token", "Authorization: Bearer full-token"],
    ["Authorization: Bearer full-token", "authorization: Bearer wrong"],
    ["Authorization: Bearer wrong", "Authorization: Bearer full-token"],
    ["Authorization: Basic eDp5", "Authorization: Bearer full-token"],
]


@pytest.mark.parametrize("headers", AUTHORIZATIONS, ids=lambda headers: ascii(headers)[:60])
def test_what_is_no_valid_token_opens_nothing(target: Target, headers: list[str | bytes]) -> None:
    for method, path in GUARDED:
        body = None if method == "GET" else call({"name": "getIt"}) if "mcp" in path else {"name": "getIt"}
        answer = target.ask(method, path, JSON, BOTH, *headers, body=body)
        assert answer.status == 401, (path, answer)
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        assert target.refused(answer)
    assert target.rows() == []


def test_a_token_in_the_address_opens_nothing(target: Target) -> None:
    for name in ("access_token", "token", "authorization"):
        answer = target.ask("POST", f"/execute?{name}=full-token", JSON, body={"name": "getIt"})
        assert answer.status == 401 and target.refused(answer)


def test_a_header_larger_than_the_server_reads_breaks_nothing(target: Target) -> None:
    with suppress(ConnectionError):  # it may hang up before all is sent
        answer = target.ask("POST", "/execute", JSON, bearer("x" * 1_000_000), body={"name": "getIt"})
        assert answer.status in {400, 401, 431}
    assert target.ask("GET", "/healthz").status == 200


def test_the_right_token_opens_both_ways_in(target: Target) -> None:
    assert [answer.status for answer in every_way(target, bearer("full-token"))] == [200, 200]
    assert [answer.status for answer in every_way(target, "authorization: bEARER full-token")] == [200, 200]
    assert len(target.upstream.heads) == 4


HOSTS: Final = [
    "evil.example",
    "127.0.0.1.evil.example",
    "evil.example:8000",
    "localhost.evil.example",
    "localhost.",
    "capdex.example.evil.example",
    "capdex.example@evil.example",
    "evil.example/capdex.example",
    "capdex.example:80@evil.example",
    "capdex.example:evil",
    "ported.example",
    "ported.example:8444",
    "169.254.169.254",
    "0.0.0.0",
    "127.0.0.2",
    "[::]",
    "[::1]evil",
    "*",
    "null",
    "-",
]


@pytest.mark.parametrize("host", HOSTS)
def test_a_foreign_host_is_served_nowhere(target: Target, host: str) -> None:
    for method, path in ROUTES:
        answer = target.ask(method, path, JSON, BOTH, bearer("full-token"), body={"name": "getIt"}, host=host)
        assert answer.status in {400, 421}, (path, answer)
        assert target.refused(answer)


@pytest.mark.parametrize(
    "host", ["capdex.example", "CAPDEX.example:99", "ported.example:8443", "localhost", "[::1]:5"]
)
def test_a_known_host_is_served(target: Target, host: str) -> None:
    assert target.ask("GET", "/healthz", host=host).status == 200


def test_two_hosts_or_none_are_refused(target: Target) -> None:
    for method, path in ROUTES:
        top = f"{method} {path} HTTP/1.1"
        for hosts in (
            [],
            ["Host: localhost", "Host: evil.example"],
            ["Host: localhost", "Host: localhost"],
            ["Host:"],
        ):
            answer = ask(target.port, [top, *hosts, bearer("full-token"), "Connection: close"])
            assert answer.status in {400, 421}, (path, hosts)
            assert target.refused(answer)
    assert ask(target.port, ["GET /healthz HTTP/1.0"]).status == 421


FORWARDED: Final = [
    "X-Forwarded-Host",
    "X-Forwarded-Server",
    "X-Host",
    "X-Original-Host",
    "Forwarded",
    "X-HTTP-Host-Override",
]


@pytest.mark.parametrize("header", FORWARDED)
def test_a_host_that_is_forwarded_counts_for_nothing(target: Target, header: str) -> None:
    prefix = "host=" if header == "Forwarded" else ""
    foreign = target.ask("GET", "/healthz", f"{header}: {prefix}localhost", host="evil.example")
    own = target.ask("GET", "/healthz", f"{header}: {prefix}evil.example")
    assert (foreign.status, own.status) == (421, 200)


@pytest.mark.parametrize(
    "header", ["X-Original-URL: /execute", "X-Rewrite-URL: /execute", "X-HTTP-Method-Override: POST"]
)
def test_a_request_is_for_its_own_route(target: Target, header: str) -> None:
    answer = target.ask("GET", "/healthz", header, bearer("full-token"))
    assert answer.json == {"status": "ok"}


ORIGINS: Final = [
    "https://evil.example",
    "null",
    "file://",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "https://app.example.evil.example",
    "https://app.example:444",
    "http://app.example",
    "https://evil.example/https://app.example",
    "https://app.example@evil.example",
    "https://[evil",
    "://",
    "",
]


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_foreign_page_may_ask_nothing(target: Target, origin: str) -> None:
    for method, path in ROUTES:
        answer = target.ask(
            method, path, JSON, BOTH, bearer("full-token"), f"Origin: {origin}", body={"name": "getIt"}
        )
        assert answer.status == 403, (path, answer)
        assert "access-control-allow-origin" not in answer.headers
        assert target.refused(answer)


def test_a_second_origin_hides_none(target: Target) -> None:
    for origins in (
        ("https://app.example", "https://evil.example"),
        ("https://evil.example", "https://app.example"),
    ):
        answer = target.ask("GET", "/healthz", *(f"Origin: {origin}" for origin in origins))
        assert answer.status == 403


def test_a_known_page_is_served(target: Target) -> None:
    for origin in ("https://app.example", f"http://127.0.0.1:{target.port}"):
        assert target.ask("GET", "/healthz", f"Origin: {origin}").status == 200


@pytest.mark.parametrize(
    "where", ["http://evil.example", "http://evil.example:80", "https://evil.example", "//evil.example"]
)
def test_a_whole_address_as_the_target_leads_nowhere_foreign(target: Target, where: str) -> None:
    for method, path in ROUTES:
        answer = target.ask(
            method, f"{where}{path}", JSON, BOTH, bearer("full-token"), body={"name": "getIt"}
        )
        assert answer.status in {400, 404, 421}, (path, answer)
        assert target.refused(answer)


@pytest.mark.parametrize(
    "path",
    [
        "/EXECUTE",
        "//execute",
        "/execute/",
        "/./execute",
        "/x/../execute",
        "/%65xecute",
        "/execute%00",
        "*",
        "execute",
    ],
)
def test_another_spelling_of_a_route_is_no_way_past_its_guard(target: Target, path: str) -> None:
    for headers in ([], [bearer("finder-token")]):
        answer = target.ask("POST", path, JSON, *headers, body={"name": "getIt"})
        assert answer.status in {400, 401, 403, 404}, answer
        assert target.refused(answer)


def text(body: Any) -> bytes:
    return json.dumps(body).encode()


CALL: Final = call({"name": "getIt"})
LIST: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
EXECUTE: Final = '"params":{"name":"execute_capability","arguments":{"name":"getIt"}}'
SEARCH: Final = '"params":{"name":"search_capabilities","arguments":{"query":"x"}}'


def by_hand(members: tuple[str, ...]) -> bytes:
    return f'{{"jsonrpc":"2.0","id":1,{",".join(members)}}}'.encode()


ESCALATIONS: Final[dict[str, bytes]] = {
    "plain": text(CALL),
    "batch": text([CALL]),
    "batch behind another": text([LIST, CALL]),
    "batch within": text({**LIST, "batch": [CALL]}),
    "two methods": by_hand(('"method":"tools/list","method":"tools/call"', EXECUTE)),
    "two methods, turned": by_hand(('"method":"tools/call","method":"tools/list"', EXECUTE)),
    "two names": by_hand(
        ('"method":"tools/call"', EXECUTE.replace('{"name"', '{"name":"search_capabilities","name"', 1))
    ),
    "two names, turned": by_hand(
        ('"method":"tools/call"', EXECUTE.replace(',"arg', ',"name":"search_capabilities","arg'))
    ),
    "two params": by_hand(('"method":"tools/call"', SEARCH, EXECUTE)),
    "two params, turned": by_hand(('"method":"tools/call"', EXECUTE, SEARCH)),
    "name in another case": text(call({"name": "getIt"}, "Execute_Capability")),
    "name with a space": text(call({"name": "getIt"}, "execute_capability ")),
    "name with a zero": text(call({"name": "getIt"}, "execute_capability\x00")),
    "escaped name": text(CALL).replace(b"execute_", b"\\u0065xecute\\u005f"),
    "escaped key": text(CALL).replace(b'"name": "execute', b'"n\\u0061me": "execute'),
    "escaped method": text(CALL).replace(b"tools/call", b"tools\\/c\\u0061ll"),
    "method in another case": text({**CALL, "method": "Tools/Call"}),
    "nested": text({**LIST, "params": {"name": "search_capabilities", "arguments": CALL}}),
    "nested in a search": text(
        call(
            {"query": "x", "name": "execute_capability", "arguments": {"name": "getIt"}},
            "search_capabilities",
        )
    ),
    "byte order mark": b"\xef\xbb\xbf" + text(CALL),
    "utf-16": json.dumps(CALL).encode("utf-16"),
    "utf-32": json.dumps(CALL).encode("utf-32"),
    "a number that is too long": text(CALL).replace(b'"id": 1', b'"id": 1, "x": ' + b"9" * 5000),
    "a number that is none": text(CALL).replace(b'"id": 1', b'"id": 1, "x": NaN'),
    "half a surrogate": text(CALL).replace(b'"id": 1', b'"id": 1, "x": "\\ud800"'),
    "a depth that one parser takes": text(CALL).replace(
        b'"id": 1', b'"id": 1, "x": ' + b"[" * 190 + b"]" * 190
    ),
    "a depth that no parser takes": text(CALL).replace(
        b'"id": 1', b'"id": 1, "x": ' + b"[" * 50_000 + b"]" * 50_000
    ),
    "trailing text": text(CALL) + b" x",
    "two messages": text(LIST) + b"\n" + text(CALL),
    "comment": b"/* x */" + text(CALL),
    "notification": text({key: value for key, value in CALL.items() if key != "id"}),
    "other version": text({**CALL, "jsonrpc": "1.0"}),
}
VERSIONS: Final = [
    [],
    ["MCP-Protocol-Version: 2025-06-18"],
    ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list"],
]


@pytest.mark.parametrize("version", VERSIONS, ids=["legacy", "2025", "2026"])
@pytest.mark.parametrize("attack", ESCALATIONS)
def test_a_caller_that_may_search_executes_nothing_through_mcp(
    target: Target, attack: str, version: list[str]
) -> None:
    headers = [JSON, BOTH, bearer("finder-token"), *version]
    answer = target.ask("POST", "/mcp/agent", *headers, body=ESCALATIONS[attack])
    assert answer.status < 500 and target.refused(answer), answer
    assert {row["event"] for row in target.rows()} <= {"refused"}
    chunks = (
        b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in split(ESCALATIONS[attack])) + b"0\r\n\r\n"
    )
    top = ["POST /mcp/agent HTTP/1.1", f"Host: 127.0.0.1:{target.port}", "Connection: close"]
    chunked = ask(target.port, [*top, *headers, "Transfer-Encoding: chunked"], chunks)
    assert (chunked.status, target.refused(chunked)) == (answer.status, True)


def split(body: bytes) -> list[bytes]:
    return [body[at : at + 7] for at in range(0, min(len(body), 700), 7)] + (
        [body[700:]] if len(body) > 700 else []
    )


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "",
    ],
)
def test_another_content_type_gives_no_scope(target: Target, kind: str) -> None:
    for path, body in (("/mcp/agent", CALL), ("/execute", {"name": "getIt"})):
        answer = target.ask("POST", path, f"Content-Type: {kind}", BOTH, bearer("finder-token"), body=body)
        assert answer.status in {400, 403, 415} and target.refused(answer), answer


@pytest.mark.parametrize("more", [{}, {"dryRun": True}, {"scopes": ["execute"]}, {"name": "POST /kept"}])
def test_a_caller_that_may_search_executes_nothing_through_rest(target: Target, more: dict[str, Any]) -> None:
    answer = target.ask("POST", "/execute", JSON, bearer("finder-token"), body={"name": "getIt", **more})
    assert (answer.status, answer.json["error"]["code"]) == (403, "insufficient_scope")
    assert target.refused(answer)


def test_an_attempt_beyond_the_scopes_is_in_the_trail(target: Target) -> None:
    assert [answer.status for answer in every_way(target, bearer("finder-token"))] == [403, 403]
    rows = target.rows()
    assert [(row["event"], row["caller"], row["outcome"]) for row in rows] == [
        ("refused", "finder", "insufficient_scope")
    ] * 2


def test_a_body_that_is_no_json_is_in_the_trail(target: Target) -> None:
    assert target.ask("POST", "/execute", JSON, bearer("full-token"), body=b"{").status == 400
    assert [row["outcome"] for row in target.rows()] == ["invalid_request"]


SMUGGLED: Final = [
    *DECLARED,
    "authorization ",
    " Authorization",
    "Authorization\t",
    "AUTHORIZATION",
    "X-Fine\r\nHost: evil",
    "x-fine:",
    "Content_Length",
    "Via",
    "X-Undeclared",
]


@pytest.mark.parametrize("operation", ["getIt", "keep"])
@pytest.mark.parametrize("name", SMUGGLED, ids=ascii)
def test_a_header_parameter_stays_one_header_of_its_own(target: Target, operation: str, name: str) -> None:
    answer = target.ask(
        "POST",
        "/execute",
        JSON,
        bearer("full-token"),
        body={"name": operation, "headerParams": {name: "evil.example"}},
    )
    if answer.status != 200:
        assert answer.status == 422 and target.upstream.heads == []
        return
    fields = target.upstream.fields
    names = [field for field, _ in fields]
    assert len(set(names)) == len(names), fields
    assert dict(fields)["host"] == f"127.0.0.1:{target.upstream.port}"
    assert not {"transfer-encoding", "authorization", "te", "upgrade", "expect", "trailer"} & set(names)
    assert not any(name.startswith("proxy-") for name in names)
    assert dict(fields).get("content-length", "0") == "0"
    assert "full-token" not in str(fields)
    if operation == "keep":
        assert cookies(fields, "key") == [KEY]
    carrying = [field for field, value in fields if "evil" in value]
    assert carrying in ([], [name.lower()]), fields
    assert all(field == field.strip() and field.isascii() and field.isprintable() for field in names)


def cookies(fields: list[tuple[str, str]], name: str) -> list[str]:
    """Return the values that a lenient server might find under a cookie's name."""
    pairs = (pair.partition("=") for line in fields if line[0] == "cookie" for pair in line[1].split(";"))
    return [value.strip() for key, _, value in pairs if key.strip(' \t"') == name]


@pytest.mark.parametrize(
    "value",
    [
        "key=evil",
        "a=1; key=evil",
        "a=1;\tkey=evil",
        "key =evil",
        '"key"=evil',
        'a="1; key=evil"',
        "key",
    ],
)
def test_a_cookie_header_brings_no_second_credential(target: Target, value: str) -> None:
    body = {"name": "keep", "headerParams": {"Cookie": value}}
    assert target.ask("POST", "/execute", JSON, bearer("full-token"), body=body).status == 200
    assert cookies(target.upstream.fields, "key") == [KEY], target.upstream.fields


@pytest.mark.parametrize(
    "value",
    ["a\r\nX-Evil: 1", "a\nb", "a\r", "\x00", "a\x0bb", "\x7f", "\r\n\r\nGET /admin HTTP/1.1"],
    ids=ascii,
)
def test_a_header_value_ends_no_line(target: Target, value: str) -> None:
    for name in ("X-Fine", "X-Forwarded-For"):
        answer = target.ask(
            "POST",
            "/execute",
            JSON,
            bearer("full-token"),
            body={"name": "getIt", "headerParams": {name: value}},
        )
        assert answer.status == 422 and target.upstream.heads == []


NAMES: Final = [
    "x\ny",
    '{"event":"started"}',
    "\x1b[2J",
    "\u2028",
    "n" * 2048,
    '","outcome":"ok',
    "\u202e",
    "\\n",
    "\ud83d\ude00" * 500,
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:20])
def test_a_name_forges_no_line_of_the_trail(target: Target, name: str) -> None:
    answers = every_way(target, bearer("full-token"), arguments={"name": name})
    assert answers[0].status == 404
    raw = target.trail.read_bytes()
    assert raw.count(b"\n") == 2 and raw.isascii() and b"\x1b" not in raw
    rows = target.rows()
    assert [(row["event"], row["outcome"]) for row in rows] == [("refused", "unknown_capability")] * 2
    assert all(row["capability"].isprintable() and len(row["capability"]) <= 100 for row in rows)


def test_a_trail_that_cannot_be_written_is_told_by_readyz_and_sends_nothing(target: Target) -> None:
    lock = target.trail.with_name("audit.jsonl.lock")
    kept = target.trail.read_bytes()
    target.trail.unlink()
    target.trail.mkdir()
    try:
        for answer in every_way(target, bearer("full-token")):
            assert target.refused(answer) and b'"retryable":true' in answer.body
        told = target.ask("GET", "/readyz", bearer("full-token")).json
        assert (told["status"], "audit" in told["reasons"]) == ("degraded", True)
        assert target.ask("GET", "/readyz").json == {"status": "degraded"}
    finally:
        target.trail.rmdir()
        target.trail.write_bytes(kept)
    assert lock.exists()
    assert every_way(target, bearer("full-token"))[0].status == 200
    assert target.ask("GET", "/readyz").json == {"status": "ok"}
