"""One server over time: a clock of the test's own, a connection that does what it is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from capdex_engine.call.masking import Masker
from capdex_engine.errors import UpstreamProtocolError, UpstreamTimeout, UpstreamUnreachable
from capdex_server.upstream.faults import Ended
from capdex_server.upstream.supervisor import FIRST_RETRY, LAST_RETRY, REST, STEADY, Upstream

pytestmark = pytest.mark.anyio


class Time:
    """Seconds that pass only when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleeping: dict[anyio.Event, float] = {}

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        event = anyio.Event()
        self.sleeping[event] = self.now + seconds
        try:
            await event.wait()
        finally:
            self.sleeping.pop(event, None)

    async def pass_by(self, seconds: float) -> None:
        ends = self.now + seconds
        await settle()
        while self.sleeping and min(self.sleeping.values()) <= ends:
            event = min(self.sleeping, key=lambda one: self.sleeping[one])
            self.now = max(self.now, self.sleeping.pop(event))
            event.set()
            await settle()
        self.now = ends


async def settle() -> None:
    for _ in range(60):
        await anyio.lowlevel.checkpoint()


class Server:
    """What is connected to, as often as it lets itself."""

    server = {"name": "fake"}  # noqa: RUF012

    def __init__(self) -> None:
        self.tools = ["a"]
        self.refuses: Exception | None = None
        self.fails: Exception | None = None
        self.connected: list[float] = []
        self.listed: list[float] = []
        self.changed: Callable[[], None] = lambda: None
        self.ends = anyio.Event()
        self.answer: Callable[[], Any] | None = None
        self.time = Time()

    @asynccontextmanager
    async def connect(self, changed: Callable[[], None]) -> AsyncIterator[Any]:
        self.connected.append(self.time.now)
        if self.refuses:
            raise self.refuses
        self.changed, self.ends = changed, anyio.Event()
        yield self

    async def ended(self) -> None:
        await self.ends.wait()
        raise Ended("The server ended with code 7.")

    async def list_page(self, cursor: str | None, options: Any) -> Any:
        self.listed.append(self.time.now)
        if self.fails:
            raise self.fails
        return {"tools": [{"name": name, "inputSchema": {}} for name in self.tools]}

    async def call(self, tool: str, arguments: dict[str, Any], timeout: float) -> dict[str, Any]:
        return await self.answer() if self.answer else {"content": []}


class World:
    def __init__(self, *, refresh: float | None = 300.0, kept: bytes | None = None) -> None:
        self.server = Server()
        self.time = self.server.time
        self.told: list[str] = []
        self.kept: list[bytes] = []
        self.upstream = Upstream(
            "odd",
            self.server.connect,
            refresh=refresh,
            kept=kept,
            keep=self.kept.append,
            told=lambda: self.told.append(self.upstream.state),
            masker=lambda: Masker(["s3cret-value"]),
            clock=self.time,
            sleep=self.time.sleep,
            chance=lambda: 0.5,
        )

    @property
    def names(self) -> list[str]:
        return [tool["name"] for tool in json.loads(self.upstream.listing.data or b'{"tools": []}')["tools"]]


@asynccontextmanager
async def running(world: World) -> AsyncIterator[World]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(world.upstream.run)
        await settle()
        yield world
        tasks.cancel_scope.cancel()


async def test_a_server_is_listed_once_and_told_of_once() -> None:
    async with running(World()) as world:
        assert (world.upstream.state, world.names, world.told) == ("up", ["a"], ["up"])
        assert world.upstream.tried.is_set()
        await world.time.pass_by(250)
        assert (len(world.server.listed), len(world.kept), len(world.server.connected)) == (1, 1, 1)


async def test_it_is_listed_again_by_age_and_told_of_only_when_something_is_new() -> None:
    async with running(World()) as world:
        await world.time.pass_by(310)
        assert (len(world.server.listed), world.told) == (2, ["up"])
        world.server.tools = ["a", "b"]
        await world.time.pass_by(310)
        assert (world.names, world.told, len(world.kept)) == (["a", "b"], ["up", "up"], 2)


async def test_without_an_age_it_is_listed_only_when_it_says_so() -> None:
    async with running(World(refresh=None)) as world:
        await world.time.pass_by(100_000)
        assert len(world.server.listed) == 1
        world.server.changed()
        await settle()
        assert len(world.server.listed) == 2


async def test_a_thousand_changes_a_second_are_one_listing_in_each_interval() -> None:
    async with running(World()) as world:
        for _ in range(100):
            for _ in range(100):
                world.server.changed()
            await world.time.pass_by(0.1)
        assert len(world.server.listed) <= 1 + 10 / REST
        pairs = zip(world.server.listed, world.server.listed[1:], strict=False)
        assert all(later - earlier >= REST - 0.001 for earlier, later in pairs)


async def test_a_change_during_a_listing_is_not_lost() -> None:
    async with running(World()) as world:
        await world.time.pass_by(0.5)
        world.server.changed()
        await world.time.pass_by(REST)
        assert len(world.server.listed) == 2


