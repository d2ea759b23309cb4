from __future__ import annotations

import anyio
import httpx2
import pytest
from starlette.authentication import AuthCredentials
from starlette.responses import PlainTextResponse

from capdex_server.middleware import HostGuard, LoopbackOnly, ScopeGuard, WholeRequest, scope_of_call

pytestmark = pytest.mark.anyio


async def echo(scope, receive, send) -> None:
    message = await receive()
    await PlainTextResponse(message["body"])(scope, receive, send)


def client(app, base: str = "http://localhost:8000", peer: str = "127.0.0.1") -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=app, client=(peer, 1))
    return httpx2.AsyncClient(transport=transport, base_url=base)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8000", 200),
        ("127.0.0.1", 200),
        ("[::1]:8000", 200),
        ("LOCALHOST", 200),
        ("capdex.example", 200),
        ("capdex.example:9", 200),
        ("exact.example:81", 200),
        ("exact.example:82", 421),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("evil.example:8000", 421),
    ],
)
async def test_only_known_hosts_are_served(host, status):
    async with client(HostGuard(echo, ["capdex.example", "exact.example:81"])) as http:
        assert (await http.post("/", headers={"Host": host})).status_code == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:8000", 200),
        ("https://app.example", 200),
        ("http://localhost:3000", 403),
        ("https://evil.example", 403),
        ("null", 403),
        ("", 403),
    ],
)
async def test_only_own_and_named_pages_may_call(origin, status):
    async with client(HostGuard(echo, origins=["https://app.example/"])) as http:
        assert (await http.post("/", headers={"Origin": origin})).status_code == status


@pytest.mark.parametrize(("peer", "status"), [("127.0.0.1", 200), ("::1", 200), ("192.168.1.9", 403)])
async def test_without_callers_only_this_machine_is_served(peer, status):
    async with client(LoopbackOnly(echo), peer=peer) as http:
        assert (await http.post("/")).status_code == status


async def test_a_peer_that_is_not_known_is_refused():
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=_without_client(LoopbackOnly(echo))), base_url="http://localhost"
    ) as http:
        assert (await http.post("/")).status_code == 403


def _without_client(app):
    async def call(scope, receive, send) -> None:
        await app({**scope, "client": None}, receive, send)

    return call


@pytest.mark.parametrize(("size", "status"), [(0, 200), (10, 200), (11, 413)])
async def test_a_body_over_the_limit_is_413_declared_or_not(size, status):
    async def chunks():
        for _ in range(size):
            yield b"x"

    async with client(WholeRequest(echo, 10)) as http:
        for content in (b"x" * size, chunks()):
            response = await http.post("/", content=content)
            assert response.status_code == status
            assert status == 413 or response.content == b"x" * size


async def test_work_is_cancelled_when_the_client_goes_away():
    log: list[str] = []

    async def slow(scope, receive, send) -> None:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            log.append("cancelled")
            raise

    messages = [{"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"}]

    async def receive():
        return messages.pop(0)

    async def send(message) -> None:
        log.append(message["type"])

    scope = {"type": "http", "headers": []}
    with anyio.fail_after(5):
        await WholeRequest(slow, 10)(scope, receive, send)
    assert log == ["cancelled"]


async def test_a_disconnect_after_the_answer_cancels_nothing():
    log: list[str] = []
    gone = anyio.Event()
    first = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive():
        if first:
            return first.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def app(scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        gone.set()
        await receive()  # the body
        log.append((await receive())["type"])

    async def send(message) -> None:
        log.append(message["type"])

    await WholeRequest(app, 10)({"type": "http", "headers": []}, receive, send)
    assert log == ["http.response.start", "http.response.body", "http.disconnect"]


async def test_an_error_comes_out_as_it_is():
    async def app(scope, receive, send) -> None:
        raise KeyError("mine")

    async with client(WholeRequest(app, 10)) as http:
        with pytest.raises(KeyError):
            await http.post("/")


def with_scopes(app, *scopes: str):
    async def call(scope, receive, send) -> None:
        await app({**scope, "auth": AuthCredentials(scopes)}, receive, send)

    return call


CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "do", "arguments": {}}}


@pytest.mark.parametrize(
    ("scopes", "body", "status"),
    [
        (["execute"], CALL, 200),
        (["search"], CALL, 403),
        (["search"], {**CALL, "method": "tools/list"}, 200),
        (["search"], {**CALL, "params": {"name": "other"}}, 200),
        (["search"], {**CALL, "params": {"name": ["do"]}}, 200),
        (["search"], {**CALL, "params": []}, 200),
        (["search"], [CALL], 200),
        (["search"], "text", 200),
        ([], {**CALL, "method": "tools/list"}, 403),
    ],
)
async def test_a_scope_that_is_missing_is_403(scopes, body, status):
    guarded = ScopeGuard(WholeRequest(echo, 10_000), scope_of_call({"do": "execute"}))
    async with client(with_scopes(guarded, *scopes)) as http:
        response = await http.post("/", json=body)
        assert response.status_code == status
        assert ("insufficient_scope" in response.headers.get("WWW-Authenticate", "")) == (status == 403)


async def test_a_body_that_is_no_json_is_left_to_the_endpoint():
    guarded = ScopeGuard(echo, scope_of_call({"do": "execute"}))
    async with client(with_scopes(guarded, "search")) as http:
        assert (await http.post("/", content=b"{not json")).content == b"{not json"


@pytest.mark.parametrize("build", [LoopbackOnly, HostGuard, lambda app: WholeRequest(app, 1)])
async def test_other_scopes_pass_through(build):
    seen: list[str] = []

    async def app(scope, receive, send) -> None:
        seen.append(scope["type"])

    await build(app)({"type": "lifespan"}, None, None)
    assert seen == ["lifespan"]
