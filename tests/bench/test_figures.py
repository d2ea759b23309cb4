from __future__ import annotations

import dataclasses
import json
import math

import pytest

from bench.helpers import query_set, result
from capdex_bench.curves import calibration_error, recall_curve, scored_answers
from capdex_bench.evaluate import Result
from capdex_bench.figures import (
    by_type,
    confidence_table,
    figures,
    main_table,
    markdown,
    merged_table,
    set_table,
    table,
    type_table,
)
from capdex_bench.measures import DEFAULT, Measure
from capdex_bench.runs import Answer
from capdex_bench.suite import Suite

NDCG = Measure.parse("nDCG@10")
LABELS = {"1": {"a": 2}, "2": {"b": 2}, "3": {}}
TYPES = {"1": "terse", "2": "typo", "3": "none"}


def suite(**manifest: object) -> Suite:
    sets = [query_set(LABELS, types=TYPES, name=name, group="golden") for name in ("one", "two")]
    good = [result({"1": ["a"], "2": ["b"]}, of, system="good") for of in sets]
    poor = [result({"1": ["x", "a"], "3": ["a"]}, of, system="poor") for of in sets]
    return Suite((*good, *poor), manifest)


def test_a_table_escapes_its_separator():
    assert table(["a|b"], [["c"]]) == "| a\\|b |\n| --- |\n| c |\n"


def test_figures_are_json_and_hold_means_types_and_sets():
    body = json.loads(json.dumps(figures(suite(seed=3)), allow_nan=False))
    good, poor = body["groups"]["golden"]["good"], body["groups"]["golden"]["poor"]
    assert body["measures"] == [str(measure) for measure in DEFAULT]
    assert good["means"]["nDCG@10"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert poor["types"]["nDCG@10"]["typo"] == 0.0
    assert poor["sets"]["one"]["MRR@10"] == 0.25
    assert (good["means"]["abstention"]["mean"], poor["means"]["abstention"]["mean"]) == (1.0, 0.0)
    assert body["manifest"] == {"seed": 3}


def test_a_measure_that_applies_to_no_query_is_null():
    of = query_set({"1": {"a": 2}})
    body = figures(Suite((result({"1": ["a"]}, of),), {}))
    assert body["groups"]["shop"]["ours"]["means"]["abstention"]["mean"] is None


def test_the_page_shows_systems_sets_types_and_the_manifest():
    page = markdown(suite(command="capdex bench quality", seed=3))
    assert "| good | 1.000 [1.000, 1.000] |" in page
    assert "| one | 3 | 1.000 |" in page
    assert "| typo | 2 | 1.000 | 0.000 |" in page
    assert "`capdex bench quality`" in page


def test_sets_without_types_get_no_type_table():
    of = query_set({"1": {"a": 2}})
    plain = Suite((result({"1": ["a"]}, of),), {})
    assert type_table(plain, "shop", NDCG) == ""
    assert set_table(plain, "shop", NDCG).count("\n") == 3


def test_types_are_pooled_over_sets():
    found = by_type(suite().of("good"), NDCG)
    assert set(found) == {"terse", "typo"}
    assert set(found["typo"]) == {"one/2", "two/2"}


def test_a_system_over_the_limit_shows_no_figures():
    one = suite()
    late = Suite(tuple(dataclasses.replace(r, over_limit=r.system == "poor") for r in one.results), {})
    assert "| poor | over the limit |" in main_table(late, "golden")
    assert figures(late)["groups"]["golden"]["poor"] == {"over_limit": True}


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("| ").split("|")]


def test_confidence_is_shown_with_silence_and_its_counts():
    of = query_set({"1": {"a": 2}, "2": {"a": 2}, "3": {}, "4": {}})
    run = {"1": (Answer("a", 0.75), Answer("b", 0.25)), "3": (Answer("x", 0.5),)}
    shown = confidence_table({"ours": [Result("ours", of, run)], "absent": []}).splitlines()
    assert cells(shown[2]) == [
        "ours", "2", "0.500", "0.625", "0.375", "1.000", "0.333", "0.500 (1 of 2)", "0.500 (1 of 2)",
    ]  # fmt: skip
    assert len(shown) == 3


