"""What batches hold beside requests and their answers: siblings, mined operations, unserved requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from bench.train_tiny import apis, corpus, operation_row
from capdex_bench.train.batches import Batch, Extras, epoch_batches
from capdex_bench.train.corpus import Corpus


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    operations, requests = apis(8)
    more = [(f"api{n}.test.json", "-", "none", f"{what} {n}") for n in range(8) for what in ("sing", "dance")]
    return corpus(tmp_path_factory.mktemp("train"), operations, [*requests, *more])


@pytest.fixture(scope="module")
def pool(data: Corpus) -> list[int]:
    return [number for number, request in enumerate(data.requests) if request.answers]


@pytest.fixture(scope="module")
def nothing(data: Corpus) -> dict[str, list[int]]:
    """Three requests per document that nothing serves."""
    found: dict[str, list[int]] = {}
    for number, request in enumerate(data.requests):
        if not request.answers:
            found.setdefault(request.document, []).append(number)
    return found


@pytest.fixture(scope="module")
def nearest(data: Corpus, pool: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """For each request all that its document has and it does not ask for."""
    return {
        number: tuple(n for n in data.siblings[data.requests[number].document] if n not in answers)
        for number in pool
        for answers in [data.requests[number].answers]
    }


def batches(data: Corpus, pool: Sequence[int], extras: Extras, *, seed: str = "0/0") -> list[Batch]:
    return epoch_batches(data, pool, apis=4, requests=2, seed=seed, extras=extras)


def served(data: Corpus, batch: Batch) -> list[int]:
    return [number for number in batch.requests if data.requests[number].answers]


def answers(data: Corpus, batch: Batch) -> set[int]:
    return {answer for number in batch.requests for answer in data.requests[number].answers}


def test_unserved_requests_come_last_and_are_of_the_batchs_documents(
    data: Corpus, pool: list[int], nothing: dict[str, list[int]]
) -> None:
    for batch in batches(data, pool, Extras(unserved=2, nothing=nothing)):
        asked = served(data, batch)
        assert list(batch.requests[: len(asked)]) == asked
        documents = Counter(data.requests[n].document for n in batch.requests[len(asked) :])
        assert documents == Counter(2 * [*{data.requests[n].document for n in asked}])
        assert len(set(batch.requests)) == len(batch.requests)


def test_unserved_requests_have_no_positive(
    data: Corpus, pool: list[int], nothing: dict[str, list[int]]
) -> None:
    for batch in batches(data, pool, Extras(siblings=1, unserved=2, nothing=nothing)):
        rows = {row for row, _ in batch.positives}
        assert rows == {row for row, n in enumerate(batch.requests) if data.requests[n].answers}
        assert len(batch.requests) > len(rows)
        assert {row for row, _ in batch.blocked} <= rows


def test_unserved_requests_change_nothing_of_what_is_asked(
    data: Corpus, pool: list[int], nothing: dict[str, list[int]]
) -> None:
    used = Counter(
        n for b in batches(data, pool, Extras(unserved=2, nothing=nothing)) for n in served(data, b)
    )
    assert used == Counter(pool)


def test_a_document_may_have_fewer_unserved_requests_than_wanted_or_none(
    data: Corpus, pool: list[int], nothing: dict[str, list[int]]
) -> None:
    few = {"api0.test.json": nothing["api0.test.json"][:1]}
    for batch in batches(data, pool, Extras(unserved=9, nothing=few)):
        documents = {data.requests[n].document for n in served(data, batch)}
        assert len(batch.requests) - len(served(data, batch)) == ("api0.test.json" in documents)


def test_an_unserved_request_in_the_words_of_an_answered_one_is_no_negative_there(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    rows = [operation_row("a.json", "GET /x", summary="Do"), operation_row("b.json", "GET /y", summary="Go")]
    requests = [
        ("a.json", "GET /x", "natural", "make a vault"),
        ("b.json", "GET /y", "natural", "go there"),
        ("b.json", "-", "none", "Making vaults"),
    ]
    data = corpus(tmp_path_factory.mktemp("words"), rows, requests)
    (batch,) = batches(data, [0, 1], Extras(unserved=1, nothing={"b.json": [2]}))
    row = batch.requests.index(2)
    assert [batch.operations[column] for r, column in batch.blocked if r == row] == [0]
    assert not [pair for pair in batch.positives if pair[0] == row]


def test_siblings_are_not_among_the_answers(data: Corpus, pool: list[int]) -> None:
    for batch in batches(data, pool, Extras(siblings=2)):
        extra = batch.operations[len(answers(data, batch)) :]
        assert not answers(data, batch) & set(extra)
        documents = Counter(data.documents[number] for number in extra)
        assert documents == Counter(2 * [*{data.requests[n].document for n in batch.requests}])


def test_mined_operations_appear(data: Corpus, pool: list[int], nearest: dict[int, tuple[int, ...]]) -> None:
    for batch in batches(data, pool, Extras(mined=1.0, nearest=nearest)):
        extra = set(batch.operations) - answers(data, batch)
        assert len(set(batch.operations)) == len(batch.operations)
        assert extra <= {wrong for number in batch.requests for wrong in nearest[number]}
        assert len(extra) <= len(batch.requests)
    assert extra


def test_a_mined_operation_that_another_row_asks_for_keeps_its_column(data: Corpus, pool: list[int]) -> None:
    plain = batches(data, pool, Extras())
    nearest = {
        number: tuple(answers(data, batch) - set(data.requests[number].answers))
        for batch in plain
        for number in batch.requests
    }
    assert batches(data, pool, Extras(mined=30.0, nearest=nearest))[0] == plain[0]


def test_all_are_taken_where_there_are_fewer_than_wanted(
    data: Corpus, pool: list[int], nearest: dict[int, tuple[int, ...]]
) -> None:
    for batch in batches(data, pool, Extras(mined=30.0, nearest=nearest)):
        wanted = {wrong for number in batch.requests for wrong in nearest[number]}
        assert set(batch.operations) == wanted | answers(data, batch)


def test_a_part_of_one_per_request_is_some_requests(
    data: Corpus, pool: list[int], nearest: dict[int, tuple[int, ...]]
) -> None:
    def extra(mined: float) -> int:
        made = batches(data, pool, Extras(mined=mined, nearest=nearest))
        return sum(len(batch.operations) - len(answers(data, batch)) for batch in made)

    assert 0 == extra(0.0) < extra(0.3) < extra(1.0) < extra(2.5)


def test_a_request_for_which_nothing_was_mined_adds_nothing(data: Corpus, pool: list[int]) -> None:
    assert [b.operations for b in batches(data, pool, Extras(mined=2.0))] == [
        tuple(dict.fromkeys(a for n in b.requests for a in data.requests[n].answers))
        for b in batches(data, pool, Extras(mined=2.0))
    ]


def test_the_seed_fixes_the_extras_too(
    data: Corpus, pool: list[int], nothing: dict[str, list[int]], nearest: dict[int, tuple[int, ...]]
) -> None:
    extras = Extras(siblings=1, mined=1.5, nearest=nearest, unserved=1, nothing=nothing)
    one, two = (batches(data, pool, extras) for _ in range(2))
    assert one == two
    assert one != batches(data, pool, extras, seed="0/1")


def test_which_requests_stand_together_does_not_hang_on_the_extras(
    data: Corpus, pool: list[int], nothing: dict[str, list[int]], nearest: dict[int, tuple[int, ...]]
) -> None:
    extras = Extras(siblings=1, mined=1.5, nearest=nearest, unserved=1, nothing=nothing)
    plain = [batch.requests for batch in batches(data, pool, Extras())]
    assert [tuple(served(data, batch)) for batch in batches(data, pool, extras)] == plain
