"""Quotas and limits as callers meet them: through the application, with an upstream that is a function."""

from __future__ import annotations

import json
import threading
from contextlib import asynccontextmanager

import anyio
import httpx2
import numpy as np
import pytest

from capdex_engine.call import Response
from capdex_engine.encode.testing import HashEncoder
from capdex_server.app import create_app
from capdex_server.config import Limits, QuotasConfig, SchemeConfig, SourceConfig

pytestmark = pytest.mark.anyio
BASE = "http://localhost:8000"
HEADERS = {"Accept": "application/json, text/event-stream"}
ORDER = {"name": "getOrder", "pathParams": {"id": 7}}
TOKEN_URL = "https://shop.example/token"


class Http:
    """What a program sends; every method returns the error's code, or None."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http

    async def post(self, path: str, body: object) -> str | None:
        response = await self.http.post(path, json=body)
        return response.json().get("error", {}).get("code")

    async def search(self, query: str = "list orders") -> str | None:
        return await self.post("/search", {"query": query})

    async def execute(self, **call) -> str | None:
        return await self.post("/execute", call)


@pytest.fixture
def serve(make_settings, make_live):
    @asynccontextmanager
    async def running(*, callers=None, parts=None, limits=None, quotas=None, **fields):
        settings = make_settings(
            callers,
            limits=Limits(**limits or {}),
            quotas=QuotasConfig.model_validate(quotas or {}),
            **fields,
        )
        live = make_live(settings, **parts or {})
        await live.reload()
        app = create_app(live, settings)
        transport = httpx2.ASGITransport(app=app, client=("127.0.0.1", 5))
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url=BASE, headers=HEADERS) as http,
        ):
            yield Http(http)

    return running


async def test_a_program_gets_429_and_when_to_come_back(serve):
    async with serve(quotas={"search": "1/hour"}) as served:
        assert await served.search() is None
        response = await served.http.post("/search", json={"query": "list orders"})
    error = response.json()["error"]
    assert response.status_code == 429
    assert (error["code"], error["scope"], error["retryable"]) == ("rate_limited", "requests", True)
    assert 3500 < error["retryAfter"] <= 3600
    assert response.headers["Retry-After"] == str(error["retryAfter"])


async def test_an_agent_gets_a_tools_result(serve):
    params = {"name": "search_capabilities", "arguments": {"query": "list orders"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with serve(quotas={"search": "1/hour"}) as served:
        first, second = [await served.http.post("/mcp/agent", json=message) for _ in range(2)]
    assert (first.status_code, second.status_code) == (200, 200)
    assert "Retry-After" not in second.headers
    result = second.json()["result"]
    assert (first.json()["result"]["isError"], result["isError"]) == (False, True)
    assert result["structuredContent"]["error"]["code"] == "rate_limited"


async def test_tools_are_counted_apart_and_other_requests_not_at_all(serve):
    async with serve(quotas={"search": "1/hour", "execute": "1/hour"}) as served:
        for _ in range(3):
            assert (await served.http.get("/capabilities/getOrder")).status_code == 200
            assert (await served.http.get("/mcp/agent")).status_code == 200
        assert await served.search() is None
        assert await served.execute(**ORDER) is None
        assert await served.execute(**ORDER) == "rate_limited"


async def test_requests_with_wrong_input_count_and_are_told_so_first(serve):
    async with serve(quotas={"search": "2/hour", "execute": "2/hour"}) as served:
        for _ in range(3):
            assert await served.search("") == "invalid_request"
            assert await served.execute(nmae="x") == "invalid_request"
        assert await served.search() == "rate_limited"
        assert await served.execute(**ORDER) == "rate_limited"


@pytest.mark.parametrize("path", ["/search", "/execute"])
async def test_a_body_that_is_no_json_counts_too(serve, path):
    async with serve(quotas={"search": "1/hour", "execute": "1/hour"}) as served:
        assert (await served.http.post(path, content=b"{")).status_code == 400
        assert await served.post(path, {"query": "orders"} if path == "/search" else ORDER) == "rate_limited"


async def test_whoever_is_turned_away_by_his_token_takes_nothing_from_a_quota(serve):
    callers = {"finder": {"scopes": ["search"]}}
    async with serve(callers=callers, quotas={"search": "1/hour"}) as served:
        for token in ("wrong", None):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            response = await served.http.post("/search", json={"query": "orders"}, headers=headers)
            assert response.status_code == 401
        served.http.headers["Authorization"] = "Bearer finder-token"
        assert await served.search() is None
        assert await served.search() == "rate_limited"


async def test_the_request_quota_comes_before_the_name(serve):
    async with serve(quotas={"execute": "1/hour"}) as served:
        assert await served.execute(name="no such thing") == "unknown_capability"
        assert await served.execute(name="no such thing") == "rate_limited"


async def test_only_what_would_be_sent_takes_from_a_capabilitys_quota(serve, upstream):
    async with serve(quotas={"capability": [{"limit": "1/hour"}]}) as served:
        for _ in range(3):
            assert await served.execute(**ORDER, dryRun=True) is None
            bad = {"name": "getOrder", "pathParams": {"id": "x"}}
            assert await served.execute(**bad) == "invalid_capability_arguments"
        assert await served.execute(**ORDER) is None
        assert await served.execute(**ORDER) == "rate_limited"
        assert await served.execute(**ORDER, dryRun=True) is None
        assert await served.execute(name="listOrders") is None
    assert len(upstream.requests) == 2


async def test_a_missing_credential_takes_nothing_from_a_capabilitys_quota(serve):
    order = {"name": "createOrder", "body": {"item": "pen"}}
    quotas = {"capability": [{"limit": "1/hour"}]}
    async with serve(parts={"environ": {}}, quotas=quotas) as served:
        for _ in range(3):
            assert await served.execute(**order) == "missing_credentials"


async def test_a_call_that_is_sent_again_with_a_new_token_counts_once(serve, upstream, documents):
    tokens = []

    async def answer(request) -> Response:
        headers = (("Content-Type", "application/json"),)
        if request.url == TOKEN_URL:
            tokens.append(f"token-{len(tokens)}")
            body = {"access_token": tokens[-1], "token_type": "Bearer", "expires_in": 3600}
            return Response(200, headers, json.dumps(body).encode(), truncated=False)
        stale = dict(request.headers).get("Authorization") == "Bearer token-0"
        return Response(401 if stale else 200, headers, b"{}", truncated=False)

    upstream.answer = answer
    shop = SourceConfig.model_validate(
        {
            "location": str(documents / "shop.json"),
            "security_schemes": {"o": SchemeConfig(type="oauth2", token_url=TOKEN_URL)},
            "security": [{"o": []}],
            "credentials": {"o": {"env": "CLIENT", "client_id": "me"}},
        }
    )
    quotas = {"execute": "2/hour", "capability": [{"limit": "2/hour"}]}
    parts = {"environ": {"CLIENT": "s3cret"}}
    async with serve(sources={"shop": shop}, parts=parts, quotas=quotas) as served:
        for _ in range(2):
            response = await served.http.post("/execute", json={"name": "listOrders"})
            assert response.json()["status"] == 200
    assert tokens == ["token-0", "token-1"]
    assert len(upstream.requests) == 5


class Held:
    """An upstream whose shop answers when it is let."""

    def __init__(self) -> None:
        self.let, self.waiting = anyio.Event(), 0

    async def __call__(self, request) -> Response:
        if request.url.startswith("https://shop.example"):
            self.waiting += 1
            await self.let.wait()
        return Response(200, (), b"", truncated=False)


async def test_a_source_that_hangs_holds_up_only_itself(serve, upstream):
    upstream.answer = held = Held()
    codes = []

    async with (
        serve(limits={"max_concurrent": 2, "max_wait": 0}) as served,
        anyio.create_task_group() as tasks,
    ):

        async def one() -> None:
            codes.append(await served.execute(**ORDER))

        for _ in range(2):
            tasks.start_soon(one)
        await anyio.wait_all_tasks_blocked()
        assert held.waiting == 2
        response = await served.http.post("/execute", json=ORDER)
        assert await served.execute(name="sendMail", body={}) is None
        held.let.set()
    error = response.json()["error"]
    assert (response.status_code, response.headers["Retry-After"]) == (429, "1")
    assert (error["scope"], error["capability"]) == ("source:shop", "getOrder")
    assert codes == [None, None]


async def test_what_finds_no_place_takes_nothing_from_a_capabilitys_quota(serve, upstream):
    upstream.answer = held = Held()
    limits, quotas = {"max_concurrent": 1, "max_wait": 0}, {"capability": [{"limit": "2/hour"}]}
    async with serve(limits=limits, quotas=quotas) as served:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(served.post, "/execute", ORDER)
            await anyio.wait_all_tasks_blocked()
            for _ in range(3):
                assert await served.execute(**ORDER) == "rate_limited"
            held.let.set()
        assert await served.execute(**ORDER) is None
        error = (await served.http.post("/execute", json=ORDER)).json()["error"]
    assert error["scope"] == "capability"


class Gate(HashEncoder):
    """An encoder that holds up searches in their threads while it is shut."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.inside = threading.Event(), threading.Semaphore(0)
        self.open.set()

    def encode(self, texts) -> np.ndarray:
        self.inside.release()
        assert self.open.wait(30)
        return super().encode(texts)


