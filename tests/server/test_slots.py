from __future__ import annotations

import anyio
import pytest

from capdex_engine.errors import RateLimited
from capdex_server.config import Limits, SourceConfig
from capdex_server.slots import Slots

pytestmark = pytest.mark.anyio


def slots(**limits) -> Slots:
    own = SourceConfig(location="x", max_concurrent=1)
    return Slots(Limits(max_concurrent=2, **{"max_wait": 0, **limits}), {"own": own})


async def test_as_many_calls_as_the_limit_says_have_a_place_each():
    mine = slots()
    with mine.one() as one, mine.one() as two, mine.one() as three:
        await one.take("shop", "a")
        await two.take("shop", "a")
        with pytest.raises(RateLimited) as caught:
            await three.take("shop", "listOrders")
    error = caught.value
    assert (error.details["scope"], error.details["retryAfter"]) == ("source:shop", 1)
    assert error.capability == "listOrders"


async def test_a_source_has_the_limit_of_its_own_and_others_are_not_concerned():
    mine = slots()
    with mine.one() as one, mine.one() as two, mine.one() as other:
        await one.take("own", "a")
        with pytest.raises(RateLimited):
            await two.take("own", "a")
        await other.take("shop", "a")


async def test_a_place_is_free_again_after_a_call_that_failed():
    mine = slots()
    for _ in range(5):
        with pytest.raises(ValueError, match="failed"), mine.one() as one:
            await one.take("own", "a")
            raise ValueError("failed")


async def test_a_call_waits_for_a_place_for_a_while():
    mine = slots(max_wait=60)
    order = []

    async def second() -> None:
        with mine.one() as slot:
            await slot.take("own", "a")
            order.append("second")

    async with anyio.create_task_group() as tasks:
        with mine.one() as slot:
            await slot.take("own", "a")
            tasks.start_soon(second)
            await anyio.wait_all_tasks_blocked()
            order.append("first")
    assert order == ["first", "second"]


async def test_a_call_that_gives_up_waiting_keeps_no_place():
    mine = slots(max_wait=60)

    async def waiting() -> None:
        with mine.one() as slot:
            await slot.take("own", "a")

    with mine.one() as slot:
        await slot.take("own", "a")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waiting)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    with mine.one() as slot:
        await slot.take("own", "a")


async def test_a_call_that_takes_none_gives_none_back():
    mine = slots()
    with mine.one():
        pass
    with mine.one() as one, mine.one() as two:
        await one.take("own", "a")
        with pytest.raises(RateLimited):
            await two.take("own", "a")
