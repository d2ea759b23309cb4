"""The dense index: exact, permission inside, and the text it is built from."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from capdex_engine.operation import Operation
from capdex_engine.rank import operation_text
from capdex_engine.rank.dense import DenseIndex, first_sentences


def unit_rows(seed: int, count: int, dimension: int = 8) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 70))
def test_search_is_exact_among_the_allowed(seed: int, count: int, wanted: int) -> None:
    vectors = unit_rows(seed, count)
    query = unit_rows(seed + 1, 1)[0]
    allowed = np.random.default_rng(seed).random(count) < 0.4
    expected = [i for i in np.argsort(-(vectors @ query)) if allowed[i]][:wanted]
    assert DenseIndex(vectors).search(query, wanted, allowed)[0].tolist() == expected


def test_without_a_mask_all_may_be_found() -> None:
    vectors = unit_rows(1, 5)
    assert DenseIndex(vectors).search(vectors[3], 1)[0].tolist() == [3]
    assert len(DenseIndex(vectors).search(vectors[3], 50)[0]) == 5


def test_nothing_allowed_or_nothing_there_gives_nothing() -> None:
    vectors = unit_rows(1, 5)
    assert DenseIndex(vectors).search(vectors[0], 3, np.zeros(5, dtype=bool))[0].tolist() == []
    assert DenseIndex(vectors[:0]).search(vectors[0], 3)[0].tolist() == []


def test_a_search_gives_the_cosines_with_the_rows() -> None:
    vectors = unit_rows(6, 400, 32)
    index = DenseIndex(vectors)
    rows, cosines = index.search(vectors[7], 100)
    assert rows[0] == 7 and (np.diff(cosines) <= 0).all()
    assert cosines.tolist() == index.similarities(vectors[7], rows).tolist()


def test_reading_vectors_as_bytes_loses_none_of_the_best() -> None:
    vectors = unit_rows(8, 3_000, 384)
    queries = unit_rows(9, 20, 384)
    index = DenseIndex(vectors)
    for query in queries:
        exact = np.argsort(-(vectors @ query), kind="stable")[:150]
        assert set(index.search(query, 150)[0].tolist()) == set(exact.tolist())


def test_one_large_number_among_the_vectors_does_no_harm() -> None:
    vectors = unit_rows(10, 500, 384)
    vectors[0] = 0
    vectors[0, 0] = 1
    query = unit_rows(11, 1, 384)[0]
    exact = np.argsort(-(vectors @ query), kind="stable")[:20]
    assert DenseIndex(vectors).search(query, 20)[0].tolist() == exact.tolist()


def test_similarities_are_cosines_of_the_given_rows() -> None:
    vectors = unit_rows(2, 30)
    rows = np.array([4, 29, 0])
    found = DenseIndex(vectors).similarities(vectors[4], rows)
    np.testing.assert_allclose(found, vectors[rows] @ vectors[4], atol=2e-6)


def test_similarities_do_not_depend_on_the_neighbours() -> None:
    vectors = unit_rows(3, 40, 384)
    index = DenseIndex(vectors)
    together = index.similarities(vectors[0], np.arange(40))
    alone = [index.similarities(vectors[0], np.array([i]))[0] for i in range(40)]
    assert together.tolist() == alone


def test_the_text_says_name_summary_description_path_arguments_title() -> None:
    op = Operation(
        name="issuesListForRepo",
        source="s",
        method="GET",
        path="/repos/{owner}/issues",
        summary="List issues.",
        description="Lists them. And more.",
        query_params=("perPage",),
        keywords=("ticket",),
        api_title="Hub API",
    )
    assert operation_text(op) == (
        "issues list for repo. List issues. Lists them. And more. repos issues. per page. ticket. Hub API"
    )


def test_absent_parts_leave_no_trace_in_the_text() -> None:
    assert operation_text(Operation(name="ping", source="s")) == "ping"


def test_whole_sentences_are_kept_up_to_the_limit() -> None:
    assert first_sentences("One two. Three four. Five.", 20) == "One two. Three four."
    assert first_sentences("A first sentence that is long", 7) == "A first"
    assert first_sentences("", 10) == ""
