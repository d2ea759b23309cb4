from __future__ import annotations

import json

import pytest

from bench.helpers import query_set, result
from capdex_bench.baseline import Baseline, check, read_baseline, write_baseline
from capdex_bench.measures import Measure
from capdex_engine.errors import DocumentError

NDCG = Measure.parse("nDCG@10")
LABELS = {f"{number:03}": {"best": 2} for number in range(200)}
TYPES = {query: "exact" if number < 10 else "terse" for number, query in enumerate(LABELS)}
OF = query_set(LABELS, types=TYPES)


def run(lost=()):
    return [result({query: [] if query in lost else ["best"] for query in LABELS}, OF)]


BASELINE = Baseline.of(run(), NDCG)


def test_a_baseline_is_written_one_query_a_line_and_reads_back(tmp_path):
    path = tmp_path / "baseline.json"
    write_baseline(path, BASELINE)
    assert read_baseline(path) == BASELINE
    assert path.read_text(encoding="utf-8").count("\n") > len(LABELS)


def test_the_same_results_pass():
    found = check(BASELINE, run())
    assert not found.failures
    assert not found.fallen


def test_one_fallen_query_is_named_but_is_noise():
    found = check(BASELINE, run(lost={"150"}))
    assert not found.failures
    assert found.fallen == (("shop/150", 1.0, 0.0),)


def test_a_drop_over_many_queries_fails_and_names_them():
    lost = set(list(LABELS)[50:70])
    found = check(BASELINE, run(lost=lost))
    assert any("overall" in failure for failure in found.failures)
    assert {query for query, _, _ in found.fallen} == {f"shop/{query}" for query in lost}


def test_a_drop_confined_to_one_type_fails():
    found = check(BASELINE, run(lost=set(list(LABELS)[:8])))
    assert any("type exact" in failure for failure in found.failures)


def test_a_gain_passes():
    found = check(Baseline.of(run(lost=set(list(LABELS)[:50])), NDCG), run())
    assert not found.failures
    assert found.overall.above_zero


def test_a_baseline_of_other_queries_is_out_of_date():
    other = [result({}, query_set({"x": {"best": 2}}))]
    with pytest.raises(DocumentError):
        check(BASELINE, other)
    with pytest.raises(DocumentError):
        check(BASELINE, [result({}, query_set(LABELS, name="another"))])


@pytest.mark.parametrize("text", ["", "{}", "[]", json.dumps({"format": 99})])
def test_a_damaged_baseline_is_an_error(tmp_path, text):
    path = tmp_path / "baseline.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DocumentError):
        read_baseline(path)


def test_a_part_of_a_baseline_may_be_checked_alone():
    both = Baseline(NDCG, "capdex", {"shop": {"1": 1.0}, "probes": {"2": 0.5}})
    assert both.only({"probes"}).sets == {"probes": {"2": 0.5}}
    with pytest.raises(DocumentError):
        both.only({"golden"})
