from __future__ import annotations

import json
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from capdex_engine.call import Response
from capdex_engine.errors import ConfigurationError
from capdex_server.app import create_app
from capdex_server.config import SourceConfig

pytestmark = pytest.mark.anyio
BASE = "http://localhost:8000"
BOTH = "application/json, text/event-stream"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def call(name: str, arguments: dict) -> dict:
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }


@pytest.fixture
def serve(make_settings, make_live):
    """An HTTP client of a running application whose catalog is built."""

    @asynccontextmanager
    async def running(callers=None, *, token=None, peer="127.0.0.1", build=True, **fields):
        settings = make_settings(callers, **fields)
        live = make_live(settings)
        if build:
            await live.reload()
        app = create_app(live, settings)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        transport = httpx2.ASGITransport(app=app, client=(peer, 5))
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url=BASE, headers=headers) as http,
        ):
            yield http

    return running


TWO = {"full": {}, "finder": {"scopes": ["search"], "allow": [{"source": "shop", "readOnly": True}]}}


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
@pytest.mark.parametrize("callers", [None, TWO])
async def test_a_session_over_http(serve, mode, callers, upstream):
    async with serve(callers, token="full-token") as http:
        transport = streamable_http_client(f"{BASE}/mcp/agent", http_client=http)
        async with Client(transport, mode=mode) as client:
            assert len((await client.list_tools()).tools) == 2
            found = await client.call_tool("search_capabilities", {"query": "get one order"})
            assert found.structured_content["matches"][0]["name"] == "getOrder"
            done = await client.call_tool("execute_capability", {"name": "getOrder", "pathParams": {"id": 7}})
            assert done.structured_content["status"] == 200
    assert upstream.requests[0].url == "https://shop.example/v1/orders/7"


@pytest.mark.parametrize("path", ["/mcp/agent", "/mcp/agent/"])
async def test_a_bare_json_rpc_post_is_answered_in_json(serve, path):
    async with serve() as http:
        response = await http.post(path, json=LIST, headers={"Accept": BOTH})
    assert response.headers["content-type"] == "application/json"
    assert len(response.json()["result"]["tools"]) == 2


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json", 200),
        ("*/*", 200),
        ("text/html, */*;q=0.8", 200),
        ("application/json, text/event-stream", 200),
        ("text/event-stream", 405),
        ("text/html", 406),
    ],
)
async def test_get_discovers_the_tools(serve, accept, status):
    async with serve() as http:
        response = await http.get("/mcp/agent", headers={"Accept": accept})
    assert response.status_code == status
    if status == 200:
        search, execute = response.json()["tools"]
        assert (search["name"], execute["name"]) == ("search_capabilities", "execute_capability")
        assert search["inputSchema"]["required"] == ["query"] and search["outputSchema"]
        assert "shop" in search["description"]


async def test_get_without_accept_discovers_too(serve):
    async with serve() as http:
        del http.headers["accept"]
        assert (await http.get("/mcp/agent")).status_code == 200


@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH"])
async def test_other_methods_are_405(serve, method):
    async with serve() as http:
        assert (await http.request(method, "/mcp/agent")).status_code == 405


@pytest.mark.parametrize("token", [None, "wrong", "full-token "])
async def test_a_missing_or_wrong_token_is_401_everywhere(serve, token):
    async with serve(TWO, token=token) as http:
        answers = [
            await http.post("/mcp/agent", json=LIST, headers={"Accept": BOTH}),
            await http.get("/mcp/agent"),
            await http.post("/search", json={"query": "x"}),
            await http.post("/execute", json={"name": "x"}),
            await http.get("/capabilities/listOrders"),
        ]
    assert [one.status_code for one in answers] == [401] * 5
    assert all(one.headers["www-authenticate"].startswith("Bearer") for one in answers)


async def test_a_scope_that_is_missing_is_403(serve):
    async with serve(TWO, token="finder-token") as http:
        execute = call("execute_capability", {"name": "listOrders"})
        answers = [
            await http.post("/mcp/agent", json=execute, headers={"Accept": BOTH}),
            await http.post("/execute", json={"name": "listOrders"}),
        ]
        allowed = await http.post("/mcp/agent", json=LIST, headers={"Accept": BOTH})
    assert [one.status_code for one in answers] == [403, 403]
    assert all('scope="execute"' in one.headers["www-authenticate"] for one in answers)
    assert allowed.status_code == 200


async def test_each_caller_discovers_its_own_sources(serve):
    async with serve(TWO, token="finder-token") as http:
        text = (await http.get("/mcp/agent")).json()["tools"][0]["description"]
    assert "shop" in text and "mail" not in text


