from __future__ import annotations

import json

import pytest

from bench.helpers import OPERATIONS, WordEncoder, query_set, result, ticking
from capdex_bench.measures import DEFAULT, Measure
from capdex_bench.runs import Answer
from capdex_bench.suite import Suite, load, run_suite, save
from capdex_bench.systems import Context, find_systems
from capdex_engine.errors import DocumentError

LABELS = {"1": {"listOrders": 2}, "2": {"getInvoice": 2, "listOrders": 1}, "3": {}}


def stub(operations, context):
    return lambda text, k: [(one.key, 1.0 / rank) for rank, one in enumerate(operations, 1)][:k]


def small_suite() -> Suite:
    sets = [query_set(LABELS, name="one", group="golden"), query_set(LABELS, name="two", group="golden")]
    sets.append(query_set(LABELS, name="mine"))
    results = run_suite(sets, {"a": stub, "b": stub}, Context(), clock=ticking(0.001))
    return Suite(results, {"seed": 1})


def test_a_suite_runs_every_system_on_every_set_and_groups_them():
    suite = small_suite()
    assert suite.systems == ["a", "b"]
    assert [one.name for one in suite.sets] == ["one", "two", "mine"]
    assert suite.groups == ["golden", "mine"]
    assert [found.set.name for found in suite.of("a", "golden")] == ["one", "two"]
    assert len(suite.of("b")) == 3


def test_progress_is_told_per_system_and_set():
    told: list[str] = []
    run_suite([query_set(LABELS)], {"a": stub}, Context(), clock=ticking(), say=told.append)
    assert len(told) == 1
    assert "shop" in told[0]


def test_a_catalog_is_read_once_per_set():
    reads = []

    class Counting:
        name, group, queries, qrels, files = "shop", "", (), {}, ()

        def catalog(self, cache):
            reads.append(1)
            return OPERATIONS

    run_suite([Counting()], {"a": stub, "b": stub}, Context(), clock=ticking())
    assert len(reads) == 1


def test_what_is_saved_reads_back_with_the_same_figures(tmp_path):
    suite = small_suite()
    save(tmp_path, suite)
    found = load(tmp_path)
    assert found.manifest == {"seed": 1}
    for one, other in zip(suite.results, found.results, strict=True):
        assert (one.system, one.set.name, one.run) == (other.system, other.set.name, other.run)
        assert other.latencies == pytest.approx(one.latencies)
        for measure in DEFAULT:
            assert one.values(measure) == other.values(measure)


def test_parts_of_a_score_survive(tmp_path):
    of = query_set({"1": {"a": 2}})
    found = result({}, of)
    found.run["1"] = (Answer("a", 0.5, "shop", {"words": 0.25}), Answer("b", 0.25, "shop"))
    save(tmp_path, Suite((found,), {}))
    assert load(tmp_path).results[0].run == found.run


def test_a_folder_without_a_suite_is_an_error(tmp_path):
    with pytest.raises(DocumentError):
        load(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"format": 0})])
def test_a_damaged_or_foreign_suite_is_an_error(tmp_path, text):
    (tmp_path / "suite.json").write_text(text, encoding="utf-8")
    with pytest.raises(DocumentError):
        load(tmp_path)


def test_the_order_of_operations_changes_no_figure():
    sets = [query_set(LABELS)]
    systems = find_systems(["keyword", "bm25", "minilm", "blend", "rrf", "capdex"])
    encoder = WordEncoder()
    forward = run_suite(sets, systems, Context(load=lambda: encoder), clock=ticking())
    turned = {
        name: lambda operations, context, build=build: build(operations[::-1], context)
        for name, build in systems.items()
    }
    backward = run_suite(sets, turned, Context(load=lambda: encoder), clock=ticking())
    for one, other in zip(forward, backward, strict=True):
        assert one.values(Measure.parse("nDCG@10")) == pytest.approx(other.values(Measure.parse("nDCG@10")))
