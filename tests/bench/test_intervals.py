from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_bench.intervals import Interval, differences, interval, paired

VALUES = [0.0, 0.2, 0.4, 0.9, 1.0, 1.0, 0.3, 0.5]


def test_the_same_seed_gives_the_same_interval():
    assert interval([VALUES], seed=1) == interval([VALUES], seed=1)
    assert interval([VALUES], seed=1) != interval([VALUES], seed=2)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_interval_lies_around_the_mean_and_within_the_values(values):
    found = interval([values], resamples=200)
    assert found.mean == pytest.approx(np.mean(values))
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9


def test_more_queries_make_a_narrower_interval():
    few, many = interval([VALUES]), interval([VALUES * 25])
    assert many.high - many.low < (few.high - few.low) / 3


def test_the_mean_is_the_mean_of_the_groups():
    assert interval([[1.0], [0.0] * 9, []]).mean == 0.5


def test_no_values_give_no_interval():
    assert math.isnan(interval([[]]).mean)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(3)
    covered = 0
    for number in range(200):
        found = interval([rng.random(60).tolist()], seed=number, resamples=400)
        covered += found.low <= 0.5 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_equal_runs_differ_by_exactly_nothing():
    values = {str(i): value for i, value in enumerate(VALUES)}
    assert paired([values], [values]) == Interval(0.0, 0.0, 0.0)


def test_pairing_sees_a_small_constant_gain_that_two_intervals_would_not():
    before = {str(i): value for i, value in enumerate(VALUES)}
    after = {query: value + 0.01 for query, value in before.items()}
    assert paired([before], [after]).above_zero
    assert paired([after], [before]).below_zero
    assert interval([list(after.values())]).low < interval([list(before.values())]).high


def test_runs_over_other_queries_are_no_pair():
    with pytest.raises(ValueError):
        differences([{"1": 1.0}], [{"2": 1.0}])
    with pytest.raises(ValueError):
        differences([{"1": 1.0}], [])


def test_an_interval_is_shown_with_three_digits():
    assert str(Interval(0.5, 0.25, 0.75)) == "0.500 [0.250, 0.750]"