@pytest.mark.parametrize("path", ["/mcp/agent", "/search", "/healthz", "/openapi.json"])
async def test_a_foreign_host_is_421_on_every_route(serve, path):
    async with serve() as http:
        assert (await http.get(path, headers={"Host": "evil.example"})).status_code == 421


@pytest.mark.parametrize(("host", "header"), [("10.1.2.3", "10.1.2.3:8000"), ("fd00::1", "[fd00::1]:8000")])
async def test_the_address_it_listens_on_is_served(serve, host, header):
    async with serve(TWO, host=host) as http:
        assert (await http.get("/healthz", headers={"Host": header})).status_code == 200


async def test_a_foreign_page_is_403(serve):
    async with serve() as http:
        response = await http.post("/search", json={"query": "x"}, headers={"Origin": "https://evil.example"})
    assert response.status_code == 403


async def test_without_callers_another_machine_is_403(serve):
    async with serve(peer="10.1.2.3") as http:
        assert (await http.get("/healthz")).status_code == 403


async def test_with_callers_another_machine_is_served(serve):
    async with serve(TWO, token="full-token", peer="10.1.2.3", host="0.0.0.0") as http:
        assert (await http.get("/readyz")).status_code == 200


async def test_a_large_body_is_413(serve):
    async with serve(limits={"max_request_bytes": 1024}) as http:
        for path in ("/mcp/agent", "/search"):
            assert (await http.post(path, content=b"x" * 1025)).status_code == 413


def test_another_host_without_callers_is_a_configuration_error(make_settings, make_live):
    settings = make_settings(host="0.0.0.0")
    with pytest.raises(ConfigurationError):
        create_app(make_live(settings), settings)


async def test_search_over_rest(serve):
    async with serve() as http:
        answer = (await http.post("/search", json={"query": "delete an order", "limit": 1})).json()
    assert [match["name"] for match in answer["matches"]] == ["deleteOrder"]


async def test_search_filters_by_source_and_by_effect(serve):
    async with serve() as http:
        only_mail = await http.post("/search", json={"query": "orders or mail", "source": "mail"})
        reading = await http.post("/search", json={"query": "order", "readOnly": True, "limit": 20})
        nowhere = await http.post("/search", json={"query": "order", "source": "shopp"})
    assert {match["source"] for match in only_mail.json()["matches"]} <= {"mail"}
    assert {match["method"] for match in reading.json()["matches"]} == {"GET"}
    assert nowhere.json()["matches"] == []
    assert "shop" in nowhere.json()["hint"]


async def test_execute_over_rest_carries_the_upstreams_response(serve):
    async with serve() as http:
        response = await http.post("/execute", json={"name": "GET /orders/{id}", "pathParams": {"id": 1}})
    assert response.status_code == 200
    assert response.json()["body"] == {"source": "shop"}


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/search", {"query": ""}, 400, "invalid_request"),
        ("/search", [], 400, "invalid_request"),
        ("/search", "text", 400, "invalid_request"),
        ("/execute", None, 400, "invalid_request"),
        ("/execute", {"name": "nope"}, 404, "unknown_capability"),
        ("/execute", {"name": "\ud800"}, 400, "invalid_request"),
        ("/execute", {"name": "getOrder"}, 422, "invalid_capability_arguments"),
    ],
)
async def test_rest_errors_have_their_status(serve, path, body, status, code):
    async with serve() as http:
        response = await http.post(path, content=json.dumps(body))
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


async def test_a_body_that_is_no_json_is_400(serve):
    async with serve() as http:
        assert (await http.post("/search", content=b"{")).status_code == 400


async def test_a_credential_that_is_not_held_is_424(serve, make_settings, make_live):
    settings = make_settings()
    live = make_live(settings, environ={})
    await live.reload()
    transport = httpx2.ASGITransport(app=create_app(live, settings))
    async with httpx2.AsyncClient(transport=transport, base_url=BASE) as http:
        response = await http.post("/execute", json={"name": "createOrder", "body": {"item": "tea"}})
    assert (response.status_code, response.json()["error"]["scheme"]) == (424, "api_key")


@pytest.mark.parametrize("name", ["getOrder", "GET /orders/{id}"])
async def test_a_capability_in_full_has_its_response_schema(serve, name):
    async with serve() as http:
        answer = (await http.get(f"/capabilities/{name}")).json()
    assert answer["name"] == "getOrder"
    assert answer["responses"]["200"]["schema"]["required"] == ["item"]
    assert answer["argumentsSchema"]["properties"]["pathParams"]


