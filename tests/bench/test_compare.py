from __future__ import annotations

import json

import pytest

from bench.helpers import query_set, result
from capdex_bench.compare import compare, comparison_json, comparison_markdown, verdict
from capdex_bench.evaluate import Result
from capdex_bench.measures import Measure
from capdex_bench.runs import Answer

NDCG = Measure.parse("nDCG@10")
LABELS = {str(number): {"best": 2} for number in range(20)}
OF = query_set(LABELS, types={"0": "terse", "1": "typo"})


def answered(place: int, *, but: dict[str, int] | None = None) -> Result:
    """Return a run with the best answer at ``place`` (0 = first), elsewhere for some queries."""
    lists = {}
    for query in LABELS:
        keys = [f"other{number}" for number in range(9)]
        keys.insert((but or {}).get(query, place), "best")
        lists[query] = keys
    return result(lists, OF)


def test_a_gain_on_every_query_is_better_beyond_the_noise():
    found = compare([answered(3)], [answered(0)], NDCG)
    assert found.overall.above_zero
    assert "better beyond the noise" in verdict(found)
    assert len(found.risen) == 20
    assert not found.fallen


def test_two_changes_that_cancel_are_no_difference():
    found = compare([answered(1, but={"0": 0})], [answered(1, but={"1": 0})], NDCG)
    assert not found.overall.below_zero
    assert not found.overall.above_zero
    assert [change.query for change in found.changes] == ["0", "1"]


def test_the_largest_fall_comes_first_with_its_reason():
    found = compare([answered(0)], [answered(0, but={"3": 5, "4": 1})], NDCG)
    assert [change.query for change in found.fallen] == ["3", "4"]
    assert "best: rank 1 -> 6" in found.fallen[0].reason
    assert "other0" in found.fallen[0].reason


def test_the_reason_names_the_parts_of_the_score_that_moved():
    of = query_set({"1": {"best": 2}})
    old = Result("a", of, {"1": (Answer("best", 0.9, "", {"words": 1.0, "meaning": 0.5}),)})
    new = Result("b", of, {"1": (Answer("x", 0.9), Answer("best", 0.2, "", {"words": 0.0, "meaning": 0.5}))})
    (change,) = compare([old], [new], NDCG).changes
    assert "words 1.00 -> 0.00" in change.reason
    assert "meaning" not in change.reason


def test_an_answer_that_left_the_list_has_no_rank():
    of = query_set({"1": {"best": 2}})
    (change,) = compare([result({"1": ["best"]}, of)], [result({}, of)], NDCG).changes
    assert "rank 1 -> none" in change.reason


def test_types_are_compared_apart():
    found = compare([answered(2)], [answered(2, but={"0": 0})], NDCG)
    assert found.types["terse"].mean > 0
    assert found.types["typo"].mean == 0


def test_runs_without_a_common_set_cannot_be_compared():
    with pytest.raises(ValueError):
        compare([answered(0)], [result({}, query_set(LABELS, name="other"))], NDCG)


def test_a_comparison_is_shown_as_markdown_and_as_json():
    found = compare([answered(0)], [answered(0, but={"3": 5})], NDCG)
    page = comparison_markdown(found)
    assert "### Fell" in page
    assert "### Rose" not in page
    body = json.loads(json.dumps(comparison_json(found)))
    assert body["measure"] == "nDCG@10"
    assert body["changes"][0]["query"] == "3"
