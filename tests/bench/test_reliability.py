from __future__ import annotations

import dataclasses
import math
import random

import pytest

from bench.helpers import query_set
from capdex_bench.evaluate import Result
from capdex_bench.reliability import Reliability, Unanswered, auroc, by_system, pooled
from capdex_bench.runs import Answer
from capdex_bench.suite import Suite


def results(*scores: tuple[float, bool]) -> list[Result]:
    """Return one request per score, with one answer."""
    of = query_set({str(i): {"a": 2} for i in range(len(scores))})
    run = {str(i): (Answer("a" if right else "x", score),) for i, (score, right) in enumerate(scores)}
    return [Result("ours", of, run)]


def test_a_calibrated_score_lies_on_the_diagonal():
    found = Reliability.of(results(*[(0.75, i % 4 != 0) for i in range(40)]))
    (held,) = found.bins
    assert (held.range, held.count) == ("0.7-0.8", 40)
    assert (held.score, held.right) == (pytest.approx(0.75), pytest.approx(0.75))
    assert found.error == pytest.approx(0.0)


def test_bins_hold_every_answer_once_and_the_ends_of_the_range():
    found = Reliability.of(results((0.0, False), (0.1, False), (0.96, True), (1.0, True)))
    assert [(one.number, one.count) for one in found.bins] == [(0, 1), (1, 1), (9, 2)]
    assert found.count == 4


def test_the_error_is_what_the_bins_differ_from_the_diagonal():
    found = Reliability.of(results((0.95, True), (0.95, False), (0.25, False)))
    # Two answers at .95 of which one is right, and one at .25 that is wrong.
    assert found.error == pytest.approx((2 * 0.45 + 0.25) / 3)
    assert found.error == pytest.approx(
        sum(one.count * abs(one.score - one.right) for one in found.bins) / found.count
    )


def test_first_matches_are_told_from_all_that_are_shown():
    of = query_set({"1": {"a": 2, "b": 1}, "2": {}})
    run = {"1": (Answer("b", 0.8), Answer("x", 0.4)), "2": (Answer("a", 0.2),)}
    one = [Result("ours", of, run)]
    first, shown = Reliability.of(one, depth=1), Reliability.of(one)
    assert (first.count, first.right, first.score) == (2, 0.5, 0.5)
    assert shown.count == 3
    assert shown.right == pytest.approx(1 / 3)


def test_scores_beyond_one_have_an_order_but_no_error_and_no_bins():
    found = Reliability.of(results((7.0, True), (3.0, False)))
    assert math.isnan(found.error)
    assert found.bins == ()
    assert found.auroc == 1.0


def test_nothing_answered_says_nothing():
    of = query_set({"1": {"a": 2}})
    found = Reliability.of([Result("ours", of, {})])
    assert found.count == 0
    assert found.bins == ()
    assert all(math.isnan(value) for value in (found.error, found.auroc, found.right, found.score))


def test_the_area_is_the_share_of_pairs_in_the_right_order_with_ties_by_half():
    rng = random.Random(5)
    answers = [(rng.randrange(8) / 8, rng.random() < 0.4) for _ in range(60)]
    right = [score for score, found in answers if found]
    wrong = [score for score, found in answers if not found]
    pairs = [(one > other) + 0.5 * (one == other) for one in right for other in wrong]
    assert auroc(answers) == pytest.approx(sum(pairs) / len(pairs))


@pytest.mark.parametrize("right", [True, False])
def test_the_area_needs_both_right_and_wrong_answers(right):
    assert math.isnan(auroc([(0.2, right), (0.7, right)]))


def test_requests_without_an_answer_are_counted_by_whether_there_is_one():
    of = query_set({"1": {"a": 2}, "2": {"a": 2}, "3": {"b": 1}, "4": {}, "5": {}})
    run = {"1": (Answer("x", 0.5),), "2": (), "4": (Answer("a", 0.1),)}
    found = Unanswered.of([Result("ours", of, run)])
    assert dataclasses.astuple(found) == (2, 1, 3, 2)  # "2" got an empty answer, "3" and "5" none


def test_golden_and_public_are_pooled_per_system_only_when_both_ran():
    sets = [query_set({"1": {"a": 2}}, name=name, group=name) for name in ("golden", "public", "merged")]
    ran = tuple(Result(system, of, {}) for of in sets for system in ("ours", "other"))
    together = pooled(Suite(ran, {}))
    assert list(together) == ["ours", "other"]
    assert [one.set.name for one in together["ours"]] == ["golden", "public"]
    assert pooled(Suite(ran[:2], {})) == {}
    assert [one.set.name for one in by_system(Suite(ran, {}), "merged")["other"]] == ["merged"]
