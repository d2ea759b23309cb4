from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.train_tiny import apis, corpus, operation_row
from capdex_bench.train.batches import Batch, Extras, epoch_batches
from capdex_bench.train.corpus import Corpus


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return corpus(tmp_path_factory.mktemp("train"), *apis(10))


@pytest.fixture(scope="module")
def pool(data: Corpus) -> list[int]:
    return [number for number, request in enumerate(data.requests) if request.answers]


def batches(
    data: Corpus,
    pool: Sequence[int],
    *,
    apis: int = 4,
    requests: int = 5,
    siblings: int = 0,
    seed: str = "0/0",
) -> list[Batch]:
    return epoch_batches(
        data, pool, apis=apis, requests=requests, seed=seed, extras=Extras(siblings=siblings)
    )


def test_an_epoch_has_every_request_once(data: Corpus, pool: list[int]) -> None:
    used = Counter(number for batch in batches(data, pool) for number in batch.requests)
    assert used == Counter(pool)


def test_a_batch_is_some_requests_for_each_of_some_apis(data: Corpus, pool: list[int]) -> None:
    for batch in batches(data, pool):
        per_api = Counter(data.requests[number].document for number in batch.requests)
        assert len(per_api) <= 4
        assert max(per_api.values()) <= 5
    full = [b for b in batches(data, pool) if len({data.requests[n].document for n in b.requests}) == 4]
    assert len(full) >= 9


def test_the_requests_of_an_api_in_a_batch_ask_for_different_operations(
    data: Corpus, pool: list[int]
) -> None:
    batch = batches(data, pool, requests=6)[0]
    firsts = Counter(data.requests[number].answers[0] for number in batch.requests)
    assert max(firsts.values()) <= 2
    assert len(firsts) > len(batch.requests) * 2 / 3


def test_right_answers_are_positive_and_all_of_them_are_columns(data: Corpus, pool: list[int]) -> None:
    for batch in batches(data, pool):
        assert len(set(batch.operations)) == len(batch.operations)
        right = {
            (row, batch.operations.index(answer))
            for row, number in enumerate(batch.requests)
            for answer in data.requests[number].answers
        }
        assert set(batch.positives) == right
        assert not right & set(batch.blocked)


def test_siblings_are_added_as_negatives_only(data: Corpus, pool: list[int]) -> None:
    plain, more = batches(data, pool, requests=2), batches(data, pool, requests=2, siblings=2)
    assert sum(len(b.operations) for b in more) > sum(len(b.operations) for b in plain)
    for batch in more:
        documents = {data.requests[number].document for number in batch.requests}
        assert {data.documents[number] for number in batch.operations} == documents
        answered = {column for _, column in batch.positives}
        extra = [data.documents[n] for j, n in enumerate(batch.operations) if j not in answered]
        assert max(Counter(extra).values(), default=0) <= 2


def test_twins_and_right_answers_of_the_same_words_are_blocked(tmp_path: Path) -> None:
    operations = [
        operation_row("a.json", "GET /x", summary="Do it"),
        operation_row("a.json", "POST /x", summary="Do it"),
        operation_row("b.json", "GET /y", summary="Other"),
        operation_row("b.json", "GET /z", summary="Third"),
    ]
    requests = [
        ("a.json", "GET /x", "natural", "run the thing"),
        ("a.json", "POST /x", "natural", "send the thing"),
        ("b.json", "GET /y", "terse", "Running things"),
        ("b.json", "GET /z", "terse", "third one"),
    ]
    data = corpus(tmp_path, operations, requests)
    (batch,) = batches(data, range(4))
    blocked = {(batch.requests[row], batch.operations[column]) for row, column in batch.blocked}
    # request 0 and 2 have the same words; operations 0 and 1 are twins
    assert blocked == {(0, 1), (1, 0), (0, 2), (2, 0), (2, 1)}


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 9), st.integers(1, 9), st.integers(0, 3), st.text(max_size=4))
def test_the_seed_fixes_the_epoch(
    data: Corpus, pool: list[int], count: int, requests: int, siblings: int, seed: str
) -> None:
    one, two = (
        batches(data, pool, apis=count, requests=requests, siblings=siblings, seed=seed) for _ in range(2)
    )
    assert one == two
    assert sorted(number for batch in one for number in batch.requests) == pool


def test_epochs_differ(data: Corpus, pool: list[int]) -> None:
    assert batches(data, pool, seed="0/0") != batches(data, pool, seed="0/1")


def test_no_document_stands_twice_in_a_batch(data: Corpus, pool: list[int]) -> None:
    for count, requests in product((2, 3, 8), (1, 3, 8)):
        for batch in batches(data, pool, apis=count, requests=requests):
            per_api = Counter(data.requests[number].document for number in batch.requests)
            assert max(per_api.values()) <= requests