async def test_searches_that_wait_for_a_thread_are_bounded(serve):
    gate = Gate()
    limits = {"search_threads": 1, "max_waiting_searches": 1}
    codes = []
    async with serve(parts={"encoder": lambda: gate}, limits=limits) as served:
        gate.open.clear()
        while gate.inside.acquire(blocking=False):
            pass
        async with anyio.create_task_group() as tasks:

            async def one(query: str) -> None:
                codes.append(await served.search(query))

            tasks.start_soon(one, "one order")
            await anyio.to_thread.run_sync(gate.inside.acquire, True, 30)
            tasks.start_soon(one, "another order")
            await anyio.wait_all_tasks_blocked()
            response = await served.http.post("/search", json={"query": "a third order"})
            gate.open.set()
        assert await served.search() is None
    assert (response.status_code, response.json()["error"]["scope"]) == (429, "search")
    assert codes == [None, None]


async def test_beyond_what_is_worked_on_at_once_the_answer_is_503(serve, upstream):
    upstream.answer = held = Held()
    async with serve(limits={"max_in_flight": 2}) as served:
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(served.post, "/execute", ORDER)
            await anyio.wait_all_tasks_blocked()
            shed = [await served.http.post(path, json={}) for path in ("/mcp/agent", "/search", "/execute")]
            health = [await served.http.get(path) for path in ("/healthz", "/readyz")]
            held.let.set()
        assert await served.search() is None
    assert [(one.status_code, one.headers["Retry-After"]) for one in shed] == [(503, "1")] * 3
    assert shed[0].json()["error"]["retryable"] is True
    assert [one.status_code for one in health] == [200, 200]


async def test_a_backend_that_is_away_degrades_the_server(serve):
    # Nothing listens on port 1.
    quotas = {"backend": "redis://127.0.0.1:1", "execute": "1/hour"}
    async with serve(quotas=quotas) as served:
        assert await served.search() is None
        assert await served.execute(**ORDER) == "rate_limited"
        ready = await served.http.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    assert "127.0.0.1" not in ready.json()["reasons"]["quotas"]


async def test_a_quota_that_fits_nothing_is_warned_about(serve, caplog):
    async with serve(quotas={"capability": [{"name": "misspelt", "limit": "1/hour"}]}):
        pass
    assert [record.msg["caller"] for record in caplog.records if record.msg["event"] == "rule.idle"] == [
        "quotas"
    ]
