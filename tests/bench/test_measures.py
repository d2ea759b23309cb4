from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_bench.measures import DEFAULT, Measure, best_keys

KEYS = [f"k{number}" for number in range(12)]
grades = st.dictionaries(st.sampled_from(KEYS), st.integers(1, 2), min_size=1, max_size=6)
rankings = st.lists(st.sampled_from(KEYS), unique=True, max_size=12)


def measured(name, ranking, labels):
    return Measure.parse(name)(ranking, labels)


@pytest.mark.parametrize("measure", DEFAULT, ids=str)
def test_a_measure_prints_as_it_is_written_and_parses_back(measure):
    assert Measure.parse(str(measure)) == measure


@pytest.mark.parametrize(
    "text", ["", "nDCG", "nDCG@0", "nDCG@ten", "precision@3", "hit", "MRR@-1", "nDCG@10@5"]
)
def test_what_is_no_measure_is_refused(text):
    with pytest.raises(ValueError):
        Measure.parse(text)


def test_mrr_may_stand_without_a_cutoff():
    assert str(Measure.parse("MRR")) == "MRR"
    assert measured("MRR", ["x"] * 0 + [f"n{i}" for i in range(40)] + ["a"], {"a": 2}) == 1 / 41


def test_ndcg_gives_three_for_best_and_one_for_acceptable():
    labels = {"best": 2, "also": 1}
    worst_first = (1 / math.log2(2) + 3 / math.log2(3)) / (3 / math.log2(2) + 1 / math.log2(3))
    assert measured("nDCG@10", ["best", "also"], labels) == 1.0
    assert measured("nDCG@10", ["also", "best"], labels) == pytest.approx(worst_first, abs=1e-12)


def test_only_best_grade_keys_count_as_hits():
    labels = {"best": 2, "also": 1}
    assert measured("hit@1", ["also", "best"], labels) == 0.0
    assert measured("hit@2", ["also", "best"], labels) == 1.0
    assert measured("MRR@10", ["also", "best"], labels) == 0.5


def test_a_set_with_one_grade_takes_every_label_for_best():
    assert best_keys({"a": 1, "b": 1}) == {"a", "b"}
    assert measured("hit@1", ["b"], {"a": 1, "b": 1}) == 1.0


def test_recall_can_reach_one_when_there_are_more_answers_than_places():
    labels = dict.fromkeys("abcdefg", 2)
    assert measured("recall@5", list("abcde"), labels) == 1.0
    assert measured("recall@5", list("abxyz"), labels) == 0.4
    assert measured("recall@10", list("ab"), labels) == pytest.approx(2 / 7)


def test_an_unanswered_query_counts_as_zero():
    for name in ("nDCG@10", "hit@5", "MRR@10", "recall@5"):
        assert measured(name, [], {"a": 2}) == 0.0


def test_a_query_without_labels_is_measured_by_abstention_alone():
    assert measured("abstention", [], {}) == 1.0
    assert measured("abstention", ["a"], {}) == 0.0
    for name in ("nDCG@10", "hit@5", "MRR@10", "recall@5", "falseAbstention"):
        assert measured(name, ["a"], {}) is None


def test_answering_nothing_to_a_labelled_query_is_false_abstention():
    assert measured("falseAbstention", [], {"a": 2}) == 1.0
    assert measured("falseAbstention", ["b"], {"a": 2}) == 0.0
    assert measured("abstention", [], {"a": 2}) is None
    assert not Measure.parse("falseAbstention").higher_is_better


@given(rankings, grades)
def test_values_lie_between_zero_and_one(ranking, labels):
    for measure in DEFAULT:
        value = measure(ranking, labels)
        assert value is None or 0.0 <= value <= 1.0 + 1e-12


@given(grades)
def test_the_labels_by_grade_are_the_perfect_ranking(labels):
    perfect = sorted(labels, key=lambda key: -labels[key])
    for name in ("nDCG@10", "hit@1", "MRR@10", "recall@5"):
        assert measured(name, perfect, labels) == pytest.approx(1.0)


def _random_case(seed):
    """Runs with tied scores and unanswered queries, labels in both grades."""
    draw = random.Random(seed)
    qrels, runs = {}, {}
    for number in range(40):
        labelled = draw.sample(KEYS, draw.randint(1, 5))
        qrels[f"q{number}"] = {key: draw.choice((1, 2)) for key in labelled} | {labelled[0]: 2}
        if number % 7:
            runs[f"q{number}"] = draw.sample(KEYS, draw.randint(1, len(KEYS)))
    return qrels, runs


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("nDCG@10", "nDCG(gains={1:1,2:3})@10"),
        ("nDCG@3", "nDCG(gains={1:1,2:3})@3"),
        ("hit@1", "Success(rel=2)@1"),
        ("hit@5", "Success(rel=2)@5"),
        ("MRR", "RR(rel=2)"),
        ("MRR@10", "RR(rel=2)@10"),
        ("recall@5", "R(rel=2)@5"),
        ("recall@10", "R(rel=2)@10"),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_measures_equal_ir_measures(ours, theirs, seed):
    """It re-sorts ties by id, so the rank is its score; at most five labels, so recall is the same."""
    ir_measures = pytest.importorskip("ir_measures")
    qrels, runs = _random_case(seed)
    ranked = {query: {key: -rank for rank, key in enumerate(keys)} for query, keys in runs.items()}
    calculated = ir_measures.iter_calc([ir_measures.parse_measure(theirs)], qrels, ranked)
    expected = {metric.query_id: metric.value for metric in calculated}
    measure = Measure.parse(ours)
    for query, labels in qrels.items():
        assert measure(runs.get(query, []), labels) == pytest.approx(expected.get(query, 0.0), abs=1e-9)