async def test_an_unknown_and_a_forbidden_capability_look_the_same(serve):
    async with serve(TWO, token="finder-token") as http:
        unknown, forbidden = [
            await http.get(f"/capabilities/{name}") for name in ("deleteOrdes", "deleteOrder")
        ]
    assert unknown.status_code == forbidden.status_code == 404
    first, second = unknown.json()["error"], forbidden.json()["error"]
    assert first.pop("capability") and second.pop("capability")
    assert set(first["suggestions"]) | set(second["suggestions"]) <= {"listOrders", "getOrder"}
    assert first.keys() == second.keys()


async def test_a_capability_that_is_kept_out_says_why_to_those_who_may_know(serve, documents):
    mail = json.loads((documents / "mail.json").read_text())
    mail["paths"]["/bad"] = {"post": {"operationId": "bad", "requestBody": {"$ref": "#/components/nowhere"}}}
    (documents / "mail.json").write_text(json.dumps(mail))
    async with serve(TWO) as http:
        full, finder = [
            await http.get("/capabilities/bad", headers={"Authorization": f"Bearer {name}-token"})
            for name in ("full", "finder")
        ]
    assert (full.status_code, full.json()["error"]["code"]) == (409, "not_executable")
    assert (finder.status_code, finder.json()["error"]["code"]) == (404, "unknown_capability")


@pytest.mark.parametrize("body", [b'{"a": "\\ud800"}', b'{"a": NaN}', b'{"a": 1e999}', b'"\xff"'])
async def test_odd_bodies_of_an_upstream_do_not_break_the_answer(serve, upstream, body):
    async def answer(request):
        return Response(200, (("Content-Type", "application/json"),), body, truncated=False)

    upstream.answer = answer
    async with serve() as http:
        rest = await http.post("/execute", json={"name": "listOrders"})
        envelope = call("execute_capability", {"name": "listOrders"})
        agent = await http.post("/mcp/agent", json=envelope, headers={"Accept": BOTH})
    assert rest.status_code == 200
    assert json.loads(rest.content)["status"] == 200
    assert json.loads(agent.content)["result"]["structuredContent"]["status"] == 200


async def test_a_bug_of_ours_is_500_with_a_reference(serve, upstream):
    async def fail(request):
        raise RuntimeError("secret detail")

    upstream.answer = fail
    async with serve() as http:
        response = await http.post("/execute", json={"name": "listOrders"})
    assert response.status_code == 500
    assert response.json()["error"]["referenceId"]
    assert "secret" not in response.text


async def test_health_is_there_before_the_catalog_and_readiness_after(serve, make_settings, make_live):
    settings = make_settings()
    live = make_live(settings)
    transport = httpx2.ASGITransport(app=create_app(live, settings))
    async with httpx2.AsyncClient(transport=transport, base_url=BASE) as http:
        assert (await http.get("/healthz")).json() == {"status": "ok"}
        before = await http.get("/readyz")
        await live.reload()
        after = await http.get("/readyz")
    assert (before.status_code, before.json()) == (503, {"status": "starting"})
    assert after.status_code == 200
    assert (after.json()["status"], after.json()["operations"]) == ("ok", 5)


async def test_the_first_catalog_is_built_once_the_application_runs(serve):
    async with serve(build=False) as http:
        found = await http.post("/search", json={"query": "list orders"})
    assert found.json()["matches"][0]["name"] == "listOrders"


async def test_a_source_that_fails_degrades_and_is_named_to_those_who_may_know(serve, documents):
    (documents / "mail.json").write_text("{")
    async with serve(TWO) as http:
        nobody = await http.get("/readyz")
        full = await http.get("/readyz", headers={"Authorization": "Bearer full-token"})
        finder = await http.get("/readyz", headers={"Authorization": "Bearer finder-token"})
    assert (nobody.status_code, nobody.json()) == (200, {"status": "degraded"})
    assert set(full.json()["reasons"]) == {"mail"}
    assert "reasons" not in finder.json()


async def test_a_document_of_a_folder_that_fails_is_known_by_the_folders_name(serve, documents):
    (documents / "mail.json").write_text('{"openapi": "3.1.0"')
    callers = {"mine": {"allow": [{"source": "team"}]}, "other": {"allow": [{"source": "team.shop"}]}}
    sources = {"team": SourceConfig(location=str(documents))}
    async with serve(callers, sources=sources) as http:
        mine, other = [
            (await http.get("/readyz", headers={"Authorization": f"Bearer {name}-token"})).json()
            for name in ("mine", "other")
        ]
    assert (mine["operations"], set(mine["reasons"])) == (4, {"team.mail"})
    assert "reasons" not in other