async def test_a_server_that_ends_is_down_with_its_last_good_tools_and_comes_back() -> None:
    async with running(World()) as world:
        world.server.ends.set()
        await settle()
        assert (world.upstream.state, world.names) == ("down", ["a"])
        assert world.upstream.listing.down == "The server ended with code 7."
        with pytest.raises(UpstreamUnreachable):
            await world.upstream.call("a", {}, 1.0)
        await world.time.pass_by(FIRST_RETRY)
        assert (world.upstream.state, world.upstream.listing.down) == ("up", None)
        assert world.told == ["up", "down", "up"]


async def test_tries_are_further_and_further_apart_up_to_a_limit_and_told_of_once() -> None:
    world = World()
    world.server.refuses = FileNotFoundError()
    async with running(world):
        assert (world.upstream.state, world.upstream.tried.is_set()) == ("down", True)
        await world.time.pass_by(400)
        gaps = [b - a for a, b in zip(world.server.connected, world.server.connected[1:], strict=False)]
        assert gaps[:6] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
        assert set(gaps[6:]) == {LAST_RETRY}
        assert world.told == ["down"]


async def test_only_a_connection_that_lasted_makes_the_next_failure_a_first_one() -> None:
    async with running(World()) as world:
        for lasts, failures in ((1.0, 1), (1.0, 2), (STEADY, 1)):
            await world.time.pass_by(lasts)
            world.server.ends.set()
            await settle()
            assert world.upstream.failures == failures
            await world.time.pass_by(FIRST_RETRY * 2 ** (failures - 1))
            assert world.upstream.state == "up"


async def test_a_listing_beyond_its_limits_keeps_the_last_good_one_in_use() -> None:
    async with running(World()) as world:
        world.server.tools = [f"t{number}" for number in range(2001)]
        await world.time.pass_by(310)
        listing = world.upstream.listing
        assert (world.names, listing.down) == (["a"], None)
        assert "MCP_CATALOG_ITEM_LIMIT" in str(listing.problem)
        assert (await world.upstream.call("a", {}, 1.0)) == {"content": []}
        world.server.tools = ["b"]
        await world.time.pass_by(310)
        assert (world.names, world.upstream.listing.problem) == (["b"], None)


async def test_a_server_that_does_not_list_in_time_is_connected_to_anew() -> None:
    async with running(World()) as world:
        world.server.fails = TimeoutError()
        await world.time.pass_by(310)
        assert world.upstream.state == "down"


async def test_a_server_that_is_at_work_is_left_to_finish() -> None:
    async with running(World()) as world:
        done = anyio.Event()

        async def slow() -> dict[str, Any]:
            await done.wait()
            return {"content": ["x"]}

        world.server.answer = slow
        results: list[Any] = []

        async def call() -> None:
            results.append(await world.upstream.call("a", {}, 60.0))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await settle()
            world.server.fails = TimeoutError()
            await world.time.pass_by(310)
            assert (world.upstream.state, len(world.server.connected)) == ("up", 1)
            done.set()
        assert results == [{"content": ["x"]}]


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (TimeoutError(), UpstreamTimeout),
        (ConnectionResetError(), UpstreamUnreachable),
        (UpstreamProtocolError("s3cret-value is wrong"), UpstreamProtocolError),
        (
            ExceptionGroup("", [ValueError(), ExceptionGroup("", [ConnectionResetError()])]),
            UpstreamUnreachable,
        ),
        (RuntimeError("s3cret-value"), UpstreamProtocolError),
    ],
)
async def test_what_goes_wrong_in_a_call_is_one_of_our_errors_and_makes_the_server_be_looked_at(
    raised: Exception, kind: type[Exception]
) -> None:
    async with running(World()) as world:
        await world.time.pass_by(REST + 1)

        async def fail() -> Any:
            raise raised

        world.server.answer = fail
        with pytest.raises(kind) as caught:
            await world.upstream.call("a", {}, 1.0)
        assert "s3cret" not in str(caught.value)
        await settle()
        assert len(world.server.listed) == 2


async def test_secrets_in_a_result_are_masked() -> None:
    async with running(World()) as world:

        async def tells() -> dict[str, Any]:
            return {"content": [{"type": "text", "text": "key s3cret-value"}], "_meta": {"own": 1}}

        world.server.answer = tells
        result = await world.upstream.call("a", {}, 1.0)
        assert result["content"][0]["text"] == "key ***"
        assert result["_meta"] == {"own": 1, "masked": True}


async def test_tools_that_were_kept_are_there_before_the_server_is_and_count_as_not_callable() -> None:
    first = World()
    async with running(first):
        pass
    world = World(kept=first.kept[0])
    world.server.refuses = PermissionError()
    assert (world.names, "still being connected" in str(world.upstream.listing.down)) == (["a"], True)
    async with running(world):
        assert (world.names, "may not be run" in str(world.upstream.listing.down)) == (["a"], True)
        world.server.refuses = None
        await world.time.pass_by(FIRST_RETRY)
        assert (world.upstream.listing.down, world.kept) == (None, [])
