from __future__ import annotations

import math
from dataclasses import replace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits.aio.storage import MemoryStorage

from capdex_engine.errors import InvalidRequest, RateLimited
from capdex_engine.operation import Operation
from capdex_server.aliases import Aliases
from capdex_server.config import QuotasConfig
from capdex_server.quota_store import WindowMemory
from capdex_server.quotas import Quotas

pytestmark = pytest.mark.anyio
PLAIN = Aliases()
CREATE = Operation(
    name="createIssue", source="github", method="POST", path="/issues", schema_digest="sha256:1"
)
LIST = replace(CREATE, name="listIssues", method="GET")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def quotas(clock: Clock | None = None, **config) -> Quotas:
    return Quotas(QuotasConfig.model_validate(config), clock=clock or Clock())


async def limited(awaitable) -> RateLimited:
    with pytest.raises(RateLimited) as caught:
        await awaitable
    return caught.value


async def passes(count: int, ask) -> int:
    """Ask so many times at once; return how many passed."""
    passed = 0

    async def one() -> None:
        nonlocal passed
        try:
            await ask()
        except RateLimited:
            return
        passed += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(one)
    return passed


async def test_without_limits_everything_passes():
    assert await passes(100, lambda: quotas().request("a", "search")) == 100


async def test_each_tenant_and_tool_has_a_quota_of_its_own():
    mine = quotas(search="3/hour", execute="2/hour")
    for tenant in ("a", "b"):
        assert await passes(10, lambda tenant=tenant: mine.request(tenant, "search")) == 3
        assert await passes(10, lambda tenant=tenant: mine.request(tenant, "execute")) == 2


async def test_a_refusal_says_which_quota_and_how_long_to_wait():
    clock = Clock()
    mine = quotas(clock, search="2/minute")
    await mine.request("a", "search")
    clock.now += 20.5
    await mine.request("a", "search")
    error = (await limited(mine.request("a", "search"))).payload()["error"]
    assert (error["code"], error["scope"], error["retryAfter"]) == ("rate_limited", "requests", 40)
    assert error["retryable"] is True
    clock.now += 40
    await mine.request("a", "search")
    assert (await limited(mine.request("a", "search"))).details["retryAfter"] == 20


async def test_to_wait_is_at_least_a_second():
    clock = Clock()
    mine = quotas(clock, search="1/second")
    await mine.request("a", "search")
    clock.now += 0.999
    assert (await limited(mine.request("a", "search"))).details["retryAfter"] == 1


async def test_no_stretch_of_time_as_long_as_the_window_lets_more_pass():
    clock = Clock()
    mine = quotas(clock, search="10/minute")
    clock.now = 1019.0  # a window by the clock would end a second later
    assert await passes(20, lambda: mine.request("a", "search")) == 10
    clock.now += 2
    assert await passes(20, lambda: mine.request("a", "search")) == 0
    clock.now += 58
    assert await passes(20, lambda: mine.request("a", "search")) == 10


@given(
    st.lists(st.floats(min_value=0, max_value=30, allow_nan=False), max_size=60),
    st.integers(min_value=1, max_value=5),
)
def test_never_more_than_the_limit_in_any_window(pauses, limit):
    async def run() -> list[float]:
        clock = Clock()
        mine, passed = quotas(clock, search=f"{limit}/minute"), []
        for pause in pauses:
            clock.now += pause
            try:
                await mine.request("a", "search")
            except RateLimited as error:
                ends = passed[-limit] + 60
                assert error.details["retryAfter"] == max(1, math.ceil(ends - clock.now))
            else:
                passed.append(clock.now)
        return passed

    passed = anyio.run(run)
    assert all(later - earlier >= 60 for earlier, later in zip(passed, passed[limit:], strict=False))


async def test_what_a_short_window_refuses_is_not_taken_from_the_long_one():
    clock = Clock()
    mine = quotas(clock, search="5/day; 2/minute")
    assert await passes(50, lambda: mine.request("a", "search")) == 2
    clock.now += 60
    assert await passes(50, lambda: mine.request("a", "search")) == 2
    clock.now += 60
    assert await passes(50, lambda: mine.request("a", "search")) == 1
    error = await limited(mine.request("a", "search"))
    assert error.details["retryAfter"] == 86400 - 120
    clock.now += 86400 - 120
    assert await passes(50, lambda: mine.request("a", "search")) == 2


async def test_a_tenants_own_quota_replaces_the_one_for_all():
    mine = quotas(search="2/hour", tenants={"big": {"search": "5/hour"}, "free": {"search": "off"}})
    for tenant, expected in (("big", 5), ("free", 20), ("other", 2)):
        assert await passes(20, lambda tenant=tenant: mine.request(tenant, "search")) == expected


async def test_wrong_input_counts_and_is_told_even_when_the_quota_is_used_up():
    def read(_: object) -> None:
        raise InvalidRequest("no")

    mine = quotas(search="2/hour")
    for _ in range(3):
        with pytest.raises(InvalidRequest):
            await mine.counted("a", "search", read, {})
    await limited(mine.counted("a", "search", lambda given: given, {}))


async def test_input_that_is_read_is_returned():
    assert await quotas().counted("a", "search", lambda given: [given], 7) == [7]


