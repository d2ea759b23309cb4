from __future__ import annotations

import pytest

from capdex_server.schedule import FIRST_RETRY, LAST_RETRY, Schedule


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def schedule(clock, chance=0.5, **intervals):
    return Schedule(intervals, clock=clock, chance=lambda: chance)


def test_what_is_not_polled_is_never_due(clock):
    assert schedule(clock, file=None).wait() is None


def test_a_url_is_due_after_its_interval_and_again_after_it_was_read(clock):
    plan = schedule(clock, url=300.0, slow=3600.0)
    assert plan.wait() == 300.0 and plan.due() == set()
    clock.now += 300.0
    assert plan.due() == {"url"} and plan.wait() == 0.0
    plan.read({"url"}, {})
    assert plan.due() == set() and plan.wait() == 300.0


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 270.0), (0.999999, 330.0)])
def test_polls_are_spread_around_the_interval(clock, chance, seconds):
    assert schedule(clock, chance, url=300.0).wait() == pytest.approx(seconds, abs=0.01)


def test_a_failing_source_is_tried_again_later_and_later_until_it_is_mended(clock):
    plan = schedule(clock, file=None)
    waits = []
    for _ in range(12):
        plan.read({"file"}, {"file": None})
        waits.append(plan.wait())
    assert waits[:3] == [FIRST_RETRY, 2 * FIRST_RETRY, 4 * FIRST_RETRY]
    assert waits[-1] == LAST_RETRY
    plan.read({"file"}, {})
    assert plan.wait() is None
    plan.read({"file"}, {"file": None})
    assert plan.wait() == FIRST_RETRY


def test_a_server_that_asks_to_be_left_alone_is(clock):
    plan = schedule(clock, url=300.0)
    plan.read({"url"}, {"url": 1000.0})
    assert plan.wait() == 1000.0


def test_one_source_that_fails_does_not_move_another(clock):
    plan = schedule(clock, a=300.0, b=300.0)
    clock.now += 100.0
    plan.read({"a"}, {"a": None})
    assert plan.wait() == FIRST_RETRY
    clock.now += 200.0
    assert plan.due() == {"a", "b"}
