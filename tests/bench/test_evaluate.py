from __future__ import annotations

import math

import pytest

from bench.helpers import OPERATIONS, query_set, result, ticking
from capdex_bench.evaluate import evaluate, macro_mean, mean
from capdex_bench.measures import Measure
from capdex_bench.systems import Context

NDCG = Measure.parse("nDCG@10")


def test_an_unanswered_query_counts_as_zero_and_a_none_query_not_at_all():
    of = query_set({"1": {"listOrders": 2}, "2": {"getInvoice": 2}, "3": {}})
    found = result({"1": ["listOrders"]}, of)
    assert found.values(NDCG) == {"1": 1.0, "2": 0.0}
    assert found.mean(NDCG) == 0.5
    assert found.mean(Measure.parse("abstention")) == 1.0
    assert found.mean(Measure.parse("falseAbstention")) == 0.5


def test_values_are_kept_per_type():
    of = query_set(
        {"1": {"a": 2}, "2": {"b": 2}, "3": {"c": 2}}, types={"1": "terse", "2": "typo", "3": "typo"}
    )
    found = result({"1": ["a"], "2": ["b"]}, of)
    assert found.by_type(NDCG) == {"terse": {"1": 1.0}, "typo": {"2": 1.0, "3": 0.0}}


def test_the_macro_mean_weighs_sets_and_not_queries():
    small = query_set({"1": {"a": 2}}, name="small")
    large = query_set({str(number): {"a": 2} for number in range(9)}, name="large")
    assert macro_mean([result({"1": ["a"]}, small), result({}, large)], NDCG) == 0.5
    assert math.isnan(macro_mean([], NDCG))
    assert math.isnan(mean([]))


def build_stub(operations, context):
    return lambda text, k: [(operations[0].key, 2, {"words": 1}), (operations[1].key, 1.0)][:k]


def test_evaluating_puts_every_query_to_the_system_and_times_it():
    of = query_set({"1": {"listOrders": 2}, "2": {"gone": 2}})
    found = evaluate("stub", build_stub, of, OPERATIONS, Context(), clock=ticking())
    assert [answer.key for answer in found.run["1"]] == ["listOrders", "createOrder"]
    assert found.run["1"][0].source == "shop"
    assert found.run["1"][0].parts == {"words": 1.0}
    assert found.latencies == (1.0, 1.0)
    assert found.latency_ms(0.5) == pytest.approx(1000.0)
    assert found.build_seconds == 1.0
    assert found.unknown_labels == ("gone",)
    assert not found.over_limit


def test_a_system_over_its_time_limit_is_stopped_and_marked():
    of = query_set({str(number): {"listOrders": 2} for number in range(100)})
    found = evaluate("slow", build_stub, of, OPERATIONS, Context(), clock=ticking(), limit_seconds=10.0)
    assert found.over_limit
    assert 0 < len(found.run) < 10
