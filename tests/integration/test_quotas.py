"""Quotas of ``capdex serve`` processes under load, in memory and in a real Redis that comes and goes."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from capdex_server.demo import run_in_thread
from integration.redis_support import RedisServer, redis_server
from integration.upstreams import Served, capdex_serve

pytestmark = pytest.mark.anyio
TENANTS = ("acme", "umbrella")
CALLERS = 200
HEADERS = {"Accept": "application/json, text/event-stream"}
PASSWORD = "planted-password-3141"
OPERATIONS = {"ping": "Ping the far end", "pong": "Pong the far end"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


class Upstream:
    """Answers everything, and counts it by path; ``/hang`` only when it is let."""

    def __init__(self) -> None:
        self.url = ""
        self.let = threading.Event()
        self.sent: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.sent[scope["path"].removeprefix("/")] += 1
            if scope["path"] == "/hang":
                await anyio.to_thread.run_sync(self.let.wait, 30)
            await JSONResponse({"ok": True})(scope, receive, send)


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    app = Upstream()
    with run_in_thread(app) as app.url:
        yield app


@dataclass
class House:
    """Processes of capdex over one upstream, and clients of all of them."""

    upstream: Upstream
    servers: list[Served] = field(default_factory=list)
    clients: list[httpx2.AsyncClient] = field(default_factory=list)

    async def post(self, caller: int, path: str, body: Any, process: int | None = None) -> dict[str, Any]:
        http = self.clients[caller % len(self.clients) if process is None else process]
        response = await http.post(path, json=body, headers={"Authorization": f"Bearer token-{caller}"})
        answer: dict[str, Any] = response.json()
        if path == "/mcp/agent":
            assert response.status_code == 200, answer
            return answer["result"]["structuredContent"]
        assert ("error" in answer) == (response.status_code != 200)
        return answer

    async def execute(self, caller: int = 0, name: str = "ping", **more: Any) -> str:
        """Call through REST; return the refused quota's scope, ``ok``, or another error's code."""
        return outcome(await self.post(caller, "/execute", {"name": name}, **more))

    async def agent(self, caller: int, tool: str, arguments: dict[str, Any]) -> str:
        """Use a tool through MCP; return the same."""
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return outcome(await self.post(caller, "/mcp/agent", message))

    async def ready(self) -> dict[str, Any]:
        headers = {"Authorization": "Bearer token-0"}
        response = await self.clients[0].get("/readyz", headers=headers)
        answer: dict[str, Any] = response.json()
        return answer

    async def until_loaded(self) -> None:
        """Wait for the first catalog of every process."""
        with anyio.fail_after(60):
            for http in self.clients:
                while (await http.get("/readyz")).status_code != 200:
                    await anyio.sleep(0.1)

    async def until_ready(self, status: str) -> dict[str, Any]:
        """Wait for a state; return what ``/readyz`` says then."""
        with anyio.fail_after(30):
            while (state := await self.ready())["status"] != status:
                await anyio.sleep(0.1)
        return state

    @property
    def sent(self) -> Counter[str]:
        """What has reached the upstream so far, by path."""
        return Counter(self.upstream.sent)


def outcome(answer: dict[str, Any]) -> str:
    error = answer.get("error")
    if error is None:
        return "ok"
    if error["code"] == "rate_limited":
        assert error["retryAfter"] >= 1
        return str(error["scope"])
    return str(error["code"])


def tenant_of(caller: int) -> str:
    # Callers of both tenants are at every process.
    return TENANTS[caller // 2 % 2]


ROOM = "[limits]\nmax_concurrent = 256\nmax_wait = 60\n"


def document(server: str, operations: dict[str, str]) -> dict[str, Any]:
    paths = {
        f"/{name}": {
            "get": {"operationId": name, "summary": text, "responses": {"200": {"description": "ok"}}}
        }
        for name, text in operations.items()
    }
    servers = [{"url": server}]
    return {"openapi": "3.1.0", "info": {"title": "Far", "version": "1"}, "servers": servers, "paths": paths}


@pytest.fixture
def house(tmp_path: Path, cache: Path, upstream: Upstream) -> Iterator[Callable[..., Any]]:
    """Run so many processes with one ``[quotas]`` table."""
    upstream.sent.clear()
    for source, names in (("far", OPERATIONS), ("slow", {"hang": "Hang at the far end"})):
        (tmp_path / f"{source}.json").write_text(json.dumps(document(upstream.url, names)))
    callers = "".join(
        f'[[callers]]\nname = "caller-{index}"\ntenant = "{tenant_of(index)}"\nallow = [{{}}]\n'
        f'token_sha256 = "{hashlib.sha256(f"token-{index}".encode()).hexdigest()}"\n'
        for index in range(CALLERS)
    )
    sources = "".join(
        f'[sources.{name}]\nlocation = "{name}.json"\nserver = "{upstream.url}"\n' for name in ("far", "slow")
    )
    stack = ExitStack()

    @asynccontextmanager
    async def running(
        quotas: str, processes: int = 1, limits: str = ROOM, **environ: str
    ) -> AsyncIterator[House]:
        config = tmp_path / "capdex.toml"
        config.write_text(f"cache = {json.dumps(str(cache))}\n{limits}{sources}{callers}{quotas}")
        home = House(upstream)
        for _ in range(processes):
            home.servers.append(stack.enter_context(capdex_serve(config, environ)))
        pool = httpx2.Limits(max_connections=None)
        for served in home.servers:
            home.clients.append(
                httpx2.AsyncClient(base_url=served.url, headers=HEADERS, limits=pool, timeout=60)
            )
        try:
            await home.until_loaded()
            yield home
        finally:
            for client in home.clients:
                await client.aclose()

    with stack:
        yield running


def quotas(redis: RedisServer | None, **more: str) -> str:
    """Return a ``[quotas]`` table; values as they stand in TOML."""
    values = {"backend": json.dumps(redis.url if redis else "memory"), **more}
    return "[quotas]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())


PONG = '[[quotas.capability]]\nname = "pong"\nlimit = "25/hour"\n'


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("backend", ["memory", "redis"])
async def test_of_200_callers_at_once_exactly_as_many_pass_as_the_quotas_say(
    house, tmp_path, backend, processes
):
    counted: Counter[tuple[str, str, str]] = Counter()

    async def caller(home: House, index: int) -> None:
        tenant = tenant_of(index)
        query = {"query": OPERATIONS["ping"]}
        counted[tenant, "search", await home.agent(index, "search_capabilities", query)] += 1
        counted[tenant, "execute", await home.execute(index)] += 1
        through_mcp = await home.agent(index, "execute_capability", {"name": "ping"})
        counted[tenant, "execute", through_mcp] += 1

    async with running_with(house, tmp_path, backend, processes) as home:
        async with anyio.create_task_group() as tasks:
            for index in range(CALLERS):
                tasks.start_soon(caller, home, index)
        sent = home.sent
    # In memory each process counts for itself; half of either tenant's callers ask each.
    shares = processes if backend == "memory" else 1
    expected = {}
    for tenant in TENANTS:
        for tool, asked, passed in (("search", 100, 30 * shares), ("execute", 200, 60 * shares)):
            expected |= {(tenant, tool, "ok"): passed, (tenant, tool, "requests"): asked - passed}
    assert counted == expected
    assert sent == {"ping": 2 * 60 * shares}


@asynccontextmanager
async def running_with(house: Any, folder: Path, backend: str, processes: int) -> AsyncIterator[House]:
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server(folder)) if backend == "redis" else None
        # On a busy machine an answer of Redis may take long; this test is about counts.
        table = quotas(redis, search='"30/hour"', execute='"60/hour; 10000/day"', timeout="10")
        async with house(table, processes) as home:
            yield home


async def test_calls_to_one_capability_pass_exactly_as_often_as_its_quota_says_over_two_processes(
    house, tmp_path
):
    counted: Counter[tuple[str, str]] = Counter()
    with redis_server(tmp_path) as redis:
        async with house(quotas(redis, timeout="10") + PONG, 2) as home:

            async def caller(index: int) -> None:
                counted[tenant_of(index), await home.execute(index, "pong")] += 1
                dry = {"name": "pong", "dryRun": True}
                assert outcome(await home.post(index, "/execute", dry)) == "ok"

            async with anyio.create_task_group() as tasks:
                for index in range(CALLERS):
                    tasks.start_soon(caller, index)
            sent = home.sent
    expected = {(tenant, "ok"): 25 for tenant in TENANTS}
    expected |= {(tenant, "capability"): 75 for tenant in TENANTS}
    assert counted == expected
    assert sent == {"pong": 50}


async def in_a_row(home: House, count: int) -> Counter[str]:
    """Call so often, one after the other; return what came of it."""
    return Counter([await home.execute() for _ in range(count)])


@pytest.mark.parametrize("fault", ["kill", "hang"])
@pytest.mark.parametrize("configured", ["refuse", "allow"])
async def test_a_redis_that_goes_away_mid_run_and_comes_back(house, tmp_path, configured, fault):
    counted: Counter[str] = Counter()
    with redis_server(tmp_path) as redis:
        table = quotas(redis, execute='"200/hour"', timeout="2", when_unreachable=json.dumps(configured))
        async with house(table) as home:
            away = anyio.Event()

            async def caller(index: int) -> None:
                while not away.is_set():
                    counted[await home.execute(index * 4)] += 1
                    if sum(counted.values()) == 50:
                        getattr(redis, fault)()
                        away.set()

            async with anyio.create_task_group() as tasks:
                for index in range(20):
                    tasks.start_soon(caller, index)
            # Nothing but what is configured came of any call, before, during and after.
            assert counted.keys() <= ({"ok", "requests"} if configured == "refuse" else {"ok"})
            assert counted["ok"] >= 50
            assert await in_a_row(home, 30) == {"requests" if configured == "refuse" else "ok": 30}
            state = await home.until_ready("degraded")
            assert list(state["reasons"]) == ["quotas"]
            assert "127.0.0.1" not in json.dumps(state)
            before = home.sent["ping"]
            redis.start() if fault == "kill" else redis.go_on()
            await home.until_ready("ok")
            last = await in_a_row(home, 205)
            # A killed one has forgotten; one that hung has counted what it was asked, and answers again.
            assert last["ok"] == 200 if fault == "kill" else 100 <= last["ok"] <= 150
            assert last["ok"] + last["requests"] == 205
            assert home.sent["ping"] - before == last["ok"]
            log = "".join(home.servers[0].log)
    assert log.count("quotas.unreachable") == log.count("quotas.recovered") == 1


@pytest.mark.parametrize("configured", ["refuse", "allow"])
async def test_a_server_that_starts_without_its_redis(house, tmp_path, configured):
    with redis_server(tmp_path, start=False) as redis:
        table = quotas(redis, execute='"3/hour"', timeout="5", when_unreachable=json.dumps(configured))
        async with house(table) as home:
            assert await in_a_row(home, 5) == {"requests" if configured == "refuse" else "ok": 5}
            assert "quotas" in (await home.until_ready("degraded"))["reasons"]
            redis.start()
            await home.until_ready("ok")
            assert await in_a_row(home, 5) == {"ok": 3, "requests": 2}


@pytest.mark.parametrize("right", [True, False])
async def test_a_password_opens_the_backend_and_is_seen_nowhere(house, tmp_path, right):
    with redis_server(tmp_path, PASSWORD if right else "another") as redis:
        table = quotas(redis, execute='"2/hour"', timeout="5", password_env='"QUOTAS_PASSWORD"')
        async with house(table, QUOTAS_PASSWORD=PASSWORD) as home:
            passed = await in_a_row(home, 3)
            state = await home.ready()
            log = "".join(home.servers[0].log)
    assert passed == ({"ok": 2, "requests": 1} if right else {"requests": 3})
    assert state["status"] == ("ok" if right else "degraded")
    assert PASSWORD not in log + json.dumps(state)


async def until_sent(home: House, name: str, count: int) -> None:
    with anyio.fail_after(30):
        while home.sent[name] < count:
            await anyio.sleep(0.01)


async def test_a_source_that_hangs_holds_up_only_itself(house, upstream):
    upstream.let.clear()
    codes: list[str] = []
    async with house("", limits="[limits]\nmax_concurrent = 2\nmax_wait = 0.1\n") as home:

        async def hang() -> None:
            codes.append(await home.execute(name="hang"))

        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(hang)
            await until_sent(home, "hang", 2)
            assert await home.execute(name="hang") == "source:slow"
            assert await in_a_row(home, 20) == {"ok": 20}
            assert codes == []
            upstream.let.set()
        assert codes == ["ok", "ok"]
        assert await home.execute(name="hang") == "ok"


async def test_a_server_that_has_enough_to_do_sheds_the_rest_and_recovers(house, upstream):
    upstream.let.clear()
    codes: list[str] = []
    async with house("", limits="[limits]\nmax_in_flight = 3\n") as home:
        http = home.clients[0]

        async def hang() -> None:
            codes.append(await home.execute(name="hang"))

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(hang)
            await until_sent(home, "hang", 3)
            for path in ("/mcp/agent", "/search", "/execute"):
                # A body is not waited for.
                shed = await http.post(path, content=b"x" * 100_000)
                assert (shed.status_code, shed.headers["Retry-After"]) == (503, "1")
                assert shed.json()["error"]["code"] == "overloaded"
            for path in ("/healthz", "/readyz"):
                assert (await http.get(path)).status_code == 200
            upstream.let.set()
        assert codes == ["ok"] * 3
        assert await in_a_row(home, 10) == {"ok": 10}
