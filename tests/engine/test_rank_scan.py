"""Scans of vectors in short form: what they lose, and that permission goes into them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from capdex_engine.rank import scan
from capdex_engine.rank.dense import DenseIndex

COUNT = 150
ALL = np.arange(scan.PRODUCT_FROM)


@pytest.fixture(scope="module")
def vectors() -> NDArray[np.float32]:
    """Vectors that differ more along some directions than along others, as those of texts do."""
    random = np.random.default_rng(5)
    spectrum = np.arange(1, 97) ** -0.5
    turn = np.linalg.qr(random.normal(size=(96, 96)))[0]
    rows = (random.normal(size=(scan.PRODUCT_FROM, 96)) * spectrum) @ turn
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def index(vectors: NDArray[np.float32]) -> DenseIndex:
    return DenseIndex(vectors)


def best(
    index: DenseIndex, query: NDArray[np.float32], count: int, rows: NDArray[np.int64] = ALL
) -> list[int]:
    """Return the best of all the rows, each looked at."""
    order = np.argsort(-index.similarities(query, rows), kind="stable")[:count]
    return [int(row) for row in rows[order]]


def test_many_vectors_are_scanned_as_products_and_few_as_bytes(vectors: NDArray[np.float32]) -> None:
    assert type(scan.scan_of(vectors)) is not type(scan.scan_of(vectors[:-1]))


def test_products_keep_the_best_ten_and_nearly_all_of_the_rest(
    index: DenseIndex, vectors: NDArray[np.float32]
) -> None:
    kept = []
    for query in vectors[::400]:
        found = index.search(query, COUNT)[0].tolist()
        exact = best(index, query, COUNT)
        assert found[:10] == exact[:10]
        kept.append(len(set(found) & set(exact)) / COUNT)
    # Of the vectors of 10,000 real operations 0.996 are kept; these here are noisier.
    assert np.mean(kept) > 0.95


@pytest.mark.parametrize("share", [0.01, 0.1, 0.9])
def test_permission_goes_into_the_scan_of_products(
    index: DenseIndex, vectors: NDArray[np.float32], share: float
) -> None:
    allowed = np.random.default_rng(3).random(len(vectors)) < share
    rows = np.flatnonzero(allowed)
    for query in vectors[::800]:
        found = index.search(query, 10, allowed)[0].tolist()
        assert found == best(index, query, 10, rows)


def test_rows_asked_for_beside_the_best_come_once_with_their_cosines(
    index: DenseIndex, vectors: NDArray[np.float32]
) -> None:
    query = vectors[17]
    also = np.array([3, 17, 5_000])
    rows, cosines = index.candidates(query, 5, None, also)
    assert sorted(set(rows.tolist())) == rows.tolist()
    assert set(also.tolist()) | set(best(index, query, 5)) == set(rows.tolist())
    assert cosines.tolist() == index.similarities(query, rows).tolist()


def test_nothing_allowed_gives_what_was_asked_for_beside(index: DenseIndex) -> None:
    nobody = np.zeros(scan.PRODUCT_FROM, dtype=bool)
    rows, _ = index.candidates(np.ones(96, dtype=np.float32), 5, nobody, np.array([4]))
    assert rows.tolist() == [4]