async def test_without_any_catalog_every_way_in_says_that_it_failed(serve, documents):
    for name in ("shop", "mail"):
        (documents / f"{name}.json").write_text("{ secret detail")
    async with serve(build=False) as http:
        answers = [
            await http.post("/search", json={"query": "x"}),
            await http.post("/execute", json={"name": "x"}),
            await http.get("/capabilities/x"),
        ]
    for answer in answers:
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["retryable"]) == (503, "not_ready", False)
        assert "/readyz" in error["message"] and "seconds" not in error["message"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/capabilities", 404, "not_found"),
        ("PUT", "/search", 405, "method_not_allowed"),
        ("DELETE", "/mcp/agent", 405, "method_not_allowed"),
        ("GET", "/capabilities/" + "x" * 2500, 400, "invalid_request"),
    ],
)
async def test_what_no_route_takes_is_an_error_object(serve, method, path, status, code):
    async with serve() as http:
        answer = await http.request(method, path)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["retryable"]) == (status, code, False)
    assert error["message"] and "xxx" not in error["message"]
    assert ("allow" in answer.headers) is (status == 405)


async def test_a_path_of_two_sources_suggests_both_names(serve, documents):
    (documents / "copy.json").write_text((documents / "shop.json").read_text())
    sources = {name: SourceConfig(location=str(documents / f"{name}.json")) for name in ("shop", "copy")}
    async with serve(sources=sources) as http:
        answers = [
            await http.get("/capabilities/GET /orders"),
            await http.post("/execute", json={"name": "GET /orders"}),
        ]
    for answer in answers:
        assert answer.status_code == 404
        assert {"shop.listOrders", "copy.listOrders"} <= set(answer.json()["error"]["suggestions"])


async def test_a_hint_speaks_of_filters_only_where_some_were_given(serve):
    async with serve() as http:
        nothing = {"query": "zzyzx qwfp"}
        plain = (await http.post("/search", json=nothing)).json()
        filtered = (await http.post("/search", json={**nothing, "readOnly": True, "source": "shop"})).json()
        nowhere = (await http.post("/search", json={**nothing, "source": "zzz"})).json()
    assert plain["matches"] == filtered["matches"] == nowhere["matches"] == []
    assert not {"source", "readOnly"} & set(plain["hint"].replace(".", " ").split())
    assert "source" in filtered["hint"] and "readOnly" in filtered["hint"]
    assert "readOnly" not in nowhere["hint"] and "shop" in nowhere["hint"]


async def test_when_every_source_fails_readiness_is_503_with_reasons(serve, documents):
    for name in ("shop", "mail"):
        (documents / f"{name}.json").write_text("{")
    async with serve() as http:
        response = await http.get("/readyz")
    assert response.status_code == 503
    assert response.json()["status"] == "failed"
    assert {"shop", "mail"} <= set(response.json()["reasons"])


async def test_the_openapi_document_tells_the_truth(serve):
    async with serve() as http:
        document = (await http.get("/openapi.json")).json()
        search = document["paths"]["/search"]["post"]
        declared = search["requestBody"]["content"]["application/json"]["schema"]
        tools = (await http.get("/mcp/agent")).json()["tools"]
    assert declared == tools[0]["inputSchema"]
    assert set(document["paths"]) == {
        "/search",
        "/execute",
        "/capabilities/{name}",
        "/skills",
        "/healthz",
        "/readyz",
    }
    assert "422" not in search["responses"]
    assert "422" not in document["paths"]["/capabilities/{name}"]["get"]["responses"]
    assert search["responses"]["200"]["content"]["application/json"]["schema"] == tools[0]["outputSchema"]


@pytest.mark.parametrize("path", ["/execute", "/mcp/agent"])
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_an_upstream_call_is_cancelled_when_the_client_goes_away(
    make_settings, make_live, upstream, path, version
):
    started, cancelled, gone = anyio.Event(), anyio.Event(), anyio.Event()

    async def hang(request):
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    upstream.answer = hang
    settings = make_settings()
    live = make_live(settings)
    await live.reload()
    app = create_app(live, settings)
    arguments = {"name": "listOrders"}
    body = arguments if path == "/execute" else _enveloped(call("execute_capability", arguments), version)
    first = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

    async def receive():
        if first:
            return first.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message) -> None:
        raise AssertionError(message)

    async with app.router.lifespan_context(app), anyio.create_task_group() as tasks:
        tasks.start_soon(app, _scope(path, version), receive, send)
        with anyio.fail_after(10):
            await started.wait()
            gone.set()
            await cancelled.wait()


def _enveloped(message: dict, version: str) -> dict:
    if version == "2026-07-28":
        message["params"]["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    return message


def _scope(path: str, version: str) -> dict:
    headers = {"host": "localhost:8000", "content-type": "application/json", "accept": BOTH}
    headers |= {"mcp-protocol-version": version, "mcp-method": "tools/call", "mcp-name": "execute_capability"}
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 5),
        "server": ("localhost", 8000),
    }