async def test_each_tenant_and_capability_has_a_quota_of_its_own():
    mine = quotas(capability=[{"name": "*Issue*", "limit": "2/hour"}])
    for tenant in ("a", "b"):
        for one in (CREATE, LIST):
            assert await passes(9, lambda t=tenant, one=one: mine.call(t, one, PLAIN)) == 2
    error = await limited(mine.call("a", CREATE, PLAIN))
    assert (error.details["scope"], error.capability) == ("capability", "createIssue")
    assert await passes(9, lambda: mine.call("a", replace(CREATE, name="other"), PLAIN)) == 9


async def test_the_first_quota_that_fits_decides():
    rules = [
        {"tenant": "big", "limit": "off"},
        {"readOnly": True, "limit": "5/hour"},
        {"source": "github", "limit": "1/hour"},
    ]
    mine = quotas(capability=rules)
    assert await passes(9, lambda: mine.call("big", CREATE, PLAIN)) == 9
    assert await passes(9, lambda: mine.call("a", CREATE, PLAIN)) == 1
    assert await passes(9, lambda: mine.call("a", replace(LIST, name="l"), PLAIN)) == 5


async def test_a_capability_does_not_escape_its_quota_when_it_gets_a_prefix():
    renamed = replace(CREATE, name="github.createIssue", operation_id="createIssue")
    aliases = Aliases({}, [renamed])
    mine = quotas(capability=[{"name": "createIssue", "limit": "1/hour"}])
    assert await passes(9, lambda: mine.call("a", renamed, aliases)) == 1


async def test_names_with_slashes_do_not_share_a_quota():
    mine = quotas(capability=[{"limit": "1/hour"}])
    await mine.call("x", replace(CREATE, name="a/b"), PLAIN)
    await mine.call("b/x", replace(CREATE, name="a"), PLAIN)


async def test_keys_whose_window_has_passed_are_forgotten():
    clock = Clock()
    memory = WindowMemory(clock)
    for index in range(5000):
        clock.now += 1
        assert await memory.acquire_entry(f"k{index}", 3, 60)
    assert len(memory._hits) <= 1024 + 60
    assert await memory.get_moving_window("k4999", 3, 60) == (clock.now, 1)
    assert await memory.get_moving_window("never", 3, 60) == (clock.now, 0)


async def test_several_hits_at_once_pass_together_or_not_at_all():
    memory = WindowMemory(Clock())
    assert await memory.acquire_entry("k", 3, 60, amount=2)
    assert not await memory.acquire_entry("k", 3, 60, amount=2)
    assert await memory.acquire_entry("k", 3, 60)


class Flaky(MemoryStorage):
    """A storage that is away, or hangs, when it is told to be."""

    away = hangs = False
    asked = 0

    async def acquire_entry(self, *given, **more) -> bool:
        self.asked += 1
        if self.hangs:
            await anyio.sleep_forever()
        if self.away:
            raise ConnectionError("refused by 10.0.0.7")
        return True

    async def get(self, key: str) -> int:
        return int(await self.acquire_entry(key))


def flaky(**config) -> tuple[Quotas, Flaky, Clock]:
    storage, clock = Flaky(), Clock()
    settings = QuotasConfig.model_validate(
        {"backend": "redis://x", "search": "5/hour", "timeout": 0.01, **config}
    )
    return Quotas(settings, storage=storage, clock=clock, monotonic=clock), storage, clock


@pytest.mark.parametrize("fault", ["away", "hangs"])
async def test_while_the_backend_is_away_requests_are_refused(fault):
    mine, storage, clock = flaky(capability=[{"limit": "1/hour"}])
    setattr(storage, fault, True)
    error = await limited(mine.request("a", "search"))
    assert (error.details["scope"], error.details["retryAfter"]) == ("requests", 1)
    assert "10.0.0.7" not in str(error.payload())
    called = await limited(mine.call("a", CREATE, PLAIN))
    assert (called.details["scope"], called.capability) == ("capability", "createIssue")
    assert "10.0.0.7" not in (await mine.problem() or "10.0.0.7")
    setattr(storage, fault, False)
    clock.now += 1
    await mine.request("a", "search")
    assert await mine.problem() is None


@pytest.mark.parametrize("fault", ["away", "hangs"])
async def test_or_they_pass_when_that_is_configured(fault):
    mine, storage, _ = flaky(when_unreachable="allow", capability=[{"limit": "1/hour"}])
    setattr(storage, fault, True)
    assert await passes(20, lambda: mine.request("a", "search")) == 20
    await mine.call("a", CREATE, PLAIN)
    assert await mine.problem()


async def test_a_backend_that_is_away_is_asked_once_a_second():
    mine, storage, clock = flaky()
    storage.away = True
    for _ in range(5):
        await limited(mine.request("a", "search"))
    assert storage.asked == 1
    clock.now += 1
    await limited(mine.request("a", "search"))
    assert storage.asked == 2


async def test_going_away_and_coming_back_are_logged_once(caplog):
    caplog.set_level("INFO")
    mine, storage, clock = flaky(when_unreachable="allow")
    storage.away = True
    for _ in range(3):
        clock.now += 1
        await mine.request("a", "search")
    storage.away = False
    clock.now += 1
    await mine.request("a", "search")
    await mine.request("a", "search")
    assert [record.msg["event"] for record in caplog.records] == ["quotas.unreachable", "quotas.recovered"]
    assert caplog.records[0].msg["requests"] == "allow"


async def test_memory_has_no_problems():
    assert await quotas(search="1/hour").problem() is None