def test_confidence_is_in_the_figures_and_pooled_over_golden_and_public():
    golden = query_set({"1": {"a": 2}}, group="golden")
    public = query_set({"1": {"a": 2}, "2": {"a": 2}}, name="two", group="public")
    both = [Result("ours", of, {"1": (Answer("a", 0.95),)}) for of in (golden, public)]
    body = json.loads(json.dumps(figures(Suite(tuple(both), {})), allow_nan=False))
    first = body["groups"]["golden"]["ours"]["confidence"]["first"]
    assert (first["count"], first["auroc"], first["bins"]) == (1, None, [[9, 0.95, 1.0, 1]])
    assert body["pooled"]["ours"]["first"]["count"] == 2
    assert body["pooled"]["ours"]["unanswered"] == {
        "none": 0, "none_left": 0, "answerable": 3, "answerable_left": 1,
    }  # fmt: skip
    assert figures(Suite((both[0],), {}))["pooled"] == {}


def merged_suite() -> Suite:
    singles = [query_set({"1": {"a": 2}, "2": {"a": 2}}, name="one", group="golden")]
    singles.append(query_set({"1": {"a": 2}, "2": {}}, name="two", group="golden"))
    names = {"one/1": {"one/a": 2}, "one/2": {"one/a": 2}, "two/1": {"two/a": 2}}
    merged = query_set(names, name="golden-merged", group="golden-merged")
    alone = [result({"1": ["a"], "2": ["a"]}, of) for of in singles]
    return Suite((*alone, result({"one/1": ["one/a"], "two/1": ["two/a"]}, merged)), {})


def test_one_catalog_is_paired_with_its_documents_by_document_and_request():
    shown = merged_table(merged_suite(), Measure.parse("hit@1")).splitlines()
    system, single, merged, difference = cells(shown[2])
    # Means over documents: one has 1 of 2 requests right in the merged catalog, two its only one.
    assert (system, single, merged) == ("ours", "1.000", "0.750")
    assert difference.startswith("-0.250 [")
    assert "lower bound" in markdown(merged_suite())


def test_without_both_groups_there_is_nothing_to_pair():
    assert merged_table(suite(), NDCG) == ""
    assert "lower bound" not in markdown(suite())


def test_a_system_over_the_limit_is_not_paired():
    one = merged_suite()
    late = Suite(tuple(dataclasses.replace(r, over_limit=r.set.name == "two") for r in one.results), {})
    assert "ours" not in merged_table(late, NDCG)


def test_the_recall_curve_rises():
    points = recall_curve(suite().of("poor"))
    assert points[0] == (1.0, 0.0)
    assert points[1] == (2.0, 0.5)
    assert [y for _, y in points] == sorted(y for _, y in points)


def scored(pairs) -> list[Result]:
    labels = {str(i): {"a": 2} for i in range(len(pairs))}
    of = query_set(labels)
    run = {str(i): (Answer("a" if right else "x", score),) for i, (score, right) in enumerate(pairs)}
    return [Result("ours", of, run)]


def test_a_calibrated_score_has_no_error():
    assert calibration_error(scored([(0.75, i % 4 != 0) for i in range(40)])) == pytest.approx(0.0)


def test_an_overconfident_score_has_an_error():
    assert calibration_error(scored([(0.95, i % 2 == 0) for i in range(40)])) == pytest.approx(0.45)


def test_scores_beyond_one_are_no_probabilities():
    assert math.isnan(calibration_error(scored([(7.0, True)])))


def test_acceptable_answers_count_as_right_for_calibration():
    of = query_set({"1": {"a": 2, "b": 1}})
    assert scored_answers([result({"1": ["b", "x"]}, of)]) == [(1.0, True), (0.5, False)]
