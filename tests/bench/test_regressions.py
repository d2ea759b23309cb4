"""The check against a baseline: planted regressions are caught, harmless changes are not."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from bench.helpers import WordEncoder, ticking
from capdex_bench.baseline import Baseline, check
from capdex_bench.measures import Measure
from capdex_bench.probes import SIZE, probe_operations, probes
from capdex_bench.sets import load_sets, probe_set
from capdex_bench.suite import run_suite
from capdex_bench.systems import ABLATIONS, Context
from capdex_bench.systems.base import tokens
from capdex_bench.systems.engine import build_capdex


class MirrorEncoder(WordEncoder):
    """Takes a word and its mirror image for the same: what only the dense side can know."""

    def encode(self, texts):
        return super().encode([" ".join(min(word, word[::-1]) for word in tokens(text)) for text in texts])


def mirrored(one):
    """Return the probes with their words written backwards: no word stands in the catalog."""
    queries = [
        dataclasses.replace(query, text=" ".join(word[::-1] for word in tokens(query.text)), type="dense")
        for query in one.queries
        if query.type == "summary"
    ]
    return dataclasses.replace(one, name="mirrored", queries=tuple(queries))


@pytest.fixture(scope="module")
def checked():
    sets = [probe_set(), mirrored(probe_set())]
    context = Context(load=MirrorEncoder)

    def results(build):
        return run_suite(sets, {"capdex": build}, context, clock=ticking())

    baseline = Baseline.of(results(build_capdex), Measure.parse("nDCG@10"))
    return lambda build: check(baseline, results(build))


@pytest.mark.parametrize(
    ("part", "kind"), [("name", "name"), ("summary", "summary"), ("path", "path"), ("dense", "dense")]
)
def test_a_planted_regression_is_caught_and_its_queries_are_named(checked, part, kind):
    found = checked(ABLATIONS[f"capdex-{part}"])
    assert any(f"type {kind}" in failure for failure in found.failures)
    assert len(found.fallen) >= SIZE // 2


@pytest.mark.parametrize("step", range(2, 12))
def test_another_order_of_operations_is_quiet(checked, step):
    def reordered(operations, context):
        return build_capdex([one for first in range(step) for one in operations[first::step]], context)

    found = checked(reordered)
    assert not found.failures
    assert not found.fallen


def test_running_again_is_quiet(checked):
    assert not checked(build_capdex).fallen


def test_every_operation_has_one_probe_per_field_and_fields_share_no_word():
    asked = list(probes())
    assert Counter(query.type for query, _ in asked) == {"name": SIZE, "summary": SIZE, "path": SIZE}
    assert len({query.text for query, _ in asked}) == len(asked)
    words = [
        {word for one in probe_operations() for word in tokens(text(one))} - {"a"}
        for text in (lambda one: one.name, lambda one: one.summary, lambda one: one.path)
    ]
    assert len(set.union(*words)) == sum(map(len, words)) == 48


def test_probes_need_no_data(tmp_path):
    (found,) = load_sets(["probes"], tmp_path)
    assert len(found.operations) == SIZE
    assert {key for grades in found.qrels.values() for key in grades} == {one.key for one in found.operations}
